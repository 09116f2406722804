/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtio block device between a ring and a fake disk, for its unit tests: one request at a time
 * through the driver half, or chains by hand.
 */
#ifndef UNIT_BLK_RIG_H
#define UNIT_BLK_RIG_H

#include "device/virtio_blk.h"
#include "fakes/fake_disk.h"
#include "fakes/ring_rig.h"
#include "spec/virtio.h"

#define DISK_BYTES (1u << 20)
/* Headers and status bytes; data of the tests above. */
#define BLK_META RIG_DATA
#define BLK_DATA (RIG_DATA + (1u << 20))

#define BLK_FEATURES_ALL UINT64_MAX

struct blk_rig {
	struct ring_rig ring;
	struct disk disk;
	struct virtio_device *dev;
	unsigned next; /* slot for header and status */
};

extern struct blk_rig rig;

struct blk_rig_config {
	uint16_t size;      /* 0: 128 */
	uint16_t table_len; /* 0: 1100 where that fits (size <= 128) */
	bool read_only;
	bool no_discard;
	const char *serial;
	uint32_t block_bytes; /* 0: 512 */
	uint64_t features;    /* 0: all that is offered */
};

void blk_rig_init(const struct blk_rig_config *config);
void blk_rig_fini(void);

/* Puts a request into the ring and returns the guest address of its status byte (0xee now). */
uint64_t blk_put(uint32_t type, uint64_t sector, const struct virtq_buf *data, unsigned n,
		 bool data_in);

/* Kicks the device: one turn, or several until it answers something else than MORE. */
enum service_result blk_kick(void);

uint8_t blk_status(uint64_t status_gpa);

/* Puts, kicks, completes what reaches the disk until the answer is there.  Returns the status;
 * *written (may be NULL) is the used length. */
uint8_t blk_do(uint32_t type, uint64_t sector, const struct virtq_buf *data, unsigned n,
	       bool data_in, uint32_t *written);

/* The same with one buffer at BLK_DATA. */
uint8_t blk_in(uint32_t type, uint64_t sector, uint32_t len, uint32_t *written);
uint8_t blk_out(uint32_t type, uint64_t sector, uint32_t len, uint32_t *written);

void *blk_data(void);

/* Discard and write-zeroes segments into guest memory at BLK_DATA. */
struct blk_segment {
	uint64_t sector;
	uint32_t sectors;
	uint32_t flags;
};
void blk_write_segments(const struct blk_segment *segs, unsigned n);

#endif
