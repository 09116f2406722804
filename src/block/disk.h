/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk: an open image, its engine, its range lock, its per-thread channels.  Not an export.
 *
 * Created and destroyed by the control thread; shared by every device that serves it.
 */
#ifndef BLOCK_DISK_H
#define BLOCK_DISK_H

#include "block/engine.h"

struct disk;
struct blk_channel;

struct disk_config {
	const char *id; /* for messages */
	const struct engine_ops *ops;
	struct engine_config engine;
	uint32_t block_bytes;                  /* logical block that devices show: 512 or 4096 */
	bool discard;                          /* offer and pass down discards */
	unsigned queue_depth;                  /* kernel queue of each channel; 0 = 256 */
	bool ends_elsewhere;                   /* of channels: see struct engine_queue_config */
	const struct poll_policy_limits *poll; /* NULL = the iothread's; copied */
};

/* Read by devices; constant but for capacity (disk_capacity_bytes). */
struct disk_info {
	uint32_t block_bytes;
	uint32_t physical_block_bytes;
	uint32_t optimal_io_bytes;
	uint32_t discard_granularity_bytes;
	bool read_only;
	bool discard;      /* discards reach the storage */
	bool write_zeroes; /* always works (emulated where the engine cannot) */
	bool write_cache;  /* a flush means something */
	bool inline_io;    /* requests complete while they are submitted */
};

/*
 * Opens the engine.  Takes over config->engine.fd (closes it at destroy, or on failure).
 * An image whose size is not a multiple of block_bytes, or of the larger block that its engine
 * moves, is rounded down with a warning that names the bytes left out; less than one is refused.
 * NULL with *err set on failure.
 */
struct disk *disk_create(const struct disk_config *config, struct error *err);
/* All channels were put. */
void disk_destroy(struct disk *d);

const char *disk_id(const struct disk *d);
const struct disk_info *disk_info(const struct disk *d);
/* A multiple of block_bytes.  Any thread. */
uint64_t disk_capacity_bytes(const struct disk *d);

/*
 * This thread's channel of the disk: made at the first call on a thread that runs a loop (its
 * engine queue is made here, by the thread that uses it), counted after that.  NULL with *err.
 */
struct blk_channel *disk_channel_get(struct disk *d, struct error *err);
/* On the same thread, with nothing of the caller's in flight; the last put frees the channel. */
void disk_channel_put(struct blk_channel *c);

/* Guest memory for engines that register it (engine_ops.set_memory); see there.  Any order of
 * several owners: each owner is known by its pointer; n == 0 takes the owner's memory away. */
int disk_set_memory(struct disk *d, const void *owner, const struct engine_memory *m, unsigned n);

#endif
