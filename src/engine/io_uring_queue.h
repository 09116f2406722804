/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the io_uring engine: what its files share.  Nothing else includes this.
 */
#ifndef ENGINE_IO_URING_QUEUE_H
#define ENGINE_IO_URING_QUEUE_H

#include <liburing.h>

#include "engine/file_ops.h"
#include "engine/io_uring_memory.h"

struct engine {
	struct file file;
	struct uring_memory memory; /* fixed-buffers */
};

/* Everything here belongs to the queue's thread. */
struct engine_queue {
	struct io_uring ring;
	struct engine *engine;
	struct uring_view view; /* this ring's registered memory */
	int event_fd;
	bool fixed_file;             /* the image is the ring's file 0 */
	unsigned depth;              /* most requests in the kernel; the CQ holds twice that */
	unsigned in_flight;          /* in the kernel, or in the CQ and not yet reaped */
	struct file_ops ops;         /* what goes to the worker pool */
	struct blk_request *refused; /* to be ended at the end of submit_batch */
};

/* io_uring_submit.c */
unsigned uring_submit_batch(struct engine_queue *q, struct blk_request **reqs, unsigned n);

#endif
