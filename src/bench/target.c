/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/probe.h"

int bench_target_open(const char *target, const struct bench_options *o, unsigned iodepth,
		      struct ringside_device **out, struct ringside_info *info, struct error *err)
{
	struct ringside_options options = RINGSIDE_OPTIONS_INIT;
	struct ringside_error why = {""};
	int ret;

	options.queues = (unsigned)o->jobs;
	options.depth = iodepth;
	options.max_segments = 1; /* a ring no larger than it must be: fewer cache lines */
	options.hugepages = o->hugepages;
	ret = ringside_open(target, &options, out, &why);
	if (ret < 0)
		return error_set(err, ret, "target '%.200s': %.280s", target,
				 *why.text ? why.text : strerror(-ret));
	info->struct_bytes = sizeof(*info);
	ringside_info(*out, info);
	return 0;
}

uint64_t bench_target_bytes(const struct bench_options *o, const struct ringside_info *info)
{
	return o->size_bytes ? o->size_bytes : info->capacity_bytes;
}

static int check_rw(const struct ringside_info *info, enum bench_rw rw, struct error *err)
{
	const struct bench_rw_kind *k = &bench_rw_kinds[rw];
	const char *name = bench_rw_names[rw];

	if (bench_rw_destroys(k) && info->read_only)
		return error_set(err, -EROFS, "it is read-only: --rw %s is not possible", name);
	if (k->discard && !info->discard)
		return error_set(err, -EOPNOTSUPP, "it has no discard: choose another --rw");
	if (k->flush && !info->flush)
		return error_set(err, -EOPNOTSUPP, "it has no flush: choose another --rw");
	return 0;
}

static int check_block(const struct bench_options *o, const struct ringside_info *info,
		       uint64_t block_bytes, const struct bench_rw_kind *k, struct error *err)
{
	uint64_t most = k->discard ? info->max_discard_bytes : info->max_transfer_bytes;

	if (block_bytes % info->block_bytes)
		return error_set(err, -EINVAL, "--bs %" PRIu64 " is not a multiple of its %u bytes",
				 block_bytes, info->block_bytes);
	if (block_bytes > most && !k->flush)
		return error_set(err, -EINVAL,
				 "--bs %" PRIu64 " is more than the %" PRIu64
				 " bytes that it takes",
				 block_bytes, most);
	if (bench_target_bytes(o, info) / block_bytes < o->jobs)
		return error_set(err, -EINVAL,
				 "%" PRIu64 " bytes are less than a block of --bs %" PRIu64
				 " for each of the jobs",
				 bench_target_bytes(o, info), block_bytes);
	return 0;
}

static int check_all(const struct bench_options *o, const struct ringside_info *info,
		     struct error *err)
{
	if (o->size_bytes > info->capacity_bytes)
		return error_set(err, -EINVAL, "--size is more than its %" PRIu64 " bytes",
				 info->capacity_bytes);
	for (unsigned i = 0; i < o->rw.count; i++) {
		enum bench_rw rw = (enum bench_rw)o->rw.values[i];
		int ret = check_rw(info, rw, err);

		for (unsigned b = 0; b < o->block_bytes.count && ret == 0; b++)
			ret = check_block(o, info, o->block_bytes.values[b], &bench_rw_kinds[rw],
					  err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int check_data(const struct bench_options *o, struct ringside_device *dev,
		      const struct ringside_info *info, struct error *err)
{
	uint64_t where = 0;
	int ret;

	if (o->destroy_data || !bench_options_destroy(o))
		return 0;
	ret = bench_probe(dev, info, bench_target_bytes(o, info), o->seed, &where, err);
	if (ret != 1)
		return ret;
	return error_set(err, -EEXIST,
			 "it holds data (at byte %" PRIu64
			 "), which would be lost: give --destroy-data if it may go",
			 where);
}

int bench_target_check(const char *target, const struct bench_options *o, struct error *err)
{
	unsigned depth = 1;
	struct ringside_device *dev;
	struct ringside_info info;
	struct error why;
	int ret;

	for (unsigned i = 0; i < o->iodepth.count; i++)
		depth = MAX(depth, (unsigned)o->iodepth.values[i]);
	ret = bench_target_open(target, o, depth, &dev, &info, err);
	if (ret < 0)
		return ret;
	ret = check_all(o, &info, &why);
	if (ret == 0)
		ret = check_data(o, dev, &info, &why);
	ringside_close(dev);
	return ret < 0 ? error_set(err, ret, "target '%.200s': %.280s", target, why.text) : 0;
}
