/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop's insides, shared by its own files: loop.c (the pass), loop_fd.c (epoll), loop_poll.c
 * (the poll set), loop_timer.c.
 */
#ifndef LOOP_LOOP_INTERNAL_H
#define LOOP_LOOP_INTERNAL_H

#include <sys/epoll.h>

#include "loop/loop.h"

#define LOOP_EVENTS 64 /* taken from epoll at once */

struct loop {
	/* Touched by threads that post. */
	struct mpsc messages;
	uint32_t sleeping; /* [LOOP1] a poster must write wake.fd */
	uint32_t stop;
	uint32_t posters; /* threads inside loop_post() or loop_stop() */

	/* The loop's thread only, from here on. */
	cacheline_aligned uint64_t now_ns; /* at the last clock reading */
	uint64_t timer_ns;                 /* the first timer's deadline; UINT64_MAX: none */
	unsigned looks_left;               /* passes until the clock is read again */
	unsigned busy_passes;              /* since epoll was asked */
	uint64_t fds_seen_ns;              /* when epoll was asked */

	struct list active;  /* the poll set */
	struct list idle;    /* the other pollers, armed */
	struct list *cursor; /* the node being polled; moves back when that is removed */
	unsigned active_count;
	uint64_t polled_ns; /* when they were looked at */
	bool woken;         /* a poller has joined and has not been looked at */
	bool spin_known;    /* spin_ns is up to date with the poll set */
	bool spinning;      /* found nothing and looks on */
	bool spun;          /* since idle_since_ns: looked on */
	bool slept;         /* since idle_since_ns */
	bool armed;         /* by hand, and not looked since: epoll may have something */

	uint64_t idle_since_ns;  /* found nothing since then; 0: found something */
	uint64_t sleep_since_ns; /* armed and slept (last) at */
	uint64_t spin_ns;        /* how long to look from idle_since_ns on */
	uint64_t wake_latency_ns;

	struct poll_policy_limits limits; /* for pollers without their own */
	struct poll_policy policy;        /* learns the gaps, whatever the limits */

	struct list timers; /* by deadline */

	int epoll_fd;
	bool no_pwait2;   /* the kernel lacks epoll_pwait2 */
	int events_count; /* events[0..count) wait to be dispatched */
	struct loop_fd wake;
	struct epoll_event events[LOOP_EVENTS];

	struct loop_stats stats;
};

/* loop_fd.c */

/* Waits until an fd is ready or deadline_ns has come (UINT64_MAX: no end). */
void loop_fds_wait(struct loop *loop, uint64_t now_ns, uint64_t deadline_ns);
/* Asks epoll without waiting, unless there are events already. */
void loop_fds_look(struct loop *loop);
/* Calls ready for what wait or look have brought. */
void loop_fds_dispatch(struct loop *loop);

/* loop_poll.c */

/* One look of every poller in the poll set.  True if one found work. */
bool loop_poll_all(struct loop *loop);
/* Pollers that have found nothing for long leave the poll set. */
void loop_poll_retire(struct loop *loop);
/* The longest time that a poller in the poll set wants to be looked at. */
uint64_t loop_poll_spin_ns(const struct loop *loop);
/* Arms all and empties the poll set; false if there is work after all (then the set stays). */
bool loop_poll_arm(struct loop *loop) must_check;
/* All are in the poll set again. */
void loop_poll_disarm(struct loop *loop);

/* loop_timer.c */

void loop_timers_run(struct loop *loop);

#endif
