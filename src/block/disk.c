/* SPDX-License-Identifier: Apache-2.0 */
#include "block/disk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fd.h"
#include "base/log.h"
#include "block/channel_internal.h"

struct memory_owner {
	struct list node;
	const void *owner;
	unsigned n;
	struct engine_memory memory[];
};

static int check_engine(const struct disk_config *config, const struct engine_info *e,
			struct error *err)
{
	if (!is_power_of_2(e->logical_block) || !is_power_of_2(e->memory_align) ||
	    e->logical_block > BLOCK_PAGE_BYTES || e->memory_align > BLOCK_PAGE_BYTES)
		return error_set(err, -EOPNOTSUPP,
				 "blocks of %" PRIu32 " bytes in memory aligned to %" PRIu32
				 " are not supported; try direct=off",
				 e->logical_block, e->memory_align);
	ASSERT(e->max_iov > 0 && e->max_transfer_bytes >= BLOCK_PAGE_BYTES);
	return 0;
}

/* Whole blocks only: of those that the device shows and of those that can be written. */
static int set_capacity(struct disk *d, const struct disk_config *config, struct error *err)
{
	uint32_t block = MAX(config->block_bytes, d->engine_info.logical_block);
	uint64_t size = d->engine_info.size_bytes;
	const char *path = config->engine.path ? config->engine.path : config->ops->name;

	d->capacity_bytes = align_down(size, block);
	if (!d->capacity_bytes)
		return error_set(err, -EINVAL,
				 "'%.200s' has %" PRIu64 " bytes: less than one block of %" PRIu32,
				 path, size, block);
	if (d->capacity_bytes != size)
		log_warn("disk '%s': '%.200s' has %" PRIu64 " bytes, not a multiple of %" PRIu32
			 ": the last %" PRIu64 " bytes are left out",
			 d->id, path, size, block, size - d->capacity_bytes);
	return 0;
}

static void set_info(struct disk *d, const struct disk_config *config)
{
	const struct engine_info *e = &d->engine_info;
	uint32_t physical = MAX(e->physical_block, e->logical_block);

	d->caps = e->caps;
	d->page_cache = config->engine.fd >= 0 && !config->engine.direct;
	d->tracked = e->logical_block > config->block_bytes && !config->engine.read_only;
	d->info = (struct disk_info){
		.block_bytes = config->block_bytes,
		.physical_block_bytes = MAX(physical, config->block_bytes),
		.optimal_io_bytes = e->optimal_io_bytes,
		.discard_granularity_bytes = MAX(e->discard_granularity, config->block_bytes),
		.read_only = config->engine.read_only,
		.discard = config->discard && (e->caps & ENGINE_CAP_DISCARD) &&
			   !config->engine.read_only,
		.write_zeroes = true,
		.write_cache = e->caps & ENGINE_CAP_WRITE_CACHE,
		.inline_io = e->caps & ENGINE_CAP_INLINE,
	};
}

static int open_engine(struct disk *d, const struct disk_config *config, struct error *err)
{
	struct engine_config engine = config->engine;
	int ret;

	engine.ops = config->ops;
	ret = config->ops->open(&engine, &d->engine, &d->engine_info, err);
	if (ret < 0)
		return ret;
	ret = check_engine(config, &d->engine_info, err);
	if (ret == 0)
		ret = set_capacity(d, config, err);
	if (ret < 0)
		config->ops->close(d->engine);
	return ret;
}

struct disk *disk_create(const struct disk_config *config, struct error *err)
{
	struct disk *d = calloc(1, sizeof(*d));
	int fd = config->engine.fd;

	ASSERT(config->block_bytes == 512 || config->block_bytes == 4096);
	if (d)
		d->id = strdup(config->id);
	if (!d || !d->id) {
		error_set(err, -ENOMEM, "out of memory");
		goto fail;
	}
	d->ops = config->ops;
	d->fd = fd;
	d->queue_depth = config->queue_depth ? config->queue_depth : 256;
	d->ends_elsewhere = config->ends_elsewhere;
	if (config->poll) {
		d->poll_limits = *config->poll;
		d->poll = &d->poll_limits;
	}
	if (open_engine(d, config, err) < 0)
		goto fail;
	set_info(d, config);
	range_lock_init(&d->lock);
	pthread_mutex_init(&d->mutex, NULL);
	list_init(&d->channels);
	list_init(&d->memory_owners);
	return d;

fail:
	if (d)
		free(d->id);
	free(d);
	fd_close(&fd);
	return NULL;
}

void disk_destroy(struct disk *d)
{
	struct list *n;

	ASSERT(list_empty(&d->channels));
	while ((n = list_pop_front(&d->memory_owners)))
		free(list_entry(n, struct memory_owner, node));
	d->ops->close(d->engine);
	fd_close(&d->fd);
	range_lock_fini(&d->lock);
	pthread_mutex_destroy(&d->mutex);
	free(d->id);
	free(d);
}

const char *disk_id(const struct disk *d)
{
	return d->id;
}

const struct disk_info *disk_info(const struct disk *d)
{
	return &d->info;
}

uint64_t disk_capacity_bytes(const struct disk *d)
{
	return atomic_load_relaxed(&d->capacity_bytes); /* relaxed: see the field */
}

void disk_forget_caps(struct disk *d, uint32_t caps)
{
	uint32_t old = disk_caps(d);

	/* relaxed would do: nothing comes with the word */
	while (!atomic_cmpxchg(&d->caps, &old, old & ~caps))
		;
}

int disk_flush_result(struct disk *d, int64_t result)
{
	int before = atomic_load_relaxed(&d->flush_error); /* relaxed: see the field */

	if (before)
		return before;
	if (result >= 0)
		return 0;
	if (d->page_cache)
		atomic_store_relaxed(&d->flush_error, block_errno(result)); /* the same */
	return block_errno(result);
}

/* ---- channels ---- */

struct blk_channel *disk_channel_get(struct disk *d, struct error *err)
{
	struct loop *loop = loop_current();
	struct blk_channel *c = NULL;
	struct list *n;

	if (!loop) {
		error_set(err, -EINVAL, "this thread runs no loop");
		return NULL;
	}
	pthread_mutex_lock(&d->mutex);
	list_for_each (n, &d->channels) {
		if (list_entry(n, struct blk_channel, node)->loop == loop) {
			c = list_entry(n, struct blk_channel, node);
			break;
		}
	}
	if (!c) {
		c = channel_create(d, loop, err);
		if (c)
			list_push_back(&d->channels, &c->node);
	}
	if (c)
		c->users++;
	pthread_mutex_unlock(&d->mutex);
	return c;
}

void disk_channel_put(struct blk_channel *c)
{
	struct disk *d = c->disk;
	bool last;

	ASSERT(loop_current() == c->loop);
	pthread_mutex_lock(&d->mutex);
	last = --c->users == 0;
	if (last)
		list_remove(&c->node);
	pthread_mutex_unlock(&d->mutex);
	if (last)
		channel_destroy(c);
}

/* ---- memory ---- */

static int pass_memory(struct disk *d)
{
	struct engine_memory *all;
	struct list *n;
	unsigned count = 0;
	int ret;

	list_for_each (n, &d->memory_owners)
		count += list_entry(n, struct memory_owner, node)->n;
	all = calloc(count ? count : 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	count = 0;
	list_for_each (n, &d->memory_owners) {
		struct memory_owner *o = list_entry(n, struct memory_owner, node);

		memcpy(all + count, o->memory, o->n * sizeof(*all));
		count += o->n;
	}
	ret = d->ops->set_memory(d->engine, all, count);
	free(all);
	return ret;
}

int disk_set_memory(struct disk *d, const void *owner, const struct engine_memory *m, unsigned n)
{
	struct memory_owner *o;
	struct list *node, *next;

	if (!d->ops->set_memory)
		return 0;
	list_for_each_safe (node, next, &d->memory_owners) {
		o = list_entry(node, struct memory_owner, node);
		if (o->owner == owner) {
			list_remove(node);
			free(o);
		}
	}
	if (n) {
		o = malloc(sizeof(*o) + n * sizeof(*m));
		if (!o)
			return -ENOMEM;
		o->owner = owner;
		o->n = n;
		memcpy(o->memory, m, n * sizeof(*m));
		list_push_back(&d->memory_owners, &o->node);
	}
	return pass_memory(d);
}
