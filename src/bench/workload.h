/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be asked of a target: the patterns, and the ways to find completions.  Constant tables.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

enum bench_rw {
	BENCH_READ,
	BENCH_WRITE,
	BENCH_RANDREAD,
	BENCH_RANDWRITE,
	BENCH_RANDRW,
	BENCH_FLUSH,
	BENCH_DISCARD,
	BENCH_RW_COUNT,
};

struct bench_rw_kind {
	bool random;
	bool reads;
	bool writes; /* data */
	bool discard;
	bool flush;
};

/* Places by enum bench_rw. */
extern const struct bench_rw_kind bench_rw_kinds[BENCH_RW_COUNT];
extern const char *const bench_rw_names[BENCH_RW_COUNT];

/* Does it change what the target holds? */
static inline bool bench_rw_destroys(const struct bench_rw_kind *k)
{
	return k->writes || k->discard;
}

enum bench_completion {
	BENCH_SLEEP,
	BENCH_POLL,
	BENCH_HYBRID,
	BENCH_COMPLETION_COUNT,
};

extern const char *const bench_completion_names[BENCH_COMPLETION_COUNT];

/* One place in a sweep; what does not vary is in the options. */
struct bench_combination {
	enum bench_rw rw;
	enum bench_completion completion;
	uint32_t block_bytes;
	unsigned iodepth;
};

#endif
