/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/fake_driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/compiler.h"

enum fake_op { FAKE_READ, FAKE_WRITE, FAKE_FLUSH, FAKE_DISCARD };

struct fake_request {
	enum fake_op op;
	uint64_t offset, len;
	void *buf;
	void *cookie;
};

struct ringside_queue {
	struct ringside_device *dev;
	struct fake_request *requests; /* in flight; as a stack */
	unsigned in_flight, put;
	struct ringside_stats stats;
};

struct ringside_device {
	struct ringside_info info;
	struct ringside_queue *queues;
	void *memory[8];
};

struct fake_driver fake_driver;

/* Queues of several threads share the disk and what was seen. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fake_driver_init(uint64_t capacity_bytes)
{
	memset(&fake_driver, 0, sizeof(fake_driver));
	fake_driver.capacity_bytes = capacity_bytes;
	fake_driver.data = calloc(1, capacity_bytes);
	fake_driver.max_transfer_bytes = 1 << 20;
	fake_driver.least_told = UINT32_MAX;
}

void fake_driver_fini(void)
{
	free(fake_driver.data);
}

int ringside_open(const char *target, const struct ringside_options *options,
		  struct ringside_device **out, struct ringside_error *err)
{
	struct ringside_device *dev = calloc(1, sizeof(*dev));

	if (fake_driver.opens < FAKE_DRIVER_OPENS)
		fake_driver.opened[fake_driver.opens] = target;
	fake_driver.opens++;
	if (fake_driver.on_open)
		fake_driver.on_open(fake_driver.opens);
	dev->info = (struct ringside_info){
		.capacity_bytes = fake_driver.capacity_bytes,
		.block_bytes = 512,
		.max_segments = 16,
		.max_transfer_bytes = fake_driver.max_transfer_bytes,
		.max_discard_bytes = 1 << 20,
		.read_only = fake_driver.read_only,
		.flush = !fake_driver.no_flush,
		.discard = !fake_driver.no_discard,
		.queues = options->queues,
		.depth = options->depth,
	};
	dev->queues = calloc(options->queues, sizeof(*dev->queues));
	for (unsigned i = 0; i < options->queues; i++) {
		dev->queues[i].dev = dev;
		dev->queues[i].requests = calloc(options->depth, sizeof(struct fake_request));
	}
	*out = dev;
	return 0;
}

void ringside_close(struct ringside_device *dev)
{
	if (!dev)
		return;
	fake_driver.closes++;
	for (unsigned i = 0; i < dev->info.queues; i++) {
		fake_driver.untold += dev->queues[i].put;
		free(dev->queues[i].requests);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(dev->memory); i++)
		free(dev->memory[i]);
	free(dev->queues);
	free(dev);
}

void ringside_info(const struct ringside_device *dev, struct ringside_info *info)
{
	*info = dev->info;
}

int ringside_memory_alloc(struct ringside_device *dev, size_t len_bytes, void **out,
			  struct ringside_error *err)
{
	for (unsigned i = 0; i < ARRAY_SIZE(dev->memory); i++) {
		if (dev->memory[i])
			continue;
		*out = dev->memory[i] = aligned_alloc(4096, (len_bytes + 4095) & ~(size_t)4095);
		return *out ? 0 : -ENOMEM;
	}
	return -ENOSPC;
}

int ringside_memory_free(struct ringside_device *dev, void *addr, struct ringside_error *err)
{
	for (unsigned i = 0; i < ARRAY_SIZE(dev->memory); i++) {
		if (dev->memory[i] != addr)
			continue;
		free(addr);
		dev->memory[i] = NULL;
		return 0;
	}
	return -ENOENT;
}

struct ringside_queue *ringside_queue(struct ringside_device *dev, unsigned index)
{
	return index < dev->info.queues ? &dev->queues[index] : NULL;
}

static void note_overlaps(struct ringside_queue *q, const struct fake_request *r)
{
	struct ringside_device *dev = q->dev;

	for (unsigned i = 0; i < dev->info.queues; i++) {
		for (unsigned k = 0; k < dev->queues[i].in_flight; k++) {
			const struct fake_request *b = &dev->queues[i].requests[k];

			fake_driver.overlaps += ranges_overlap(r->offset, r->len, b->offset,
							       b->len);
		}
	}
}

static bool gone(void)
{
	return fake_driver.gone_after && fake_driver.requests >= fake_driver.gone_after;
}

static int check(const struct ringside_queue *q, const struct fake_request *r)
{
	if (gone())
		return -ENOTCONN;
	if (q->in_flight == q->dev->info.depth)
		return -EAGAIN;
	if (!range_within(r->offset, r->len, fake_driver.capacity_bytes) || r->len % 512 ||
	    r->offset % 512)
		return -ERANGE;
	return r->op != FAKE_READ && fake_driver.read_only ? -EROFS : 0;
}

static int put(struct ringside_queue *q, struct fake_request r)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = check(q, &r);
	if (ret == 0) {
		note_overlaps(q, &r);
		q->requests[q->in_flight++] = r;
		fake_driver.most_in_flight = MAX(fake_driver.most_in_flight, q->in_flight);
		q->put++;
		q->stats.requests++;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

int ringside_read(struct ringside_queue *q, uint64_t offset_bytes, void *buf, size_t len_bytes,
		  void *cookie)
{
	return put(q, (struct fake_request){FAKE_READ, offset_bytes, len_bytes, buf, cookie});
}

int ringside_write(struct ringside_queue *q, uint64_t offset_bytes, const void *buf,
		   size_t len_bytes, void *cookie)
{
	return put(q, (struct fake_request){FAKE_WRITE, offset_bytes, len_bytes,
					    (void *)(uintptr_t)buf, cookie});
}

int ringside_flush(struct ringside_queue *q, void *cookie)
{
	return put(q, (struct fake_request){.op = FAKE_FLUSH, .cookie = cookie});
}

int ringside_discard(struct ringside_queue *q, uint64_t offset_bytes, uint64_t len_bytes,
		     void *cookie)
{
	return put(q, (struct fake_request){FAKE_DISCARD, offset_bytes, len_bytes, NULL, cookie});
}

void ringside_publish(struct ringside_queue *q)
{
}

bool ringside_tell(struct ringside_queue *q)
{
	pthread_mutex_lock(&lock);
	fake_driver.tells++;
	fake_driver.least_told = MIN(fake_driver.least_told, q->put);
	pthread_mutex_unlock(&lock);
	q->put = 0;
	q->stats.kicks_sent++;
	q->stats.system_calls++;
	return true;
}

void ringside_submit(struct ringside_queue *q)
{
	ringside_publish(q);
	ringside_tell(q);
}

unsigned ringside_in_flight(const struct ringside_queue *q)
{
	return q->in_flight;
}

static void do_write(const struct fake_request *r)
{
	uint64_t n = ++fake_driver.writes, offset = r->offset, len = r->len;

	if (n == fake_driver.forget_write)
		return;
	if (n == fake_driver.misplace_write)
		offset = (offset + len) % fake_driver.capacity_bytes;
	if (n == fake_driver.tear_write)
		len /= 2;
	memcpy(fake_driver.data + offset, r->buf, len);
}

static int serve(const struct fake_request *r)
{
	if (++fake_driver.requests == fake_driver.fail_request)
		return -EIO;
	switch (r->op) {
	case FAKE_READ:
		fake_driver.reads++;
		memcpy(r->buf, fake_driver.data + r->offset, r->len);
		break;
	case FAKE_WRITE:
		do_write(r);
		break;
	case FAKE_FLUSH:
		fake_driver.flushes++;
		break;
	case FAKE_DISCARD:
		fake_driver.discards++;
		memset(fake_driver.data + r->offset, 0, r->len);
		break;
	}
	return 0;
}

int ringside_poll(struct ringside_queue *q, struct ringside_completion *out, unsigned max)
{
	unsigned n = 0;

	pthread_mutex_lock(&lock);
	if (gone() && !q->in_flight)
		n = UINT32_MAX;
	while (n < max && q->in_flight) {
		struct fake_request r = q->requests[--q->in_flight];

		out[n].cookie = r.cookie;
		out[n++].result = gone() ? -ENOTCONN : serve(&r);
	}
	pthread_mutex_unlock(&lock);
	return n == UINT32_MAX ? -ENOTCONN : (int)n;
}

int ringside_wait(struct ringside_queue *q, struct ringside_completion *out, unsigned max,
		  unsigned min, int64_t timeout_ns)
{
	q->stats.sleeps++;
	return ringside_poll(q, out, MIN(MAX(min, 1u), max));
}

int ringside_hybrid(struct ringside_queue *q, struct ringside_completion *out, unsigned max,
		    unsigned min, int64_t timeout_ns)
{
	return ringside_wait(q, out, max, min, timeout_ns);
}

void ringside_queue_stats(const struct ringside_queue *q, struct ringside_stats *stats)
{
	*stats = q->stats;
}
