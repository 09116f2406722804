/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that tell what they are, and whether a block that was read is the one that was written.
 *
 * Every 512 bytes of a block carry the run's number, their own address, the block's generation
 * and a checksum over all of it.  A region remembers the newest generation of each block, in this
 * process: a server that forgets a write, or gives back another block, is found.
 *
 * A region belongs to one job; the caller begins no request on a block that is busy, so that what
 * a block must hold is defined at every moment.
 */
#ifndef BENCH_VERIFY_H
#define BENCH_VERIFY_H

#include "base/error.h"

#define VERIFY_SECTOR_BYTES 512u

enum verify_kind {
	VERIFY_GOOD,
	VERIFY_TORN,      /* parts of several generations, or a checksum that is wrong */
	VERIFY_STALE,     /* whole, of another generation than the newest */
	VERIFY_MISPLACED, /* whole, of another address */
	VERIFY_FOREIGN,   /* not written by this run */
	VERIFY_KIND_COUNT,
};

extern const char *const verify_kind_names[VERIFY_KIND_COUNT];

struct verify_fault {
	enum verify_kind kind;
	uint64_t offset_bytes;       /* of the first bad 512 bytes */
	uint64_t found_offset_bytes; /* MISPLACED: where they belong */
	uint32_t expected, found;    /* generations */
};

#define VERIFY_BUSY  1u /* a request is in flight */
#define VERIFY_KNOWN 2u /* it was written; else nobody knows what it holds */

struct verify_region {
	uint64_t run;   /* tells what this run wrote from what others did */
	uint64_t first; /* blocks [first, first + blocks) of the target */
	uint64_t blocks;
	uint32_t block_bytes;
	uint32_t *generations; /* the newest that was begun */
	uint8_t *flags;
};

/* 0, or -ENOMEM. */
int verify_region_init(struct verify_region *r, uint64_t run, uint64_t first, uint64_t blocks,
		       uint32_t block_bytes) must_check;
void verify_region_fini(struct verify_region *r);

/* The next generation of a block, written into buf. */
uint32_t verify_fill(const struct verify_region *r, uint64_t block, void *buf);

/* What is in buf is compared with the newest generation. */
enum verify_kind verify_check(const struct verify_region *r, uint64_t block, const void *buf,
			      struct verify_fault *fault);

/* A write of that generation has ended, or failed: then nobody knows what the block holds. */
void verify_written(struct verify_region *r, uint64_t block, uint32_t generation, bool ok);

/* One line: what, where. */
void verify_fault_text(const struct verify_fault *f, char *buf, size_t buf_len);

static inline uint32_t verify_generation(const struct verify_region *r, uint64_t block)
{
	return r->generations[block - r->first];
}

static inline bool verify_has_flag(const struct verify_region *r, uint64_t block, uint8_t flag)
{
	return r->flags[block - r->first] & flag;
}

static inline void verify_set_flag(struct verify_region *r, uint64_t block, uint8_t flag, bool on)
{
	uint8_t *f = &r->flags[block - r->first];

	*f = (uint8_t)(on ? *f | flag : *f & ~flag);
}

#endif
