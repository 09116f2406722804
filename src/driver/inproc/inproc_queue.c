/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of a file: target.  One thread; nothing allocates after the first request.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/clock.h"
#include "driver/inproc/inproc.h"

#define DRAIN_LOOK_NS 50000

static struct inproc_queue *queue_of(struct ringside_queue *base)
{
	return container_of(base, struct inproc_queue, base);
}

static void list_clear(struct inproc_list *l)
{
	l->first = NULL;
	l->last = &l->first;
}

static void list_add(struct inproc_list *l, struct inproc_slot *s)
{
	s->next = NULL;
	*l->last = s;
	l->last = &s->next;
}

static struct inproc_slot *list_take(struct inproc_list *l)
{
	struct inproc_slot *s = l->first;

	if (s) {
		l->first = s->next;
		if (!l->first)
			l->last = &l->first;
	}
	return s;
}

/* ---- the channel, on the thread that uses it ---- */

struct channel_call {
	struct inproc_queue *q;
	struct error *err;
};

static void get_channel(void *arg)
{
	struct channel_call *call = arg;

	call->q->channel = disk_channel_get(call->q->dev->disk, call->err);
}

static void put_channel(void *arg)
{
	struct inproc_queue *q = arg;

	disk_channel_put(q->channel);
	q->channel = NULL;
}

static noinline_cold int make_channel(struct inproc_queue *q)
{
	struct error err;
	struct channel_call call = {.q = q, .err = &err};

	loop_call(q->loop, get_channel, &call);
	return q->channel ? 0 : -EIO;
}

/* ---- requests ---- */

static int status_of(int ret)
{
	return ret == 0 || ret == -EOPNOTSUPP ? ret : -EIO;
}

static void on_complete(struct blk_request *req, int ret)
{
	struct inproc_slot *s = container_of(req, struct inproc_slot, req);

	s->result = status_of(ret);
	list_add(&s->queue->done, s);
}

static const enum blk_op ops[] = {
	[DRIVER_READ] = BLK_READ,
	[DRIVER_WRITE] = BLK_WRITE,
	[DRIVER_FLUSH] = BLK_FLUSH,
	[DRIVER_DISCARD] = BLK_DISCARD,
	[DRIVER_WRITE_ZEROES] = BLK_WRITE_ZEROES,
};

static int inproc_put(struct ringside_queue *base, const struct driver_request *req,
		      struct driver_slot *slot)
{
	struct inproc_queue *q = queue_of(base);
	struct inproc_slot *s = &q->slots[slot->index];

	if (unlikely(!q->channel) && make_channel(q) < 0)
		return -EIO;
	s->driver_slot = slot;
	s->op = req->op;
	for (unsigned i = 0; i < req->iovcnt; i++)
		s->iov[i] = req->iov[i];
	if (req->op != DRIVER_GET_ID)
		s->req.op = ops[req->op];
	s->req.flags = req->may_unmap ? BLK_UNMAP : 0;
	s->req.offset_bytes = req->offset_bytes;
	s->req.len_bytes = req->len_bytes;
	s->req.iov = req->iovcnt ? s->iov : NULL;
	s->req.iovcnt = req->iovcnt;
	list_add(&q->put, s);
	return 0;
}

static void inproc_publish(struct ringside_queue *base)
{
}

static void give_id(struct inproc_slot *s)
{
	memcpy(s->iov[0].iov_base, s->queue->dev->id, RINGSIDE_ID_BYTES);
	on_complete(&s->req, 0);
}

static void submit_all(void *arg)
{
	struct inproc_queue *q = arg;
	struct inproc_slot *s;

	while ((s = list_take(&q->put))) {
		if (likely(s->op != DRIVER_GET_ID))
			blk_submit(q->channel, &s->req);
		else
			give_id(s);
	}
}

static bool inproc_arm(struct ringside_queue *base, unsigned after)
{
	struct inproc_queue *q = queue_of(base);

	if (q->done.first)
		return true;
	if (loop_arm(q->loop))
		return false;
	/* Also for what has ended already and was taken; else it would be found here for ever. */
	loop_look(q->loop);
	return q->done.first || !loop_arm(q->loop);
}

/* One batch, and so one system call where the engine has one. */
static bool inproc_tell(struct ringside_queue *base)
{
	struct inproc_queue *q = queue_of(base);

	if (!q->put.first)
		return false;
	loop_call(q->loop, submit_all, q);
	/* Armed when the engine had nothing to tell of.  It has now, or has told already. */
	if (unlikely(base->armed) && inproc_arm(base, 1))
		loop_wake(q->loop);
	return true;
}

static int inproc_take(struct ringside_queue *base, struct driver_slot **slot, int *result)
{
	struct inproc_queue *q = queue_of(base);
	struct inproc_slot *s = list_take(&q->done);

	if (!s) {
		if (!base->in_flight)
			return 0;
		loop_look(q->loop);
		s = list_take(&q->done);
	}
	if (!s)
		return 0;
	*slot = s->driver_slot;
	*result = s->result;
	return 1;
}

/* The next look turns off what was armed. */
static void inproc_disarm(struct ringside_queue *base)
{
}

/* This one, also when nothing is in flight: linux-aio tells of completions that were found by
 * looking, and the descriptor would stay readable. */
static void inproc_woken(struct ringside_queue *base)
{
	loop_look(queue_of(base)->loop);
}

/*
 * There are no calls.  What is counted instead, beside the sleeps, are the batches that the engine
 * has taken: each is one system call with io_uring and linux-aio, and with threads at least one
 * that wakes a worker.  Not counted are an io_uring entered for its completions (one for those of
 * a look), and epoll, asked when a look has found nothing for 20 us.
 */
static uint64_t inproc_calls(struct ringside_queue *base)
{
	struct inproc_queue *q = queue_of(base);
	struct blk_channel_stats stats;

	if (!q->channel || disk_info(q->dev->disk)->inline_io)
		return 0;
	blk_channel_stats_read(q->channel, &stats);
	base->stats.system_calls += stats.batches - q->batches_seen;
	q->batches_seen = stats.batches;
	return 0;
}

static int inproc_check(struct ringside_queue *base)
{
	return 0;
}

static const struct driver_queue_ops inproc_queue_ops = {
	.put = inproc_put,
	.publish = inproc_publish,
	.tell = inproc_tell,
	.take = inproc_take,
	.arm = inproc_arm,
	.disarm = inproc_disarm,
	.woken = inproc_woken,
	.calls = inproc_calls,
	.check = inproc_check,
};

/* ---- start and stop ---- */

static int alloc_slots(struct inproc_queue *q, struct error *err)
{
	const struct ringside_info *info = &q->dev->base.info;

	q->slots = calloc(info->depth, sizeof(*q->slots));
	q->iovs = calloc((size_t)info->depth * info->max_segments, sizeof(*q->iovs));
	if (!q->slots || !q->iovs)
		return error_set(err, -ENOMEM, "out of memory for a depth of %u", info->depth);
	for (unsigned i = 0; i < info->depth; i++) {
		q->slots[i].queue = q;
		q->slots[i].iov = q->iovs + (size_t)i * info->max_segments;
		q->slots[i].req.complete = on_complete;
	}
	return 0;
}

int inproc_queue_start(struct inproc_queue *q, struct error *err)
{
	/* A poller never leaves the poll set but by arming: the caller says when to sleep. */
	const struct poll_policy_limits limits = {.mode = POLL_ALWAYS};
	struct channel_call call = {.q = q, .err = err};
	int ret;

	list_clear(&q->put);
	list_clear(&q->done);
	ret = alloc_slots(q, err);
	if (ret < 0)
		return ret;
	q->loop = loop_create(&limits);
	if (!q->loop)
		return error_set(err, -ENOMEM, "no memory or descriptors for an event loop");
	/* Does the engine work here?  Told now; the queue's thread makes its own. */
	loop_call(q->loop, get_channel, &call);
	if (!q->channel)
		return -EIO;
	loop_call(q->loop, put_channel, q);
	q->base = (struct ringside_queue){
		.ops = &inproc_queue_ops,
		.dev = &q->dev->base,
		.wait_fds = {loop_epoll_fd(q->loop), -1},
		.wait_events = {EPOLLIN, 0},
	};
	ret = driver_queue_init(&q->base, q->dev->base.info.depth, err);
	q->started = ret == 0;
	return ret;
}

/* True when the kernel has let go of everything. */
static bool drain(struct inproc_queue *q)
{
	const struct timespec pause = {.tv_nsec = DRAIN_LOOK_NS};
	uint64_t end_ns = clock_now_ns() + q->dev->options.timeout_ms * 1000000ull;

	while (blk_channel_in_flight(q->channel)) {
		if (loop_look(q->loop))
			continue;
		if (clock_now_ns() > end_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

bool inproc_queue_stop(struct inproc_queue *q)
{
	if (q->channel) {
		if (!drain(q))
			return false;
		loop_call(q->loop, put_channel, q);
	}
	if (q->started)
		driver_queue_fini(&q->base);
	if (q->loop)
		loop_destroy(q->loop);
	free(q->slots);
	free(q->iovs);
	return true;
}
