/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backing of one --disk: its image opened and locked, an engine that works on it, the disk on
 * top, and a block channel kept on every iothread that may run its queues.
 *
 * The channels are kept from start to end so that what a queue needs of the kernel (a ring, an aio
 * context, locked memory, descriptors) is there before a client comes: what started keeps working,
 * and what cannot is told at once, or served by another engine.
 */
#ifndef DAEMON_BACKING_H
#define DAEMON_BACKING_H

#include "block/disk.h"
#include "daemon/options.h"
#include "engine/image.h"
#include "loop/iothread.h"

struct backing {
	const struct disk_options *options; /* the caller's, outlives the backing */
	struct disk *disk;
	const char *engine;           /* by name */
	const struct engine_ops *ops; /* as the disk has it: maybe with faults around it */
	char *why_engine;   /* why not one that would have been better; NULL = there is none */
	struct image image; /* fd -1: the engine has no file */
	struct iothread *const *iothreads; /* the caller's */
	struct blk_channel **channels;     /* one an iothread, the first nchannels */
	unsigned nchannels;
};

/* 0, or a negative errno with *err, a line for a person; then nothing is left to destroy. */
int backing_open(struct backing *b, const struct disk_options *options,
		 struct iothread *const *iothreads, unsigned niothreads,
		 struct error *err) must_check;

/* No queue of the disk runs any more. */
void backing_close(struct backing *b);

/* Says what was wanted and could not be had. */
void backing_announce(const struct backing *b);

#endif
