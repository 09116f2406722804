/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of --matrix: what polling for completions gains over sleeping.
 */
#ifndef BENCH_MATRIX_H
#define BENCH_MATRIX_H

#include <stddef.h>
#include <stdio.h>

#include "bench/result.h"

/* The points come in pairs, sleep and poll, of each target.  0, or -ENOMEM. */
int bench_matrix_print(const struct bench_point *points, size_t n, bool writes, FILE *out);

#endif
