/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop of one thread: file descriptors, pollers, messages, timers.
 *
 * A pass runs what is ready, then lets the pollers look.  When nothing is found the loop goes on
 * looking for as long as the poll policy says, then arms every poller (arm, full fence, look
 * again) and sleeps in epoll.  Everything a pass runs is inside one defer section (base/defer.h),
 * so that what a pass produces is published in one step.
 *
 * All functions are for the loop's own thread (or before it runs), except loop_post() and
 * loop_stats().  The loop allocates only in loop_init(), loop_add_fd() and loop_add_poller().
 */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include "base/list.h"
#include "base/mpsc.h"
#include "loop/poll_policy.h"

struct loop;

/* ---- file descriptors ---- */

/* Embedded by the owner; the loop keeps a pointer until loop_remove_fd(). */
struct loop_fd {
	int fd;
	/* events: EPOLLIN, EPOLLOUT, EPOLLHUP... as epoll reports them; level-triggered. */
	void (*ready)(struct loop_fd *lf, uint32_t events);
	bool added; /* the loop's */
};

/* Watches lf->fd for events (EPOLLIN, EPOLLOUT).  0 or -errno from epoll_ctl. */
int loop_add_fd(struct loop *loop, struct loop_fd *lf, uint32_t events) must_check;
int loop_modify_fd(struct loop *loop, struct loop_fd *lf, uint32_t events) must_check;
/* Stops watching; ready is not called again, not even for events of the current pass.  Idempotent.
 * Must come before the fd is closed. */
void loop_remove_fd(struct loop *loop, struct loop_fd *lf);

/* ---- pollers ---- */

struct poller;

struct poller_ops {
	/* Somebody looks from now on: ask not to be notified.  May be called when already off. */
	void (*begin)(struct poller *p);
	/*
	 * Look once and do what there is.  True if there was work: another pass follows, so what
	 * is found only at the end of this pass (engines that complete inline) is not slept over.
	 * Never blocks.
	 */
	bool (*poll)(struct poller *p);
	/*
	 * Nobody looks any more: arm the notification, full fence, look again.  True = there is
	 * work (the poller stays armed or not, as it likes: the loop calls begin or poll next).
	 */
	bool (*end)(struct poller *p);
};

/*
 * Embedded by the owner.  A poller in the *poll set* is looked at in every pass.  It leaves the
 * set, armed, and costs nothing until poller_wake(), when
 *  - the loop goes to sleep: the set is then empty, and waking one does not touch the others;
 *  - or it found nothing for about 1 ms (longer for longer fixed times) while others kept the loop
 *    awake;
 *  - or it found nothing once and its mode is off.
 * Before it sleeps the loop looks for the longest time that a poller in the set asks for; one with
 * mode always in the set keeps it from ever sleeping.
 */
struct poller {
	const struct poller_ops *ops;
	struct list node;                        /* the loop's: in the active or the idle list */
	struct loop *loop;                       /* the loop's: NULL when not added */
	uint64_t last_work_ns;                   /* the loop's */
	bool active;                             /* the loop's: in the poll set */
	bool begun;                              /* the loop's: begin was called since end */
	const struct poll_policy_limits *limits; /* NULL: the loop's own; e.g. a disk's poll= key */
};

/* Adds p to the poll set; it is looked at once in the next pass, as if it had been notified. */
void loop_add_poller(struct loop *loop, struct poller *p);
/* Takes it out; poll and end are not called again.  Idempotent.  The owner disarms by itself. */
void loop_remove_poller(struct loop *loop, struct poller *p);
/*
 * The poller's notification fired (its kick or completion eventfd was read by the owner's
 * loop_fd): it joins the poll set, is begun and looked at in this pass, or in the next one when
 * the pollers have had their turn.  Also for an owner that knows of work to come without having
 * been notified: a channel that submits to its engine, a queue that has room again.  Cheap when
 * it is in the set already, and nothing when it has not been added.
 */
void poller_wake(struct poller *p);

/* ---- messages from other threads ---- */

struct loop_msg {
	struct slist_node node;
	void (*run)(struct loop_msg *m);
};

/* Any thread: run m->run(m) on the loop's thread, in the order posted by one thread.  m stays
 * valid until run is called; run owns it from then on.  Wakes the loop only if it sleeps.
 * One that is posted from within a pass runs in the next: then what this pass noted with
 * defer_call() has been done. */
void loop_post(struct loop *loop, struct loop_msg *m);

/* ---- timers ---- */

struct loop_timer {
	struct list node; /* the loop's: sorted list; there are few timers in a loop */
	/* Not a poller's work: a timer neither ends a gap nor makes the loop look on. */
	void (*expired)(struct loop_timer *t);
	uint64_t deadline_ns;
	bool armed;
};

/* (Re)arms t to expire once at clock_now_ns() >= deadline_ns. */
void loop_timer_start(struct loop *loop, struct loop_timer *t, uint64_t deadline_ns);
void loop_timer_stop(struct loop *loop, struct loop_timer *t);

/* ---- the loop itself ---- */

/* Written by the loop's thread, read by any (whole words, possibly a little old). */
struct loop_stats {
	uint64_t passes;
	uint64_t sleeps;
	uint64_t spin_hits;    /* looking on found work before the spin time was over */
	uint64_t spin_misses;  /* it did not, and the loop slept */
	uint64_t time_spun_ns; /* looking without finding */
	uint64_t time_slept_ns;
};

/* limits: of pollers that have none of their own; copied.  NULL when out of memory or fds. */
struct loop *loop_create(const struct poll_policy_limits *limits);
/* It does not run.  Waits for threads that are still inside loop_post() (the message of which has
 * been run); nobody may post any more. */
void loop_destroy(struct loop *loop);

/* Runs until loop_stop().  Sets loop_current() for the thread. */
void loop_run(struct loop *loop);
/* Any thread, or a message: the loop returns from loop_run() after a pass that has run all
 * messages which the caller posted before. */
void loop_stop(struct loop *loop);

/*
 * A loop that is driven by hand, by a thread that waits in its own way: instead of loop_run(), and
 * by one thread at a time.
 *
 * loop_call() runs something as a pass does: the loop is the current one, in a defer section.
 * loop_look() is one pass; true if there was work.  Mostly without a system call.
 * loop_arm() is what comes before sleeping; false: there is work after all, or a timer runs: look
 * again; true: loop_epoll_fd() becomes readable when there is work.  Then look: that also ends
 * being armed.  What loop_call() does to an armed loop is not seen: arm again, or wake.
 * loop_wake() makes the descriptor readable until the next look.
 */
void loop_call(struct loop *loop, void (*run)(void *arg), void *arg);
bool loop_look(struct loop *loop);
bool loop_arm(struct loop *loop) must_check;
void loop_wake(struct loop *loop);
int loop_epoll_fd(const struct loop *loop);

/* The loop that runs on this thread, or NULL. */
struct loop *loop_current(void);

/* Any thread. */
void loop_stats_read(const struct loop *loop, struct loop_stats *out);

/* How it looks when a poller has no limits of its own. */
enum poll_mode loop_mode(const struct loop *loop);

/* Time at the start of the current pass or look; cheap.  The loop's thread. */
uint64_t loop_now_ns(const struct loop *loop);

#endif
