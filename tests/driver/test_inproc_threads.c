/* SPDX-License-Identifier: Apache-2.0 */
/* file: targets and threads: a queue a thread, and who closes is another one. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "driver/driver_rig.h"

#define MIB     1048576u
#define AREA    512u /* blocks that a worker has */
#define THREADS 3

static const char *const engines[] = {"memory", "threads", "linux-aio", "io_uring"};

static char image[] = "/tmp/ringside-inproc-XXXXXX";
static char other[] = "/tmp/ringside-inproc-XXXXXX";
static char target[256];

static const char *target_of(unsigned engine, const char *more)
{
	snprintf(target, sizeof(target), "file:%s?engine=%s%s%s", engine ? image : "",
		 engines[engine], engine ? "" : "&size=4M", more);
	return target;
}

struct worker {
	pthread_t thread;
	struct ringside_device *dev;
	struct ringside_queue *queue;
	char *memory;
	uint64_t base; /* of its part of the disk */
	unsigned requests;
	const char *wrong;
	sem_t submitted, go_on;
};

static struct ringside_device *open_workers(unsigned engine, struct worker *workers, unsigned n,
					    const char *more)
{
	struct ringside_options o = RINGSIDE_OPTIONS_INIT;
	struct ringside_device *dev;

	o.queues = n;
	dev = drv_open(target_of(engine, more), &o);
	for (unsigned i = 0; i < n; i++) {
		struct worker *w = &workers[i];

		*w = (struct worker){.dev = dev,
				     .queue = ringside_queue(dev, i),
				     .memory = drv_memory(dev, MIB),
				     .base = i * AREA * 512};
		sem_init(&w->submitted, 0, 0);
		sem_init(&w->go_on, 0, 0);
	}
	return dev;
}

static void start(struct worker *w, void *(*run)(void *arg))
{
	assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

/* ---- each its own queue ---- */

static const char *one_round(struct worker *w, unsigned round)
{
	struct ringside_completion done[16];
	enum drv_mode mode = round / 10 % DRV_MODES;
	unsigned n = 1 + round % 16;
	int error;

	for (unsigned i = 0; i < n; i++) {
		unsigned block = (round * 29 + i) % AREA;

		memset(w->memory + i * 512, (int)(round + i), 512);
		if (ringside_write(w->queue, w->base + block * 512, w->memory + i * 512, 512, NULL))
			return "write";
	}
	ringside_submit(w->queue);
	if (drv_collect(w->queue, mode, done, n, &error) != n)
		return "completions";
	for (unsigned i = 0; i < n; i++) {
		unsigned block = (round * 29 + i) % AREA;

		if (ringside_read(w->queue, w->base + block * 512, w->memory + 8192 + i * 512, 512,
				  NULL))
			return "read";
	}
	ringside_submit(w->queue);
	if (drv_collect(w->queue, mode, done, n, &error) != n)
		return "completions";
	return memcmp(w->memory, w->memory + 8192, n * 512) ? "data" : NULL;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned round = 0; round < 160 && !w->wrong; round++)
		w->wrong = one_round(w, round);
	return NULL;
}

/* A third thread that gives and takes memory meanwhile. */
static void *change_memory(void *arg)
{
	struct worker *w = arg;
	struct ringside_error err;
	void *p;

	for (unsigned i = 0; i < 100 && !w->wrong; i++) {
		if (ringside_memory_alloc(w->dev, 4096u << i % 4, &p, &err) < 0 ||
		    ringside_memory_free(w->dev, p, &err) < 0)
			w->wrong = "memory";
		drv_info(w->dev);
	}
	return NULL;
}

static void test_a_queue_a_thread(void **state)
{
	for (unsigned e = 0; e < ARRAY_SIZE(engines); e++) {
		struct worker workers[THREADS];
		struct ringside_device *dev = open_workers(e, workers, THREADS, "");

		for (unsigned i = 0; i < THREADS; i++)
			start(&workers[i], i ? work : change_memory);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(workers[i].thread, NULL);
		for (unsigned i = 0; i < THREADS; i++) {
			if (workers[i].wrong)
				fail_msg("%s: thread %u: %s", engines[e], i, workers[i].wrong);
		}
		ringside_close(dev);
	}
}

/* ---- closed by another ---- */

/* Leaves some in flight, and goes only when it may. */
static void *use(void *arg)
{
	struct worker *w = arg;

	w->wrong = one_round(w, 3);
	for (unsigned i = 0; i < w->requests; i++) {
		if (ringside_read(w->queue, w->base + i * 4096, w->memory + i * 4096, 4096, NULL))
			w->wrong = "read";
	}
	ringside_submit(w->queue);
	sem_post(&w->submitted);
	sem_wait(&w->go_on);
	return NULL;
}

/* The closing thread has a queue of its own, which goes on as if nothing had been. */
static void close_by_another(unsigned engine, unsigned requests, bool gone)
{
	struct worker w;
	struct ringside_device *mine;
	struct ringside_device *dev = open_workers(engine, &w, 1, "");
	struct ringside_completion done;
	struct ringside_queue *own;
	char text[64], *buf;
	uint64_t before;

	w.requests = requests;
	snprintf(text, sizeof(text), "file:%s?engine=io_uring", other);
	mine = drv_open(text, NULL);
	own = ringside_queue(mine, 0);
	buf = drv_memory(mine, 4096);
	assert_int_equal(ringside_read(own, 0, buf, 4096, NULL), 0);
	assert_int_equal(drv_finish(own), 0);
	start(&w, use);
	sem_wait(&w.submitted);
	if (gone) {
		sem_post(&w.go_on);
		pthread_join(w.thread, NULL);
	}
	assert_int_equal(ringside_read(own, 0, buf, 4096, NULL), 0);
	ringside_submit(own);
	before = clock_now_ns();
	ringside_close(dev);
	/* It has waited for what was in flight, not for its time to be over. */
	assert_true(clock_now_ns() - before < 4000000000);
	assert_int_equal(ringside_wait(own, &done, 1, 1, -1), 1);
	assert_int_equal(done.result, 0);
	assert_int_equal(ringside_read(own, 0, buf, 4096, NULL), 0);
	assert_int_equal(drv_finish(own), 0);
	ringside_close(mine);
	if (!gone) {
		sem_post(&w.go_on);
		pthread_join(w.thread, NULL);
	}
	if (w.wrong)
		fail_msg("%s: %s", engines[engine], w.wrong);
}

static void test_closed_by_another(void **state)
{
	unsigned fds = drv_fds();

	for (unsigned e = 0; e < ARRAY_SIZE(engines); e++) {
		for (unsigned kind = 0; kind < 4; kind++)
			close_by_another(e, kind & 1 ? 128 : 0, kind & 2);
	}
	drv_expect_fds(fds);
}

static int make(char *path)
{
	int fd = mkstemp(path);

	return fd < 0 || ftruncate(fd, 4 * MIB) < 0 ? -1 : close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_queue_a_thread),
		cmocka_unit_test(test_closed_by_another),
	};
	int ret;

	if (make(image) < 0 || make(other) < 0)
		return 1;
	drv_no_hang();
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(image);
	unlink(other);
	return ret;
}
