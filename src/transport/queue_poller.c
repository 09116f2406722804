/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/queue_poller.h"

#include <sys/epoll.h>

#include "base/atomic.h"
#include "base/fd.h"
#include "ring/service.h"

static const struct poll_policy_limits always = {.mode = POLL_ALWAYS};

static void poller_begin(struct poller *p)
{
	service_poll_begin(container_of(p, struct queue_poller, poller)->queue);
}

/* Half of what is outstanding may gather in a nap: the driver never runs out of room to go on, and
 * the wait is a fraction of the time that a request takes it anyway. */
#define NAP_LEAST_OUTSTANDING 3u
#define NAP_LEAST_NS          20000u
#define NAP_MOST_NS           3000000u
#define NAP_STEP_GAPS         4u
/* So many requests for one notification: there is little left to save. */
#define NAP_NOT_NEEDED 32u

static void note_work(struct queue_poller *qp)
{
	uint64_t now = loop_now_ns(qp->loop);
	uint64_t gap = MIN((now - qp->work_ns) / MAX(qp->queue->taken, 1u), (uint64_t)NAP_MOST_NS);

	qp->gap_ns += gap / 8 - qp->gap_ns / 8;
	qp->work_ns = now;
	qp->taken += qp->queue->taken;
}

static bool poller_poll(struct poller *p)
{
	struct queue_poller *qp = container_of(p, struct queue_poller, poller);
	enum service_result result = service_run(qp->queue, SERVICE_BUDGET);

	if (result != SERVICE_WORKED && result != SERVICE_MORE)
		return false;
	note_work(qp);
	return true;
}

static uint64_t nap_ns(struct queue_poller *qp)
{
	enum poll_mode mode = qp->poller.limits ? qp->poller.limits->mode : loop_mode(qp->loop);
	unsigned outstanding;

	if (!qp->taken || qp->taken >= NAP_NOT_NEEDED || mode != POLL_ADAPTIVE ||
	    qp->queue->state != QUEUE_RUNNING || qp->queue->starved)
		return 0;
	outstanding = qp->queue->ring->outstanding(qp->queue);
	if (outstanding < NAP_LEAST_OUTSTANDING)
		return 0;
	return MIN(qp->gap_ns * (outstanding / 2), NAP_MOST_NS);
}

static void nap_on(struct queue_poller *qp)
{
	uint64_t now = loop_now_ns(qp->loop);
	uint64_t step = MAX(qp->gap_ns * NAP_STEP_GAPS, (uint64_t)NAP_LEAST_NS);

	loop_timer_start(qp->loop, &qp->nap, MIN(now + step, qp->nap_end_ns));
}

static bool poller_end(struct poller *p)
{
	struct queue_poller *qp = container_of(p, struct queue_poller, poller);
	uint64_t ns = nap_ns(qp);

	qp->taken = 0;
	if (ns < NAP_LEAST_NS)
		return service_poll_end(qp->queue);
	/* Notifications stay off; the timer takes the place of the kick. */
	qp->queue->napping = true;
	qp->nap_end_ns = loop_now_ns(qp->loop) + ns;
	qp->nap_backlog = 0;
	nap_on(qp);
	return false;
}

static void stop_nap(struct queue_poller *qp)
{
	loop_timer_stop(qp->loop, &qp->nap);
	qp->queue->napping = false;
}

static void nap_over(struct loop_timer *t)
{
	struct queue_poller *qp = container_of(t, struct queue_poller, nap);
	unsigned backlog = qp->queue->ring->backlog(qp->queue);

	if (backlog > qp->nap_backlog && loop_now_ns(qp->loop) < qp->nap_end_ns) {
		qp->nap_backlog = backlog;
		nap_on(qp);
		return;
	}
	stop_nap(qp);
	poller_wake(&qp->poller);
}

static const struct poller_ops ops = {
	.begin = poller_begin,
	.poll = poller_poll,
	.end = poller_end,
};

static void on_kick(struct loop_fd *lf, uint32_t events)
{
	struct queue_poller *qp = container_of(lf, struct queue_poller, kick);

	/* Something that is ready but has nothing to read (a hung-up pipe) would wake us for ever.
	 */
	if (!eventfd_clear(lf->fd) && (events & (EPOLLHUP | EPOLLERR))) {
		loop_remove_fd(qp->loop, lf);
		return;
	}
	atomic_stat_add(&qp->queue->stats.kicks_received, 1);
	poller_wake(&qp->poller);
}

static void on_resume(struct queue *q)
{
	struct queue_poller *qp = q->owner;

	stop_nap(qp);
	poller_wake(&qp->poller);
}

static int watch_kick(struct queue_poller *qp, int kick_fd)
{
	qp->kick.fd = kick_fd;
	qp->kick.ready = on_kick;
	qp->kick.added = false;
	qp->poller.limits = kick_fd >= 0 ? qp->limits : &always;
	return kick_fd >= 0 ? loop_add_fd(qp->loop, &qp->kick, EPOLLIN) : 0;
}

int queue_poller_add(struct queue_poller *qp, struct loop *loop, struct queue *queue, int kick_fd,
		     const struct poll_policy_limits *limits)
{
	int ret;

	qp->loop = loop;
	qp->queue = queue;
	qp->limits = limits;
	qp->poller = (struct poller){.ops = &ops};
	qp->nap = (struct loop_timer){.expired = nap_over};
	qp->work_ns = loop_now_ns(loop);
	qp->gap_ns = 0;
	qp->taken = 0;
	ret = watch_kick(qp, kick_fd);
	if (ret < 0)
		return ret;
	queue->owner = qp;
	queue->resume = on_resume;
	loop_add_poller(loop, &qp->poller);
	return 0;
}

void queue_poller_remove(struct queue_poller *qp)
{
	loop_remove_fd(qp->loop, &qp->kick);
	stop_nap(qp);
	loop_remove_poller(qp->loop, &qp->poller);
	qp->queue->resume = NULL;
}

int queue_poller_set_kick(struct queue_poller *qp, int kick_fd)
{
	int ret;

	loop_remove_fd(qp->loop, &qp->kick);
	ret = watch_kick(qp, kick_fd);
	poller_wake(&qp->poller);
	return ret;
}
