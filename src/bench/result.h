/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was measured: one target with one set of parameters, over its repeats.  Made by the runner,
 * printed by table, json and report.  Plain data; who fills it in owns it.
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"

/* One run. */
struct bench_run {
	double seconds;
	uint64_t requests, bytes, errors;
	struct histogram *latency; /* of every request; open loop: from the intended start */
	uint64_t kicks, calls, system_calls;
	uint64_t client_cpu_ns;
	uint64_t server_cpu_ns;
	bool server_known; /* server_cpu_ns means something */
};

/* What the workload was. */
struct bench_params {
	const char *rw;         /* "randread" */
	const char *completion; /* "sleep", "poll", "hybrid" */
	uint32_t block_bytes;
	unsigned iodepth, jobs;
	double rate; /* requests a second; 0: closed loop */
};

/* Figures of one run, or the medians of several. */
struct bench_figures {
	double iops, bytes_per_s;
	double mean_ns, p50_ns, p99_ns, p999_ns, max_ns;
	double kicks_per_request, calls_per_request, system_calls_per_request;
	double client_cpu_ns, server_cpu_ns; /* a request */
	bool server_known;
	uint64_t errors;
};

/* A row of the table, an object of the JSON array, a point of a plot. */
struct bench_point {
	const char *target;
	struct bench_params params;
	struct bench_figures figures; /* medians */
	unsigned repeats;
	bool has_ratio; /* several targets: IOPS over the first target's, neighbours in time */
	double ratio, ratio_min, ratio_max;
	struct histogram *latency; /* all repeats together */
};

/* What this machine can do at all. */
struct bench_floor {
	double cache_line_ns;  /* round trip between two cores */
	double eventfd_ns;     /* round trip between two threads that sleep */
	double system_call_ns; /* an empty one */
	int cpus[2];           /* where it was measured */
};

#endif
