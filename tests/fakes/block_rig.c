/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/block_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "base/iov.h"

/* A request that has not come back by then never will. */
#define RIG_PATIENCE_S 60

struct channel_call {
	struct block_rig *rig;
	unsigned thread;
	struct error err;
};

static void get_channel(void *arg)
{
	struct channel_call *call = arg;

	call->rig->channels[call->thread] = disk_channel_get(call->rig->disk, &call->err);
}

static void put_channel(void *arg)
{
	struct channel_call *call = arg;

	disk_channel_put(call->rig->channels[call->thread]);
}

void rig_open(struct block_rig *rig, const struct disk_config *config, unsigned nthreads)
{
	const struct poll_policy_limits limits = {.mode = POLL_ADAPTIVE};
	struct channel_call call = {.rig = rig};

	*rig = (struct block_rig){.nthreads = nthreads};
	pthread_mutex_init(&rig->mutex, NULL);
	pthread_cond_init(&rig->cond, NULL);
	rig->disk = disk_create(config, &call.err);
	if (!rig->disk)
		fail_msg("disk_create: %s", call.err.text);
	for (unsigned i = 0; i < nthreads; i++) {
		rig->threads[i] = iothread_create("rig", &limits, &call.err);
		if (!rig->threads[i])
			fail_msg("iothread_create: %s", call.err.text);
		call.thread = i;
		iothread_run_sync(rig->threads[i], get_channel, &call);
		if (!rig->channels[i])
			fail_msg("disk_channel_get: %s", call.err.text);
	}
}

void rig_close(struct block_rig *rig)
{
	struct channel_call call = {.rig = rig};

	for (unsigned i = 0; i < rig->nthreads; i++) {
		assert_int_equal(blk_channel_in_flight(rig->channels[i]), 0);
		call.thread = i;
		iothread_run_sync(rig->threads[i], put_channel, &call);
		iothread_destroy(rig->threads[i]);
	}
	disk_destroy(rig->disk);
	pthread_mutex_destroy(&rig->mutex);
	pthread_cond_destroy(&rig->cond);
}

static void on_complete(struct blk_request *req, int ret)
{
	struct rig_request *r = container_of(req, struct rig_request, req);
	struct block_rig *rig = r->rig;

	r->ret = ret;
	r->done++;
	if (r->next && r->next(r))
		return;
	pthread_mutex_lock(&rig->mutex);
	if (--rig->outstanding == 0)
		pthread_cond_signal(&rig->cond);
	pthread_mutex_unlock(&rig->mutex);
}

void rig_request_init(struct rig_request *r, enum blk_op op, uint64_t offset, struct iovec *iov,
		      unsigned iovcnt)
{
	*r = (struct rig_request){.req = {.op = op,
					  .offset_bytes = offset,
					  .len_bytes = iov_length(iov, iovcnt),
					  .iov = iov,
					  .iovcnt = iovcnt,
					  .complete = on_complete}};
}

struct batch {
	struct loop_msg msg;
	struct block_rig *rig;
	unsigned thread, n;
	struct rig_request *r;
};

static void submit_batch(struct loop_msg *m)
{
	struct batch *b = container_of(m, struct batch, msg);

	for (unsigned i = 0; i < b->n; i++) {
		unsigned done = b->r[i].done;

		blk_submit(b->rig->channels[b->thread], &b->r[i].req);
		if (b->r[i].done != done)
			abort(); /* completed inside blk_submit() */
	}
	free(b);
}

void rig_start(struct block_rig *rig, unsigned thread, struct rig_request *r, unsigned n)
{
	struct batch *b = malloc(sizeof(*b));

	assert_non_null(b);
	*b = (struct batch){
		.msg = {.run = submit_batch}, .rig = rig, .thread = thread, .n = n, .r = r};
	for (unsigned i = 0; i < n; i++) {
		r[i].rig = rig;
		r[i].thread = thread;
	}
	pthread_mutex_lock(&rig->mutex);
	rig->outstanding += n;
	pthread_mutex_unlock(&rig->mutex);
	loop_post(iothread_loop(rig->threads[thread]), &b->msg);
}

void rig_wait(struct block_rig *rig)
{
	struct timespec until;
	int ret = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += RIG_PATIENCE_S;
	pthread_mutex_lock(&rig->mutex);
	while (rig->outstanding && !ret)
		ret = pthread_cond_timedwait(&rig->cond, &rig->mutex, &until);
	ret = (int)rig->outstanding;
	pthread_mutex_unlock(&rig->mutex);
	if (ret)
		fail_msg("%d requests never came back", ret);
}

void rig_run(struct block_rig *rig, unsigned thread, struct rig_request *r, unsigned n)
{
	rig_start(rig, thread, r, n);
	rig_wait(rig);
	for (unsigned i = 0; i < n; i++)
		assert_true(r[i].done == 1 || r[i].next);
}

int rig_io(struct block_rig *rig, enum blk_op op, uint32_t flags, uint64_t offset, void *buf,
	   uint64_t len)
{
	struct iovec iov = {buf, len};
	struct rig_request r;

	rig_request_init(&r, op, offset, &iov, 1);
	r.req.flags = flags;
	if (op == BLK_FLUSH)
		r.req.len_bytes = 0;
	if (op > BLK_WRITE) {
		r.req.iov = NULL;
		r.req.iovcnt = 0;
	}
	rig_run(rig, 0, &r, 1);
	return r.ret;
}
