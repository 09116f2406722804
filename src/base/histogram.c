/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

#include "base/compiler.h"

uint64_t histogram_bucket_ns(unsigned bucket)
{
	unsigned group = bucket >> HISTOGRAM_SUB_BITS;
	uint64_t sub = bucket & ((1u << HISTOGRAM_SUB_BITS) - 1);

	if (!group)
		return sub;
	return ((1ull << HISTOGRAM_SUB_BITS) + sub) << (group - 1);
}

uint64_t histogram_percentile_ns(const struct histogram *h, double percent)
{
	uint64_t count = atomic_load_relaxed(&h->count); /* relaxed: a statistic */
	uint64_t seen = 0, want = (uint64_t)((double)count * percent / 100.0);

	if (!count)
		return 0;
	if (want >= count)
		want = count - 1;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += atomic_load_relaxed(&h->buckets[i]); /* relaxed: a statistic */
		if (seen > want)
			return MIN(histogram_bucket_ns(i + 1) - 1,
				   atomic_load_relaxed(&h->max_ns)); /* relaxed: a statistic */
	}
	return atomic_load_relaxed(&h->max_ns); /* relaxed: a statistic */
}

void histogram_merge(struct histogram *dst, const struct histogram *src)
{
	/* relaxed throughout: statistics; a reader may be one sample behind */
	uint64_t count = atomic_load_relaxed(&src->count);

	if (!count)
		return;
	if (!dst->count || atomic_load_relaxed(&src->min_ns) < dst->min_ns)
		dst->min_ns = atomic_load_relaxed(&src->min_ns);
	dst->max_ns = MAX(dst->max_ns, atomic_load_relaxed(&src->max_ns));
	dst->count += count;
	dst->sum_ns += atomic_load_relaxed(&src->sum_ns);
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		dst->buckets[i] += atomic_load_relaxed(&src->buckets[i]);
}
