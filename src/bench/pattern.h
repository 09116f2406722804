/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the next request of a job goes, and when: seeded, so that a run can be had again.  Pure;
 * the job owns the structs.
 */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

/* ---- random numbers: xorshift64* ---- */

struct bench_random {
	uint64_t state; /* never 0 */
};

/* Seeds that differ in one bit, and streams that do, give numbers that have nothing in common. */
void bench_random_init(struct bench_random *r, uint64_t seed, uint64_t stream);

static inline uint64_t bench_random_next(struct bench_random *r)
{
	uint64_t x = r->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	r->state = x;
	return x * 0x2545f4914f6cdd1dull;
}

/* In [0, n): the upper half of a product, which costs no division. */
static inline uint64_t bench_random_below(struct bench_random *r, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)bench_random_next(r) * n) >> 64);
}

/* ---- places ---- */

struct bench_pattern {
	struct bench_random random;
	uint64_t first; /* blocks [first, first + blocks) of the target */
	uint64_t blocks;
	uint64_t next; /* sequential: counted from first */
	bool is_random;
	unsigned read_percent;
};

/*
 * Job `job` of `jobs` in the first `blocks` blocks of the target.  Sequential jobs have a part of
 * it each, and so have all jobs when `apart`; else random jobs share the whole.  blocks >= jobs.
 */
void bench_pattern_init(struct bench_pattern *p, uint64_t blocks, bool is_random, bool apart,
			unsigned job, unsigned jobs);

/* The next block, as a number on the target. */
static inline uint64_t bench_pattern_next(struct bench_pattern *p)
{
	uint64_t block;

	if (p->is_random)
		return p->first + bench_random_below(&p->random, p->blocks);
	block = p->next;
	p->next = block + 1 == p->blocks ? 0 : block + 1;
	return p->first + block;
}

/* Is the next one a read, of a mix? */
static inline bool bench_pattern_is_read(struct bench_pattern *p)
{
	return bench_random_below(&p->random, 100) < p->read_percent;
}

/* ---- times: an open loop, whose requests come whether or not the last ones are done ---- */

struct bench_arrivals {
	struct bench_random random;
	double mean_gap_ns;
	double next_ns; /* since the start; a double holds a year of nanoseconds to 4 ns */
	uint64_t start_ns;
};

/* A job's part of the rate.  Exponential gaps: what many clients together look like. */
void bench_arrivals_init(struct bench_arrivals *a, double rate_per_s, uint64_t seed, unsigned job);

void bench_arrivals_start(struct bench_arrivals *a, uint64_t start_ns);

/* When the next one is due. */
static inline uint64_t bench_arrivals_due_ns(const struct bench_arrivals *a)
{
	return a->start_ns + (uint64_t)a->next_ns;
}

/* It has been taken; draws the gap behind it. */
void bench_arrivals_take(struct bench_arrivals *a);

#endif
