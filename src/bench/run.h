/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run: a target is opened, its jobs run side by side, and what they did is added up.  With
 * --verify the target is then opened anew and everything that was written is read and checked.
 */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "base/error.h"
#include "bench/options.h"
#include "bench/progress.h"
#include "bench/result.h"

struct bench_run_plan {
	const char *target;
	const struct bench_options *options;
	struct bench_combination combination;
	unsigned repeat; /* the same for all targets: they see the same requests */
	struct bench_progress *progress;
};

/*
 * 0, or a negative errno with *err: it could not be opened, its server has gone, a block was
 * wrong.  Requests that failed are counted in out->errors, and tell about the first goes to the
 * log.  *out is good for what there was before the error; out->latency is the caller's (free).
 */
int bench_run(const struct bench_run_plan *plan, struct bench_run *out,
	      struct error *err) must_check;

#endif
