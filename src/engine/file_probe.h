/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an open image can do, asked of its file system or device without changing its data.
 *
 * Shared by the engines that serve files (linux_aio, io_uring, threads).  Control thread only.
 */
#ifndef ENGINE_FILE_PROBE_H
#define ENGINE_FILE_PROBE_H

#include "block/engine.h"

/* An open image as the engines see it; constant after file_probe().  The disk owns the fd. */
struct file {
	int fd;
	bool block_device;
	bool direct; /* requests go past the page cache: O_DIRECT, and the file honours it */
	bool read_only;
	bool punch_hole;      /* fallocate(PUNCH_HOLE) deallocates and reads as zeroes */
	bool zero_range;      /* fallocate(ZERO_RANGE) zeroes and keeps the space */
	bool discard;         /* block device: BLKDISCARD */
	unsigned nr_requests; /* block device: requests that the kernel queues; 0 = not known */
};

/*
 * Fills *file and all of *info.  A thing that is neither a regular file nor a block device is
 * refused.  0, or a negative errno with *err set.
 */
int file_probe(const struct engine_config *config, struct file *file, struct engine_info *info,
	       struct error *err) must_check;

/* The size now, exact, or a negative errno. */
int64_t file_size(int fd);

#endif
