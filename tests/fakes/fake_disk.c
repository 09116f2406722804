/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/fake_disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/defer.h"
#include "base/iov.h"

void fake_disk_init(struct disk *d, uint64_t data_bytes)
{
	memset(d, 0, sizeof(*d));
	d->info = (struct disk_info){.block_bytes = 512,
				     .physical_block_bytes = 4096,
				     .optimal_io_bytes = 65536,
				     .discard_granularity_bytes = 4096,
				     .discard = true,
				     .write_zeroes = true,
				     .write_cache = true};
	d->capacity_bytes = d->data_bytes = data_bytes;
	d->data = calloc(1, data_bytes);
	ASSERT(d->data);
	d->channel.disk = d;
	slist_init(&d->channel.pending);
}

void fake_disk_fini(struct disk *d)
{
	ASSERT(!d->channel.refs && !d->channel.npending);
	free(d->data);
}

static void carry_out(struct disk *d, struct blk_request *req)
{
	if (req->op == BLK_FLUSH || !range_within(req->offset_bytes, req->len_bytes, d->data_bytes))
		return;
	if (req->op == BLK_READ)
		buf_to_iov(req->iov, req->iovcnt, 0, d->data + req->offset_bytes, req->len_bytes);
	else if (req->op == BLK_WRITE)
		iov_to_buf(req->iov, req->iovcnt, 0, d->data + req->offset_bytes, req->len_bytes);
	else
		memset(d->data + req->offset_bytes, 0, req->len_bytes);
}

static void complete(struct disk *d, struct blk_request *req)
{
	d->channel.npending--;
	if (!d->fail)
		carry_out(d, req);
	req->complete(req, d->fail);
}

unsigned fake_disk_complete(struct disk *d, unsigned n)
{
	struct slist now = d->channel.pending, rest;
	struct slist_node *node;
	unsigned done = 0;

	slist_init(&d->channel.pending);
	slist_init(&rest);
	defer_begin();
	while ((node = slist_pop_front(&now))) {
		if (done == n) {
			slist_push_back(&rest, node);
			continue;
		}
		done++;
		complete(d, container_of(node, struct blk_request, node));
	}
	slist_append(&rest, &d->channel.pending);
	d->channel.pending = rest;
	defer_end();
	return done;
}

unsigned fake_disk_complete_newest(struct disk *d)
{
	struct slist keep;
	struct slist_node *node, *newest = d->channel.pending.last;

	if (!newest)
		return 0;
	slist_init(&keep);
	while ((node = slist_pop_front(&d->channel.pending)) != newest)
		slist_push_back(&keep, node);
	d->channel.pending = keep;
	defer_begin();
	complete(d, container_of(newest, struct blk_request, node));
	defer_end();
	return 1;
}

/* ---- what src/block would be ---- */

void blk_submit(struct blk_channel *c, struct blk_request *req)
{
	struct disk *d = c->disk;

	ASSERT(d->nlog < FAKE_DISK_LOG); /* a test that needs more empties it now and then */
	/* The contract: for reads and writes the length is that of the buffers. */
	ASSERT((req->op != BLK_READ && req->op != BLK_WRITE) ||
	       iov_length(req->iov, req->iovcnt) == req->len_bytes);
	d->log[d->nlog++] = (struct fake_disk_op){req->op, req->flags, req->offset_bytes,
						  req->len_bytes, req->iovcnt};
	req->channel = c;
	slist_push_back(&c->pending, &req->node);
	c->npending++;
}

void blk_channel_stats_read(const struct blk_channel *c, struct blk_channel_stats *out)
{
	memset(out, 0, sizeof(*out));
	out->requests = c->disk->nlog;
}

const struct disk_info *disk_info(const struct disk *d)
{
	return &d->info;
}

uint64_t disk_capacity_bytes(const struct disk *d)
{
	return d->capacity_bytes;
}

struct blk_channel *disk_channel_get(struct disk *d, struct error *err)
{
	if (d->no_channel) {
		error_set(err, -EIO, "no channel");
		return NULL;
	}
	d->channel.refs++;
	return &d->channel;
}

void disk_channel_put(struct blk_channel *c)
{
	ASSERT(c->refs && !c->npending);
	c->refs--;
}

int disk_set_memory(struct disk *d, const void *owner, const struct engine_memory *m, unsigned n)
{
	d->memory_regions = n;
	return 0;
}
