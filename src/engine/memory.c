/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk in memory: sparse, gone with the process, copied inline.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/iov.h"
#include "block/engine.h"

struct engine {
	char *memory;
	uint64_t size_bytes;
	uint64_t page_bytes;
};

struct engine_queue {
	struct engine *engine;
};

static int memory_open(const struct engine_config *config, struct engine **out,
		       struct engine_info *info, struct error *err)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return error_set(err, -ENOMEM, "out of memory");
	e->size_bytes = config->size_bytes;
	e->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	e->memory = mmap(NULL, MAX(e->size_bytes, (uint64_t)1), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (e->memory == MAP_FAILED) {
		free(e);
		return error_set(err, -ENOMEM, "cannot map %" PRIu64 " bytes of memory: %s",
				 config->size_bytes, strerror(errno));
	}
	*info = (struct engine_info){
		.size_bytes = e->size_bytes,
		.logical_block = 1,
		.physical_block = 512,
		.memory_align = 1,
		.discard_granularity = (uint32_t)e->page_bytes,
		.max_iov = 1024,
		.max_transfer_bytes = 1u << 30,
		/* Memory is not reserved: nothing is lost by unmapping what should be kept. */
		.caps = ENGINE_CAP_DISCARD | ENGINE_CAP_WRITE_ZEROES | ENGINE_CAP_ZERO_NO_UNMAP |
			ENGINE_CAP_INLINE,
	};
	*out = e;
	return 0;
}

static void memory_close(struct engine *e)
{
	munmap(e->memory, MAX(e->size_bytes, (uint64_t)1));
	free(e);
}

static int64_t memory_refresh_size(struct engine *e)
{
	return (int64_t)e->size_bytes;
}

static int memory_queue_create(struct engine *e, const struct engine_queue_config *config,
			       struct engine_queue **out, struct error *err)
{
	struct engine_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return error_set(err, -ENOMEM, "out of memory");
	q->engine = e;
	*out = q;
	return 0;
}

static void memory_queue_destroy(struct engine_queue *q)
{
	free(q);
}

/* Whole pages go back to the kernel, the edges are written. */
static int64_t zero(struct engine *e, uint64_t offset, uint64_t len)
{
	uint64_t from = align_up(offset, e->page_bytes);
	uint64_t to = align_down(offset + len, e->page_bytes);

	if (from >= to) {
		memset(e->memory + offset, 0, len);
		return 0;
	}
	memset(e->memory + offset, 0, from - offset);
	memset(e->memory + to, 0, offset + len - to);
	return madvise(e->memory + from, to - from, MADV_DONTNEED) < 0 ? -errno : 0;
}

static int64_t run(struct engine *e, const struct blk_request *req)
{
	char *at = e->memory + req->offset_bytes;

	switch (req->op) {
	case BLK_READ:
		return (int64_t)buf_to_iov(req->iov, req->iovcnt, 0, at, req->len_bytes);
	case BLK_WRITE:
		return (int64_t)iov_to_buf(req->iov, req->iovcnt, 0, at, req->len_bytes);
	case BLK_DISCARD:
	case BLK_WRITE_ZEROES:
		return zero(e, req->offset_bytes, req->len_bytes);
	default:
		return 0;
	}
}

static unsigned memory_submit_batch(struct engine_queue *q, struct blk_request **reqs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		reqs[i]->engine_done(reqs[i], run(q->engine, reqs[i]));
	return n;
}

static unsigned memory_poll(struct engine_queue *q)
{
	return 0;
}

static void memory_disarm(struct engine_queue *q)
{
}

static bool memory_arm(struct engine_queue *q)
{
	return false;
}

static int memory_event_fd(struct engine_queue *q)
{
	return -1;
}

const struct engine_ops engine_memory = {
	.name = "memory",
	.open = memory_open,
	.close = memory_close,
	.refresh_size = memory_refresh_size,
	.queue_create = memory_queue_create,
	.queue_destroy = memory_queue_destroy,
	.submit_batch = memory_submit_batch,
	.poll = memory_poll,
	.disarm = memory_disarm,
	.arm = memory_arm,
	.event_fd = memory_event_fd,
};
