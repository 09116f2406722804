/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/html.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

void html_text(FILE *f, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		switch (c) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		case '\'':
			fputs("&#39;", f);
			break;
		default:
			if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
				fputs("\xef\xbf\xbd", f);
			else
				fputc(c, f);
		}
	}
}

void html_printf(FILE *f, const char *fmt, ...)
{
	char buf[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(buf, sizeof(buf), fmt, args);
	va_end(args);
	html_text(f, buf);
}

double html_finite(double v)
{
	return isfinite(v) ? v : 0;
}

/* Three digits that count, zeros behind the point left out. */
static void digits(char buf[HTML_NUMBER_LEN], double v, const char *unit)
{
	double size = fabs(v);
	int places = size < 0.0995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
	int len = snprintf(buf, HTML_NUMBER_LEN - 8, "%.*f", places, v);

	while (places > 0 && len > 1 && (buf[len - 1] == '0' || buf[len - 1] == '.')) {
		len--;
		if (buf[len] == '.')
			break;
	}
	snprintf(buf + len, HTML_NUMBER_LEN - (size_t)len, "%s", unit);
}

/* Divides by step until three digits are left, and says how often. */
static unsigned scale(double *v, double step, unsigned most)
{
	unsigned n = 0;

	*v = html_finite(*v);
	while (fabs(*v) >= 0.9995 * step && n < most) {
		*v /= step;
		n++;
	}
	return n;
}

const char *html_count(char buf[HTML_NUMBER_LEN], double v)
{
	static const char *const units[] = {"", "k", "M", "G", "T"};
	const char *unit = units[scale(&v, 1000, 4)]; /* scales first */

	digits(buf, v, unit);
	return buf;
}

const char *html_ns(char buf[HTML_NUMBER_LEN], double ns)
{
	static const char *const units[] = {" ns", " µs", " ms", " s"};
	const char *unit = units[scale(&ns, 1000, 3)]; /* scales first */

	digits(buf, ns, unit);
	return buf;
}

const char *html_bytes(char buf[HTML_NUMBER_LEN], double bytes)
{
	static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
	const char *unit = units[scale(&bytes, 1024, 4)]; /* scales first */

	digits(buf, bytes, unit);
	return buf;
}

const char *html_bandwidth(char buf[HTML_NUMBER_LEN], double bytes_per_s)
{
	static const char *const units[] = {" B/s", " kB/s", " MB/s", " GB/s", " TB/s"};
	const char *unit = units[scale(&bytes_per_s, 1000, 4)]; /* scales first */

	digits(buf, bytes_per_s, unit);
	return buf;
}

static bool starts_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

size_t html_length(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += starts_character(*s);
	return n;
}

/* The first byte of character n, or the end. */
static const char *character(const char *s, size_t n)
{
	for (; *s; s++) {
		if (starts_character(*s) && !n--)
			break;
	}
	return s;
}

void html_shorten(char *buf, size_t len, const char *s, size_t max)
{
	size_t have = html_length(s), head = (max - 1) / 3;

	if (have <= max)
		snprintf(buf, len, "%s", s);
	else
		snprintf(buf, len, "%.*s…%s", (int)(character(s, head) - s), s,
			 character(s, have - (max - 1 - head)));
}
