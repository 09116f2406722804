/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine for files that nothing else can serve: preadv2 and pwritev2 on the worker pool.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/file_ops.h"

struct engine {
	struct file file;
};

struct engine_queue {
	struct file_ops ops;
};

static int threads_open(const struct engine_config *config, struct engine **engine,
			struct engine_info *info, struct error *err)
{
	struct engine *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return error_set(err, -ENOMEM, "out of memory");
	ret = file_probe(config, &e->file, info, err);
	if (ret < 0) {
		free(e);
		return ret;
	}
	*engine = e;
	return 0;
}

static void threads_close(struct engine *e)
{
	free(e);
}

static int64_t threads_refresh_size(struct engine *e)
{
	return file_size(e->file.fd);
}

static int threads_queue_create(struct engine *e, const struct engine_queue_config *config,
				struct engine_queue **queue, struct error *err)
{
	struct engine_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return error_set(err, -ENOMEM, "out of memory");
	file_ops_init(&q->ops, &e->file);
	*queue = q;
	return 0;
}

static void threads_queue_destroy(struct engine_queue *q)
{
	ASSERT(!q->ops.in_flight);
	free(q);
}

static unsigned threads_submit_batch(struct engine_queue *q, struct blk_request **reqs, unsigned n)
{
	return file_ops_submit_batch(&q->ops, reqs, n);
}

/* Completions are messages of the loop: there is nothing to look at. */
static unsigned threads_poll(struct engine_queue *q)
{
	return 0;
}

static void threads_disarm(struct engine_queue *q)
{
}

static bool threads_arm(struct engine_queue *q)
{
	return false;
}

static int threads_event_fd(struct engine_queue *q)
{
	return -1;
}

const struct engine_ops engine_threads = {
	.name = "threads",
	.open = threads_open,
	.close = threads_close,
	.refresh_size = threads_refresh_size,
	.queue_create = threads_queue_create,
	.queue_destroy = threads_queue_destroy,
	.submit_batch = threads_submit_batch,
	.poll = threads_poll,
	.disarm = threads_disarm,
	.arm = threads_arm,
	.event_fd = threads_event_fd,
};
