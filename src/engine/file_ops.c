/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"

int file_fallocate_mode(const struct file *file, const struct blk_request *req)
{
	bool may_unmap = req->op == BLK_DISCARD || (req->flags & BLK_UNMAP);

	if (may_unmap && file->punch_hole)
		return FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	if (req->op == BLK_WRITE_ZEROES && file->zero_range)
		return FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
	return -EOPNOTSUPP;
}

static int zero_or_discard_file(const struct file *file, const struct blk_request *req)
{
	int mode = file_fallocate_mode(file, req);

	if (mode < 0)
		return mode;
	if (fallocate(file->fd, mode, (off_t)req->offset_bytes, (off_t)req->len_bytes) < 0)
		return -errno;
	return 0;
}

static int zero_or_discard_device(const struct file *file, const struct blk_request *req)
{
	uint64_t range[2] = {req->offset_bytes, req->len_bytes};

	if (req->op == BLK_DISCARD) {
		if (!file->discard)
			return -EOPNOTSUPP;
		return ioctl(file->fd, BLKDISCARD, range) < 0 ? -errno : 0;
	}
	/* On a device a hole is "zero and deallocate, or fail if that is not one operation". */
	if ((req->flags & BLK_UNMAP) &&
	    fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)req->offset_bytes, (off_t)req->len_bytes) == 0)
		return 0;
	return ioctl(file->fd, BLKZEROOUT, range) < 0 ? -errno : 0;
}

static int zero_or_discard(const struct file *file, const struct blk_request *req)
{
	int ret = file->block_device ? zero_or_discard_device(file, req)
				     : zero_or_discard_file(file, req);

	if (ret == 0 && (req->flags & BLK_FUA))
		ret = fdatasync(file->fd) < 0 ? -errno : 0;
	return ret;
}

int64_t file_do(const struct file *file, const struct blk_request *req)
{
	off_t offset = (off_t)req->offset_bytes;
	int iovcnt = (int)req->iovcnt;
	ssize_t n;

	switch (req->op) {
	case BLK_READ:
		n = preadv2(file->fd, req->iov, iovcnt, offset, 0);
		return n < 0 ? -errno : n;
	case BLK_WRITE:
		n = pwritev2(file->fd, req->iov, iovcnt, offset,
			     req->flags & BLK_FUA ? RWF_DSYNC : 0);
		return n < 0 ? -errno : n;
	case BLK_FLUSH:
		return fdatasync(file->fd) < 0 ? -errno : 0;
	case BLK_DISCARD:
	case BLK_WRITE_ZEROES:
		return zero_or_discard(file, req);
	default:
		return -EOPNOTSUPP;
	}
}

/* ---- on the worker pool ---- */

static struct blk_request *work_request(struct worker_item *w)
{
	return container_of(w, struct blk_request, engine.work);
}

static struct file_ops *request_ops(const struct blk_request *req)
{
	return (struct file_ops *)(uintptr_t)req->engine.word[0];
}

static void work_do(struct worker_item *w)
{
	struct blk_request *req = work_request(w);

	req->engine.result = file_do(request_ops(req)->file, req);
}

static void work_done(struct worker_item *w)
{
	struct blk_request *req = work_request(w);

	request_ops(req)->in_flight--;
	req->engine_done(req, req->engine.result);
}

bool file_ops_submit(struct file_ops *ops, struct blk_request *req)
{
	if (ops->in_flight >= FILE_OPS_DEPTH)
		return false;
	ops->in_flight++;
	req->engine.word[0] = (uintptr_t)ops;
	req->engine.work.work = work_do;
	req->engine.work.done = work_done;
	worker_submit(worker_pool_default(), &req->engine.work);
	return true;
}

unsigned file_ops_submit_batch(struct file_ops *ops, struct blk_request **reqs, unsigned n)
{
	unsigned accepted = 0;

	while (accepted < n && file_ops_submit(ops, reqs[accepted]))
		accepted++;
	return accepted;
}
