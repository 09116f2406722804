/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtio numbers and structs, from the kernel's uapi headers, plus what those of Debian 12 lack.
 * Split virtqueue: VIRTIO 1.2 section 2.7.  Block device: section 5.2.
 */
#ifndef SPEC_VIRTIO_H
#define SPEC_VIRTIO_H

#include <assert.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_ring.h>

#define VIRTIO_BIT(n) (1ull << (n))

#ifndef VIRTIO_F_NOTIFICATION_DATA
#define VIRTIO_F_NOTIFICATION_DATA 38
#endif
#ifndef VIRTIO_F_RING_RESET
#define VIRTIO_F_RING_RESET 40
#endif

/* VIRTIO 1.2, 2.7: alignment of the three parts of a split virtqueue. */
#define VIRTQ_DESC_ALIGN  16
#define VIRTQ_AVAIL_ALIGN 2
#define VIRTQ_USED_ALIGN  4
#define VIRTQ_MAX_SIZE    32768

static_assert(sizeof(struct vring_desc) == 16, "descriptor");
static_assert(sizeof(struct vring_used_elem) == 8, "used element");
static_assert(sizeof(struct virtio_blk_outhdr) == 16, "block request header");
static_assert(sizeof(struct virtio_blk_discard_write_zeroes) == 16, "discard segment");

/* 5.2.6: the device ID string of VIRTIO_BLK_T_GET_ID. */
#ifndef VIRTIO_BLK_ID_BYTES
#define VIRTIO_BLK_ID_BYTES 20
#endif

#endif
