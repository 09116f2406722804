/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block device's data path: from a chain to a disk request and back (VIRTIO 1.2, 5.2.6).
 *
 * Any layout is taken (2.7.4.3): the header is the first 16 device-readable bytes, the status the
 * last device-writable byte, data all in between, however they are cut into descriptors.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "base/checked.h"
#include "base/iov.h"
#include "device/virtio_blk_internal.h"

static struct virtio_blk_slot *slot_take(struct virtio_blk_queue *q)
{
	struct virtio_blk_slot *s = q->free;

	q->free = s->next_free;
	q->nfree--;
	return s;
}

static void slot_put(struct virtio_blk_slot *s)
{
	struct virtio_blk_queue *q = s->queue;

	if (unlikely(s->large)) {
		s->large = false;
		q->large_used &= ~(1u << ((unsigned)(s->iov - q->large) / q->large_parts));
	}
	s->next_free = q->free;
	q->free = s;
	q->nfree++;
	queue_room_freed(&q->vq->queue);
}

/* The one map from errno to the device's status. */
static uint8_t status_of(int ret)
{
	switch (ret) {
	case 0:
		return VIRTIO_BLK_S_OK;
	case -EOPNOTSUPP:
		return VIRTIO_BLK_S_UNSUPP;
	default:
		return VIRTIO_BLK_S_IOERR;
	}
}

static void slot_finish(struct virtio_blk_slot *s, uint8_t status)
{
	struct queue_stats *stats = &s->queue->vq->queue.stats;

	*s->status = status;
	if (unlikely(status != VIRTIO_BLK_S_OK)) {
		atomic_stat_add(&stats->errors, 1);
	} else if (s->type == VIRTIO_BLK_T_IN || s->type == VIRTIO_BLK_T_OUT) {
		atomic_stat_add(&stats->bytes, s->req.len_bytes);
	}
	/* A failed read promises no data: only the status byte counts. */
	virtq_push(s->queue->vq, &s->token, status == VIRTIO_BLK_S_OK ? s->written_bytes : 1);
	slot_put(s);
}

/* No byte to put a status in: the chain goes back with nothing written. */
static void slot_give_up(struct virtio_blk_slot *s)
{
	atomic_stat_add(&s->queue->vq->queue.stats.errors, 1);
	virtq_push(s->queue->vq, &s->token, 0);
	slot_put(s);
}

static void on_complete(struct blk_request *req, int ret)
{
	slot_finish(container_of(req, struct virtio_blk_slot, req), status_of(ret));
}

/* Sectors to bytes within the capacity, and a multiple of the block.  0 or -EINVAL. */
static int check_range(struct virtio_blk *blk, uint64_t sector, uint64_t len_bytes,
		       uint64_t *offset_bytes)
{
	uint64_t block = disk_info(blk->disk)->block_bytes;

	if (!checked_mul(sector, (uint64_t)1 << VIRTIO_BLK_SECTOR_SHIFT, offset_bytes) ||
	    !range_within(*offset_bytes, len_bytes, disk_capacity_bytes(blk->disk)) ||
	    (*offset_bytes | len_bytes) & (block - 1))
		return -EINVAL;
	return 0;
}

static void submit(struct virtio_blk_slot *s, enum blk_op op, uint32_t flags)
{
	s->req.op = op;
	s->req.flags = flags;
	s->req.complete = on_complete;
	blk_submit(s->queue->channel, &s->req);
}

/* relaxed: see the field */
static uint32_t durability(struct virtio_blk *blk)
{
	return atomic_load_relaxed(&blk->writethrough) ? BLK_FUA : 0;
}

static void start_rw(struct virtio_blk_slot *s, uint64_t sector, const struct iovec *iov,
		     unsigned iovcnt, uint64_t len_bytes)
{
	struct virtio_blk *blk = s->queue->dev;
	bool write = s->type == VIRTIO_BLK_T_OUT;

	s->req.iov = iov;
	s->req.iovcnt = iovcnt;
	s->req.len_bytes = len_bytes;
	/* used.len has 32 bits: no driver can mean a transfer that does not fit. */
	if ((write && blk->read_only) || len_bytes >= UINT32_MAX ||
	    check_range(blk, sector, len_bytes, &s->req.offset_bytes) < 0)
		slot_finish(s, VIRTIO_BLK_S_IOERR);
	else if (!len_bytes)
		slot_finish(s, VIRTIO_BLK_S_OK);
	else if (write)
		submit(s, BLK_WRITE, durability(blk));
	else
		submit(s, BLK_READ, 0);
}

/* Copies segment i and checks the copy.  The status to fail with, or S_OK. */
static uint8_t read_segment(struct virtio_blk_slot *s, unsigned i)
{
	struct virtio_blk *blk = s->queue->dev;
	struct virtio_blk_discard_write_zeroes seg;
	uint32_t flags, sectors, most;

	if (iov_to_buf(s->segments, s->segments_iovcnt, (uint64_t)i * sizeof(seg), &seg,
		       sizeof(seg)) != sizeof(seg))
		return VIRTIO_BLK_S_IOERR;
	flags = le32toh(seg.flags);
	sectors = le32toh(seg.num_sectors);
	/* 5.2.6.2: unknown flags, and unmap in a discard, are UNSUPP. */
	if (flags & ~(uint32_t)VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP ||
	    (flags && s->type == VIRTIO_BLK_T_DISCARD))
		return VIRTIO_BLK_S_UNSUPP;
	most = s->type == VIRTIO_BLK_T_DISCARD || disk_info(blk->disk)->discard
		       ? VIRTIO_BLK_RANGE_SECTORS
		       : VIRTIO_BLK_WRITTEN_SECTORS;
	s->req.len_bytes = (uint64_t)sectors << VIRTIO_BLK_SECTOR_SHIFT;
	if (sectors > most ||
	    check_range(blk, le64toh(seg.sector), s->req.len_bytes, &s->req.offset_bytes) < 0)
		return VIRTIO_BLK_S_IOERR;
	s->req.flags = flags ? BLK_UNMAP : 0;
	return VIRTIO_BLK_S_OK;
}

static void on_segment_complete(struct blk_request *req, int ret);

/* Submits the next segment that has a length, or finishes. */
static void next_segment(struct virtio_blk_slot *s)
{
	while (s->segment < s->segment_count) {
		/* Read again, and checked again: the guest may have changed it since. */
		uint8_t status = read_segment(s, s->segment++);

		if (status != VIRTIO_BLK_S_OK) {
			slot_finish(s, status);
			return;
		}
		if (!s->req.len_bytes)
			continue;
		s->req.iov = NULL;
		s->req.iovcnt = 0;
		s->req.complete = on_segment_complete;
		if (s->type == VIRTIO_BLK_T_DISCARD) {
			s->req.op = BLK_DISCARD;
		} else {
			s->req.op = BLK_WRITE_ZEROES;
			s->req.flags |= durability(s->queue->dev);
		}
		blk_submit(s->queue->channel, &s->req);
		return;
	}
	slot_finish(s, VIRTIO_BLK_S_OK);
}

static void on_segment_complete(struct blk_request *req, int ret)
{
	struct virtio_blk_slot *s = container_of(req, struct virtio_blk_slot, req);

	if (ret < 0)
		slot_finish(s, status_of(ret));
	else
		next_segment(s);
}

static void start_ranges(struct virtio_blk_slot *s, const struct iovec *iov, unsigned iovcnt,
			 uint64_t len_bytes)
{
	struct virtio_blk *blk = s->queue->dev;
	const size_t one = sizeof(struct virtio_blk_discard_write_zeroes);

	if (s->type == VIRTIO_BLK_T_DISCARD && !blk->discard && !blk->read_only) {
		slot_finish(s, VIRTIO_BLK_S_UNSUPP);
		return;
	}
	if (blk->read_only || !len_bytes || len_bytes % one ||
	    len_bytes / one > VIRTIO_BLK_MAX_RANGE_SEGS) {
		slot_finish(s, VIRTIO_BLK_S_IOERR);
		return;
	}
	s->segments = iov;
	s->segments_iovcnt = iovcnt;
	s->segment_count = (unsigned)(len_bytes / one);
	/* All of them before the first: a bad request leaves the disk as it was. */
	for (unsigned i = 0; i < s->segment_count; i++) {
		uint8_t status = read_segment(s, i);

		if (status != VIRTIO_BLK_S_OK) {
			slot_finish(s, status);
			return;
		}
	}
	s->segment = 0;
	next_segment(s);
}

static void answer_id(struct virtio_blk_slot *s, const struct iovec *iov, unsigned iovcnt)
{
	struct virtio_blk *blk = s->queue->dev;
	size_t n = buf_to_iov(iov, iovcnt, 0, blk->serial, sizeof(blk->serial));

	s->written_bytes = (uint32_t)n + 1;
	slot_finish(s, VIRTIO_BLK_S_OK);
}

/* Removes the first len bytes of iov[0..*n), returning the new start.  They are there. */
static struct iovec *trim_front(struct iovec *iov, unsigned *n, size_t len)
{
	while (len && len >= iov->iov_len) {
		len -= iov->iov_len;
		iov++;
		(*n)--;
	}
	if (len) {
		iov->iov_base = (char *)iov->iov_base + len;
		iov->iov_len -= len;
	}
	return iov;
}

/* Takes the last device-writable byte for the status.  False if there is none. */
static bool find_status(struct virtio_blk_slot *s, struct virtq_chain *c)
{
	struct iovec *last;

	if (!c->in_num || c->last_in_bad)
		return false;
	last = &c->iov[c->out_num + c->in_num - 1];
	last->iov_len--;
	s->status = (uint8_t *)last->iov_base + last->iov_len;
	if (!last->iov_len)
		c->in_num--;
	return true;
}

static void start_request(struct virtio_blk_slot *s, struct virtq_chain *c)
{
	struct virtio_blk_outhdr header;
	struct iovec *out = c->iov, *in = c->iov + c->out_num;
	uint64_t in_bytes;

	s->token = c->token;
	s->type = ~0u;
	if (unlikely(!find_status(s, c))) {
		slot_give_up(s);
		return;
	}
	s->written_bytes = 1;
	if (unlikely(c->bad ||
		     iov_to_buf(out, c->out_num, 0, &header, sizeof(header)) != sizeof(header))) {
		slot_finish(s, VIRTIO_BLK_S_IOERR);
		return;
	}
	out = trim_front(out, &c->out_num, sizeof(header));
	s->type = le32toh(header.type);
	switch (s->type) {
	case VIRTIO_BLK_T_IN:
		in_bytes = iov_length(in, c->in_num);
		s->written_bytes = (uint32_t)in_bytes + 1;
		start_rw(s, le64toh(header.sector), in, c->in_num, in_bytes);
		break;
	case VIRTIO_BLK_T_OUT:
		start_rw(s, le64toh(header.sector), out, c->out_num, iov_length(out, c->out_num));
		break;
	case VIRTIO_BLK_T_FLUSH:
		s->req.iov = NULL;
		s->req.iovcnt = 0;
		s->req.offset_bytes = s->req.len_bytes = 0;
		submit(s, BLK_FLUSH, 0);
		break;
	case VIRTIO_BLK_T_GET_ID:
		answer_id(s, in, c->in_num);
		break;
	case VIRTIO_BLK_T_DISCARD:
	case VIRTIO_BLK_T_WRITE_ZEROES:
		start_ranges(s, out, c->out_num, iov_length(out, c->out_num));
		break;
	default:
		slot_finish(s, VIRTIO_BLK_S_UNSUPP);
	}
}

/* Pops into the smallest array that holds the chain.  As virtq_pop(); -ENOBUFS = none is free. */
static int pop(struct virtio_blk_slot *s, struct virtq_chain *c)
{
	struct virtio_blk_queue *q = s->queue;
	int ret;

	s->iov = s->inline_iov;
	c->iov = s->iov;
	c->max = VIRTIO_BLK_INLINE_IOV;
	ret = virtq_pop(q->vq, c);
	if (likely(ret != -ENOBUFS))
		return ret;
	s->iov = q->medium + (size_t)(s - q->slots) * VIRTIO_BLK_MEDIUM_IOV;
	c->iov = s->iov;
	c->max = VIRTIO_BLK_MEDIUM_IOV;
	ret = virtq_pop(q->vq, c);
	if (ret != -ENOBUFS)
		return ret;
	for (unsigned i = 0; i < VIRTIO_BLK_LARGE_IOVS; i++) {
		if (q->large_used & (1u << i))
			continue;
		s->iov = q->large + (size_t)i * q->large_parts;
		c->iov = s->iov;
		c->max = q->large_parts;
		ret = virtq_pop(q->vq, c);
		if (ret == 1) {
			q->large_used |= 1u << i;
			s->large = true;
		}
		return ret;
	}
	return -ENOBUFS;
}

static unsigned queue_room(struct queue *base)
{
	struct virtio_blk_queue *q = base->device_data;

	return MIN(q->nfree, q->batch_most);
}

static unsigned queue_handle(struct queue *base, unsigned max)
{
	struct virtio_blk_queue *q = base->device_data;
	unsigned taken = 0;

	while (taken < max) {
		struct virtio_blk_slot *s = slot_take(q);
		struct virtq_chain chain;

		if (pop(s, &chain) != 1) {
			s->next_free = q->free;
			q->free = s;
			q->nfree++;
			break;
		}
		start_request(s, &chain);
		taken++;
	}
	return taken;
}

const struct queue_device_ops virtio_blk_queue_ops = {
	.room = queue_room,
	.handle = queue_handle,
};
