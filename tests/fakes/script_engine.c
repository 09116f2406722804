/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/script_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/checked.h"
#include "base/fd.h"
#include "base/iov.h"

struct engine {
	struct script *script;
};

struct engine_queue {
	struct script *script;
	struct blk_request *held[SCRIPT_HELD];
	unsigned nheld;
	unsigned seed;
	int event_fd;
	bool armed;
};

static int script_open(const struct engine_config *config, struct engine **out,
		       struct engine_info *info, struct error *err)
{
	struct engine *e = calloc(1, sizeof(*e));

	e->script = container_of(config->ops, struct script, ops);
	*info = e->script->info;
	*out = e;
	return 0;
}

static void script_close(struct engine *e)
{
	free(e);
}

static int64_t script_refresh_size(struct engine *e)
{
	return (int64_t)e->script->info.size_bytes;
}

static int script_queue_create(struct engine *e, const struct engine_queue_config *config,
			       struct engine_queue **out, struct error *err)
{
	struct engine_queue *q = calloc(1, sizeof(*q));

	q->script = e->script;
	q->seed = 1;
	q->event_fd = eventfd_create();
	if (!e->script->queue)
		e->script->queue = q;
	*out = q;
	return 0;
}

static void script_queue_destroy(struct engine_queue *q)
{
	ASSERT(!q->nheld);
	q->script->queue = NULL;
	fd_close(&q->event_fd);
	free(q);
}

static void check_limits(const struct script *s, const struct blk_request *r)
{
	const struct engine_info *i = &s->info;
	uint64_t len_align = MAX(i->logical_block, i->memory_align);

	if (r->op == BLK_FLUSH)
		return;
	ASSERT(r->len_bytes > 0);
	ASSERT(!((r->offset_bytes | r->len_bytes) & (i->logical_block - 1)));
	ASSERT(range_within(r->offset_bytes, r->len_bytes, i->size_bytes));
	if (r->op > BLK_WRITE) {
		ASSERT(!i->max_discard_bytes || r->len_bytes <= i->max_discard_bytes);
		return;
	}
	ASSERT(r->iovcnt > 0 && r->iovcnt <= i->max_iov);
	ASSERT(r->len_bytes <= i->max_transfer_bytes);
	ASSERT(iov_length(r->iov, r->iovcnt) == r->len_bytes);
	for (unsigned k = 0; k < r->iovcnt; k++) {
		ASSERT(!((uintptr_t)r->iov[k].iov_base & (i->memory_align - 1)));
		ASSERT(!(r->iov[k].iov_len & (len_align - 1)));
	}
}

static void note(struct script *s, const struct blk_request *r)
{
	unsigned at = atomic_fetch_add_relaxed(&s->nlog, 1);

	if (at < SCRIPT_LOG)
		s->log[at] = (struct script_entry){.op = r->op,
						   .flags = r->flags,
						   .offset = r->offset_bytes,
						   .len = r->len_bytes,
						   .iovcnt = r->iovcnt,
						   .batch = atomic_load_relaxed(&s->batches)};
}

static void carry_out(struct script *s, struct blk_request *r)
{
	char *at = s->memory + r->offset_bytes;
	uint64_t len = r->len_bytes;
	int64_t result = r->op <= BLK_WRITE ? (int64_t)len : 0, injected = 0;
	bool fault;

	/* As a disk does: what overlaps in time is carried out one after the other. */
	pthread_mutex_lock(&s->mutex);
	fault = s->fault && s->fault(s, r, &injected);
	if (fault)
		result = injected;
	if (fault && r->op <= BLK_WRITE)
		len = result > 0 ? MIN((uint64_t)result, len) : 0;
	if (!fault || result > 0) {
		if (r->op == BLK_READ)
			buf_to_iov(r->iov, r->iovcnt, 0, at, len);
		else if (r->op == BLK_WRITE)
			iov_to_buf(r->iov, r->iovcnt, 0, at, len);
		else if (r->op != BLK_FLUSH)
			memset(at, 0, len);
	}
	pthread_mutex_unlock(&s->mutex);
	r->engine_done(r, result);
}

static unsigned script_submit_batch(struct engine_queue *q, struct blk_request **reqs, unsigned n)
{
	struct script *s = q->script;
	unsigned depth = s->depth ? s->depth : SCRIPT_HELD, taken = n;

	atomic_fetch_add_relaxed(&s->batches, 1);
	if (atomic_load_relaxed(&s->refuse)) {
		atomic_fetch_add_relaxed(&s->refuse, -1u);
		return 0;
	}
	if (s->take_max)
		taken = MIN(taken, s->take_max);
	if (s->hold)
		taken = MIN(taken, depth - q->nheld);
	for (unsigned i = 0; i < taken; i++) {
		check_limits(s, reqs[i]);
		note(s, reqs[i]);
		if (s->hold)
			q->held[q->nheld++] = reqs[i];
	}
	for (unsigned i = 0; i < taken && !s->hold; i++)
		carry_out(s, reqs[i]);
	return taken;
}

static struct blk_request *take_held(struct engine_queue *q)
{
	unsigned at = q->script->shuffle ? (unsigned)rand_r(&q->seed) % q->nheld : 0;
	struct blk_request *r = q->held[at];

	memmove(&q->held[at], &q->held[at + 1], (--q->nheld - at) * sizeof(*q->held));
	return r;
}

static unsigned script_poll(struct engine_queue *q)
{
	struct script *s = q->script;
	unsigned n = 0;

	atomic_stat_add(&s->polls, 1);
	while (q->nheld && atomic_load_acquire(&s->released)) {
		if (atomic_load_relaxed(&s->released) < SCRIPT_RELEASE_ALL)
			atomic_fetch_sub_acq_rel(&s->released, 1);
		carry_out(s, take_held(q));
		n++;
	}
	return n;
}

static void script_disarm(struct engine_queue *q)
{
	atomic_stat_add(&q->script->disarms, 1);
	q->armed = false;
}

static bool script_arm(struct engine_queue *q)
{
	atomic_stat_add(&q->script->arms, 1);
	q->armed = true;
	atomic_fence_full();
	return q->nheld && atomic_load_acquire(&q->script->released);
}

static int script_event_fd(struct engine_queue *q)
{
	return q->event_fd;
}

void script_release(struct script *s, unsigned n)
{
	atomic_fetch_add_seq_cst(&s->released, n);
	eventfd_signal(s->queue->event_fd);
}

void script_init(struct script *s, uint64_t size_bytes)
{
	static const struct engine_ops ops = {
		.name = "script",
		.open = script_open,
		.close = script_close,
		.refresh_size = script_refresh_size,
		.queue_create = script_queue_create,
		.queue_destroy = script_queue_destroy,
		.submit_batch = script_submit_batch,
		.poll = script_poll,
		.disarm = script_disarm,
		.arm = script_arm,
		.event_fd = script_event_fd,
	};

	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->mutex, NULL);
	s->ops = ops;
	s->memory = calloc(1, size_bytes);
	s->info = (struct engine_info){
		.size_bytes = size_bytes,
		.logical_block = 1,
		.physical_block = 512,
		.memory_align = 1,
		.max_iov = 1024,
		.max_transfer_bytes = 1u << 30,
		.caps = ENGINE_CAP_DISCARD | ENGINE_CAP_WRITE_ZEROES | ENGINE_CAP_ZERO_NO_UNMAP,
	};
}

void script_fini(struct script *s)
{
	free(s->memory);
	pthread_mutex_destroy(&s->mutex);
}
