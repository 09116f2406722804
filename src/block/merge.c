/* SPDX-License-Identifier: Apache-2.0 */
#include "block/merge.h"

static bool mergeable(const struct blk_request *r)
{
	return (r->op == BLK_READ || r->op == BLK_WRITE) && !(r->block_state & BLOCK_STATE_ALONE);
}

unsigned merge_run(struct blk_request *const *reqs, unsigned n, const struct merge_limits *limits)
{
	const struct blk_request *first = reqs[0];
	uint64_t len = first->len_bytes;
	unsigned iovcnt = first->iovcnt, run = 1;

	if (!mergeable(first))
		return 1;
	for (; run < n; run++) {
		const struct blk_request *r = reqs[run];

		if (r->offset_bytes != first->offset_bytes + len || r->op != first->op ||
		    r->flags != first->flags || !mergeable(r))
			break;
		/* Neither sum overflows: each term was within the limits, or is found not to be. */
		if (len > limits->max_bytes || r->len_bytes > limits->max_bytes - len ||
		    iovcnt > limits->max_iov || r->iovcnt > limits->max_iov - iovcnt)
			break;
		len += r->len_bytes;
		iovcnt += r->iovcnt;
	}
	return run;
}
