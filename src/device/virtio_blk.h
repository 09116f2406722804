/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtio block device (VIRTIO 1.2, 5.2) in front of a disk.
 */
#ifndef DEVICE_VIRTIO_BLK_H
#define DEVICE_VIRTIO_BLK_H

#include "block/channel.h"
#include "device/virtio_device.h"

struct virtio_blk_config_options {
	const char *name;   /* for messages; copied */
	const char *serial; /* at most 20 bytes are shown (5.2.6, GET_ID); copied */
	unsigned queues;    /* the most that the client may start, 1..1024 */
	bool read_only;     /* this export, even if the disk is writable */
	bool discard;       /* offer VIRTIO_BLK_F_DISCARD */
};

/* Control thread.  The disk stays the caller's and must outlive the device.  NULL with *err. */
struct virtio_device *virtio_blk_create(const struct virtio_blk_config_options *options,
					struct disk *disk, struct error *err);
/* No queue runs. */
void virtio_blk_destroy(struct virtio_device *dev);

/* Statistics of the block channel that a running queue submits to (shared with the disk's other
 * queues on that iothread).  Any thread; false if the queue does not run. */
bool virtio_blk_channel_stats(struct virtio_device *dev, unsigned queue,
			      struct blk_channel_stats *out);

#endif
