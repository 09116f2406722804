/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of a report: every figure, and the floor.
 */
#include "bench/report_parts.h"

#include <string.h>

#include "bench/html.h"

static void cell(FILE *f, const char *text)
{
	fputs("<td>", f);
	html_text(f, text);
	fputs("</td>", f);
}

static void cell_count(FILE *f, double v)
{
	char buf[HTML_NUMBER_LEN];

	cell(f, html_count(buf, v));
}

static void cell_ns(FILE *f, double ns)
{
	char buf[HTML_NUMBER_LEN];

	cell(f, html_ns(buf, ns));
}

static void cell_bytes(FILE *f, double bytes)
{
	char buf[HTML_NUMBER_LEN];

	cell(f, html_bytes(buf, bytes));
}

static void cell_bandwidth(FILE *f, double bytes_per_s)
{
	char buf[HTML_NUMBER_LEN];

	cell(f, html_bandwidth(buf, bytes_per_s));
}

static void write_target(FILE *f, const struct report_points *p, const struct report_item *item)
{
	fputs("<th scope=\"row\">", f);
	if (p->targets > 1)
		fprintf(f, "<b>%c</b> ", report_target_letter(item->target));
	html_text(f, item->point->target);
	fputs("</th>", f);
}

static void write_params(FILE *f, const struct bench_point *p)
{
	char number[HTML_NUMBER_LEN];

	cell(f, p->params.rw);
	cell_bytes(f, p->params.block_bytes);
	cell_count(f, p->params.iodepth);
	cell_count(f, p->params.jobs);
	cell(f, p->params.completion);
	cell(f, p->params.rate > 0 ? html_count(number, p->params.rate) : "closed loop");
	cell_count(f, p->repeats);
}

static void write_ratio(FILE *f, const struct bench_point *p)
{
	char buf[3 * HTML_NUMBER_LEN] = "–";

	if (p->has_ratio)
		snprintf(buf, sizeof(buf), "%.2f (%.2f–%.2f)", html_finite(p->ratio),
			 html_finite(p->ratio_min), html_finite(p->ratio_max));
	cell(f, buf);
}

static void write_values(FILE *f, const struct bench_point *p)
{
	const struct bench_figures *v = &p->figures;

	cell_count(f, v->iops);
	write_ratio(f, p);
	cell_bandwidth(f, v->bytes_per_s);
	cell_ns(f, v->mean_ns);
	cell_ns(f, v->p50_ns);
	cell_ns(f, v->p99_ns);
	cell_ns(f, v->p999_ns);
	cell_ns(f, v->max_ns);
	cell_count(f, v->kicks_per_request);
	cell_count(f, v->calls_per_request);
	cell_count(f, v->system_calls_per_request);
	cell_ns(f, v->client_cpu_ns);
	if (v->server_known)
		cell_ns(f, v->server_cpu_ns);
	else
		cell(f, "–");
	cell_count(f, (double)v->errors);
}

static void open_table(FILE *f, const char *title, const char *const *columns, size_t n)
{
	fputs("<section>\n<h2>", f);
	html_text(f, title);
	fputs("</h2>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>", f);
	for (size_t i = 0; i < n; i++) {
		fputs("<th scope=\"col\">", f);
		html_text(f, columns[i]);
		fputs("</th>", f);
	}
	fputs("</tr></thead>\n<tbody>\n", f);
}

static void close_table(FILE *f)
{
	fputs("</tbody></table></div>\n", f);
}

void report_write_figures(FILE *f, struct report_points *p)
{
	static const char *const columns[] = {
		"target",
		"pattern",
		"block",
		"depth",
		"jobs",
		"completion",
		"rate",
		"repeats",
		"IOPS",
		"ratio",
		"bandwidth",
		"mean",
		"p50",
		"p99",
		"p99.9",
		"max",
		"kicks/req",
		"calls/req",
		"syscalls/req",
		"CPU client/req",
		"CPU server/req",
		"errors",
	};

	report_points_sort(p, REPORT_NO_DIM);
	open_table(f, "All figures", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < p->count; i++) {
		fputs("<tr>", f);
		write_target(f, p, &p->items[i]);
		write_params(f, p->items[i].point);
		write_values(f, p->items[i].point);
		fputs("</tr>\n", f);
	}
	close_table(f);
	fputs("<p class=\"meaning\">Of several runs the medians. ", f);
	if (p->targets > 1)
		fputs("The ratio is that of IOPS to the first target's, of runs that were "
		      "neighbours in time, with the smallest and the largest; on a noisy machine "
		      "it is the result.",
		      f);
	fputs("</p>\n</section>\n", f);
}

/* ---- the floor ---- */

static void cell_times(FILE *f, double v, double unit)
{
	char number[HTML_NUMBER_LEN], buf[HTML_NUMBER_LEN + 8];

	if (unit > 0)
		snprintf(buf, sizeof(buf), "× %s", html_count(number, v / unit));
	else
		snprintf(buf, sizeof(buf), "–");
	cell(f, buf);
}

static void write_floor_row(FILE *f, const char *what, double ns, const struct bench_floor *floor)
{
	fputs("<tr><th scope=\"row\">", f);
	html_text(f, what);
	fputs("</th>", f);
	cell_ns(f, ns);
	cell_times(f, ns, floor->cache_line_ns);
	fputs("</tr>\n", f);
}

void report_write_floor(FILE *f, struct report_points *p, const struct bench_floor *floor)
{
	static const char *const columns[] = {"the floor, and each p50", "time",
					      "in cache-line round trips"};
	char label[1024];
	unsigned differs;

	if (!floor)
		return;
	report_points_sort(p, REPORT_NO_DIM);
	differs = report_points_varying(p->items, p->count);
	open_table(f, "What this machine can do at all", columns, ARRAY_SIZE(columns));
	write_floor_row(f, "cache-line round trip between two cores", floor->cache_line_ns, floor);
	write_floor_row(f, "eventfd round trip between two threads that sleep", floor->eventfd_ns,
			floor);
	write_floor_row(f, "empty system call", floor->system_call_ns, floor);
	for (size_t i = 0; i < p->count; i++) {
		report_label(label, sizeof(label), p->items[i].point, differs | 1u << REPORT_TARGET,
			     sizeof(label) - 1);
		fputs("<tr><th scope=\"row\">", f);
		if (p->targets > 1)
			fprintf(f, "<b>%c</b> ", report_target_letter(p->items[i].target));
		html_text(f, label);
		fputs("</th>", f);
		cell_ns(f, p->items[i].point->figures.p50_ns);
		cell_times(f, p->items[i].point->figures.p50_ns, floor->cache_line_ns);
		fputs("</tr>\n", f);
	}
	close_table(f);
	fprintf(f,
		"<p class=\"meaning\">Measured on processors %d and %d. A request that two polling "
		"sides hand over in memory cannot cost less than a few cache-line round trips; one "
		"that wakes both, not less than an eventfd round trip.</p>\n</section>\n",
		floor->cpus[0], floor->cpus[1]);
}
