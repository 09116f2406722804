/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the block device share: the device (control thread), its queues and their
 * request slots (the queue's iothread).
 */
#ifndef DEVICE_VIRTIO_BLK_INTERNAL_H
#define DEVICE_VIRTIO_BLK_INTERNAL_H

#include "device/virtio_blk.h"
#include "spec/virtio.h"

/* Parts of a chain that fit in the slot itself: header, four pages of data, status. */
#define VIRTIO_BLK_INLINE_IOV 6
/* Data parts that we announce (SEG_MAX) plus header and status: an array of them for each slot,
 * in memory that stays untouched, and so unused, until long chains come. */
#define VIRTIO_BLK_SEG_MAX    126
#define VIRTIO_BLK_MEDIUM_IOV (VIRTIO_BLK_SEG_MAX + 2)
/* Chains longer than announced (some drivers ignore seg_max) share a few large arrays. */
#define VIRTIO_BLK_LARGE_IOVS 2
#define VIRTIO_BLK_MAX_SLOTS  1024u

/* SeaBIOS reads (uint16_t)(size_max * seg_max) bytes at a time, and for ever when that is 0: this
 * value, 16 MiB less seven pages, makes it 56 KiB. */
#define VIRTIO_BLK_SIZE_MAX       ((16u << 20) - 7 * 4096u)
#define VIRTIO_BLK_MAX_RANGE_SEGS 256u
#define VIRTIO_BLK_SECTOR_SHIFT   9
/* 2 GiB less a block of 4 KiB where the storage does it; 16 MiB where zeroes must be written. */
#define VIRTIO_BLK_RANGE_SECTORS   0x3ffff8u
#define VIRTIO_BLK_WRITTEN_SECTORS 32768u

struct virtio_blk_queue;

struct virtio_blk_slot {
	struct blk_request req;
	struct virtio_blk_queue *queue;
	struct virtio_blk_slot *next_free;
	struct virtq_token token;
	uint8_t *status;
	uint32_t written_bytes; /* into the device-writable part, if it succeeds; status included */
	/* DISCARD and WRITE_ZEROES: the segments, in guest memory, done one after the other. */
	const struct iovec *segments;
	unsigned segments_iovcnt;
	unsigned segment, segment_count;
	uint32_t type;
	bool large;
	struct iovec *iov; /* what holds the chain: one of the three kinds */
	struct iovec inline_iov[VIRTIO_BLK_INLINE_IOV];
};

/* With an engine that is done at once: the driver works on what has ended while we take more. */
#define VIRTIO_BLK_INLINE_BATCH 16u

struct virtio_blk_queue {
	struct virtio_blk *dev;
	struct virtq *vq;
	struct blk_channel *channel;
	struct virtio_blk_slot *slots;
	struct virtio_blk_slot *free;
	unsigned nslots, nfree;
	unsigned batch_most;  /* taken in a pass */
	struct iovec *medium; /* nslots x VIRTIO_BLK_MEDIUM_IOV */
	struct iovec *large;  /* VIRTIO_BLK_LARGE_IOVS x large_parts */
	unsigned large_parts;
	unsigned large_used; /* bits */
};

struct virtio_blk {
	struct virtio_device base;
	struct disk *disk;
	char *name;
	char serial[VIRTIO_BLK_ID_BYTES];
	unsigned nqueues;
	bool read_only;
	bool discard;
	/* Written by the control thread, read by iothreads (relaxed: takes effect some time after
	 * the config write, as on a real disk; the driver waits for its own requests). */
	bool writethrough;
	uint64_t features;               /* the driver's; changes only while no queue runs */
	uint8_t writeback;               /* the config field */
	struct virtio_blk_queue *queues; /* nqueues */
};

/* virtio_blk_request.c */
extern const struct queue_device_ops virtio_blk_queue_ops;

#endif
