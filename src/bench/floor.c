/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/floor.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fd.h"

#define ROUNDS        15
#define LINE_TRIPS    2000
#define EVENTFD_TRIPS 100
#define SYSTEM_CALLS  2000
/* On a machine so busy that a round takes long, what has been measured by then has to do. */
#define LIMIT_NS 250000000ull

/* What goes to the other thread as the last. */
#define STOP UINT32_MAX

struct pair {
	uint32_t word cacheline_aligned; /* odd: ours to answer; even: answered */
	int there cacheline_aligned;     /* eventfds */
	int back;
};

/* ---- where ---- */

/* A number from the processor's folder in sysfs, or -1. */
static int topology(int cpu, const char *what)
{
	char path[128];
	int value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &value) != 1)
		value = -1;
	fclose(f);
	return value;
}

/* 2: another core of the same package; 1: another package, or nobody knows; 0: the same core. */
static int distance_rank(int a, int b)
{
	int core = topology(a, "core_id"), package = topology(a, "physical_package_id");

	if (core < 0 || package != topology(b, "physical_package_id"))
		return 1;
	return core != topology(b, "core_id") ? 2 : 0;
}

int bench_floor_cpus(int cpus[2])
{
	int best = -1;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	cpus[0] = -1;
	for (int cpu = 0; cpu < CPU_SETSIZE && best < 2; cpu++) {
		int rank;

		if (!CPU_ISSET(cpu, &set))
			continue;
		if (cpus[0] < 0) {
			cpus[0] = cpu;
			continue;
		}
		rank = distance_rank(cpus[0], cpu);
		if (rank > best) {
			best = rank;
			cpus[1] = cpu;
		}
	}
	return best < 0 ? -EOPNOTSUPP : 0;
}

/* ---- the other side ---- */

static void *answer_line(void *arg)
{
	struct pair *p = arg;

	/* relaxed, here and on the other side: nothing is passed but the word itself. */
	for (uint32_t expected = 1;; expected += 2) {
		uint32_t word;

		do {
			word = atomic_load_relaxed(&p->word);
			if (word == STOP)
				return NULL;
		} while (word != expected);
		atomic_store_relaxed(&p->word, expected + 1);
	}
}

static void *answer_eventfd(void *arg)
{
	struct pair *p = arg;
	eventfd_t value;

	while (!eventfd_read(p->there, &value) && value < STOP)
		eventfd_write(p->back, 1);
	return NULL;
}

/* ---- this side: one round each, in nanoseconds for one ---- */

static double line_round(struct pair *p)
{
	uint64_t start = clock_now_ns();
	uint32_t word = atomic_load_relaxed(&p->word); /* relaxed: as in answer_line() */

	for (unsigned i = 0; i < LINE_TRIPS; i++) {
		atomic_store_relaxed(&p->word, ++word);
		word++;
		while (atomic_load_relaxed(&p->word) != word)
			;
	}
	return (double)(clock_now_ns() - start) / LINE_TRIPS;
}

static double eventfd_round(struct pair *p)
{
	uint64_t start = clock_now_ns();
	eventfd_t value;

	for (unsigned i = 0; i < EVENTFD_TRIPS; i++) {
		eventfd_write(p->there, 1);
		eventfd_read(p->back, &value);
	}
	return (double)(clock_now_ns() - start) / EVENTFD_TRIPS;
}

static double system_call_round(struct pair *p)
{
	uint64_t start = clock_now_ns();

	for (unsigned i = 0; i < SYSTEM_CALLS; i++)
		syscall(SYS_getppid);
	return (double)(clock_now_ns() - start) / SYSTEM_CALLS;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The first round is not counted: it pays for caches and page faults. */
static double median_of_rounds(double (*round)(struct pair *), struct pair *p)
{
	uint64_t start = clock_now_ns();
	double values[ROUNDS];
	unsigned n = 0;

	round(p);
	do {
		values[n++] = round(p);
	} while (n < ROUNDS && clock_now_ns() - start < LIMIT_NS);
	qsort(values, n, sizeof(values[0]), compare);
	return values[n / 2];
}

/* ---- both ---- */

static int start_on(int cpu, void *(*main)(void *), struct pair *p, pthread_t *thread)
{
	pthread_attr_t attr;
	cpu_set_t set;
	int err;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	err = pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	if (!err)
		err = pthread_create(thread, &attr, main, p);
	pthread_attr_destroy(&attr);
	return -err;
}

static int measure_line(struct pair *p, struct bench_floor *out)
{
	pthread_t thread;
	int err = start_on(out->cpus[1], answer_line, p, &thread);

	if (err)
		return err;
	out->cache_line_ns = median_of_rounds(line_round, p);
	atomic_store_relaxed(&p->word, STOP); /* relaxed: nothing goes with it */
	return -pthread_join(thread, NULL);
}

static int measure_eventfd(struct pair *p, struct bench_floor *out)
{
	fd_cleanup int there = eventfd(0, EFD_CLOEXEC), back = eventfd(0, EFD_CLOEXEC);
	pthread_t thread;
	int err;

	if (there < 0 || back < 0)
		return -errno;
	p->there = there;
	p->back = back;
	err = start_on(out->cpus[1], answer_eventfd, p, &thread);
	if (err)
		return err;
	out->eventfd_ns = median_of_rounds(eventfd_round, p);
	eventfd_write(there, STOP);
	return -pthread_join(thread, NULL);
}

int bench_floor_measure(struct bench_floor *out)
{
	struct bench_floor floor = {0};
	struct pair p = {.there = -1, .back = -1};
	cpu_set_t before, set;
	int err;

	if (sched_getaffinity(0, sizeof(before), &before))
		return -errno;
	err = bench_floor_cpus(floor.cpus);
	if (err)
		return err;
	CPU_ZERO(&set);
	CPU_SET(floor.cpus[0], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return -errno;
	err = measure_line(&p, &floor);
	if (!err)
		err = measure_eventfd(&p, &floor);
	floor.system_call_ns = median_of_rounds(system_call_round, &p);
	if (sched_setaffinity(0, sizeof(before), &before) && !err)
		err = -errno;
	if (!err)
		*out = floor;
	return err;
}
