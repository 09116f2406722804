/* SPDX-License-Identifier: Apache-2.0 */
/* The floor: what is measured makes sense together, and the thread may run where it could before.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "bench/floor.h"

static void test_measures(void **state)
{
	struct bench_floor floor = {0};
	cpu_set_t before, after;
	int err;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	err = bench_floor_measure(&floor);
	if (CPU_COUNT(&before) < 2) {
		assert_int_equal(err, -EOPNOTSUPP);
		skip();
	}
	assert_int_equal(err, 0);
	assert_true(floor.cache_line_ns > 1);
	assert_true(floor.system_call_ns > 1);
	/* At least two system calls on each side. */
	assert_true(floor.eventfd_ns > floor.system_call_ns);
	assert_int_not_equal(floor.cpus[0], floor.cpus[1]);
	assert_true(CPU_ISSET(floor.cpus[0], &before));
	assert_true(CPU_ISSET(floor.cpus[1], &before));
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

static void test_needs_two(void **state)
{
	struct bench_floor floor = {.cpus = {7, 7}};
	cpu_set_t before, one;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(bench_floor_measure(&floor), -EOPNOTSUPP);
	assert_int_equal(floor.cpus[0], 7);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_measures),
		cmocka_unit_test(test_needs_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
