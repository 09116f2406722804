/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that is driven by hand: looking, arming, its descriptor.  What is asserted is the order in
 * which a poller is asked, and when the descriptor is readable.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <cmocka.h>

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_look), TEST(test_call), TEST(test_kick),  TEST(test_message),
		TEST(test_race), TEST(test_wake), TEST(test_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
