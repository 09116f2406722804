/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests whose memory, offset or length the engine cannot take: copied through a buffer, whole
 * blocks at a time.  A write of less than a block reads it first; its range is held then, see
 * range_lock.h.
 */
#include <string.h>

#include "base/checked.h"
#include "base/iov.h"
#include "block/channel_internal.h"

size_t bounce_pool_bytes(const struct disk *d)
{
	const struct engine_info *e = &d->engine_info;

	return e->memory_align > 1 || e->logical_block > 1 ? (size_t)BOUNCE_BUFFERS * BOUNCE_BYTES
							   : 0;
}

void bounce_init(struct blk_channel *c, char *memory)
{
	if (!bounce_pool_bytes(c->disk))
		return;
	/* Taken from the end: the same few pages for as long as they are enough. */
	for (unsigned i = 0; i < BOUNCE_BUFFERS; i++)
		c->buffers[i] = memory + (size_t)i * BOUNCE_BYTES;
	c->nbuffers = BOUNCE_BUFFERS;
}

bool bounce_needed(const struct blk_channel *c, const struct blk_request *req)
{
	uintptr_t bases = 0, lens = 0;

	if (req->op == BLK_DISCARD)
		return false;
	if ((req->offset_bytes | req->len_bytes) & (c->engine_block - 1))
		return true;
	if (req->op == BLK_WRITE_ZEROES)
		return false;
	for (unsigned i = 0; i < req->iovcnt; i++) {
		bases |= (uintptr_t)req->iov[i].iov_base;
		lens |= req->iov[i].iov_len;
	}
	return bases & c->base_mask || lens & c->len_mask;
}

/* Moves what is left of the chunk between the buffer and the disk. */
static void move_chunk(struct blk_io *io, enum io_stage stage)
{
	struct blk_channel *c = io->req.channel;
	uint64_t len = io->chunk_end_bytes - io->chunk_bytes - io->chunk_done_bytes;
	uint32_t flags = 0;

	len = MIN(len, c->limits.max_bytes);
	io->iov[0] = (struct iovec){io->buffer + io->chunk_done_bytes, len};
	/* Zeroes that want to be durable are flushed. */
	if (stage == IO_STORE && io->parent->op == BLK_WRITE)
		flags = io->parent->flags & ~c->slow_flags;
	io_issue(io, stage, stage == IO_FILL ? BLK_READ : BLK_WRITE, flags,
		 io->chunk_bytes + io->chunk_done_bytes, len, 1);
}

/* Where the request's part of the chunk ends. */
static uint64_t part_end(const struct blk_io *io)
{
	return MIN(io->end_bytes, io->chunk_end_bytes);
}

static void store(struct blk_io *io)
{
	const struct blk_request *parent = io->parent;
	char *to = io->buffer + (io->pos_bytes - io->chunk_bytes);
	size_t len = part_end(io) - io->pos_bytes;

	if (parent->op == BLK_WRITE_ZEROES)
		memset(to, 0, len);
	else
		iov_to_buf(parent->iov, parent->iovcnt, io->pos_bytes - parent->offset_bytes, to,
			   len);
	io->chunk_done_bytes = 0;
	move_chunk(io, IO_STORE);
}

static void begin_chunk(struct blk_io *io, uint64_t end_bytes)
{
	io->chunk_bytes = align_down(io->pos_bytes, io->req.channel->engine_block);
	io->chunk_end_bytes = end_bytes;
	io->chunk_done_bytes = 0;
	if (io->parent->op == BLK_READ || io->pos_bytes > io->chunk_bytes ||
	    io->end_bytes < end_bytes)
		move_chunk(io, IO_FILL);
	else
		store(io);
}

void bounce_next(struct blk_io *io)
{
	uint64_t block = io->req.channel->engine_block;
	uint64_t end = align_up(io->end_bytes, block);

	begin_chunk(io, MIN(end, align_down(io->pos_bytes, block) + BOUNCE_BYTES));
}

void bounce_edge(struct blk_io *io)
{
	uint64_t block = io->req.channel->engine_block;

	begin_chunk(io, align_down(io->pos_bytes, block) + block);
}

/* True when the whole chunk has been moved; else it goes on, or the request has failed. */
static bool chunk_moved(struct blk_io *io, int64_t result)
{
	int64_t moved = io_progress(io, result);

	if (moved < 0) {
		io_finish(io, (int)moved);
		return false;
	}
	io->chunk_done_bytes += (uint64_t)moved;
	if (io->chunk_bytes + io->chunk_done_bytes < io->chunk_end_bytes) {
		move_chunk(io, io->stage);
		return false;
	}
	return true;
}

void bounce_filled(struct blk_io *io, int64_t result)
{
	const struct blk_request *parent = io->parent;

	if (!chunk_moved(io, result))
		return;
	if (parent->op != BLK_READ) {
		store(io);
		return;
	}
	buf_to_iov(parent->iov, parent->iovcnt, io->pos_bytes - parent->offset_bytes,
		   io->buffer + (io->pos_bytes - io->chunk_bytes), part_end(io) - io->pos_bytes);
	io->pos_bytes = part_end(io);
	io_next(io);
}

void bounce_stored(struct blk_io *io, int64_t result)
{
	if (unlikely(block_not_supported(result) && io->req.flags & BLK_FUA)) {
		io_no_fua(io);
		move_chunk(io, IO_STORE);
		return;
	}
	if (!chunk_moved(io, result))
		return;
	io->pos_bytes = part_end(io);
	io_next(io);
}
