/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which plots a report has, and what is on each.
 */
#include "bench/report_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/chart.h"

#define LINES_MAX 8 /* in one plot, if they are of more than one combination */
#define OPEN_MAX  4 /* plots of a kind; the others are behind a click */
#define LABEL_MAX (CHART_LABEL_LEN - 1)

#define MB 1e6
#define GB 1e9

int report_write_cut(FILE *f, const struct report_item *items, size_t n, enum report_dim x,
		     unsigned most, report_plot_fn *plot)
{
	size_t written = 0;
	int err = 0;

	while (n && !err) {
		size_t len = report_points_plot(items, n, x, most);

		if (written++ == OPEN_MAX)
			fputs("</div>\n<details><summary>More of these plots</summary>\n"
			      "<div class=\"plots\">\n",
			      f);
		err = plot(f, items, len);
		items += len;
		n -= len;
	}
	if (written > OPEN_MAX)
		fputs("</div></details>\n<div class=\"plots\">\n", f);
	return err;
}

/* ---- what lines and rows are called ---- */

void report_name_subject(char *buf, const struct report_item *items, unsigned differs)
{
	unsigned mask = REPORT_ALL & ~differs;

	if (items[0].point->params.rate <= 0)
		mask &= ~(1u << REPORT_RATE); /* a closed loop is what one expects */
	report_label(buf, CHART_LABEL_LEN, items[0].point, mask, LABEL_MAX);
}

/* Are the lines one for each target?  Then a target keeps its colour and letter on all plots. */
static bool is_by_target(const struct report_item *items, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (items[i].group != items[0].group)
			return false;
	}
	return items[0].target != items[n - 1].target;
}

static void name_line(struct chart_line *line, size_t i, size_t lines, bool by_target,
		      const struct report_item *item, unsigned differs)
{
	char p50[HTML_NUMBER_LEN], p99[HTML_NUMBER_LEN];

	line->slot = by_target ? item->target : (unsigned)i;
	if (by_target)
		snprintf(line->letter, sizeof(line->letter), "%c",
			 report_target_letter(item->target));
	else if (lines > 1)
		snprintf(line->letter, sizeof(line->letter), "%u", (unsigned)(i + 1) % 100);
	report_label(line->label, sizeof(line->label), item->point,
		     differs ? differs : 1u << REPORT_TARGET, LABEL_MAX);
	snprintf(line->note, sizeof(line->note), "p50 %s, p99 %s",
		 html_ns(p50, item->point->figures.p50_ns),
		 html_ns(p99, item->point->figures.p99_ns));
}

/* ---- latency ---- */

/* Where the nines are: 50 % at 0.3, 90 % at 1, 99 % at 2. */
static double nines(double percent)
{
	return -log10(1 - percent / 100);
}

static const char *percentile_text(char buf[HTML_NUMBER_LEN], double at)
{
	snprintf(buf, HTML_NUMBER_LEN, "p%.6g", 100 * (1 - pow(10, -at)));
	return buf;
}

static const double percents[] = {50, 90, 99, 99.9, 99.99};

#define STEPS       12 /* of a curve, between two of them */
#define LATENCY_MAX (ARRAY_SIZE(percents) * STEPS)

/* As far as there are samples behind the percentile. */
static size_t latency_dots(struct chart_dot *dots, const struct bench_point *p)
{
	const struct histogram *h = p->latency;
	size_t n = 0;

	if (!h || !h->count) {
		dots[0] = (struct chart_dot){nines(50), fmax(p->figures.p50_ns, 1), true};
		return 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(percents); i++) {
		double from = nines(percents[i]);
		bool last = i + 1 == ARRAY_SIZE(percents);
		double step = last ? 0 : (nines(percents[i + 1]) - from) / STEPS;

		for (unsigned k = 0; k < (last ? 1 : STEPS); k++) {
			double at = from + k * step, behind = pow(10, -at);
			double ns;

			if (n && behind * (double)h->count < 1)
				return n;
			ns = (double)histogram_percentile_ns(h, 100 * (1 - behind));
			dots[n++] = (struct chart_dot){at, fmax(ns, 1), !k};
		}
	}
	return n;
}

static void latency_axes(struct chart *c)
{
	double min = INFINITY, max = 0;
	char text[HTML_NUMBER_LEN];

	for (size_t i = 0; i < c->count; i++) {
		for (size_t k = 0; k < c->lines[i].count; k++) {
			min = fmin(min, c->lines[i].dots[k].y);
			max = fmax(max, c->lines[i].dots[k].y);
		}
	}
	chart_axis_log(&c->y, "latency, µs (log scale)", min, max, 1000);
	c->x = (struct chart_axis){
		.title = "percentile of the requests, %", .min = nines(50), .max = nines(99.99)};
	for (size_t i = 0; i < ARRAY_SIZE(percents); i++) {
		snprintf(text, sizeof(text), "%.6g", percents[i]);
		chart_axis_tick(&c->x, nines(percents[i]), text);
	}
}

static int plot_latency(FILE *f, const struct report_item *items, size_t n)
{
	unsigned differs = report_points_varying(items, n);
	bool by_target = is_by_target(items, n);
	struct chart_line *lines = calloc(n, sizeof(lines[0]));
	struct chart_dot *dots = calloc(n * LATENCY_MAX, sizeof(dots[0]));
	struct chart c = {
		.title = "Latency",
		.meaning = "So many per cent of the requests took at most the time that the line "
			   "shows; where it climbs at the right is the tail that a guest feels.",
		.x_text = percentile_text,
		.y_text = html_ns,
		.lines = lines,
		.count = n,
	};
	int err = lines && dots ? 0 : -ENOMEM;

	report_name_subject(c.subject, items, differs);
	for (size_t i = 0; i < n && !err; i++) {
		name_line(&lines[i], i, n, by_target, &items[i], differs);
		lines[i].dots = &dots[i * LATENCY_MAX];
		lines[i].count = latency_dots(lines[i].dots, items[i].point);
	}
	if (!err) {
		latency_axes(&c);
		chart_write(f, &c);
	}
	free(lines);
	free(dots);
	return err;
}

/* ---- throughput over something ---- */

static const char *depth_text(char buf[HTML_NUMBER_LEN], double v)
{
	snprintf(buf, HTML_NUMBER_LEN, "depth %.0f", v);
	return buf;
}

static const char *iops_text(char buf[HTML_NUMBER_LEN], double v)
{
	char number[HTML_NUMBER_LEN];

	snprintf(buf, HTML_NUMBER_LEN, "%.20s/s", html_count(number, v));
	return buf;
}

/* From zero, but for what would then lie on the ground. */
static void throughput_axis(struct chart_axis *axis, double min, double max, bool bytes)
{
	static const char *const titles[][2] = {
		{"requests a second", "requests a second (log scale)"},
		{"MB a second", "MB a second (log scale)"},
		{"GB a second", "GB a second (log scale)"},
	};
	unsigned which = bytes ? (max < 2 * GB ? 1 : 2) : 0;
	double unit = which == 0 ? 1 : which == 1 ? MB : GB;

	if (min > 0 && max > 50 * min)
		chart_axis_log(axis, titles[which][1], min, max, unit);
	else
		chart_axis_linear(axis, titles[which][0], max, unit);
}

/* The values that were measured are the ticks, from the smallest to the largest. */
static void sweep_axis(struct chart_axis *axis, const char *title, const struct report_item *items,
		       size_t n, enum report_dim x)
{
	char text[HTML_NUMBER_LEN];
	double last = 0;

	*axis = (struct chart_axis){.title = title, .min = INFINITY, .log = true};
	for (size_t i = 0; i < n; i++) {
		axis->min = fmin(axis->min, report_point_value(items[i].point, x));
		axis->max = fmax(axis->max, report_point_value(items[i].point, x));
	}
	for (;;) {
		double next = INFINITY;

		for (size_t i = 0; i < n; i++) {
			double v = report_point_value(items[i].point, x);

			if (v > last && v < next)
				next = v;
		}
		if (isinf(next))
			return;
		chart_axis_tick(axis, next,
				x == REPORT_BLOCK ? html_bytes(text, next)
						  : html_count(text, next));
		last = next;
	}
}

/* Cuts the items into lines; returns how many. */
static size_t sweep_lines(struct chart_line *lines, struct chart_dot *dots,
			  const struct report_item *items, size_t n, enum report_dim x)
{
	size_t count = 0;

	for (size_t at = 0; at < n; count++) {
		size_t len = report_points_line(&items[at], n - at, x);

		lines[count].dots = &dots[at];
		lines[count].count = len;
		for (; len; len--, at++) {
			const struct bench_point *p = items[at].point;

			dots[at].x = report_point_value(p, x);
			dots[at].y = x == REPORT_BLOCK ? p->figures.bytes_per_s : p->figures.iops;
			dots[at].mark = true;
		}
	}
	return count;
}

static int plot_sweep(FILE *f, struct chart *c, const struct report_item *items, size_t n,
		      enum report_dim x, const char *x_title)
{
	unsigned differs = report_points_varying(items, n) & ~(1u << x);
	struct chart_line *lines = calloc(n, sizeof(lines[0]));
	struct chart_dot *dots = calloc(n, sizeof(dots[0]));
	double min = INFINITY, max = 0;
	int err = lines && dots ? 0 : -ENOMEM;

	if (err)
		goto out;
	c->lines = lines;
	c->count = sweep_lines(lines, dots, items, n, x);
	report_name_subject(c->subject, items, differs | 1u << x);
	for (size_t i = 0; i < c->count; i++) {
		name_line(&lines[i], i, c->count, is_by_target(items, n),
			  &items[lines[i].dots - dots], differs);
		lines[i].note[0] = '\0';
	}
	for (size_t i = 0; i < n; i++) {
		min = fmin(min, dots[i].y);
		max = fmax(max, dots[i].y);
	}
	sweep_axis(&c->x, x_title, items, n, x);
	throughput_axis(&c->y, min, max, x == REPORT_BLOCK);
	chart_write(f, c);
out:
	free(lines);
	free(dots);
	return err;
}

static int plot_depths(FILE *f, const struct report_item *items, size_t n)
{
	struct chart c = {
		.title = "Throughput over queue depth",
		.meaning =
			"Requests a second while each job keeps so many in flight; a line that no "
			"longer rises has met its limit, and more depth only adds latency.",
		.x_text = depth_text,
		.y_text = iops_text,
	};

	return plot_sweep(f, &c, items, n, REPORT_DEPTH, "requests in flight (queue depth)");
}

static int plot_blocks(FILE *f, const struct report_item *items, size_t n)
{
	struct chart c = {
		.title = "Throughput over block size",
		.meaning = "Bytes a second with requests of such a size; small ones pay for each "
			   "request, large ones for each byte.",
		.x_text = html_bytes,
		.y_text = html_bandwidth,
	};

	return plot_sweep(f, &c, items, n, REPORT_BLOCK, "bytes of a request (block size)");
}

/* Only lines that have something to go over.  *written: there were any. */
static int write_sweep(FILE *f, struct report_points *p, enum report_dim x, report_plot_fn *plot,
		       bool *written)
{
	struct report_item *kept = calloc(p->count, sizeof(kept[0]));
	size_t n = 0;
	int err;

	if (!kept)
		return -ENOMEM;
	report_points_sort(p, x);
	for (size_t at = 0, len; at < p->count; at += len) {
		len = report_points_line(&p->items[at], p->count - at, x);
		if (report_point_value(p->items[at].point, x) ==
		    report_point_value(p->items[at + len - 1].point, x))
			continue;
		memcpy(&kept[n], &p->items[at], len * sizeof(kept[0]));
		n += len;
	}
	*written |= n > 0;
	err = report_write_cut(f, kept, n, x, LINES_MAX, plot);
	free(kept);
	return err;
}

int report_write_plots(FILE *f, struct report_points *p)
{
	bool sweeps = false;
	int err;

	if (!p->count)
		return 0;
	fputs("<div class=\"plots\">\n", f);
	report_points_sort(p, REPORT_NO_DIM);
	/* Of several targets few combinations: what is compared are the targets. */
	err = report_write_cut(f, p->items, p->count, REPORT_NO_DIM,
			       p->targets > 1 ? LINES_MAX / 2 : LINES_MAX, plot_latency);
	if (!err)
		err = write_sweep(f, p, REPORT_DEPTH, plot_depths, &sweeps);
	if (!err)
		err = write_sweep(f, p, REPORT_BLOCK, plot_blocks, &sweeps);
	if (!err)
		err = report_write_bars(f, p, !sweeps);
	fputs("</div>\n", f);
	return err;
}
