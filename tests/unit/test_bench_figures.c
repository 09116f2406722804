/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a run, medians, ratios, and how they are printed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/compiler.h"
#include "bench/figures.h"
#include "bench/json.h"
#include "bench/matrix.h"
#include "bench/table.h"
#include "bench/units.h"

static struct histogram latency;

/* A run at that rate, for a second. */
static struct bench_run run_at(uint64_t iops)
{
	return (struct bench_run){.seconds = 1,
				  .requests = iops,
				  .bytes = iops * 4096,
				  .latency = &latency,
				  .kicks = iops / 2,
				  .client_cpu_ns = iops * 100,
				  .server_known = true};
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9 * (1 + fabs(b));
}

static void test_median(void **state)
{
	assert_true(near(bench_median((double[]){3}, 1), 3));
	assert_true(near(bench_median((double[]){3, 1, 2}, 3), 2));
	assert_true(near(bench_median((double[]){4, 1, 2, 3}, 4), 2.5));
	assert_true(near(bench_median((double[]){0}, 0), 0));
}

static void test_figures(void **state)
{
	struct bench_run run = run_at(2000);
	struct histogram h = {0};
	struct bench_figures f;

	run.seconds = 2;
	run.latency = &h;
	for (unsigned i = 1; i <= 1000; i++)
		histogram_add(&h, i * 1000);
	bench_figures_of_run(&run, &f);
	assert_true(near(f.iops, 1000));
	assert_true(near(f.bytes_per_s, 4096000));
	assert_true(near(f.mean_ns, 500500));
	assert_true(near(f.max_ns, 1000000));
	assert_true(fabs(f.p50_ns / 500000 - 1) < 0.07);
	assert_true(fabs(f.p99_ns / 990000 - 1) < 0.07);
	assert_true(near(f.kicks_per_request, 0.5));
	assert_true(near(f.client_cpu_ns, 100));
	/* A run in which nothing completed has figures, too. */
	memset(&h, 0, sizeof(h));
	run = (struct bench_run){.latency = &h};
	bench_figures_of_run(&run, &f);
	assert_true(near(f.iops, 0) && near(f.p99_ns, 0) && near(f.kicks_per_request, 0));
}

static void test_medians_of_runs(void **state)
{
	struct bench_run runs[] = {run_at(100), run_at(900), run_at(200)};
	struct bench_figures f;

	runs[1].errors = 3;
	runs[2].errors = 2;
	bench_figures_median(runs, 3, &f);
	assert_true(near(f.iops, 200));
	assert_int_equal(f.errors, 5);
	assert_true(f.server_known);
	runs[0].server_known = false;
	bench_figures_median(runs, 3, &f);
	assert_false(f.server_known);
}

/* The machine is twice as slow in the second round, and the ratio does not see it. */
static void test_ratio(void **state)
{
	struct bench_run base[] = {run_at(1000), run_at(500), run_at(1000)};
	struct bench_run other[] = {run_at(2000), run_at(1000), run_at(2200)};
	double median, min, max;

	assert_true(bench_ratio(base, 3, other, 3, &median, &min, &max));
	assert_true(near(median, 2) && near(min, 2) && near(max, 2.2));
	/* Interrupted: the pairs that there are. */
	assert_true(bench_ratio(base, 3, other, 1, &median, &min, &max));
	assert_true(near(median, 2) && near(max, 2));
	assert_false(bench_ratio(base, 3, other, 0, &median, &min, &max));
	base[0].requests = 0;
	assert_true(bench_ratio(base, 2, other, 2, &median, &min, &max));
	assert_true(near(median, 2));
	assert_false(bench_ratio(base, 1, other, 1, &median, &min, &max));
}

static void test_units(void **state)
{
	static const struct {
		double v;
		const char *count, *time;
	} table[] = {
		{0, "0", "0 ns"},           {7, "7", "7 ns"},           {1.234, "1.23", "1.23 ns"},
		{12.34, "12.3", "12.3 ns"}, {999, "999", "999 ns"},     {999.6, "1.00k", "1.00 us"},
		{1500, "1.50k", "1.50 us"}, {123456, "123k", "123 us"}, {2.5e6, "2.50M", "2.50 ms"},
		{3e9, "3.00G", "3.00 s"},   {123e9, "123G", "123 s"},
	};
	char buf[32];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		units_count(table[i].v, buf, sizeof(buf));
		assert_string_equal(buf, table[i].count);
		units_time(table[i].v, buf, sizeof(buf));
		assert_string_equal(buf, table[i].time);
	}
	units_size(4096, buf, sizeof(buf));
	assert_string_equal(buf, "4k");
	units_size(1536, buf, sizeof(buf));
	assert_string_equal(buf, "1536");
	units_size(1 << 20, buf, sizeof(buf));
	assert_string_equal(buf, "1M");
	units_bandwidth(3.21e9, buf, sizeof(buf));
	assert_string_equal(buf, "3.21 GB/s");
}

/* ---- printing ---- */

static char printed[16384];

static FILE *paper(void)
{
	memset(printed, 0, sizeof(printed));
	return fmemopen(printed, sizeof(printed) - 1, "w");
}

static struct bench_point point(const char *target, const char *completion, double iops)
{
	return (struct bench_point){
		.target = target,
		.params = {"randread", completion, 4096, 1, 1, 0},
		.figures = {.iops = iops, .mean_ns = 1000, .server_known = false},
		.repeats = 1,
	};
}

static void test_table_shows_what_varies(void **state)
{
	struct bench_point points[] = {point("a:1", "sleep", 1000), point("a:1", "poll", 2000)};
	FILE *out = paper();

	assert_int_equal(bench_table_print(points, 2, NULL, out), 0);
	fclose(out);
	assert_non_null(strstr(printed, "a:1: randread, 4k, depth 1, 1 job, 1 run"));
	assert_non_null(strstr(printed, "completion"));
	assert_null(strstr(printed, "ratio"));
	assert_null(strstr(printed, "target 1"));
	assert_null(strstr(printed, "errors"));
	points[1].target = "b:2";
	points[1].has_ratio = true;
	points[1].ratio = 2;
	points[1].ratio_min = 1.5;
	points[1].ratio_max = 2.5;
	points[1].figures.errors = 4;
	out = paper();
	assert_int_equal(bench_table_print(points, 2, NULL, out), 0);
	fclose(out);
	assert_non_null(strstr(printed, "target 2: b:2"));
	assert_non_null(strstr(printed, "2.000  (1.500 - 2.500)"));
	assert_non_null(strstr(printed, "errors"));
}

static void test_table_of_multiples(void **state)
{
	struct bench_floor floor = {.cache_line_ns = 100};
	struct bench_point p = point("a:1", "poll", 1e6);
	FILE *out = paper();

	assert_int_equal(bench_table_print(&p, 1, &floor, out), 0);
	fclose(out);
	assert_non_null(strstr(printed, "mean/line"));
	assert_non_null(strstr(printed, "10.0"));
}

static void test_matrix(void **state)
{
	struct bench_point points[] = {point("a:1", "sleep", 1000), point("a:1", "poll", 1180)};
	FILE *out = paper();

	assert_int_equal(bench_matrix_print(points, 2, false, out), 0);
	fclose(out);
	assert_non_null(strstr(printed, "+18 %"));
	assert_non_null(strstr(printed, "--destroy-data"));
}

static void test_json(void **state)
{
	struct bench_point p = point("a:\"1\"", "poll", 1e6);
	struct bench_floor floor = {.cache_line_ns = 100};
	FILE *out = paper();
	json_t *root, *o;

	p.figures.mean_ns = NAN;
	assert_int_equal(bench_json_print(&p, 1, &floor, out), 0);
	fclose(out);
	root = json_loads(printed, 0, NULL);
	assert_int_equal(json_array_size(root), 1);
	o = json_array_get(root, 0);
	assert_string_equal(json_string_value(json_object_get(o, "target")), "a:\"1\"");
	assert_true(json_is_null(json_object_get(o, "server_cpu_ns_per_request")));
	assert_true(json_is_null(json_object_get(o, "rate")));
	assert_true(json_is_null(json_object_get(o, "mean_ns")));
	assert_null(json_object_get(o, "ratio"));
	assert_true(
		near(json_real_value(json_object_get(json_object_get(o, "floor"), "cache_line_ns")),
		     100));
	json_decref(root);
	out = paper();
	assert_int_equal(bench_json_print(NULL, 0, NULL, out), 0);
	fclose(out);
	assert_string_equal(printed, "[]\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_median),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_medians_of_runs),
		cmocka_unit_test(test_ratio),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_table_shows_what_varies),
		cmocka_unit_test(test_table_of_multiples),
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
