/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of `ringside bench`.  One table in options.c drives parsing and help.
 *
 * Parsing touches nothing.  Strings are argv's.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdio.h>

#include "bench/values.h"
#include "bench/workload.h"

#define BENCH_TARGETS_MAX 16
#define BENCH_JOBS_MAX    256
#define BENCH_DEPTH_MAX   1024
#define BENCH_CPUS_MAX    1024

enum bench_option {
	BENCH_OPTION_RW,
	BENCH_OPTION_BS,
	BENCH_OPTION_IODEPTH,
	BENCH_OPTION_JOBS,
	BENCH_OPTION_COMPLETION,
	BENCH_OPTION_COUNT_OF_REQUESTS,
	BENCH_OPTION_RUNTIME,
	BENCH_OPTION_RATE,
	BENCH_OPTION_RWMIX,
	BENCH_OPTION_BATCH,
	BENCH_OPTION_SIZE,
	BENCH_OPTION_SEED,
	BENCH_OPTION_CPU,
	BENCH_OPTION_HUGEPAGES,
	BENCH_OPTION_REPEATS,
	BENCH_OPTION_VERIFY,
	BENCH_OPTION_DESTROY_DATA,
	BENCH_OPTION_JSON,
	BENCH_OPTION_REPORT,
	BENCH_OPTION_MATRIX,
	BENCH_OPTION_FLOOR,
	BENCH_OPTION_HELP,
	BENCH_OPTION_COUNT,
};

struct bench_options {
	const char *targets[BENCH_TARGETS_MAX];
	unsigned target_count;
	uint32_t given; /* bit k: enum bench_option k was given */
	/* Lists: what a sweep goes through. */
	struct bench_list rw;         /* enum bench_rw */
	struct bench_list completion; /* enum bench_completion */
	struct bench_list block_bytes;
	struct bench_list iodepth;
	struct bench_list cpus; /* empty: the threads are not pinned */
	uint64_t jobs, repeats, batch, rwmix;
	uint64_t count; /* requests of a run, of all jobs; 0: for runtime_ns */
	uint64_t runtime_ns;
	uint64_t rate;       /* requests a second of all jobs; 0: closed loop */
	uint64_t size_bytes; /* 0: all of the target */
	uint64_t seed;
	bool verify, destroy_data, json, matrix, floor, hugepages;
	const char *report; /* NULL: none */
};

static inline bool bench_options_given(const struct bench_options *o, enum bench_option k)
{
	return o->given & (1u << k);
}

/* argv[0] is the subcommand.  1 = help was asked for, 0, or a negative errno with *err. */
int bench_options_parse(struct bench_options *o, int argc, char **argv,
			struct error *err) must_check;

void bench_options_print_help(FILE *out);

/* The cpu that a job's thread is pinned to, or -1. */
int bench_options_cpu(const struct bench_options *o, unsigned job);

/* Does any of the patterns change what the targets hold? */
bool bench_options_destroy(const struct bench_options *o);

#endif
