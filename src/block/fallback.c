/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What not every engine can, or not on every file: discard, zeroes.  The capabilities say what was
 * promised; what turns out not to work (EOPNOTSUPP) is forgotten for the whole disk.
 */
#include "base/checked.h"
#include "block/channel_internal.h"

#define ZERO_BYTES (64u << 10)
#define ZERO_PARTS 16u

/* Only read; not const, so that it is no part of the file. */
static char zero_buffer[ZERO_BYTES] __attribute__((aligned(BLOCK_PAGE_BYTES)));

static uint64_t range_len(const struct blk_io *io)
{
	const struct blk_channel *c = io->req.channel;
	uint64_t left = align_down(io->end_bytes, c->engine_block) - io->pos_bytes;
	uint64_t most = align_down(c->disk->engine_info.max_discard_bytes, c->engine_block);

	return most ? MIN(left, most) : left;
}

void fallback_discard_next(struct blk_io *io)
{
	if (disk_caps(io->req.channel->disk) & ENGINE_CAP_DISCARD)
		io_issue(io, IO_RANGE, BLK_DISCARD, 0, io->pos_bytes, range_len(io), 0);
	else
		io_finish(io, 0);
}

static void write_zeroes(struct blk_io *io)
{
	const struct blk_channel *c = io->req.channel;
	uint64_t len = align_down(io->end_bytes, c->engine_block) - io->pos_bytes, done = 0;
	unsigned parts = 0, most = MIN(ZERO_PARTS, c->limits.max_iov);

	len = MIN(len, (uint64_t)most * ZERO_BYTES);
	len = MIN(len, c->limits.max_bytes);
	while (done < len) {
		uint64_t n = MIN(len - done, (uint64_t)ZERO_BYTES);

		io->iov[parts++] = (struct iovec){zero_buffer, n};
		done += n;
	}
	io_issue(io, IO_DATA, BLK_WRITE, 0, io->pos_bytes, len, parts);
}

void fallback_zeroes_next(struct blk_io *io)
{
	const struct blk_channel *c = io->req.channel;
	uint32_t caps = disk_caps(c->disk);
	uint64_t mask = c->engine_block - 1;

	if (io->pos_bytes & mask || io->end_bytes - io->pos_bytes < c->engine_block)
		bounce_edge(io);
	else if (io->parent->flags & BLK_UNMAP && caps & ENGINE_CAP_WRITE_ZEROES)
		io_issue(io, IO_RANGE, BLK_WRITE_ZEROES, BLK_UNMAP, io->pos_bytes, range_len(io),
			 0);
	else if (caps & ENGINE_CAP_ZERO_NO_UNMAP)
		io_issue(io, IO_RANGE, BLK_WRITE_ZEROES, 0, io->pos_bytes, range_len(io), 0);
	else
		write_zeroes(io);
}

void fallback_range_done(struct blk_io *io, int64_t result)
{
	struct disk *d = io->req.channel->disk;

	if (block_not_supported(result)) {
		if (io->req.op == BLK_DISCARD)
			disk_forget_caps(d, ENGINE_CAP_DISCARD);
		else if (io->req.flags & BLK_UNMAP)
			disk_forget_caps(d, ENGINE_CAP_WRITE_ZEROES);
		else
			disk_forget_caps(d, ENGINE_CAP_ZERO_NO_UNMAP);
	} else if (result < 0) {
		io_finish(io, block_errno(result));
		return;
	} else {
		io->pos_bytes += io->req.len_bytes;
	}
	io_next(io);
}
