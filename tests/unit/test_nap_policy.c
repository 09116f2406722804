/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a queue naps: drivers of several kinds against a device that is done at once, in made-up
 * time.  Deterministic.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "transport/nap_policy.h"

/* A queue and its driver.  Times in nanoseconds. */
struct sim {
	struct nap_policy policy;
	uint64_t now_ns;
	uint64_t kick_ns, call_ns; /* what a notification takes the driver */
	bool napping;
	uint32_t backlog;
	uint32_t
		stale_outstanding; /* what a ring tells whose driver polls; 0: it tells the truth */
	unsigned requests, kicks, calls, naps;
};

static void arm_or_nap(struct sim *s, uint32_t outstanding)
{
	if (s->stale_outstanding)
		outstanding = s->stale_outstanding;
	s->napping = nap_policy_begin(&s->policy, s->now_ns, outstanding);
	s->naps += s->napping;
}

/* The device looks, takes all there is and completes it. */
static void serve(struct sim *s)
{
	uint32_t taken = s->backlog;

	s->backlog = 0;
	if (taken) {
		nap_policy_note_work(&s->policy, s->now_ns, taken);
		s->calls++;
		s->now_ns += s->call_ns;
	}
	arm_or_nap(s, taken);
}

/* Looks that are due by now. */
static void look(struct sim *s)
{
	while (s->napping && s->policy.look_ns <= s->now_ns) {
		if (nap_policy_look(&s->policy, s->policy.look_ns, s->backlog))
			continue;
		s->napping = false;
		serve(s);
	}
}

static void give(struct sim *s)
{
	look(s);
	s->requests++;
	s->backlog++;
	if (s->napping)
		return;
	s->kicks++;
	s->now_ns += s->kick_ns;
	serve(s);
}

/* The driver waits for what it has given. */
static void wait_for_all(struct sim *s)
{
	while (s->backlog) {
		s->now_ns = MAX(s->now_ns, s->policy.look_ns);
		look(s);
	}
}

/* Always working: `depth` requests, one after the other, each as soon as there is room. */
static void run_busy(struct sim *s, unsigned depth, uint64_t own_ns, unsigned requests)
{
	nap_policy_init(&s->policy, 0);
	arm_or_nap(s, 0);
	while (s->requests < requests) {
		s->now_ns += own_ns;
		give(s);
		if (s->backlog >= depth)
			wait_for_all(s);
	}
}

/* The device is so quick that the ring never tells of more than one; the kicks and calls are what
 * keeps the driver from giving more. */
static void test_hidden_depth_is_found(void **state)
{
	struct sim s = {.kick_ns = 40000, .call_ns = 40000};
	struct sim held_up = {.kick_ns = 80000, .call_ns = 80000};

	run_busy(&s, 32, 40000, 20000);
	assert_in_range(s.kicks, 1, 20000 / 20);
	assert_in_range(s.calls, 1, 20000 / 5);
	run_busy(&held_up, 32, 40000, 20000);
	assert_in_range(held_up.kicks, 1, 20000 / 20);
}

/* One at a time, each waited for. */
static void test_depth_one_is_left_alone(void **state)
{
	static const uint64_t own[] = {5000, 20000, 100000, 450000};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		struct sim s = {.kick_ns = 10000, .call_ns = 10000};
		uint64_t alone = 20000 * (own[i] + 20000);

		run_busy(&s, 1, own[i], 20000);
		/* Not one in a hundred waits, and all together it is hardly slower. */
		assert_in_range(s.naps, 0, 200);
		assert_true(s.now_ns < alone + alone / 50);
	}
}

/* Requests that come when they come are not made to wait. */
static void test_open_loop_is_left_alone(void **state)
{
	static const double gaps[] = {10000, 50000, 100000, 300000, 1000000};

	for (size_t i = 0; i < ARRAY_SIZE(gaps); i++) {
		struct sim s = {.kick_ns = 0, .call_ns = 0};
		unsigned short seed[3] = {1, 2, 3};
		double at = 0;
		unsigned in_nap = 0;

		nap_policy_init(&s.policy, 0);
		arm_or_nap(&s, 0);
		for (unsigned n = 0; n < 100000; n++) {
			at -= gaps[i] * log(1 - erand48(seed));
			s.now_ns = (uint64_t)at;
			give(&s);
			in_nap += s.backlog > 0;
		}
		assert_in_range(in_nap, 0, 2000); /* 2 % */
	}
}

/* The ring tells of many: a nap at once, for a part of them. */
static void test_visible_depth(void **state)
{
	struct nap_policy p;

	nap_policy_init(&p, 0);
	for (uint64_t now = 0; now < 100; now++)
		nap_policy_note_work(&p, now * 10000, 1);
	assert_false(nap_policy_begin(&p, 990000, 100)); /* many were taken since the last time */
	nap_policy_note_work(&p, 1000000, 1);
	assert_true(nap_policy_begin(&p, 1000000, 32));
	assert_in_range(p.end_ns - 1000000, 60000, 90000); /* a quarter of 32 gaps of 10 us */
	assert_false(nap_policy_look(&p, p.end_ns, 8));
	/* Nothing was taken since: the driver gives no more. */
	assert_false(nap_policy_begin(&p, 2000000, 32));
	/* Many for one notification: not worth it. */
	nap_policy_note_work(&p, 2000000, 32);
	assert_false(nap_policy_begin(&p, 2000000, 32));
}

/* It looks up, goes on while the driver gives, and ends when it has stopped. */
static void test_nap_ends_when_the_driver_waits(void **state)
{
	struct nap_policy p;
	uint64_t first;

	nap_policy_init(&p, 0);
	for (uint64_t now = 0; now < 100; now++)
		nap_policy_note_work(&p, now * 10000, 1);
	assert_false(nap_policy_begin(&p, 990000, 100)); /* many were taken since the last time */
	nap_policy_note_work(&p, 1000000, 1);
	assert_true(nap_policy_begin(&p, 1000000, 100));
	first = p.look_ns;
	assert_true(first < p.end_ns);
	assert_true(nap_policy_look(&p, first, 4));
	assert_true(p.look_ns > first);
	nap_policy_note_work(&p, first + 1, 4); /* a completion woke us: taken meanwhile */
	assert_false(nap_policy_look(&p, p.look_ns, 0));
}

/* A driver that polls never says how far it has looked. */
static void test_what_the_ring_tells_is_not_trusted_for_ever(void **state)
{
	struct sim s = {.stale_outstanding = 100};

	run_busy(&s, 1, 10000, 20000);
	assert_in_range(s.naps, 1, 20000 / 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hidden_depth_is_found),
		cmocka_unit_test(test_depth_one_is_left_alone),
		cmocka_unit_test(test_open_loop_is_left_alone),
		cmocka_unit_test(test_visible_depth),
		cmocka_unit_test(test_nap_ends_when_the_driver_waits),
		cmocka_unit_test(test_what_the_ring_tells_is_not_trusted_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
