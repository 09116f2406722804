/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a run: started together, watched by the one that started them, joined.
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <pthread.h>
#include <semaphore.h>

#include "base/error.h"
#include "bench/cpu.h"
#include "bench/job.h"
#include "bench/progress.h"

struct crew {
	struct job *jobs;
	int *cpus; /* -1: not pinned */
	unsigned count;
	struct job_window window;
	struct bench_cpu before, after;
	/* Their threads. */
	struct crew_member *members;
	unsigned started, ended;
	sem_t go, done;
};

/* The jobs are zeroed; the caller fills them in with job_init().  0, or -errno with *err. */
int crew_init(struct crew *c, unsigned count, struct error *err) must_check;

/* A crew that is all zero is allowed. */
void crew_fini(struct crew *c);

/*
 * Runs all jobs to their end; their requests count from ramp_ns on, for runtime_ns (0: until the
 * jobs' counts are reached).  before and after are the CPU time at the ends of that.  0, or a
 * negative errno with *err when threads cannot be had.
 */
int crew_work(struct crew *c, uint64_t ramp_ns, uint64_t runtime_ns, int server_pid,
	      struct bench_progress *progress, struct error *err) must_check;

#endif
