/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subcommand from its command line to its exit status.
 */
#include "bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/floor.h"
#include "bench/interrupt.h"
#include "bench/json.h"
#include "bench/machine.h"
#include "bench/matrix.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/runner.h"
#include "bench/table.h"

void command_bench_help(void)
{
	bench_options_print_help(stdout);
}

/* "ringside bench ...", as it was typed but for the shell's quotes; the caller's (free). */
static char *command_line(int argc, char **argv)
{
	size_t len = sizeof("ringside"), used;
	char *text;

	for (int i = 0; i < argc; i++)
		len += strlen(argv[i]) + 1;
	text = malloc(len);
	used = text ? (size_t)snprintf(text, len, "ringside") : 0;
	for (int i = 0; text && i < argc; i++)
		used += (size_t)snprintf(text + used, len - used, " %s", argv[i]);
	return text;
}

static int print_results(const struct bench_runner *r, const struct bench_floor *floor)
{
	const struct bench_options *o = r->options;

	if (o->json)
		return bench_json_print(r->points, r->point_count, floor, stdout);
	if (floor)
		bench_floor_print(floor, stdout);
	if (floor && r->point_count)
		putchar('\n');
	if (o->matrix)
		return bench_matrix_print(r->points, r->point_count, o->destroy_data, stdout);
	return bench_table_print(r->points, r->point_count, floor, stdout);
}

static int write_report(const struct bench_runner *r, const struct bench_floor *floor,
			const char *line, struct error *err)
{
	struct bench_report report = {
		.points = r->points, .count = r->point_count, .floor = floor, .command_line = line};
	char machine[256], why[256] = "";
	int ret;

	if (!r->options->report)
		return 0;
	bench_machine_text(machine, sizeof(machine));
	report.machine = machine;
	ret = bench_report_write(r->options->report, &report, why, sizeof(why));
	if (ret < 0)
		return error_set(err, ret, "--report: %s", *why ? why : strerror(-ret));
	return 0;
}

static int measure_floor(const struct bench_options *o, struct bench_floor *floor,
			 struct error *err)
{
	int ret = o->floor ? bench_floor_measure(floor) : 0;

	return ret < 0 ? error_set(err, ret, "--floor: %s", strerror(-ret)) : 0;
}

/* Says what went wrong at once, so that what there is can still be printed. */
static int say(int ret, const struct error *err)
{
	if (ret < 0)
		log_error("%s", err->text);
	return ret < 0;
}

static int run(const struct bench_options *o, const char *line)
{
	struct bench_floor measured = {0};
	const struct bench_floor *floor = o->floor ? &measured : NULL;
	struct bench_runner runner;
	struct error err;
	int failed;

	if (say(bench_runner_init(&runner, o, &err), &err))
		return 1;
	interrupt_init();
	failed = say(measure_floor(o, &measured, &err), &err);
	if (failed)
		floor = NULL;
	else
		failed = say(bench_runner_run(&runner, &err), &err);
	/* A command that could not begin has nothing to print. */
	if (!failed || runner.point_count) {
		error_set(&err, -ENOMEM, "out of memory for the results");
		failed |= say(print_results(&runner, floor), &err);
		failed |= say(write_report(&runner, floor, line, &err), &err);
	}
	failed |= runner.errors > 0;
	bench_runner_fini(&runner);
	return failed;
}

int command_bench(int argc, char **argv)
{
	struct bench_options options;
	struct error err;
	char *line;
	int ret;

	ret = bench_options_parse(&options, argc, argv, &err);
	if (ret == 1) {
		command_bench_help();
		return 0;
	}
	if (say(ret, &err))
		return 1;
	line = command_line(argc, argv);
	if (!line) {
		log_error("out of memory");
		return 1;
	}
	ret = run(&options, line);
	free(line);
	return ret;
}
