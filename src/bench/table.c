/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/table.h"

#include <string.h>

#include "bench/grid.h"
#include "bench/units.h"

/* What the rows have, and so the columns. */
struct shape {
	bool targets, rw, bs, iodepth, completion;
	bool server, ratios, errors;
	const struct bench_floor *floor;
};

static void find_shape(const struct bench_point *points, size_t n, struct shape *s)
{
	for (size_t i = 0; i < n; i++) {
		const struct bench_params *a = &points[0].params, *b = &points[i].params;

		s->targets |= points[i].target != points[0].target;
		s->rw |= strcmp(a->rw, b->rw) != 0;
		s->completion |= strcmp(a->completion, b->completion) != 0;
		s->bs |= a->block_bytes != b->block_bytes;
		s->iodepth |= a->iodepth != b->iodepth;
		s->server |= points[i].figures.server_known;
		s->ratios |= points[i].has_ratio;
		s->errors |= points[i].figures.errors > 0;
	}
}

static void head(struct grid *g, const struct shape *s)
{
	static const char *const figures[] = {"IOPS",   "bandwidth", "mean",  "p50",
					      "p99",    "p99.9",     "max",   "client",
					      "server", "kicks",     "calls", "syscalls"};

	grid_row(g);
	if (s->targets)
		grid_cell(g, "target");
	if (s->rw)
		grid_cell(g, "rw");
	if (s->bs)
		grid_cell(g, "bs");
	if (s->iodepth)
		grid_cell(g, "depth");
	if (s->completion)
		grid_cell(g, "completion");
	for (unsigned i = 0; i < ARRAY_SIZE(figures); i++)
		grid_cell(g, "%s", figures[i]);
	if (s->floor) {
		grid_cell(g, "mean/line");
		grid_cell(g, "requests/line");
	}
	if (s->errors)
		grid_cell(g, "errors");
	if (s->ratios) {
		grid_cell(g, "ratio");
		grid_cell(g, "(least - most)");
	}
}

static unsigned target_number(const struct bench_point *points, size_t i)
{
	const char *seen[256];
	unsigned n = 0;

	for (size_t j = 0; j <= i; j++) {
		unsigned k = 0;

		while (k < n && seen[k] != points[j].target)
			k++;
		if (j == i)
			return k + 1;
		if (k == n && n < ARRAY_SIZE(seen))
			seen[n++] = points[j].target;
	}
	return 0;
}

static void params(struct grid *g, const struct shape *s, const struct bench_point *points,
		   size_t i)
{
	const struct bench_params *p = &points[i].params;
	char buf[32];

	if (s->targets)
		grid_cell(g, "%u", target_number(points, i));
	if (s->rw)
		grid_cell(g, "%s", p->rw);
	units_size(p->block_bytes, buf, sizeof(buf));
	if (s->bs)
		grid_cell(g, "%s", buf);
	if (s->iodepth)
		grid_cell(g, "%u", p->iodepth);
	if (s->completion)
		grid_cell(g, "%s", p->completion);
}

static void figures(struct grid *g, const struct bench_figures *f)
{
	const double times[] = {f->mean_ns, f->p50_ns, f->p99_ns,
				f->p999_ns, f->max_ns, f->client_cpu_ns};
	char buf[32];

	units_count(f->iops, buf, sizeof(buf));
	grid_cell(g, "%s", buf);
	units_bandwidth(f->bytes_per_s, buf, sizeof(buf));
	grid_cell(g, "%s", buf);
	for (unsigned i = 0; i < ARRAY_SIZE(times); i++) {
		units_time(times[i], buf, sizeof(buf));
		grid_cell(g, "%s", buf);
	}
	units_time(f->server_cpu_ns, buf, sizeof(buf));
	grid_cell(g, "%s", f->server_known ? buf : "-");
	grid_cell(g, "%.3g", f->kicks_per_request);
	grid_cell(g, "%.3g", f->calls_per_request);
	grid_cell(g, "%.3g", f->system_calls_per_request);
}

static void row(struct grid *g, const struct shape *s, const struct bench_point *points, size_t i)
{
	const struct bench_point *p = &points[i];

	grid_row(g);
	params(g, s, points, i);
	figures(g, &p->figures);
	if (s->floor) {
		grid_cell(g, "%.1f", p->figures.mean_ns / s->floor->cache_line_ns);
		grid_cell(g, "%.3g", p->figures.iops * s->floor->cache_line_ns / 1e9);
	}
	if (s->errors)
		grid_cell(g, "%llu", (unsigned long long)p->figures.errors);
	if (s->ratios && p->has_ratio) {
		grid_cell(g, "%.3f", p->ratio);
		grid_cell(g, "(%.3f - %.3f)", p->ratio_min, p->ratio_max);
	}
}

/* What is the same in all rows, once. */
static void constant(const struct shape *s, const struct bench_point *p, FILE *out)
{
	char bs[32];

	units_size(p->params.block_bytes, bs, sizeof(bs));
	if (!s->targets)
		fprintf(out, "%s: ", p->target);
	if (!s->rw)
		fprintf(out, "%s, ", p->params.rw);
	if (!s->bs)
		fprintf(out, "%s, ", bs);
	if (!s->iodepth)
		fprintf(out, "depth %u, ", p->params.iodepth);
	if (!s->completion)
		fprintf(out, "%s, ", p->params.completion);
	fprintf(out, "%u job%s, ", p->params.jobs, p->params.jobs == 1 ? "" : "s");
	if (p->params.rate > 0)
		fprintf(out, "open loop at %.0f a second, ", p->params.rate);
	fprintf(out, "%u run%s\n", p->repeats, p->repeats == 1 ? "" : "s");
}

static void legend(const struct bench_point *points, size_t n, FILE *out)
{
	unsigned told = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned number = target_number(points, i);

		if (number > told)
			fprintf(out, "target %u: %s\n", told = number, points[i].target);
	}
}

int bench_table_print(const struct bench_point *points, size_t n, const struct bench_floor *floor,
		      FILE *out)
{
	struct shape s = {.floor = floor && floor->cache_line_ns > 0 ? floor : NULL};
	struct grid g = {0};
	int ret;

	if (!n)
		return 0;
	find_shape(points, n, &s);
	if (s.targets)
		legend(points, n, out);
	constant(&s, &points[0], out);
	fputs("client, server: CPU time a request; kicks, calls, syscalls: a request", out);
	fputs(s.ratios ? "; ratio: IOPS to target 1's\n\n" : "\n\n", out);
	head(&g, &s);
	for (size_t i = 0; i < n; i++)
		row(&g, &s, points, i);
	ret = grid_print(&g, out);
	grid_fini(&g);
	return ret;
}

void bench_floor_print(const struct bench_floor *floor, FILE *out)
{
	fprintf(out,
		"floor: cache line %.1f ns (round trip between cpus %d and %d), eventfd %.2f us "
		"(round trip), system call %.0f ns\n",
		floor->cache_line_ns, floor->cpus[0], floor->cpus[1], floor->eventfd_ns / 1000,
		floor->system_call_ns);
}
