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

static bool poller_poll(struct poller *p)
{
	struct queue_poller *qp = container_of(p, struct queue_poller, poller);
	enum service_result result = service_run(qp->queue, SERVICE_BUDGET);

	if (result != SERVICE_WORKED && result != SERVICE_MORE)
		return false;
	nap_policy_note_work(&qp->policy, loop_now_ns(qp->loop), qp->queue->taken);
	return true;
}

static bool may_nap(const struct queue_poller *qp)
{
	enum poll_mode mode = qp->poller.limits ? qp->poller.limits->mode : loop_mode(qp->loop);

	return mode == POLL_ADAPTIVE && qp->queue->state == QUEUE_RUNNING && !qp->queue->starved;
}

static bool poller_end(struct poller *p)
{
	struct queue_poller *qp = container_of(p, struct queue_poller, poller);

	if (qp->queue->napping)
		return false;
	if (!may_nap(qp) || !nap_policy_begin(&qp->policy, loop_now_ns(qp->loop),
					      qp->queue->ring->outstanding(qp->queue)))
		return service_poll_end(qp->queue);
	/* Notifications stay off; the timer takes the place of the kick. */
	qp->queue->napping = true;
	loop_timer_start(qp->loop, &qp->nap, qp->policy.look_ns);
	return false;
}

static void stop_nap(struct queue_poller *qp)
{
	if (!qp->queue->napping)
		return;
	loop_timer_stop(qp->loop, &qp->nap);
	qp->queue->napping = false;
	qp->queue->ring->flush(qp->queue);
}

static void nap_over(struct loop_timer *t)
{
	struct queue_poller *qp = container_of(t, struct queue_poller, nap);

	if (nap_policy_look(&qp->policy, loop_now_ns(qp->loop),
			    qp->queue->ring->backlog(qp->queue))) {
		loop_timer_start(qp->loop, &qp->nap, qp->policy.look_ns);
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
	nap_policy_init(&qp->policy, loop_now_ns(loop));
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
