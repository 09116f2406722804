/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target before it is measured: can it do what is asked, and does it hold data?
 */
#ifndef BENCH_TARGET_H
#define BENCH_TARGET_H

#include "base/error.h"
#include "bench/options.h"
#include "ringside/driver.h"

/* Opens it with a queue a job.  0 and *out (ringside_close()), or a negative errno with *err. */
int bench_target_open(const char *target, const struct bench_options *o, unsigned iodepth,
		      struct ringside_device **out, struct ringside_info *info,
		      struct error *err) must_check;

/* The bytes that are used: --size, or all. */
uint64_t bench_target_bytes(const struct bench_options *o, const struct ringside_info *info);

/* All patterns and sizes are possible; and if they would destroy data, there is none, or it may
 * go.  Opens the target, and closes it. */
int bench_target_check(const char *target, const struct bench_options *o,
		       struct error *err) must_check;

#endif
