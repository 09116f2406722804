/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plots that have a bar for each point.
 */
#include "bench/report_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "bench/chart.h"

#define ROWS_MAX 12 /* in one plot */

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
	report_name_subject(c->subject, items, differs);
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

int report_write_bars(FILE *f, struct report_points *p, bool throughput)
{
	report_plot_fn *const kinds[] = {plot_throughput, plot_notifications, plot_cpu};
	int err = 0;

	report_points_sort(p, REPORT_NO_DIM);
	for (size_t i = throughput ? 0 : 1; i < ARRAY_SIZE(kinds) && !err; i++)
		err = report_write_cut(f, p->items, p->count, REPORT_NO_DIM, ROWS_MAX, kinds[i]);
	return err;
}
