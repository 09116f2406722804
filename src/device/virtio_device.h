/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract between a virtio transport and a device model.
 *
 * A device is pure: no system call, no descriptor, no clock, no thread, no allocation after a
 * queue's start.  The transport owns the rings and calls in; the device owns request slots.
 *
 * Threads: `control` functions run on the control thread; `queue_*` functions on the iothread that
 * owns that queue.  The transport makes sure that features change only while no queue runs.
 */
#ifndef DEVICE_VIRTIO_DEVICE_H
#define DEVICE_VIRTIO_DEVICE_H

#include "mem/guest_memory.h"
#include "ring/virtq.h"

struct virtio_device;

struct virtio_device_ops {
	uint32_t device_id; /* VIRTIO_ID_* */

	/* control: the device's own feature bits (not those of ring and transport). */
	uint64_t (*features)(struct virtio_device *dev);
	/* control: what the driver took of them; called again after a reset. */
	void (*set_features)(struct virtio_device *dev, uint64_t features);
	/* control: how many queues the client may start. */
	unsigned (*queue_count)(struct virtio_device *dev);

	/* control: len bytes of config space from offset; beyond its end zeroes. */
	void (*config_read)(struct virtio_device *dev, uint32_t offset, void *buf, uint32_t len);
	/* control: changes the writable fields that the range touches, ignores the others.
	 * 0, or -EINVAL when a writable field gets a value it cannot have. */
	int (*config_write)(struct virtio_device *dev, uint32_t offset, const void *buf,
			    uint32_t len);

	/* control: the driver's reset; no queue runs.  What the front-end goes on telling its guest
	 * without asking again (the cache mode) stays. */
	void (*reset)(struct virtio_device *dev);
	/* control: the client has gone; a reset, and what that keeps goes, too. */
	void (*detach)(struct virtio_device *dev);

	/* iothread: allocates slots for vq->size and sets vq->queue.device.  0 or -errno, *err. */
	int (*queue_start)(struct virtio_device *dev, unsigned index, struct virtq *vq,
			   struct error *err);
	/* iothread: vq is drained; frees what queue_start made. */
	void (*queue_stop)(struct virtio_device *dev, unsigned index);

	/* control, optional: the guest memory that requests will point into from now on; NULL when
	 * it goes.  For engines that register buffers. */
	void (*set_memory)(struct virtio_device *dev, const struct guest_memory *memory);
};

struct virtio_device {
	const struct virtio_device_ops *ops;
	const char *name; /* for messages; the owner's */
};

#endif
