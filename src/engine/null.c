/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine that does nothing, and at once: reads leave the memory as it is, writes are forgotten.
 * For measuring all that is above an engine.  Also the template of an engine.
 */
#include <errno.h>
#include <stdlib.h>

#include "block/engine.h"

struct engine {
	uint64_t size_bytes;
};

struct engine_queue {
	unsigned unused;
};

static int null_open(const struct engine_config *config, struct engine **out,
		     struct engine_info *info, struct error *err)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return error_set(err, -ENOMEM, "out of memory");
	e->size_bytes = config->size_bytes;
	*info = (struct engine_info){
		.size_bytes = e->size_bytes,
		.logical_block = 1,
		.physical_block = 512,
		.memory_align = 1,
		.discard_granularity = 512,
		.max_iov = 1024,
		.max_transfer_bytes = 1u << 30,
		.caps = ENGINE_CAP_DISCARD | ENGINE_CAP_WRITE_ZEROES | ENGINE_CAP_ZERO_NO_UNMAP |
			ENGINE_CAP_INLINE,
	};
	*out = e;
	return 0;
}

static void null_close(struct engine *e)
{
	free(e);
}

static int64_t null_refresh_size(struct engine *e)
{
	return (int64_t)e->size_bytes;
}

static int null_queue_create(struct engine *e, const struct engine_queue_config *config,
			     struct engine_queue **q, struct error *err)
{
	*q = calloc(1, sizeof(**q));
	return *q ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static void null_queue_destroy(struct engine_queue *q)
{
	free(q);
}

static unsigned null_submit_batch(struct engine_queue *q, struct blk_request **reqs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct blk_request *req = reqs[i];

		req->engine_done(req, req->op <= BLK_WRITE ? (int64_t)req->len_bytes : 0);
	}
	return n;
}

static unsigned null_poll(struct engine_queue *q)
{
	return 0;
}

static void null_disarm(struct engine_queue *q)
{
}

static bool null_arm(struct engine_queue *q)
{
	return false;
}

static int null_event_fd(struct engine_queue *q)
{
	return -1;
}

const struct engine_ops engine_null = {
	.name = "null",
	.open = null_open,
	.close = null_close,
	.refresh_size = null_refresh_size,
	.queue_create = null_queue_create,
	.queue_destroy = null_queue_destroy,
	.submit_batch = null_submit_batch,
	.poll = null_poll,
	.disarm = null_disarm,
	.arm = null_arm,
	.event_fd = null_event_fd,
};
