/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every request goes to the inner engine as a copy, so that the result can be changed or held back
 * on its way up.  Allocates as it likes: no build for users has it.
 */
#include "engine/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/iov.h"
#include "engine/fault_rules.h"
#include "loop/loop.h"

struct fault_table {
	struct engine_ops ops;
	const struct engine_ops *inner;
	char *spec;
};

struct engine {
	const struct engine_ops *inner_ops;
	struct engine *inner;
	struct fault_rules rules;
	uint32_t block; /* what a short request is cut to */
};

struct engine_queue {
	struct engine *engine;
	const struct engine_ops *inner_ops;
	struct engine_queue *inner;
	struct loop *loop;
	struct loop_timer timer;
	struct list delayed; /* by deadline */
	struct list refused; /* judged, not accepted: they come again first, in order */
	struct list spare;
	unsigned held;
	unsigned finished; /* engine_done calls */
};

struct fault_request {
	struct blk_request copy; /* the inner engine's */
	struct blk_request *orig;
	struct engine_queue *queue;
	struct list node;
	struct fault_verdict verdict;
	uint64_t deadline_ns;
	struct iovec *iov;
	bool local; /* the inner engine does not get it */
};

/* ---- completion ---- */

static void finish(struct fault_request *f)
{
	struct engine_queue *q = f->queue;
	struct blk_request *orig = f->orig;
	int64_t result = f->copy.engine.result;

	free(f->iov);
	f->iov = NULL;
	list_push_front(&q->spare, &f->node);
	q->held--;
	q->finished++;
	orig->engine_done(orig, result);
}

static void start_timer(struct engine_queue *q)
{
	struct fault_request *first;

	if (list_empty(&q->delayed))
		return;
	first = list_entry(q->delayed.next, struct fault_request, node);
	loop_timer_start(q->loop, &q->timer, first->deadline_ns);
}

static void delay(struct fault_request *f)
{
	struct engine_queue *q = f->queue;
	struct list *at = q->delayed.prev;

	ASSERT(q->loop);
	f->deadline_ns = clock_now_ns() + f->verdict.delay_ns;
	while (at != &q->delayed &&
	       list_entry(at, struct fault_request, node)->deadline_ns > f->deadline_ns)
		at = at->prev;
	list_insert_between(&f->node, at, at->next);
	start_timer(q);
}

static void expired(struct loop_timer *t)
{
	struct engine_queue *q = container_of(t, struct engine_queue, timer);
	uint64_t now = clock_now_ns();

	while (!list_empty(&q->delayed)) {
		struct fault_request *f = list_entry(q->delayed.next, struct fault_request, node);

		if (f->deadline_ns > now)
			break;
		list_remove(&f->node);
		finish(f);
	}
	start_timer(q);
}

static void done(struct fault_request *f, int64_t result)
{
	f->copy.engine.result = result;
	if (f->verdict.delay_ns)
		delay(f);
	else
		finish(f);
}

static void inner_done(struct blk_request *copy, int64_t result)
{
	struct fault_request *f = container_of(copy, struct fault_request, copy);

	if (f->verdict.is_short && result >= 0)
		result = f->verdict.result;
	done(f, result);
}

/* ---- submission ---- */

static struct fault_request *get(struct engine_queue *q)
{
	struct list *node = list_pop_front(&q->spare);
	struct fault_request *f;

	if (node)
		return list_entry(node, struct fault_request, node);
	f = calloc(1, sizeof(*f));
	ASSERT(f);
	f->queue = q;
	list_init(&f->node);
	return f;
}

/* Moves less than asked; what the inner engine cannot move (less than a block) it does not get. */
static void cut(struct fault_request *f)
{
	struct blk_request *copy = &f->copy;
	uint64_t len = align_down((uint64_t)f->verdict.result, f->queue->engine->block);
	int parts;

	if (!len) {
		f->local = true;
		return;
	}
	f->iov = calloc(copy->iovcnt, sizeof(*f->iov));
	ASSERT(f->iov);
	parts = iov_slice(copy->iov, copy->iovcnt, 0, len, f->iov, copy->iovcnt);
	ASSERT(parts > 0);
	copy->iov = f->iov;
	copy->iovcnt = (unsigned)parts;
	copy->len_bytes = len;
}

static struct fault_request *judge(struct engine_queue *q, struct blk_request *req)
{
	struct fault_request *f = get(q);

	f->orig = req;
	f->copy = *req;
	f->copy.engine_done = inner_done;
	f->verdict = fault_rules_judge(&q->engine->rules, req);
	f->local = f->verdict.result < 0;
	if (f->verdict.is_short)
		cut(f);
	return f;
}

/* Judged before if it was refused before: the channel brings it again, before any other. */
static struct fault_request *take(struct engine_queue *q, struct blk_request *req)
{
	struct list *node = list_pop_front(&q->refused);
	struct fault_request *f;

	if (!node)
		return judge(q, req);
	f = list_entry(node, struct fault_request, node);
	ASSERT(f->orig == req);
	return f;
}

static unsigned fault_submit_batch(struct engine_queue *q, struct blk_request **reqs, unsigned n)
{
	unsigned want = fault_rules_take(&q->engine->rules, n, q->held), ninner = 0, accepted = 0;
	struct fault_request **fs = calloc(want + 1, sizeof(struct fault_request *));
	struct blk_request **inner = calloc(want + 1, sizeof(struct blk_request *));
	unsigned taken;

	ASSERT(fs && inner);
	for (unsigned i = 0; i < want; i++) {
		fs[i] = take(q, reqs[i]);
		if (!fs[i]->local)
			inner[ninner++] = &fs[i]->copy;
	}
	/* They may complete, and be reused, inside of the call: only the pointers are looked at. */
	q->held += want;
	if (ninner)
		accepted = q->inner_ops->submit_batch(q->inner, inner, ninner);
	for (taken = 0, ninner = 0; taken < want; taken++) {
		bool local = inner[ninner] != &fs[taken]->copy;

		if (!local && ninner == accepted)
			break;
		ninner += !local;
		if (local)
			done(fs[taken], fs[taken]->verdict.result);
	}
	q->held -= want - taken;
	for (unsigned i = want; i-- > taken;)
		list_push_front(&q->refused, &fs[i]->node);
	free(fs);
	free(inner);
	return taken;
}

static unsigned fault_poll(struct engine_queue *q)
{
	unsigned before = q->finished;

	q->inner_ops->poll(q->inner);
	return q->finished - before;
}

static void fault_disarm(struct engine_queue *q)
{
	q->inner_ops->disarm(q->inner);
}

static bool fault_arm(struct engine_queue *q)
{
	return q->inner_ops->arm(q->inner);
}

static int fault_event_fd(struct engine_queue *q)
{
	return q->inner_ops->event_fd(q->inner);
}

/* ---- life ---- */

static int fault_open(const struct engine_config *config, struct engine **out,
		      struct engine_info *info, struct error *err)
{
	const struct fault_table *t = container_of(config->ops, struct fault_table, ops);
	struct engine_config inner_config = *config;
	struct engine *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return error_set(err, -ENOMEM, "out of memory");
	e->inner_ops = t->inner;
	inner_config.ops = t->inner;
	ret = fault_rules_parse(t->spec, &e->rules, err);
	if (ret == 0)
		ret = t->inner->open(&inner_config, &e->inner, info, err);
	if (ret < 0) {
		free(e);
		return ret;
	}
	e->block = MAX(info->logical_block, info->memory_align);
	*out = e;
	return 0;
}

static void fault_close(struct engine *e)
{
	e->inner_ops->close(e->inner);
	free(e);
}

static int64_t fault_refresh_size(struct engine *e)
{
	return e->inner_ops->refresh_size(e->inner);
}

static int fault_set_memory(struct engine *e, const struct engine_memory *memory, unsigned n)
{
	return e->inner_ops->set_memory(e->inner, memory, n);
}

static int fault_queue_create(struct engine *e, const struct engine_queue_config *config,
			      struct engine_queue **out, struct error *err)
{
	struct engine_queue *q = calloc(1, sizeof(*q));
	int ret;

	if (!q)
		return error_set(err, -ENOMEM, "out of memory");
	ret = e->inner_ops->queue_create(e->inner, config, &q->inner, err);
	if (ret < 0) {
		free(q);
		return ret;
	}
	q->engine = e;
	q->inner_ops = e->inner_ops;
	q->loop = loop_current();
	q->timer.expired = expired;
	list_init(&q->delayed);
	list_init(&q->refused);
	list_init(&q->spare);
	*out = q;
	return 0;
}

static void fault_queue_destroy(struct engine_queue *q)
{
	struct list *node;

	ASSERT(!q->held && list_empty(&q->refused));
	q->inner_ops->queue_destroy(q->inner);
	while ((node = list_pop_front(&q->spare)))
		free(list_entry(node, struct fault_request, node));
	free(q);
}

const struct engine_ops *fault_wrap(const struct engine_ops *inner, const char *spec)
{
	struct fault_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->inner = inner;
	t->spec = strdup(spec);
	t->ops = (struct engine_ops){
		.name = inner->name,
		.open = fault_open,
		.close = fault_close,
		.refresh_size = fault_refresh_size,
		.queue_create = fault_queue_create,
		.queue_destroy = fault_queue_destroy,
		.submit_batch = fault_submit_batch,
		.poll = fault_poll,
		.disarm = fault_disarm,
		.arm = fault_arm,
		.event_fd = fault_event_fd,
		.set_memory = inner->set_memory ? fault_set_memory : NULL,
	};
	return &t->ops;
}

void fault_unwrap(const struct engine_ops *ops)
{
	struct fault_table *t = container_of(ops, struct fault_table, ops);

	free(t->spec);
	free(t);
}
