/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The poll policy: tables of loads and what it answers, and what it costs beside the best fixed
 * time that hindsight knows.  Random numbers have a fixed seed: nothing here depends on the
 * machine.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "loop/poll_policy.h"

#define US   UINT64_C(1000)
#define MS   (1000 * US)
#define SEC  (1000 * MS)
#define WAKE (50 * US)

static const struct poll_policy_limits adaptive = {.mode = POLL_ADAPTIVE};

/* ---- random loads ---- */

static uint64_t seed;

static double uniform(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

enum shape { CONSTANT, UNIFORM, EXPONENTIAL, BURSTS, BIMODAL };

struct load {
	enum shape shape;
	double a_us, b_us; /* constant: a; uniform: a..b; exponential: mean a; the others: below */
	double part;       /* bimodal: this part is b, the rest a; bursts: b after so many a */
};

static uint64_t next_gap(const struct load *l, unsigned i)
{
	double us = l->a_us;

	switch (l->shape) {
	case CONSTANT:
		break;
	case UNIFORM:
		us += uniform() * (l->b_us - l->a_us);
		break;
	case EXPONENTIAL:
		us *= -log(uniform());
		break;
	case BURSTS:
		us = (i + 1) % (unsigned)l->part ? l->a_us : l->b_us;
		break;
	case BIMODAL:
		us = uniform() < l->part ? l->b_us : l->a_us;
		break;
	}
	return (uint64_t)(us * 1000);
}

static uint64_t cost_of_gap(uint64_t gap, uint64_t spin, uint64_t wake)
{
	return gap <= spin ? gap : spin + wake;
}

/* Feeds n gaps; returns what they cost with the answers given before each. */
static uint64_t feed(struct poll_policy *p, const struct load *l, unsigned n)
{
	uint64_t cost = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t gap = next_gap(l, i);

		cost += cost_of_gap(gap, poll_policy_spin_ns(p), p->wake_cost_ns);
		poll_policy_note_gap(p, gap);
	}
	return cost;
}

/* ---- answers ---- */

static void test_answers(void **state)
{
	static const struct {
		struct load load;
		uint64_t wake, least, most; /* ns; the answer after 200 gaps */
	} table[] = {
		/* Short gaps are covered, and never for longer than the wake-up is worth. */
		{{CONSTANT, 0.1}, WAKE, US, WAKE},
		{{CONSTANT, 10}, WAKE, 10 * US, WAKE},
		{{UNIFORM, 10, 30}, WAKE, 30 * US, WAKE},
		{{CONSTANT, 45}, WAKE, 45 * US, WAKE},
		{{UNIFORM, 2, 4}, 5 * US, 4 * US, 5 * US},
		{{UNIFORM, 100, 150}, 200 * US, 150 * US, 200 * US},
		/* Long ones are not looked for. */
		{{CONSTANT, 60}, WAKE, 0, 0},
		{{UNIFORM, 60, 80}, WAKE, 0, 0},
		{{CONSTANT, 250}, WAKE, 0, 0},
		{{CONSTANT, 1000}, WAKE, 0, 0},
		{{CONSTANT, 60e6}, WAKE, 0, 0},
		{{EXPONENTIAL, 1000}, WAKE, 0, 0},
		{{EXPONENTIAL, 1000}, 200 * US, 0, 0},
		{{EXPONENTIAL, 300}, 20 * US, 0, 0},
		{{UNIFORM, 10, 30}, 5 * US, 0, 0},
		{{EXPONENTIAL, 10}, WAKE, 30 * US, WAKE},
		/* 31 gaps of a burst, then a pause: look as long as a gap of the burst. */
		{{BURSTS, 0.5, 1000, 32}, WAKE, US, 2 * US},
		{{BURSTS, 5, 1000, 32}, WAKE, 5 * US, 7 * US},
		/* One in two is short: worth it when it is short enough. */
		{{BURSTS, 5, 1000, 2}, WAKE, 5 * US, 7 * US},
		{{BURSTS, 40, 1000, 2}, WAKE, 0, 0},
		/* One in twenty. */
		{{BURSTS, 1000, 5, 20}, WAKE, 0, 0},
		{{BIMODAL, 10, 200, 0.2}, WAKE, 10 * US, 13 * US},
		{{BIMODAL, 10, 200, 0.9}, WAKE, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct poll_policy p;
		uint64_t spin;

		seed = i;
		poll_policy_init(&p, &adaptive, table[i].wake);
		feed(&p, &table[i].load, 200);
		spin = poll_policy_spin_ns(&p);
		if (spin < table[i].least || spin > table[i].most)
			fail_msg("load %zu: %lu ns", i, (unsigned long)spin);
	}
}

static void test_start(void **state)
{
	struct poll_policy p;

	/* Optimistic, and not for long. */
	poll_policy_init(&p, &adaptive, WAKE);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(poll_policy_spin_ns(&p), WAKE / 2);
		poll_policy_note_gap(&p, 1 * MS);
	}
	poll_policy_note_gap(&p, 1 * MS);
	assert_int_equal(poll_policy_spin_ns(&p), 0);
}

static void test_modes(void **state)
{
	static const struct {
		struct poll_policy_limits limits;
		uint64_t least, most;
	} table[] = {
		{{POLL_OFF}, 0, 0},
		{{POLL_FIXED, .fixed_ns = 3 * MS}, 3 * MS, 3 * MS},
		{{POLL_FIXED, .fixed_ns = 0}, 0, 0},
		{{POLL_ALWAYS}, POLL_SPIN_FOREVER, POLL_SPIN_FOREVER},
		{{POLL_ADAPTIVE}, 5 * US, WAKE},
		{{POLL_ADAPTIVE, .max_ns = 6 * US}, 5 * US, 6 * US},
		{{POLL_ADAPTIVE, .max_ns = 1 * US}, 0, 0},
	};
	const struct load load = {CONSTANT, 5};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct poll_policy p;

		poll_policy_init(&p, &table[i].limits, WAKE);
		if (table[i].limits.max_ns)
			assert_true(poll_policy_spin_ns(&p) <= table[i].limits.max_ns);
		feed(&p, &load, 100);
		if (poll_policy_spin_ns(&p) < table[i].least ||
		    poll_policy_spin_ns(&p) > table[i].most)
			fail_msg("mode %zu: %lu ns", i, (unsigned long)poll_policy_spin_ns(&p));
	}
}

/* ---- changes of the load ---- */

static unsigned gaps_until(struct poll_policy *p, const struct load *l, bool spins)
{
	for (unsigned i = 0; i < 1000; i++) {
		if ((poll_policy_spin_ns(p) >= 20 * US) == spins)
			return i;
		feed(p, l, 1);
	}
	return 1000;
}

static void test_learns_and_forgets(void **state)
{
	const struct load busy = {UNIFORM, 10, 20}, calm = {EXPONENTIAL, 1000},
			  night = {CONSTANT, 3600e6};
	struct poll_policy p;

	seed = 1;
	poll_policy_init(&p, &adaptive, WAKE);
	feed(&p, &busy, 1000000);
	assert_in_range(gaps_until(&p, &calm, false), 1, 100);
	feed(&p, &calm, 100000);
	assert_int_equal(poll_policy_spin_ns(&p), 0);
	assert_in_range(gaps_until(&p, &busy, true), 1, 100);
	/* An hour counts no more than a millisecond. */
	feed(&p, &night, 10000);
	assert_int_equal(poll_policy_spin_ns(&p), 0);
	assert_in_range(gaps_until(&p, &busy, true), 1, 100);
	poll_policy_note_gap(&p, UINT64_MAX);
	assert_true(poll_policy_spin_ns(&p) >= 20 * US);
}

/*
 * On a processor that both sides share, work comes only when nobody looks.  The gaps that are slept
 * through are short and promise much, and no looking finds anything.
 */
static void test_looking_starves_the_other_side(void **state)
{
	const unsigned n = 20000;
	struct poll_policy p;
	uint64_t spun = 0;

	poll_policy_init(&p, &adaptive, WAKE);
	for (unsigned i = 0; i < n; i++) {
		uint64_t spin = poll_policy_spin_ns(&p);

		spun += spin;
		poll_policy_note_gap(&p, spin + 3 * US);
	}
	assert_true(spun / n < WAKE / 20);
	/* When there are processors again, that is found out, too. */
	for (unsigned i = 0; i < 3000; i++)
		poll_policy_note_gap(&p, 3 * US);
	assert_true(poll_policy_spin_ns(&p) >= 3 * US);
}

/* The weights stay small, and their sum is what total says. */
static void test_no_build_up(void **state)
{
	const struct load load = {EXPONENTIAL, 20};
	struct poll_policy p;
	uint64_t sum = 0;

	poll_policy_init(&p, &adaptive, WAKE);
	feed(&p, &load, 3000001);
	for (unsigned b = 0; b < POLL_POLICY_BUCKETS; b++)
		sum += p.weight[b];
	assert_int_equal(sum, p.total);
	assert_true(p.total <= 64 * 256);
}

/* ---- cost ---- */

#define GAPS 5000

static uint64_t best_fixed_cost(const struct load *l, uint64_t wake, uint64_t first_seed)
{
	uint64_t best = UINT64_MAX;

	for (uint64_t t = 0; t <= wake; t += wake / 50) {
		uint64_t cost = 0;

		seed = first_seed;
		for (unsigned i = 0; i < GAPS; i++)
			cost += cost_of_gap(next_gap(l, i), t, wake);
		best = cost < best ? cost : best;
	}
	return best;
}

static void test_cost_beside_best_fixed(void **state)
{
	static const double means[] = {0.3, 1,  3,   10,  20,  30,   40,  50,
				       60,  80, 100, 200, 500, 1000, 5000};
	static const uint64_t wakes[] = {5 * US, 20 * US, 50 * US, 200 * US};
	static const struct load others[] = {
		{UNIFORM, 0, 20},          {UNIFORM, 10, 60},        {UNIFORM, 40, 60},
		{UNIFORM, 33, 36},         {BURSTS, 5, 1000, 32},    {BURSTS, 20, 3000, 4},
		{BIMODAL, 10, 1000, 0.05}, {BIMODAL, 10, 1000, 0.3}, {BIMODAL, 10, 1000, 0.7},
		{BIMODAL, 30, 100, 0.5},   {BIMODAL, 0.5, 45, 0.1},
	};
	double worst = 0;

	for (size_t w = 0; w < ARRAY_SIZE(wakes); w++) {
		for (size_t i = 0; i < ARRAY_SIZE(means) + ARRAY_SIZE(others); i++) {
			struct load l = {EXPONENTIAL, means[i % ARRAY_SIZE(means)]};
			struct poll_policy p;
			double ratio;
			uint64_t cost;

			if (i >= ARRAY_SIZE(means))
				l = others[i - ARRAY_SIZE(means)];
			seed = i + 100;
			poll_policy_init(&p, &adaptive, wakes[w]);
			cost = feed(&p, &l, GAPS);
			ratio = (double)cost / (double)best_fixed_cost(&l, wakes[w], i + 100);
			worst = ratio > worst ? ratio : worst;
			if (ratio > 1.2)
				fail_msg("load %zu, wake-up %lu us: %.3f of the best", i,
					 (unsigned long)(wakes[w] / US), ratio);
		}
	}
	print_message("at worst %.3f of the best fixed time\n", worst);
}

/*
 * A thousand requests a second with exponential gaps: hardly any looking at all.  A wake-up takes
 * several microseconds of processor time; one microsecond more for each is far from half of that.
 */
static void test_thousand_a_second(void **state)
{
	const struct load l = {EXPONENTIAL, 1000};

	for (uint64_t wake = 20 * US; wake <= 200 * US; wake += 30 * US) {
		struct poll_policy p;
		uint64_t spun = 0;

		seed = wake;
		poll_policy_init(&p, &adaptive, wake);
		for (unsigned i = 0; i < 100000; i++) {
			uint64_t gap = next_gap(&l, i);
			uint64_t spin = poll_policy_spin_ns(&p);

			spun += gap < spin ? gap : spin;
			poll_policy_note_gap(&p, gap);
		}
		if (spun / 100000 > US)
			fail_msg("wake-up %lu us: %lu ns spun a request",
				 (unsigned long)(wake / US), (unsigned long)(spun / 100000));
	}
}

/* ---- text ---- */

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int ret;
		enum poll_mode mode;
		uint64_t fixed_ns;
	} table[] = {
		{"adaptive", 0, POLL_ADAPTIVE, 0},
		{"off", 0, POLL_OFF, 0},
		{"always", 0, POLL_ALWAYS, 0},
		{"50us", 0, POLL_FIXED, 50 * US},
		{"1ms", 0, POLL_FIXED, 1 * MS},
		{"20000ns", 0, POLL_FIXED, 20 * US},
		{"2s", 0, POLL_FIXED, 2 * SEC},
		{"0us", 0, POLL_FIXED, 0},
		{"3600s", 0, POLL_FIXED, 3600 * SEC},
		{"3601s", -EINVAL},
		{"18446744073709551616ns", -EINVAL},
		{"18446744073709551615s", -EINVAL},
		{"", -EINVAL},
		{"50", -EINVAL},
		{"us", -EINVAL},
		{"-1us", -EINVAL},
		{"+1us", -EINVAL},
		{" 1us", -EINVAL},
		{"1us ", -EINVAL},
		{"1 us", -EINVAL},
		{"1.5us", -EINVAL},
		{"0x10us", -EINVAL},
		{"1US", -EINVAL},
		{"Off", -EINVAL},
		{"offf", -EINVAL},
		{"adaptive,", -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct poll_policy_limits out = {.fixed_ns = 77};
		struct error err = {""};

		if (poll_policy_parse(table[i].text, &out, &err) != table[i].ret)
			fail_msg("'%s': %s", table[i].text, err.text);
		if (table[i].ret) {
			assert_int_equal(out.fixed_ns, 77); /* untouched */
			assert_non_null(strstr(err.text, poll_policy_help));
			continue;
		}
		assert_int_equal(out.mode, table[i].mode);
		assert_int_equal(out.fixed_ns, table[i].fixed_ns);
		assert_int_equal(out.max_ns, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_learns_and_forgets),
		cmocka_unit_test(test_looking_starves_the_other_side),
		cmocka_unit_test(test_no_build_up),
		cmocka_unit_test(test_cost_beside_best_fixed),
		cmocka_unit_test(test_thousand_a_second),
		cmocka_unit_test(test_parse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
