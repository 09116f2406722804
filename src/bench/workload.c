/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/workload.h"

const struct bench_rw_kind bench_rw_kinds[BENCH_RW_COUNT] = {
	[BENCH_READ] = {.reads = true},
	[BENCH_WRITE] = {.writes = true},
	[BENCH_RANDREAD] = {.random = true, .reads = true},
	[BENCH_RANDWRITE] = {.random = true, .writes = true},
	[BENCH_RANDRW] = {.random = true, .reads = true, .writes = true},
	[BENCH_FLUSH] = {.flush = true},
	[BENCH_DISCARD] = {.random = true, .discard = true},
};

const char *const bench_rw_names[BENCH_RW_COUNT] = {
	[BENCH_READ] = "read",           [BENCH_WRITE] = "write",   [BENCH_RANDREAD] = "randread",
	[BENCH_RANDWRITE] = "randwrite", [BENCH_RANDRW] = "randrw", [BENCH_FLUSH] = "flush",
	[BENCH_DISCARD] = "discard",
};

const char *const bench_completion_names[BENCH_COMPLETION_COUNT] = {
	[BENCH_SLEEP] = "sleep",
	[BENCH_POLL] = "poll",
	[BENCH_HYBRID] = "hybrid",
};
