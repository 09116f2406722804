/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the block layer share.
 *
 * A request goes to the engine as it is when it can (channel.c).  Else a `struct blk_io` of the
 * channel's pool goes in its place: one for several requests that merge (channel_merge.c), or one
 * for a request that takes several steps, one engine request at a time (io.c): cut to the engine's
 * limits, continued after a short result, bounced (bounce.c), emulated (fallback.c).  Whoever holds
 * a blk_io has all that it needs to end, so waiting for one always ends.
 */
#ifndef BLOCK_CHANNEL_INTERNAL_H
#define BLOCK_CHANNEL_INTERNAL_H

#include <errno.h>

#include "base/atomic.h"
#include "base/defer.h"
#include "block/channel.h"
#include "block/merge.h"
#include "block/range_lock.h"
#include "loop/loop.h"

#define CHANNEL_BATCH  128 /* the most requests in one submit_batch() */
#define CHANNEL_IOS    128
#define CHANNEL_IO_IOV 1024u
#define BOUNCE_BUFFERS 4
#define BOUNCE_BYTES   (128u << 10)
/* A merged request is not longer: by then the cost of a request is lost in that of its bytes, and
 * one long request keeps fewer of the device's channels busy than several. */
#define CHANNEL_MERGE_BYTES (256u << 10)
#define BLOCK_PAGE_BYTES    4096u /* alignment of buffers; no disk has a larger block */

/* A request that ends with EAGAIN or EINTR goes again at once so often, then by timer. */
#define CHANNEL_RETRIES   16
#define BLOCK_STATE_TRIES 0xffu
#define RETRY_FIRST_NS    1000000u
#define RETRY_MOST_NS     10000000u
/* Rounds of one flush; what is left goes on in the next pass, behind the loop's other work. */
#define CHANNEL_FLUSH_ROUNDS 16

struct disk {
	char *id;
	const struct engine_ops *ops;
	struct engine *engine;
	struct engine_info engine_info;
	struct disk_info info;
	int fd;
	unsigned queue_depth;
	bool ends_elsewhere;
	bool page_cache; /* flush errors stay: see disk_note_flush_error() */
	/* A block shown is smaller than one moved: writes hold their range in `lock`. */
	bool tracked;
	struct range_lock lock;
	struct poll_policy_limits poll_limits;
	const struct poll_policy_limits *poll; /* NULL or &poll_limits */

	/* Control path: the channels by loop, under the mutex; memory by owner, control thread. */
	pthread_mutex_t mutex;
	struct list channels;
	struct list memory_owners;

	/* Any thread, relaxed: each is a fact on its own. */
	uint64_t capacity_bytes;
	uint32_t caps; /* enum engine_caps: what was promised less what turned out not to work */
	int flush_error;
};

enum io_stage {
	IO_DATA,  /* moves the parent's own memory, or zeroes from zero_buffer */
	IO_FILL,  /* reads whole blocks into the bounce buffer */
	IO_STORE, /* writes them */
	IO_RANGE, /* DISCARD or WRITE_ZEROES by the engine */
	IO_FLUSH,
};

struct blk_io {
	struct blk_request req; /* the engine's */
	struct blk_io *next_free;
	struct iovec *iov;          /* CHANNEL_IO_IOV parts */
	struct slist members;       /* merged: the requests it stands for, in order */
	struct blk_request *parent; /* steps: the request it works on */
	uint64_t pos_bytes;         /* steps: done up to here, offset on the disk */
	uint64_t end_bytes;         /* up to here there is to do */
	uint64_t chunk_bytes;       /* FILL, STORE: where the blocks in the buffer begin */
	uint64_t chunk_end_bytes;   /* and end */
	uint64_t chunk_done_bytes;  /* of them, moved */
	char *buffer;               /* BOUNCE_BYTES, or NULL */
	enum io_stage stage;
	unsigned stalls;  /* results of less than a block, one after the other */
	bool flush_after; /* FUA that the engine cannot */
	bool locked;
	struct range_hold hold;
	struct loop_msg granted_msg;
};

struct blk_channel {
	/* The path of every request. */
	struct slist pending; /* for the engine, in order; behind `staged` */
	struct engine_queue *queue;
	const struct engine_ops *ops;
	struct disk *disk;
	unsigned in_flight;        /* blk_submit() to complete */
	unsigned engine_in_flight; /* accepted to engine_done */
	unsigned plug_depth;
	unsigned nstaged;
	bool flushing;
	bool submitting;
	bool blocked; /* the engine took less than given: wait for a completion or the timer */
	bool looking; /* the poller was begun, not ended */
	bool armed;
	bool worked; /* something completed since the poller last said so */
	bool more;   /* a flush stopped before it had done all */
	/* What goes to the engine as it is; constants of the disk. */
	uint32_t slow_flags;
	uintptr_t base_mask;        /* alignment of iov_base less one */
	uintptr_t len_mask;         /* of iov_len */
	struct merge_limits limits; /* of one request */
	struct merge_limits merge;
	uint32_t block_mask;   /* of the device's block: what a request must be a multiple of */
	uint32_t engine_block; /* multiples of this are what the engine moves */
	struct defer flush;
	struct poller poller;
	struct blk_channel_stats stats;

	/* Rare. */
	struct slist finished; /* to complete without the engine; result in block_state */
	struct slist again;    /* to go to the engine again, before all others */
	struct slist delayed;  /* to go again when the timer expires */
	struct slist waiting;  /* for a blk_io and what it needs, in order */
	struct blk_io *free_io;
	unsigned ios_touched; /* ios[0..) that were ever used */
	unsigned nbuffers;
	char *buffers[BOUNCE_BUFFERS]; /* free ones: [0..nbuffers) */
	struct blk_io *ios;
	struct iovec *io_iov;
	void *pool;
	size_t pool_bytes;
	struct loop *loop;
	struct loop_fd completions;
	struct loop_timer retry_timer;
	uint64_t retry_ns;
	/* Control path. */
	unsigned users;
	struct list node;

	struct blk_request *staged[CHANNEL_BATCH];
};

/* A negative errno that a device can be told. */
static inline int block_errno(int64_t result)
{
	return result >= 0 || result < -4095 || result == -ECANCELED ? -EIO : (int)result;
}

static inline bool block_not_supported(int64_t result)
{
	return result == -EOPNOTSUPP || result == -ENOSYS || result == -ENOTTY;
}

static inline bool block_try_again(int64_t result)
{
	return result == -EAGAIN || result == -EINTR;
}

/* disk.c */
static inline uint32_t disk_caps(const struct disk *d)
{
	return atomic_load_relaxed(&d->caps); /* relaxed: see the field */
}
void disk_forget_caps(struct disk *d, uint32_t caps);
/*
 * After a failed fdatasync the kernel takes its dirty pages for clean, and the next one succeeds
 * though the data is gone.  So with the page cache a failed flush fails for ever.  Returns what
 * the request completes with.
 */
int disk_flush_result(struct disk *d, int64_t result);

/* channel.c */
struct blk_channel *channel_create(struct disk *d, struct loop *loop, struct error *err);
void channel_destroy(struct blk_channel *c);
/* Something is to be done at the end of the pass. */
void channel_schedule(struct blk_channel *c);
void channel_finish(struct blk_channel *c, struct blk_request *req, int ret);
/* Book-keeping of one engine_done. */
void channel_returned(struct blk_channel *c);
/* req (a device's or a blk_io's) ended with EAGAIN or EINTR: goes again, bounded. */
void channel_retry(struct blk_channel *c, struct blk_request *req);
/* req goes to the engine at the end of the pass. */
static inline void channel_queue(struct blk_channel *c, struct blk_request *req)
{
	slist_push_back(&c->pending, &req->node);
	channel_schedule(c);
}

/* channel_merge.c: merges in place, returns how many are left. */
unsigned channel_merge(struct blk_channel *c, struct blk_request **reqs, unsigned n);

/* io.c */
struct blk_io *io_get(struct blk_channel *c);
void io_put(struct blk_channel *c, struct blk_io *io);
/* req is done from its byte done_bytes on, in steps, when its turn comes. */
void io_begin(struct blk_channel *c, struct blk_request *req, uint64_t done_bytes);
bool io_can_start(const struct blk_channel *c);
/* Starts what waits and now can.  From the channel's flush only. */
void io_start_waiting(struct blk_channel *c);
/* The next step, or the end. */
void io_next(struct blk_io *io);
/* One engine request of a step; its iov is io->iov[0..iovcnt). */
void io_issue(struct blk_io *io, enum io_stage stage, enum blk_op op, uint32_t flags,
	      uint64_t offset_bytes, uint64_t len_bytes, unsigned iovcnt);
void io_finish(struct blk_io *io, int ret);
/* FUA turns out not to be supported: a flush takes its place. */
void io_no_fua(struct blk_io *io);
/* Whole blocks that a read or write of result bytes moved, possibly 0; or what it failed with. */
int64_t io_progress(struct blk_io *io, int64_t result);

/* bounce.c */
void bounce_init(struct blk_channel *c, char *memory);
size_t bounce_pool_bytes(const struct disk *d);
/* Must req go through a buffer? */
bool bounce_needed(const struct blk_channel *c, const struct blk_request *req);
void bounce_next(struct blk_io *io);
/* Zeroes less than a block, up to its end. */
void bounce_edge(struct blk_io *io);
void bounce_filled(struct blk_io *io, int64_t result);
void bounce_stored(struct blk_io *io, int64_t result);

/* fallback.c */
void fallback_zeroes_next(struct blk_io *io);
void fallback_discard_next(struct blk_io *io);
void fallback_range_done(struct blk_io *io, int64_t result);

#endif
