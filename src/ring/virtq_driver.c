/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See virtq_driver.h.  The mirror image of virtq.c: each release, acquire and fence here is the
 * partner of the one there with the same tag.
 */
#include "ring/virtq_driver.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/checked.h"
#include "ring/event_idx.h"
#include "ring/fence.h"
#include "spec/virtio.h"

/* What we know about descriptor i.  cookie, ndesc and in_flight: of the request that it heads. */
struct virtq_driver_slot {
	void *cookie;
	uint16_t next; /* of the free list, or of the chain that is in flight */
	uint16_t ndesc;
	uint16_t table_count; /* the descriptor refers to its table of so many already; 0: it does
				 not */
	bool in_flight;
};

#define CACHE_LINE 64

static size_t table_bytes(uint16_t table_len)
{
	if (!table_len)
		return 0;
	return align_up(VIRTQ_DRIVER_HEADER_BYTES + table_len * sizeof(struct vring_desc),
			CACHE_LINE);
}

void virtq_driver_layout(uint16_t size, uint16_t table_len, struct virtq_driver_layout *out)
{
	size_t at = 0, n = size;

	out->desc_offset = at;
	at += n * sizeof(struct vring_desc);
	out->avail_offset = at = align_up(at, CACHE_LINE);
	at += sizeof(struct vring_avail) + n * sizeof(uint16_t) + sizeof(uint16_t);
	out->used_offset = at = align_up(at, CACHE_LINE);
	at += sizeof(struct vring_used) + n * sizeof(struct vring_used_elem) + sizeof(uint16_t);
	out->status_offset = at;
	at += n;
	out->tables_offset = at = align_up(at, CACHE_LINE);
	at += n * table_bytes(table_len);
	out->len_bytes = align_up(at, CACHE_LINE);
}

static void map_parts(struct virtq_driver *vd, const struct virtq_driver_config *config)
{
	struct virtq_driver_layout at;
	char *base = config->memory;

	virtq_driver_layout(config->size, config->table_len, &at);
	memset(base, 0, at.len_bytes);
	vd->desc = (struct vring_desc *)(base + at.desc_offset);
	vd->avail = (struct vring_avail *)(base + at.avail_offset);
	vd->used = (struct vring_used *)(base + at.used_offset);
	vd->used_event = &vd->avail->ring[config->size];
	vd->avail_event = (uint16_t *)&vd->used->ring[config->size];
	vd->tables = base + at.tables_offset;
	vd->tables_iova = config->memory_iova + at.tables_offset;
	vd->table_bytes = table_bytes(config->table_len);
}

int virtq_driver_init(struct virtq_driver *vd, const struct virtq_driver_config *config,
		      struct error *err)
{
	uint16_t start = config->start_idx;

	if (!is_power_of_2(config->size) || config->size > VIRTQ_MAX_SIZE)
		return error_set(err, -EINVAL, "queue size %u is not a power of two up to %u",
				 config->size, VIRTQ_MAX_SIZE);
	if ((uintptr_t)config->memory % CACHE_LINE || config->memory_iova % VIRTQ_DESC_ALIGN)
		return error_set(err, -EINVAL, "ring memory is misaligned");
	memset(vd, 0, sizeof(*vd));
	vd->slots = calloc(config->size, sizeof(*vd->slots));
	if (!vd->slots)
		return error_set(err, -ENOMEM, "out of memory for a ring of %u", config->size);
	map_parts(vd, config);
	vd->size = config->size;
	vd->mask = (uint16_t)(config->size - 1);
	vd->table_len = config->table_len;
	vd->event_idx = config->event_idx;
	vd->kick.fd = config->kick_fd;
	for (uint16_t i = 0; i < vd->size; i++)
		vd->slots[i].next = (uint16_t)(i + 1);
	vd->nfree = vd->size;
	vd->avail_idx = vd->published_avail_idx = vd->told_avail_idx = start;
	vd->last_used_idx = vd->seen_used_idx = start;
	/* relaxed, all four: nobody looks at the ring before a message says that it is there */
	atomic_store_relaxed(&vd->avail->idx, htole16(start));
	atomic_store_relaxed(&vd->used->idx, htole16(start));
	atomic_store_relaxed(vd->avail_event, htole16(start));
	atomic_store_relaxed(vd->used_event, htole16(start));
	return 0;
}

void virtq_driver_fini(struct virtq_driver *vd)
{
	free(vd->slots);
	vd->slots = NULL;
}

static void fill(struct vring_desc *d, const struct virtq_buf *buf, bool write, bool more,
		 uint16_t next)
{
	d->addr = htole64(buf->iova);
	d->len = htole32(buf->len_bytes);
	d->flags = htole16(
		(uint16_t)((write ? VRING_DESC_F_WRITE : 0) | (more ? VRING_DESC_F_NEXT : 0)));
	d->next = htole16(next);
}

/* Takes the first n descriptors of the free list, linked as they are. */
static uint16_t take_slots(struct virtq_driver *vd, uint16_t n, void *cookie)
{
	uint16_t head = vd->free_slot, last = head;

	for (uint16_t i = 1; i < n; i++)
		last = vd->slots[last].next;
	vd->free_slot = vd->slots[last].next;
	vd->nfree = (uint16_t)(vd->nfree - n);
	vd->slots[head].cookie = cookie;
	vd->slots[head].ndesc = n;
	vd->slots[head].in_flight = true;
	return head;
}

static void release_slots(struct virtq_driver *vd, uint16_t head)
{
	struct virtq_driver_slot *s = &vd->slots[head];
	uint16_t last = head;

	for (uint16_t i = 1; i < s->ndesc; i++)
		last = vd->slots[last].next;
	vd->slots[last].next = vd->free_slot;
	vd->free_slot = head;
	vd->nfree = (uint16_t)(vd->nfree + s->ndesc);
	s->in_flight = false;
}

/* 2.7.5.3: one descriptor that points to a table of the others. */
static void fill_indirect(struct virtq_driver *vd, uint16_t head, const struct virtq_buf *bufs,
			  unsigned out_num, unsigned n)
{
	size_t at = head * vd->table_bytes + VIRTQ_DRIVER_HEADER_BYTES;
	struct vring_desc *table = (struct vring_desc *)(vd->tables + at), *ref = &vd->desc[head];

	for (unsigned i = 0; i < n; i++)
		fill(&table[i], &bufs[i], i >= out_num, i + 1 < n, (uint16_t)(i + 1));
	/* Mostly as it was: then the device has it in its cache, and keeps it. */
	if (vd->slots[head].table_count == n)
		return;
	vd->slots[head].table_count = (uint16_t)n;
	ref->addr = htole64(vd->tables_iova + at);
	ref->len = htole32((uint32_t)(n * sizeof(*table)));
	ref->flags = htole16(VRING_DESC_F_INDIRECT);
	ref->next = 0;
}

void *virtq_driver_header(const struct virtq_driver *vd)
{
	return vd->table_len && vd->nfree ? vd->tables + vd->free_slot * vd->table_bytes : NULL;
}

int virtq_driver_put(struct virtq_driver *vd, const struct virtq_buf *bufs, unsigned out_num,
		     unsigned in_num, void *cookie)
{
	unsigned n = out_num + in_num;
	bool indirect = n > 1 && n <= vd->table_len;
	unsigned need = indirect ? 1 : n;
	uint16_t head;

	if (unlikely(vd->broken))
		return -EPROTO;
	if (unlikely(!n))
		return -EINVAL;
	if (unlikely(need > vd->size))
		return -E2BIG;
	if (need > vd->nfree)
		return -ENOSPC;
	head = take_slots(vd, (uint16_t)need, cookie);
	if (indirect) {
		fill_indirect(vd, head, bufs, out_num, n);
	} else {
		uint16_t at = head;

		for (unsigned i = 0; i < n; i++) {
			uint16_t next = vd->slots[at].next;

			vd->slots[at].table_count = 0;
			fill(&vd->desc[at], &bufs[i], i >= out_num, i + 1 < n,
			     i + 1 < n ? next : 0);
			at = next;
		}
	}
	/* relaxed: published by the release of the index [VQ1] */
	atomic_store_relaxed(&vd->avail->ring[vd->avail_idx & vd->mask], htole16(head));
	vd->avail_idx++;
	vd->in_flight++;
	vd->stats.requests++;
	return 0;
}

void virtq_driver_publish(struct virtq_driver *vd)
{
	if (vd->avail_idx == vd->published_avail_idx)
		return; /* the device's cache line stays where it is */
	/* [VQ1] pairs with the device's acquire: data, descriptors and entries before the index */
	atomic_store_release(&vd->avail->idx, htole16(vd->avail_idx));
	vd->published_avail_idx = vd->avail_idx;
}

bool virtq_driver_tell(struct virtq_driver *vd)
{
	uint16_t old_idx = vd->told_avail_idx, new_idx = vd->published_avail_idx;
	bool wanted;

	if (new_idx == old_idx)
		return false;
	vd->told_avail_idx = new_idx;
	/* [VQ3] pairs with the device's fence between arming and its last look at the avail index
	 */
	ring_fence(FENCE_DRIVER_KICK);
	if (vd->event_idx) /* relaxed: after the fence */
		wanted = need_event(le16toh(atomic_load_relaxed(vd->avail_event)), new_idx,
				    old_idx);
	else
		wanted = !(le16toh(atomic_load_relaxed(&vd->used->flags)) & VRING_USED_F_NO_NOTIFY);
	if (!wanted || !notifier_exists(&vd->kick)) {
		vd->stats.kicks_suppressed++;
		return false;
	}
	notifier_signal(&vd->kick);
	vd->stats.kicks_sent++;
	return true;
}

static uint16_t load_used_idx(const struct virtq_driver *vd)
{
	/* [VQ2] pairs with the device's release of idx: elements, status and data come with it */
	return le16toh(atomic_load_acquire(&vd->used->idx));
}

static noinline_cold int break_ring(struct virtq_driver *vd)
{
	vd->broken = true;
	return -EPROTO;
}

int virtq_driver_take(struct virtq_driver *vd, void **cookie, uint32_t *written_bytes)
{
	const struct vring_used_elem *elem;
	uint32_t head;

	if (unlikely(vd->broken))
		return -EPROTO;
	if (vd->last_used_idx == vd->seen_used_idx) {
		vd->seen_used_idx = load_used_idx(vd);
		if (vd->last_used_idx == vd->seen_used_idx)
			return 0;
		if (unlikely((uint16_t)(vd->seen_used_idx - vd->last_used_idx) > vd->in_flight))
			return break_ring(vd);
	}
	elem = &vd->used->ring[vd->last_used_idx & vd->mask];
	/* relaxed: the acquire of the index covers the element [VQ2] */
	head = le32toh(atomic_load_relaxed(&elem->id));
	if (unlikely(head >= vd->size || !vd->slots[head].in_flight))
		return break_ring(vd);
	*cookie = vd->slots[head].cookie;
	*written_bytes = le32toh(atomic_load_relaxed(&elem->len)); /* relaxed: as above */
	release_slots(vd, (uint16_t)head);
	vd->last_used_idx++;
	vd->in_flight--;
	vd->stats.completions++;
	return 1;
}

void virtq_driver_call_off(struct virtq_driver *vd)
{
	/* relaxed: a hint; a call that slips through is only a wake-up for nothing */
	if (vd->event_idx)
		atomic_store_relaxed(vd->used_event, htole16((uint16_t)(vd->last_used_idx - 1)));
	else
		atomic_store_relaxed(&vd->avail->flags, htole16(VRING_AVAIL_F_NO_INTERRUPT));
}

bool virtq_driver_call_on(struct virtq_driver *vd, uint16_t after)
{
	uint16_t most = MAX(vd->in_flight, (uint16_t)1);

	after = vd->event_idx ? MIN(MAX(after, (uint16_t)1), most) : 1;
	/* relaxed: the fence orders it */
	if (vd->event_idx)
		atomic_store_relaxed(vd->used_event,
				     htole16((uint16_t)(vd->last_used_idx + after - 1)));
	else
		atomic_store_relaxed(&vd->avail->flags, htole16(0));
	/* [VQ4] pairs with the device's fence between its used index and its look at the event */
	ring_fence(FENCE_DRIVER_ARM);
	return (uint16_t)(load_used_idx(vd) - vd->last_used_idx) >= after;
}
