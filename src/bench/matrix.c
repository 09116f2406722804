/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/matrix.h"

#include <string.h>

#include "bench/grid.h"
#include "bench/units.h"

/* The point that differs from a in completion only. */
static const struct bench_point *polling(const struct bench_point *points, size_t n,
					 const struct bench_point *a)
{
	for (size_t i = 0; i < n; i++) {
		const struct bench_point *b = &points[i];

		if (!strcmp(b->params.completion, "poll") && b->target == a->target &&
		    !strcmp(b->params.rw, a->params.rw) &&
		    b->params.block_bytes == a->params.block_bytes)
			return b;
	}
	return NULL;
}

static void row(struct grid *g, const struct bench_point *a, const struct bench_point *b)
{
	char bs[32], sleep[32], poll[32];

	units_size(a->params.block_bytes, bs, sizeof(bs));
	units_count(a->figures.iops, sleep, sizeof(sleep));
	units_count(b->figures.iops, poll, sizeof(poll));
	grid_row(g);
	grid_cell(g, "%s", a->params.rw);
	grid_cell(g, "%s", bs);
	grid_cell(g, "%s", sleep);
	grid_cell(g, "%s", poll);
	if (a->figures.iops > 0)
		grid_cell(g, "%+.0f %%", (b->figures.iops / a->figures.iops - 1) * 100);
	else
		grid_cell(g, "-");
	grid_cell(g, "%.3g", a->figures.calls_per_request);
	grid_cell(g, "%.3g", b->figures.calls_per_request);
}

static int print_target(const struct bench_point *points, size_t n, const char *target, FILE *out)
{
	static const char *const head[] = {"rw",   "bs",          "sleep IOPS", "poll IOPS",
					   "gain", "sleep calls", "poll calls"};
	struct grid g = {.left = 1};
	int ret;

	grid_row(&g);
	for (unsigned i = 0; i < ARRAY_SIZE(head); i++)
		grid_cell(&g, "%s", head[i]);
	for (size_t i = 0; i < n; i++) {
		const struct bench_point *p = &points[i], *b = NULL;

		if (p->target == target && !strcmp(p->params.completion, "sleep"))
			b = polling(points, n, p);
		if (b)
			row(&g, p, b);
	}
	ret = grid_print(&g, out);
	grid_fini(&g);
	return ret;
}

int bench_matrix_print(const struct bench_point *points, size_t n, bool writes, FILE *out)
{
	int ret = 0;

	for (size_t i = 0; i < n && ret == 0; i++) {
		bool seen = false;

		for (size_t j = 0; j < i; j++)
			seen = seen || points[j].target == points[i].target;
		if (seen)
			continue;
		fprintf(out, "%s%s: %u job%s, depth %u; calls: a request\n\n", i ? "\n" : "",
			points[i].target, points[i].params.jobs,
			points[i].params.jobs == 1 ? "" : "s", points[i].params.iodepth);
		ret = print_target(points, n, points[i].target, out);
	}
	if (!writes)
		fputs("\nreads only: randwrite and write are run with --destroy-data\n", out);
	return ret;
}
