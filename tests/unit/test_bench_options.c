/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the benchmark: values, lists, what goes with what, and the help. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "bench/options.h"

/* The most words of a command line here. */
#define WORDS 12

/* A command line: its words with blanks between them. */
static int parse(struct bench_options *o, const char *line, struct error *err)
{
	static char text[512];
	char *argv[WORDS + 1], *save = NULL;
	int argc = 0;

	snprintf(text, sizeof(text), "bench %s", line);
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		assert_true(argc < WORDS);
		argv[argc++] = w;
	}
	argv[argc] = NULL;
	err->text[0] = '\0';
	return bench_options_parse(o, argc, argv, err);
}

static void test_values(void **state)
{
	static const struct {
		const char *text;
		enum bench_unit unit;
		int ret;
		uint64_t value;
	} table[] = {
		{"4k", BENCH_UNIT_SIZE, 0, 4096},
		{"4K", BENCH_UNIT_SIZE, 0, 4096},
		{"1M", BENCH_UNIT_SIZE, 0, 1 << 20},
		{"2g", BENCH_UNIT_SIZE, 0, 2ull << 30},
		{"3T", BENCH_UNIT_SIZE, 0, 3ull << 40},
		{"0", BENCH_UNIT_SIZE, 0, 0},
		{"2", BENCH_UNIT_TIME, 0, 2000000000},
		{"2s", BENCH_UNIT_TIME, 0, 2000000000},
		{"500ms", BENCH_UNIT_TIME, 0, 500000000},
		{"20us", BENCH_UNIT_TIME, 0, 20000},
		{"7ns", BENCH_UNIT_TIME, 0, 7},
		{"3m", BENCH_UNIT_TIME, 0, 180000000000ull},
		{"18446744073709551615", BENCH_UNIT_NONE, 0, UINT64_MAX},
		{"18446744073709551616", BENCH_UNIT_NONE, -EINVAL, 0},
		{"16777216T", BENCH_UNIT_SIZE, -EINVAL, 0},
		{"4KiB", BENCH_UNIT_SIZE, -EINVAL, 0},
		{"1.5k", BENCH_UNIT_SIZE, -EINVAL, 0},
		{"-1", BENCH_UNIT_NONE, -EINVAL, 0},
		{"+1", BENCH_UNIT_NONE, -EINVAL, 0},
		{" 1", BENCH_UNIT_NONE, -EINVAL, 0},
		{"1k", BENCH_UNIT_NONE, -EINVAL, 0},
		{"4k", BENCH_UNIT_TIME, -EINVAL, 0},
		{"k", BENCH_UNIT_SIZE, -EINVAL, 0},
		{"", BENCH_UNIT_SIZE, -EINVAL, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		uint64_t v = 42;
		struct error err = {""};

		if (bench_value(table[i].text, table[i].unit, 0, UINT64_MAX, &v, &err) !=
		    table[i].ret)
			fail_msg("'%s'", table[i].text);
		assert_int_equal(v, table[i].ret ? 42 : table[i].value);
		assert_int_equal(*err.text != '\0', table[i].ret != 0);
	}
}

static void test_lists(void **state)
{
	struct bench_list list;
	struct error err;

	assert_int_equal(bench_value_list("1,32,4", BENCH_UNIT_NONE, 1, 32, &list, &err), 0);
	assert_int_equal(list.count, 3);
	assert_int_equal(list.values[1], 32);
	assert_int_equal(bench_value_list("1,33", BENCH_UNIT_NONE, 1, 32, &list, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'33' is not from 1 to 32"));
	for (const char **bad = (const char *[]){"", ",", "1,", ",1", "1,,2", "1,1", NULL}; *bad;
	     bad++)
		assert_int_equal(bench_value_list(*bad, BENCH_UNIT_NONE, 0, 9, &list, &err),
				 -EINVAL);
	assert_int_equal(bench_name_list("poll,sleep", bench_completion_names,
					 BENCH_COMPLETION_COUNT, &list, &err),
			 0);
	assert_int_equal(list.values[0], BENCH_POLL);
	assert_int_equal(list.values[1], BENCH_SLEEP);
	assert_int_equal(
		bench_name_list("pol", bench_completion_names, BENCH_COMPLETION_COUNT, &list, &err),
		-EINVAL);
	assert_non_null(strstr(err.text, "sleep, poll, hybrid"));
}

static void test_defaults(void **state)
{
	struct bench_options o;
	struct error err;

	assert_int_equal(parse(&o, "a:b", &err), 0);
	assert_int_equal(o.rw.values[0], BENCH_RANDREAD);
	assert_int_equal(o.block_bytes.values[0], 4096);
	assert_int_equal(o.iodepth.values[0], 1);
	assert_int_equal(o.completion.values[0], BENCH_HYBRID);
	assert_int_equal(o.jobs, 1);
	assert_int_equal(o.repeats, 1);
	assert_int_equal(o.batch, 1);
	assert_int_equal(o.count, 0);
	assert_int_equal(o.runtime_ns, 2000000000);
	assert_int_equal(bench_options_cpu(&o, 3), -1);
	/* What depends on others. */
	assert_int_equal(parse(&o, "a:b c:d", &err), 0);
	assert_int_equal(o.repeats, 3);
	assert_int_equal(parse(&o, "a:b c:d --repeats 2", &err), 0);
	assert_int_equal(o.repeats, 2);
	assert_int_equal(parse(&o, "a:b --rate 10", &err), 0);
	assert_int_equal(o.iodepth.values[0], 128);
	assert_int_equal(parse(&o, "a:b --rate 10 --iodepth=1", &err), 0);
	assert_int_equal(o.iodepth.values[0], 1);
	assert_int_equal(parse(&o, "a:b --verify --destroy-data", &err), 0);
	assert_int_equal(o.rw.values[0], BENCH_RANDRW);
	/* Writes only where the data may go. */
	assert_int_equal(parse(&o, "a:b --matrix", &err), 0);
	assert_int_equal(o.rw.count, 2);
	assert_int_equal(o.block_bytes.count, 4);
	assert_int_equal(o.completion.count, 2);
	assert_false(bench_options_destroy(&o));
	assert_int_equal(parse(&o, "a:b --matrix --destroy-data", &err), 0);
	assert_int_equal(o.rw.count, 4);
	assert_true(bench_options_destroy(&o));
	/* The floor needs no target. */
	assert_int_equal(parse(&o, "--floor", &err), 0);
	assert_int_equal(parse(&o, "nonsense --help", &err), 1);
}

static void test_cpus(void **state)
{
	struct bench_options o;
	struct error err;

	assert_int_equal(parse(&o, "a:b --cpu 0", &err), 0);
	assert_int_equal(bench_options_cpu(&o, 0), 0);
	o.cpus = (struct bench_list){{5}, 1};
	assert_int_equal(bench_options_cpu(&o, 2), 7);
	o.cpus = (struct bench_list){{5, 1}, 2};
	assert_int_equal(bench_options_cpu(&o, 1), 1);
	assert_int_equal(bench_options_cpu(&o, 2), 5);
	assert_int_equal(parse(&o, "a:b --cpu 1023", &err), -EINVAL);
	assert_non_null(strstr(err.text, "--cpu"));
}

static void test_refused(void **state)
{
	static const struct {
		const char *line, *says;
	} table[] = {
		{"", "no target"},
		{"here", "'here' is not a target"},
		{"a:b --fast", "unknown option '--fast'"},
		{"a:b --rw sometimes", "--rw: 'sometimes' is none of read, write"},
		{"a:b --rw", "--rw needs a value"},
		{"a:b --json=yes", "--json takes no value"},
		{"a:b --bs 4k --bs 8k", "--bs is given twice"},
		{"a:b --bs 100", "--bs: '100' is not from 512 to 1G"},
		{"a:b --iodepth 0", "--iodepth"},
		{"a:b --iodepth 1025", "--iodepth"},
		{"a:b --jobs 257", "--jobs"},
		{"a:b --rwmix 101", "--rwmix"},
		{"a:b --runtime 0", "--runtime"},
		{"a:b --runtime 2h", "--runtime: '2h' is not a time"},
		{"a:b --count 5 --runtime 1s", "give one of them"},
		{"a:b --count 1 --jobs 2", "--count 1"},
		{"a:b --batch 2", "--batch 2 is more than --iodepth 1"},
		{"a:b --batch 1 --rate 5", "--rate"},
		{"a:b --verify", "--destroy-data"},
		{"a:b --verify --rw randread --destroy-data", "--rw randread"},
		{"a:b --verify --rw flush --destroy-data", "--rw flush"},
		{"a:b --matrix --bs 4k", "--bs does not go with --matrix"},
		{"a:b --matrix --verify --destroy-data", "--verify"},
		{"a:b --matrix --iodepth 1,2", "--iodepth"},
		{"a:b --report=", "--report"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct bench_options o;
		struct error err;

		assert_int_equal(parse(&o, table[i].line, &err), -EINVAL);
		if (!strstr(err.text, table[i].says))
			fail_msg("'%s': %s", table[i].line, err.text);
	}
}

static void test_help_has_every_option(void **state)
{
	static const char *const names[] = {
		"rw",           "bs",     "iodepth",   "jobs",   "completion", "count",
		"runtime",      "rate",   "size",      "seed",   "cpu",        "repeats",
		"batch",        "verify", "json",      "report", "matrix",     "floor",
		"destroy-data", "rwmix",  "hugepages", "help",
	};
	char text[8192] = "";
	FILE *f = fmemopen(text, sizeof(text) - 1, "w");

	bench_options_print_help(f);
	fclose(f);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char option[32];

		snprintf(option, sizeof(option), "\n  --%s ", names[i]);
		if (!strstr(text, option))
			fail_msg("--%s", names[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),   cmocka_unit_test(test_lists),
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_refused),  cmocka_unit_test(test_help_has_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
