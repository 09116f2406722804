/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver library under the test's hand: takes the place of src/driver at link time.  All
 * targets are one disk in memory.  Requests are done when somebody looks for completions, the
 * newest first, and what the test asks for goes wrong.
 */
#ifndef FAKES_FAKE_DRIVER_H
#define FAKES_FAKE_DRIVER_H

#include "ringside/driver.h"

#define FAKE_DRIVER_OPENS 64

struct fake_driver {
	/* The test's. */
	uint64_t capacity_bytes;
	uint8_t *data;
	bool read_only, no_discard, no_flush;
	unsigned max_transfer_bytes;
	uint64_t forget_write;   /* so many writes, counted from 1, are not done; 0: none */
	uint64_t misplace_write; /* goes one block further */
	uint64_t tear_write;     /* only its first half is done */
	uint64_t fail_request;   /* -EIO */
	uint64_t gone_after;     /* so many requests: then the server has gone */
	void (*on_open)(unsigned opens);
	/* What was seen. */
	unsigned opens, closes;
	const char *opened[FAKE_DRIVER_OPENS]; /* in order */
	uint64_t requests, reads, writes, flushes, discards;
	uint64_t tells, untold;  /* submissions; requests that nobody was told of */
	uint64_t overlaps;       /* requests in flight that touched the same bytes */
	unsigned most_in_flight; /* of a queue */
	unsigned least_told;     /* the smallest batch but the last ones */
};

extern struct fake_driver fake_driver;

/* All zero, with a disk of so many bytes. */
void fake_driver_init(uint64_t capacity_bytes);
void fake_driver_fini(void);

#endif
