/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One engine request for several that are neighbours.  When it fails its members go alone, so that
 * only those fail that are bad.
 */
#include <string.h>

#include "block/channel_internal.h"

static void merged_done(struct blk_request *req, int64_t result)
{
	struct blk_io *io = container_of(req, struct blk_io, req);
	struct blk_channel *c = req->channel;
	struct slist members = io->members;
	struct slist_node *n;
	int64_t end = 0;

	channel_returned(c);
	if (unlikely(block_try_again(result))) {
		channel_retry(c, req);
		return;
	}
	if (unlikely(result > (int64_t)req->len_bytes))
		result = -EIO;
	if (unlikely(result != (int64_t)req->len_bytes))
		atomic_stat_add(&c->stats.retried, 1);
	io_put(c, io);
	while ((n = slist_pop_front(&members))) {
		struct blk_request *member = container_of(n, struct blk_request, node);

		end += (int64_t)member->len_bytes;
		if (likely(end <= result)) {
			channel_finish(c, member, 0);
		} else {
			member->block_state |= BLOCK_STATE_ALONE;
			slist_push_back(&c->again, &member->node);
			channel_schedule(c);
		}
	}
}

static struct blk_request *make_one(struct blk_channel *c, struct blk_request *const *reqs,
				    unsigned n)
{
	struct blk_io *io = slist_empty(&c->waiting) ? io_get(c) : NULL;
	const struct blk_request *first = reqs[0];
	struct blk_request *one;
	unsigned parts = 0;

	if (!io)
		return NULL;
	one = &io->req;
	one->op = first->op;
	one->flags = first->flags;
	one->offset_bytes = first->offset_bytes;
	one->len_bytes = 0;
	one->engine_done = merged_done;
	one->block_state = BLOCK_STATE_ALONE;
	slist_init(&io->members);
	for (unsigned i = 0; i < n; i++) {
		struct blk_request *r = reqs[i];

		for (unsigned k = 0; k < r->iovcnt; k++)
			io->iov[parts++] = r->iov[k];
		one->len_bytes += r->len_bytes;
		slist_push_back(&io->members, &r->node);
	}
	one->iov = io->iov;
	one->iovcnt = parts;
	return one;
}

unsigned channel_merge(struct blk_channel *c, struct blk_request **reqs, unsigned n)
{
	unsigned out = 0, run;

	for (unsigned i = 0; i < n; i += run) {
		struct blk_request *one = NULL;

		run = merge_run(reqs + i, n - i, &c->merge);
		if (run > 1)
			one = make_one(c, reqs + i, run);
		if (one) {
			reqs[out++] = one;
			atomic_stat_add(&c->stats.merged, run - 1);
		} else {
			for (unsigned k = 0; k < run; k++)
				reqs[out++] = reqs[i + k];
		}
	}
	return out;
}
