/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one question of every index-based suppression: did the move from old to new pass event?
 */
#ifndef RING_EVENT_IDX_H
#define RING_EVENT_IDX_H

#include <stdbool.h>
#include <stdint.h>

/*
 * VIRTIO 1.2, 2.7.7.2 and 2.7.10: indexes run freely over 16 bits; the other side wants to be told
 * when index `event` has been passed, that is, when event is in [old, new).
 */
static inline bool need_event(uint16_t event, uint16_t new_idx, uint16_t old_idx)
{
	return (uint16_t)(new_idx - event - 1) < (uint16_t)(new_idx - old_idx);
}

#endif
