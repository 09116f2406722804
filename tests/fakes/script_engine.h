/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine in memory that does as the test says: any limits and alignments (and aborts when a
 * request breaks them), takes what it is told to take, holds requests until they are released,
 * fails as told, and remembers what it was given.
 */
#ifndef TESTS_SCRIPT_ENGINE_H
#define TESTS_SCRIPT_ENGINE_H

#include <pthread.h>

#include "block/engine.h"

#define SCRIPT_LOG  4096
#define SCRIPT_HELD 4096

struct script_entry {
	enum blk_op op;
	uint32_t flags;
	uint64_t offset, len;
	unsigned iovcnt;
	unsigned batch; /* number of the submit_batch() call that brought it */
};

struct script {
	struct engine_ops ops;
	pthread_mutex_t mutex;
	/* Set by the test before the disk is opened. */
	struct engine_info info;
	bool hold;         /* complete only what script_release() lets go */
	bool shuffle;      /* what is released completes in random order */
	unsigned take_max; /* of one submit_batch(); 0 = all */
	unsigned depth;    /* the most that are held; 0 = SCRIPT_HELD */
	/* Asked before a request is carried out: true, and it ends with *result instead (what
	 * *result says is moved first, if positive). */
	bool (*fault)(struct script *s, const struct blk_request *req, int64_t *result);
	unsigned fault_count; /* for the test's use */

	/* Any thread. */
	unsigned refuse; /* so many submit_batch() calls take nothing */
	unsigned released;

	/* Read by the test when nothing is in flight. */
	char *memory;
	struct script_entry log[SCRIPT_LOG];
	unsigned nlog;
	unsigned batches; /* submit_batch() calls */
	unsigned polls, arms, disarms;
	struct engine_queue *queue; /* the first; script_release() wakes it */
};

/* Sane defaults: any alignment, 1024 parts, all capabilities but FUA and the cache. */
void script_init(struct script *s, uint64_t size_bytes);
void script_fini(struct script *s);

/* Lets n of the held requests complete.  Any thread. */
void script_release(struct script *s, unsigned n);
#define SCRIPT_RELEASE_ALL (1u << 30)

#endif
