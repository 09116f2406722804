/* SPDX-License-Identifier: Apache-2.0 */
/* The service loop over a virtqueue and an echo device: its four answers, and who is told what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <endian.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "fakes/echo_device.h"
#include "fakes/ring_rig.h"

static struct ring_rig rig;
static struct echo_device echo;
static bool event_idx;

static void start(unsigned slots)
{
	ring_rig_init(&rig, &(struct ring_rig_config){
				    .size = 64, .start_idx = 65530, .event_idx = event_idx});
	echo_init(&echo, &rig.vq, slots);
	ring_rig_event(rig.call_fd, 0);
}

static void end(void)
{
	ring_rig_fini(&rig);
}

/* The driver submits n requests, each by itself; returns how often it kicked. */
static unsigned submit(unsigned n)
{
	unsigned kicks = 0;

	while (n--) {
		struct virtq_buf bufs[2] = {{RIG_DATA, 8}, {RIG_DATA + 64, 8}};

		assert_int_equal(virtq_driver_put(&rig.drv, bufs, 1, 1, &rig), 0);
		virtq_driver_publish(&rig.drv);
		kicks += virtq_driver_tell(&rig.drv);
	}
	return kicks;
}

static unsigned reap(void)
{
	uint32_t written;
	unsigned n = 0;
	void *cookie;

	while (virtq_driver_take(&rig.drv, &cookie, &written) == 1) {
		assert_ptr_equal(cookie, &rig);
		assert_int_equal(written, 8);
		n++;
	}
	return n;
}

static enum service_result kick(unsigned budget)
{
	enum service_result result;

	defer_begin();
	result = service_kick(&rig.vq.queue, budget);
	defer_end();
	return result;
}

/* Looks like a driver that is told by the ring: is a kick wanted for the next request? */
static bool armed(void)
{
	if (event_idx)
		return le16toh(*rig.drv.avail_event) == ring_rig_avail_idx(&rig);
	return !rig.drv.used->flags;
}

static void test_idle(void **state)
{
	start(16);
	assert_int_equal(kick(16), SERVICE_IDLE);
	assert_true(armed());
	assert_int_equal(rig.vq.queue.stats.batches, 0);
	end();
}

static void test_worked(void **state)
{
	start(16);
	assert_int_equal(kick(16), SERVICE_IDLE);
	assert_int_equal(submit(5), event_idx ? 1 : 5);
	assert_int_equal(kick(16), SERVICE_WORKED);
	assert_true(armed());
	assert_int_equal(reap(), 5);
	assert_int_equal(rig.vq.queue.stats.batches, 1);
	end();
}

static void test_more(void **state)
{
	start(16);
	submit(10);
	assert_int_equal(kick(4), SERVICE_MORE);
	assert_false(armed()); /* on purpose: we come again */
	assert_int_equal(submit(1), 0);
	assert_int_equal(kick(4), SERVICE_MORE);
	assert_int_equal(kick(4), SERVICE_WORKED);
	assert_true(armed());
	assert_int_equal(reap(), 11);
	end();
}

static void test_blocked(void **state)
{
	start(4);
	echo.hold = true;
	submit(10);
	assert_int_equal(kick(64), SERVICE_MORE); /* four taken */
	assert_int_equal(echo.taken, 4);
	assert_int_equal(kick(64), SERVICE_BLOCKED);
	assert_false(armed());
	assert_false(service_poll_end(&rig.vq.queue)); /* a kick could do nothing */
	assert_false(armed());
	assert_int_equal(rig.resumed, 0);
	/* The first completion resumes it, once. */
	echo_complete(&echo, 2);
	assert_int_equal(rig.resumed, 1);
	assert_int_equal(kick(64), SERVICE_MORE);
	assert_int_equal(kick(64), SERVICE_BLOCKED);
	echo_complete(&echo, 4);
	assert_int_equal(rig.resumed, 2);
	assert_int_equal(kick(64), SERVICE_WORKED); /* the last four */
	assert_true(armed());
	echo_complete(&echo, 4);
	assert_int_equal(rig.resumed, 2); /* it did not wait */
	assert_int_equal(reap(), 10);
	end();
}

/* A queue that was blocked and has been looked at since with success is not blocked any more. */
static void test_blocked_then_not(void **state)
{
	start(4);
	echo.hold = true;
	submit(1);
	rig.vq.queue.starved = true; /* as a driver that plays with its index can make it */
	assert_int_equal(kick(64), SERVICE_WORKED);
	assert_true(armed());
	echo_complete(&echo, 1);
	end();
}

/* The driver publishes between the last look and the arming. */
static const struct queue_ring_ops *real_ops;

static bool racing_notify_on(struct queue *q)
{
	submit(1);
	return real_ops->notify_on(q);
}

static void test_race(void **state)
{
	struct queue_ring_ops ops;

	start(16);
	real_ops = rig.vq.queue.ring;
	ops = *real_ops;
	ops.notify_on = racing_notify_on;
	rig.vq.queue.ring = &ops;
	submit(1);
	assert_int_equal(kick(16), SERVICE_MORE);
	rig.vq.queue.ring = real_ops;
	assert_int_equal(kick(16), SERVICE_WORKED);
	assert_int_equal(reap(), 2);
	end();
}

/* While a poller owns the queue nothing kicks, however many passes. */
static void test_poller(void **state)
{
	struct queue *q = &rig.vq.queue;

	start(64);
	service_poll_begin(q);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(submit(3), 0);
		defer_begin();
		assert_int_equal(service_run(q, 64), SERVICE_WORKED);
		defer_end();
		assert_int_equal(reap(), 3);
		assert_int_equal(service_run(q, 64), SERVICE_IDLE);
	}
	assert_false(service_poll_end(q));
	assert_int_equal(submit(1), 1);
	assert_int_equal(ring_rig_event(rig.kick_fd, 0), 1);
	defer_begin();
	assert_int_equal(service_run(q, 64), SERVICE_WORKED);
	defer_end();
	assert_int_equal(reap(), 1);
	end();
}

/* With event indexes a queue that is looked at for 65536 requests and more kicks once a round. */
static void test_poller_wraps(void **state)
{
	unsigned kicks = 0;

	start(64);
	service_poll_begin(&rig.vq.queue);
	for (unsigned i = 0; i < 3 * 65536; i++) {
		kicks += submit(1);
		defer_begin();
		assert_int_equal(service_run(&rig.vq.queue, 64), SERVICE_WORKED);
		defer_end();
		assert_int_equal(reap(), 1);
	}
	assert_true(kicks <= (event_idx ? 3 : 0));
	end();
}

static void test_stopped(void **state)
{
	start(16);
	submit(1);
	ring_rig_stop(&rig);
	assert_int_equal(kick(16), SERVICE_IDLE);
	assert_false(service_poll_end(&rig.vq.queue));
	assert_int_equal(reap(), 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_worked),
		cmocka_unit_test(test_more),
		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_blocked_then_not),
		cmocka_unit_test(test_race),
		cmocka_unit_test(test_poller),
		cmocka_unit_test(test_poller_wraps),
		cmocka_unit_test(test_stopped),
	};
	int failed;

	event_idx = true;
	failed = cmocka_run_group_tests_name("EVENT_IDX", tests, NULL, NULL);
	event_idx = false;
	return failed + cmocka_run_group_tests_name("flags", tests, NULL, NULL);
}
