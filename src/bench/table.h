/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table at the end: a row a point, and of the parameters only those that vary.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "bench/result.h"

/* floor may be NULL: then nothing is shown as its multiple.  0, or -ENOMEM. */
int bench_table_print(const struct bench_point *points, size_t n, const struct bench_floor *floor,
		      FILE *out);

void bench_floor_print(const struct bench_floor *floor, FILE *out);

#endif
