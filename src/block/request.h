/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One disk request, from a device model down to an engine.
 *
 * It lives inside the device's preallocated slot; the block layer links it, the engine keeps what
 * it needs in `engine`.  The device owns it before blk_submit() and from complete() on.
 */
#ifndef BLOCK_REQUEST_H
#define BLOCK_REQUEST_H

#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "loop/worker.h"

enum blk_op {
	BLK_READ,
	BLK_WRITE,
	BLK_FLUSH,        /* no range: everything completed before it is durable afterwards */
	BLK_DISCARD,      /* a hint: the range may read as anything afterwards */
	BLK_WRITE_ZEROES, /* the range reads as zeroes afterwards */
	BLK_OP_COUNT,
};

enum blk_flags {
	BLK_FUA = 1 << 0,   /* the write (or zeroes) is durable when it completes */
	BLK_UNMAP = 1 << 1, /* WRITE_ZEROES may deallocate */
};

struct blk_request {
	/* Set by the submitter. */
	enum blk_op op;
	uint32_t flags; /* enum blk_flags */
	uint64_t offset_bytes;
	uint64_t len_bytes; /* for reads and writes the sum of iov; none for a flush */
	const struct iovec *iov;
	unsigned iovcnt;
	/*
	 * ret: 0 or a negative errno, for the whole request (short results were continued).
	 * Called on the thread that submitted, inside a defer section; it may submit again.
	 */
	void (*complete)(struct blk_request *req, int ret);

	/* The block layer's. */
	struct slist_node node;
	struct blk_channel *channel;
	/*
	 * Set by the channel before submit_batch(): the engine calls it once, on the queue's
	 * thread, with the raw result of the kernel: bytes moved (reads, writes; 0 for the other
	 * operations) or a negative errno.  Short results are the block layer's business.
	 */
	void (*engine_done)(struct blk_request *req, int64_t result);
	void *block_private;
	uint32_t block_state;

	/* The engine's, while it holds the request. */
	struct {
		uint64_t word[10]; /* e.g. a struct iocb */
		struct worker_item work;
		int64_t result;
	} engine;
};

#endif
