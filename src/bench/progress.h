/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line on a terminal, rewritten while a run goes on: which run of how many, and how fast.
 * Nothing at all when the standard error is no terminal.  The thread that watches only.
 */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct bench_progress {
	bool on, shown;
	unsigned run, runs;
	char label[160];
	uint64_t last_ns, last_requests;
};

void progress_init(struct bench_progress *p, unsigned runs);

/* The next run; label says what it is. */
void progress_begin(struct bench_progress *p, const char *label);

/* How many requests have completed by now. */
void progress_show(struct bench_progress *p, uint64_t now_ns, uint64_t requests);

/* The line goes, before another is printed. */
void progress_clear(struct bench_progress *p);

#endif
