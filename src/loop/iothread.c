/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See iothread.h.  The struct belongs to the control thread; its loop to the thread.
 */
#include "loop/iothread.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/thread.h"

struct iothread {
	pthread_t thread;
	struct loop *loop;
	char name[16];
};

static void *run(void *arg)
{
	struct iothread *t = arg;

	thread_set_name(t->name);
	loop_run(t->loop);
	return NULL;
}

struct iothread *iothread_create(const char *name, const struct poll_policy_limits *limits,
				 struct error *err)
{
	struct iothread *t = calloc(1, sizeof(*t));
	int ret = -ENOMEM;

	if (t) {
		snprintf(t->name, sizeof(t->name), "%s", name);
		errno = ENOMEM;
		t->loop = loop_create(limits);
		ret = t->loop ? thread_start(&t->thread, run, t, THREAD_STACK_DEFAULT, false)
			      : -errno;
	}
	if (!ret)
		return t;
	error_set(err, ret, "cannot start thread %s: %s", name, strerror(-ret));
	if (t && t->loop)
		loop_destroy(t->loop);
	free(t);
	return NULL;
}

void iothread_destroy(struct iothread *t)
{
	loop_stop(t->loop);
	pthread_join(t->thread, NULL);
	loop_destroy(t->loop);
	free(t);
}

struct loop *iothread_loop(struct iothread *t)
{
	return t->loop;
}

struct sync_call {
	struct loop_msg msg;
	void (*fn)(void *arg);
	void *arg;
	sem_t finished;
};

static void tell_finished(struct loop_msg *m)
{
	sem_post(&container_of(m, struct sync_call, msg)->finished);
}

static void run_sync(struct loop_msg *m)
{
	struct sync_call *call = container_of(m, struct sync_call, msg);

	call->fn(call->arg);
	/* What fn has noted with defer_call() is done at the end of this pass: tell in the next. */
	call->msg.run = tell_finished;
	loop_post(loop_current(), &call->msg);
}

void iothread_run_sync(struct iothread *t, void (*fn)(void *arg), void *arg)
{
	struct sync_call call = {.msg.run = run_sync, .fn = fn, .arg = arg};

	ASSERT(loop_current() != t->loop);
	sem_init(&call.finished, 0, 0);
	loop_post(t->loop, &call.msg);
	while (sem_wait(&call.finished) < 0)
		ASSERT(errno == EINTR);
	sem_destroy(&call.finished);
}
