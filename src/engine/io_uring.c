/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_uring: one ring a queue, made by the thread that uses it.
 *
 * Where the kernel has it, a finished request stays with the kernel until we enter it
 * (DEFER_TASKRUN): no interrupt of this thread, and whole batches of completions.  What tells of
 * such a request is a bit in the submission ring's flags (TASKRUN_FLAG), so whoever looks for
 * completions looks at the completion ring's tail and at those flags.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/fd.h"
#include "engine/io_uring_queue.h"

#define URING_DEPTH_MAX 4096u

/* uapi of Linux 5.18 to 6.1, for older headers: the kernel decides what it knows. */
#ifndef IORING_SETUP_SUBMIT_ALL
#define IORING_SETUP_SUBMIT_ALL (1U << 7)
#endif
#ifndef IORING_SETUP_COOP_TASKRUN
#define IORING_SETUP_COOP_TASKRUN (1U << 8)
#endif
#ifndef IORING_SETUP_TASKRUN_FLAG
#define IORING_SETUP_TASKRUN_FLAG (1U << 9)
#endif
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif
#ifndef IORING_SQ_TASKRUN
#define IORING_SQ_TASKRUN (1U << 2)
#endif

/* ---- making rings ---- */

/*
 * Best first; a kernel refuses flags that it does not know with EINVAL.  The first is for rings
 * that one thread uses and ends: what is deferred to a thread that has gone, or does not come
 * again, never completes.  The second leaves that to the kernel.  Over a file it made no difference
 * to who looks that could be told from noise; to who sleeps with 32 in flight it cost some 4 % more
 * CPU time and up to 6 % of the requests a second, on a machine where neither is certain.
 */
static const unsigned setup_flags[] = {
	IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
		IORING_SETUP_TASKRUN_FLAG,                                               /* 6.1 */
	IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, /* 5.19 */
	0,
};

static int ring_failed(int ret, unsigned depth, struct error *err)
{
	switch (ret) {
	case -ENOSYS:
		return error_set(err, ret, "io_uring: this kernel does not have it");
	case -EPERM:
	case -EACCES:
		return error_set(err, ret,
				 "io_uring: not permitted here (kernel.io_uring_disabled, or a "
				 "seccomp filter); take engine=linux-aio or engine=threads");
	case -ENOMEM:
		return error_set(err, ret,
				 "io_uring: no memory for a ring of %u requests (on kernels before "
				 "5.12 this is RLIMIT_MEMLOCK: raise it with ulimit -l)",
				 depth);
	default:
		return error_set(err, ret, "io_uring: cannot make a ring of %u requests: %s", depth,
				 strerror(-ret));
	}
}

static int ring_create(struct io_uring *ring, unsigned depth, bool ends_elsewhere,
		       struct error *err)
{
	int ret = -EINVAL;

	for (size_t i = ends_elsewhere; i < ARRAY_SIZE(setup_flags) && ret == -EINVAL; i++) {
		struct io_uring_params params = {
			.flags = setup_flags[i] | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE,
			.cq_entries = 2 * depth,
		};

		ret = io_uring_queue_init_params(depth, ring, &params);
	}
	return ret < 0 ? ring_failed(ret, depth, err) : 0;
}

/* ---- open ---- */

/* A small ring for a moment: is io_uring permitted here, and does it have the operations? */
static int check_kernel(struct error *err)
{
	static const int needed[] = {IORING_OP_READ,   IORING_OP_WRITE, IORING_OP_READV,
				     IORING_OP_WRITEV, IORING_OP_FSYNC, IORING_OP_FALLOCATE};
	struct io_uring_probe *probe;
	struct io_uring ring;
	int ret = ring_create(&ring, 2, false, err);

	if (ret < 0)
		return ret;
	probe = io_uring_get_probe_ring(&ring);
	for (size_t i = 0; i < ARRAY_SIZE(needed) && ret == 0; i++)
		if (!probe || !io_uring_opcode_supported(probe, needed[i]))
			ret = error_set(err, -ENOSYS,
					"io_uring: this kernel's is too old (5.6 is needed)");
	io_uring_free_probe(probe);
	io_uring_queue_exit(&ring);
	return ret;
}

static int uring_open(const struct engine_config *config, struct engine **engine,
		      struct engine_info *info, struct error *err)
{
	struct engine *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return error_set(err, -ENOMEM, "out of memory");
	ret = file_probe(config, &e->file, info, err);
	if (ret == 0)
		ret = check_kernel(err);
	if (ret < 0) {
		free(e);
		return ret;
	}
	uring_memory_init(&e->memory, config->path, config->fixed_buffers);
	*engine = e;
	return 0;
}

static void uring_close(struct engine *e)
{
	uring_memory_fini(&e->memory);
	free(e);
}

static int64_t uring_refresh_size(struct engine *e)
{
	return file_size(e->file.fd);
}

static int uring_set_memory(struct engine *e, const struct engine_memory *memory, unsigned n)
{
	return uring_memory_set(&e->memory, memory, n);
}

/* ---- queues ---- */

static int queue_setup(struct engine_queue *q, const struct engine_queue_config *config,
		       struct error *err)
{
	unsigned depth = MIN(MAX(config->depth, 1u), URING_DEPTH_MAX);
	int ret = ring_create(&q->ring, depth, config->ends_elsewhere, err);

	if (ret < 0)
		return ret;
	/* Never more in the kernel than the SQ has slots; so the CQ, twice that, cannot overflow.
	 */
	q->depth = MIN(depth, q->ring.sq.ring_entries);
	ret = io_uring_register_eventfd(&q->ring, q->event_fd);
	if (ret < 0) {
		io_uring_queue_exit(&q->ring);
		return error_set(err, ret, "io_uring: cannot register an eventfd: %s",
				 strerror(-ret));
	}
	/* Both only save the kernel a look-up; go on without. */
	q->fixed_file = io_uring_register_files(&q->ring, &q->engine->file.fd, 1) == 0;
	/* A registered ring is known by a number of this thread's: in another thread the same
	 * number is a ring of that one's own, and it is that which would be entered and closed. */
	if (!config->ends_elsewhere)
		io_uring_register_ring_fd(&q->ring);
	io_uring_cq_eventfd_toggle(&q->ring, false); /* disarmed until somebody wants to sleep */
	uring_view_init(&q->view, &q->engine->memory, &q->ring);
	return 0;
}

static int uring_queue_create(struct engine *e, const struct engine_queue_config *config,
			      struct engine_queue **queue, struct error *err)
{
	struct engine_queue *q = calloc(1, sizeof(*q));
	int ret;

	if (!q)
		return error_set(err, -ENOMEM, "out of memory");
	q->engine = e;
	file_ops_init(&q->ops, &e->file);
	q->event_fd = eventfd_create();
	if (q->event_fd < 0)
		ret = error_set(err, q->event_fd, "io_uring: eventfd: %s", strerror(-q->event_fd));
	else
		ret = queue_setup(q, config, err);
	if (ret < 0) {
		fd_close(&q->event_fd);
		free(q);
		return ret;
	}
	*queue = q;
	return 0;
}

/* Closing a ring does not wait for its requests, which would go on writing to guest memory (B49);
 * the caller has drained the queue. */
static void uring_queue_destroy(struct engine_queue *q)
{
	ASSERT(!q->in_flight && !q->ops.in_flight);
	uring_view_fini(&q->view);
	io_uring_queue_exit(&q->ring);
	fd_close(&q->event_fd);
	free(q);
}

/* ---- completion ---- */

static bool cq_empty(const struct engine_queue *q)
{
	return *q->ring.cq.khead == atomic_load_acquire(q->ring.cq.ktail); /* [CQ1] */
}

/* The kernel holds completions that we see only when we have entered it. */
static bool kernel_holds_completions(const struct engine_queue *q)
{
	/* relaxed: a hint, and after the fence in arm the look that counts [CQ2] */
	return atomic_load_relaxed(q->ring.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

static unsigned uring_poll(struct engine_queue *q)
{
	struct io_uring_cq *cq = &q->ring.cq;
	unsigned done = 0;

	if (kernel_holds_completions(q))
		io_uring_get_events(&q->ring); /* EINTR, EAGAIN, EBUSY: the bit stays set */

	/*
	 * engine_done may submit again, and even come back here: the head goes on before it, and
	 * one call ends no more than the queue holds.
	 */
	while (done < q->depth && !cq_empty(q)) {
		unsigned head = *cq->khead;
		const struct io_uring_cqe *cqe = &cq->cqes[head & cq->ring_mask];
		struct blk_request *req = io_uring_cqe_get_data(cqe);
		int32_t res = cqe->res;

		atomic_store_release(cq->khead, head + 1); /* [CQ1] */
		q->in_flight--;
		req->engine_done(req, res);
		done++;
	}
	return done;
}

static void uring_disarm(struct engine_queue *q)
{
	io_uring_cq_eventfd_toggle(&q->ring, false);
}

static bool uring_arm(struct engine_queue *q)
{
	io_uring_cq_eventfd_toggle(&q->ring, true);
	atomic_fence_full(); /* [CQ2] */
	if (!kernel_holds_completions(q) && cq_empty(q))
		return false;
	/* Stays up: entering the kernel for them would write the eventfd for nothing. */
	io_uring_cq_eventfd_toggle(&q->ring, false);
	return true;
}

static int uring_event_fd(struct engine_queue *q)
{
	return q->event_fd;
}

const struct engine_ops engine_io_uring = {
	.name = "io_uring",
	.open = uring_open,
	.close = uring_close,
	.refresh_size = uring_refresh_size,
	.queue_create = uring_queue_create,
	.queue_destroy = uring_queue_destroy,
	.submit_batch = uring_submit_batch,
	.poll = uring_poll,
	.disarm = uring_disarm,
	.arm = uring_arm,
	.event_fd = uring_event_fd,
	.set_memory = uring_set_memory,
};
