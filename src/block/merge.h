/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which requests go to the engine as one.  Pure: looks at the requests, changes nothing.
 *
 * Requests merge that are neighbours in the order they came and on the disk: both reads or both
 * writes, the same flags, one beginning where the other ends.  Others in between are not searched:
 * a guest that reads sequentially submits so, and the look costs one comparison a request.
 */
#ifndef BLOCK_MERGE_H
#define BLOCK_MERGE_H

#include "block/request.h"

struct merge_limits {
	unsigned max_iov;
	uint64_t max_bytes; /* of the merged request */
};

/* In req->block_state: goes to the engine as it is. */
#define BLOCK_STATE_ALONE 0x80000000u

/*
 * How many requests from the front of reqs[0..n), n >= 1, form one I/O.  1: the first goes alone.
 */
unsigned merge_run(struct blk_request *const *reqs, unsigned n, const struct merge_limits *limits);

#endif
