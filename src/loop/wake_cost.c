/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See wake_cost.h.  The only state is the result, written once.
 */
#include "loop/wake_cost.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/fd.h"
#include "loop/thread.h"

#define ROUNDS    50
#define BUDGET_NS 5000000u /* a machine so busy that this is not enough: fewer rounds */

/* Two threads cannot measure that a guest's kick is a VM exit as well, hence the lower bound. */
#define COST_MIN_NS UINT64_C(20000)
#define COST_MAX_NS UINT64_C(200000)

#define LATENCY_MAX_NS     COST_MAX_NS
#define LATENCY_DEFAULT_NS 10000u /* when nothing could be measured */

/* One end of the table: sleeps on its own eventfd, wakes the other's. */
struct side {
	int epoll_fd;
	int own_fd;
	int other_fd;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t latency_ns;

static int side_init(struct side *s, int own_fd, int other_fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	*s = (struct side){
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .own_fd = own_fd, .other_fd = other_fd};
	if (s->epoll_fd < 0)
		return -1;
	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, own_fd, &ev);
}

static void side_wait(const struct side *s)
{
	struct epoll_event ev;

	while (!eventfd_clear(s->own_fd))
		epoll_wait(s->epoll_fd, &ev, 1, -1);
}

/* Answers until the descriptor to wait for carries the sign of the end: a count above one. */
static void *answer(void *arg)
{
	const struct side *s = arg;
	struct epoll_event ev;
	uint64_t count = 0;

	while (count != 2) {
		if (read(s->own_fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
			epoll_wait(s->epoll_fd, &ev, 1, -1);
		else
			eventfd_signal(s->other_fd);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median_half_round(const struct side *s)
{
	uint64_t half[ROUNDS];
	uint64_t start, before, now;
	unsigned n = 0;

	eventfd_signal(s->other_fd);
	side_wait(s); /* the other thread has been started by now */
	start = before = clock_now_ns();
	do {
		eventfd_signal(s->other_fd);
		side_wait(s);
		now = clock_now_ns();
		half[n++] = (now - before) / 2;
		before = now;
	} while (n < ROUNDS && now - start < BUDGET_NS);
	qsort(half, n, sizeof(half[0]), compare);
	return MIN(half[n / 2], LATENCY_MAX_NS);
}

static uint64_t measure_between(struct side *here, struct side *there)
{
	uint64_t end = 2, result;
	pthread_t thread;

	if (thread_start(&thread, answer, there, THREAD_STACK_SMALL, false) < 0)
		return LATENCY_DEFAULT_NS;
	result = median_half_round(here);
	if (write(there->own_fd, &end, sizeof(end)) != (ssize_t)sizeof(end))
		abort(); /* cannot be: the counter is 0, and eventfds take any count but one */
	pthread_join(thread, NULL);
	return result;
}

static void measure(void)
{
	fd_cleanup int a = eventfd_create();
	fd_cleanup int b = eventfd_create();
	struct side here = {.epoll_fd = -1}, there = {.epoll_fd = -1};

	latency_ns = LATENCY_DEFAULT_NS;
	if (a >= 0 && b >= 0 && !side_init(&here, a, b) && !side_init(&there, b, a))
		latency_ns = measure_between(&here, &there);
	fd_close(&here.epoll_fd);
	fd_close(&there.epoll_fd);
}

uint64_t wake_latency_ns(void)
{
	pthread_once(&once, measure);
	return latency_ns;
}

uint64_t wake_cost_ns(void)
{
	uint64_t cost = 3 * wake_latency_ns();

	return MIN(MAX(cost, COST_MIN_NS), COST_MAX_NS);
}
