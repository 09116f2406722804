/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results for programs: an array with an object a point.
 */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include <stddef.h>
#include <stdio.h>

#include "bench/result.h"

/* floor may be NULL.  0, or -ENOMEM; what cannot be written is the stream's error. */
int bench_json_print(const struct bench_point *points, size_t n, const struct bench_floor *floor,
		     FILE *out);

#endif
