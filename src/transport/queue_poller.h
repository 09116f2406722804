/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue as a poller of its iothread's loop: the kick eventfd wakes it, the service loop runs it.
 * For every transport.  Belongs to the iothread between add and remove.
 */
#ifndef TRANSPORT_QUEUE_POLLER_H
#define TRANSPORT_QUEUE_POLLER_H

#include "loop/loop.h"
#include "ring/queue.h"

struct queue_poller {
	struct poller poller;
	struct loop_fd kick;
	struct queue *queue;
	struct loop *loop;
	const struct poll_policy_limits *limits; /* the disk's; NULL for the loop's */

	/*
	 * A driver that keeps many requests going is busy, not waiting for the next completion.
	 * Instead of being armed for its very next request the queue then *naps*: unarmed, for the
	 * time in which some of them come round, so that one look and one call do for many.  It
	 * looks up now and then, and ends the nap when the driver has stopped giving more: then the
	 * driver waits.  A look for nothing is followed by arming.
	 *
	 * Some naps are *soundings*: long enough to see how many the driver gives before it waits.
	 * A sounding for nothing makes the next ones rarer.
	 */
	struct loop_timer nap;
	uint64_t nap_len_ns;
	uint64_t nap_end_ns;
	bool sounding;
	unsigned nap_taken;   /* since the nap began */
	unsigned nap_given;   /* by the driver, taken or not, when it looked up last */
	unsigned nap_depth;   /* what the last sounding found */
	unsigned naps_left;   /* until the next sounding */
	unsigned nap_skip;    /* so many times it is armed without a nap */
	unsigned nap_penalty; /* what nap_skip starts from */
	uint64_t work_ns;     /* when work was last found */
	uint64_t gap_ns;      /* mean time between requests, moving */
	unsigned taken;       /* since it was last about to sleep */
};

/*
 * The queue has been started; it is looked at once, as if it had been kicked.  kick_fd stays the
 * caller's; -1: the driver never kicks, so the queue is looked at all the time.
 * 0, or -errno when kick_fd cannot be waited for (nothing was added).
 */
int queue_poller_add(struct queue_poller *qp, struct loop *loop, struct queue *queue, int kick_fd,
		     const struct poll_policy_limits *limits) must_check;
void queue_poller_remove(struct queue_poller *qp);

/* Another kick eventfd; the queue is looked at once.  On failure the old one is gone, too. */
int queue_poller_set_kick(struct queue_poller *qp, int kick_fd) must_check;

#endif
