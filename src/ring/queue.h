/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every device-side queue is, whatever its ring format: a state, a way to turn the driver's
 * notifications off and on, a device that handles requests, and statistics.
 *
 * Everything here belongs to the iothread that owns the queue; statistics may be read by any.
 */
#ifndef RING_QUEUE_H
#define RING_QUEUE_H

#include "base/compiler.h"
#include "base/histogram.h"

enum queue_state {
	QUEUE_STOPPED, /* not looked at */
	QUEUE_RUNNING,
	QUEUE_STOPPING, /* takes no more; requests in flight still complete */
	QUEUE_BROKEN,   /* the ring is unusable; sticky until stopped */
};

struct queue_stats {
	uint64_t requests; /* completed */
	uint64_t batches;  /* flushes that published something */
	uint64_t kicks_received;
	uint64_t calls_sent;
	uint64_t calls_suppressed; /* flushes that published and did not call */
	uint64_t errors;           /* requests that completed with an error status, bad chains */
	uint64_t bytes;            /* data moved by requests that succeeded */
	struct histogram latency;  /* from taking a request to publishing its completion */
};

struct queue;

/* The ring's half. */
struct queue_ring_ops {
	/* The driver need not notify.  May be called again. */
	void (*notify_off)(struct queue *q);
	/* Arm, full fence, look again.  True: the driver raced us, there is work. */
	bool (*notify_on)(struct queue *q) must_check;
	/* Is there something to take?  One look at memory. */
	bool (*pending)(struct queue *q);
	/* How many requests the driver has given and not yet seen the end of, as far as the ring
	 * tells; 0 when it does not. */
	unsigned (*outstanding)(struct queue *q);
	/* How many of them have not been taken.  A hint: the driver's index, unchecked. */
	unsigned (*backlog)(struct queue *q);
	/* Publishes what has been pushed, and calls the driver if a call is owed. */
	void (*flush)(struct queue *q);
};

/* The device's half. */
struct queue_device_ops {
	/* How many requests can be accepted now (free slots). */
	unsigned (*room)(struct queue *q);
	/* Take at most max requests, prepare and submit them.  Returns how many were taken. */
	unsigned (*handle)(struct queue *q, unsigned max);
};

struct queue {
	const struct queue_ring_ops *ring;
	const struct queue_device_ops *device;
	void *device_data;
	enum queue_state state;
	/* Its driver is busy: kicks stay off, and calls are kept back while the device has more to
	 * complete.  A completion calls resume: the thread is awake then anyway, and may look. */
	bool napping;
	bool starved; /* service_run() answered BLOCKED: a completion calls resume */
	/* Handed in by whoever runs the queue: look again soon.  Called when starved. */
	void (*resume)(struct queue *q);
	void *owner;
	unsigned taken; /* by the last service_run() */
	struct queue_stats stats;
};

/* The device has room again: if the queue waits for that, have it looked at. */
static inline void queue_room_freed(struct queue *q)
{
	if (unlikely(q->starved)) {
		q->starved = false;
		if (q->resume)
			q->resume(q);
	}
}

#endif
