/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/options_check.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

static const struct bench_rw_kind *kind_of(const struct bench_options *o, unsigned i)
{
	return &bench_rw_kinds[o->rw.values[i]];
}

bool bench_options_destroy(const struct bench_options *o)
{
	for (unsigned i = 0; i < o->rw.count; i++) {
		if (bench_rw_destroys(kind_of(o, i)))
			return true;
	}
	return false;
}

int bench_options_cpu(const struct bench_options *o, unsigned job)
{
	if (!o->cpus.count)
		return -1;
	if (o->cpus.count == 1)
		return (int)(o->cpus.values[0] + job);
	return (int)o->cpus.values[job % o->cpus.count];
}

static int check_cpus(const struct bench_options *o, struct error *err)
{
	cpu_set_t may;

	if (!o->cpus.count || sched_getaffinity(0, sizeof(may), &may) < 0)
		return 0;
	for (unsigned job = 0; job < o->jobs; job++) {
		int cpu = bench_options_cpu(o, job);

		if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &may))
			return error_set(err, -EINVAL,
					 "--cpu: job %u would run on cpu %d, which this process "
					 "may not use",
					 job, cpu);
	}
	return 0;
}

/* The axes of the matrix are its own; what it cannot show is one value. */
static int check_matrix(struct bench_options *o, struct error *err)
{
	static const struct {
		enum bench_option option;
		const char *name;
	} set[] = {{BENCH_OPTION_RW, "rw"},
		   {BENCH_OPTION_BS, "bs"},
		   {BENCH_OPTION_COMPLETION, "completion"},
		   {BENCH_OPTION_VERIFY, "verify"}};
	static const enum bench_rw rw[] = {BENCH_RANDREAD, BENCH_READ, BENCH_RANDWRITE,
					   BENCH_WRITE};

	if (!o->matrix)
		return 0;
	for (unsigned i = 0; i < ARRAY_SIZE(set); i++) {
		if (bench_options_given(o, set[i].option))
			return error_set(err, -EINVAL,
					 "--%s does not go with --matrix, which has its own",
					 set[i].name);
	}
	if (o->iodepth.count > 1)
		return error_set(err, -EINVAL, "--iodepth: one value only with --matrix");
	/* The writes last: they are what is left out. */
	o->rw.count = o->destroy_data ? 4 : 2;
	for (unsigned i = 0; i < o->rw.count; i++)
		o->rw.values[i] = rw[i];
	o->block_bytes = (struct bench_list){{4096, 16384, 65536, 131072}, 4};
	o->completion = (struct bench_list){{BENCH_SLEEP, BENCH_POLL}, 2};
	return 0;
}

static int check_verify(struct bench_options *o, struct error *err)
{
	if (!o->verify)
		return 0;
	if (!bench_options_given(o, BENCH_OPTION_RW))
		o->rw = (struct bench_list){{BENCH_RANDRW}, 1};
	for (unsigned i = 0; i < o->rw.count; i++) {
		if (!kind_of(o, i)->writes)
			return error_set(err, -EINVAL,
					 "--verify with --rw %s checks nothing: give write, "
					 "randwrite or randrw",
					 bench_rw_names[o->rw.values[i]]);
	}
	if (!o->destroy_data)
		return error_set(err, -EINVAL,
				 "--verify writes over the target: give --destroy-data, too, if "
				 "its data may go");
	return 0;
}

static int check_batch(const struct bench_options *o, struct error *err)
{
	if (!bench_options_given(o, BENCH_OPTION_BATCH))
		return 0;
	if (o->rate)
		return error_set(err, -EINVAL,
				 "--batch does not go with --rate, which says when to submit");
	for (unsigned i = 0; i < o->iodepth.count; i++) {
		if (o->batch > o->iodepth.values[i])
			return error_set(err, -EINVAL, "--batch %llu is more than --iodepth %llu",
					 (unsigned long long)o->batch,
					 (unsigned long long)o->iodepth.values[i]);
	}
	return 0;
}

int bench_options_check(struct bench_options *o, struct error *err)
{
	int ret;

	if (!o->target_count && !o->floor)
		return error_set(err, -EINVAL,
				 "no target: give one such as vhost-user-blk:/run/vm.sock (see "
				 "'ringside help bench')");
	if (bench_options_given(o, BENCH_OPTION_COUNT_OF_REQUESTS) &&
	    bench_options_given(o, BENCH_OPTION_RUNTIME))
		return error_set(err, -EINVAL,
				 "--count and --runtime both end a run: give one of them");
	if (o->count && o->count < o->jobs)
		return error_set(err, -EINVAL, "--count %llu is less than a request for each job",
				 (unsigned long long)o->count);
	if (!bench_options_given(o, BENCH_OPTION_IODEPTH) && o->rate)
		o->iodepth = (struct bench_list){{128}, 1};
	if (!bench_options_given(o, BENCH_OPTION_REPEATS))
		o->repeats = o->target_count > 1 ? 3 : 1;
	ret = check_matrix(o, err);
	if (ret == 0)
		ret = check_verify(o, err);
	if (ret == 0)
		ret = check_batch(o, err);
	return ret < 0 ? ret : check_cpus(o, err);
}
