/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the statistics' JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "control/statistics.h"

static json_int_t number(const json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	if (!json_is_integer(v))
		fail_msg("no number '%s'", key);
	return json_integer_value(v);
}

static void test_queue(void **state)
{
	static struct queue_stats q = {.requests = 1,
				       .batches = 2,
				       .kicks_received = 3,
				       .calls_sent = 4,
				       .calls_suppressed = 5,
				       .errors = 6,
				       .bytes = INT64_MAX};
	struct blk_channel_stats c = {.merged = 7};
	struct loop_stats l = {
		.spin_hits = 8, .spin_misses = 9, .time_spun_ns = 10, .time_slept_ns = 11};
	json_t *j, *latency;

	for (uint64_t i = 1; i <= 1000; i++)
		histogram_add(&q.latency, i * 1000);
	j = statistics_queue(12, 13, &q, &c, &l);
	assert_non_null(j);
	assert_int_equal(number(j, "index"), 12);
	assert_int_equal(number(j, "iothread"), 13);
	assert_int_equal(number(j, "requests"), 1);
	assert_int_equal(number(j, "batches"), 2);
	assert_int_equal(number(j, "kicks_received"), 3);
	assert_int_equal(number(j, "calls_sent"), 4);
	assert_int_equal(number(j, "calls_suppressed"), 5);
	assert_int_equal(number(j, "errors"), 6);
	assert_true(number(j, "bytes") == INT64_MAX);
	assert_int_equal(number(j, "merged"), 7);
	assert_int_equal(number(j, "spin_hits"), 8);
	assert_int_equal(number(j, "spin_misses"), 9);
	assert_int_equal(number(j, "time_spun_ns"), 10);
	assert_int_equal(number(j, "time_slept_ns"), 11);
	assert_int_equal(json_object_size(j), 15);
	latency = json_object_get(j, "latency");
	assert_int_equal(json_object_size(latency), 6);
	assert_int_equal(number(latency, "count"), 1000);
	assert_int_equal(number(latency, "mean_ns"), 500500);
	assert_int_equal(number(latency, "max_ns"), 1000000);
	/* One part in sixteen is what the histogram promises. */
	assert_in_range(number(latency, "p50_ns"), 469000, 532000);
	assert_in_range(number(latency, "p99_ns"), 928000, 1000000);
	assert_in_range(number(latency, "p999_ns"), 936000, 1000000);
	json_decref(j);
}

static void test_queue_at_rest(void **state)
{
	static struct queue_stats q;
	struct blk_channel_stats c = {0};
	struct loop_stats l = {0};
	json_t *j = statistics_queue(0, 0, &q, &c, &l);
	json_t *latency = json_object_get(j, "latency");

	assert_int_equal(number(latency, "count"), 0);
	assert_int_equal(number(latency, "mean_ns"), 0);
	assert_int_equal(number(latency, "max_ns"), 0);
	json_decref(j);
}

static void test_line(void **state)
{
	struct statistics_export e = {
		.id = "a", .path = "x\ny\"\xff", .engine = "null", .socket = NULL};
	json_t *exports = json_array(), *iothreads = json_array(), *j;
	struct loop_stats l = {.passes = 1};
	char *line;

	json_array_append_new(exports, statistics_export(&e, json_array()));
	json_array_append_new(iothreads, statistics_iothread(0, &l));
	line = statistics_line(statistics_root("1.2.3", exports, iothreads));
	assert_non_null(line);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	j = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "version")), "1.2.3");
	exports = json_array_get(json_object_get(j, "exports"), 0);
	assert_string_equal(json_string_value(json_object_get(exports, "path")), "x\ny\"?");
	assert_true(json_is_null(json_object_get(exports, "socket")));
	assert_true(json_is_false(json_object_get(exports, "connected")));
	json_decref(j);
	free(line);
	assert_null(statistics_line(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_queue_at_rest),
		cmocka_unit_test(test_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
