/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linux-aio: io_submit for a batch, completions read from the kernel's ring in user space.
 *
 * The kernel's interface is asynchronous with O_DIRECT only; without it io_submit does the I/O
 * before it returns.  A buffered file is therefore served by the worker pool (file_ops), as are
 * the operations that linux-aio does not have.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/linux_aio_queue.h"

#ifndef RWF_DSYNC
#define RWF_DSYNC 2
#endif

#define AIO_DEPTH_MAX  4096u
#define AIO_RING_MAGIC 0xa10a10a1u

/* ---- open ---- */

static long read_number(const char *path)
{
	char text[32] = "";
	fd_cleanup int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -1;
	return strtol(text, NULL, 10);
}

static int context_create(unsigned depth, aio_context_t *context, struct error *err)
{
	*context = 0;
	if (syscall(SYS_io_setup, depth, context) == 0)
		return 0;
	if (errno == EAGAIN)
		return error_set(err, -EAGAIN,
				 "linux-aio: no room for %u requests: the system's limit "
				 "fs.aio-max-nr is %ld, in use are %ld; raise it "
				 "(sysctl fs.aio-max-nr=...) or take engine=io_uring",
				 depth, read_number("/proc/sys/fs/aio-max-nr"),
				 read_number("/proc/sys/fs/aio-nr"));
	if (errno == ENOSYS || errno == EPERM)
		return error_set(err, -errno,
				 "linux-aio: not available here (io_setup: %s); take "
				 "engine=io_uring or engine=threads",
				 strerror(errno));
	return error_set(err, -errno, "linux-aio: io_setup: %s", strerror(errno));
}

/* A write of no bytes asks whether this kernel (4.13 and later) takes flags for a request. */
static bool rw_flags_work(aio_context_t context, int fd)
{
	struct iocb iocb = {
		.aio_lio_opcode = IOCB_CMD_PWRITE,
		.aio_fildes = (uint32_t)fd,
		.aio_rw_flags = RWF_DSYNC,
	};
	struct iocb *list = &iocb;
	struct io_event event;

	if (syscall(SYS_io_submit, context, 1L, &list) != 1)
		return false;
	return syscall(SYS_io_getevents, context, 1L, 1L, &event, NULL) == 1 && event.res == 0;
}

/* A context for a moment: is linux-aio to be had here, and what does it know? */
static int check_kernel(struct engine *e, struct engine_info *info, struct error *err)
{
	aio_context_t context;
	int ret = context_create(1, &context, err);

	if (ret < 0)
		return ret;
	e->rw_flags = (info->caps & ENGINE_CAP_FUA) && rw_flags_work(context, e->file.fd);
	if (!e->rw_flags)
		info->caps &= ~(uint32_t)ENGINE_CAP_FUA;
	syscall(SYS_io_destroy, context);
	return 0;
}

static int aio_open(const struct engine_config *config, struct engine **engine,
		    struct engine_info *info, struct error *err)
{
	struct engine *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return error_set(err, -ENOMEM, "out of memory");
	ret = file_probe(config, &e->file, info, err);
	if (ret == 0 && e->file.direct)
		ret = check_kernel(e, info, err);
	if (ret < 0) {
		free(e);
		return ret;
	}
	if (!e->file.direct)
		log_info("%s: linux-aio is asynchronous with O_DIRECT only: this image is read "
			 "and written by worker threads",
			 config->path ? config->path : "image");
	*engine = e;
	return 0;
}

static void aio_close(struct engine *e)
{
	free(e);
}

static int64_t aio_refresh_size(struct engine *e)
{
	return file_size(e->file.fd);
}

/* ---- queues ---- */

static unsigned queue_depth(const struct file *file, unsigned wanted)
{
	unsigned depth = MIN(MAX(wanted, 1u), AIO_DEPTH_MAX);

	/* Beyond what the device queues io_submit sleeps, and every queue of this thread with it.
	 */
	if (file->nr_requests)
		depth = MIN(depth, file->nr_requests);
	return depth;
}

static int aio_queue_create(struct engine *e, const struct engine_queue_config *config,
			    struct engine_queue **queue, struct error *err)
{
	unsigned depth = queue_depth(&e->file, config->depth);
	struct engine_queue *q = calloc(1, sizeof(*q) + depth * sizeof(struct iocb *));
	struct aio_ring *ring;
	int ret = 0;

	if (!q)
		return error_set(err, -ENOMEM, "out of memory");
	q->engine = e;
	q->depth = depth;
	q->event_fd = -1;
	file_ops_init(&q->ops, &e->file);
	if (e->file.direct) {
		q->event_fd = eventfd_create();
		if (q->event_fd < 0)
			ret = error_set(err, q->event_fd, "linux-aio: eventfd: %s",
					strerror(-q->event_fd));
		else
			ret = context_create(depth, &q->context, err);
		if (ret < 0) {
			fd_close(&q->event_fd);
			free(q);
			return ret;
		}
		ring = (struct aio_ring *)q->context;
		if (ring->magic == AIO_RING_MAGIC && !ring->incompat_features &&
		    ring->header_len_bytes == sizeof(*ring))
			q->ring = ring;
	}
	*queue = q;
	return 0;
}

/* The caller has drained the queue; io_destroy would wait for the rest, but no longer tell. */
static void aio_queue_destroy(struct engine_queue *q)
{
	ASSERT(!q->in_flight && !q->ops.in_flight);
	if (q->context)
		syscall(SYS_io_destroy, q->context);
	fd_close(&q->event_fd);
	free(q);
}

/* ---- submission ---- */

static bool kernel_does(const struct engine *e, const struct blk_request *req)
{
	switch (req->op) {
	case BLK_READ:
	case BLK_WRITE:
		return true;
	case BLK_FLUSH: /* handed to a kernel thread by io_submit, which does not wait */
		return !atomic_load_relaxed(&e->no_fdsync); /* relaxed: each finds out alone */
	default:
		return false;
	}
}

static void prepare(struct engine_queue *q, struct iocb *iocb, struct blk_request *req)
{
	memset(iocb, 0, sizeof(*iocb));
	iocb->aio_data = (uintptr_t)req;
	iocb->aio_fildes = (uint32_t)q->engine->file.fd;
	iocb->aio_flags = IOCB_FLAG_RESFD;
	iocb->aio_resfd = (uint32_t)q->event_fd;
	if (req->op == BLK_FLUSH) {
		iocb->aio_lio_opcode = IOCB_CMD_FDSYNC;
		return;
	}
	iocb->aio_offset = (int64_t)req->offset_bytes;
	if (req->iovcnt == 1) {
		iocb->aio_lio_opcode = req->op == BLK_READ ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
		iocb->aio_buf = (uintptr_t)req->iov[0].iov_base;
		iocb->aio_nbytes = req->iov[0].iov_len;
	} else {
		iocb->aio_lio_opcode = req->op == BLK_READ ? IOCB_CMD_PREADV : IOCB_CMD_PWRITEV;
		iocb->aio_buf = (uintptr_t)req->iov;
		iocb->aio_nbytes = req->iovcnt;
	}
	if (req->op == BLK_WRITE && (req->flags & BLK_FUA) && q->engine->rw_flags)
		iocb->aio_rw_flags = RWF_DSYNC;
}

/* Words 0 to 7 of a request are its iocb. */
#define WORD_NEXT_REFUSED 8

/*
 * io_submit refused the first of a batch for good, before it took anything.  The request is ours
 * all the same and ends with the kernel's error; not yet, because engine_done may submit again
 * and the batch is being walked.  False: it could not be taken.
 */
static noinline_cold bool aio_refused(struct engine_queue *q, struct blk_request *req, int err)
{
	if (req->op == BLK_FLUSH && err == -EINVAL) { /* Linux before 4.18 */
		/* relaxed: a hint; another queue that misses it finds out by itself */
		atomic_store_relaxed(&q->engine->no_fdsync, true);
		return file_ops_submit(&q->ops, req);
	}
	req->engine.result = err;
	req->engine.word[WORD_NEXT_REFUSED] = (uintptr_t)q->refused;
	q->refused = req;
	return true;
}

static noinline_cold void end_refused(struct engine_queue *q)
{
	struct blk_request *req;

	while ((req = q->refused)) {
		q->refused = (struct blk_request *)(uintptr_t)req->engine.word[WORD_NEXT_REFUSED];
		req->engine_done(req, req->engine.result);
	}
}

/* Takes a run of requests that the kernel does.  One system call unless one is refused. */
static unsigned submit_run(struct engine_queue *q, struct blk_request **reqs, unsigned n)
{
	unsigned accepted = 0;
	long ret;

	n = MIN(n, q->depth - q->in_flight);
	for (unsigned i = 0; i < n; i++) {
		_Static_assert(sizeof(struct iocb) == WORD_NEXT_REFUSED * sizeof(uint64_t), "");
		q->batch[i] = (struct iocb *)reqs[i]->engine.word;
		prepare(q, q->batch[i], reqs[i]);
	}
	while (accepted < n) {
		/* A count that is less than asked is followed by the refusal's reason. */
		ret = syscall(SYS_io_submit, q->context, (long)(n - accepted), q->batch + accepted);
		if (ret >= 0) {
			q->in_flight += (unsigned)ret;
			accepted += (unsigned)ret;
			break;
		}
		if (errno == EAGAIN || errno == EINTR || errno == ENOMEM)
			break;
		if (!aio_refused(q, reqs[accepted], -errno))
			break;
		accepted++;
	}
	return accepted;
}

static unsigned aio_submit_batch(struct engine_queue *q, struct blk_request **reqs, unsigned n)
{
	unsigned accepted = 0;

	if (!q->context)
		return file_ops_submit_batch(&q->ops, reqs, n);
	while (accepted < n) {
		unsigned run = 0, took;

		while (accepted + run < n && kernel_does(q->engine, reqs[accepted + run]))
			run++;
		took = submit_run(q, reqs + accepted, run);
		accepted += took;
		if (took < run)
			break;
		if (accepted < n) {
			if (!file_ops_submit(&q->ops, reqs[accepted]))
				break;
			accepted++;
		}
	}
	if (unlikely(q->refused != NULL))
		end_refused(q);
	return accepted;
}

/* ---- completion ---- */

/* res is a signed number of 64 bits: bytes, or a negative errno. */
static void complete(struct engine_queue *q, const struct io_event *event)
{
	struct blk_request *req = (struct blk_request *)(uintptr_t)event->data;

	q->in_flight--;
	req->engine_done(req, (int64_t)event->res);
}

static unsigned poll_ring(struct engine_queue *q, struct aio_ring *ring)
{
	unsigned done = 0;

	/*
	 * engine_done may submit again, and even come back here: the head goes on before it, and
	 * one call ends no more than the ring holds.
	 */
	while (done < q->depth && ring->head != atomic_load_acquire(&ring->tail)) { /* [CQ1] */
		struct io_event event = ring->events[ring->head];

		/* [CQ1]: the kernel may fill the slot again */
		atomic_store_release(&ring->head, ring->head + 1 == ring->nr ? 0 : ring->head + 1);
		complete(q, &event);
		done++;
	}
	return done;
}

/* A ring that we cannot read: a system call takes the events out of it. */
static bool take_events(struct engine_queue *q)
{
	struct timespec now = {0, 0};
	long n;

	if (q->next_event < q->nevents)
		return true;
	if (!q->in_flight)
		return false;
	n = syscall(SYS_io_getevents, q->context, 0L, (long)ARRAY_SIZE(q->events), q->events, &now);
	q->next_event = 0;
	q->nevents = n > 0 ? (unsigned)n : 0;
	return q->nevents > 0;
}

static unsigned poll_kernel(struct engine_queue *q)
{
	unsigned done = 0;

	while (done < q->depth && take_events(q)) {
		struct io_event event = q->events[q->next_event++];

		complete(q, &event);
		done++;
	}
	return done;
}

static unsigned aio_poll(struct engine_queue *q)
{
	if (q->ring)
		return poll_ring(q, q->ring);
	return q->context ? poll_kernel(q) : 0;
}

/* The kernel writes the eventfd with every completion and cannot be asked not to. */
static void aio_disarm(struct engine_queue *q)
{
}

/*
 * No flag of ours, and so no fence: the eventfd is written after the tail, always.  But the look is
 * needed: the owner may have read the eventfd after the last poll.
 */
static bool aio_arm(struct engine_queue *q)
{
	if (q->ring)
		return q->ring->head != atomic_load_acquire(&q->ring->tail); /* [CQ1] */
	return q->context && take_events(q);
}

static int aio_event_fd(struct engine_queue *q)
{
	return q->event_fd;
}

const struct engine_ops engine_linux_aio = {
	.name = "linux-aio",
	.open = aio_open,
	.close = aio_close,
	.refresh_size = aio_refresh_size,
	.queue_create = aio_queue_create,
	.queue_destroy = aio_queue_destroy,
	.submit_batch = aio_submit_batch,
	.poll = aio_poll,
	.disarm = aio_disarm,
	.arm = aio_arm,
	.event_fd = aio_event_fd,
};
