/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a file by system calls that block, on the worker pool.
 *
 * Everything of the threads engine; in the other two what the kernel's queue cannot do.  A
 * request's words and work item (blk_request.engine) hold all state; nothing is allocated.
 */
#ifndef ENGINE_FILE_OPS_H
#define ENGINE_FILE_OPS_H

#include "engine/file_probe.h"

/* Requests of one queue that may be with the worker pool at a time. */
#define FILE_OPS_DEPTH 64u

/* One queue's requests on the worker pool.  Embedded in the engine's queue; its thread only. */
struct file_ops {
	const struct file *file;
	unsigned in_flight;
};

static inline void file_ops_init(struct file_ops *ops, const struct file *file)
{
	ops->file = file;
	ops->in_flight = 0;
}

/* False: too many are under way, req is still the caller's.  True: engine_done will be called, on
 * this thread, by a message of the loop. */
bool file_ops_submit(struct file_ops *ops, struct blk_request *req) must_check;

/* The same for an array: how many were accepted. */
unsigned file_ops_submit_batch(struct file_ops *ops, struct blk_request **reqs, unsigned n);

/* The fallocate(2) mode that does req's DISCARD or WRITE_ZEROES on a regular file, or a negative
 * errno when the file system has none. */
int file_fallocate_mode(const struct file *file, const struct blk_request *req);

/* Does it now, in this thread: bytes moved, 0, or a negative errno. */
int64_t file_do(const struct file *file, const struct blk_request *req);

#endif
