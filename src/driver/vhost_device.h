/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device behind a vhost-user server, whatever its kind: negotiation, memory, rings.  The kind
 * (virtio_blk, later virtio_scsi) says what it wants negotiated, and fills in and reads requests.
 */
#ifndef DRIVER_VHOST_DEVICE_H
#define DRIVER_VHOST_DEVICE_H

#include <pthread.h>

#include "driver/driver_internal.h"
#include "driver/vhost_client.h"
#include "ring/virtq_driver.h"

/*
 * What a request has in shared memory of its own.  The header lies beside the descriptors where the
 * ring has indirect tables, and the status bytes of a queue lie together: cache lines that go back
 * and forth are what a request costs.
 */
#define VHOST_SLOT_BYTES 64u
struct vhost_slot_memory {
	void *header; /* VIRTQ_DRIVER_HEADER_BYTES, for the device to read */
	void *more;   /* VHOST_SLOT_BYTES, for both */
	uint8_t *status;
};

/* Descriptors of a ring: what most servers take. */
#define VHOST_RING_MOST 1024u

struct vhost_device;
struct vhost_queue;

struct vhost_kind {
	uint64_t features;     /* wanted, beyond those of the ring */
	unsigned first_queue;  /* index of the first request queue */
	unsigned config_bytes; /* of the configuration space that is read */
	/* Fills in dev->base.info from the configuration space. */
	int (*read_config)(struct vhost_device *dev, const void *config, struct error *err);
	/* Buffers of a request, in order.  Room for max_segments + 2.  Returns 0 and the numbers,
	 * or an error. */
	int (*fill)(struct vhost_queue *q, const struct driver_request *req,
		    const struct vhost_slot_memory *memory, struct virtq_buf *bufs,
		    unsigned *out_num, unsigned *in_num);
	/* The result of a request that has completed; negative errno.  No header any more. */
	int (*finish)(const struct vhost_slot_memory *memory);
};

/* Memory that the server has.  Both halves know it by our address. */
struct vhost_region {
	uintptr_t start, end;
	int fd;
	uint64_t offset_bytes;
	bool lent; /* ours to unmap */
};

/* Immutable once it is published; old ones are kept until close, as queues may look at them. */
struct vhost_regions {
	struct vhost_regions *older;
	unsigned count;
	struct vhost_region regions[];
};

struct vhost_device {
	struct ringside_device base;
	const struct vhost_kind *kind;
	struct vhost_client client;
	struct ringside_options options;
	uint64_t features, protocol_features;
	unsigned max_regions;
	bool slots_messages; /* ADD_MEM_REG and REM_MEM_REG instead of whole tables */
	char *path;

	pthread_mutex_t lock;          /* messages after open; changes of the regions */
	struct vhost_regions *regions; /* read by queues without the lock [DRV1] */
	struct vhost_queue *queue_memory;
	void *ring_memory; /* of all queues; a lent piece */
};

/* Apart from its neighbour, which is another thread's. */
struct vhost_queue {
	cacheline_aligned struct ringside_queue base;
	struct vhost_device *dev;
	struct virtq_driver vd;
	char *slot_memory;                        /* VHOST_SLOT_BYTES and a header each */
	uint8_t *statuses;                        /* one each */
	const struct vhost_regions *last_regions; /* of which last_region is one */
	const struct vhost_region *last_region;
	int kick_fd, call_fd;
	unsigned index; /* the server's */
	bool started;
};

/* The transport's open, for a kind. */
int vhost_device_open(const struct driver_transport *transport, const struct vhost_kind *kind,
		      const struct uri *uri, const struct ringside_options *options,
		      struct ringside_device **out, struct error *err) must_check;
void vhost_device_close(struct ringside_device *base);

/* vhost_memory.c */
int vhost_memory_alloc(struct ringside_device *base, size_t len_bytes, void **out,
		       struct error *err) must_check;
int vhost_memory_map(struct ringside_device *base, void *addr, size_t len_bytes, int fd,
		     uint64_t offset_bytes, struct error *err) must_check;
int vhost_memory_free(struct ringside_device *base, void *addr, struct error *err) must_check;
/* Unmaps everything; the server has gone or was told. */
void vhost_memory_fini(struct vhost_device *dev);
/* False: the server does not have all of it.  Data path. */
bool vhost_memory_has(struct vhost_queue *q, const void *addr, size_t len_bytes);

/* vhost_queue.c */
/* Bytes of shared memory for the queue's ring and slots. */
size_t vhost_queue_memory_bytes(const struct vhost_device *dev);
int vhost_queue_start(struct vhost_queue *q, void *memory, struct error *err) must_check;
/* Stops the ring at the server, if that still answers, and releases what is ours. */
void vhost_queue_stop(struct vhost_queue *q);

#endif
