/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/runner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/figures.h"
#include "bench/interrupt.h"
#include "bench/run.h"
#include "bench/target.h"
#include "bench/units.h"

static size_t combinations(const struct bench_options *o)
{
	return (size_t)o->rw.count * o->block_bytes.count * o->iodepth.count * o->completion.count;
}

/* Completion varies fastest: ways to complete are compared, too (--matrix). */
static struct bench_combination combination_at(const struct bench_options *o, size_t i)
{
	struct bench_combination c;

	c.completion = (enum bench_completion)o->completion.values[i % o->completion.count];
	i /= o->completion.count;
	c.iodepth = (unsigned)o->iodepth.values[i % o->iodepth.count];
	i /= o->iodepth.count;
	c.block_bytes = (uint32_t)o->block_bytes.values[i % o->block_bytes.count];
	i /= o->block_bytes.count;
	c.rw = (enum bench_rw)o->rw.values[i];
	return c;
}

int bench_runner_init(struct bench_runner *r, const struct bench_options *o, struct error *err)
{
	memset(r, 0, sizeof(*r));
	r->options = o;
	r->slots = combinations(o) * o->target_count;
	r->runs = calloc(r->slots * o->repeats + 1, sizeof(*r->runs));
	r->done = calloc(r->slots + 1, sizeof(*r->done));
	r->points = calloc(r->slots + 1, sizeof(*r->points));
	if (r->runs && r->done && r->points)
		return 0;
	bench_runner_fini(r);
	return error_set(err, -ENOMEM, "out of memory for the results");
}

void bench_runner_fini(struct bench_runner *r)
{
	for (size_t s = 0; r->runs && r->done && s < r->slots; s++) {
		for (unsigned i = 0; i < r->done[s]; i++)
			free(r->runs[s * r->options->repeats + i].latency);
	}
	for (size_t p = 0; p < r->point_count; p++)
		free(r->points[p].latency);
	free(r->runs);
	free(r->done);
	free(r->points);
}

static void describe(const struct bench_run_plan *p, char *buf, size_t buf_len)
{
	const struct bench_combination *c = &p->combination;
	char bs[32];

	units_size(c->block_bytes, bs, sizeof(bs));
	snprintf(buf, buf_len, "%.60s %s %s depth %u %s", p->target, bench_rw_names[c->rw], bs,
		 c->iodepth, bench_completion_names[c->completion]);
}

/* A run in which nothing was counted says nothing. */
static int run_slot(struct bench_runner *r, size_t slot, unsigned repeat,
		    struct bench_progress *progress, struct error *err)
{
	const struct bench_options *o = r->options;
	struct bench_run_plan plan = {
		.target = o->targets[slot % o->target_count],
		.options = o,
		.combination = combination_at(o, slot / o->target_count),
		.repeat = repeat,
		.progress = progress,
	};
	struct bench_run run;
	char label[160];
	int ret;

	describe(&plan, label, sizeof(label));
	progress_begin(progress, label);
	ret = bench_run(&plan, &run, err);
	r->errors += run.errors;
	if (run.requests || run.errors)
		r->runs[slot * o->repeats + r->done[slot]++] = run;
	else
		free(run.latency);
	return ret;
}

/* [first, last) differ in completion and target only. */
static int run_group(struct bench_runner *r, size_t first, size_t last,
		     struct bench_progress *progress, struct error *err)
{
	for (unsigned repeat = 0; repeat < r->options->repeats; repeat++) {
		for (size_t slot = first; slot < last && !interrupted(); slot++) {
			int ret = run_slot(r, slot, repeat, progress, err);

			if (ret < 0)
				return ret;
		}
	}
	return 0;
}

static int make_point(struct bench_runner *r, size_t slot, struct bench_point *p)
{
	const struct bench_options *o = r->options;
	struct bench_combination c = combination_at(o, slot / o->target_count);
	const struct bench_run *runs = &r->runs[slot * o->repeats];
	size_t base = slot - slot % o->target_count;

	p->target = o->targets[slot % o->target_count];
	p->params = (struct bench_params){
		.rw = bench_rw_names[c.rw],
		.completion = bench_completion_names[c.completion],
		.block_bytes = c.block_bytes,
		.iodepth = c.iodepth,
		.jobs = (unsigned)o->jobs,
		.rate = (double)o->rate,
	};
	p->repeats = r->done[slot];
	p->latency = calloc(1, sizeof(*p->latency));
	if (!p->latency)
		return -ENOMEM;
	bench_figures_median(runs, p->repeats, &p->figures);
	for (unsigned i = 0; i < p->repeats; i++)
		histogram_merge(p->latency, runs[i].latency);
	if (o->target_count > 1)
		p->has_ratio = bench_ratio(&r->runs[base * o->repeats], r->done[base], runs,
					   p->repeats, &p->ratio, &p->ratio_min, &p->ratio_max);
	return 0;
}

static int make_points(struct bench_runner *r, struct error *err)
{
	for (size_t slot = 0; slot < r->slots; slot++) {
		if (!r->done[slot])
			continue;
		if (make_point(r, slot, &r->points[r->point_count]) < 0)
			return error_set(err, -ENOMEM, "out of memory for the results");
		r->point_count++;
	}
	return 0;
}

int bench_runner_run(struct bench_runner *r, struct error *err)
{
	const struct bench_options *o = r->options;
	size_t group = (size_t)o->completion.count * o->target_count;
	struct bench_progress progress;
	int ret = 0, more;

	for (unsigned i = 0; i < o->target_count && ret == 0; i++)
		ret = bench_target_check(o->targets[i], o, err);
	progress_init(&progress, (unsigned)(r->slots * o->repeats));
	for (size_t slot = 0; slot < r->slots && ret == 0; slot += group)
		ret = run_group(r, slot, slot + group, &progress, err);
	progress_clear(&progress);
	more = make_points(r, ret < 0 ? NULL : err);
	return ret < 0 ? ret : more;
}
