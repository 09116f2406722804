/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of every request: taken, gathered, given to the engine in batches, completed.
 * One thread owns the channel and all that hangs on it.
 */
#include "block/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/fd.h"
#include "block/channel_internal.h"

/* ---- completion ---- */

void channel_schedule(struct blk_channel *c)
{
	if (!c->flushing)
		defer_call(&c->flush);
}

void channel_finish(struct blk_channel *c, struct blk_request *req, int ret)
{
	c->in_flight--;
	req->complete(req, ret);
}

/* Completes outside of blk_submit() what needs no engine. */
static void finish_later(struct blk_channel *c, struct blk_request *req, int ret)
{
	req->block_state = (uint32_t)ret;
	slist_push_back(&c->finished, &req->node);
}

static void run_finished(struct blk_channel *c)
{
	struct slist list = c->finished;
	struct slist_node *n;

	slist_init(&c->finished);
	while ((n = slist_pop_front(&list))) {
		struct blk_request *req = container_of(n, struct blk_request, node);

		channel_finish(c, req, (int)req->block_state);
	}
}

void channel_returned(struct blk_channel *c)
{
	c->engine_in_flight--;
	c->worked = true;
	if (unlikely(c->blocked)) {
		c->blocked = false;
		channel_schedule(c);
	}
}

static void start_timer(struct blk_channel *c)
{
	if (c->retry_timer.armed)
		return;
	loop_timer_start(c->loop, &c->retry_timer, clock_now_ns() + c->retry_ns);
	c->retry_ns = MIN(c->retry_ns * 2, RETRY_MOST_NS);
}

void channel_retry(struct blk_channel *c, struct blk_request *req)
{
	unsigned tries = req->block_state & BLOCK_STATE_TRIES;

	atomic_stat_add(&c->stats.retried, 1);
	req->block_state |= BLOCK_STATE_ALONE;
	if (tries < CHANNEL_RETRIES) {
		req->block_state++;
		slist_push_back(&c->again, &req->node);
		channel_schedule(c);
	} else {
		slist_push_back(&c->delayed, &req->node);
		start_timer(c);
	}
}

static void retry_expired(struct loop_timer *t)
{
	struct blk_channel *c = container_of(t, struct blk_channel, retry_timer);

	slist_append(&c->again, &c->delayed);
	c->blocked = false;
	channel_schedule(c);
}

static noinline_cold void direct_not_whole(struct blk_channel *c, struct blk_request *req,
					   int64_t result)
{
	if (block_try_again(result)) {
		channel_retry(c, req);
	} else if (block_not_supported(result) && req->op == BLK_WRITE && req->flags & BLK_FUA &&
		   !(c->slow_flags & BLK_FUA)) {
		disk_forget_caps(c->disk, ENGINE_CAP_FUA);
		c->slow_flags |= BLK_FUA;
		io_begin(c, req, 0);
	} else if (result > 0 && (uint64_t)result < req->len_bytes) {
		atomic_stat_add(&c->stats.retried, 1);
		io_begin(c, req, align_down((uint64_t)result, c->engine_block));
	} else {
		/* 0 inside of the capacity: the image is shorter than it was. */
		channel_finish(c, req, block_errno(result));
	}
}

static void direct_done(struct blk_request *req, int64_t result)
{
	struct blk_channel *c = req->channel;

	channel_returned(c);
	if (likely(result == (int64_t)req->len_bytes))
		channel_finish(c, req, 0);
	else
		direct_not_whole(c, req, result);
}

static void flush_done(struct blk_request *req, int64_t result)
{
	struct blk_channel *c = req->channel;

	channel_returned(c);
	if (block_try_again(result))
		channel_retry(c, req);
	else
		channel_finish(c, req, disk_flush_result(c->disk, result));
}

/* ---- submission ---- */

static int check(const struct blk_channel *c, const struct blk_request *req)
{
	const struct disk *d = c->disk;

	if ((req->offset_bytes | req->len_bytes) & c->block_mask ||
	    !range_within(req->offset_bytes, req->len_bytes, disk_capacity_bytes(d)))
		return -EINVAL;
	if (req->op != BLK_READ && d->info.read_only)
		return -EROFS;
	return 0;
}

static noinline_cold void submit_other(struct blk_channel *c, struct blk_request *req)
{
	int ret;

	if (req->op == BLK_FLUSH) {
		if (!c->disk->info.write_cache || c->disk->info.read_only) {
			finish_later(c, req, 0);
		} else {
			req->engine_done = flush_done;
			slist_push_back(&c->pending, &req->node);
		}
		return;
	}
	ret = check(c, req);
	if (ret < 0 || !req->len_bytes)
		finish_later(c, req, ret);
	else if (req->op == BLK_DISCARD && !(disk_caps(c->disk) & ENGINE_CAP_DISCARD))
		finish_later(c, req, 0); /* a hint */
	else
		io_begin(c, req, 0);
}

static bool goes_directly(const struct blk_channel *c, const struct blk_request *req)
{
	if (unlikely(req->flags & c->slow_flags) || unlikely(req->iovcnt > c->limits.max_iov) ||
	    unlikely(req->len_bytes > c->limits.max_bytes))
		return false;
	if (likely(!(c->base_mask | c->len_mask)))
		return true;
	return !(c->disk->tracked && req->op == BLK_WRITE) && !bounce_needed(c, req);
}

void blk_submit(struct blk_channel *c, struct blk_request *req)
{
	req->channel = c;
	req->block_state = 0;
	c->in_flight++;
	atomic_stat_add(&c->stats.requests, 1);
	if (likely(req->op <= BLK_WRITE && req->len_bytes && check(c, req) == 0)) {
		if (likely(goes_directly(c, req))) {
			req->engine_done = direct_done;
			slist_push_back(&c->pending, &req->node);
		} else {
			io_begin(c, req, 0);
		}
	} else {
		submit_other(c, req);
	}
	if (!c->flushing && !c->flush.noted && !c->plug_depth) {
		/* Outside of a section the flush would run here and now: see flush_deferred(). */
		c->submitting = true;
		defer_call(&c->flush);
		c->submitting = false;
	}
}

/* Fills `staged` up from the pending list.  Returns how many there are. */
static unsigned stage(struct blk_channel *c)
{
	unsigned kept = c->nstaged, n = kept;
	struct slist_node *node;

	while (n < CHANNEL_BATCH && (node = slist_pop_front(&c->pending)))
		c->staged[n++] = container_of(node, struct blk_request, node);
	if (n - kept > 1)
		n = kept + channel_merge(c, c->staged + kept, n - kept);
	c->nstaged = n;
	return n;
}

static noinline_cold void took_less(struct blk_channel *c, unsigned taken)
{
	unsigned left = c->nstaged - taken;

	c->engine_in_flight -= left;
	memmove(c->staged, c->staged + taken, left * sizeof(*c->staged));
	c->nstaged = left;
	atomic_stat_add(&c->stats.blocked, 1);
	if (c->engine_in_flight) {
		c->blocked = true;
	} else if (!taken) {
		c->blocked = true;
		start_timer(c);
	}
	/* Else what it took has completed already: it can be asked again. */
}

static void submit_staged(struct blk_channel *c)
{
	unsigned n = c->nstaged, taken;

	/* Before the call: an engine that completes inline counts down inside of it. */
	c->engine_in_flight += n;
	taken = c->ops->submit_batch(c->queue, c->staged, n);
	ASSERT(taken <= n);
	if (taken) {
		atomic_stat_add(&c->stats.batches, 1);
		c->retry_ns = RETRY_FIRST_NS;
	}
	if (likely(taken == n))
		c->nstaged = 0;
	else
		took_less(c, taken);
}

/* What failed for the moment goes before what came later. */
static void take_again(struct blk_channel *c)
{
	if (likely(slist_empty(&c->again)))
		return;
	slist_append(&c->again, &c->pending);
	c->pending = c->again;
	slist_init(&c->again);
}

static bool has_work(const struct blk_channel *c)
{
	return !slist_empty(&c->pending) || c->nstaged || !slist_empty(&c->again) ||
	       !slist_empty(&c->waiting);
}

static void channel_flush(struct blk_channel *c)
{
	unsigned rounds = 0;

	if (c->flushing)
		return;
	c->flushing = true;
	do {
		if (unlikely(rounds++ == CHANNEL_FLUSH_ROUNDS)) {
			c->more = true;
			poller_wake(&c->poller);
			break;
		}
		if (unlikely(!slist_empty(&c->finished)))
			run_finished(c);
		if (unlikely(c->plug_depth || c->blocked))
			continue;
		if (unlikely(!slist_empty(&c->waiting)))
			io_start_waiting(c);
		take_again(c);
		if (!stage(c))
			continue;
		submit_staged(c);
	} while (!slist_empty(&c->finished) || (!c->plug_depth && !c->blocked &&
						(c->nstaged || !slist_empty(&c->pending) ||
						 !slist_empty(&c->again) || io_can_start(c))));
	c->flushing = false;
	/* Not looked at, and perhaps not armed: nobody would see these completions. */
	if (c->engine_in_flight && !c->looking)
		poller_wake(&c->poller);
}

static void flush_deferred(struct defer *d)
{
	struct blk_channel *c = container_of(d, struct blk_channel, flush);

	/* blk_submit() was called outside of a defer section, and of plug and unplug. */
	ASSERT(!c->submitting);
	channel_flush(c);
}

void blk_plug(struct blk_channel *c)
{
	c->plug_depth++;
}

void blk_unplug(struct blk_channel *c)
{
	ASSERT(c->plug_depth > 0);
	if (--c->plug_depth || !(has_work(c) || !slist_empty(&c->finished)))
		return;
	/* Completions are promised a section; inside of one this only notes. */
	defer_begin();
	channel_schedule(c);
	defer_end();
}

unsigned blk_channel_in_flight(const struct blk_channel *c)
{
	return c->in_flight;
}

/* ---- the loop ---- */

static void poller_begin(struct poller *p)
{
	struct blk_channel *c = container_of(p, struct blk_channel, poller);

	c->looking = true;
	if (c->armed) {
		c->armed = false;
		c->ops->disarm(c->queue);
	}
}

static bool poller_poll(struct poller *p)
{
	struct blk_channel *c = container_of(p, struct blk_channel, poller);
	bool worked;

	if (c->engine_in_flight)
		c->ops->poll(c->queue);
	if (unlikely(c->more)) {
		c->more = false;
		channel_schedule(c);
		c->worked = true;
	}
	worked = c->worked;
	c->worked = false;
	return worked;
}

static bool poller_end(struct poller *p)
{
	struct blk_channel *c = container_of(p, struct blk_channel, poller);

	if (c->more || c->worked)
		return true;
	c->looking = false;
	if (!c->engine_in_flight)
		return false; /* nothing that could wake us */
	c->armed = true;
	return c->ops->arm(c->queue);
}

static const struct poller_ops channel_poller_ops = {
	.begin = poller_begin,
	.poll = poller_poll,
	.end = poller_end,
};

static void completions_ready(struct loop_fd *lf, uint32_t events)
{
	struct blk_channel *c = container_of(lf, struct blk_channel, completions);

	eventfd_clear(lf->fd);
	poller_wake(&c->poller);
}

/* ---- life ---- */

static void init_limits(struct blk_channel *c)
{
	const struct engine_info *e = &c->disk->engine_info;
	uint32_t caps = disk_caps(c->disk);

	c->block_mask = c->disk->info.block_bytes - 1;
	c->engine_block = e->logical_block;
	c->base_mask = e->memory_align - 1;
	/* The kernel wants whole blocks in every part, whatever the alignment of its base. */
	c->len_mask = MAX(e->memory_align, e->logical_block) - 1;
	c->limits.max_iov = MIN(e->max_iov, CHANNEL_IO_IOV);
	c->limits.max_bytes = align_down(e->max_transfer_bytes, BLOCK_PAGE_BYTES);
	c->merge.max_iov = c->limits.max_iov;
	c->merge.max_bytes = MIN(c->limits.max_bytes, CHANNEL_MERGE_BYTES);
	if (caps & ENGINE_CAP_WRITE_CACHE && !(caps & ENGINE_CAP_FUA))
		c->slow_flags = BLK_FUA;
}

/*
 * Blocks, iovecs and buffers in one mapping that costs nothing until it is used (and so no huge
 * pages, which would make all of it resident at the first touch).
 */
static int init_pool(struct blk_channel *c)
{
	size_t iov_bytes = (size_t)CHANNEL_IOS * CHANNEL_IO_IOV * sizeof(struct iovec);
	size_t ios_bytes = align_up(CHANNEL_IOS * sizeof(struct blk_io), BLOCK_PAGE_BYTES);
	char *p;

	c->pool_bytes = iov_bytes + ios_bytes + bounce_pool_bytes(c->disk);
	p = mmap(NULL, c->pool_bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	madvise(p, c->pool_bytes, MADV_NOHUGEPAGE);
	c->pool = p;
	c->io_iov = (struct iovec *)p;
	c->ios = (struct blk_io *)(p + iov_bytes);
	bounce_init(c, p + iov_bytes + ios_bytes);
	return 0;
}

static int watch_completions(struct blk_channel *c, struct error *err)
{
	int ret;

	c->completions.fd = c->ops->event_fd(c->queue);
	c->completions.ready = completions_ready;
	if (c->completions.fd < 0)
		return 0;
	ret = loop_add_fd(c->loop, &c->completions, EPOLLIN);
	if (ret < 0)
		return error_set(err, ret, "cannot watch completions: %s", strerror(-ret));
	return 0;
}

struct blk_channel *channel_create(struct disk *d, struct loop *loop, struct error *err)
{
	struct engine_queue_config config = {.depth = d->queue_depth,
					     .ends_elsewhere = d->ends_elsewhere};
	struct blk_channel *c = calloc(1, sizeof(*c));

	if (!c) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	c->disk = d;
	c->ops = d->ops;
	c->loop = loop;
	c->retry_ns = RETRY_FIRST_NS;
	c->retry_timer.expired = retry_expired;
	c->poller.ops = &channel_poller_ops;
	c->poller.limits = d->poll;
	defer_init(&c->flush, flush_deferred);
	list_init(&c->node);
	init_limits(c);
	if (init_pool(c) < 0) {
		error_set(err, -ENOMEM, "out of memory");
		goto fail;
	}
	if (c->ops->queue_create(d->engine, &config, &c->queue, err) < 0)
		goto fail_pool;
	if (watch_completions(c, err) < 0)
		goto fail_queue;
	loop_add_poller(loop, &c->poller);
	return c;

fail_queue:
	c->ops->queue_destroy(c->queue);
fail_pool:
	munmap(c->pool, c->pool_bytes);
fail:
	free(c);
	return NULL;
}

void channel_destroy(struct blk_channel *c)
{
	/* What the kernel holds points into guest memory and into the pool. */
	ASSERT(!c->in_flight && !c->engine_in_flight);
	loop_timer_stop(c->loop, &c->retry_timer);
	loop_remove_poller(c->loop, &c->poller);
	if (c->completions.fd >= 0)
		loop_remove_fd(c->loop, &c->completions);
	defer_cancel(&c->flush);
	c->ops->queue_destroy(c->queue);
	munmap(c->pool, c->pool_bytes);
	free(c);
}

void blk_channel_stats_read(const struct blk_channel *c, struct blk_channel_stats *out)
{
	const struct blk_channel_stats *s = &c->stats;

	/* relaxed: statistics */
	*out = (struct blk_channel_stats){
		.requests = atomic_load_relaxed(&s->requests),
		.batches = atomic_load_relaxed(&s->batches),
		.merged = atomic_load_relaxed(&s->merged),
		.split = atomic_load_relaxed(&s->split),
		.bounced = atomic_load_relaxed(&s->bounced),
		.blocked = atomic_load_relaxed(&s->blocked),
		.retried = atomic_load_relaxed(&s->retried),
	};
}
