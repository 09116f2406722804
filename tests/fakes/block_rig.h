/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk with channels on real iothreads, driven by the test's thread: hand it requests, wait.
 */
#ifndef TESTS_BLOCK_RIG_H
#define TESTS_BLOCK_RIG_H

#include <pthread.h>

#include "block/channel.h"
#include "loop/iothread.h"

#define RIG_THREADS 4

struct rig_request {
	struct blk_request req;
	struct block_rig *rig;
	unsigned thread;
	int ret;       /* valid once done */
	unsigned done; /* complete calls */
	/* Called on the iothread after ret is set; true: it was submitted again. */
	bool (*next)(struct rig_request *r);
	void *private;
};

struct block_rig {
	struct iothread *threads[RIG_THREADS];
	struct blk_channel *channels[RIG_THREADS];
	unsigned nthreads;
	struct disk *disk;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	unsigned outstanding;
};

/* Creates the disk of config and a channel on each of nthreads.  Fails the test. */
void rig_open(struct block_rig *rig, const struct disk_config *config, unsigned nthreads);
void rig_close(struct block_rig *rig);

/* Fills in what every request needs; iov stays the caller's. */
void rig_request_init(struct rig_request *r, enum blk_op op, uint64_t offset, struct iovec *iov,
		      unsigned iovcnt);

/* Submits r[0..n) in one pass of the thread's loop; rig_wait() for all that were started. */
void rig_start(struct block_rig *rig, unsigned thread, struct rig_request *r, unsigned n);
void rig_wait(struct block_rig *rig);
/* Both, and fails the test unless each was completed once. */
void rig_run(struct block_rig *rig, unsigned thread, struct rig_request *r, unsigned n);

/* One request with one buffer; returns its result.  len counts for discard and zeroes, too. */
int rig_io(struct block_rig *rig, enum blk_op op, uint32_t flags, uint64_t offset, void *buf,
	   uint64_t len);

#endif
