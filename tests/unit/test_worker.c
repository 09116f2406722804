/* SPDX-License-Identifier: Apache-2.0 */
/* The worker pool: items come back to their loop, threads are started and end as needed. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "loop/iothread.h"
#include "loop/worker.h"

#define MS 1000000u

static const struct poll_policy_limits off = {.mode = POLL_OFF};

struct job {
	struct worker_item item;
	struct loop *loop;
	sem_t *started; /* told when work begins */
	sem_t *gate;    /* waited for in work */
	unsigned *left; /* the loop's */
	bool worked;
};

static void job_work(struct worker_item *w)
{
	struct job *j = container_of(w, struct job, item);

	assert_null(loop_current());
	if (j->started)
		sem_post(j->started);
	if (j->gate)
		sem_wait(j->gate);
	j->worked = true;
}

static void job_done(struct worker_item *w)
{
	struct job *j = container_of(w, struct job, item);

	assert_true(j->worked);
	assert_ptr_equal(loop_current(), j->loop);
	if (!--*j->left)
		loop_stop(j->loop);
}

struct submit {
	struct loop_msg msg;
	struct worker_pool *pool;
	struct job *jobs;
	unsigned n;
};

static void submit_run(struct loop_msg *m)
{
	struct submit *s = container_of(m, struct submit, msg);

	for (unsigned i = 0; i < s->n; i++)
		worker_submit(s->pool, &s->jobs[i].item);
}

#define JOBS 200

static void jobs_init(struct job *jobs, unsigned n, struct loop *loop, unsigned *left, sem_t *gate,
		      sem_t *started)
{
	for (unsigned i = 0; i < n; i++)
		jobs[i] = (struct job){.item = {.work = job_work, .done = job_done},
				       .loop = loop,
				       .left = left,
				       .gate = gate,
				       .started = started};
	*left += n;
}

static void test_items_come_back(void **state)
{
	static struct job jobs[JOBS];
	struct worker_pool *pool = worker_pool_create(8);
	struct loop *loop = loop_create(&off);
	struct submit s = {{.run = submit_run}, pool, jobs, JOBS};
	unsigned left = 0;

	for (unsigned round = 0; round < 20; round++) {
		jobs_init(jobs, JOBS, loop, &left, NULL, NULL);
		s.msg.run = submit_run;
		loop_post(loop, &s.msg);
		loop_run(loop);
		assert_int_equal(left, 0);
		assert_in_range(worker_pool_threads(pool), 1, 8);
	}
	worker_pool_destroy(pool);
	loop_destroy(loop);
}

/* As many block as threads are allowed; the rest wait, and no thread more is started. */
static void *open_gate(void *arg)
{
	struct submit *s = arg;

	for (unsigned i = 0; i < 4; i++)
		sem_wait(s->jobs[0].started);
	assert_int_equal(worker_pool_threads(s->pool), 4);
	assert_int_equal(sem_trywait(s->jobs[0].started), -1);
	for (unsigned i = 0; i < s->n; i++)
		sem_post(s->jobs[0].gate);
	return NULL;
}

static void test_limit(void **state)
{
	static struct job jobs[20];
	struct worker_pool *pool = worker_pool_create(4);
	struct loop *loop = loop_create(&off);
	struct submit s = {{.run = submit_run}, pool, jobs, 20};
	unsigned left = 0;
	sem_t gate, started;
	pthread_t thread;

	sem_init(&gate, 0, 0);
	sem_init(&started, 0, 0);
	jobs_init(jobs, 20, loop, &left, &gate, &started);
	loop_post(loop, &s.msg);
	pthread_create(&thread, NULL, open_gate, &s);
	loop_run(loop);
	pthread_join(thread, NULL);
	assert_int_equal(left, 0);
	worker_pool_destroy(pool);
	loop_destroy(loop);
	sem_destroy(&gate);
	sem_destroy(&started);
}

static bool wait_threads(struct worker_pool *pool, unsigned n)
{
	for (unsigned i = 0; i < 10000; i++) {
		if (worker_pool_threads(pool) == n)
			return true;
		usleep(1000);
	}
	return false;
}

/* Idle threads end, but not the last one while another is blocked: who would take the next item? */
static void *late_job(void *arg)
{
	struct submit *s = arg;

	sem_wait(s->jobs[0].started);
	assert_true(wait_threads(s->pool, 2));
	usleep(50000); /* several times the idle time */
	assert_int_equal(worker_pool_threads(s->pool), 2);
	s[1].msg.run = submit_run;
	loop_post(s->jobs[0].loop, &s[1].msg);
	sem_wait(s->jobs[1].started);
	sem_post(s->jobs[0].gate);
	return NULL;
}

static void test_idle_threads_end(void **state)
{
	static struct job jobs[2];
	struct worker_pool *pool = worker_pool_create(4);
	struct loop *loop = loop_create(&off);
	struct submit s[2] = {{{.run = submit_run}, pool, jobs, 1},
			      {{.run = submit_run}, pool, jobs + 1, 1}};
	unsigned left = 0;
	sem_t gate, started[2];
	pthread_t thread;

	worker_pool_set_idle_ns(pool, 10 * MS);
	sem_init(&gate, 0, 0);
	sem_init(&started[0], 0, 0);
	sem_init(&started[1], 0, 0);
	jobs_init(jobs, 1, loop, &left, &gate, &started[0]);
	jobs_init(jobs + 1, 1, loop, &left, NULL, &started[1]);
	loop_post(loop, &s[0].msg);
	pthread_create(&thread, NULL, late_job, s);
	loop_run(loop);
	pthread_join(thread, NULL);
	assert_int_equal(left, 0);
	assert_true(wait_threads(pool, 0));
	worker_pool_destroy(pool);
	loop_destroy(loop);
	sem_destroy(&gate);
	sem_destroy(&started[0]);
	sem_destroy(&started[1]);
}

struct told_job {
	struct worker_item item;
	uint32_t done;
};

static void nothing(struct worker_item *w)
{
}

static void told_done(struct worker_item *w)
{
	atomic_store_release(&container_of(w, struct told_job, item)->done, 1u);
}

static void submit_told(void *arg)
{
	worker_submit(worker_pool_default(), &((struct told_job *)arg)->item);
}

/* The loop goes away as soon as its item is back, while the worker is perhaps still posting it. */
static void test_loop_goes_after_last_item(void **state)
{
	struct error err;

	for (unsigned i = 0; i < 200; i++) {
		struct told_job j = {.item = {.work = nothing, .done = told_done}};
		struct iothread *t = iothread_create("short-lived", &off, &err);

		assert_non_null(t);
		iothread_run_sync(t, submit_told, &j);
		while (!atomic_load_acquire(&j.done))
			sched_yield();
		iothread_destroy(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_items_come_back),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_idle_threads_end),
		cmocka_unit_test(test_loop_goes_after_last_item),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
