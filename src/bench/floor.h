/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this machine can do at all, with nothing of ours in the way: the unit that a result is
 * compared with.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include "base/compiler.h"
#include "bench/result.h"

/*
 * Takes about a quarter of a second.  Medians of several rounds.  0 or a negative errno:
 * -EOPNOTSUPP when the process may use one processor only.
 *
 * Pins the calling thread, and one of its own, to two cores for the time; afterwards the calling
 * thread may run where it could before.
 */
int bench_floor_measure(struct bench_floor *out) must_check;

/* The two processors, of those in the calling thread's mask, that the floor is measured on: of two
 * cores, where there are two.  0 or -EOPNOTSUPP. */
int bench_floor_cpus(int cpus[2]) must_check;

#endif
