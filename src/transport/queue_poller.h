/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue as a poller of its iothread's loop: the kick eventfd wakes it, the service loop runs it.
 * For every transport.  Belongs to the iothread between add and remove.
 */
#ifndef TRANSPORT_QUEUE_POLLER_H
#define TRANSPORT_QUEUE_POLLER_H

#include "loop/loop.h"
#include "ring/queue.h"
#include "transport/nap_policy.h"

struct queue_poller {
	struct poller poller;
	struct loop_fd kick;
	struct queue *queue;
	struct loop *loop;
	const struct poll_policy_limits *limits; /* the disk's; NULL for the loop's */

	struct nap_policy policy;
	struct loop_timer nap; /* on while the queue naps */
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
