/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk under the test's hand: takes the place of src/block at link time.  Requests wait until the
 * test completes them, are logged, and move bytes of an array (reads beyond it leave the buffer).
 */
#ifndef FAKES_FAKE_DISK_H
#define FAKES_FAKE_DISK_H

#include "block/channel.h"

#define FAKE_DISK_LOG 4096

struct fake_disk_op {
	enum blk_op op;
	uint32_t flags;
	uint64_t offset_bytes;
	uint64_t len_bytes;
	unsigned iovcnt;
};

struct blk_channel {
	struct disk *disk;
	struct slist pending;
	unsigned npending;
	unsigned refs;
};

struct disk {
	struct disk_info info;
	uint64_t capacity_bytes;
	uint8_t *data;
	uint64_t data_bytes;
	struct blk_channel channel;
	int fail; /* what requests complete with; 0: success */
	bool no_channel;
	struct fake_disk_op log[FAKE_DISK_LOG];
	unsigned nlog;
	unsigned memory_regions; /* of the last disk_set_memory() */
};

/* 512-byte blocks, writable, discards; data_bytes of array, which is also the capacity. */
void fake_disk_init(struct disk *d, uint64_t data_bytes);
void fake_disk_fini(struct disk *d);

/* Completes at most n requests, the oldest first (or the newest); in one defer section.  How many.
 * What they submit meanwhile waits for the next call. */
unsigned fake_disk_complete(struct disk *d, unsigned n);
unsigned fake_disk_complete_newest(struct disk *d);

#endif
