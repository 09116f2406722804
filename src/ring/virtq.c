/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See virtq.h.  The life of a ring and its two indexes; chains are walked in virtq_chain.c.
 * Everything the driver can write is read once into a local, and the local is what is checked.
 */
#include "ring/virtq.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "base/checked.h"
#include "base/clock.h"
#include "ring/event_idx.h"
#include "ring/fence.h"
#include "ring/virtq_chain.h"
#include "spec/virtio.h"

/* The ring itself cannot be used any more.  Sticky until it is stopped. */
static noinline_cold void break_ring(struct virtq *vq, const char *why)
{
	if (vq->queue.state != QUEUE_RUNNING)
		return; /* a ring that is being stopped goes on stopping */
	vq->broken_why = why;
	/* relaxed: the control thread may look at it for GET_STATUS; nothing else comes with it */
	atomic_store_relaxed(&vq->queue.state, QUEUE_BROKEN);
	atomic_stat_add(&vq->queue.stats.errors, 1);
	notifier_signal(&vq->err);
	if (vq->broken)
		vq->broken(vq);
}

static uint16_t load_avail_idx(const struct virtq *vq)
{
	/* [VQ1] pairs with the driver's release of idx: entries and descriptors come with it */
	return le16toh(atomic_load_acquire(&vq->avail->idx));
}

static bool virtq_pending(struct queue *q)
{
	struct virtq *vq = container_of(q, struct virtq, queue);

	return load_avail_idx(vq) != vq->last_avail_idx;
}

/* With EVENT_IDX a driver that sleeps says up to where it has looked.  One that polls says nothing
 * for long, and then the difference is more than a ring can hold. */
static unsigned virtq_outstanding(struct queue *q)
{
	struct virtq *vq = container_of(q, struct virtq, queue);
	uint16_t n;

	if (!vq->event_idx || q->state != QUEUE_RUNNING)
		return 0;
	/* relaxed: an estimate */
	n = (uint16_t)(vq->last_avail_idx - le16toh(atomic_load_relaxed(vq->used_event)));
	return n <= vq->size ? n : 0;
}

static unsigned virtq_backlog(struct queue *q)
{
	struct virtq *vq = container_of(q, struct virtq, queue);

	/* A ring that broke because its memory went is not there any more. */
	if (q->state != QUEUE_RUNNING)
		return 0;
	return (uint16_t)(load_avail_idx(vq) - vq->last_avail_idx);
}

static void virtq_notify_off(struct queue *q)
{
	struct virtq *vq = container_of(q, struct virtq, queue);

	/* relaxed: a hint; a kick that slips through is only a wake-up for nothing */
	if (vq->event_idx)
		atomic_store_relaxed(vq->avail_event, htole16((uint16_t)(vq->last_avail_idx - 1)));
	else
		atomic_store_relaxed(&vq->used->flags, htole16(VRING_USED_F_NO_NOTIFY));
}

static bool virtq_notify_on(struct queue *q)
{
	struct virtq *vq = container_of(q, struct virtq, queue);

	/* relaxed: the fence orders it */
	if (vq->event_idx)
		atomic_store_relaxed(vq->avail_event, htole16(vq->last_avail_idx));
	else
		atomic_store_relaxed(&vq->used->flags, htole16(0));
	/* [VQ3] pairs with the driver's fence between its avail index and its look at the event */
	ring_fence(FENCE_DEVICE_ARM);
	return virtq_pending(q);
}

static void virtq_flush_queue(struct queue *q)
{
	virtq_flush(container_of(q, struct virtq, queue));
}

static const struct queue_ring_ops virtq_ring_ops = {
	.notify_off = virtq_notify_off,
	.notify_on = virtq_notify_on,
	.pending = virtq_pending,
	.outstanding = virtq_outstanding,
	.backlog = virtq_backlog,
	.flush = virtq_flush_queue,
};

static void flush_deferred(struct defer *d)
{
	virtq_flush(container_of(d, struct virtq, flush));
}

void virtq_init(struct virtq *vq)
{
	memset(vq, 0, sizeof(*vq));
	vq->queue.ring = &virtq_ring_ops;
	vq->queue.state = QUEUE_STOPPED;
	vq->call.fd = vq->err.fd = -1;
	defer_init(&vq->flush, flush_deferred);
}

/* Pointers to the three parts in this memory table, or the name of the part that is not there. */
static const char *map_ring(struct virtq *vq, const struct guest_memory *mem)
{
	uint64_t size = vq->size;
	/* Each ring has flags and idx before it and an event word behind it, EVENT_IDX or not. */
	void *desc = guest_memory_from_user(mem, vq->desc_user, size * sizeof(struct vring_desc));
	void *avail = guest_memory_from_user(mem, vq->avail_user, 4 + size * 2 + 2);
	void *used = guest_memory_from_user(mem, vq->used_user,
					    4 + size * sizeof(struct vring_used_elem) + 2);

	if (!desc || (uintptr_t)desc % VIRTQ_DESC_ALIGN)
		return "descriptor table";
	if (!avail || (uintptr_t)avail % VIRTQ_AVAIL_ALIGN)
		return "avail ring";
	if (!used || (uintptr_t)used % VIRTQ_USED_ALIGN)
		return "used ring";
	vq->desc = desc;
	vq->avail = avail;
	vq->used = used;
	vq->used_event = &vq->avail->ring[vq->size];
	vq->avail_event = (uint16_t *)&vq->used->ring[vq->size];
	return NULL;
}

int virtq_start(struct virtq *vq, const struct virtq_config *config, struct error *err)
{
	const char *part;

	ASSERT(vq->queue.state == QUEUE_STOPPED && !vq->in_flight);
	if (!is_power_of_2(config->size) || config->size > VIRTQ_MAX_SIZE)
		return error_set(err, -EINVAL, "queue size %u is not a power of two up to %u",
				 config->size, VIRTQ_MAX_SIZE);
	vq->size = config->size;
	vq->mask = (uint16_t)(config->size - 1);
	vq->desc_user = config->desc_user;
	vq->avail_user = config->avail_user;
	vq->used_user = config->used_user;
	part = map_ring(vq, config->mem->mem);
	if (part)
		return error_set(err, -EINVAL, "the %s is not in guest memory or misaligned", part);
	vq->event_idx = config->event_idx;
	vq->indirect = config->indirect;
	vq->mem = config->mem;
	vq->call.fd = config->call_fd;
	vq->err.fd = config->err_fd;
	vq->last_avail_idx = vq->seen_avail_idx = config->last_avail_idx;
	vq->heads_count = 0;
	/* Not where we left off: another driver may have made this ring anew.  relaxed: the start
	 * message comes after the driver's set-up. */
	vq->used_idx = le16toh(atomic_load_relaxed(&vq->used->idx));
	vq->published_used_idx = vq->flushed_used_idx = vq->used_idx;
	vq->call_owed = 0;
	vq->signalled_valid = false;
	vq->broken_why = NULL;
	vq->batch_end_ns = 0;
	vq->queue.starved = false;
	/* 2.7.10.1: 0 with EVENT_IDX; without it the first look sets what it needs.  relaxed: as
	 * the used index. */
	atomic_store_relaxed(&vq->used->flags, htole16(0));
	vq->queue.state = QUEUE_RUNNING;
	/* Whoever ran this ring before us may have published an index and died before the call. */
	notifier_signal(&vq->call);
	return 0;
}

static void check_drained(struct virtq *vq)
{
	if (vq->queue.state == QUEUE_STOPPING && !vq->in_flight) {
		vq->queue.state = QUEUE_STOPPED;
		defer_cancel(&vq->flush);
		if (vq->drained)
			vq->drained(vq);
	}
}

void virtq_stop(struct virtq *vq)
{
	ASSERT(vq->queue.state != QUEUE_STOPPED);
	vq->queue.state = QUEUE_STOPPING;
	vq->queue.starved = false;
	/* What was pushed but not yet published goes out before anybody is told that it ended. */
	virtq_flush(vq);
}

uint16_t virtq_base(const struct virtq *vq)
{
	return vq->last_avail_idx;
}

static void mem_put(struct virtq_mem *vm)
{
	if (vm->retired && !vm->in_flight)
		vm->released(vm);
}

void virtq_set_memory(struct virtq *vq, struct virtq_mem *vm)
{
	struct virtq_mem *old = vq->mem;
	const char *part;

	vq->mem = vm;
	part = map_ring(vq, vm->mem);
	if (part) {
		/* The old pointers stay valid only as long as the old table: nothing may use them,
		 * so completions of a broken ring are dropped (virtq_push). */
		vq->desc = NULL;
		break_ring(vq, "its ring is not in the new memory table");
	}
	old->retired = true;
	mem_put(old);
}

void virtq_release_memory(struct virtq *vq)
{
	struct virtq_mem *vm = vq->mem;

	ASSERT(vq->queue.state == QUEUE_STOPPED);
	vq->mem = NULL;
	vq->desc = NULL;
	if (vm) {
		vm->retired = true;
		mem_put(vm);
	}
}

void virtq_set_call(struct virtq *vq, int call_fd)
{
	vq->call.fd = call_fd;
	/* Nobody was told while there was no descriptor: what was signalled is not known. */
	vq->signalled_valid = false;
	notifier_signal(&vq->call);
}

void virtq_set_err(struct virtq *vq, int err_fd)
{
	vq->err.fd = err_fd;
	if (vq->queue.state == QUEUE_BROKEN)
		notifier_signal(&vq->err);
}

/* Looks at the driver's index if all that was seen is taken.  1, 0 or -EPROTO. */
static int next_available(struct virtq *vq)
{
	uint16_t idx;

	if (unlikely(vq->queue.state != QUEUE_RUNNING))
		return vq->queue.state == QUEUE_BROKEN ? -EPROTO : 0;
	if (vq->last_avail_idx != vq->seen_avail_idx)
		return 1;
	idx = load_avail_idx(vq);
	if (idx == vq->last_avail_idx)
		return 0;
	/* A full ring is legal: 1..size.  More is a driver that lost count. */
	if (unlikely((uint16_t)(idx - vq->last_avail_idx) > vq->size)) {
		break_ring(vq, "the avail index is ahead by more than the queue size");
		return -EPROTO;
	}
	vq->seen_avail_idx = idx;
	vq->batch_start_ns = 0;
	return 1;
}

/* Tables of descriptors that will be wanted soon.  A hint: what the ring says is checked when it is
 * taken. */
static void prefetch_tables(const struct virtq *vq)
{
	for (unsigned i = 0; i < vq->heads_count; i++) {
		const struct vring_desc *d = &vq->desc[vq->heads[i] & vq->mask];
		/* relaxed: as when it is taken */
		uint64_t gpa = le64toh(atomic_load_relaxed(&d->addr));
		void *host = guest_memory_host(vq->mem->mem, gpa, 1, GUEST_READ);

		if (host)
			__builtin_prefetch(host);
	}
}

static void copy_heads(struct virtq *vq)
{
	uint16_t n = (uint16_t)(vq->seen_avail_idx - vq->last_avail_idx);

	vq->heads_idx = vq->last_avail_idx;
	vq->heads_count = MIN(n, (uint16_t)VIRTQ_HEADS);
	/* relaxed: the acquire of the index covers the entries [VQ1] */
	for (unsigned i = 0; i < vq->heads_count; i++)
		vq->heads[i] = le16toh(
			atomic_load_relaxed(&vq->avail->ring[(vq->heads_idx + i) & vq->mask]));
	prefetch_tables(vq);
	/* Reading the clock takes about as long as fetching the first of them. */
	if (!vq->batch_start_ns)
		vq->batch_start_ns = clock_now_ns();
}

int virtq_pop(struct virtq *vq, struct virtq_chain *chain)
{
	uint16_t head;
	int ret = next_available(vq);

	if (ret <= 0)
		return ret;
	if ((uint16_t)(vq->last_avail_idx - vq->heads_idx) >= vq->heads_count)
		copy_heads(vq);
	head = vq->heads[(uint16_t)(vq->last_avail_idx - vq->heads_idx)];
	if (unlikely(head >= vq->size)) {
		break_ring(vq, "the avail ring names a descriptor beyond the table");
		return -EPROTO;
	}
	ret = virtq_chain_walk(vq, head, chain);
	if (unlikely(ret < 0))
		return ret;
	vq->last_avail_idx++;
	vq->in_flight++;
	vq->mem->in_flight++;
	chain->token.vm = vq->mem;
	chain->token.head = head;
	chain->token.start_ns = vq->batch_start_ns;
	return 1;
}

static void publish(struct virtq *vq)
{
	/* [VQ2] pairs with the driver's acquire: elements, status and data before the index */
	atomic_store_release(&vq->used->idx, htole16(vq->used_idx));
	vq->published_used_idx = vq->used_idx;
}

/* So many completions of a long batch are shown to a driver that looks, while we go on with the
 * rest; whether to call one that sleeps is asked at the end.  About a cache line of elements. */
#define PUBLISH_EVERY 8u

/* Those that were taken together and end together, with one look at the clock a flush: after the
 * driver has been told, if it can be. */
static void note_latencies(struct virtq *vq)
{
	if (!vq->run_count)
		return;
	if (!vq->batch_end_ns)
		vq->batch_end_ns = clock_now_ns();
	histogram_add_n(&vq->queue.stats.latency, vq->batch_end_ns - vq->run_start_ns,
			vq->run_count);
	vq->run_count = 0;
}

void virtq_push(struct virtq *vq, struct virtq_token *token, uint32_t written_bytes)
{
	struct virtq_mem *vm = token->vm;

	if (likely(vq->desc)) {
		struct vring_used_elem *elem = &vq->used->ring[vq->used_idx & vq->mask];

		/* relaxed: published by the release of the index [VQ2] */
		atomic_store_relaxed(&elem->id, htole32(token->head));
		atomic_store_relaxed(&elem->len, htole32(written_bytes));
		vq->used_idx++;
		if ((uint16_t)(vq->used_idx - vq->published_used_idx) >= PUBLISH_EVERY)
			publish(vq);
	}
	if (token->start_ns != vq->run_start_ns)
		note_latencies(vq);
	vq->run_start_ns = token->start_ns;
	vq->run_count++;
	atomic_stat_add(&vq->queue.stats.requests, 1);
	vq->in_flight--;
	vm->in_flight--;
	if (unlikely(vm->retired))
		mem_put(vm);
	defer_call(&vq->flush);
}

/* Does the driver want to know that the used index went from old to new? */
static bool call_wanted(struct virtq *vq, uint16_t new_idx)
{
	uint16_t old_idx = vq->signalled_used_idx;
	bool valid = vq->signalled_valid;

	/* [VQ4] pairs with the driver's fence between arming and its last look at the used index */
	ring_fence(FENCE_DEVICE_CALL);
	if (!vq->event_idx) /* relaxed: after the fence */
		return !(le16toh(atomic_load_relaxed(&vq->avail->flags)) &
			 VRING_AVAIL_F_NO_INTERRUPT);
	vq->signalled_used_idx = new_idx;
	vq->signalled_valid = true;
	return !valid || need_event(le16toh(atomic_load_relaxed(vq->used_event)), new_idx, old_idx);
}

/* In a nap one call does for all that completes while the device has more to complete.  What the
 * driver must not wait for is published all the same: if it looks, it sees it. */
static bool call_can_wait(const struct virtq *vq)
{
	return vq->queue.napping && vq->in_flight && vq->queue.state == QUEUE_RUNNING &&
	       vq->signalled_valid && (uint16_t)(vq->used_idx - vq->signalled_used_idx) < vq->size;
}

static void call_if_wanted(struct virtq *vq)
{
	if (notifier_exists(&vq->call) && call_wanted(vq, vq->published_used_idx)) {
		notifier_signal(&vq->call);
		atomic_stat_add(&vq->queue.stats.calls_sent, 1);
		vq->call_owed--;
	}
	if (vq->call_owed)
		atomic_stat_add(&vq->queue.stats.calls_suppressed, vq->call_owed);
	vq->call_owed = 0;
}

void virtq_flush(struct virtq *vq)
{
	if (vq->desc && vq->used_idx != vq->flushed_used_idx) {
		if (vq->used_idx != vq->published_used_idx)
			publish(vq);
		vq->flushed_used_idx = vq->used_idx;
		atomic_stat_add(&vq->queue.stats.batches, 1);
		vq->call_owed++;
	}
	if (vq->call_owed && vq->desc && !call_can_wait(vq))
		call_if_wanted(vq);
	note_latencies(vq);
	vq->batch_end_ns = 0;
	if (unlikely(vq->queue.napping) && vq->queue.resume)
		vq->queue.resume(&vq->queue);
	if (unlikely(vq->queue.state == QUEUE_STOPPING))
		check_drained(vq);
}
