/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that take several steps.  One step is one engine request; the next begins when it has
 * ended, so a request of any size has one in flight.  What there is to do next follows from the
 * position alone, so a short result is continued by asking again.
 */
#include <errno.h>

#include "base/checked.h"
#include "base/iov.h"
#include "block/channel_internal.h"

static void io_done(struct blk_request *req, int64_t result);

struct blk_io *io_get(struct blk_channel *c)
{
	struct blk_io *io = c->free_io;

	if (io) {
		c->free_io = io->next_free;
		return io;
	}
	if (c->ios_touched == CHANNEL_IOS)
		return NULL;
	io = &c->ios[c->ios_touched];
	io->iov = c->io_iov + (size_t)c->ios_touched++ * CHANNEL_IO_IOV;
	io->req.channel = c;
	return io;
}

/* Last in, first out: the memory of the others stays untouched. */
void io_put(struct blk_channel *c, struct blk_io *io)
{
	io->next_free = c->free_io;
	c->free_io = io;
	if (unlikely(!slist_empty(&c->waiting)))
		channel_schedule(c);
}

void io_begin(struct blk_channel *c, struct blk_request *req, uint64_t done_bytes)
{
	req->block_private = (void *)(uintptr_t)done_bytes;
	slist_push_back(&c->waiting, &req->node);
	channel_schedule(c);
}

static void granted(struct range_hold *h)
{
	struct blk_io *io = container_of(h, struct blk_io, hold);

	loop_post(io->req.channel->loop, &io->granted_msg);
}

static void granted_here(struct loop_msg *m)
{
	struct blk_io *io = container_of(m, struct blk_io, granted_msg);

	io->locked = true;
	io_next(io);
}

/* True: go on.  False: granted_here() will. */
static bool lock(struct blk_io *io)
{
	struct blk_channel *c = io->req.channel;
	struct blk_request *req = io->parent;
	uint64_t mask = c->engine_block - 1;

	if (!c->disk->tracked || req->op == BLK_READ || io->pos_bytes >= io->end_bytes)
		return true;
	io->hold.offset_bytes = align_down(io->pos_bytes, c->engine_block);
	io->hold.len_bytes = align_up(io->end_bytes, c->engine_block) - io->hold.offset_bytes;
	io->hold.exclusive = ((io->pos_bytes | io->end_bytes) & mask) != 0;
	io->hold.granted = granted;
	io->granted_msg.run = granted_here;
	io->locked = range_lock_acquire(&c->disk->lock, &io->hold);
	return io->locked;
}

static void unlock(struct blk_io *io)
{
	if (!io->locked)
		return;
	io->locked = false;
	range_lock_release(&io->req.channel->disk->lock, &io->hold);
}

/* What it needs is there: io_can_start(). */
static void start(struct blk_channel *c, struct blk_request *req)
{
	bool buffer = bounce_needed(c, req);
	struct blk_io *io = io_get(c);

	io->parent = req;
	io->buffer = buffer ? c->buffers[--c->nbuffers] : NULL;
	io->pos_bytes = req->offset_bytes + (uintptr_t)req->block_private;
	io->end_bytes = req->offset_bytes + req->len_bytes;
	io->stalls = 0;
	io->locked = false;
	io->flush_after = req->flags & BLK_FUA && c->disk->info.write_cache &&
			  (req->op == BLK_WRITE_ZEROES ||
			   (req->op == BLK_WRITE && c->slow_flags & BLK_FUA));
	if (req->op == BLK_DISCARD) {
		/* Blocks that are only touched are left out: a discard is a hint. */
		io->pos_bytes = align_up(io->pos_bytes, c->engine_block);
		io->end_bytes = align_down(io->end_bytes, c->engine_block);
	}
	if (buffer)
		atomic_stat_add(&c->stats.bounced, 1);
	if (lock(io))
		io_next(io);
}

static struct blk_request *front(const struct blk_channel *c)
{
	return container_of(c->waiting.first, struct blk_request, node);
}

bool io_can_start(const struct blk_channel *c)
{
	if (slist_empty(&c->waiting) || (!c->free_io && c->ios_touched == CHANNEL_IOS))
		return false;
	return c->nbuffers || !bounce_needed(c, front(c));
}

void io_start_waiting(struct blk_channel *c)
{
	/* As many as there are now: what they complete may bring more, for the next round. */
	const struct slist_node *last = c->waiting.last, *n = NULL;

	while (n != last && io_can_start(c)) {
		n = slist_pop_front(&c->waiting);
		start(c, container_of(n, struct blk_request, node));
	}
}

/* ---- steps ---- */

void io_issue(struct blk_io *io, enum io_stage stage, enum blk_op op, uint32_t flags,
	      uint64_t offset_bytes, uint64_t len_bytes, unsigned iovcnt)
{
	struct blk_request *req = &io->req;

	io->stage = stage;
	req->op = op;
	req->flags = flags;
	req->offset_bytes = offset_bytes;
	req->len_bytes = len_bytes;
	req->iov = io->iov;
	req->iovcnt = iovcnt;
	req->engine_done = io_done;
	req->block_state = BLOCK_STATE_ALONE;
	channel_queue(req->channel, req);
}

void io_finish(struct blk_io *io, int ret)
{
	struct blk_channel *c = io->req.channel;
	struct blk_request *parent = io->parent;

	unlock(io);
	if (io->buffer)
		c->buffers[c->nbuffers++] = io->buffer;
	io_put(c, io);
	channel_finish(c, parent, ret);
}

/* The parent's memory from byte `at` on, up to max_bytes and the most parts.  Returns its length.
 */
static uint64_t slice(const struct blk_request *parent, uint64_t at, uint64_t max_bytes,
		      struct iovec *out, unsigned max_parts, unsigned *parts)
{
	uint64_t len = 0;

	*parts = 0;
	for (unsigned i = 0; i < parent->iovcnt && len < max_bytes && *parts < max_parts; i++) {
		const struct iovec *v = &parent->iov[i];
		uint64_t n;

		if (at >= v->iov_len) {
			at -= v->iov_len;
			continue;
		}
		n = MIN((uint64_t)v->iov_len - at, max_bytes - len);
		out[(*parts)++] = (struct iovec){(char *)v->iov_base + at, n};
		len += n;
		at = 0;
	}
	return len;
}

static void data_next(struct blk_io *io)
{
	struct blk_channel *c = io->req.channel;
	const struct blk_request *parent = io->parent;
	uint64_t left = io->end_bytes - io->pos_bytes, len;
	unsigned parts;

	/* Whole blocks: every part is a multiple of them, or it would have been bounced. */
	len = slice(parent, io->pos_bytes - parent->offset_bytes, MIN(left, c->limits.max_bytes),
		    io->iov, c->limits.max_iov, &parts);
	ASSERT(len > 0); /* len_bytes is the sum of the parts */
	if (len < left)
		atomic_stat_add(&c->stats.split, 1);
	io_issue(io, IO_DATA, parent->op, parent->flags & ~c->slow_flags, io->pos_bytes, len,
		 parts);
}

void io_next(struct blk_io *io)
{
	if (io->pos_bytes < io->end_bytes) {
		switch (io->parent->op) {
		case BLK_DISCARD:
			fallback_discard_next(io);
			return;
		case BLK_WRITE_ZEROES:
			fallback_zeroes_next(io);
			return;
		default:
			if (io->buffer)
				bounce_next(io);
			else
				data_next(io);
			return;
		}
	}
	if (io->flush_after) {
		io->flush_after = false;
		unlock(io); /* what was written stays so: nobody need wait for the flush */
		io_issue(io, IO_FLUSH, BLK_FLUSH, 0, 0, 0, 0);
		return;
	}
	io_finish(io, 0);
}

int64_t io_progress(struct blk_io *io, int64_t result)
{
	struct blk_channel *c = io->req.channel;
	uint64_t blocks;

	if (result <= 0 || (uint64_t)result > io->req.len_bytes)
		return block_errno(result);
	if ((uint64_t)result == io->req.len_bytes) {
		io->stalls = 0;
		return result;
	}
	atomic_stat_add(&c->stats.retried, 1);
	blocks = align_down((uint64_t)result, c->engine_block);
	if (blocks)
		io->stalls = 0;
	else if (++io->stalls > CHANNEL_RETRIES)
		return -EIO; /* the image ends inside of a block */
	return (int64_t)blocks;
}

void io_no_fua(struct blk_io *io)
{
	struct blk_channel *c = io->req.channel;

	disk_forget_caps(c->disk, ENGINE_CAP_FUA);
	c->slow_flags |= BLK_FUA;
	io->flush_after = true;
}

static void data_done(struct blk_io *io, int64_t result)
{
	int64_t moved;

	if (unlikely(block_not_supported(result) && io->req.flags & BLK_FUA)) {
		io_no_fua(io);
		io_next(io);
		return;
	}
	moved = io_progress(io, result);
	if (moved < 0) {
		io_finish(io, (int)moved);
		return;
	}
	io->pos_bytes += (uint64_t)moved;
	io_next(io);
}

static void io_done(struct blk_request *req, int64_t result)
{
	struct blk_io *io = container_of(req, struct blk_io, req);

	channel_returned(req->channel);
	if (unlikely(block_try_again(result))) {
		channel_retry(req->channel, req);
		return;
	}
	switch (io->stage) {
	case IO_DATA:
		data_done(io, result);
		break;
	case IO_FILL:
		bounce_filled(io, result);
		break;
	case IO_STORE:
		bounce_stored(io, result);
		break;
	case IO_RANGE:
		fallback_range_done(io, result);
		break;
	case IO_FLUSH:
		io_finish(io, disk_flush_result(req->channel->disk, result));
		break;
	}
}
