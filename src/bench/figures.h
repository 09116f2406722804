/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From runs to figures, medians and ratios.  Pure.
 */
#ifndef BENCH_FIGURES_H
#define BENCH_FIGURES_H

#include <stddef.h>

#include "bench/result.h"

/* The median of v[0..n), which is put in order; of an even number, the middle of the two. */
double bench_median(double *v, size_t n);

void bench_figures_of_run(const struct bench_run *run, struct bench_figures *out);

/* Each figure's median over n runs, of which errors are summed.  n >= 1. */
void bench_figures_median(const struct bench_run *runs, size_t n, struct bench_figures *out);

/*
 * Pair by pair IOPS of `runs` over those of `base`: neighbours in time have the same noise.  Sets
 * *median, *min and *max; false when no pair has a ratio.
 */
bool bench_ratio(const struct bench_run *base, size_t base_n, const struct bench_run *runs,
		 size_t n, double *median, double *min, double *max);

#endif
