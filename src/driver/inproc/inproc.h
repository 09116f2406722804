/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file: transport: Ringside's own engines behind the block channel, on the caller's threads.
 *
 * There is no iothread.  Each queue has a loop that its thread drives by hand: looking for
 * completions is one pass, sleeping is arming it and waiting for its epoll descriptor.
 */
#ifndef DRIVER_INPROC_INPROC_H
#define DRIVER_INPROC_INPROC_H

#include <pthread.h>

#include "block/channel.h"
#include "driver/driver_internal.h"
#include "engine/engine_choice.h"
#include "engine/image.h"
#include "loop/loop.h"

struct inproc_slot {
	struct blk_request req;
	enum driver_op op;
	struct inproc_queue *queue;
	struct driver_slot *driver_slot;
	struct inproc_slot *next; /* of those to submit, or of those that have ended */
	int result;
	struct iovec *iov; /* max_segments */
};

struct inproc_list {
	struct inproc_slot *first, **last;
};

/* Apart from its neighbour, which is another thread's. */
struct inproc_queue {
	cacheline_aligned struct ringside_queue base;
	struct inproc_device *dev;
	struct loop *loop;
	/* Made by the thread that uses the queue, at its first request. */
	struct blk_channel *channel;
	struct inproc_slot *slots;
	struct iovec *iovs;
	struct inproc_list put, done;
	uint64_t batches_seen;
	bool started;
};

struct inproc_device {
	struct ringside_device base;
	struct ringside_options options;
	struct image image;
	enum engine_kind kind;
	struct disk *disk;
	char id[RINGSIDE_ID_BYTES + 1];
	struct inproc_queue *queue_memory;
	pthread_mutex_t lock;         /* memory: any thread may ask for some */
	struct inproc_memory *memory; /* lent */
};

/* inproc_queue.c */
int inproc_queue_start(struct inproc_queue *q, struct error *err) must_check;
/* False: requests do not end in time; their buffers and slots, and so the queue, must stay. */
bool inproc_queue_stop(struct inproc_queue *q) must_check;

/* inproc_memory.c */
bool inproc_memory_has_hugepages(void);
int inproc_memory_alloc(struct ringside_device *base, size_t len_bytes, void **out,
			struct error *err) must_check;
int inproc_memory_map(struct ringside_device *base, void *addr, size_t len_bytes, int fd,
		      uint64_t offset_bytes, struct error *err) must_check;
int inproc_memory_free(struct ringside_device *base, void *addr, struct error *err) must_check;
void inproc_memory_fini(struct inproc_device *dev);

#endif
