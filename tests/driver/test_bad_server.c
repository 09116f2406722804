/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that die, or break the rules of the ring: every request in flight gets an error, nobody
 * hangs, however he waits, and closing returns.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "driver/driver_rig.h"
#include "fakes/fake_vhost_server.h"

#define IN_FLIGHT 5
#define FAULT_AT  2

static struct fake_vhost fake;
static struct fake_vhost_config config;
static struct ringside_device *dev;
static struct ringside_queue *q;
static struct ringside_error err;
static char *buf;

static void open_fake(void)
{
	struct ringside_options o = RINGSIDE_OPTIONS_INIT;

	o.timeout_ms = 2000;
	o.depth = 16;
	dev = drv_open(fake.target, &o);
	q = ringside_queue(dev, 0);
	buf = drv_memory(dev, 65536);
}

static void start(enum fake_fault fault, unsigned at, unsigned delay_ms)
{
	config.fault = fault;
	config.fault_at = at;
	config.delay_ms = delay_ms;
	if (fault == FAKE_KILLED)
		fake_vhost_fork(&fake, &config);
	else
		fake_vhost_start(&fake, &config);
	open_fake();
}

static void stop(void)
{
	ringside_close(dev);
	fake_vhost_stop(&fake);
}

static void put_reads(unsigned n)
{
	for (uintptr_t i = 0; i < n; i++)
		assert_int_equal(ringside_read(q, i * 512, buf + i * 512, 512, (void *)i), 0);
}

/* What a broken queue says, for ever, to everything. */
static void expect_broken(int error)
{
	struct ringside_completion done[4];
	struct iovec iov = {buf, 512};

	assert_int_equal(ringside_in_flight(q), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ringside_poll(q, done, 4), error);
		assert_int_equal(ringside_wait(q, done, 4, 1, -1), error);
		assert_int_equal(ringside_hybrid(q, done, 4, 1, -1), error);
		assert_int_equal(ringside_read(q, 0, buf, 512, NULL), error);
		assert_int_equal(ringside_writev(q, 0, &iov, 1, NULL), error);
		assert_int_equal(ringside_flush(q, NULL), error);
		assert_int_equal(ringside_discard(q, 0, 512, NULL), error);
		assert_int_equal(ringside_get_id(q, buf, NULL), error);
		ringside_publish(q);
		ringside_tell(q);
		ringside_submit(q);
		/* There is something to be had: the error. */
		assert_true(ringside_arm(q));
	}
	assert_int_equal(ringside_in_flight(q), 0);
}

/*
 * IN_FLIGHT requests, of which the server answers the first FAULT_AT.  good: how many succeed, or
 * more; each of the others has this error, and comes once.
 */
static void break_it(enum fake_fault fault, enum drv_mode mode, unsigned at_least, int error)
{
	struct ringside_completion done[IN_FLIGHT + 4];
	unsigned good = 0, seen = 0, n;
	int last;

	start(fault, FAULT_AT, 10);
	put_reads(IN_FLIGHT);
	ringside_submit(q);
	n = drv_collect(q, mode, done, IN_FLIGHT + 4, &last);
	for (unsigned i = 0; i < n; i++) {
		good += !done[i].result;
		if (done[i].result && done[i].result != error)
			fail_msg("fault %d, %s: result %d", fault, drv_mode_names[mode],
				 done[i].result);
		seen |= 1u << (uintptr_t)done[i].cookie;
	}
	if (n != IN_FLIGHT || seen != (1u << IN_FLIGHT) - 1 || good < at_least ||
	    good == IN_FLIGHT || last != error)
		fail_msg("fault %d, %s: %u came, %u good, %d at last", fault, drv_mode_names[mode],
			 n, good, last);
	assert_int_equal(drv_stats(q).completions, IN_FLIGHT);
	assert_int_equal(drv_stats(q).errors, IN_FLIGHT - good);
	expect_broken(error);
	stop();
}

static void test_dies(void **state)
{
	for (enum drv_mode mode = 0; mode < DRV_MODES; mode++) {
		for (unsigned round = 0; round < 5; round++)
			break_it(FAKE_DIE, mode, FAULT_AT, -ENOTCONN);
	}
}

/* What had been answered before the end is good, also when nobody has looked before. */
static void test_answered_before_it_died(void **state)
{
	for (unsigned how = 0; how < 4; how++) {
		struct ringside_completion done[IN_FLIGHT];
		unsigned n = 0;

		start(FAKE_DIE, FAULT_AT, 0);
		put_reads(IN_FLIGHT);
		if (how >= 2)
			assert_false(ringside_arm(q));
		ringside_submit(q);
		if (how >= 2)
			usleep(50000);
		/* In one go, asleep until all are there; and one by one. */
		if (how == 0)
			n = (unsigned)ringside_wait(q, done, IN_FLIGHT, IN_FLIGHT, -1);
		while (n < IN_FLIGHT) {
			int ret = ringside_poll(q, done + n, how == 2 ? 1 : IN_FLIGHT);

			assert_true(ret >= 0);
			n += (unsigned)ret;
		}
		assert_int_equal(n, IN_FLIGHT);
		for (unsigned i = 0; i < IN_FLIGHT; i++)
			assert_int_equal(done[i].result, i < FAULT_AT ? 0 : -ENOTCONN);
		expect_broken(-ENOTCONN);
		stop();
	}
}

/* A process, killed: no thread of ours has run before. */
static void test_killed(void **state)
{
	for (enum drv_mode mode = 0; mode < DRV_MODES; mode++)
		break_it(FAKE_KILLED, mode, FAULT_AT, -ENOTCONN);
}

static void test_breaks_the_ring(void **state)
{
	static const enum fake_fault faults[] = {FAKE_TWICE, FAKE_ID_BEYOND, FAKE_ID_IDLE,
						 FAKE_JUMP,  FAKE_BACK,      FAKE_TOO_MUCH};

	for (unsigned i = 0; i < ARRAY_SIZE(faults); i++) {
		for (enum drv_mode mode = 0; mode < DRV_MODES; mode++)
			break_it(faults[i], mode, 0, -EPROTO);
	}
}

/* The same where each request is a chain in the ring, and notifications are a flag. */
static void test_breaks_a_plain_ring(void **state)
{
	config.features &= ~(VIRTIO_BIT(VIRTIO_RING_F_INDIRECT_DESC) |
			     VIRTIO_BIT(VIRTIO_RING_F_EVENT_IDX));
	test_breaks_the_ring(state);
	test_dies(state);
}

/* The wrong answer when nothing at all is in flight. */
static void test_answers_what_was_not_asked(void **state)
{
	struct ringside_completion done;

	start(FAKE_TWICE, 0, 0);
	put_reads(1);
	assert_true(drv_finish(q) <= 0);
	assert_int_equal(ringside_poll(q, &done, 1), -EPROTO);
	expect_broken(-EPROTO);
	stop();
}

/* The error of one request only; the queue goes on. */
static void test_bad_status(void **state)
{
	static const struct {
		enum fake_fault fault;
		int result;
	} faults[] = {{FAKE_NO_STATUS, -EIO},
		      {FAKE_BAD_STATUS, -EIO},
		      {FAKE_IOERR, -EIO},
		      {FAKE_UNSUPP, -EOPNOTSUPP}};

	for (unsigned i = 0; i < ARRAY_SIZE(faults); i++) {
		struct ringside_completion done[IN_FLIGHT];
		int error;

		start(faults[i].fault, FAULT_AT, 0);
		for (unsigned round = 0; round < 3; round++) {
			put_reads(IN_FLIGHT);
			ringside_submit(q);
			assert_int_equal(drv_collect(q, DRV_WAIT, done, IN_FLIGHT, &error),
					 IN_FLIGHT);
			for (unsigned r = 0; r < IN_FLIGHT; r++)
				assert_int_equal(done[r].result, round == 0 && r == FAULT_AT
									 ? faults[i].result
									 : 0);
		}
		assert_int_equal(drv_stats(q).errors, 1);
		stop();
	}
}

/* Waits end by their time, and closing by the server's answer. */
static void test_never_answers(void **state)
{
	struct ringside_completion done[IN_FLIGHT];

	start(FAKE_NEVER, 0, 0);
	put_reads(IN_FLIGHT);
	ringside_submit(q);
	assert_int_equal(ringside_wait(q, done, IN_FLIGHT, 1, 10000000), 0);
	assert_int_equal(ringside_hybrid(q, done, IN_FLIGHT, 5, 10000000), 0);
	for (unsigned i = 0; i < 250000; i++) /* it lives: looked at now and then */
		assert_int_equal(ringside_poll(q, done, IN_FLIGHT), 0);
	assert_int_equal(ringside_in_flight(q), IN_FLIGHT);
	stop();
}

/* Also what was put and never shown comes back, and in pieces if there is little room. */
static void test_dies_with_requests_not_published(void **state)
{
	struct ringside_completion done;
	unsigned seen = 0;

	start(FAKE_DIE, 0, 0);
	put_reads(3);
	ringside_submit(q);
	put_reads(4);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(ringside_wait(q, &done, 1, 1, -1), 1);
		assert_int_equal(done.result, -ENOTCONN);
		seen += (unsigned)(uintptr_t)done.cookie;
	}
	assert_int_equal(seen, 0 + 1 + 2 + 0 + 1 + 2 + 3);
	expect_broken(-ENOTCONN);
	stop();
}

/* Both queues of a device see the end; so does who asks the device for memory; then there may be
 * another life at the same address. */
static void test_device_after_the_end(void **state)
{
	struct ringside_options o = RINGSIDE_OPTIONS_INIT;
	struct ringside_completion done[4];
	unsigned fds = drv_fds();
	void *p;

	o.queues = 2;
	config.fault = FAKE_DIE;
	config.fault_at = 3;
	fake_vhost_start(&fake, &config);
	for (unsigned round = 0; round < 3; round++) {
		dev = drv_open(fake.target, &o);
		q = ringside_queue(dev, 1);
		buf = drv_memory(dev, 4096);
		for (unsigned i = 0; i < 3; i++) {
			put_reads(1);
			assert_int_equal(drv_finish(q), 0);
		}
		put_reads(1);
		assert_int_equal(drv_finish(q), -ENOTCONN);
		q = ringside_queue(dev, 0);
		/* This one has not noticed yet, and takes a request. */
		put_reads(2);
		ringside_submit(q);
		assert_int_equal(ringside_wait(q, done, 4, 2, -1), 2);
		assert_int_equal(done[0].result, -ENOTCONN);
		expect_broken(-ENOTCONN);
		assert_int_equal(ringside_memory_alloc(dev, 4096, &p, &err), -ENOTCONN);
		assert_non_null(strstr(err.text, "closed the connection"));
		assert_int_equal(ringside_memory_alloc(dev, 4096, &p, NULL), -ENOTCONN);
		assert_true(ringside_memory_free(dev, buf, &err) < 0);
		assert_int_equal(drv_info(dev).capacity_bytes, 1 << 20);
		ringside_close(dev);
	}
	fake_vhost_stop(&fake);
	assert_int_equal(fake.clients, 3);
	assert_int_equal(drv_fds(), fds);
}

/* ---- servers that lack what makes it fast, and break no rule ---- */

static void read_and_write(unsigned segments, unsigned n)
{
	struct iovec iov[16];
	struct ringside_completion done[16];
	int error;

	for (unsigned round = 0; round < 50; round++) {
		enum drv_mode mode = round % DRV_MODES;
		size_t len = (size_t)segments * 512;

		drv_fill(buf, n * len, round);
		for (unsigned write = 0; write < 2; write++) {
			char *at = write ? buf : buf + 32768;

			for (unsigned i = 0; i < n; i++) {
				for (unsigned s = 0; s < segments; s++)
					iov[s] = (struct iovec){at + i * len + s * 512, 512};
				assert_int_equal((write ? ringside_readv : ringside_writev)(
							 q, i * len, iov, segments, NULL),
						 0);
			}
			if (!write)
				memcpy(buf + 32768, buf, n * len);
			ringside_submit(q);
			if (mode == DRV_WAIT)
				assert_int_equal(ringside_wait(q, done, n, n, -1), n);
			else
				assert_int_equal(drv_collect(q, mode, done, n, &error), n);
			for (unsigned i = 0; i < n; i++)
				assert_int_equal(done[i].result, 0);
			if (!write)
				memset(buf, 0xee, n * len);
		}
		assert_memory_equal(buf, buf + 32768, n * len);
	}
}

static void lacking(uint64_t features, uint64_t protocol_features)
{
	fake_vhost_config_init(&config);
	config.features &= ~features;
	config.protocol_features &= ~protocol_features;
	start(FAKE_ANSWER, 0, 0);
	assert_int_equal(drv_info(dev).event_idx,
			 !(features & VIRTIO_BIT(VIRTIO_RING_F_EVENT_IDX)));
	assert_int_equal(drv_info(dev).indirect,
			 !(features & VIRTIO_BIT(VIRTIO_RING_F_INDIRECT_DESC)));
	read_and_write(1, 8);
	read_and_write(3, 4);
	read_and_write(16, 2);
	assert_int_equal(ringside_get_id(q, buf, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
	assert_string_equal(buf, "fake");
	stop();
}

static void test_lacking(void **state)
{
	const uint64_t event = VIRTIO_BIT(VIRTIO_RING_F_EVENT_IDX),
		       indirect = VIRTIO_BIT(VIRTIO_RING_F_INDIRECT_DESC);

	lacking(0, 0);
	lacking(event, 0);
	lacking(indirect, 0);
	lacking(event | indirect, 0);
	lacking(0, 1ull << VHOST_USER_PROTOCOL_F_REPLY_ACK);
	lacking(0, 1ull << VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS);
	lacking(event | indirect, ~(1ull << VHOST_USER_PROTOCOL_F_CONFIG));
}

/* Without indirect tables the longest request fits in a ring of any depth. */
static void test_longest_chain(void **state)
{
	struct ringside_options o = RINGSIDE_OPTIONS_INIT;
	struct iovec iov[1022];

	config.features &= ~VIRTIO_BIT(VIRTIO_RING_F_INDIRECT_DESC);
	config.blk.seg_max = 4000;
	fake_vhost_start(&fake, &config);
	o.depth = 1;
	o.max_segments = 1022;
	dev = drv_open(fake.target, &o);
	q = ringside_queue(dev, 0);
	buf = drv_memory(dev, 1022 * 512);
	assert_int_equal(drv_info(dev).max_segments, 1022);
	for (unsigned i = 0; i < 1022; i++)
		iov[i] = (struct iovec){buf + i * 512, 512};
	drv_fill(buf, 1022 * 512, 5);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ringside_writev(q, 512, iov, 1022, NULL), 0);
		assert_int_equal(drv_finish(q), 0);
	}
	assert_memory_equal(fake.disk + 512, buf, 1022 * 512);
	stop();
}

static int defaults(void **state)
{
	fake_vhost_config_init(&config);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_killed, defaults),
		cmocka_unit_test_setup(test_dies, defaults),
		cmocka_unit_test_setup(test_answered_before_it_died, defaults),
		cmocka_unit_test_setup(test_breaks_the_ring, defaults),
		cmocka_unit_test_setup(test_breaks_a_plain_ring, defaults),
		cmocka_unit_test_setup(test_answers_what_was_not_asked, defaults),
		cmocka_unit_test_setup(test_bad_status, defaults),
		cmocka_unit_test_setup(test_never_answers, defaults),
		cmocka_unit_test_setup(test_dies_with_requests_not_published, defaults),
		cmocka_unit_test_setup(test_device_after_the_end, defaults),
		cmocka_unit_test_setup(test_lacking, defaults),
		cmocka_unit_test_setup(test_longest_chain, defaults),
	};

	drv_no_hang();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
