/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass of the event loop, what decides whether another follows or the loop sleeps, messages
 * and statistics.
 *
 * A loop is in one of three states.  Busy: the last pass found work.  Spinning: nothing found since
 * idle_since_ns, but that is less than spin_ns ago.  Asleep in epoll, with every poller armed.
 * While busy or spinning, system calls are rare: messages are seen by looking at the head of their
 * queue, and epoll is asked only now and then, for the kicks of pollers outside of the poll set.
 */
#include "loop/loop_internal.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defer.h"
#include "base/fd.h"
#include "loop/wake_cost.h"

/* How often epoll is asked: a kick that arrives meanwhile waits no longer than that. */
#define BUSY_PASSES     32
#define BUSY_FDS_NS     50000u
#define SPINNING_FDS_NS 20000u

/* Looks of pollers between clock readings while spinning: a look is cheaper than a reading. */
#define LOOKS_PER_CLOCK 8u

static __thread struct loop *current;

/* ---- life ---- */

static void on_wake(struct loop_fd *lf, uint32_t events)
{
	eventfd_clear(lf->fd);
}

static int open_fds(struct loop *loop)
{
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->wake.fd = eventfd_create();
	loop->wake.ready = on_wake;
	if (loop->epoll_fd < 0 || loop->wake.fd < 0)
		return -1;
	return loop_add_fd(loop, &loop->wake, EPOLLIN);
}

struct loop *loop_create(const struct poll_policy_limits *limits)
{
	/* Pollers with limits of their own may be adaptive whatever the loop's mode is. */
	const struct poll_policy_limits learn = {.mode = POLL_ADAPTIVE};
	struct loop *loop = aligned_alloc(64, sizeof(*loop));

	if (!loop)
		return NULL;
	*loop = (struct loop){.limits = *limits, .timer_ns = UINT64_MAX};
	list_init(&loop->active);
	list_init(&loop->idle);
	list_init(&loop->timers);
	mpsc_init(&loop->messages);
	poll_policy_init(&loop->policy, &learn, wake_cost_ns());
	loop->wake_latency_ns = wake_latency_ns();
	loop->now_ns = clock_now_ns();
	if (open_fds(loop) < 0) {
		loop_destroy(loop);
		return NULL;
	}
	return loop;
}

void loop_destroy(struct loop *loop)
{
	ASSERT(current != loop);
	while (atomic_load_acquire(&loop->posters)) /* [LOOP2] */
		sched_yield();
	fd_close(&loop->wake.fd);
	fd_close(&loop->epoll_fd);
	free(loop);
}

struct loop *loop_current(void)
{
	return current;
}

enum poll_mode loop_mode(const struct loop *loop)
{
	return loop->limits.mode;
}

uint64_t loop_now_ns(const struct loop *loop)
{
	return loop->now_ns;
}

/* ---- from other threads ---- */

/* After what the loop shall see has been stored. */
static void wake_if_asleep(struct loop *loop)
{
	/* [LOOP1] my store before this load; the loop: `sleeping`, full fence, look again. */
	atomic_fence_full();
	/* relaxed: the fence orders it.  The exchange lets one of several posters write. */
	if (atomic_load_relaxed(&loop->sleeping) && atomic_xchg(&loop->sleeping, 0u))
		eventfd_signal(loop->wake.fd);
}

void loop_post(struct loop *loop, struct loop_msg *m)
{
	/* [LOOP2] As soon as m is seen it may be the last one, and the loop go away. */
	atomic_fetch_add_seq_cst(&loop->posters, 1u);
	mpsc_push(&loop->messages, &m->node);
	wake_if_asleep(loop);
	atomic_fetch_sub_acq_rel(&loop->posters, 1u);
}

void loop_stop(struct loop *loop)
{
	atomic_fetch_add_seq_cst(&loop->posters, 1u); /* [LOOP2] */
	atomic_store_release(&loop->stop, 1u);        /* [LOOP3] */
	wake_if_asleep(loop);
	atomic_fetch_sub_acq_rel(&loop->posters, 1u);
}

void loop_stats_read(const struct loop *loop, struct loop_stats *out)
{
	const struct loop_stats *s = &loop->stats;

	/* relaxed: statistics */
	out->passes = atomic_load_relaxed(&s->passes);
	out->sleeps = atomic_load_relaxed(&s->sleeps);
	out->spin_hits = atomic_load_relaxed(&s->spin_hits);
	out->spin_misses = atomic_load_relaxed(&s->spin_misses);
	out->time_spun_ns = atomic_load_relaxed(&s->time_spun_ns);
	out->time_slept_ns = atomic_load_relaxed(&s->time_slept_ns);
}

/* ---- the pass ---- */

static void read_clock(struct loop *loop)
{
	uint64_t now = clock_now_ns();

	if (loop->spinning)
		atomic_stat_add(&loop->stats.time_spun_ns, now - loop->now_ns);
	loop->now_ns = now;
}

static bool fds_due(struct loop *loop)
{
	uint64_t since = loop->now_ns - loop->fds_seen_ns;

	if (loop->events_count)
		return true;
	if (loop->spinning)
		return since >= SPINNING_FDS_NS;
	return since >= BUSY_FDS_NS || ++loop->busy_passes >= BUSY_PASSES;
}

static void serve_fds(struct loop *loop)
{
	loop_fds_look(loop);
	loop->busy_passes = 0;
	loop->fds_seen_ns = loop->now_ns;
	loop_fds_dispatch(loop);
	loop_poll_retire(loop);
}

static void run_messages(struct loop *loop)
{
	struct slist taken;
	struct slist_node *node;

	slist_init(&taken);
	mpsc_take_all(&loop->messages, &taken);
	while ((node = slist_pop_front(&taken))) {
		struct loop_msg *m = container_of(node, struct loop_msg, node);

		m->run(m);
	}
}

/* True if a poller found work. */
static bool pass(struct loop *loop)
{
	bool found;

	atomic_stat_add(&loop->stats.passes, 1);
	if (loop->looks_left > 1) {
		loop->looks_left--;
	} else {
		loop->looks_left = 0; /* spare_clock() gives as many again */
		read_clock(loop);
	}
	defer_begin();
	if (fds_due(loop))
		serve_fds(loop);
	run_messages(loop);
	if (loop->now_ns >= loop->timer_ns)
		loop_timers_run(loop);
	found = loop_poll_all(loop);
	defer_end();
	return found;
}

/* ---- between passes ---- */

/*
 * A gap has ended: from finding nothing to finding work.  After a sleep the work had come earlier
 * than it was found, by about what a wake-up takes; without that correction a loop that sleeps
 * would see no gap short enough to be worth looking for, and never begin to look.  But it came
 * after every poller had been armed.
 */
static uint64_t gap_ns(const struct loop *loop)
{
	uint64_t gap = loop->now_ns - loop->idle_since_ns;
	uint64_t least = loop->sleep_since_ns - loop->idle_since_ns;

	if (!loop->slept)
		return gap;
	gap = gap > loop->wake_latency_ns ? gap - loop->wake_latency_ns : 0;
	return MAX(gap, least);
}

static void found_work(struct loop *loop)
{
	loop->looks_left = 0;
	if (!loop->idle_since_ns)
		return;
	poll_policy_note_gap(&loop->policy, gap_ns(loop));
	if (loop->spun && !loop->slept)
		atomic_stat_add(&loop->stats.spin_hits, 1);
	loop->idle_since_ns = 0;
	loop->spinning = false;
}

/* Every poller, and the messages.  False: there is something to do. */
static bool arm(struct loop *loop)
{
	loop->looks_left = 0;
	loop->spinning = false;
	if (!loop_poll_arm(loop))
		return false;
	atomic_store_relaxed(&loop->sleeping, 1u); /* relaxed: the fence orders it */
	atomic_fence_full();                       /* [LOOP1] */
	/* Look again.  relaxed: the fence orders it, and stop is read again with acquire. */
	if (mpsc_maybe_nonempty(&loop->messages) || atomic_load_relaxed(&loop->stop)) {
		atomic_store_relaxed(&loop->sleeping, 0u); /* relaxed: a late writer is harmless */
		return false;
	}
	return true;
}

static void sleep_until_woken(struct loop *loop)
{
	uint64_t before;

	if (!arm(loop))
		return;
	if (loop->spun && !loop->slept)
		atomic_stat_add(&loop->stats.spin_misses, 1);
	before = clock_now_ns();
	loop->slept = true;
	loop->sleep_since_ns = before;
	loop_fds_wait(loop, before, loop->timer_ns);
	atomic_store_relaxed(&loop->sleeping, 0u); /* relaxed: as above */
	loop->now_ns = clock_now_ns();
	loop->looks_left = 2; /* the next pass need not read it again */
	loop->fds_seen_ns = loop->now_ns;
	loop->busy_passes = 0;
	atomic_stat_add(&loop->stats.sleeps, 1);
	atomic_stat_add(&loop->stats.time_slept_ns, loop->now_ns - before);
}

/* Found nothing: the next looks do without the clock.  Not while a timer runs, which is due by it.
 */
static void spare_clock(struct loop *loop)
{
	if (!loop->looks_left && loop->timer_ns == UINT64_MAX)
		loop->looks_left = LOOKS_PER_CLOCK;
}

static void found_nothing(struct loop *loop)
{
	if (!loop->idle_since_ns) {
		loop->idle_since_ns = loop->now_ns;
		loop->slept = loop->spun = loop->spin_known = false;
	}
	if (!loop->spin_known) {
		loop->spin_ns = loop_poll_spin_ns(loop);
		loop->spin_known = true;
	}
	if (loop->now_ns - loop->idle_since_ns >= loop->spin_ns) {
		sleep_until_woken(loop);
		return;
	}
	loop->spinning = loop->spun = true;
	spare_clock(loop);
	cpu_relax();
}

void loop_run(struct loop *loop)
{
	bool stop;

	ASSERT(!current);
	current = loop;
	do {
		/* [LOOP3] Before the messages are taken: all that was posted earlier is run. */
		stop = atomic_load_acquire(&loop->stop);
		if (pass(loop))
			found_work(loop);
		else if (!loop->woken && !stop)
			found_nothing(loop);
		else
			loop->looks_left = 0;
	} while (!stop);
	atomic_store_relaxed(&loop->stop, 0u); /* relaxed: only to run it again */
	current = NULL;
}

/* ---- by hand ---- */

void loop_call(struct loop *loop, void (*run)(void *arg), void *arg)
{
	ASSERT(!current);
	current = loop;
	defer_begin();
	run(arg);
	defer_end();
	current = NULL;
}

/* As a loop that spins does: epoll and the clock are asked only now and then.  The first look after
 * arming asks epoll, which takes back what it has told. */
bool loop_look(struct loop *loop)
{
	bool found;

	ASSERT(!current);
	if (unlikely(loop->armed)) {
		loop->armed = false;
		/* relaxed: a late writer is harmless */
		atomic_store_relaxed(&loop->sleeping, 0u);
		loop->fds_seen_ns = 0;
		loop_poll_disarm(loop);
	}
	current = loop;
	found = pass(loop);
	current = NULL;
	loop->spinning = !found;
	if (found)
		loop->looks_left = 0;
	else
		spare_clock(loop);
	return found;
}

bool loop_arm(struct loop *loop)
{
	bool armed;

	ASSERT(!current);
	if (loop->timer_ns != UINT64_MAX)
		return false;
	current = loop;
	armed = arm(loop);
	current = NULL;
	loop->armed = true; /* if not the loop, then perhaps the pollers */
	return armed;
}

void loop_wake(struct loop *loop)
{
	loop->armed = true;
	eventfd_signal(loop->wake.fd);
}

int loop_epoll_fd(const struct loop *loop)
{
	return loop->epoll_fd;
}
