/* SPDX-License-Identifier: Apache-2.0 */
/* Where requests go and when: all of the target and nothing else, and the same for one seed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "bench/pattern.h"

static void init(struct bench_pattern *p, uint64_t blocks, bool is_random, bool apart, unsigned job,
		 unsigned jobs)
{
	memset(p, 0, sizeof(*p));
	bench_pattern_init(p, blocks, is_random, apart, job, jobs);
	bench_random_init(&p->random, 7, job);
}

static void test_sequential(void **state)
{
	struct bench_pattern p;

	for (unsigned job = 0; job < 3; job++) {
		/* 10 blocks for 3 jobs: the last one belongs to nobody. */
		init(&p, 10, false, false, job, 3);
		for (unsigned i = 0; i < 7; i++)
			assert_int_equal(bench_pattern_next(&p), job * 3 + i % 3);
	}
}

static void check_random(unsigned job, bool apart, uint64_t first, uint64_t blocks)
{
	unsigned seen[64] = {0};
	struct bench_pattern p;

	init(&p, 64, true, apart, job, 4);
	for (unsigned i = 0; i < 64000; i++) {
		uint64_t block = bench_pattern_next(&p);

		assert_true(block >= first && block < first + blocks);
		seen[block]++;
	}
	/* Each as often as the others, within 6 sigma. */
	for (uint64_t i = first; i < first + blocks; i++) {
		double mean = 64000.0 / (double)blocks;

		assert_true(fabs(seen[i] - mean) < 6 * sqrt(mean));
	}
}

static void test_random(void **state)
{
	check_random(1, false, 0, 64);
	check_random(1, true, 16, 16);
	check_random(3, true, 48, 16);
}

static void test_seeds(void **state)
{
	struct bench_random a, b, c, d;
	unsigned same = 0;

	bench_random_init(&a, 1, 0);
	bench_random_init(&b, 1, 0);
	bench_random_init(&c, 1, 1);
	bench_random_init(&d, 2, 0);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t x = bench_random_next(&a);

		assert_true(x == bench_random_next(&b));
		same += x == bench_random_next(&c);
		same += x == bench_random_next(&d);
	}
	assert_int_equal(same, 0);
}

static void test_mix(void **state)
{
	struct bench_pattern p;
	unsigned reads = 0;

	init(&p, 64, true, false, 0, 1);
	p.read_percent = 70;
	for (unsigned i = 0; i < 10000; i++)
		reads += bench_pattern_is_read(&p);
	assert_true(reads > 6700 && reads < 7300);
	p.read_percent = 0;
	for (unsigned i = 0; i < 1000; i++)
		assert_false(bench_pattern_is_read(&p));
	p.read_percent = 100;
	for (unsigned i = 0; i < 1000; i++)
		assert_true(bench_pattern_is_read(&p));
}

/* Exponential gaps: their mean, their spread, and how many are shorter than the mean. */
static void test_arrivals(void **state)
{
	const unsigned n = 100000;
	double sum = 0, squares = 0;
	struct bench_arrivals a;
	uint64_t last = 1000;
	unsigned shorter = 0;

	bench_arrivals_init(&a, 10000, 3, 0);
	bench_arrivals_start(&a, 1000);
	for (unsigned i = 0; i < n; i++) {
		uint64_t due = bench_arrivals_due_ns(&a);
		double gap = (double)(due - last);

		assert_true(due >= last);
		sum += gap;
		squares += gap * gap;
		shorter += gap < 100000;
		last = due;
		bench_arrivals_take(&a);
	}
	assert_true(fabs(sum / n - 100000) < 2000);
	assert_true(fabs(sqrt(squares / n - (sum / n) * (sum / n)) - 100000) < 3000);
	assert_true(fabs((double)shorter / n - 0.632) < 0.01);
}

static void test_arrivals_of_a_seed(void **state)
{
	struct bench_arrivals a, b, c;

	bench_arrivals_init(&a, 5, 3, 0);
	bench_arrivals_init(&b, 5, 3, 0);
	bench_arrivals_init(&c, 5, 3, 1);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(bench_arrivals_due_ns(&a) == bench_arrivals_due_ns(&b));
		assert_true(bench_arrivals_due_ns(&a) != bench_arrivals_due_ns(&c));
		bench_arrivals_take(&a);
		bench_arrivals_take(&b);
		bench_arrivals_take(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequential), cmocka_unit_test(test_random),
		cmocka_unit_test(test_seeds),      cmocka_unit_test(test_mix),
		cmocka_unit_test(test_arrivals),   cmocka_unit_test(test_arrivals_of_a_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
