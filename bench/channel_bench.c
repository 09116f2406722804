/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the block layer costs: requests through a channel to the null engine and back, nothing
 * around it.  One pass of `depth` requests at a time: random 4 KiB, and sequential (they merge).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/defer.h"
#include "block/channel.h"
#include "loop/iothread.h"

#define DISK_BYTES (1ull << 30)
#define REQUESTS   20000000u
#define DEPTH_MAX  128

struct run {
	struct disk *disk;
	struct blk_channel *channel;
	unsigned depth;
	bool sequential;
	double ns;
};

static unsigned completed;

static void on_complete(struct blk_request *req, int ret)
{
	if (ret)
		abort();
	completed++;
}

static void get_channel(void *arg)
{
	struct run *run = arg;
	struct error err;

	run->channel = disk_channel_get(run->disk, &err);
}

static void put_channel(void *arg)
{
	disk_channel_put(((struct run *)arg)->channel);
}

/* On the main thread, while the channel's sleeps: the passes are ours. */
static void measure(struct run *run)
{
	static struct blk_request reqs[DEPTH_MAX];
	static char memory[4096];
	struct iovec iov = {memory, sizeof(memory)};
	struct blk_channel *c = run->channel;
	uint64_t begin, at = 0;

	for (unsigned i = 0; i < run->depth; i++)
		reqs[i] = (struct blk_request){.op = BLK_READ,
					       .len_bytes = sizeof(memory),
					       .iov = &iov,
					       .iovcnt = 1,
					       .complete = on_complete};
	completed = 0;
	begin = clock_now_ns();
	while (completed < REQUESTS) {
		defer_begin();
		for (unsigned i = 0; i < run->depth; i++) {
			reqs[i].offset_bytes = at;
			at = (at + (run->sequential ? 4096 : 5 * 4096)) % (DISK_BYTES / 2);
			blk_submit(c, &reqs[i]);
		}
		defer_end();
	}
	run->ns = (double)(clock_now_ns() - begin) / completed;
}

int main(void)
{
	static const unsigned depths[] = {1, 4, 32, 128};
	const struct poll_policy_limits limits = {.mode = POLL_ADAPTIVE};
	struct disk_config config = {
		.id = "bench",
		.ops = &engine_null,
		.engine = {.fd = -1, .size_bytes = DISK_BYTES},
		.block_bytes = 512,
	};
	struct error err;
	struct iothread *t = iothread_create("bench", &limits, &err);
	struct run run = {.disk = disk_create(&config, &err)};

	if (!t || !run.disk) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	iothread_run_sync(t, get_channel, &run);
	if (!run.channel)
		return 1;
	for (unsigned seq = 0; seq < 2; seq++) {
		for (unsigned i = 0; i < ARRAY_SIZE(depths); i++) {
			run.depth = depths[i];
			run.sequential = seq;
			measure(&run);
			printf("%-10s depth %3u: %6.1f ns a request\n",
			       seq ? "sequential" : "random", run.depth, run.ns);
		}
	}
	iothread_run_sync(t, put_channel, &run);
	iothread_destroy(t);
	disk_destroy(run.disk);
	return 0;
}
