/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submission of the io_uring engine.
 *
 * A batch is one entry into the kernel.  What the kernel did not consume is taken back out of the
 * submission ring before the call returns, so that the ring is empty between calls and "accepted"
 * means that the kernel has it.  Without SQPOLL the kernel reads that ring during the call only.
 */
#include <errno.h>

#include "base/atomic.h"
#include "engine/io_uring_queue.h"

#ifndef RWF_DSYNC
#define RWF_DSYNC 2
#endif

/* Word of a request while it is on q->refused. */
#define WORD_NEXT_REFUSED 0

static bool kernel_does(const struct engine_queue *q, const struct blk_request *req)
{
	switch (req->op) {
	case BLK_READ:
	case BLK_WRITE:
	case BLK_FLUSH:
		return true;
	default: /* a device has ioctls for these; durable zeroes are two calls */
		return !q->engine->file.block_device && !(req->flags & BLK_FUA) &&
		       file_fallocate_mode(&q->engine->file, req) >= 0;
	}
}

static void prepare_rw(const struct engine_queue *q, struct io_uring_sqe *sqe,
		       const struct blk_request *req, int fd)
{
	bool is_read = req->op == BLK_READ;

	if (req->iovcnt == 1) {
		const struct iovec *iov = &req->iov[0];
		int piece = q->view.npieces ? uring_view_find(&q->view, iov->iov_base, iov->iov_len)
					    : -1;

		io_uring_prep_rw(is_read ? IORING_OP_READ : IORING_OP_WRITE, sqe, fd, iov->iov_base,
				 (unsigned)iov->iov_len, req->offset_bytes);
		if (piece >= 0) {
			sqe->opcode = is_read ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED;
			sqe->buf_index = (uint16_t)piece;
		}
	} else {
		io_uring_prep_rw(is_read ? IORING_OP_READV : IORING_OP_WRITEV, sqe, fd, req->iov,
				 req->iovcnt, req->offset_bytes);
	}
	if (!is_read && (req->flags & BLK_FUA))
		sqe->rw_flags = RWF_DSYNC;
}

static void prepare(struct engine_queue *q, struct io_uring_sqe *sqe, struct blk_request *req)
{
	int fd = q->fixed_file ? 0 : q->engine->file.fd;

	switch (req->op) {
	case BLK_READ:
	case BLK_WRITE:
		prepare_rw(q, sqe, req, fd);
		break;
	case BLK_FLUSH: /* done by the kernel's own workers: entering does not wait for it */
		io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
		break;
	default:
		io_uring_prep_fallocate(sqe, fd, file_fallocate_mode(&q->engine->file, req),
					(off_t)req->offset_bytes, (off_t)req->len_bytes);
		break;
	}
	if (q->fixed_file)
		sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data(sqe, req);
}

/* Takes back what the kernel has not consumed; returns how many that were. */
static unsigned take_back(struct io_uring *ring)
{
	struct io_uring_sq *sq = &ring->sq;
	unsigned head = *sq->khead; /* ours to read plainly: the kernel stores it in our call */
	unsigned left = sq->sqe_tail - head;

	sq->sqe_head = sq->sqe_tail = head;
	atomic_store_release(sq->ktail, head); /* [SQ1] */
	return left;
}

static bool is_temporary(int err)
{
	return err == -EAGAIN || err == -EBUSY || err == -EINTR || err == -ENOMEM;
}

/* The kernel will never take anything from this ring: all of the batch ends with the error. */
static noinline_cold void refuse(struct engine_queue *q, struct blk_request **reqs, unsigned n,
				 int err)
{
	while (n--) {
		if (!kernel_does(q, reqs[n]))
			continue;
		reqs[n]->engine.result = err;
		reqs[n]->engine.word[WORD_NEXT_REFUSED] = (uintptr_t)q->refused;
		q->refused = reqs[n];
	}
}

/* After the batch has been walked: engine_done may submit again. */
static noinline_cold void end_refused(struct engine_queue *q)
{
	struct blk_request *req;

	while ((req = q->refused)) {
		q->refused = (struct blk_request *)(uintptr_t)req->engine.word[WORD_NEXT_REFUSED];
		req->engine_done(req, req->engine.result);
	}
}

/*
 * Which part of the batch, from its front, was accepted, when not all of it went to the ring and
 * was consumed: `consumed` of the ring's requests, and what the worker pool takes among them.
 */
static unsigned accept_in_order(struct engine_queue *q, struct blk_request **reqs, unsigned n,
				unsigned consumed)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		if (kernel_does(q, reqs[i])) {
			if (!consumed)
				break;
			consumed--;
		} else if (!file_ops_submit(&q->ops, reqs[i])) {
			break;
		}
	}
	return i;
}

unsigned uring_submit_batch(struct engine_queue *q, struct blk_request **reqs, unsigned n)
{
	unsigned room = q->depth - q->in_flight, pool_room = FILE_OPS_DEPTH - q->ops.in_flight;
	unsigned in_ring = 0, in_pool = 0, i;
	int ret = 0;

	/* [MEM2] A message of the loop says so, too, but a batch may come before it. */
	if (unlikely(atomic_load_acquire(&q->engine->memory.generation) != q->view.generation))
		uring_view_update(&q->view);
	for (i = 0; i < n; i++) {
		struct io_uring_sqe *sqe;

		if (!kernel_does(q, reqs[i])) {
			if (in_pool == pool_room)
				break;
			in_pool++;
			continue;
		}
		sqe = in_ring < room ? io_uring_get_sqe(&q->ring) : NULL;
		if (!sqe)
			break;
		prepare(q, sqe, reqs[i]);
		in_ring++;
	}
	n = i;
	if (in_ring) {
		ret = io_uring_submit(&q->ring);
		if (unlikely(ret != (int)in_ring))
			in_ring -= take_back(&q->ring);
		q->in_flight += in_ring;
	}
	if (unlikely(ret < 0 && !is_temporary(ret))) {
		refuse(q, reqs, n, ret);
		in_ring = n;
	}
	if (unlikely(in_pool || in_ring < n))
		n = accept_in_order(q, reqs, n, in_ring);
	if (unlikely(q->refused != NULL))
		end_refused(q);
	return n;
}
