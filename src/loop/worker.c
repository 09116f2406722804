/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See worker.h.  Everything in the pool is under its lock; an item in hand is its thread's.
 *
 * A thread that takes an item and leaves nobody idle starts the next thread before it works, so
 * that a submitter finds an idle one and need not start it by itself, save for the first.  For the
 * same reason the last idle thread does not end while others work.
 */
#include "loop/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "loop/thread.h"

#define IDLE_NS             10000000000u
#define DEFAULT_MAX_THREADS 64

struct worker_pool {
	pthread_mutex_t lock;
	pthread_cond_t work; /* queue is not empty, or stopping */
	pthread_cond_t gone; /* threads has become 0 */
	struct slist queue;
	uint64_t idle_ns;
	unsigned max_threads;
	unsigned threads;
	unsigned idle; /* of the threads: waiting for work */
	bool stopping;
	bool complained; /* that no thread can be started */
};

static void *worker_main(void *arg);

struct worker_pool *worker_pool_create(unsigned max_threads)
{
	struct worker_pool *pool = calloc(1, sizeof(*pool));
	pthread_condattr_t monotonic;

	if (!pool)
		return NULL;
	ASSERT(max_threads > 0);
	pool->max_threads = max_threads;
	pool->idle_ns = IDLE_NS;
	slist_init(&pool->queue);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&pool->work, &monotonic);
	pthread_cond_init(&pool->gone, NULL);
	pthread_condattr_destroy(&monotonic);
	return pool;
}

void worker_pool_destroy(struct worker_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	ASSERT(slist_empty(&pool->queue));
	pool->stopping = true;
	pthread_cond_broadcast(&pool->work);
	while (pool->threads)
		pthread_cond_wait(&pool->gone, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
	pthread_cond_destroy(&pool->gone);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

void worker_pool_set_idle_ns(struct worker_pool *pool, uint64_t idle_ns)
{
	pthread_mutex_lock(&pool->lock);
	pool->idle_ns = idle_ns;
	pthread_mutex_unlock(&pool->lock);
}

unsigned worker_pool_threads(struct worker_pool *pool)
{
	unsigned n;

	pthread_mutex_lock(&pool->lock);
	n = pool->threads;
	pthread_mutex_unlock(&pool->lock);
	return n;
}

/* Called without the lock, which is why the thread was counted before: it is taken back here. */
static bool start_counted(struct worker_pool *pool)
{
	bool complain = false;
	pthread_t thread;
	int ret;

	ret = thread_start(&thread, worker_main, pool, THREAD_STACK_SMALL, true);
	if (!ret)
		return true;
	pthread_mutex_lock(&pool->lock);
	pool->threads--;
	complain = !pool->complained;
	pool->complained = true;
	pthread_mutex_unlock(&pool->lock);
	if (complain)
		log_warn("cannot start a worker thread: %s", strerror(-ret));
	return false;
}

/* With the lock: is another thread needed and allowed?  If so it is counted. */
static bool count_another(struct worker_pool *pool)
{
	if (pool->idle || pool->threads >= pool->max_threads || pool->stopping)
		return false;
	pool->threads++;
	return true;
}

static void item_done(struct loop_msg *m)
{
	struct worker_item *w = container_of(m, struct worker_item, msg);

	w->done(w);
}

static void item_run(struct worker_item *w)
{
	w->work(w);
	w->msg.run = item_done;
	loop_post(w->loop, &w->msg);
}

static struct timespec after_ns(uint64_t ns)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += (time_t)(ns / 1000000000u);
	ts.tv_nsec += (long)(ns % 1000000000u);
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_nsec -= 1000000000;
		ts.tv_sec++;
	}
	return ts;
}

/* With the lock, which it gives up while it waits.  An item, or NULL when it is time to end. */
static struct worker_item *wait_for_item(struct worker_pool *pool)
{
	struct timespec until = after_ns(pool->idle_ns);
	struct slist_node *node;

	while (!(node = slist_pop_front(&pool->queue))) {
		int ret;

		if (pool->stopping)
			return NULL;
		pool->idle++;
		ret = pthread_cond_timedwait(&pool->work, &pool->lock, &until);
		pool->idle--;
		if (ret != ETIMEDOUT || !slist_empty(&pool->queue))
			continue;
		if (pool->idle || pool->threads == 1)
			return NULL;
		until = after_ns(pool->idle_ns);
	}
	return container_of(node, struct worker_item, node);
}

static void *worker_main(void *arg)
{
	struct worker_pool *pool = arg;
	struct worker_item *w;

	thread_set_name("worker");
	pthread_mutex_lock(&pool->lock);
	while ((w = wait_for_item(pool))) {
		bool another = count_another(pool);

		pthread_mutex_unlock(&pool->lock);
		if (another)
			start_counted(pool);
		item_run(w);
		pthread_mutex_lock(&pool->lock);
	}
	if (!--pool->threads)
		pthread_cond_broadcast(&pool->gone);
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* The last resort: without any thread the item would wait for ever. */
static void run_here(struct worker_pool *pool)
{
	struct slist_node *node;

	pthread_mutex_lock(&pool->lock);
	node = pool->threads ? NULL : slist_pop_front(&pool->queue);
	pthread_mutex_unlock(&pool->lock);
	if (node)
		item_run(container_of(node, struct worker_item, node));
}

void worker_submit(struct worker_pool *pool, struct worker_item *w)
{
	bool another;

	w->loop = loop_current();
	ASSERT(w->loop);
	pthread_mutex_lock(&pool->lock);
	slist_push_back(&pool->queue, &w->node);
	/* Any thread that exists comes to the item or starts another before it works. */
	another = !pool->threads && count_another(pool);
	pthread_cond_signal(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	if (another && !start_counted(pool))
		run_here(pool);
}

static struct worker_pool *default_pool;
static pthread_once_t default_once = PTHREAD_ONCE_INIT;

static void create_default(void)
{
	default_pool = worker_pool_create(DEFAULT_MAX_THREADS);
}

struct worker_pool *worker_pool_default(void)
{
	pthread_once(&default_once, create_default);
	return default_pool;
}
