/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All runs of a command: each combination, its repeats, and the targets in turn, so that what is
 * compared are neighbours in time.
 */
#ifndef BENCH_RUNNER_H
#define BENCH_RUNNER_H

#include <stddef.h>

#include "base/error.h"
#include "bench/options.h"
#include "bench/result.h"

struct bench_runner {
	const struct bench_options *options;
	/* By rw, block size, depth, completion, and then target. */
	size_t slots;
	struct bench_run *runs; /* repeats of each slot */
	unsigned *done;         /* runs of each slot */
	/* What came out: of the slots that ran at all, in that order. */
	struct bench_point *points;
	size_t point_count;
	uint64_t errors; /* requests that failed */
};

/* 0, or -ENOMEM with *err. */
int bench_runner_init(struct bench_runner *r, const struct bench_options *o,
		      struct error *err) must_check;
void bench_runner_fini(struct bench_runner *r);

/* Looks at all targets, then runs.  0 (interrupted, too), or a negative errno with *err; the points
 * are set either way. */
int bench_runner_run(struct bench_runner *r, struct error *err) must_check;

#endif
