/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/crew.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "bench/interrupt.h"

/* The watching thread disturbs the others as little as it can. */
#define WATCH_NS UINT64_C(250000000)

struct crew_member {
	struct crew *crew;
	struct job *job;
	int cpu;
	pthread_t thread;
};

int crew_init(struct crew *c, unsigned count, struct error *err)
{
	memset(c, 0, sizeof(*c));
	sem_init(&c->go, 0, 0);
	sem_init(&c->done, 0, 0);
	c->count = count;
	c->jobs = aligned_alloc(_Alignof(struct job), count * sizeof(*c->jobs));
	c->cpus = calloc(count, sizeof(*c->cpus));
	c->members = calloc(count, sizeof(*c->members));
	if (!c->jobs)
		c->count = 0;
	if (!c->jobs || !c->cpus || !c->members)
		return error_set(err, -ENOMEM, "out of memory for %u jobs", count);
	memset(c->jobs, 0, count * sizeof(*c->jobs));
	return 0;
}

void crew_fini(struct crew *c)
{
	for (unsigned i = 0; i < c->count; i++)
		job_fini(&c->jobs[i]);
	free(c->jobs);
	free(c->cpus);
	free(c->members);
	memset(c, 0, sizeof(*c));
}

static void *thread_main(void *arg)
{
	struct crew_member *m = arg;
	struct crew *c = m->crew;
	cpu_set_t cpus;

	if (m->cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET(m->cpu, &cpus);
		/* Checked before: it may only fail when the machine has changed. */
		sched_setaffinity(0, sizeof(cpus), &cpus);
	}
	/* Timers of an open loop are not put off to meet others. */
	prctl(PR_SET_TIMERSLACK, 1);
	while (sem_wait(&c->go) < 0 && errno == EINTR)
		continue;
	job_run(m->job);
	if (m->job->broken || m->job->fault.kind != VERIFY_GOOD)
		atomic_store_relaxed(&c->window.stop, 1); /* relaxed: see struct job_window */
	sem_post(&c->done);
	return NULL;
}

/* Signals go to the thread that watches. */
static int start_all(struct crew *c, struct error *err)
{
	int ret = 0;

	interrupt_block();
	for (unsigned i = 0; i < c->count && ret == 0; i++) {
		struct crew_member *m = &c->members[i];

		*m = (struct crew_member){.crew = c, .job = &c->jobs[i], .cpu = c->cpus[i]};
		c->jobs[i].window = &c->window;
		ret = pthread_create(&m->thread, NULL, thread_main, m);
		if (ret == 0)
			c->started++;
	}
	interrupt_unblock();
	return ret ? error_set(err, -ret, "cannot start %u threads: %s", c->count, strerror(ret))
		   : 0;
}

static uint64_t requests_so_far(const struct crew *c)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < c->count; i++)
		n += atomic_load_relaxed(&c->jobs[i].latency->count); /* relaxed: for a person */
	return n;
}

/* Until that time, or all have ended, or somebody interrupts. */
static void watch(struct crew *c, uint64_t until_ns, struct bench_progress *progress)
{
	uint64_t now_ns = clock_now_ns();

	while (now_ns < until_ns && c->ended < c->started) {
		uint64_t next_ns = MIN(until_ns, now_ns + WATCH_NS);
		struct timespec ts = {(time_t)(next_ns / 1000000000), (long)(next_ns % 1000000000)};

		if (sem_clockwait(&c->done, CLOCK_MONOTONIC, &ts) == 0)
			c->ended++;
		if (interrupted())
			atomic_store_relaxed(&c->window.stop, 1); /* relaxed: as above */
		now_ns = clock_now_ns();
		if (now_ns >= next_ns)
			progress_show(progress, now_ns, requests_so_far(c));
	}
}

static void join_all(struct crew *c)
{
	for (unsigned i = 0; i < c->started; i++)
		pthread_join(c->members[i].thread, NULL);
	c->started = 0;
	sem_destroy(&c->go);
	sem_destroy(&c->done);
}

int crew_work(struct crew *c, uint64_t ramp_ns, uint64_t runtime_ns, int server_pid,
	      struct bench_progress *progress, struct error *err)
{
	int ret = start_all(c, err);

	c->window.begin_ns = clock_now_ns() + ramp_ns;
	c->window.end_ns = runtime_ns ? c->window.begin_ns + runtime_ns : UINT64_MAX;
	if (ret < 0)
		atomic_store_relaxed(&c->window.stop, 1); /* relaxed: sem_post orders */
	bench_cpu_read(server_pid, &c->before);
	for (unsigned i = 0; i < c->started; i++)
		sem_post(&c->go);
	if (ramp_ns) {
		watch(c, c->window.begin_ns, progress);
		bench_cpu_read(server_pid, &c->before);
	}
	watch(c, c->window.end_ns, progress);
	bench_cpu_read(server_pid, &c->after);
	watch(c, UINT64_MAX, progress);
	join_all(c);
	return ret;
}
