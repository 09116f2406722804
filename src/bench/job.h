/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: one thread that puts requests into one queue, reaps what has completed, and counts.
 *
 * The data path (job.c) neither allocates, nor locks, nor logs; all memory is there before it
 * begins.  Everything belongs to the job's thread while it runs; the others may look at `latency`
 * for a progress line, and set the window's stop.
 */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/histogram.h"
#include "bench/pattern.h"
#include "bench/verify.h"
#include "bench/workload.h"
#include "ringside/driver.h"

/* Nothing completed for so long: the job is given up. */
#define JOB_STALL_NS UINT64_C(30000000000)

/* When a run counts; one for all its jobs. */
struct job_window {
	uint64_t begin_ns; /* what completes before is the ramp */
	uint64_t end_ns;   /* UINT64_MAX: when the count is reached */
	unsigned stop;     /* relaxed: seen a little later, nothing else depends on it */
};

struct job_request {
	uint64_t start_ns; /* open loop: when it was due */
	uint64_t block;
	void *buf;
	uint32_t generation; /* verify: of a write */
	bool write;
};

/* Counted inside the window. */
struct job_counts {
	uint64_t requests, bytes;
	uint64_t kicks, calls, system_calls;
	uint64_t begin_ns, end_ns;
};

struct job {
	/* Constant while it runs. */
	struct ringside_queue *queue;
	struct job_window *window;
	const struct bench_rw_kind *kind;
	enum bench_completion completion;
	uint32_t block_bytes;
	unsigned iodepth, batch;
	uint64_t count; /* requests to make; UINT64_MAX: until the window ends */
	bool open_loop;
	bool check_only; /* verify: reads what is known, in order, once */
	/* The thread's. */
	struct bench_pattern pattern;
	struct bench_arrivals arrivals;
	struct verify_region *verify; /* NULL: off */
	struct job_request *requests;
	struct job_request **free;
	struct ringside_completion *done;
	unsigned free_count, in_flight;
	uint64_t put;         /* requests, so far */
	uint64_t progress_ns; /* something completed, or was put into an empty queue */
	bool counting;
	struct ringside_stats before;
	struct job_counts counts;
	struct histogram *latency;
	/* What went wrong. */
	uint64_t errors; /* requests, whenever */
	int first_error;
	uint64_t first_error_bytes; /* its offset */
	int broken;                 /* the queue; or -ETIMEDOUT: nothing completes any more */
	bool gone;                  /* nothing comes back any more */
	struct verify_fault fault;  /* kind is VERIFY_GOOD while there is none */
} cacheline_aligned;

/* memory: iodepth buffers, stride bytes apart; NULL without data.  0, or -ENOMEM. */
int job_init(struct job *j, unsigned iodepth, void *memory, size_t stride) must_check;
void job_fini(struct job *j);

/* Until the window or the count ends, or something breaks; then everything has come back, but when
 * nothing completes any more. */
void job_run(struct job *j);

#endif
