/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"

#define WATCHDOG_NS 20000000000u

/* What the block layer does, in short: the rest stays in order and comes again. */
static void submit(struct engine_rig *rig)
{
	unsigned n;

	if (rig->submitting)
		return;
	rig->submitting = true;
	while (rig->ntodo) {
		n = rig->ops->submit_batch(rig->queue, rig->todo, rig->ntodo);
		if (n < rig->ntodo)
			rig->partial++;
		rig->todo += n;
		rig->ntodo -= n;
		if (!n)
			break;
	}
	rig->submitting = false;
}

static void request_done(struct blk_request *req, int64_t result)
{
	struct engine_rig_request *r = container_of(req, struct engine_rig_request, req);

	r->result = result;
	r->done++;
	if (!--r->rig->outstanding)
		loop_stop(r->rig->loop);
	else
		submit(r->rig);
}

static void rig_begin(struct poller *p)
{
	struct engine_rig *rig = container_of(p, struct engine_rig, poller);

	rig->ops->disarm(rig->queue);
}

static bool rig_poll(struct poller *p)
{
	struct engine_rig *rig = container_of(p, struct engine_rig, poller);
	bool found = rig->ops->poll(rig->queue);

	if (!found)
		rig->idle_looks++;
	return found;
}

static bool rig_end(struct poller *p)
{
	struct engine_rig *rig = container_of(p, struct engine_rig, poller);

	return rig->ops->arm(rig->queue);
}

static const struct poller_ops rig_poller_ops = {rig_begin, rig_poll, rig_end};

static void rig_event(struct loop_fd *lf, uint32_t events)
{
	struct engine_rig *rig = container_of(lf, struct engine_rig, event);

	eventfd_clear(lf->fd);
	poller_wake(&rig->poller);
}

static void rig_start(struct loop_msg *m)
{
	struct engine_rig *rig = container_of(m, struct engine_rig, start);

	poller_wake(&rig->poller);
	submit(rig);
}

static void rig_watchdog(struct loop_timer *t)
{
	struct engine_rig *rig = container_of(t, struct engine_rig, watchdog);

	rig->failed = true;
	loop_stop(rig->loop);
}

/* On the running loop: an engine may want to know it. */
static void rig_create_queue(struct loop_msg *m)
{
	struct engine_rig *rig = container_of(m, struct engine_rig, start);
	struct error err;

	if (rig->ops->queue_create(rig->engine, &rig->queue_config, &rig->queue, &err) < 0)
		fail_msg("%s: %s", rig->ops->name, err.text);
	loop_stop(rig->loop);
}

static void rig_stop(struct loop_msg *m)
{
	loop_stop(container_of(m, struct engine_rig, start)->loop);
}

void engine_rig_pass(struct engine_rig *rig)
{
	rig->start.run = rig_stop;
	loop_post(rig->loop, &rig->start);
	loop_run(rig->loop);
}

void engine_rig_open(struct engine_rig *rig, const struct engine_ops *ops,
		     const struct engine_config *config, unsigned depth, bool polling)
{
	struct poll_policy_limits limits = {.mode = polling ? POLL_ALWAYS : POLL_OFF};
	struct error err;

	*rig = (struct engine_rig){.ops = ops, .queue_config = {.depth = depth}};
	if (ops->open(config, &rig->engine, &rig->info, &err) < 0)
		fail_msg("%s: %s", ops->name, err.text);
	rig->loop = loop_create(&limits);
	assert_non_null(rig->loop);
	rig->start.run = rig_create_queue;
	loop_post(rig->loop, &rig->start);
	loop_run(rig->loop);
	rig->poller.ops = &rig_poller_ops;
	loop_add_poller(rig->loop, &rig->poller);
	rig->event = (struct loop_fd){.fd = ops->event_fd(rig->queue), .ready = rig_event};
	if (rig->event.fd >= 0)
		assert_int_equal(loop_add_fd(rig->loop, &rig->event, EPOLLIN), 0);
	rig->watchdog.expired = rig_watchdog;
}

void engine_rig_close(struct engine_rig *rig)
{
	loop_remove_poller(rig->loop, &rig->poller);
	if (rig->event.fd >= 0)
		loop_remove_fd(rig->loop, &rig->event);
	loop_destroy(rig->loop);
	rig->ops->queue_destroy(rig->queue);
	rig->ops->close(rig->engine);
}

void engine_rig_init(struct engine_rig_request *r, enum blk_op op, uint32_t flags, uint64_t offset,
		     void *buf, uint64_t len)
{
	*r = (struct engine_rig_request){
		.req = {.op = op, .flags = flags, .offset_bytes = offset, .len_bytes = len},
		.iov = {buf, len},
	};
	if (buf) {
		r->req.iov = &r->iov;
		r->req.iovcnt = 1;
	}
}

void engine_rig_run(struct engine_rig *rig, struct engine_rig_request *r, unsigned n)
{
	struct blk_request **list = calloc(n, sizeof(*list));

	assert_non_null(list);
	for (unsigned i = 0; i < n; i++) {
		r[i].rig = rig;
		r[i].done = 0;
		r[i].req.engine_done = request_done;
		if (r[i].iov.iov_base)
			r[i].req.iov = &r[i].iov;
		list[i] = &r[i].req;
	}
	rig->todo = list;
	rig->ntodo = rig->outstanding = n;
	loop_timer_start(rig->loop, &rig->watchdog, clock_now_ns() + WATCHDOG_NS);
	rig->start.run = rig_start;
	loop_post(rig->loop, &rig->start);
	loop_run(rig->loop);
	loop_timer_stop(rig->loop, &rig->watchdog);
	if (rig->failed)
		fail_msg("%s: %u of %u requests never ended", rig->ops->name, rig->outstanding, n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(r[i].done, 1);
	free(list);
}

int64_t engine_rig_io(struct engine_rig *rig, enum blk_op op, uint32_t flags, uint64_t offset,
		      void *buf, uint64_t len)
{
	struct engine_rig_request r;

	engine_rig_init(&r, op, flags, offset, buf, len);
	engine_rig_run(rig, &r, 1);
	return r.result;
}
