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

/* A quarter of what the driver keeps going may gather in a nap: it never runs out of room to go on,
 * and the wait is a fraction of the time that a request takes it anyway.  (A third or a half leaves
 * a guest idle at times, a sixth costs it a third more interrupts: bench/compare.py --only guest.)
 */
#define NAP_SHARE       4u
#define NAP_LEAST_DEPTH 3u
#define NAP_LEAST_NS    20000u
#define NAP_MOST_NS     3000000u
#define NAP_STEP_GAPS   4u
/* So many requests for one notification: there is little left to save. */
#define NAP_NOT_NEEDED 32u
/* One nap in so many is a sounding. */
#define SOUND_EVERY 32u
/* One that finds no depth puts off the next, up to so many armings; and with less than so much to
 * save it is not tried. */
#define SOUND_SKIP_MOST 1023u
#define SOUND_GAP_MOST  500000u

static void note_work(struct queue_poller *qp)
{
	uint64_t now = loop_now_ns(qp->loop);
	uint64_t gap = MIN((now - qp->work_ns) / MAX(qp->queue->taken, 1u), (uint64_t)NAP_MOST_NS);

	qp->gap_ns += gap / 8 - qp->gap_ns / 8;
	qp->work_ns = now;
	qp->taken += qp->queue->taken;
	qp->nap_taken += qp->queue->taken;
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

/* How many requests the driver keeps going.  What it has not seen yet says so, if it is many; but
 * with a device that is quick it may be one at a time for ever, though the next is on its way
 * already: then the last sounding knows. */
static unsigned depth_of(const struct queue_poller *qp)
{
	unsigned outstanding = qp->queue->ring->outstanding(qp->queue);

	return MAX(outstanding, qp->nap_depth);
}

static uint64_t nap_ns(struct queue_poller *qp)
{
	enum poll_mode mode = qp->poller.limits ? qp->poller.limits->mode : loop_mode(qp->loop);
	unsigned depth;

	if (!qp->taken || qp->taken >= NAP_NOT_NEEDED || mode != POLL_ADAPTIVE ||
	    qp->queue->state != QUEUE_RUNNING || qp->queue->starved)
		return 0;
	if (qp->nap_skip) {
		qp->nap_skip--;
		return 0;
	}
	depth = depth_of(qp);
	qp->sounding = depth < NAP_LEAST_DEPTH || !qp->naps_left;
	if (!qp->sounding)
		return MIN(qp->gap_ns * (depth / NAP_SHARE), NAP_MOST_NS);
	if (depth < NAP_LEAST_DEPTH && qp->gap_ns > SOUND_GAP_MOST)
		return 0;
	return MIN(qp->gap_ns * MAX(2 * depth, NAP_STEP_GAPS), NAP_MOST_NS);
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
	uint64_t ns;

	if (qp->queue->napping)
		return false;
	ns = nap_ns(qp);
	qp->taken = 0;
	if (ns < NAP_LEAST_NS)
		return service_poll_end(qp->queue);
	/* Notifications stay off; the timer takes the place of the kick. */
	qp->queue->napping = true;
	qp->nap_len_ns = ns;
	qp->nap_end_ns = loop_now_ns(qp->loop) + ns;
	qp->nap_taken = qp->nap_given = 0;
	nap_on(qp);
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

/* stopped: the driver has given all it has, and waits for us. */
static void learn(struct queue_poller *qp, unsigned given, bool stopped)
{
	if (!qp->sounding) {
		qp->naps_left = stopped ? 0 : qp->naps_left - 1;
		return;
	}
	qp->nap_depth = given;
	qp->naps_left = 0;
	if (given < NAP_LEAST_DEPTH) {
		qp->nap_penalty = MIN(2 * qp->nap_penalty + 1, SOUND_SKIP_MOST);
		qp->nap_skip = qp->nap_penalty;
		return;
	}
	qp->nap_penalty = 0;
	/* Not to the ground yet, though there was time: sound again. */
	if (stopped || qp->nap_len_ns == NAP_MOST_NS)
		qp->naps_left = SOUND_EVERY;
}

static void nap_over(struct loop_timer *t)
{
	struct queue_poller *qp = container_of(t, struct queue_poller, nap);
	unsigned given = qp->nap_taken + qp->queue->ring->backlog(qp->queue);
	bool stopped = given <= qp->nap_given;

	if (!stopped && loop_now_ns(qp->loop) < qp->nap_end_ns) {
		qp->nap_given = given;
		nap_on(qp);
		return;
	}
	learn(qp, given, stopped);
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
	qp->work_ns = loop_now_ns(loop);
	qp->gap_ns = 0;
	qp->taken = 0;
	qp->nap_depth = qp->nap_skip = qp->nap_penalty = qp->naps_left = 0;
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
