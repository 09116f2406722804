/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/run.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench/crew.h"
#include "bench/interrupt.h"
#include "bench/target.h"

#define RAMP_MOST_NS UINT64_C(200000000)
#define PAGE_BYTES   4096u

/* More blocks than this are not remembered: 5 bytes each. */
#define VERIFY_MOST_BLOCKS (UINT64_C(1) << 28)

struct run {
	const struct bench_run_plan *plan;
	struct ringside_device *dev;
	struct ringside_info info;
	struct crew crew;
	struct verify_region *regions; /* one a job; NULL: no --verify */
	uint64_t seed;
};

/* ---- before ---- */

static int init_regions(struct run *r, struct error *err)
{
	const struct bench_run_plan *p = r->plan;
	unsigned jobs = (unsigned)p->options->jobs;
	uint64_t blocks = bench_target_bytes(p->options, &r->info) / p->combination.block_bytes;
	struct bench_random random;
	uint64_t run;

	if (blocks > VERIFY_MOST_BLOCKS)
		return error_set(err, -EINVAL,
				 "--verify of %" PRIu64
				 " blocks needs too much memory: give --size",
				 blocks);
	/* What an earlier run with the same seed has left is foreign. */
	bench_random_init(&random, r->seed ^ (uint64_t)getpid() << 32, clock_now_ns());
	run = bench_random_next(&random);
	r->regions = calloc(jobs, sizeof(*r->regions));
	for (unsigned i = 0; i < jobs; i++) {
		uint64_t part = blocks / jobs;

		if (!r->regions || verify_region_init(&r->regions[i], run, part * i, part,
						      p->combination.block_bytes) < 0)
			return error_set(err, -ENOMEM, "out of memory for --verify: give --size");
	}
	return 0;
}

static void fini_regions(struct run *r)
{
	for (unsigned i = 0; r->regions && i < r->plan->options->jobs; i++)
		verify_region_fini(&r->regions[i]);
	free(r->regions);
}

/* What --count gives job i of n. */
static uint64_t job_count(const struct bench_options *o, unsigned i)
{
	if (!o->count)
		return UINT64_MAX;
	return o->count / o->jobs + (i < o->count % o->jobs);
}

static void init_job(struct run *r, unsigned i, struct job *j)
{
	const struct bench_combination *c = &r->plan->combination;
	const struct bench_options *o = r->plan->options;
	uint64_t blocks = bench_target_bytes(o, &r->info) / c->block_bytes;

	j->queue = ringside_queue(r->dev, i);
	j->kind = &bench_rw_kinds[c->rw];
	j->completion = c->completion;
	j->block_bytes = c->block_bytes;
	j->batch = (unsigned)o->batch;
	j->count = job_count(o, i);
	j->open_loop = o->rate;
	j->verify = r->regions ? &r->regions[i] : NULL;
	bench_pattern_init(&j->pattern, blocks, j->kind->random, r->regions, i, (unsigned)o->jobs);
	bench_random_init(&j->pattern.random, r->seed, i);
	j->pattern.read_percent = (unsigned)o->rwmix;
	if (o->rate)
		bench_arrivals_init(&j->arrivals, (double)o->rate / (double)o->jobs, r->seed, i);
}

/* Buffers begin on pages, as a guest's do, and all were touched. */
static int init_memory(struct run *r, void **memory, size_t *stride, struct error *err)
{
	const struct bench_combination *c = &r->plan->combination;
	const struct bench_rw_kind *k = &bench_rw_kinds[c->rw];
	struct ringside_error why = {""};
	size_t len;
	int ret;

	*memory = NULL;
	*stride = ((size_t)c->block_bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
	if (k->flush || k->discard)
		return 0;
	len = *stride * c->iodepth * (size_t)r->plan->options->jobs;
	ret = ringside_memory_alloc(r->dev, len, memory, &why);
	if (ret < 0)
		return error_set(err, ret, "target '%.200s': %zu bytes of memory: %.200s",
				 r->plan->target, len, why.text);
	memset(*memory, 0x5a, len);
	return 0;
}

/* A crew of jobs for the open device. */
static int hire(struct run *r, struct error *err)
{
	const struct bench_options *o = r->plan->options;
	unsigned iodepth = r->plan->combination.iodepth;
	void *memory;
	size_t stride;
	int ret;

	ret = init_memory(r, &memory, &stride, err);
	if (ret == 0)
		ret = crew_init(&r->crew, (unsigned)o->jobs, err);
	for (unsigned i = 0; i < o->jobs && ret == 0; i++) {
		char *part = memory ? (char *)memory + i * iodepth * stride : NULL;

		ret = job_init(&r->crew.jobs[i], iodepth, part, stride);
		if (ret < 0)
			return error_set(err, ret, "out of memory for %u requests", iodepth);
		init_job(r, i, &r->crew.jobs[i]);
		r->crew.cpus[i] = bench_options_cpu(o, i);
	}
	return ret;
}

/* ---- after ---- */

static const char *broken_text(int broken)
{
	switch (broken) {
	case -ENOTCONN:
		return "its server has gone";
	case -EPROTO:
		return "its server broke the rules of the ring";
	case -ETIMEDOUT:
		return "no request completes any more: given up";
	default:
		return strerror(-broken);
	}
}

/* The first thing that ended the run before its time. */
static int check_jobs(const struct run *r, struct error *err)
{
	const char *target = r->plan->target;

	for (unsigned i = 0; i < r->crew.count; i++) {
		const struct job *j = &r->crew.jobs[i];
		char text[256];

		if (j->broken)
			return error_set(err, j->broken, "target '%.200s': %s", target,
					 broken_text(j->broken));
		if (j->fault.kind == VERIFY_GOOD)
			continue;
		verify_fault_text(&j->fault, text, sizeof(text));
		return error_set(err, -EILSEQ, "target '%.200s': %s", target, text);
	}
	return 0;
}

static void tell_errors(const struct run *r, const struct job *j, uint64_t errors)
{
	progress_clear(r->plan->progress);
	log_error("target '%.200s': %" PRIu64 " request%s failed, the first at byte %" PRIu64
		  ": %s",
		  r->plan->target, errors, errors == 1 ? "" : "s", j->first_error_bytes,
		  strerror(-j->first_error));
}

static void add_errors(const struct run *r, struct bench_run *out)
{
	const struct job *first = NULL;
	bool broken = false;
	uint64_t errors = 0;

	for (unsigned i = 0; i < r->crew.count; i++) {
		const struct job *j = &r->crew.jobs[i];

		errors += j->errors;
		broken |= j->broken != 0;
		if (j->errors && !first)
			first = j;
	}
	out->errors += errors;
	/* When the server has gone that is said already, by whichever job saw it first. */
	if (first && !broken)
		tell_errors(r, first, errors);
}

static void add_up(const struct run *r, struct bench_run *out)
{
	uint64_t begin_ns = UINT64_MAX, end_ns = 0;

	for (unsigned i = 0; i < r->crew.count; i++) {
		const struct job *j = &r->crew.jobs[i];

		if (!j->counts.requests)
			continue;
		begin_ns = MIN(begin_ns, j->counts.begin_ns);
		end_ns = MAX(end_ns, j->counts.end_ns);
		out->requests += j->counts.requests;
		out->bytes += j->counts.bytes;
		out->kicks += j->counts.kicks;
		out->calls += j->counts.calls;
		out->system_calls += j->counts.system_calls;
		histogram_merge(out->latency, j->latency);
	}
	out->seconds = end_ns > begin_ns ? (double)(end_ns - begin_ns) / 1e9 : 0;
	out->client_cpu_ns = r->crew.after.client_ns - r->crew.before.client_ns;
	out->server_known = r->crew.before.server_known && r->crew.after.server_known;
	if (out->server_known)
		out->server_cpu_ns = r->crew.after.server_ns - r->crew.before.server_ns;
}

/* ---- the run ---- */

static int measure(struct run *r, struct bench_run *out, struct error *err)
{
	const struct bench_options *o = r->plan->options;
	uint64_t runtime_ns = o->count ? 0 : o->runtime_ns;
	int ret = hire(r, err);

	if (ret == 0)
		ret = crew_work(&r->crew, MIN(runtime_ns / 10, RAMP_MOST_NS), runtime_ns,
				r->info.server_pid, r->plan->progress, err);
	if (ret == 0) {
		add_up(r, out);
		add_errors(r, out);
		ret = check_jobs(r, err);
	}
	crew_fini(&r->crew);
	return ret;
}

/* Everything that is known is read once more, in order. */
static int check_all(struct run *r, struct bench_run *out, struct error *err)
{
	int ret = hire(r, err);

	for (unsigned i = 0; i < r->crew.count && ret == 0; i++) {
		struct job *j = &r->crew.jobs[i];

		j->check_only = true;
		j->open_loop = false;
		j->count = UINT64_MAX;
	}
	if (ret == 0)
		ret = crew_work(&r->crew, 0, 0, 0, r->plan->progress, err);
	if (ret == 0) {
		add_errors(r, out);
		ret = check_jobs(r, err);
	}
	crew_fini(&r->crew);
	return ret;
}

static int open_device(struct run *r, struct error *err)
{
	return bench_target_open(r->plan->target, r->plan->options, r->plan->combination.iodepth,
				 &r->dev, &r->info, err);
}

static void close_device(struct run *r)
{
	ringside_close(r->dev);
	r->dev = NULL;
}

/* A disk in our own memory goes when it is closed. */
static bool keeps_data(const char *target)
{
	return strncmp(target, "file:", 5) || !strstr(target, "engine=memory");
}

static int verify_all(struct run *r, struct bench_run *out, struct error *err)
{
	int ret = 0;

	if (interrupted()) {
		progress_clear(r->plan->progress);
		log_warn("interrupted: what was written is not read again");
		return 0;
	}
	if (keeps_data(r->plan->target)) {
		close_device(r);
		ret = open_device(r, err);
	}
	return ret < 0 ? ret : check_all(r, out, err);
}

int bench_run(const struct bench_run_plan *plan, struct bench_run *out, struct error *err)
{
	struct run r = {.plan = plan, .seed = plan->options->seed + plan->repeat};
	int ret;

	memset(out, 0, sizeof(*out));
	out->latency = calloc(1, sizeof(*out->latency));
	if (!out->latency)
		return error_set(err, -ENOMEM, "out of memory");
	ret = open_device(&r, err);
	if (ret == 0 && plan->options->verify)
		ret = init_regions(&r, err);
	if (ret == 0)
		ret = measure(&r, out, err);
	if (ret == 0 && plan->options->verify)
		ret = verify_all(&r, out, err);
	close_device(&r);
	fini_regions(&r);
	return ret;
}
