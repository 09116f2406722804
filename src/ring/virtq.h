/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device half of a split virtqueue (VIRTIO 1.2, 2.7).
 *
 * Nothing outside virtq.c sees a descriptor index, avail or used: a popped chain carries an opaque
 * token that its completion gives back.  Completions gather until virtq_flush() (called at the end
 * of the defer section), which publishes one used index and tells the driver at most once.
 *
 * A virtq belongs to the iothread that runs it, from virtq_start() until it is drained.
 */
#ifndef RING_VIRTQ_H
#define RING_VIRTQ_H

#include <linux/virtio_ring.h>

#include "base/defer.h"
#include "base/error.h"
#include "mem/guest_memory.h"
#include "ring/notifier.h"
#include "ring/queue.h"

/*
 * A memory table as one queue holds it: requests in flight count on the one they were translated
 * through.  Made by the control thread, handed to the queue, and given back (released, on the
 * iothread) when the queue has another and the last request through this one has ended.
 */
struct virtq_mem {
	struct guest_memory *mem;
	uint32_t in_flight;
	bool retired;
	void (*released)(struct virtq_mem *vm);
	void *owner;
};

struct virtq_token {
	struct virtq_mem *vm;
	uint64_t start_ns;
	uint16_t head;
};

/* The longest chain that is taken, data parts and all: more than any known driver sends, even those
 * that ignore seg_max (VIRTIO 1.2, 2.7.5.3.1 bounds it by the queue size, which may be larger). */
#define VIRTQ_CHAIN_MAX(size) ((size) > 1024u + 2u ? (size) : 1024u + 2u)
/* Room for the parts of any chain: buffers may straddle memory regions, and that often.  A chain
 * that needs more is bad, so that no chain can wait in the ring for room that never comes. */
#define VIRTQ_PARTS_MAX(size) (VIRTQ_CHAIN_MAX(size) + 64u)

/* One request as the driver described it, in host memory. */
struct virtq_chain {
	/* The caller's: room for the parts. */
	struct iovec *iov;
	unsigned max;
	/* virtq_pop() fills in the rest. */
	unsigned out_num; /* iov[0..out_num): the device reads */
	unsigned in_num;  /* iov[out_num..out_num+in_num): the device writes */
	bool bad;         /* not a legal chain; what could be read of it is there */
	bool last_in_bad; /* the last device-writable buffer is not mapped */
	struct virtq_token token;
};

#define VIRTQ_HEADS 16

struct virtq_config {
	uint16_t size; /* 1..32768, a power of two */
	uint16_t last_avail_idx;
	bool event_idx;
	bool indirect;
	uint64_t desc_user, avail_user, used_user; /* the client's addresses */
	struct virtq_mem *mem;
	int call_fd, err_fd; /* the caller's; -1 for none */
};

struct virtq {
	struct queue queue;

	/* Ring memory: shared with the driver, touched in virtq.c only. */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t *used_event;  /* after the avail ring: when the driver wants to be called */
	uint16_t *avail_event; /* after the used ring: when we want to be kicked */

	uint16_t size;
	uint16_t mask;
	uint16_t last_avail_idx; /* next entry to take; runs freely */
	uint16_t seen_avail_idx; /* the driver's index when last looked at */
	/* Entries of the avail ring from heads_idx on, copied at once: the driver goes on writing
	 * into the same cache line. */
	uint16_t heads_idx;
	uint16_t heads_count;
	uint16_t heads[VIRTQ_HEADS];
	uint16_t used_idx;           /* next entry to write; runs freely */
	uint16_t published_used_idx; /* what the driver can see */
	uint16_t flushed_used_idx;   /* published when we last thought about a call */
	uint16_t signalled_used_idx;
	bool signalled_valid; /* false after a start: then one call is owed whatever used_event says
			       */
	bool event_idx;
	bool indirect;
	uint32_t in_flight;
	uint32_t call_owed; /* flushes since the driver was called, or was seen not to want it */
	uint64_t batch_start_ns; /* taken once a turn, for the latency of the requests in it */
	uint64_t batch_end_ns;   /* 0 until it is needed in a flush */
	uint64_t run_start_ns;   /* of completions whose latency is still to be noted */
	uint32_t run_count;

	struct virtq_mem *mem;
	struct notifier call, err;
	struct defer flush;
	uint64_t desc_user, avail_user, used_user;

	const char *broken_why;
	/* Handed in by the owner; on the iothread. */
	void (*broken)(struct virtq *vq);  /* once, when the ring is found unusable */
	void (*drained)(struct virtq *vq); /* stopping, and nothing is in flight any more */
};

/* Once, before the first start.  Callbacks and queue.device are set by the owners afterwards. */
void virtq_init(struct virtq *vq);

/*
 * Starts the ring: addresses are translated and checked, the used index is read from the ring
 * itself, call state is cleared.  0, or -EINVAL with *err set (nothing changed).  The caller then
 * looks at the queue once, as if it had been kicked.
 */
int virtq_start(struct virtq *vq, const struct virtq_config *config, struct error *err) must_check;

/* Takes no more.  drained is called (from here, or later) when nothing is in flight. */
void virtq_stop(struct virtq *vq);

/* The index that GET_VRING_BASE answers with; true once drained. */
uint16_t virtq_base(const struct virtq *vq);

/* A new memory table: the ring is translated again; the old table is released when its requests
 * have ended.  The ring breaks if it is not in the new table.  Running or stopping queues. */
void virtq_set_memory(struct virtq *vq, struct virtq_mem *vm);

/* Drops the table of a drained queue (calls released). */
void virtq_release_memory(struct virtq *vq);

/* A new call eventfd (or -1); the driver is told once, in case a call went to the old one. */
void virtq_set_call(struct virtq *vq, int call_fd);
void virtq_set_err(struct virtq *vq, int err_fd);

/*
 * Takes the next chain.  1: taken, *chain filled.  0: none.  -ENOBUFS: chain->max is too small and
 * the chain stays in the ring (VIRTQ_PARTS_MAX is enough).  -EPROTO: the ring is (now) broken.
 * A bad chain is taken, too: chain->bad; the device answers it with virtq_push().
 */
int virtq_pop(struct virtq *vq, struct virtq_chain *chain) must_check;

/*
 * Gives a chain back with the number of bytes written to its device-writable part.  Published by
 * the next virtq_flush(), which is noted in the current defer section.
 */
void virtq_push(struct virtq *vq, struct virtq_token *token, uint32_t written_bytes);

/* Publishes what was pushed: one used index, at most one call. */
void virtq_flush(struct virtq *vq);

#endif
