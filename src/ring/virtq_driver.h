/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver half of a split virtqueue (VIRTIO 1.2, 2.7).
 *
 * Submission has three steps, so that a batch costs one index store and at most one kick:
 * virtq_driver_put() writes a request into the ring, virtq_driver_publish() shows all that were
 * put to the device, virtq_driver_tell() kicks if the device sleeps.  Completions are polled by
 * virtq_driver_take(); to sleep, arm the call and look again with virtq_driver_call_on().
 *
 * The device is another program: what it writes is checked, and one that breaks the rules breaks
 * the ring (-EPROTO, sticky), not us.  What the driver needs to know about its own descriptors is
 * kept in private memory, never read back from the ring.
 *
 * One thread.  Allocates in virtq_driver_init() only.
 */
#ifndef RING_VIRTQ_DRIVER_H
#define RING_VIRTQ_DRIVER_H

#include <linux/virtio_ring.h>

#include "base/compiler.h"
#include "base/error.h"
#include "ring/notifier.h"

/* One buffer of a request, by the address that the device knows it by. */
struct virtq_buf {
	uint64_t iova;
	uint32_t len_bytes;
};

/* Where the parts of a ring are in one block of memory.  What the driver writes and what the
 * device writes share no cache line. */
struct virtq_driver_layout {
	size_t desc_offset;
	size_t avail_offset;
	size_t used_offset;
	size_t status_offset; /* a byte for each descriptor, the caller's, for the device to write:
			       * with a small ring, in the cache line of the used ring */
	size_t tables_offset; /* a table of indirect descriptors for each descriptor of the ring,
			       * with a header before it */
	size_t len_bytes;     /* of the whole block */
};

/* size: 1..32768, a power of two.  table_len: as in the config. */
void virtq_driver_layout(uint16_t size, uint16_t table_len, struct virtq_driver_layout *out);

struct virtq_driver_config {
	uint16_t size;      /* 1..32768, a power of two */
	uint16_t table_len; /* buffers that an indirect request can have; 0: no indirect
			     * descriptors (not negotiated, or not wanted) */
	uint16_t start_idx; /* both indexes begin here; the device is told the same */
	bool event_idx;
	void *memory;         /* virtq_driver_layout() bytes, aligned to 64; set up by init */
	uint64_t memory_iova; /* the device's address of it */
	int kick_fd;          /* the caller's eventfd; -1: the device polls */
};

struct virtq_driver_stats {
	uint64_t requests; /* put */
	uint64_t completions;
	uint64_t kicks_sent;
	uint64_t kicks_suppressed; /* the device was awake */
};

struct virtq_driver_slot; /* what we know about a descriptor; see virtq_driver.c */

struct virtq_driver {
	/* Ring memory: shared with the device. */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t *used_event;  /* when we want to be called */
	uint16_t *avail_event; /* when the device wants to be kicked */
	char *tables;
	uint64_t tables_iova;
	size_t table_bytes; /* from one to the next, header and all */

	uint16_t size;
	uint16_t mask;
	uint16_t table_len;
	uint16_t avail_idx;           /* next entry to fill; runs freely */
	uint16_t published_avail_idx; /* what the device can see */
	uint16_t told_avail_idx;      /* published when we last thought about a kick */
	uint16_t last_used_idx;       /* next completion to take; runs freely */
	uint16_t seen_used_idx;       /* the device's index when last looked at */
	uint16_t nfree;               /* descriptors */
	uint16_t free_slot;           /* first of the free ones */
	uint16_t in_flight;           /* requests put and not taken back */
	bool event_idx;
	bool broken; /* the device wrote nonsense; sticky until fini */
	struct notifier kick;
	struct virtq_driver_slot *slots; /* private: size of them */
	struct virtq_driver_stats stats;
};

/* Bytes before an indirect table that are the request's own: the device reads them and the first
 * three descriptors in one cache line. */
#define VIRTQ_DRIVER_HEADER_BYTES 16u

/* Writes an empty ring into config->memory.  0; -EINVAL or -ENOMEM with *err. */
int virtq_driver_init(struct virtq_driver *vd, const struct virtq_driver_config *config,
		      struct error *err) must_check;
void virtq_driver_fini(struct virtq_driver *vd);

/* The header of the request that is put next; NULL if the ring has no tables or no room. */
void *virtq_driver_header(const struct virtq_driver *vd);

/*
 * Writes one request: out_num buffers that the device reads, then in_num that it writes.  Several
 * buffers go through an indirect table if there is one; otherwise each takes a descriptor.
 * The cookie comes back with the completion.  Not visible before virtq_driver_publish().
 * 0; -ENOSPC: come again after a completion; -E2BIG: never fits; -EINVAL: no buffer; -EPROTO.
 */
int virtq_driver_put(struct virtq_driver *vd, const struct virtq_buf *bufs, unsigned out_num,
		     unsigned in_num, void *cookie) must_check;

/* Shows the device all that was put. */
void virtq_driver_publish(struct virtq_driver *vd);

/* Kicks the device if what was published since the last time is news to a sleeper.  True: kicked.
 */
bool virtq_driver_tell(struct virtq_driver *vd);

/* Takes one completion.  1: *cookie and *written_bytes are set.  0: none.  -EPROTO: broken. */
int virtq_driver_take(struct virtq_driver *vd, void **cookie, uint32_t *written_bytes) must_check;

/* We look by ourselves: no call, please.  A hint; one may still come. */
void virtq_driver_call_off(struct virtq_driver *vd);

/*
 * Arm, full fence, look again: call us when `after` more requests have completed (1: the next one;
 * never more than are in flight; without EVENT_IDX always the next one).  True: that has happened
 * already, do not sleep.
 */
bool virtq_driver_call_on(struct virtq_driver *vd, uint16_t after) must_check;

#endif
