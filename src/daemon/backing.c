/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#ifdef RINGSIDE_FAULTS
#include "engine/fault.h"
#endif

/* ---- channels: made and given back by the threads that use them ---- */

struct channel_call {
	struct disk *disk;
	struct blk_channel *channel;
	struct error *err;
};

static void get_channel(void *arg)
{
	struct channel_call *call = arg;

	call->channel = disk_channel_get(call->disk, call->err);
}

static void put_channel(void *arg)
{
	struct channel_call *call = arg;

	disk_channel_put(call->channel);
}

static void put_channels(struct backing *b)
{
	for (unsigned i = 0; i < b->nchannels; i++) {
		struct channel_call call = {.channel = b->channels[i]};

		iothread_run_sync(b->iothreads[i], put_channel, &call);
	}
	b->nchannels = 0;
}

static int get_channels(struct backing *b, unsigned n, struct error *err)
{
	for (b->nchannels = 0; b->nchannels < n; b->nchannels++) {
		struct channel_call call = {.disk = b->disk, .err = err};

		iothread_run_sync(b->iothreads[b->nchannels], get_channel, &call);
		if (!call.channel) {
			put_channels(b);
			return -EIO;
		}
		b->channels[b->nchannels] = call.channel;
	}
	return 0;
}

/* ---- the engine ---- */

/* Builds for tests put the fault layer between disk and engine, when the environment asks. */
static int wrap_engine(struct backing *b, const struct engine_ops *ops, struct error *err)
{
	b->ops = ops;
#ifdef RINGSIDE_FAULTS
	const char *spec = getenv("RINGSIDE_FAULTS");

	if (spec && *spec)
		b->ops = fault_wrap(ops, spec);
	if (!b->ops)
		return error_set(err, -ENOMEM, "out of memory");
#endif
	return 0;
}

static void destroy_disk(struct backing *b)
{
	if (b->disk)
		disk_destroy(b->disk);
	b->disk = NULL;
#ifdef RINGSIDE_FAULTS
	const char *spec = getenv("RINGSIDE_FAULTS");

	if (spec && *spec && b->ops)
		fault_unwrap(b->ops);
#endif
	b->ops = NULL;
}

static int open_disk(struct backing *b, struct error *err)
{
	const struct disk_options *o = b->options;
	struct disk_config config = {
		.id = o->id,
		.ops = b->ops,
		.engine = {.path = o->path,
			   .fd = -1,
			   .direct = b->image.direct,
			   .read_only = o->readonly,
			   .fixed_buffers = o->fixed_buffers,
			   .size_bytes = o->size_bytes},
		.block_bytes = o->block_bytes,
		.discard = o->discard,
		.poll = disk_options_given(o, DISK_KEY_POLL) ? &o->poll : NULL,
	};

	if (b->image.fd >= 0) {
		/* The disk takes its descriptor over also when it fails, and the next engine needs
		 * another.  All are the same open file, and so the lock is theirs. */
		config.engine.fd = fcntl(b->image.fd, F_DUPFD_CLOEXEC, 3);
		if (config.engine.fd < 0)
			return error_set(err, -errno,
					 "'%.200s': %s: raise the limit with 'ulimit -n', or serve "
					 "fewer disks",
					 o->path, strerror(errno));
	}
	b->disk = disk_create(&config, err);
	return b->disk ? 0 : -EIO;
}

static int try_engine(struct backing *b, const struct engine_ops *ops, unsigned niothreads,
		      struct error *err)
{
	int ret = wrap_engine(b, ops, err);

	if (ret == 0)
		ret = open_disk(b, err);
	if (ret == 0)
		ret = get_channels(b, MIN(niothreads, b->options->queues), err);
	if (ret < 0)
		destroy_disk(b);
	else
		b->engine = ops->name;
	return ret;
}

static int choose_engine(struct backing *b, unsigned niothreads, struct error *err)
{
	const struct disk_options *o = b->options;
	const struct engine_ops *ops;
	char reasons[256] = "";
	struct error why;
	int ret = -EINVAL;

	for (unsigned i = 0; (ops = engine_kind_candidate(o->engine, i)); i++) {
		size_t len = strlen(reasons);

		ret = try_engine(b, ops, niothreads, &why);
		if (ret == 0)
			break;
		snprintf(reasons + len, sizeof(reasons) - len, "%s%.120s", len ? "; " : "",
			 why.text);
	}
	if (ret < 0)
		return error_set(err, ret, "disk '%s': %.450s", o->id, why.text);
	b->why_engine = *reasons ? strdup(reasons) : NULL;
	return 0;
}

static int open_image(struct backing *b, struct error *err)
{
	const struct disk_options *o = b->options;
	struct image_options io = {.id = o->id,
				   .path = o->path,
				   .read_only = o->readonly,
				   .direct = o->direct,
				   .must_direct = disk_options_given(o, DISK_KEY_DIRECT),
				   .lock = o->lock};

	return engine_kind_has_file(o->engine) ? image_open(&io, &b->image, err) : 0;
}

int backing_open(struct backing *b, const struct disk_options *o, struct iothread *const *iothreads,
		 unsigned niothreads, struct error *err)
{
	int ret;

	*b = (struct backing){.options = o, .iothreads = iothreads, .image.fd = -1};
	b->channels = calloc(niothreads, sizeof(struct blk_channel *));
	if (!b->channels)
		return error_set(err, -ENOMEM, "disk '%s': out of memory", o->id);
	ret = open_image(b, err);
	if (ret == 0)
		ret = choose_engine(b, niothreads, err);
	if (ret < 0)
		backing_close(b);
	return ret;
}

void backing_close(struct backing *b)
{
	put_channels(b);
	/* Nothing is in flight: whoever waits for the image may have it. */
	image_close(&b->image);
	destroy_disk(b);
	free(b->channels);
	b->channels = NULL;
	free(b->why_engine);
	b->why_engine = NULL;
}

void backing_announce(const struct backing *b)
{
	const struct disk_options *o = b->options;

	if (b->image.no_direct)
		log_info("disk '%s': the file system of '%.200s' has no O_DIRECT: using the page "
			 "cache (direct=off)",
			 o->id, o->path);
	if (b->why_engine)
		log_info("disk '%s': engine %s, because others do not work here (%s)", o->id,
			 b->engine, b->why_engine);
	if (o->fixed_buffers && strcmp(b->engine, engine_kind_name(ENGINE_IO_URING)))
		log_warn("disk '%s': engine %s has no fixed buffers: serving without", o->id,
			 b->engine);
}
