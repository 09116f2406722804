/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/units.h"

#include <stdio.h>

#include "base/compiler.h"

static int decimals(double v, bool whole)
{
	if (v >= 99.95 || whole)
		return 0;
	return v >= 9.995 ? 1 : 2;
}

/* Three digits; 999.6 goes on to the next unit as 1.00. */
static void scaled(double v, const char *const *units, unsigned n, char *buf, size_t buf_len)
{
	bool whole = v < 1000 && v == (double)(long)v;
	unsigned i = 0;

	while (i + 1 < n && v >= 999.5) {
		v /= 1000;
		i++;
	}
	snprintf(buf, buf_len, "%.*f%s", decimals(v, whole), v, units[i]);
}

void units_count(double v, char *buf, size_t buf_len)
{
	static const char *const units[] = {"", "k", "M", "G", "T"};

	scaled(v, units, ARRAY_SIZE(units), buf, buf_len);
}

void units_time(double ns, char *buf, size_t buf_len)
{
	static const char *const units[] = {" ns", " us", " ms", " s"};

	scaled(ns, units, ARRAY_SIZE(units), buf, buf_len);
}

void units_bandwidth(double bytes_per_s, char *buf, size_t buf_len)
{
	static const char *const units[] = {" B/s", " kB/s", " MB/s", " GB/s", " TB/s"};

	scaled(bytes_per_s, units, ARRAY_SIZE(units), buf, buf_len);
}

void units_size(uint64_t bytes, char *buf, size_t buf_len)
{
	static const char letters[] = "\0kMGT";
	unsigned i = 0;

	while (i < 4 && bytes && !(bytes % 1024)) {
		bytes /= 1024;
		i++;
	}
	snprintf(buf, buf_len, i ? "%llu%c" : "%llu", (unsigned long long)bytes, letters[i]);
}
