/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver_rig.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <cmocka.h>

const char *const drv_mode_names[] = {"poll", "wait", "hybrid", "loop"};

struct ringside_device *drv_open(const char *target, const struct ringside_options *options)
{
	struct ringside_device *dev = NULL;
	struct ringside_error err = {""};
	int ret = ringside_open(target, options, &dev, &err);

	if (ret < 0)
		fail_msg("%s: %d: %s", target, ret, err.text);
	return dev;
}

char *drv_memory(struct ringside_device *dev, size_t len_bytes)
{
	struct ringside_error err = {""};
	void *p = NULL;
	int ret = ringside_memory_alloc(dev, len_bytes, &p, &err);

	if (ret < 0)
		fail_msg("memory: %d: %s", ret, err.text);
	return p;
}

struct ringside_info drv_info(const struct ringside_device *dev)
{
	struct ringside_info info = {.struct_bytes = sizeof(info)};

	ringside_info(dev, &info);
	return info;
}

struct ringside_stats drv_stats(const struct ringside_queue *q)
{
	struct ringside_stats stats = {.struct_bytes = sizeof(stats)};

	ringside_queue_stats(q, &stats);
	return stats;
}

/* As the header says that a caller's loop does. */
static int loop_once(struct ringside_queue *q, struct ringside_completion *out, unsigned max)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);
	int n;

	assert_true(fd >= 0);
	assert_int_equal(epoll_ctl(fd, EPOLL_CTL_ADD, ringside_queue_fd(q), &ev), 0);
	if (!ringside_arm(q))
		while (epoll_wait(fd, &ev, 1, -1) != 1)
			;
	n = ringside_poll(q, out, max);
	close(fd);
	return n;
}

static int once(struct ringside_queue *q, enum drv_mode mode, struct ringside_completion *out,
		unsigned max)
{
	switch (mode) {
	case DRV_WAIT:
		return ringside_wait(q, out, max, 1, -1);
	case DRV_HYBRID:
		return ringside_hybrid(q, out, max, 1, -1);
	case DRV_LOOP:
		return loop_once(q, out, max);
	default:
		return ringside_poll(q, out, max);
	}
}

unsigned drv_collect(struct ringside_queue *q, enum drv_mode mode, struct ringside_completion *out,
		     unsigned n, int *error)
{
	unsigned got = 0;

	*error = 0;
	while (got < n) {
		int ret = once(q, mode, out + got, n - got);

		if (ret < 0) {
			*error = ret;
			break;
		}
		got += (unsigned)ret;
	}
	return got;
}

int drv_finish(struct ringside_queue *q)
{
	struct ringside_completion done = {.result = -1};
	int n;

	ringside_submit(q);
	n = ringside_wait(q, &done, 1, 1, -1);
	if (n < 0)
		return n;
	assert_int_equal(n, 1);
	return done.result;
}

unsigned drv_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

void drv_expect_fds(unsigned n)
{
	for (unsigned i = 0; i < 10000 && drv_fds() != n; i++)
		usleep(1000);
	assert_int_equal(drv_fds(), n);
}

void drv_fill(void *buf, size_t len, uint32_t seed)
{
	unsigned char *p = buf;
	uint32_t x = seed * 2654435761u + 1;

	for (size_t i = 0; i < len; i++) {
		x = x * 1664525u + 1013904223u;
		p[i] = (unsigned char)(x >> 24);
	}
}

void drv_no_hang(void)
{
	alarm(getenv("RINGSIDE_SANITIZED") ? 600 : 120);
}
