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
#define ROWS_MAX  12
#define OPEN_MAX  4 /* plots of a kind; the others are behind a click */
#define LABEL_MAX (CHART_LABEL_LEN - 1)

#define MB 1e6
#define GB 1e9

/* One of the plots into which a kind is cut. */
typedef int plot_fn(FILE *f, const struct report_item *items, size_t n);

static int write_plots(FILE *f, const struct report_item *items, size_t n, enum report_dim x,
		       unsigned most, plot_fn *plot)
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

static void name_subject(char *buf, const struct report_item *items, unsigned differs)
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

	name_subject(c.subject, items, differs);
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
	name_subject(c->subject, items, differs | 1u << x);
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
static int write_sweep(FILE *f, struct report_points *p, enum report_dim x, plot_fn *plot,
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
	err = write_plots(f, kept, n, x, LINES_MAX, plot);
	free(kept);
	return err;
}

/* ---- bars ---- */

/* The first `common` bytes of a target's name are left out; the letter says the rest. */
static void name_row(struct chart_row *row, const struct report_item *item, unsigned differs,
		     size_t common)
{
	struct bench_point point = *item->point;
	size_t used = 0;

	if (differs & (1u << REPORT_TARGET)) {
		used = (size_t)snprintf(row->label, sizeof(row->label), "%c %s",
					report_target_letter(item->target), common ? "…" : "");
		point.target += common;
	}
	report_label(row->label + used, sizeof(row->label) - used, &point,
		     differs ? differs : 1u << REPORT_TARGET,
		     CHART_ROW_CHARS - html_length(row->label));
}

/* What a kind of bars says of a point: the parts, and the texts behind and above the bar. */
typedef void row_fn(struct chart_row *row, const struct bench_point *p);

static int plot_bars(FILE *f, struct chart_bars *c, const struct report_item *items, size_t n,
		     row_fn *fill, const char *const titles[2])
{
	unsigned differs = report_points_varying(items, n);
	double max = 0, unit = 1;

	c->rows = calloc(n, sizeof(c->rows[0]));
	if (!c->rows)
		return -ENOMEM;
	c->count = n;
	name_subject(c->subject, items, differs);
	for (size_t i = 0; i < n; i++) {
		name_row(&c->rows[i], &items[i], differs, report_points_common(items, n));
		fill(&c->rows[i], items[i].point);
		max = fmax(max, c->rows[i].part[0] + c->rows[i].part[1]);
	}
	if (titles[1] && max >= 2000)
		unit = 1000;
	chart_axis_linear(&c->x, titles[unit > 1], max, unit);
	chart_bars_write(f, c);
	free(c->rows);
	return 0;
}

static void fill_throughput(struct chart_row *row, const struct bench_point *p)
{
	char iops[HTML_NUMBER_LEN], bytes[HTML_NUMBER_LEN];
	int used;

	row->part[0] = p->figures.iops;
	used = snprintf(row->value, sizeof(row->value), "%s/s", html_count(iops, p->figures.iops));
	if (p->has_ratio)
		snprintf(row->value + used, sizeof(row->value) - (size_t)used, ", × %.2f",
			 p->ratio);
	snprintf(row->tip, sizeof(row->tip), "%s requests a second, %s", iops,
		 html_bandwidth(bytes, p->figures.bytes_per_s));
}

static int plot_throughput(FILE *f, const struct report_item *items, size_t n)
{
	static const char *const titles[2] = {"requests a second", NULL};
	struct chart_bars c = {
		.title = "Throughput",
		.meaning = "Requests that were answered in a second; × is the ratio to the first "
			   "target, of runs that were neighbours in time.",
	};

	return plot_bars(f, &c, items, n, fill_throughput, titles);
}

static void fill_notifications(struct chart_row *row, const struct bench_point *p)
{
	char kicks[HTML_NUMBER_LEN], calls[HTML_NUMBER_LEN], entries[HTML_NUMBER_LEN];

	row->part[0] = p->figures.kicks_per_request;
	row->part[1] = p->figures.calls_per_request;
	snprintf(row->value, sizeof(row->value), "%s + %s", html_count(kicks, row->part[0]),
		 html_count(calls, row->part[1]));
	snprintf(row->tip, sizeof(row->tip), "%s kicks, %s calls, %s system calls a request", kicks,
		 calls, html_count(entries, p->figures.system_calls_per_request));
}

static int plot_notifications(FILE *f, const struct report_item *items, size_t n)
{
	static const char *const titles[2] = {"notifications a request", NULL};
	struct chart_bars c = {
		.title = "Notifications a request",
		.meaning = "A kick wakes the server and a call wakes the client; each costs system "
			   "calls and often a context switch, and at 0 nobody had to be woken.",
		.parts = {"kicks: client to server", "calls: server to client"},
	};

	return plot_bars(f, &c, items, n, fill_notifications, titles);
}

static void fill_cpu(struct chart_row *row, const struct bench_point *p)
{
	char client[HTML_NUMBER_LEN], server[HTML_NUMBER_LEN] = "?";

	row->part[0] = p->figures.client_cpu_ns;
	row->part[1] = p->figures.server_known ? p->figures.server_cpu_ns : 0;
	html_ns(client, row->part[0]);
	if (p->figures.server_known)
		html_ns(server, row->part[1]);
	snprintf(row->value, sizeof(row->value), "%s + %s", client, server);
	snprintf(row->tip, sizeof(row->tip), "client %s, server %s of processor time a request",
		 client, p->figures.server_known ? server : "not known");
}

static int plot_cpu(FILE *f, const struct report_item *items, size_t n)
{
	static const char *const titles[2] = {"processor time a request, ns",
					      "processor time a request, µs"};
	struct chart_bars c = {
		.title = "CPU a request",
		.meaning = "Processor time that one request costs both sides, with what they spend "
			   "looking while nothing comes; ? is a server whose process is not known.",
		.parts = {"client", "server"},
	};

	return plot_bars(f, &c, items, n, fill_cpu, titles);
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
	err = write_plots(f, p->items, p->count, REPORT_NO_DIM,
			  p->targets > 1 ? LINES_MAX / 2 : LINES_MAX, plot_latency);
	if (!err)
		err = write_sweep(f, p, REPORT_DEPTH, plot_depths, &sweeps);
	if (!err)
		err = write_sweep(f, p, REPORT_BLOCK, plot_blocks, &sweeps);
	report_points_sort(p, REPORT_NO_DIM);
	if (!err && !sweeps)
		err = write_plots(f, p->items, p->count, REPORT_NO_DIM, ROWS_MAX, plot_throughput);
	if (!err)
		err = write_plots(f, p->items, p->count, REPORT_NO_DIM, ROWS_MAX,
				  plot_notifications);
	if (!err)
		err = write_plots(f, p->items, p->count, REPORT_NO_DIM, ROWS_MAX, plot_cpu);
	fputs("</div>\n", f);
	return err;
}
