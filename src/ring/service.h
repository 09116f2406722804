/* SPDX-License-Identifier: Apache-2.0 */
/*
 * THE service loop: the only place that turns a queue's notifications off and on.
 */
#ifndef RING_SERVICE_H
#define RING_SERVICE_H

#include "ring/queue.h"

enum service_result {
	SERVICE_IDLE,    /* nothing there, nothing taken */
	SERVICE_WORKED,  /* took all there was */
	SERVICE_MORE,    /* took some, there is more: run again behind the other queues */
	SERVICE_BLOCKED, /* there is more but no room: a completion resumes it (queue.resume) */
};

/* Requests a queue may take before the others have their turn. */
#define SERVICE_BUDGET 256

/* One turn of the queue, notifications as they are. */
enum service_result service_run(struct queue *q, unsigned budget);

/* A poller owns the queue from now on. */
void service_poll_begin(struct queue *q);

/* Nobody looks any more.  True: there is work after all. */
bool service_poll_end(struct queue *q) must_check;

/* A kick without a poller: off, one turn, and on again if nothing is left. */
enum service_result service_kick(struct queue *q, unsigned budget);

#endif
