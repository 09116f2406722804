/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest client: writes one block, reads it back, prints what it cost.
 *
 *     cc minimal.c -o minimal $(pkg-config --cflags --libs ringside)
 *     ./minimal vhost-user-blk:/run/vm.sock
 */
#include <ringside/driver.h>
#include <stdio.h>
#include <string.h>

/* Publishes what was put and waits for its end. */
static int finish(struct ringside_queue *q)
{
	struct ringside_completion done;
	int n;

	ringside_submit(q);
	n = ringside_hybrid(q, &done, 1, 1, -1);
	return n < 0 ? n : done.result;
}

int main(int argc, char **argv)
{
	struct ringside_device *dev;
	struct ringside_error err;
	struct ringside_info info = {.struct_bytes = sizeof(info)};
	struct ringside_stats stats = {.struct_bytes = sizeof(stats)};
	struct ringside_queue *q;
	char *buf;
	int ret = 1;

	if (argc != 2 || ringside_open(argv[1], NULL, &dev, &err) < 0) {
		fprintf(stderr, "%s\n", argc == 2 ? err.text : "usage: minimal TARGET");
		return 1;
	}
	ringside_info(dev, &info);
	q = ringside_queue(dev, 0);
	if (ringside_memory_alloc(dev, 2 * info.block_bytes, (void **)&buf, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		goto out;
	}
	memset(buf, 'r', info.block_bytes);
	if (ringside_write(q, 0, buf, info.block_bytes, NULL) < 0 || finish(q) < 0 ||
	    ringside_read(q, 0, buf + info.block_bytes, info.block_bytes, NULL) < 0 ||
	    finish(q) < 0) {
		fprintf(stderr, "a request failed\n");
		goto out;
	}
	ret = memcmp(buf, buf + info.block_bytes, info.block_bytes) != 0;
	ringside_queue_stats(q, &stats);
	printf("%s; %llu requests, %llu kicks, %llu calls\n", ret ? "NOT what was written" : "ok",
	       (unsigned long long)stats.requests, (unsigned long long)stats.kicks_sent,
	       (unsigned long long)stats.calls_received);
out:
	ringside_close(dev);
	return ret;
}
