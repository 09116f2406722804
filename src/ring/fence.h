/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four store-load fences of the notification protocol (arm, full fence, look again; publish,
 * full fence, look whether the other side is armed), each with a name, so that an experiment can
 * take them out: the build option unsafe_no_fence is the sum of the numbers below.  Such a build
 * loses wake-ups, which is what tests/ring is there to show; it is of no other use.
 */
#ifndef RING_FENCE_H
#define RING_FENCE_H

#include "base/atomic.h"

enum ring_fence {
	FENCE_DEVICE_ARM = 1,  /* [VQ3] the device: avail_event, then the avail index again */
	FENCE_DRIVER_KICK = 2, /* [VQ3] the driver: avail index, then avail_event */
	FENCE_DEVICE_CALL = 4, /* [VQ4] the device: used index, then used_event */
	FENCE_DRIVER_ARM = 8,  /* [VQ4] the driver: used_event, then the used index again */
};

static inline void ring_fence(enum ring_fence which)
{
#ifdef RINGSIDE_UNSAFE_NO_FENCE
	if (RINGSIDE_UNSAFE_NO_FENCE & which) {
		__asm__ volatile("" ::: "memory"); /* the compiler's order stays; the core's goes */
		return;
	}
#endif
	atomic_fence_full(); /* [VQ3] [VQ4], as the caller says */
}

#endif
