/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the linux-aio engine.  Only linux_aio.c and its test include this.
 */
#ifndef ENGINE_LINUX_AIO_QUEUE_H
#define ENGINE_LINUX_AIO_QUEUE_H

#include <linux/aio_abi.h>

#include "engine/file_ops.h"

/* The kernel's completion ring, at the address that is the context's id (fs/aio.c).  It has been
 * the same since it was made, and is marked so that it can be told. */
struct aio_ring {
	uint32_t id;
	uint32_t nr;   /* slots */
	uint32_t head; /* ours */
	uint32_t tail; /* the kernel's */
	uint32_t magic;
	uint32_t compat_features;
	uint32_t incompat_features;
	uint32_t header_len_bytes;
	struct io_event events[];
};

struct engine {
	struct file file;
	bool rw_flags;  /* the kernel takes RWF_DSYNC; without it there is no FUA */
	bool no_fdsync; /* an old kernel: any queue may find out */
};

/* Everything here belongs to the queue's thread. */
struct engine_queue {
	struct engine *engine;
	struct file_ops ops; /* what goes to the worker pool */
	aio_context_t context;
	struct aio_ring *ring; /* NULL: read by io_getevents into events[] */
	int event_fd;
	unsigned in_flight; /* in the kernel; less than the ring has slots */
	unsigned depth;
	struct blk_request *refused; /* to be ended at the end of submit_batch */
	struct io_event events[64];
	unsigned next_event, nevents;
	struct iocb *batch[]; /* depth pointers, used during one submit_batch */
};

#endif
