/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two kinds of plot as SVG inside a page: lines over an axis, and bars in rows.  What they are
 * given is data and titles; how it looks is decided here and in report_style.c.
 *
 * 400 units wide, so that a phone shows them almost as they are and text stays readable.
 */
#ifndef BENCH_CHART_H
#define BENCH_CHART_H

#include <stdio.h>

#include "base/compiler.h"
#include "bench/html.h"

#define CHART_LABEL_LEN 1024
#define CHART_TICKS_MAX 40

/* Where values are on an axis, and which of them are written.  Ticks are divided by unit. */
struct chart_axis {
	const char *title; /* with the unit */
	double min, max, unit;
	bool log;
	unsigned ticks;
	double tick[CHART_TICKS_MAX];
	char text[CHART_TICKS_MAX][HTML_NUMBER_LEN];
};

/* From 0 to something round above max. */
void chart_axis_linear(struct chart_axis *axis, const char *title, double max, double unit);

/* Logarithmic, from something round below min to something round above max. */
void chart_axis_log(struct chart_axis *axis, const char *title, double min, double max,
		    double unit);

/* A tick of its own.  No effect when there are too many. */
void chart_axis_tick(struct chart_axis *axis, double value, const char *text);

struct chart_dot {
	double x, y;
	bool mark; /* a symbol, which tells its value to who points at it */
};

struct chart_line {
	unsigned slot;  /* colour and symbol */
	char letter[4]; /* stands at the end of the line and in the legend */
	char label[CHART_LABEL_LEN];
	char note[128]; /* behind the label, in the legend; may be empty */
	struct chart_dot *dots;
	size_t count; /* at least 1 */
};

struct chart {
	const char *title, *meaning;
	char subject[CHART_LABEL_LEN]; /* what all lines have in common */
	struct chart_axis x, y;
	const char *(*x_text)(char buf[HTML_NUMBER_LEN], double v);
	const char *(*y_text)(char buf[HTML_NUMBER_LEN], double v);
	struct chart_line *lines;
	size_t count;
};

void chart_write(FILE *f, const struct chart *c);

struct chart_row {
	char label[CHART_LABEL_LEN]; /* above the bar: short */
	char tip[CHART_LABEL_LEN];
	char value[128]; /* behind the bar */
	double part[2];
};

struct chart_bars {
	const char *title, *meaning;
	char subject[CHART_LABEL_LEN];
	struct chart_axis x;
	const char *parts[2]; /* names for the legend; NULL: bars have one part */
	struct chart_row *rows;
	size_t count;
};

/* Characters for which there is room above a bar. */
#define CHART_ROW_CHARS 42

void chart_bars_write(FILE *f, const struct chart_bars *c);

#endif
