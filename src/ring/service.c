/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See service.h.  State is the queue's; nothing is kept here.
 */
#include "ring/service.h"

enum service_result service_run(struct queue *q, unsigned budget)
{
	unsigned room, taken;

	q->starved = false;
	/* Every path to the handler comes through here: a broken or stopped queue ends here. */
	if (q->state != QUEUE_RUNNING || !q->ring->pending(q))
		return SERVICE_IDLE;
	room = q->device->room(q);
	taken = room ? q->device->handle(q, MIN(room, budget)) : 0;
	q->taken = taken;
	if (q->state != QUEUE_RUNNING || !q->ring->pending(q))
		return taken ? SERVICE_WORKED : SERVICE_IDLE;
	if (taken)
		return SERVICE_MORE;
	/* No slot, or no room for a long chain: what is in flight frees it and resumes us. */
	q->starved = true;
	return SERVICE_BLOCKED;
}

void service_poll_begin(struct queue *q)
{
	if (q->state == QUEUE_RUNNING)
		q->ring->notify_off(q);
}

bool service_poll_end(struct queue *q)
{
	/* Blocked: notifications stay off on purpose, a kick could do nothing. */
	if (q->state != QUEUE_RUNNING || q->starved)
		return false;
	return q->ring->notify_on(q);
}

enum service_result service_kick(struct queue *q, unsigned budget)
{
	enum service_result result;

	service_poll_begin(q);
	result = service_run(q, budget);
	if ((result == SERVICE_IDLE || result == SERVICE_WORKED) && service_poll_end(q))
		result = SERVICE_MORE;
	return result;
}
