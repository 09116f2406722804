/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers for a ring, from bytes: mostly such that lead somewhere, now and then any.
 */
#ifndef FUZZ_RING_H
#define FUZZ_RING_H

#include "fakes/ring_rig.h"
#include "fuzz_input.h"

/* A guest address: in the data area, around the seam of the regions, at their ends, or wild. */
static inline uint64_t fuzz_gpa(struct fuzz_input *in)
{
	uint8_t kind = fuzz_u8(in);

	switch (kind & 7) {
	default:
		return RIG_DATA + fuzz_u16(in);
	case 4:
		return RIG_SEAM - (kind >> 3);
	case 5:
		return RIG_END - (kind >> 3);
	case 6:
		return RIG_GPA + (kind >> 3) - 16;
	case 7:
		return fuzz_u64(in);
	}
}

static inline uint32_t fuzz_len(struct fuzz_input *in)
{
	uint8_t kind = fuzz_u8(in);

	switch (kind & 3) {
	case 0:
		return (uint32_t)(kind >> 2) << 4; /* tables, headers */
	case 1:
		return (uint32_t)(kind >> 2) << 9; /* sectors */
	case 2:
		return kind >> 2;
	default:
		return fuzz_u32(in);
	}
}

/* One descriptor, into the ring or into an indirect table at RIG_DATA. */
static inline void fuzz_desc(struct fuzz_input *in, struct ring_rig *rig)
{
	uint8_t where = fuzz_u8(in), shape = fuzz_u8(in);
	uint16_t i = (uint16_t)(where >> 1), next = (uint16_t)(shape >> 4);
	uint16_t flags = shape & 7;
	uint64_t gpa = fuzz_gpa(in);
	uint32_t len = fuzz_len(in);

	if (shape & 8)
		next = fuzz_u16(in);
	if (where & 1)
		ring_rig_table(rig, RIG_DATA, i, gpa, len, flags, next);
	else
		ring_rig_desc(rig, i & rig->drv.mask, gpa, len, flags, next);
}

#endif
