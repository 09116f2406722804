/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of nanoseconds with a relative error of at most 1/16: 16 linear steps in each power
 * of two.  Fixed size, no allocation.  One writer; readers in other threads see whole counters.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

#include "base/atomic.h"

#define HISTOGRAM_SUB_BITS 4
#define HISTOGRAM_BUCKETS  ((64 - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

struct histogram {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t min_ns; /* meaningless while count is 0 */
	uint64_t max_ns;
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t ns)
{
	unsigned msb;

	if (ns < (1u << HISTOGRAM_SUB_BITS))
		return (unsigned)ns;
	msb = 63u - (unsigned)__builtin_clzll(ns);
	return ((msb - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS) +
	       (unsigned)((ns >> (msb - HISTOGRAM_SUB_BITS)) & ((1u << HISTOGRAM_SUB_BITS) - 1));
}

/* n samples of the same value. */
static inline void histogram_add_n(struct histogram *h, uint64_t ns, uint32_t n)
{
	atomic_stat_add(&h->buckets[histogram_bucket(ns)], n);
	atomic_stat_add(&h->sum_ns, ns * n);
	if (!h->count || ns < h->min_ns)
		atomic_store_relaxed(&h->min_ns, ns); /* relaxed: a statistic */
	if (ns > h->max_ns)
		atomic_store_relaxed(&h->max_ns, ns); /* relaxed: a statistic */
	atomic_stat_add(&h->count, n);
}

static inline void histogram_add(struct histogram *h, uint64_t ns)
{
	histogram_add_n(h, ns, 1);
}

/* Lower edge of a bucket, in nanoseconds. */
uint64_t histogram_bucket_ns(unsigned bucket);

/* The value below which `percent` per cent of the samples lie (upper edge of its bucket). */
uint64_t histogram_percentile_ns(const struct histogram *h, double percent);

/* Adds what src has to dst. */
void histogram_merge(struct histogram *dst, const struct histogram *src);

#endif
