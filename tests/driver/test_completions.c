/* SPDX-License-Identifier: Apache-2.0 */
/* Finding completions: looking, sleeping, both, the caller's loop; threads; what is counted. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "driver/driver_rig.h"
#include "fakes/disk_server.h"

#define MIB    (1u << 20)
#define MS     1000000ll
#define FOR_ME 1000000000ll /* longer than any of this takes, unless something is lost */

static struct disk_server server;
static struct ringside_device *dev;
static struct ringside_queue *q;
static char *buf;

static void start(const char *keys, unsigned depth)
{
	struct ringside_options o = RINGSIDE_OPTIONS_INIT;

	o.depth = depth;
	disk_server_start(&server, keys, 1);
	dev = drv_open(server.target, &o);
	q = ringside_queue(dev, 0);
	buf = drv_memory(dev, MIB);
}

static void stop(void)
{
	ringside_close(dev);
	disk_server_stop(&server);
}

static void put_reads(unsigned n)
{
	for (uintptr_t i = 0; i < n; i++)
		assert_int_equal(ringside_read(q, i * 512, buf + i * 512, 512, (void *)i), 0);
}

/* Every cookie comes back once, in any mode and any mixture of depths. */
static void test_modes(void **state)
{
	static const unsigned batches[] = {1, 2, 31, 64};

	start("engine=memory,size=1M", 64);
	for (enum drv_mode mode = 0; mode < DRV_MODES; mode++) {
		for (unsigned round = 0; round < 200; round++) {
			unsigned n = batches[round % ARRAY_SIZE(batches)];
			struct ringside_completion done[64];
			uint64_t seen = 0, all = n == 64 ? ~0ull : (1ull << n) - 1;
			int error;

			put_reads(n);
			ringside_submit(q);
			if (drv_collect(q, mode, done, n, &error) != n)
				fail_msg("%s: %d", drv_mode_names[mode], error);
			for (unsigned i = 0; i < n; i++) {
				assert_int_equal(done[i].result, 0);
				seen |= 1ull << (uintptr_t)done[i].cookie;
			}
			assert_true(seen == all);
			assert_int_equal(ringside_in_flight(q), 0);
		}
	}
	/* With nothing in flight nobody sleeps. */
	assert_int_equal(ringside_poll(q, NULL, 0), 0);
	assert_int_equal(ringside_wait(q, (struct ringside_completion[1]){{0}}, 1, 1, -1), 0);
	assert_int_equal(ringside_hybrid(q, (struct ringside_completion[1]){{0}}, 1, 1, -1), 0);
	stop();
}

/* Modes one after the other on one queue, with what they leave behind. */
static void test_modes_mixed(void **state)
{
	struct ringside_completion done[8];
	unsigned x = 1;
	int error;

	start("engine=memory,size=1M", 8);
	for (unsigned round = 0; round < 3000; round++) {
		unsigned n = 1 + (x = x * 1103515245u + 12345) / 65536u % 8, got = 0;

		put_reads(n);
		ringside_submit(q);
		while (got < n) {
			enum drv_mode mode = (x = x * 1103515245u + 12345) / 65536u % DRV_MODES;

			/* Armed, and then waited for in another way. */
			if (x & (1u << 20))
				(void)ringside_arm(q);
			if (x & (1u << 21))
				drv_stats(q);
			got += drv_collect(q, mode, done, 1, &error);
			assert_int_equal(error, 0);
		}
	}
	assert_int_equal(drv_stats(q).completions, drv_stats(q).requests);
	assert_int_equal(drv_stats(q).errors, 0);
	stop();
}

static void test_wait_for_several(void **state)
{
	struct ringside_completion done[64];

	start("engine=memory,size=1M", 64);
	for (unsigned round = 0; round < 200; round++) {
		int hybrid = round & 1, n;

		put_reads(32);
		ringside_submit(q);
		n = hybrid ? ringside_hybrid(q, done, 64, 20, FOR_ME)
			   : ringside_wait(q, done, 64, 20, FOR_ME);
		assert_true(n >= 20 && n <= 32);
		/* More than there are: all there are. */
		if (n < 32) {
			n += hybrid ? ringside_hybrid(q, done, 64, 60, -1)
				    : ringside_wait(q, done, 64, 60, -1);
			assert_int_equal(n, 32);
		}
		/* More than the caller has room for: as many as that. */
		put_reads(8);
		ringside_submit(q);
		n = ringside_wait(q, done, 4, 8, -1);
		assert_int_equal(n, 4);
		n = ringside_hybrid(q, done, 4, 0, -1);
		assert_true(n >= 1 && n <= 4);
		while (ringside_in_flight(q))
			assert_true(ringside_wait(q, done, 64, 1, -1) > 0);
	}
	stop();
}

/* Not published, so that nothing completes: each wait ends by its time, and by nothing else. */
static void test_timeouts(void **state)
{
	struct ringside_completion done[4];
	uint64_t before;

	start("engine=memory,size=1M", 8);
	put_reads(1);
	assert_int_equal(ringside_wait(q, done, 4, 1, 0), 0);
	assert_int_equal(ringside_hybrid(q, done, 4, 1, 0), 0);
	assert_int_equal(drv_stats(q).sleeps, 0);
	assert_int_equal(drv_stats(q).spins_missed, 0);
	for (unsigned i = 0; i < 4; i++) {
		before = clock_now_ns();
		assert_int_equal(i % 2 ? ringside_wait(q, done, 4, 1 + i, 20 * MS)
				       : ringside_hybrid(q, done, 4, 1 + i, 20 * MS),
				 0);
		assert_true(clock_now_ns() - before >= 20 * MS);
	}
	assert_true(drv_stats(q).sleeps >= 4);
	assert_int_equal(ringside_wait(q, done, 4, 1, 1), 0);
	assert_int_equal(ringside_in_flight(q), 1);
	/* It comes when it is published, and no later for all that. */
	ringside_submit(q);
	assert_int_equal(ringside_wait(q, done, 4, 1, FOR_ME), 1);
	/* What is there when the time is over is given, although it is less than was wanted. */
	put_reads(1);
	ringside_submit(q);
	put_reads(1);
	assert_int_equal(ringside_wait(q, done, 4, 2, 50 * MS), 1);
	ringside_submit(q);
	assert_int_equal(ringside_hybrid(q, done, 4, 2, FOR_ME), 1);
	stop();
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

/* The descriptor says that there is something until somebody has looked, whatever else is called.
 */
static void test_descriptor(void **state)
{
	struct ringside_completion done[4];
	int fd;

	start("engine=memory,size=1M", 8);
	fd = ringside_queue_fd(q);
	for (unsigned round = 0; round < 100; round++) {
		put_reads(1);
		assert_false(ringside_arm(q));
		/* The server calls once when a queue starts; a look takes that away. */
		while (readable(fd, 0)) {
			assert_int_equal(ringside_poll(q, done, 4), 0);
			assert_false(ringside_arm(q));
		}
		ringside_submit(q);
		assert_true(readable(fd, -1));
		/* Counting does not take the notification away from the loop. */
		if (round & 1)
			drv_stats(q);
		assert_true(readable(fd, 0));
		assert_int_equal(ringside_poll(q, done, 4), 1);
	}
	assert_false(readable(fd, 0));
	/* Arming when it is there already says so. */
	put_reads(1);
	ringside_submit(q);
	while (!ringside_arm(q))
		assert_true(readable(fd, -1));
	assert_int_equal(ringside_poll(q, done, 4), 1);
	assert_true(drv_stats(q).calls_received >= 50);
	stop();
}

/* A batch is one kick at most; who looks is not called, and makes no system call but kicks. */
static void test_counts_of_looking(void **state)
{
	struct ringside_completion done[32];
	struct ringside_stats before, now;
	int error;

	start("engine=null,size=1M", 32);
	/* The first completion is told whatever we want; when the second is there, it has been. */
	for (unsigned i = 0; i < 2; i++) {
		put_reads(1);
		ringside_submit(q);
		drv_collect(q, DRV_POLL, done, 1, &error);
	}
	before = drv_stats(q);
	for (unsigned round = 0; round < 1000; round++) {
		put_reads(32);
		ringside_publish(q);
		ringside_publish(q);
		ringside_tell(q);
		/* Nothing new has been published. */
		assert_false(ringside_tell(q));
		assert_int_equal(drv_collect(q, DRV_POLL, done, 32, &error), 32);
	}
	now = drv_stats(q);
	assert_int_equal(now.requests - before.requests, 32000);
	assert_int_equal(now.completions - before.completions, 32000);
	assert_int_equal(now.bytes - before.bytes, 32000 * 512);
	assert_int_equal(now.errors, 0);
	assert_int_equal(now.calls_received - before.calls_received, 0);
	assert_int_equal(now.sleeps, 0);
	assert_int_equal(now.kicks_sent + now.kicks_suppressed - before.kicks_sent -
				 before.kicks_suppressed,
			 1000);
	assert_int_equal(now.spins_hit + now.spins_missed, 0);
	stop();
}

static void test_counts_of_sleeping(void **state)
{
	struct ringside_completion done[32];
	struct ringside_stats s;

	start("engine=null,size=1M", 32);
	for (unsigned round = 0; round < 1000; round++) {
		put_reads(32);
		ringside_submit(q);
		assert_int_equal(ringside_wait(q, done, 32, 32, -1), 32);
	}
	s = drv_stats(q);
	/* One call a batch, as it is asked for when the last has completed, and now and then one
	 * that was on its way already. */
	assert_true(s.calls_received <= 1100);
	assert_true(s.sleeps <= 1100);
	assert_true(s.kicks_sent <= 1000);
	assert_true(s.system_calls >= s.kicks_sent + s.sleeps);
	stop();
}

static void test_counts_of_hybrid(void **state)
{
	struct ringside_completion done[4];
	struct ringside_stats s;

	start("engine=null,size=1M", 4);
	for (unsigned round = 0; round < 2000; round++) {
		put_reads(1);
		ringside_submit(q);
		assert_int_equal(ringside_hybrid(q, done, 4, 1, -1), 1);
	}
	s = drv_stats(q);
	assert_true(s.spins_hit + s.spins_missed <= 2000);
	/* It spins, or sleeps; once more when a call had been on its way. */
	assert_true(s.sleeps <= 4000);
	stop();
}

/* More requests than an index counts to, at depths that are no power of two. */
static void test_index_wraps(void **state)
{
	static const unsigned depths[] = {5, 128};

	for (unsigned d = 0; d < ARRAY_SIZE(depths); d++) {
		unsigned depth = depths[d], left = 140000;
		struct ringside_completion done[128];

		start("engine=null,size=1M", depth);
		while (left || ringside_in_flight(q)) {
			int n;

			while (left && ringside_read(q, 0, buf, 512, NULL) == 0)
				left--;
			ringside_submit(q);
			n = left % 3 ? ringside_poll(q, done, 128)
				     : ringside_wait(q, done, 128, 1 + left % 7, -1);
			assert_true(n >= 0);
			for (int i = 0; i < n; i++)
				assert_int_equal(done[i].result, 0);
		}
		assert_int_equal(drv_stats(q).completions, 140000);
		stop();
	}
}

/* ---- threads ---- */

struct worker {
	pthread_t thread;
	struct ringside_device *dev;
	struct ringside_queue *queue;
	char *memory;
	uint64_t base; /* of its half of the disk */
	enum drv_mode mode;
	const char *wrong;
};

#define AREA 512u /* blocks that a worker has */

static const char *one_round(struct worker *w, unsigned round)
{
	struct ringside_completion done[16];
	unsigned n = 1 + round % 16;
	int error;

	for (unsigned i = 0; i < n; i++) {
		unsigned block = (round * 29 + i) % AREA;

		memset(w->memory + i * 512, (int)(round + i), 512);
		if (ringside_write(w->queue, w->base + block * 512, w->memory + i * 512, 512, NULL))
			return "write";
	}
	ringside_submit(w->queue);
	if (drv_collect(w->queue, w->mode, done, n, &error) != n)
		return "completions";
	for (unsigned i = 0; i < n; i++) {
		unsigned block = (round * 29 + i) % AREA;

		if (ringside_read(w->queue, w->base + block * 512, w->memory + 8192 + i * 512, 512,
				  NULL))
			return "read";
	}
	ringside_submit(w->queue);
	if (drv_collect(w->queue, w->mode, done, n, &error) != n)
		return "completions";
	return memcmp(w->memory, w->memory + 8192, n * 512) ? "data" : NULL;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned round = 0; round < 1000 && !w->wrong; round++) {
		w->mode = round / 100 % DRV_MODES;
		w->wrong = one_round(w, round);
	}
	return NULL;
}

/* A third thread that gives and takes memory meanwhile. */
static void *change_memory(void *arg)
{
	struct worker *w = arg;
	struct ringside_error err;
	void *p;

	for (unsigned i = 0; i < 100 && !w->wrong; i++) {
		if (ringside_memory_alloc(w->dev, 4096u << i % 4, &p, &err) < 0 ||
		    ringside_memory_free(w->dev, p, &err) < 0)
			w->wrong = "memory";
		drv_info(w->dev);
	}
	return NULL;
}

static void test_two_queues_on_two_threads(void **state)
{
	struct ringside_options o = RINGSIDE_OPTIONS_INIT;
	struct worker workers[3] = {{0}};

	o.queues = 2;
	disk_server_start(&server, "engine=memory,size=1M,queues=2", 2);
	dev = drv_open(server.target, &o);
	for (unsigned i = 0; i < 3; i++) {
		struct worker *w = &workers[i];

		w->dev = dev;
		w->queue = ringside_queue(dev, i);
		w->memory = drv_memory(dev, 16384);
		w->base = i * AREA * 512;
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&workers[i].thread, NULL,
						i < 2 ? work : change_memory, &workers[i]),
				 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < 3; i++) {
		if (workers[i].wrong)
			fail_msg("thread %u: %s", i, workers[i].wrong);
	}
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_modes_mixed),
		cmocka_unit_test(test_wait_for_several),
		cmocka_unit_test(test_timeouts),
		cmocka_unit_test(test_descriptor),
		cmocka_unit_test(test_counts_of_looking),
		cmocka_unit_test(test_counts_of_sleeping),
		cmocka_unit_test(test_counts_of_hybrid),
		cmocka_unit_test(test_index_wraps),
		cmocka_unit_test(test_two_queues_on_two_threads),
	};

	drv_no_hang();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
