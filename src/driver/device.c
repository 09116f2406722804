/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices: finding the transport of a target, and what does not depend on it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/driver_internal.h"

#define INPROC_MODULE "libringside-inproc.so.0"

#define DEPTH_DEFAULT    128u
#define DEPTH_MOST       1024u
#define SEGMENTS_DEFAULT 16u
#define SEGMENTS_MOST    1022u
#define TIMEOUT_MS       5000u

static const struct driver_transport *const transports[] = {
	&driver_vhost_user_blk,
};

/* file: is linked in, or a module that is loaded when it is first asked for (and stays). */
static int find_inproc(const struct driver_transport **out, struct error *err)
{
	void *module;

	*out = &driver_inproc;
	if (*out)
		return 0;
	module = dlopen(INPROC_MODULE, RTLD_NOW | RTLD_LOCAL);
	*out = module ? dlsym(module, "driver_inproc") : NULL;
	if (!*out)
		return error_set(err, -EOPNOTSUPP, "file: targets need " INPROC_MODULE ": %s",
				 dlerror());
	return 0;
}

static int find_transport(const char *scheme, const struct driver_transport **out,
			  struct error *err)
{
	if (!strcmp(scheme, "file"))
		return find_inproc(out, err);
	for (size_t i = 0; i < ARRAY_SIZE(transports); i++) {
		*out = transports[i];
		if (!strcmp((*out)->scheme, scheme))
			return 0;
	}
	return error_set(err, -EINVAL, "target: unknown scheme '%s' (vhost-user-blk, file)",
			 scheme);
}

static int check_range(unsigned *value, unsigned otherwise, unsigned most, const char *name,
		       struct error *err)
{
	if (!*value)
		*value = otherwise;
	if (*value > most)
		return error_set(err, -EINVAL, "options: %s %u is above %u", name, *value, most);
	return 0;
}

/* A copy with every field set; a caller that was built with a shorter struct has defaults. */
static int fill_options(const struct ringside_options *options, struct ringside_options *out,
			struct error *err)
{
	struct ringside_options zero = RINGSIDE_OPTIONS_INIT;
	int ret;

	*out = zero;
	if (options) {
		if (options->struct_bytes < sizeof(size_t))
			return error_set(err, -EINVAL, "options: struct_bytes is not set");
		memcpy(out, options, MIN(options->struct_bytes, sizeof(*out)));
	}
	ret = check_range(&out->queues, 1, UINT16_MAX, "queues", err);
	if (ret == 0)
		ret = check_range(&out->depth, DEPTH_DEFAULT, DEPTH_MOST, "depth", err);
	if (ret == 0)
		ret = check_range(&out->max_segments, SEGMENTS_DEFAULT, SEGMENTS_MOST,
				  "max_segments", err);
	if (ret == 0)
		ret = check_range(&out->timeout_ms, TIMEOUT_MS, 86400000, "timeout_ms", err);
	return ret;
}

static int open_target(const char *target, const struct ringside_options *options,
		       struct ringside_device **out, struct error *err)
{
	const struct driver_transport *transport;
	struct ringside_options filled;
	struct uri uri;
	int ret;

	ret = fill_options(options, &filled, err);
	if (ret < 0)
		return ret;
	ret = uri_parse(target, &uri, err);
	if (ret < 0)
		return ret;
	ret = find_transport(uri.scheme, &transport, err);
	if (ret == 0)
		ret = transport->open(&uri, &filled, out, err);
	uri_fini(&uri);
	return ret;
}

/* The public error and ours have the same text; the types differ so that base stays private. */
static int tell(int ret, const struct error *from, struct ringside_error *to)
{
	if (ret < 0 && to)
		snprintf(to->text, sizeof(to->text), "%s", from->text);
	return ret;
}

int ringside_open(const char *target, const struct ringside_options *options,
		  struct ringside_device **out, struct ringside_error *err)
{
	struct error e = {""};

	*out = NULL;
	return tell(open_target(target, options, out, &e), &e, err);
}

void ringside_close(struct ringside_device *dev)
{
	if (dev)
		dev->transport->close(dev);
}

void ringside_info(const struct ringside_device *dev, struct ringside_info *info)
{
	size_t bytes = MIN(info->struct_bytes, sizeof(dev->info));

	memcpy(info, &dev->info, bytes);
	info->struct_bytes = bytes;
}

int ringside_memory_alloc(struct ringside_device *dev, size_t len_bytes, void **out,
			  struct ringside_error *err)
{
	struct error e = {""};

	*out = NULL;
	return tell(dev->transport->memory_alloc(dev, len_bytes, out, &e), &e, err);
}

int ringside_memory_map(struct ringside_device *dev, void *addr, size_t len_bytes, int fd,
			uint64_t offset_bytes, struct ringside_error *err)
{
	struct error e = {""};

	return tell(dev->transport->memory_map(dev, addr, len_bytes, fd, offset_bytes, &e), &e,
		    err);
}

int ringside_memory_free(struct ringside_device *dev, void *addr, struct ringside_error *err)
{
	struct error e = {""};

	return tell(dev->transport->memory_free(dev, addr, &e), &e, err);
}

struct ringside_queue *ringside_queue(struct ringside_device *dev, unsigned index)
{
	return index < dev->info.queues ? dev->queues[index] : NULL;
}
