/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File descriptors of a loop: epoll, level-triggered.
 */
#include <errno.h>

#include "loop/loop_internal.h"

static int control(struct loop *loop, int op, struct loop_fd *lf, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = lf};

	return epoll_ctl(loop->epoll_fd, op, lf->fd, &ev) < 0 ? -errno : 0;
}

int loop_add_fd(struct loop *loop, struct loop_fd *lf, uint32_t events)
{
	int ret;

	ASSERT(!lf->added);
	ret = control(loop, EPOLL_CTL_ADD, lf, events);
	lf->added = !ret;
	return ret;
}

int loop_modify_fd(struct loop *loop, struct loop_fd *lf, uint32_t events)
{
	ASSERT(lf->added);
	return control(loop, EPOLL_CTL_MOD, lf, events);
}

void loop_remove_fd(struct loop *loop, struct loop_fd *lf)
{
	if (!lf->added)
		return;
	control(loop, EPOLL_CTL_DEL, lf, 0);
	lf->added = false;
	/* What epoll has told already and has not been dispatched must not reach the owner. */
	for (int i = 0; i < loop->events_count; i++) {
		if (loop->events[i].data.ptr == lf)
			loop->events[i].data.ptr = NULL;
	}
}

static int wait_ns(struct loop *loop, uint64_t timeout_ns)
{
	struct timespec ts = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
			      .tv_nsec = (long)(timeout_ns % 1000000000u)};
	uint64_t timeout_ms = timeout_ns / 1000000u + (timeout_ns % 1000000u != 0);
	int n;

	if (!loop->no_pwait2) {
		n = epoll_pwait2(loop->epoll_fd, loop->events, LOOP_EVENTS, &ts, NULL);
		/* EPERM: a system call filter that does not know it. */
		if (n >= 0 || (errno != ENOSYS && errno != EPERM))
			return n;
		loop->no_pwait2 = true;
	}
	return epoll_wait(loop->epoll_fd, loop->events, LOOP_EVENTS,
			  (int)MIN(timeout_ms, (uint64_t)INT32_MAX));
}

static void take(struct loop *loop, int n)
{
	ASSERT(n >= 0 || errno == EINTR);
	loop->events_count = MAX(n, 0);
}

void loop_fds_wait(struct loop *loop, uint64_t now_ns, uint64_t deadline_ns)
{
	if (deadline_ns == UINT64_MAX)
		take(loop, epoll_wait(loop->epoll_fd, loop->events, LOOP_EVENTS, -1));
	else
		take(loop, wait_ns(loop, deadline_ns > now_ns ? deadline_ns - now_ns : 0));
}

void loop_fds_look(struct loop *loop)
{
	if (!loop->events_count)
		take(loop, epoll_wait(loop->epoll_fd, loop->events, LOOP_EVENTS, 0));
}

void loop_fds_dispatch(struct loop *loop)
{
	for (int i = 0; i < loop->events_count; i++) {
		struct loop_fd *lf = loop->events[i].data.ptr;

		if (lf)
			lf->ready(lf, loop->events[i].events);
	}
	loop->events_count = 0;
}
