/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of one disk that somebody writes, from any of its channels.
 *
 * Only disks on which a read-modify-write can happen have their writes tracked: those whose device
 * shows a smaller block than the engine moves.  There every write, discard and zeroing holds its
 * range, shared; a read-modify-write holds the blocks it touches alone, from its read to the end of
 * its write.  So it waits also for aligned writes that were in flight before it came: their data
 * would be lost under what it read.
 *
 * First come, first served: who comes later waits for an overlapping one that waits, so that a
 * stream of writes cannot starve a read-modify-write.  Nobody who holds a range waits for another.
 */
#ifndef BLOCK_RANGE_LOCK_H
#define BLOCK_RANGE_LOCK_H

#include <pthread.h>
#include <stdint.h>

#include "base/list.h"

struct range_lock {
	pthread_mutex_t mutex; /* held for a walk over the lists; never while blocking */
	struct list held;
	struct list waiting; /* in order of arrival */
};

/* Embedded by the owner; the lock's from acquire to release. */
struct range_hold {
	struct list node;
	struct slist_node granted_node;
	uint64_t offset_bytes;
	uint64_t len_bytes;
	bool exclusive;
	/* The range is held now, after acquire said false.  Called once, on the thread that
	 * released what was in the way, outside of the mutex. */
	void (*granted)(struct range_hold *h);
};

void range_lock_init(struct range_lock *l);
/* Nothing is held. */
void range_lock_fini(struct range_lock *l);

/* True: held.  False: h waits and gets `granted`, possibly before this returns. */
bool range_lock_acquire(struct range_lock *l, struct range_hold *h) must_check;

void range_lock_release(struct range_lock *l, struct range_hold *h);

#endif
