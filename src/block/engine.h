/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract between the block layer and an engine.  An engine moves bytes between memory and
 * one image; it implements this and knows no other engine.  engine/null.c is the template.
 *
 * An engine never drops, reorders or aborts a request, and never blocks: a system call that can
 * block goes to the worker pool (loop/worker.h).  What it cannot take now it does not accept; the
 * channel keeps it, in order, and comes again.
 */
#ifndef BLOCK_ENGINE_H
#define BLOCK_ENGINE_H

#include "base/error.h"
#include "block/request.h"

struct engine;       /* one open image; made by open, shared by all threads */
struct engine_queue; /* one thread's submission and completion rings */

enum engine_caps {
	ENGINE_CAP_DISCARD = 1 << 0,       /* BLK_DISCARD reaches the storage */
	ENGINE_CAP_WRITE_ZEROES = 1 << 1,  /* BLK_WRITE_ZEROES with BLK_UNMAP */
	ENGINE_CAP_ZERO_NO_UNMAP = 1 << 2, /* without: the range stays allocated */
	ENGINE_CAP_FUA = 1 << 3,           /* BLK_FUA on writes (RWF_DSYNC).  Without it the flag
					    * is seen only where there is no cache: ignore it */
	ENGINE_CAP_WRITE_CACHE = 1 << 4,   /* completed writes may be lost before a flush */
	ENGINE_CAP_INLINE = 1 << 5,        /* completes in submit_batch: no use in large ones */
};

struct engine_ops;

struct engine_config {
	/* Set by the disk: the table that open is called through.  Only for an engine that wraps
	 * another, and is found by its table. */
	const struct engine_ops *ops;
	const char *path; /* for messages; NULL for null and memory */
	int fd;           /* open image, read-only or read-write, with or without O_DIRECT; the
			   * engine does not close it (the disk owns it).  -1 for null, memory */
	bool direct;      /* fd has O_DIRECT */
	bool read_only;
	bool fixed_buffers;  /* io_uring: register guest memory */
	uint64_t size_bytes; /* null and memory: the size asked for */
};

/* Filled by open.  What is not a capability here the block layer emulates or refuses. */
struct engine_info {
	uint64_t size_bytes;       /* exact, not rounded */
	uint32_t logical_block;    /* offsets and lengths must be multiples of this (1 if any) */
	uint32_t physical_block;   /* writes smaller than this cost a read below; >= logical */
	uint32_t optimal_io_bytes; /* 0 = not known */
	uint32_t memory_align;     /* alignment of every iov_base: 1 if any.  iov_len are multiples
				    * of the larger of this and logical_block */
	uint32_t discard_granularity;
	uint32_t max_iov;            /* parts of one read or write */
	uint64_t max_transfer_bytes; /* of one read or write; at least 4096 */
	uint64_t max_discard_bytes;  /* of one discard or write zeroes; 0 = no limit */
	uint32_t caps;               /* enum engine_caps */
};

struct engine_queue_config {
	unsigned depth; /* the most requests that the kernel queue should hold; may be fewer */
	/* When the thread that used the queue has gone, or does no more with it, another one calls
	 * poll until nothing is in flight, and queue_destroy. */
	bool ends_elsewhere;
};

/* A piece of memory that requests will use (guest memory); for engines that can register it. */
struct engine_memory {
	void *base;
	uint64_t len_bytes;
};

struct engine_ops {
	const char *name;

	/* Control thread.  0, or a negative errno with *err set.  *info is complete afterwards. */
	int (*open)(const struct engine_config *config, struct engine **engine,
		    struct engine_info *info, struct error *err);
	void (*close)(struct engine *e);
	/* Control thread: the image's size may have changed.  New size or -errno. */
	int64_t (*refresh_size)(struct engine *e);

	/* On the thread that will use the queue, from here to queue_destroy. */
	int (*queue_create)(struct engine *e, const struct engine_queue_config *config,
			    struct engine_queue **q, struct error *err);
	/* Nothing is in flight.  (A queue is drained first; see drain.) */
	void (*queue_destroy)(struct engine_queue *q);

	/*
	 * Takes requests from the front of reqs[0..n): returns how many were accepted (0..n).
	 * The rest is still the caller's.  An accepted request gets engine_done exactly once,
	 * possibly before submit_batch returns.  Never fails: a request that the kernel refuses
	 * for good is accepted and done with that error.
	 * One system call for the batch, where the kernel has such a call.
	 */
	unsigned (*submit_batch)(struct engine_queue *q, struct blk_request **reqs, unsigned n);

	/* Reaps what has completed; returns how many engine_done calls were made. */
	unsigned (*poll)(struct engine_queue *q);

	/* Turn the event_fd notification off / on.  arm: store, full fence, look again [CQ2];
	 * true = there are completions to poll.  An engine that always notifies does nothing. */
	void (*disarm)(struct engine_queue *q);
	bool (*arm)(struct engine_queue *q) must_check;

	/* Readable when completions may be there and the queue is armed; -1 if it completes
	 * inline or by messages of the worker pool.  The channel reads (clears) it. */
	int (*event_fd)(struct engine_queue *q);

	/*
	 * Optional (NULL).  The memory that later requests will point into, in place of what was
	 * given before.  Control thread, while no request is in flight on q or any queue of e;
	 * requests outside of it still work.  0 or -errno (the ordinary path is then used).
	 */
	int (*set_memory)(struct engine *e, const struct engine_memory *memory, unsigned n);
};

/* The engines' own tables; named only by the daemon and the tests. */
extern const struct engine_ops engine_null;
extern const struct engine_ops engine_memory;
extern const struct engine_ops engine_threads;
extern const struct engine_ops engine_linux_aio;
extern const struct engine_ops engine_io_uring;

#endif
