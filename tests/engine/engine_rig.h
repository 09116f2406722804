/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One engine and one of its queues on a real loop, without the block layer: what the engine
 * answers is what the test sees.  All on the test's thread; rig calls fail the test.
 */
#ifndef TESTS_ENGINE_RIG_H
#define TESTS_ENGINE_RIG_H

#include "block/engine.h"
#include "loop/loop.h"

struct engine_rig;

struct engine_rig_request {
	struct blk_request req;
	struct iovec iov; /* used when init was given a buffer */
	struct engine_rig *rig;
	int64_t result; /* valid once done */
	unsigned done;  /* engine_done calls */
};

struct engine_rig {
	const struct engine_ops *ops;
	struct engine *engine;
	struct engine_info info;
	struct engine_queue *queue;
	struct loop *loop;
	struct poller poller;
	struct loop_fd event;
	struct loop_msg start;
	struct engine_queue_config queue_config;
	struct loop_timer watchdog;

	struct blk_request **todo; /* not accepted yet, in order */
	unsigned ntodo, outstanding;
	unsigned partial;    /* submit_batch calls that took less than they were given */
	unsigned idle_looks; /* poll calls that found nothing */
	bool submitting, failed;
};

/* depth of the kernel's queue; polling: the loop never sleeps, else it sleeps whenever it can. */
void engine_rig_open(struct engine_rig *rig, const struct engine_ops *ops,
		     const struct engine_config *config, unsigned depth, bool polling);
void engine_rig_close(struct engine_rig *rig);

/* A pass of the loop, with what other threads have posted. */
void engine_rig_pass(struct engine_rig *rig);

/* buf NULL: req.iov is the caller's to set. */
void engine_rig_init(struct engine_rig_request *r, enum blk_op op, uint32_t flags, uint64_t offset,
		     void *buf, uint64_t len);

/* Submits all in order, and waits until each is done, once. */
void engine_rig_run(struct engine_rig *rig, struct engine_rig_request *r, unsigned n);

/* One request; returns its raw result. */
int64_t engine_rig_io(struct engine_rig *rig, enum blk_op op, uint32_t flags, uint64_t offset,
		      void *buf, uint64_t len);

#endif
