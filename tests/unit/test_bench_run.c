/* SPDX-License-Identifier: Apache-2.0 */
/* Runs over a driver library that forgets, tears, misplaces, fails or goes away. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bench/interrupt.h"
#include "bench/run.h"
#include "bench/runner.h"
#include "bench/target.h"
#include "fakes/fake_driver.h"

#define BLOCK    4096u
#define BLOCKS   64u
#define CAPACITY (BLOCK * BLOCKS)

static struct bench_options options;
static struct bench_progress progress;
static struct bench_run result;
static struct error error;

static void set_options(enum bench_rw rw, unsigned iodepth, unsigned jobs, uint64_t count)
{
	options = (struct bench_options){
		.targets = {"one:", "two:"},
		.target_count = 1,
		.rw = {{rw}, 1},
		.completion = {{BENCH_HYBRID}, 1},
		.block_bytes = {{BLOCK}, 1},
		.iodepth = {{iodepth}, 1},
		.jobs = jobs,
		.repeats = 1,
		.batch = 1,
		.rwmix = 50,
		.count = count,
		.seed = 1,
	};
}

static int run(enum bench_completion completion)
{
	struct bench_run_plan plan = {
		.target = "one:",
		.options = &options,
		.combination = {(enum bench_rw)options.rw.values[0], completion, BLOCK,
				(unsigned)options.iodepth.values[0]},
		.progress = &progress,
	};
	int ret;

	error.text[0] = '\0';
	ret = bench_run(&plan, &result, &error);
	free(result.latency);
	assert_int_equal(fake_driver.opens, fake_driver.closes);
	return ret;
}

static int setup(void **state)
{
	fake_driver_init(CAPACITY);
	return 0;
}

static int teardown(void **state)
{
	fake_driver_fini();
	return 0;
}

static void test_count(void **state)
{
	for (unsigned c = 0; c < BENCH_COMPLETION_COUNT; c++) {
		fake_driver.requests = fake_driver.reads = 0;
		/* 1001 do not divide by 3. */
		set_options(BENCH_RANDREAD, 4, 3, 1001);
		assert_int_equal(run((enum bench_completion)c), 0);
		assert_int_equal(result.requests, 1001);
		assert_int_equal(result.bytes, 1001 * BLOCK);
		assert_int_equal(fake_driver.reads, 1001);
		assert_int_equal(fake_driver.requests, 1001);
		assert_int_equal(fake_driver.most_in_flight, 4);
		assert_int_equal(fake_driver.untold, 0);
		assert_false(result.server_known);
	}
}

static void test_kinds(void **state)
{
	set_options(BENCH_WRITE, 2, 1, 100);
	assert_int_equal(run(BENCH_POLL), 0);
	assert_int_equal(fake_driver.writes, 100);
	set_options(BENCH_FLUSH, 2, 1, 100);
	assert_int_equal(run(BENCH_POLL), 0);
	assert_int_equal(fake_driver.flushes, 100);
	assert_int_equal(result.bytes, 0);
	set_options(BENCH_DISCARD, 2, 1, 100);
	assert_int_equal(run(BENCH_POLL), 0);
	assert_int_equal(fake_driver.discards, 100);
	fake_driver.writes = fake_driver.reads = 0;
	set_options(BENCH_RANDRW, 2, 1, 1000);
	options.rwmix = 80;
	assert_int_equal(run(BENCH_POLL), 0);
	assert_true(fake_driver.reads > 700 && fake_driver.reads < 900);
	assert_int_equal(fake_driver.reads + fake_driver.writes, 1000);
}

static void test_batch(void **state)
{
	set_options(BENCH_READ, 8, 1, 800);
	options.batch = 4;
	assert_int_equal(run(BENCH_SLEEP), 0);
	assert_int_equal(fake_driver.least_told, 4);
	assert_int_equal(result.kicks, 1 + 792 / 4);
}

static void test_runtime(void **state)
{
	set_options(BENCH_RANDREAD, 1, 2, 0);
	options.runtime_ns = 300000000; /* so long that a busy machine lets the ramp run, too */
	assert_int_equal(run(BENCH_POLL), 0);
	assert_true(result.requests > 0);
	/* The ramp was run and not counted. */
	assert_true(result.requests < fake_driver.requests);
}

/* All are due at once and done one after the other: the last one has waited for all of them. */
static void test_open_loop_counts_from_the_intended_start(void **state)
{
	struct bench_run_plan plan = {.target = "one:",
				      .options = &options,
				      .combination = {BENCH_RANDREAD, BENCH_SLEEP, BLOCK, 1},
				      .progress = &progress};

	set_options(BENCH_RANDREAD, 1, 1, 2000);
	options.rate = 1000000000;
	assert_int_equal(bench_run(&plan, &result, &error), 0);
	assert_int_equal(result.latency->count, 2000);
	assert_true((double)result.latency->max_ns > result.seconds * 1e9 / 2);
	free(result.latency);
}

static void test_errors_are_counted(void **state)
{
	set_options(BENCH_RANDREAD, 4, 1, 100);
	fake_driver.fail_request = 50;
	assert_int_equal(run(BENCH_HYBRID), 0);
	assert_int_equal(result.errors, 1);
	assert_int_equal(result.requests, 99);
}

static void test_server_goes(void **state)
{
	for (unsigned c = 0; c < BENCH_COMPLETION_COUNT; c++) {
		fake_driver.requests = 0;
		fake_driver.gone_after = 500;
		set_options(BENCH_RANDREAD, 4, 2, 100000);
		assert_int_equal(run((enum bench_completion)c), -ENOTCONN);
		assert_non_null(strstr(error.text, "target 'one:': its server has gone"));
		assert_true(result.errors <= 8);
	}
}

/* ---- verify ---- */

static void set_verify(enum bench_rw rw, unsigned iodepth, unsigned jobs, uint64_t count)
{
	set_options(rw, iodepth, jobs, count);
	options.verify = options.destroy_data = true;
}

static void test_verify_good(void **state)
{
	static const enum bench_rw rws[] = {BENCH_WRITE, BENCH_RANDWRITE, BENCH_RANDRW};

	for (unsigned i = 0; i < ARRAY_SIZE(rws); i++) {
		unsigned opens = fake_driver.opens;

		set_verify(rws[i], 8, 4, 2000);
		assert_int_equal(run(BENCH_POLL), 0);
		assert_int_equal(result.requests, 2000);
		/* Once more for the last pass, and never two requests on one block. */
		assert_int_equal(fake_driver.opens, opens + 2);
		assert_int_equal(fake_driver.overlaps, 0);
	}
}

/* As many requests as blocks: each job always finds all of them busy. */
static void test_verify_deep(void **state)
{
	set_verify(BENCH_RANDRW, BLOCKS, 2, 2000);
	assert_int_equal(run(BENCH_SLEEP), 0);
	assert_int_equal(fake_driver.overlaps, 0);
	assert_int_equal(fake_driver.most_in_flight, BLOCKS / 2);
}

static void test_verify_finds(const char *says)
{
	assert_int_equal(run(BENCH_POLL), -EILSEQ);
	if (!strstr(error.text, says))
		fail_msg("%s: %s", says, error.text);
	assert_non_null(strstr(error.text, "at byte"));
}

static void test_verify_forgotten(void **state)
{
	/* Not found while it writes, but in the last pass. */
	set_verify(BENCH_WRITE, 1, 1, 2 * BLOCKS);
	fake_driver.forget_write = 2 * BLOCKS - 1;
	test_verify_finds("stale data at byte 253952: generation 2");
	fake_driver.writes = 0;
	fake_driver.forget_write = 3;
	set_verify(BENCH_WRITE, 1, 1, BLOCKS);
	test_verify_finds("foreign data at byte 8192: generation 1");
	/* In the midst of it. */
	fake_driver.writes = 0;
	fake_driver.forget_write = 10;
	set_verify(BENCH_RANDRW, 4, 1, 100000);
	test_verify_finds("data at byte");
	assert_true(result.requests < 100000);
}

static void test_verify_torn(void **state)
{
	set_verify(BENCH_WRITE, 1, 1, 2 * BLOCKS);
	fake_driver.tear_write = 2 * BLOCKS;
	test_verify_finds("torn data at byte 260096: generation 2");
}

static void test_verify_misplaced(void **state)
{
	set_verify(BENCH_WRITE, 1, 1, 2 * BLOCKS);
	/* The first block of the second round lands on its neighbour, which is written after it:
	 * its own place is old.  The last one lands on the first. */
	fake_driver.misplace_write = 2 * BLOCKS;
	test_verify_finds("misplaced data at byte 0: generation 2");
	assert_non_null(strstr(error.text, "of byte 258048"));
}

static void flip_at_second_open(unsigned opens)
{
	if (opens == 2)
		fake_driver.data[5 * BLOCK + 1000] ^= 1;
}

static void test_verify_after_reopening(void **state)
{
	set_verify(BENCH_WRITE, 4, 2, BLOCKS);
	fake_driver.on_open = flip_at_second_open;
	test_verify_finds("torn data at byte 20992: generation 1");
}

/* A disk in our own memory goes when it is closed: it is read again as it is. */
static void test_verify_of_memory_in_this_process(void **state)
{
	struct bench_run_plan plan = {.target = "file:?engine=memory&size=256K",
				      .options = &options,
				      .combination = {BENCH_WRITE, BENCH_POLL, BLOCK, 4},
				      .progress = &progress};

	set_verify(BENCH_WRITE, 4, 1, BLOCKS);
	assert_int_equal(bench_run(&plan, &result, &error), 0);
	assert_int_equal(fake_driver.opens, 1);
	assert_int_equal(fake_driver.reads, BLOCKS);
	free(result.latency);
}

static void test_verify_skips_what_failed(void **state)
{
	set_verify(BENCH_WRITE, 1, 1, BLOCKS);
	fake_driver.fail_request = 7;
	assert_int_equal(run(BENCH_POLL), 0);
	assert_int_equal(result.errors, 1);
	assert_int_equal(fake_driver.reads, BLOCKS - 1);
}

/* ---- what is asked before ---- */

static void check(int ret, const char *says)
{
	error.text[0] = '\0';
	assert_int_equal(bench_target_check("one:", &options, &error), ret);
	if (!strstr(error.text, says))
		fail_msg("%s: %s", says, error.text);
}

static void test_data_is_found(void **state)
{
	set_options(BENCH_RANDWRITE, 1, 1, 1);
	check(0, "");
	fake_driver.data[0] = 1;
	check(-EEXIST, "holds data (at byte 0)");
	options.destroy_data = true;
	check(0, "");
	options.destroy_data = false;
	options.rw.values[0] = BENCH_RANDREAD;
	check(0, "");
	options.rw.values[0] = BENCH_DISCARD;
	fake_driver.data[0] = 0;
	fake_driver.data[CAPACITY - 1] = 1;
	check(-EEXIST, "--destroy-data");
	/* What is behind --size is not touched. */
	options.size_bytes = CAPACITY / 2;
	check(0, "");
	assert_int_equal(fake_driver.writes + fake_driver.discards, 0);
}

static void test_impossible(void **state)
{
	set_options(BENCH_RANDWRITE, 1, 1, 1);
	fake_driver.read_only = true;
	check(-EROFS, "read-only");
	fake_driver.read_only = false;
	options.rw.values[0] = BENCH_DISCARD;
	fake_driver.no_discard = true;
	check(-EOPNOTSUPP, "no discard");
	options.rw.values[0] = BENCH_FLUSH;
	fake_driver.no_flush = true;
	check(-EOPNOTSUPP, "no flush");
	options.rw.values[0] = BENCH_RANDREAD;
	options.block_bytes.values[0] = 4096 + 256;
	check(-EINVAL, "multiple");
	options.block_bytes.values[0] = 2 << 20;
	check(-EINVAL, "1048576 bytes that it takes");
	options.block_bytes.values[0] = CAPACITY;
	options.jobs = 2;
	check(-EINVAL, "for each of the jobs");
	options.size_bytes = CAPACITY + 512;
	check(-EINVAL, "--size");
}

/* ---- all runs ---- */

static void test_targets_take_turns(void **state)
{
	struct bench_runner runner;

	set_options(BENCH_RANDREAD, 1, 1, 10);
	options.target_count = 2;
	options.repeats = 3;
	options.completion = (struct bench_list){{BENCH_SLEEP, BENCH_POLL}, 2};
	assert_int_equal(bench_runner_init(&runner, &options, &error), 0);
	assert_int_equal(bench_runner_run(&runner, &error), 0);
	/* Each is looked at, and then they change with every run. */
	assert_int_equal(fake_driver.opens, 2 + 2 * 2 * 3);
	for (unsigned i = 0; i < fake_driver.opens; i++)
		assert_string_equal(fake_driver.opened[i], i % 2 ? "two:" : "one:");
	assert_int_equal(runner.point_count, 4);
	assert_string_equal(runner.points[1].target, "two:");
	assert_string_equal(runner.points[1].params.completion, "sleep");
	assert_string_equal(runner.points[2].params.completion, "poll");
	for (unsigned i = 0; i < 4; i++) {
		const struct bench_point *p = &runner.points[i];

		assert_int_equal(p->repeats, 3);
		assert_int_equal(p->latency->count, 30);
		assert_true(p->has_ratio && p->ratio_min <= p->ratio);
		assert_true(p->ratio <= p->ratio_max);
	}
	bench_runner_fini(&runner);
}

static void test_what_there_is(void **state)
{
	struct bench_runner runner;

	set_options(BENCH_RANDREAD, 1, 1, 100);
	options.repeats = 5;
	fake_driver.gone_after = 250;
	assert_int_equal(bench_runner_init(&runner, &options, &error), 0);
	assert_int_equal(bench_runner_run(&runner, &error), -ENOTCONN);
	assert_int_equal(runner.point_count, 1);
	assert_int_equal(runner.points[0].repeats, 3);
	assert_int_equal(runner.points[0].latency->count, 250);
	assert_int_equal(runner.errors, 0);
	bench_runner_fini(&runner);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_count),
		TEST(test_kinds),
		TEST(test_batch),
		TEST(test_runtime),
		TEST(test_open_loop_counts_from_the_intended_start),
		TEST(test_errors_are_counted),
		TEST(test_server_goes),
		TEST(test_verify_good),
		TEST(test_verify_deep),
		TEST(test_verify_forgotten),
		TEST(test_verify_torn),
		TEST(test_verify_misplaced),
		TEST(test_verify_after_reopening),
		TEST(test_verify_of_memory_in_this_process),
		TEST(test_verify_skips_what_failed),
		TEST(test_data_is_found),
		TEST(test_impossible),
		TEST(test_targets_take_turns),
		TEST(test_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
