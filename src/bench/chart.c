/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH       400.0
#define HEIGHT      262.0
#define LEFT        50.0
#define RIGHT       26.0
#define TOP         28.0
#define BOTTOM      42.0
#define CHAR_WIDTH  8.6 /* of the widest fonts that a browser may take */
#define LINE_HEIGHT 14.0
#define BAR_TOP     6.0
#define ROW_HEIGHT  38.0
#define BAR_HEIGHT  14.0
#define BAR_WIDTH   246.0 /* the rest of the row is for the value */
#define SLOTS       8

/* ---- axes ---- */

void chart_axis_tick(struct chart_axis *axis, double value, const char *text)
{
	if (axis->ticks == CHART_TICKS_MAX)
		return;
	axis->tick[axis->ticks] = value;
	snprintf(axis->text[axis->ticks++], HTML_NUMBER_LEN, "%s", text);
}

static void tick_number(struct chart_axis *axis, double value)
{
	char number[HTML_NUMBER_LEN];

	chart_axis_tick(axis, value * axis->unit, html_count(number, value));
}

/* The number k of 1, 2, 5, 10, 20 ...; k may be negative. */
static double round_number(int k)
{
	static const double steps[] = {1, 2, 5};
	int decade = (int)floor(k / 3.0);

	return steps[k - 3 * decade] * pow(10, decade);
}

/* The largest k with round_number(k) <= v; v > 0. */
static int round_below(double v)
{
	int k = 3 * (int)floor(log10(v)) + 3;

	while (round_number(k) > v * 1.000001)
		k--;
	return k;
}

static int round_above(double v)
{
	int k = round_below(v);

	return round_number(k) < v * 0.999999 ? k + 1 : k;
}

void chart_axis_linear(struct chart_axis *axis, const char *title, double max, double unit)
{
	double top, step;

	*axis = (struct chart_axis){.title = title, .unit = unit};
	top = html_finite(max) > 0 ? max / unit : 1;
	step = round_number(round_above(top / 5));
	axis->max = ceil(top / step * 0.999999) * step * unit;
	for (unsigned i = 0; i * step * unit <= axis->max * 1.000001; i++)
		tick_number(axis, i * step);
}

void chart_axis_log(struct chart_axis *axis, const char *title, double min, double max, double unit)
{
	int low, high;

	*axis = (struct chart_axis){.title = title, .unit = unit, .log = true};
	low = round_below(html_finite(min) > 0 ? min / unit : 1);
	high = round_above(html_finite(max) > 0 ? max / unit : 1);
	/* A line with little of a slope must not look steep. */
	while (high - low < 3) {
		high++;
		low -= high - low < 3;
	}
	axis->min = round_number(low) * unit;
	axis->max = round_number(high) * unit;
	for (int k = low; k <= high; k++) {
		/* Every third is a power of ten. */
		if (high - low <= 11 || !(k % 3))
			tick_number(axis, round_number(k));
	}
}

/* 0 .. 1 */
static double share(const struct chart_axis *axis, double v)
{
	double at;

	if (axis->max <= axis->min)
		return 0.5;
	if (axis->log)
		at = v > 0 ? log(v / axis->min) / log(axis->max / axis->min) : 0;
	else
		at = (v - axis->min) / (axis->max - axis->min);
	at = html_finite(at);
	return at < 0 ? 0 : at > 1 ? 1 : at;
}

static double place_x(const struct chart *c, double v)
{
	return LEFT + share(&c->x, v) * (WIDTH - LEFT - RIGHT);
}

static double place_y(const struct chart *c, double v)
{
	return HEIGHT - BOTTOM - share(&c->y, v) * (HEIGHT - TOP - BOTTOM);
}

static double text_width(const char *s)
{
	return (double)html_length(s) * CHAR_WIDTH;
}

/* ---- what both kinds have ---- */

static void open_plot(FILE *f, const char *title, const char *subject, double height)
{
	fputs("<section class=\"box\">\n<h2>", f);
	html_text(f, title);
	fputs("</h2>\n<p class=\"subject\">", f);
	html_text(f, subject[0] ? subject : "\xc2\xa0");
	fprintf(f, "</p>\n<svg class=\"plot\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"",
		WIDTH, height);
	html_text(f, title);
	fputs("\">\n", f);
}

static void close_plot(FILE *f, const char *meaning)
{
	fputs("<p class=\"meaning\">", f);
	html_text(f, meaning);
	fputs("</p>\n</section>\n", f);
}

static void write_text(FILE *f, const char *kind, double x, double y, const char *text)
{
	fprintf(f, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", kind, x, y);
	html_text(f, text);
	fputs("</text>\n", f);
}

static void write_rule(FILE *f, double x1, double y1, double x2, double y2)
{
	fprintf(f, "<path class=\"rule\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", x1, y1, x2, y2);
}

/* ---- lines ---- */

static void write_y_axis(FILE *f, const struct chart *c)
{
	write_text(f, "start", 2, LINE_HEIGHT, c->y.title);
	for (unsigned i = 0; i < c->y.ticks; i++) {
		double y = place_y(c, c->y.tick[i]);

		write_rule(f, LEFT, y, WIDTH - RIGHT, y);
		write_text(f, "end", LEFT - 6, y + 4.5, c->y.text[i]);
	}
}

static void write_x_axis(FILE *f, const struct chart *c)
{
	double bottom = HEIGHT - BOTTOM, free_from = 0;

	for (unsigned i = 0; i < c->x.ticks; i++) {
		double x = place_x(c, c->x.tick[i]), half = text_width(c->x.text[i]) / 2;
		double middle = fmin(x, WIDTH - half);

		write_rule(f, x, bottom, x, bottom + 4);
		if (middle - half < free_from)
			continue;
		write_text(f, "middle", middle, bottom + 17, c->x.text[i]);
		free_from = middle + half + 5;
	}
	write_text(f, "middle", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, c->x.title);
}

/* A symbol of its own for each slot, so that colour is not all that tells lines apart. */
static void write_symbol(FILE *f, unsigned slot, double x, double y)
{
	static const char *const shapes[] = {
		"m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", /* disc */
		"m-3.2 -3.2h6.4v6.4h-6.4z",                      /* square */
		"m0 -4.4l4.4 7.6h-8.8z",                         /* triangle */
		"m0 -4.8l4.8 4.8l-4.8 4.8l-4.8 -4.8z",           /* diamond */
		"m0 4.4l4.4 -7.6h-8.8z",                         /* triangle on its head */
		"m-1.4 -4.2h2.8v2.8h2.8v2.8h-2.8v2.8h-2.8v-2.8h-2.8v-2.8h2.8z", /* cross */
	};

	fprintf(f, "<path class=\"mark c%u\" d=\"M%.1f %.1f%s\"/>\n", slot % SLOTS, x, y,
		shapes[slot % ARRAY_SIZE(shapes)]);
}

static void write_curve(FILE *f, const struct chart *c, const struct chart_line *line)
{
	fprintf(f, "<path class=\"line c%u%s\" d=\"", line->slot % SLOTS,
		line->slot / SLOTS % 2 ? " dash" : "");
	for (size_t i = 0; i < line->count; i++)
		fprintf(f, "%c%.1f %.1f", i ? 'L' : 'M', place_x(c, line->dots[i].x),
			place_y(c, line->dots[i].y));
	fputs("\"/>\n", f);
}

static void write_marks(FILE *f, const struct chart *c, const struct chart_line *line)
{
	char x_text[HTML_NUMBER_LEN], y_text[HTML_NUMBER_LEN];

	for (size_t i = 0; i < line->count; i++) {
		const struct chart_dot *dot = &line->dots[i];
		double x = place_x(c, dot->x), y = place_y(c, dot->y);

		if (!dot->mark)
			continue;
		write_symbol(f, line->slot, x, y);
		fprintf(f, "<circle class=\"tip\" cx=\"%.1f\" cy=\"%.1f\" r=\"9\" data-tip=\"", x,
			y);
		html_printf(f, "%s, %s: %s", line->label, c->x_text(x_text, dot->x),
			    c->y_text(y_text, dot->y));
		fputs("\"/>\n", f);
	}
}

struct end {
	double x, y;
	const struct chart_line *line;
};

static int by_height(const void *x, const void *y)
{
	const struct end *a = x, *b = y;

	return (a->y > b->y) - (a->y < b->y);
}

/* Pushes letters apart that would stand on each other; their order stays. */
static void spread(struct end *ends, size_t n)
{
	const double top = TOP, bottom = HEIGHT - BOTTOM;

	for (unsigned round = 0; round < 64; round++) {
		for (size_t i = 1; i < n; i++) {
			double overlap = LINE_HEIGHT - (ends[i].y - ends[i - 1].y);

			if (overlap <= 0 || fabs(ends[i].x - ends[i - 1].x) > LINE_HEIGHT)
				continue;
			ends[i - 1].y -= overlap / 2;
			ends[i].y += overlap / 2;
		}
		for (size_t i = 0; i < n; i++)
			ends[i].y = fmin(fmax(ends[i].y, top), bottom);
	}
}

/* Each line's letter, where the line ends. */
static void write_letters(FILE *f, const struct chart *c)
{
	struct end ends[32];
	size_t n = 0;

	for (size_t i = 0; i < c->count && n < ARRAY_SIZE(ends); i++) {
		const struct chart_line *line = &c->lines[i];
		const struct chart_dot *last = &line->dots[line->count - 1];

		if (line->letter[0])
			ends[n++] = (struct end){place_x(c, last->x) + 8, place_y(c, last->y),
						 line};
	}
	qsort(ends, n, sizeof(ends[0]), by_height);
	spread(ends, n);
	for (size_t i = 0; i < n; i++) {
		char kind[32];

		snprintf(kind, sizeof(kind), "letter c%u", ends[i].line->slot % SLOTS);
		write_text(f, kind, ends[i].x, ends[i].y + 4.5, ends[i].line->letter);
	}
}

static void write_legend(FILE *f, const struct chart *c)
{
	fputs("<ul class=\"legend\">\n", f);
	for (size_t i = 0; i < c->count; i++) {
		const struct chart_line *line = &c->lines[i];

		fprintf(f,
			"<li><svg class=\"key\" viewBox=\"0 0 30 12\"><path class=\"line c%u%s\" "
			"d=\"M1 6L29 6\"/>",
			line->slot % SLOTS, line->slot / SLOTS % 2 ? " dash" : "");
		write_symbol(f, line->slot, 15, 6);
		fprintf(f, "</svg><span><b class=\"c%u\">", line->slot % SLOTS);
		html_text(f, line->letter);
		fputs(line->letter[0] ? "</b> " : "</b>", f);
		html_text(f, line->label);
		if (line->note[0]) {
			fputs(" <i>", f);
			html_text(f, line->note);
			fputs("</i>", f);
		}
		fputs("</span></li>\n", f);
	}
	fputs("</ul>\n", f);
}

void chart_write(FILE *f, const struct chart *c)
{
	open_plot(f, c->title, c->subject, HEIGHT);
	write_y_axis(f, c);
	write_x_axis(f, c);
	for (size_t i = 0; i < c->count; i++)
		write_curve(f, c, &c->lines[i]);
	for (size_t i = 0; i < c->count; i++)
		write_marks(f, c, &c->lines[i]);
	write_letters(f, c);
	fputs("</svg>\n", f);
	write_legend(f, c);
	close_plot(f, c->meaning);
}

/* ---- bars ---- */

static void write_bar(FILE *f, const struct chart_bars *c, const struct chart_row *row, double top)
{
	double x = 2, widths[2];

	write_text(f, "start label", 2, top + LINE_HEIGHT, row->label);
	for (unsigned i = 0; i < 2; i++) {
		widths[i] = share(&c->x, row->part[i]) * BAR_WIDTH;
		if (!c->parts[0] && i)
			break;
		fprintf(f,
			"<rect class=\"bar part%u\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			"height=\"%.1f\"/>\n",
			i, x, top + 19, widths[i], BAR_HEIGHT);
		x += widths[i];
	}
	write_text(f, "start", x + 5, top + 19 + BAR_HEIGHT - 2.5, row->value);
	fprintf(f,
		"<rect class=\"tip\" x=\"0\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" data-tip=\"",
		top, WIDTH, ROW_HEIGHT);
	html_text(f, row->tip);
	fputs("\"/>\n", f);
}

static void write_bars_axis(FILE *f, const struct chart_bars *c, double bottom)
{
	double free_from = 0;

	for (unsigned i = 0; i < c->x.ticks; i++) {
		double x = 2 + share(&c->x, c->x.tick[i]) * BAR_WIDTH;
		double width = text_width(c->x.text[i]);
		double left = x - width / 2 < 2 ? 2 : x - width / 2;

		write_rule(f, x, BAR_TOP, x, bottom + 4);
		if (left < free_from)
			continue;
		write_text(f, "start", left, bottom + 17, c->x.text[i]);
		free_from = left + width + 5;
	}
	write_text(f, "start", 2, bottom + 35, c->x.title);
}

void chart_bars_write(FILE *f, const struct chart_bars *c)
{
	double bottom = BAR_TOP + (double)c->count * ROW_HEIGHT;

	open_plot(f, c->title, c->subject, bottom + BOTTOM);
	write_bars_axis(f, c, bottom);
	for (size_t i = 0; i < c->count; i++)
		write_bar(f, c, &c->rows[i], BAR_TOP + (double)i * ROW_HEIGHT);
	fputs("</svg>\n", f);
	if (c->parts[0]) {
		fputs("<ul class=\"legend\">\n", f);
		for (unsigned i = 0; i < 2; i++) {
			fprintf(f,
				"<li><svg class=\"key\" viewBox=\"0 0 30 12\"><rect class=\"bar "
				"part%u\" x=\"1\" y=\"0\" width=\"28\" height=\"12\"/></svg><span>",
				i);
			html_text(f, c->parts[i]);
			fputs("</span></li>\n", f);
		}
		fputs("</ul>\n", f);
	}
	close_plot(f, c->meaning);
}
