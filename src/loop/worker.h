/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of threads for system calls that block (fsync, fallocate, pread of a slow file).
 *
 * A work item is submitted by an iothread and comes back to the same loop as a message.  Submission
 * never allocates and holds the pool's lock only to link the item.
 */
#ifndef LOOP_WORKER_H
#define LOOP_WORKER_H

#include "loop/loop.h"

struct worker_pool;

struct worker_item {
	struct slist_node node;
	void (*work)(struct worker_item *w); /* on a worker thread; may block */
	void (*done)(struct worker_item *w); /* back on the loop that submitted it */
	struct loop_msg msg;                 /* the pool's */
	struct loop *loop;                   /* the pool's */
};

/* Threads are started when there is work for them, at most max_threads, and end when idle for
 * 10 s.  NULL on failure. */
struct worker_pool *worker_pool_create(unsigned max_threads);
/* All items must have come back.  Waits for the threads to end. */
void worker_pool_destroy(struct worker_pool *pool);

/* For tests. */
void worker_pool_set_idle_ns(struct worker_pool *pool, uint64_t idle_ns);
unsigned worker_pool_threads(struct worker_pool *pool);

/* From a loop's thread.  w belongs to the pool until done is called. */
void worker_submit(struct worker_pool *pool, struct worker_item *w);

/* The process's pool (created at first use, 64 threads at most); never destroyed. */
struct worker_pool *worker_pool_default(void);

#endif
