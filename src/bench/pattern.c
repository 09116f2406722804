/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pattern.h"

#include <math.h>

#include "base/compiler.h"

/* The finaliser of splitmix64. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

void bench_random_init(struct bench_random *r, uint64_t seed, uint64_t stream)
{
	r->state = mix(mix(seed + 0x9e3779b97f4a7c15ull) + (stream + 1) * 0x9e3779b97f4a7c15ull);
	if (!r->state)
		r->state = 1;
}

void bench_pattern_init(struct bench_pattern *p, uint64_t blocks, bool is_random, bool apart,
			unsigned job, unsigned jobs)
{
	ASSERT(jobs && job < jobs && blocks >= jobs);
	p->is_random = is_random;
	p->next = 0;
	p->first = 0;
	p->blocks = blocks;
	if (apart || !is_random) {
		p->blocks = blocks / jobs;
		p->first = p->blocks * job;
	}
}

static double gap_ns(struct bench_arrivals *a)
{
	/* In (0, 1]: the logarithm is finite. */
	double u = ((double)(bench_random_next(&a->random) >> 11) + 1.0) / 9007199254740992.0;

	return -log(u) * a->mean_gap_ns;
}

void bench_arrivals_init(struct bench_arrivals *a, double rate_per_s, uint64_t seed, unsigned job)
{
	bench_random_init(&a->random, seed, (uint64_t)job + 0x10000);
	a->mean_gap_ns = 1e9 / rate_per_s;
	a->next_ns = gap_ns(a);
	a->start_ns = 0;
}

void bench_arrivals_start(struct bench_arrivals *a, uint64_t start_ns)
{
	a->start_ns = start_ns;
}

void bench_arrivals_take(struct bench_arrivals *a)
{
	a->next_ns += gap_ns(a);
}
