/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From descriptors to host memory (VIRTIO 1.2, 2.7.5).  A chain that breaks a rule is marked bad
 * and walked no further than is safe; the parts found so far are kept, because among them may be
 * the status byte with which the device can answer.
 */
#include "ring/virtq_chain.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "spec/virtio.h"

struct walk {
	struct virtq *vq;
	struct virtq_chain *chain;
	const struct guest_memory *mem;
	unsigned steps; /* descriptors seen, against loops */
};

struct desc {
	uint64_t gpa;
	uint32_t len;
	uint16_t flags;
	uint16_t next;
};

/* One copy; the barrier keeps the compiler from reading shared memory a second time. */
static struct desc fetch(const void *from)
{
	struct vring_desc raw;

	memcpy(&raw, from, sizeof(raw));
	__asm__ volatile("" : "+m"(raw) : : "memory");
	return (struct desc){le64toh(raw.addr), le32toh(raw.len), le16toh(raw.flags),
			     le16toh(raw.next)};
}

/* A larger array may do; if there is no larger one, the chain is bad. */
static int no_room(struct walk *w, bool write)
{
	if (w->chain->max < VIRTQ_PARTS_MAX(w->vq->size))
		return -ENOBUFS;
	w->chain->bad = true;
	if (write)
		w->chain->last_in_bad = true;
	return 0;
}

/* Adds one buffer to the chain.  0 or -ENOBUFS. */
static int add_buffer(struct walk *w, const struct desc *d)
{
	struct virtq_chain *c = w->chain;
	unsigned used = c->out_num + c->in_num;
	bool write = d->flags & VRING_DESC_F_WRITE;
	struct iovec *iov = &c->iov[used];
	void *host;
	int parts;

	/* 2.7.4.2: device-readable before device-writable. */
	if (unlikely(!write && c->in_num)) {
		c->bad = true;
		return 0;
	}
	if (unlikely(!d->len))
		return 0;
	host = guest_memory_host(w->mem, d->gpa, d->len, write ? GUEST_WRITE : GUEST_READ);
	if (likely(host)) {
		if (unlikely(used == c->max))
			return no_room(w, write);
		iov->iov_base = host;
		iov->iov_len = d->len;
		parts = 1;
	} else {
		parts = guest_memory_translate(w->mem, d->gpa, d->len,
					       write ? GUEST_WRITE : GUEST_READ, iov,
					       c->max - used);
		if (parts == -ENOBUFS)
			return no_room(w, write);
		if (parts < 0) {
			c->bad = true;
			if (write)
				c->last_in_bad = true;
			return 0;
		}
	}
	if (write) {
		c->in_num += (unsigned)parts;
		c->last_in_bad = false;
	} else {
		c->out_num += (unsigned)parts;
	}
	return 0;
}

/* Descriptor i of an indirect table that straddles regions. */
static noinline_cold bool fetch_straddling(struct walk *w, uint64_t table, uint16_t i,
					   struct desc *out)
{
	char copy[sizeof(struct vring_desc)];
	struct iovec part[2];
	const void *host;
	uint64_t gpa;
	int n;

	if (!checked_add(table, (uint64_t)i * sizeof(struct vring_desc), &gpa))
		return false;
	host = guest_memory_host(w->mem, gpa, sizeof(copy), GUEST_READ);
	if (likely(host)) {
		*out = fetch(host);
		return true;
	}
	n = guest_memory_translate(w->mem, gpa, sizeof(copy), GUEST_READ, part, 2);
	if (n != 2)
		return false;
	memcpy(copy, part[0].iov_base, part[0].iov_len);
	memcpy(copy + part[0].iov_len, part[1].iov_base, part[1].iov_len);
	*out = fetch(copy);
	return true;
}

/* All of it, not only the descriptors that the chain goes through; in several regions. */
static noinline_cold bool table_is_mapped(struct walk *w, const struct desc *ref)
{
	struct iovec parts[4];

	return guest_memory_translate(w->mem, ref->gpa, ref->len, GUEST_READ, parts,
				      ARRAY_SIZE(parts)) != -EFAULT;
}

/* host: the table, if it is in one piece. */
static bool fetch_indirect(struct walk *w, const struct desc *ref, const char *host, uint16_t i,
			   struct desc *out)
{
	if (unlikely(!host))
		return fetch_straddling(w, ref->gpa, i, out);
	*out = fetch(host + (size_t)i * sizeof(struct vring_desc));
	return true;
}

/* 2.7.5.3: a table of descriptors elsewhere; the last of the chain.  0 or -ENOBUFS. */
static int walk_indirect(struct walk *w, const struct desc *ref)
{
	uint32_t count = ref->len / sizeof(struct vring_desc);
	const char *host = guest_memory_host(w->mem, ref->gpa, ref->len, GUEST_READ);
	struct desc d;
	uint16_t i = 0;
	int ret;

	if (!w->vq->indirect || !count || ref->len % sizeof(struct vring_desc) ||
	    (ref->flags & VRING_DESC_F_NEXT) || (unlikely(!host) && !table_is_mapped(w, ref)))
		goto bad;
	for (;;) {
		if (i >= count || ++w->steps > VIRTQ_CHAIN_MAX(w->vq->size) ||
		    !fetch_indirect(w, ref, host, i, &d) || (d.flags & VRING_DESC_F_INDIRECT))
			goto bad;
		ret = add_buffer(w, &d);
		if (ret < 0)
			return ret;
		if (!(d.flags & VRING_DESC_F_NEXT))
			return 0;
		i = d.next;
	}
bad:
	w->chain->bad = true;
	return 0;
}

int virtq_chain_walk(struct virtq *vq, uint16_t head, struct virtq_chain *chain)
{
	struct walk w = {.vq = vq, .chain = chain, .mem = vq->mem->mem};
	uint16_t i = head;
	int ret;

	chain->out_num = chain->in_num = 0;
	chain->bad = chain->last_in_bad = false;
	for (;;) {
		struct desc d;

		/* A chain longer than the table visits a descriptor twice: a loop. */
		if (unlikely(i >= vq->size || ++w.steps > vq->size)) {
			chain->bad = true;
			return 0;
		}
		d = fetch(&vq->desc[i]);
		if (d.flags & VRING_DESC_F_INDIRECT) {
			w.steps--; /* the reference itself carries no data */
			return walk_indirect(&w, &d);
		}
		ret = add_buffer(&w, &d);
		if (unlikely(ret < 0))
			return ret;
		if (!(d.flags & VRING_DESC_F_NEXT))
			return 0;
		i = d.next;
	}
}
