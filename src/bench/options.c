/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/options.h"

#include <errno.h>
#include <string.h>

#include "bench/options_check.h"

enum kind { FLAG, TEXT, NUMBER, SIZE, TIME, NUMBERS, SIZES, RW, COMPLETION };

/* Names of a sweep's lists, and what a number must be within. */
static const struct option {
	const char *name;  /* without the dashes */
	const char *value; /* what it takes, for help; NULL: nothing */
	enum kind kind;
	size_t field; /* in struct bench_options */
	uint64_t min, max;
	const char *help;
} table[BENCH_OPTION_COUNT] = {
#define FIELD(f) offsetof(struct bench_options, f)
	[BENCH_OPTION_RW] = {"rw", "PATTERN", RW, FIELD(rw), 0, 0,
			     "read, write, randread (default), randwrite, randrw, flush, discard"},
	[BENCH_OPTION_BS] = {"bs", "SIZE", SIZES, FIELD(block_bytes), 512, 1u << 30,
			     "bytes of a request (4k)"},
	[BENCH_OPTION_IODEPTH] = {"iodepth", "N", NUMBERS, FIELD(iodepth), 1, BENCH_DEPTH_MAX,
				  "requests in flight of each job (1; with --rate 128)"},
	[BENCH_OPTION_JOBS] = {"jobs", "N", NUMBER, FIELD(jobs), 1, BENCH_JOBS_MAX,
			       "threads, each with a queue of its own (1)"},
	[BENCH_OPTION_COMPLETION] = {"completion", "WAY", COMPLETION, FIELD(completion), 0, 0,
				     "sleep, poll, or hybrid (default): look, then sleep"},
	[BENCH_OPTION_COUNT_OF_REQUESTS] = {"count", "N", NUMBER, FIELD(count), 1, UINT64_MAX / 2,
					    "a run makes so many requests"},
	[BENCH_OPTION_RUNTIME] = {"runtime", "TIME", TIME, FIELD(runtime_ns), 1000000,
				  86400000000000ull, "a run takes so long (2s), and a short ramp"},
	[BENCH_OPTION_RATE] = {"rate", "N", NUMBER, FIELD(rate), 1, 1000000000,
			       "open loop: N requests a second of all jobs, at random times"},
	[BENCH_OPTION_RWMIX] = {"rwmix", "PERCENT", NUMBER, FIELD(rwmix), 0, 100,
				"reads of randrw (50)"},
	[BENCH_OPTION_BATCH] = {"batch", "N", NUMBER, FIELD(batch), 1, BENCH_DEPTH_MAX,
				"reap at least N before submitting again (1)"},
	[BENCH_OPTION_SIZE] = {"size", "SIZE", SIZE, FIELD(size_bytes), 512, INT64_MAX,
			       "use only the first SIZE bytes of a target"},
	[BENCH_OPTION_SEED] = {"seed", "N", NUMBER, FIELD(seed), 0, UINT64_MAX,
			       "of the places and times (1)"},
	[BENCH_OPTION_CPU] = {"cpu", "N", NUMBERS, FIELD(cpus), 0, BENCH_CPUS_MAX - 1,
			      "pin the jobs to cpus N, N+1 ..., or to those of a list"},
	[BENCH_OPTION_HUGEPAGES] = {"hugepages", NULL, FLAG, FIELD(hugepages), 0, 0,
				    "memory in huge pages, where there are any"},
	[BENCH_OPTION_REPEATS] = {"repeats", "N", NUMBER, FIELD(repeats), 1, 1000,
				  "runs of each target and place (1; of several targets 3)"},
	[BENCH_OPTION_VERIFY] = {"verify", NULL, FLAG, FIELD(verify), 0, 0,
				 "write blocks that tell what they are, and check what is read"},
	[BENCH_OPTION_DESTROY_DATA] = {"destroy-data", NULL, FLAG, FIELD(destroy_data), 0, 0,
				       "write and discard although the target holds data"},
	[BENCH_OPTION_JSON] = {"json", NULL, FLAG, FIELD(json), 0, 0,
			       "an array with an object a row, in place of the table"},
	[BENCH_OPTION_REPORT] = {"report", "FILE", TEXT, FIELD(report), 0, 0,
				 "write a page with plots (HTML)"},
	[BENCH_OPTION_MATRIX] = {"matrix", NULL, FLAG, FIELD(matrix), 0, 0,
				 "four patterns, four sizes: what polling gains over sleeping"},
	[BENCH_OPTION_FLOOR] = {"floor", NULL, FLAG, FIELD(floor), 0, 0,
				"what this machine can do at all, and results as multiples of it"},
	[BENCH_OPTION_HELP] = {"help", NULL, FLAG, 0, 0, 0, "this text"},
#undef FIELD
};

static void set_list(struct bench_list *list, uint64_t value)
{
	list->values[0] = value;
	list->count = 1;
}

static void set_defaults(struct bench_options *o)
{
	memset(o, 0, sizeof(*o));
	set_list(&o->rw, BENCH_RANDREAD);
	set_list(&o->completion, BENCH_HYBRID);
	set_list(&o->block_bytes, 4096);
	set_list(&o->iodepth, 1);
	o->jobs = 1;
	o->batch = 1;
	o->rwmix = 50;
	o->seed = 1;
	o->runtime_ns = 2000000000;
}

/* The place in the table, or -1. */
static int find_option(const char *word)
{
	size_t len = strcspn(word, "=");

	for (unsigned i = 0; i < BENCH_OPTION_COUNT; i++) {
		if (strlen(table[i].name) == len && !memcmp(table[i].name, word, len))
			return (int)i;
	}
	return -1;
}

static int read_field(const struct option *t, const char *value, void *field, struct error *err)
{
	switch (t->kind) {
	case FLAG:
		*(bool *)field = true;
		return 0;
	case TEXT:
		*(const char **)field = value;
		return *value ? 0 : error_set(err, -EINVAL, "it is empty");
	case NUMBER:
		return bench_value(value, BENCH_UNIT_NONE, t->min, t->max, field, err);
	case SIZE:
		return bench_value(value, BENCH_UNIT_SIZE, t->min, t->max, field, err);
	case TIME:
		return bench_value(value, BENCH_UNIT_TIME, t->min, t->max, field, err);
	case NUMBERS:
		return bench_value_list(value, BENCH_UNIT_NONE, t->min, t->max, field, err);
	case SIZES:
		return bench_value_list(value, BENCH_UNIT_SIZE, t->min, t->max, field, err);
	case RW:
		return bench_name_list(value, bench_rw_names, BENCH_RW_COUNT, field, err);
	case COMPLETION:
		return bench_name_list(value, bench_completion_names, BENCH_COMPLETION_COUNT, field,
				       err);
	}
	return 0;
}

/* argv[*i] begins with "--". */
static int parse_option(struct bench_options *o, int argc, char **argv, int *i, struct error *err)
{
	const char *equals = strchr(argv[*i], '='), *value = NULL;
	int found = find_option(argv[*i] + 2);
	const struct option *t;
	struct error why;
	int ret;

	if (found < 0)
		return error_set(err, -EINVAL,
				 "bench: unknown option '%.100s' (see 'ringside help bench')",
				 argv[*i]);
	t = &table[found];
	if (o->given & (1u << found))
		return error_set(err, -EINVAL, "--%s is given twice", t->name);
	o->given |= 1u << found;
	if (!t->value && equals)
		return error_set(err, -EINVAL, "--%s takes no value", t->name);
	if (t->value) {
		value = equals ? equals + 1 : argv[*i + 1 < argc ? ++*i : argc];
		if (!value)
			return error_set(err, -EINVAL, "--%s needs a value: --%s %s", t->name,
					 t->name, t->value);
	}
	if (found == BENCH_OPTION_HELP)
		return 0;
	ret = read_field(t, value, (char *)o + t->field, &why);
	return ret < 0 ? error_set(err, ret, "--%s: %.450s", t->name, why.text) : 0;
}

static int add_target(struct bench_options *o, const char *target, struct error *err)
{
	if (o->target_count == BENCH_TARGETS_MAX)
		return error_set(err, -EINVAL, "more than %d targets", BENCH_TARGETS_MAX);
	if (!strchr(target, ':'))
		return error_set(err, -EINVAL,
				 "'%.200s' is not a target: write vhost-user-blk:SOCKET or "
				 "file:PATH?engine=NAME",
				 target);
	o->targets[o->target_count++] = target;
	return 0;
}

static bool asks_for_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help"))
			return true;
	}
	return false;
}

int bench_options_parse(struct bench_options *o, int argc, char **argv, struct error *err)
{
	set_defaults(o);
	if (asks_for_help(argc, argv))
		return 1;
	for (int i = 1; i < argc; i++) {
		int ret = strncmp(argv[i], "--", 2) ? add_target(o, argv[i], err)
						    : parse_option(o, argc, argv, &i, err);

		if (ret < 0)
			return ret;
	}
	return bench_options_check(o, err);
}

void bench_options_print_help(FILE *out)
{
	fputs("usage: ringside bench TARGET... [OPTION...]\n\n"
	      "Measures disk servers, as the driver of a virtual machine would use them.\n\n"
	      "  vhost-user-blk:SOCKET         a virtio-blk server over vhost-user\n"
	      "  file:PATH?engine=NAME&...     an engine of ours, in this process\n\n"
	      "options:\n",
	      out);
	for (unsigned i = 0; i < BENCH_OPTION_COUNT; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", table[i].name, table[i].value ? " " : "",
			 table[i].value ? table[i].value : "");
		fprintf(out, "  %-18s %s\n", left, table[i].help);
	}
	fputs("\nSizes are bytes, or whole numbers with K, M, G or T behind them. --rw, --bs,\n"
	      "--iodepth and --completion take several values with commas between them: a row of\n"
	      "the table for each combination. Several targets are run in turn, and their ratios\n"
	      "to the first are printed. SIGINT ends a run early and prints what there is.\n",
	      out);
}
