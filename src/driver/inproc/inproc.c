/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See inproc.h: opening and closing a file: target.
 */
#include "driver/inproc/inproc.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define TRANSFER_MOST (1u << 30)
#define RANGE_MOST    (1ull << 31)

struct file_options {
	enum engine_kind kind;
	bool direct, direct_given, read_only, discard;
	uint64_t size_bytes;
	uint32_t block_bytes;
	unsigned depth;
};

static int parse_switch(const struct uri *u, const char *key, bool *out, struct error *err)
{
	const char *v = uri_get(u, key);

	if (!v)
		return 0;
	if (strcmp(v, "on") && strcmp(v, "off"))
		return error_set(err, -EINVAL, "file: %s=%.100s is neither on nor off", key, v);
	*out = !strcmp(v, "on");
	return 0;
}

/* A number, perhaps with a unit of 1024, 1024 * 1024 and so on behind it. */
static bool number_of(const char *v, uint64_t *out)
{
	static const char units[] = "kKmMgGtT";
	const char *unit;
	uint64_t n = 0;

	if (!isdigit((unsigned char)*v))
		return false;
	for (; isdigit((unsigned char)*v); v++) {
		if (!checked_mul(n, 10, &n) || !checked_add(n, (uint64_t)(*v - '0'), &n))
			return false;
	}
	if (*v) {
		unit = strchr(units, *v);
		if (!unit || v[1] || !checked_mul(n, 1024ull << (unit - units) / 2 * 10, &n))
			return false;
	}
	*out = n;
	return true;
}

static int parse_number(const struct uri *u, const char *key, uint64_t max, uint64_t *out,
			struct error *err)
{
	const char *v = uri_get(u, key);

	if (v && (!number_of(v, out) || *out > max))
		return error_set(err, -EINVAL, "file: %s=%.100s is not a number up to %llu", key, v,
				 (unsigned long long)max);
	return 0;
}

static int parse_sizes(const struct uri *u, struct file_options *o, struct error *err)
{
	uint64_t block = 512, depth = 0;
	int ret = parse_number(u, "size", INT64_MAX, &o->size_bytes, err);

	if (ret == 0)
		ret = parse_number(u, "block-size", 4096, &block, err);
	if (ret == 0)
		ret = parse_number(u, "depth", 4096, &depth, err);
	if (ret < 0)
		return ret;
	if (block != 512 && block != 4096)
		return error_set(err, -EINVAL, "file: block-size is 512 or 4096");
	o->block_bytes = (uint32_t)block;
	o->depth = (unsigned)depth;
	return 0;
}

static int parse_options(const struct uri *u, struct file_options *o, struct error *err)
{
	static const char *const known[] = {"engine", "direct",     "readonly", "discard",
					    "size",   "block-size", "depth",    NULL};
	const char *engine = uri_get(u, "engine");
	int ret = uri_check_keys(u, known, err);

	*o = (struct file_options){.kind = ENGINE_AUTO, .direct = true, .discard = true};
	o->direct_given = uri_get(u, "direct");
	if (ret == 0 && engine)
		ret = engine_kind_parse(engine, &o->kind, err);
	if (ret == 0)
		ret = parse_switch(u, "direct", &o->direct, err);
	if (ret == 0)
		ret = parse_switch(u, "readonly", &o->read_only, err);
	if (ret == 0)
		ret = parse_switch(u, "discard", &o->discard, err);
	if (ret == 0)
		ret = parse_sizes(u, o, err);
	if (ret < 0)
		return ret;
	if (engine_kind_has_file(o->kind) == !*u->path)
		return error_set(err, -EINVAL,
				 *u->path ? "file: engine %s has no file: leave the path away"
					  : "file: engine %s needs a path",
				 engine_kind_name(o->kind));
	if (!engine_kind_has_file(o->kind) == !o->size_bytes)
		return error_set(err, -EINVAL,
				 o->size_bytes ? "file: engine %s takes its size from the file"
					       : "file: engine %s needs a size=",
				 engine_kind_name(o->kind));
	return 0;
}

static int open_image(struct inproc_device *dev, const struct uri *u, const struct file_options *o,
		      struct error *err)
{
	struct image_options io = {.id = "file",
				   .path = u->path,
				   .read_only = o->read_only,
				   .direct = o->direct,
				   .must_direct = o->direct_given && o->direct,
				   .lock = true};

	return *u->path ? image_open(&io, &dev->image, err) : 0;
}

static int open_disk(struct inproc_device *dev, const struct uri *u, const struct file_options *o,
		     const struct engine_ops *ops, struct error *err)
{
	struct disk_config config = {
		.id = "file",
		.ops = ops,
		.engine = {.path = u->path,
			   .fd = -1,
			   .direct = dev->image.direct,
			   .read_only = o->read_only,
			   .size_bytes = o->size_bytes},
		.block_bytes = o->block_bytes,
		.discard = o->discard,
		.queue_depth = o->depth,
		.ends_elsewhere = true, /* whoever calls ringside_close() */
	};

	if (dev->image.fd >= 0) {
		/* The disk's own: it is closed with it. */
		config.engine.fd = fcntl(dev->image.fd, F_DUPFD_CLOEXEC, 3);
		if (config.engine.fd < 0)
			return error_set(err, -errno, "'%.200s': %s", u->path, strerror(errno));
	}
	dev->disk = disk_create(&config, err);
	return dev->disk ? 0 : -EIO;
}

static void fill_info(struct inproc_device *dev, const char *path)
{
	const struct disk_info *d = disk_info(dev->disk);
	const char *name = strrchr(path, '/');

	dev->base.info = (struct ringside_info){
		.struct_bytes = sizeof(struct ringside_info),
		.capacity_bytes = disk_capacity_bytes(dev->disk),
		.block_bytes = d->block_bytes,
		.max_segments = dev->options.max_segments,
		.max_transfer_bytes = TRANSFER_MOST,
		.max_discard_bytes = d->discard ? RANGE_MOST : 0,
		.max_write_zeroes_bytes = d->write_zeroes ? RANGE_MOST : 0,
		.read_only = d->read_only,
		.flush = true,
		.discard = d->discard,
		.write_zeroes = d->write_zeroes,
		.hugepages = dev->options.hugepages && inproc_memory_has_hugepages(),
		.queues = dev->options.queues,
		.depth = dev->options.depth,
	};
	snprintf(dev->id, sizeof(dev->id), "%s", name ? name + 1 : path);
}

static bool stop_queues(struct inproc_device *dev)
{
	bool stopped = true;

	for (unsigned i = 0; dev->queue_memory && i < dev->base.info.queues; i++) {
		if (dev->queue_memory[i].dev)
			stopped &= inproc_queue_stop(&dev->queue_memory[i]);
	}
	if (!stopped)
		return false;
	free(dev->queue_memory);
	free(dev->base.queues);
	dev->queue_memory = NULL;
	dev->base.queues = NULL;
	return true;
}

static int start_queues(struct inproc_device *dev, struct error *err)
{
	unsigned n = dev->base.info.queues;
	int ret = 0;

	dev->base.queues = calloc(n, sizeof(*dev->base.queues));
	dev->queue_memory = aligned_alloc(_Alignof(struct inproc_queue),
					  n * sizeof(*dev->queue_memory));
	if (!dev->base.queues || !dev->queue_memory)
		return error_set(err, -ENOMEM, "out of memory for %u queues", n);
	memset(dev->queue_memory, 0, n * sizeof(*dev->queue_memory));
	for (unsigned i = 0; ret == 0 && i < n; i++) {
		dev->queue_memory[i].dev = dev;
		dev->base.queues[i] = &dev->queue_memory[i].base;
		ret = inproc_queue_start(&dev->queue_memory[i], err);
	}
	return ret;
}

static int try_engine(struct inproc_device *dev, const struct uri *u, const struct file_options *o,
		      const struct engine_ops *ops, struct error *err)
{
	int ret = open_disk(dev, u, o, ops, err);

	if (ret < 0)
		return ret;
	fill_info(dev, u->path);
	ret = start_queues(dev, err);
	/* Nothing is in flight yet. */
	if (ret < 0 && stop_queues(dev)) {
		disk_destroy(dev->disk);
		dev->disk = NULL;
	}
	return ret;
}

static int open_device(struct inproc_device *dev, const struct uri *u, struct error *err)
{
	struct file_options o;
	const struct engine_ops *ops;
	int ret = parse_options(u, &o, err);

	if (ret == 0)
		ret = open_image(dev, u, &o, err);
	if (ret < 0)
		return ret;
	dev->kind = o.kind;
	ret = -EINVAL;
	for (unsigned i = 0; ret < 0 && (ops = engine_kind_candidate(o.kind, i)); i++)
		ret = try_engine(dev, u, &o, ops, err);
	return ret;
}

static void inproc_close(struct ringside_device *base)
{
	struct inproc_device *dev = container_of(base, struct inproc_device, base);

	/* A disk that does not answer keeps what the kernel still uses: better lost than misused.
	 */
	if (!stop_queues(dev))
		return;
	if (dev->image.fd >= 0)
		image_close(&dev->image);
	if (dev->disk)
		disk_destroy(dev->disk);
	inproc_memory_fini(dev);
	pthread_mutex_destroy(&dev->lock);
	free(dev);
}

static int inproc_open(const struct uri *uri, const struct ringside_options *options,
		       struct ringside_device **out, struct error *err)
{
	struct inproc_device *dev = calloc(1, sizeof(*dev));
	int ret;

	if (!dev)
		return error_set(err, -ENOMEM, "out of memory");
	dev->base.transport = &driver_inproc;
	dev->options = *options;
	dev->image.fd = -1;
	pthread_mutex_init(&dev->lock, NULL);
	ret = open_device(dev, uri, err);
	if (ret < 0)
		inproc_close(&dev->base);
	else
		*out = &dev->base;
	return ret;
}

__attribute__((visibility("default"))) const struct driver_transport driver_inproc = {
	.scheme = "file",
	.open = inproc_open,
	.close = inproc_close,
	.memory_alloc = inproc_memory_alloc,
	.memory_map = inproc_memory_map,
	.memory_free = inproc_memory_free,
};
