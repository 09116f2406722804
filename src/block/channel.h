/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The per-thread submission side of a disk.
 *
 * Between plug and unplug (they nest) requests gather; at the outermost unplug adjacent reads and
 * adjacent writes merge, and one batch goes to the engine.  blk_submit() plugs by itself until the
 * end of the current defer section, so callers within a pass need no explicit plug.
 * What the engine does not accept stays, in order, on the pending list; the channel is then
 * *blocked* and submits again on the next completion, or by a timer when nothing is in flight.
 * Misaligned requests bounce, with the touched blocks locked; what the engine cannot do is emulated
 * (FUA by flush, zeroes by writes) -- once, here, for every engine.
 *
 * One thread.  The data path never allocates, logs or blocks, and takes no lock: except for writes
 * on a disk whose device shows a smaller block than its engine moves (range_lock.h).
 */
#ifndef BLOCK_CHANNEL_H
#define BLOCK_CHANNEL_H

#include "block/disk.h"

struct blk_channel_stats {
	uint64_t requests; /* blk_submit() calls */
	uint64_t batches;  /* submit_batch() calls that took something */
	uint64_t merged;   /* requests that rode along in another's I/O */
	uint64_t split;    /* I/Os made beyond one a request, for engine limits */
	uint64_t bounced;  /* requests that were misaligned and copied */
	uint64_t blocked;  /* times the engine took less than it was given */
	uint64_t retried;  /* EAGAIN/EINTR results and short results continued */
};

/*
 * Hands req to the disk.  Range and read-only are the device's to check (against the capacity);
 * a range outside the image completes with -EINVAL, a write to a read-only disk with -EROFS.
 * complete is called exactly once, never from inside blk_submit() itself: so call it in a defer
 * section (all that a loop calls is in one) or between plug and unplug.
 * Offset and length are multiples of the disk's block (else -EINVAL); a flush has no length.
 */
void blk_submit(struct blk_channel *c, struct blk_request *req);

void blk_plug(struct blk_channel *c);
void blk_unplug(struct blk_channel *c);

/* Requests submitted and not completed.  A queue that stops waits until its own are done. */
unsigned blk_channel_in_flight(const struct blk_channel *c);

/* Any thread. */
void blk_channel_stats_read(const struct blk_channel *c, struct blk_channel_stats *out);

#endif
