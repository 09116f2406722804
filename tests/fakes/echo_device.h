/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that answers with what it was sent: the device-readable bytes of a chain are copied to
 * its device-writable part.  It has a number of slots, and completes at once or when it is told.
 */
#ifndef FAKES_ECHO_DEVICE_H
#define FAKES_ECHO_DEVICE_H

#include "base/list.h"
#include "ring/virtq.h"

#define ECHO_MAX_SLOTS 256
#define ECHO_MAX_PARTS 16

struct echo_slot {
	struct slist_node node; /* free, or held */
	struct virtq_token token;
	uint32_t written_bytes;
};

struct echo_device {
	struct virtq *vq;
	bool hold;                                  /* requests wait for echo_complete() */
	void (*held_some)(struct echo_device *dev); /* told in the pass that held them; or NULL */
	unsigned nfree, nheld;
	struct slist free, held;
	uint64_t taken, bad;
	struct echo_slot slots[ECHO_MAX_SLOTS];
};

/* Becomes vq's device, with nslots (1..ECHO_MAX_SLOTS) requests at a time. */
void echo_init(struct echo_device *dev, struct virtq *vq, unsigned nslots);

/* Completes at most n of the requests that are held, oldest first; returns how many.
 * Inside a defer section of the caller's if they shall be published together. */
unsigned echo_complete(struct echo_device *dev, unsigned n);

#endif
