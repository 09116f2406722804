/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that is driven by hand: looking, arming, its descriptor.  What is asserted is the order in
 * which a poller is asked, when the descriptor is readable, and that no wake-up is lost.
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/defer.h"
#include "base/fd.h"
#include "loop/loop.h"

static const struct poll_policy_limits always = {.mode = POLL_ALWAYS};

static struct loop *loop;
static struct poller poller;
static struct loop_fd kick;
static char asked[512]; /* b, p (found nothing), P (found work), e, E (work after all) */
static unsigned work;   /* looks that find some */
static unsigned race;   /* ends that find some */
static unsigned runs;   /* of messages, deferred work, timers */

static void note(char what)
{
	size_t len = strlen(asked);

	if (len < sizeof(asked) - 1)
		asked[len] = what;
}

static void expect_asked(const char *want)
{
	assert_string_equal(asked, want);
	memset(asked, 0, sizeof(asked));
}

static void on_begin(struct poller *p)
{
	note('b');
}

static bool on_poll(struct poller *p)
{
	assert_ptr_equal(loop_current(), loop);
	note(work ? 'P' : 'p');
	return work && work--;
}

static bool on_end(struct poller *p)
{
	if (race) {
		race--;
		work++;
	}
	note(work ? 'E' : 'e');
	return work;
}

static const struct poller_ops poller_ops = {on_begin, on_poll, on_end};

static void on_kick(struct loop_fd *lf, uint32_t events)
{
	eventfd_clear(lf->fd);
	poller_wake(&poller);
}

static void count_msg(struct loop_msg *m)
{
	runs++;
}

static void count_defer(struct defer *d)
{
	runs++;
}

static void count_timer(struct loop_timer *t)
{
	runs++;
}

static bool readable(void)
{
	struct pollfd p = {.fd = loop_epoll_fd(loop), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static int setup(void **state)
{
	loop = loop_create(&always);
	assert_non_null(loop);
	memset(asked, 0, sizeof(asked));
	work = race = runs = 0;
	poller = (struct poller){.ops = &poller_ops};
	loop_add_poller(loop, &poller);
	kick = (struct loop_fd){.fd = eventfd_create(), .ready = on_kick};
	assert_int_equal(loop_add_fd(loop, &kick, EPOLLIN), 0);
	return 0;
}

static int teardown(void **state)
{
	assert_null(loop_current());
	loop_remove_fd(loop, &kick);
	fd_close(&kick.fd);
	loop_remove_poller(loop, &poller);
	loop_destroy(loop);
	return 0;
}

/* Looking never arms. */
static void test_look(void **state)
{
	struct loop_msg m = {.run = count_msg};

	work = 2;
	assert_true(loop_look(loop));
	assert_true(loop_look(loop));
	for (unsigned i = 0; i < 100; i++)
		assert_false(loop_look(loop));
	assert_memory_equal(asked, "bPPpp", 5);
	assert_null(strpbrk(asked, "eE"));
	loop_post(loop, &m);
	assert_int_equal(runs, 0);
	loop_look(loop);
	assert_int_equal(runs, 1);
	assert_false(readable());
}

static void note_defer(void *arg)
{
	assert_ptr_equal(loop_current(), loop);
	defer_call(arg);
	assert_int_equal(runs, 0);
}

/* A call is a section of its own: what it puts off is done when it returns. */
static void test_call(void **state)
{
	struct defer d;

	defer_init(&d, count_defer);
	loop_call(loop, note_defer, &d);
	assert_int_equal(runs, 1);
	assert_null(loop_current());
}

/* The descriptor tells of a kick until somebody has looked, and of the next one again. */
static void test_kick(void **state)
{
	for (unsigned round = 0; round < 3; round++) {
		assert_true(loop_arm(loop));
		assert_true(loop_arm(loop)); /* again is no harm */
		assert_false(readable());
		work = 1;
		eventfd_signal(kick.fd);
		assert_true(readable());
		assert_true(loop_look(loop));
		assert_false(readable());
		expect_asked("ebP");
	}
}

/* A look ends being armed for a poller that nobody has woken, too, and takes back what a message
 * has told. */
static void test_message(void **state)
{
	struct loop_msg m = {.run = count_msg};

	assert_true(loop_arm(loop));
	loop_post(loop, &m);
	assert_true(readable());
	assert_false(loop_look(loop));
	assert_int_equal(runs, 1);
	assert_false(readable());
	expect_asked("ebp");

	/* Posted before: armed in vain, and so nothing is told. */
	loop_post(loop, &m);
	assert_false(loop_arm(loop));
	assert_false(readable());
	assert_false(loop_look(loop));
	assert_int_equal(runs, 2);
	expect_asked("ebp");
}

/* Work that is met when arming. */
static void test_race(void **state)
{
	race = 1;
	assert_false(loop_arm(loop));
	assert_true(loop_look(loop));
	assert_true(loop_arm(loop));
	expect_asked("EbPe");
}

static void test_wake(void **state)
{
	assert_true(loop_arm(loop));
	loop_wake(loop);
	assert_true(readable());
	assert_false(loop_look(loop));
	assert_false(readable());
	/* Also one that is not armed. */
	loop_wake(loop);
	assert_true(readable());
	loop_look(loop);
	assert_false(readable());
}

/* The descriptor would not tell of a timer: whoever drives the loop looks until it has expired. */
static void test_timer(void **state)
{
	struct loop_timer t = {.expired = count_timer};

	for (unsigned i = 0; i < 3; i++)
		loop_look(loop);
	loop_timer_start(loop, &t, clock_now_ns() + 1000000);
	assert_false(loop_arm(loop));
	while (!runs)
		assert_false(loop_look(loop));
	assert_true(loop_arm(loop));
}

/* ---- from another thread ---- */

#define HUNT_NS 1000000000u
#define LOST_MS 10000

static void *post_one(void *arg)
{
	loop_post(loop, arg);
	return NULL;
}

/* Also the first of several, and once more when that has been looked at. */
static void test_post_from_another_thread(void **state)
{
	for (unsigned round = 0; round < 100; round++) {
		struct loop_msg m[3] = {{.run = count_msg}, {.run = count_msg}, {.run = count_msg}};
		struct pollfd p = {.fd = loop_epoll_fd(loop), .events = POLLIN};
		pthread_t threads[ARRAY_SIZE(m)];

		runs = 0;
		assert_true(loop_arm(loop));
		for (unsigned i = 0; i < ARRAY_SIZE(m); i++)
			pthread_create(&threads[i], NULL, post_one, &m[i]);
		while (runs < ARRAY_SIZE(m)) {
			assert_int_equal(poll(&p, 1, LOST_MS), 1);
			do {
				loop_look(loop);
			} while (!loop_arm(loop));
		}
		assert_int_equal(runs, ARRAY_SIZE(m));
		for (unsigned i = 0; i < ARRAY_SIZE(m); i++)
			pthread_join(threads[i], NULL);
		/* One that posted when the others had been taken may have written after them. */
		loop_look(loop);
		assert_false(readable());
	}
}

/* One who posts and one who kicks; each goes on only when it has been seen. */
struct hunter {
	pthread_t thread;
	unsigned seed;
	unsigned rounds;
	struct loop_msg msg;
	uint32_t seen; /* shared */
};

static uint32_t given, armed, hunting; /* shared: the kicks; whether to write the eventfd; go on */
static uint32_t taken;                 /* of the kicks */
static struct hunter poster, kicker;

static void hunted_begin(struct poller *p)
{
	atomic_store_relaxed(&armed, 0u);
}

static bool hunted_poll(struct poller *p)
{
	uint32_t now = atomic_load_acquire(&given);
	bool found = now != taken;

	taken = now;
	if (found)
		atomic_store_release(&kicker.seen, now);
	return found;
}

static bool hunted_end(struct poller *p)
{
	atomic_store_relaxed(&armed, 1u);
	atomic_fence_full();
	return atomic_load_acquire(&given) != taken;
}

static const struct poller_ops hunted_ops = {hunted_begin, hunted_poll, hunted_end};

static void seen_msg(struct loop_msg *m)
{
	struct hunter *h = container_of(m, struct hunter, msg);

	atomic_store_release(&h->seen, h->seen + 1);
}

/* Mostly short, and now and then until the other one is about to sleep. */
static void delay(unsigned *seed)
{
	unsigned n = (unsigned)rand_r(seed) % 8 ? (unsigned)rand_r(seed) % 400 : 4000;

	for (volatile unsigned i = 0; i < n; i++)
		;
}

static void wait_seen(struct hunter *h)
{
	while (atomic_load_acquire(&h->seen) != h->rounds && atomic_load_acquire(&hunting))
		cpu_relax();
}

static void *post_many(void *arg)
{
	struct hunter *h = arg;

	while (atomic_load_acquire(&hunting)) {
		delay(&h->seed);
		h->rounds++;
		h->msg.run = seen_msg;
		loop_post(loop, &h->msg);
		wait_seen(h);
	}
	return NULL;
}

static void *kick_many(void *arg)
{
	struct hunter *h = arg;

	while (atomic_load_acquire(&hunting)) {
		delay(&h->seed);
		h->rounds++;
		atomic_store_release(&given, h->rounds);
		atomic_fence_full();
		if (atomic_load_relaxed(&armed))
			eventfd_signal(kick.fd);
		wait_seen(h);
	}
	return NULL;
}

/* Looks a little, arms, sleeps.  Both others wait for what they gave, so that one lost wake-up of
 * each is all that is needed.  How often it slept; -1: in vain. */
static int hunt(void)
{
	struct pollfd p = {.fd = loop_epoll_fd(loop), .events = POLLIN};
	uint64_t end_ns = clock_now_ns() + HUNT_NS;
	unsigned seed = 3;
	int sleeps = 0;

	while (clock_now_ns() < end_ns) {
		unsigned looks = 1 + (unsigned)rand_r(&seed) % 20;

		while (looks--)
			loop_look(loop);
		delay(&seed);
		if (!loop_arm(loop))
			continue;
		if (poll(&p, 1, LOST_MS) != 1)
			return -1;
		sleeps++;
	}
	return sleeps;
}

static void lost_wakeups(bool post, bool kicks)
{
	int sleeps;

	poller.ops = &hunted_ops;
	given = taken = armed = 0;
	hunting = 1;
	poster = (struct hunter){.seed = 1};
	kicker = (struct hunter){.seed = 2};
	if (post)
		pthread_create(&poster.thread, NULL, post_many, &poster);
	if (kicks)
		pthread_create(&kicker.thread, NULL, kick_many, &kicker);
	sleeps = hunt();
	atomic_store_release(&hunting, 0u);
	if (post)
		pthread_join(poster.thread, NULL);
	if (kicks)
		pthread_join(kicker.thread, NULL);
	loop_look(loop); /* the last message */
	assert_true(sleeps >= 0);
	print_message("%u posts, %u kicks, %d sleeps\n", poster.rounds, kicker.rounds, sleeps);
	assert_true(sleeps > 100); /* else nothing has been tested */
}

static void test_no_post_is_lost(void **state)
{
	lost_wakeups(true, false);
}

static void test_no_kick_is_lost(void **state)
{
	lost_wakeups(false, true);
}

static void test_neither_is_lost(void **state)
{
	lost_wakeups(true, true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_look),
		TEST(test_call),
		TEST(test_kick),
		TEST(test_message),
		TEST(test_race),
		TEST(test_wake),
		TEST(test_timer),
		TEST(test_post_from_another_thread),
		TEST(test_no_post_is_lost),
		TEST(test_no_kick_is_lost),
		TEST(test_neither_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
