/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue as a poller of a loop: when it is armed, when it naps instead, and that a nap ends.
 * Counts only; the timers are real and generous.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/fd.h"
#include "transport/queue_poller.h"

/* A queue whose driver gives `give` requests at each look until `left` is used up. */
struct rig {
	struct queue queue;
	struct queue_poller poller;
	struct loop *loop;
	struct loop_timer end;
	int kick;
	unsigned left, give, outstanding;
	unsigned armed, flushes;
	bool is_armed;
};

static struct rig *rig_of(struct queue *q)
{
	return container_of(q, struct rig, queue);
}

static void notify_off(struct queue *q)
{
	rig_of(q)->is_armed = false;
}

static bool notify_on(struct queue *q)
{
	struct rig *r = rig_of(q);

	r->is_armed = true;
	r->armed++;
	return r->left > 0;
}

static bool pending(struct queue *q)
{
	return rig_of(q)->left > 0;
}

static unsigned outstanding(struct queue *q)
{
	return rig_of(q)->outstanding;
}

static unsigned backlog(struct queue *q)
{
	return rig_of(q)->left;
}

static void flush(struct queue *q)
{
	rig_of(q)->flushes++;
}

static unsigned room(struct queue *q)
{
	return 64;
}

static unsigned handle(struct queue *q, unsigned max)
{
	struct rig *r = rig_of(q);
	unsigned given = MIN(r->give, r->left);
	unsigned n = MIN(given, max);

	r->left -= n;
	return n;
}

static const struct queue_ring_ops ring_ops = {.notify_off = notify_off,
					       .notify_on = notify_on,
					       .pending = pending,
					       .outstanding = outstanding,
					       .backlog = backlog,
					       .flush = flush};
static const struct queue_device_ops device_ops = {.room = room, .handle = handle};

static void stop(struct loop_timer *t)
{
	struct rig *r = container_of(t, struct rig, end);

	loop_stop(r->loop);
}

/* Runs the loop for ms; the poller is added first and stays. */
static void rig_run(struct rig *r, unsigned ms)
{
	loop_timer_start(r->loop, &r->end, loop_now_ns(r->loop) + ms * 1000000ull);
	loop_run(r->loop);
}

static void rig_init(struct rig *r, enum poll_mode mode)
{
	struct poll_policy_limits limits = {.mode = mode};

	r->loop = loop_create(&limits);
	assert_non_null(r->loop);
	r->kick = eventfd_create();
	assert_true(r->kick >= 0);
	r->queue.ring = &ring_ops;
	r->queue.device = &device_ops;
	r->queue.state = QUEUE_RUNNING;
	r->end.expired = stop;
	r->give = 4;
	assert_int_equal(queue_poller_add(&r->poller, r->loop, &r->queue, r->kick, NULL), 0);
}

static void rig_fini(struct rig *r)
{
	queue_poller_remove(&r->poller);
	assert_false(r->queue.napping);
	loop_destroy(r->loop);
	fd_close(&r->kick);
}

/* However many are outstanding: without work there is no nap, and at the end it is armed. */
static void test_idle_queue_is_armed(void **state)
{
	struct rig r = {.outstanding = 32};

	rig_init(&r, POLL_ADAPTIVE);
	rig_run(&r, 20);
	assert_true(r.is_armed);
	assert_int_equal(r.armed, 1);
	rig_fini(&r);
}

/* One request at a time: each is waited for, so the queue is armed and never naps. */
static void test_depth_one_never_naps(void **state)
{
	struct rig r = {.outstanding = 1};

	rig_init(&r, POLL_ADAPTIVE);
	r.left = 1;
	rig_run(&r, 20);
	assert_true(r.is_armed);
	assert_false(r.queue.napping);
	rig_fini(&r);
}

/* A busy driver: a nap comes before the arming, it ends by itself, and then the queue is armed. */
static void test_busy_driver_naps_and_is_armed_at_last(void **state)
{
	struct rig r = {.outstanding = 32};

	rig_init(&r, POLL_ADAPTIVE);
	r.poller.policy.gap_ns = 1000000;
	r.left = 4;
	rig_run(&r, 50);
	assert_int_equal(r.left, 0);
	assert_true(r.is_armed);
	assert_false(r.queue.napping);
	assert_int_equal(r.armed, 1);
	rig_fini(&r);
}

/* Goes to sleep after a look that took `left` requests, a millisecond apart each. */
static void look_and_sleep(struct rig *r, unsigned left)
{
	struct poller *p = &r->poller.poller;

	r->left = r->give = left;
	p->ops->begin(p);
	assert_int_equal(p->ops->poll(p), left > 0);
	r->poller.policy.gap_ns = 1000000;
	assert_false(p->ops->end(p));
}

/* A completion in a nap has the queue looked at, as the thread is awake; the nap goes on, unarmed,
 * and what was kept back is flushed when it ends. */
static void test_completion_does_not_end_a_nap(void **state)
{
	struct rig r = {.outstanding = 32};

	rig_init(&r, POLL_ADAPTIVE);
	look_and_sleep(&r, 4);
	assert_true(r.queue.napping);
	assert_false(r.is_armed);
	r.left = 4;
	r.queue.resume(&r.queue);
	rig_run(&r, 1);
	assert_int_equal(r.left, 0);
	assert_true(r.queue.napping);
	assert_false(r.is_armed);
	assert_int_equal(r.flushes, 0);
	rig_run(&r, 50);
	assert_false(r.queue.napping);
	assert_true(r.is_armed);
	assert_true(r.flushes > 0);
	rig_fini(&r);
}

/* A queue that is taken away in its nap owes its driver no call. */
static void test_removal_in_a_nap_flushes(void **state)
{
	struct rig r = {.outstanding = 32};

	rig_init(&r, POLL_ADAPTIVE);
	look_and_sleep(&r, 4);
	assert_true(r.queue.napping);
	rig_fini(&r);
	assert_int_equal(r.flushes, 1);
}

/* poll=off: armed as soon as nothing is there. */
static void test_mode_off_never_naps(void **state)
{
	struct rig r = {.outstanding = 32};

	rig_init(&r, POLL_OFF);
	r.left = 4;
	rig_run(&r, 10);
	assert_true(r.is_armed);
	assert_false(r.queue.napping);
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle_queue_is_armed),
		cmocka_unit_test(test_depth_one_never_naps),
		cmocka_unit_test(test_busy_driver_naps_and_is_armed_at_last),
		cmocka_unit_test(test_completion_does_not_end_a_nap),
		cmocka_unit_test(test_removal_in_a_nap_flushes),
		cmocka_unit_test(test_mode_off_never_naps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
