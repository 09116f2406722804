/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"

/* After a stop somebody waits for us: see JOB_STALL_NS. */
#define STALL_STOP_NS UINT64_C(3000000000)

/* No wait is longer: the window's stop is looked at in between. */
#define WAIT_NS UINT64_C(100000000)

/* Looks between two looks at the clock. */
#define LOOKS 1024u

int job_init(struct job *j, unsigned iodepth, void *memory, size_t stride)
{
	j->iodepth = iodepth;
	j->requests = calloc(iodepth, sizeof(*j->requests));
	j->free = calloc(iodepth, sizeof(*j->free));
	j->done = calloc(iodepth, sizeof(*j->done));
	j->latency = calloc(1, sizeof(*j->latency));
	if (!j->requests || !j->free || !j->done || !j->latency)
		return -ENOMEM;
	for (unsigned i = iodepth; i-- > 0;) {
		j->requests[i].buf = memory ? (char *)memory + i * stride : NULL;
		j->free[j->free_count++] = &j->requests[i];
	}
	j->fault.kind = VERIFY_GOOD;
	return 0;
}

void job_fini(struct job *j)
{
	free(j->requests);
	free(j->free);
	free(j->done);
	free(j->latency);
}

static bool stopped(const struct job *j)
{
	return atomic_load_relaxed(&j->window->stop); /* relaxed: see struct job_window */
}

/* ---- put ---- */

/*
 * The next block that is not busy, and whether to read it: what nobody has written is written
 * first.  The check goes once through what is known; false at its end.
 */
static bool next_verified(struct job *j, uint64_t *block, bool *write)
{
	struct verify_region *v = j->verify;
	uint64_t last = v->first + v->blocks;

	if (j->check_only) {
		while (j->pattern.next < v->blocks &&
		       !verify_has_flag(v, v->first + j->pattern.next, VERIFY_KNOWN))
			j->pattern.next++;
		*block = v->first + j->pattern.next++;
		*write = false;
		return *block < last;
	}
	*block = bench_pattern_next(&j->pattern);
	for (uint64_t tried = 0; verify_has_flag(v, *block, VERIFY_BUSY); tried++) {
		if (tried == v->blocks)
			return false;
		*block = *block + 1 == last ? v->first : *block + 1;
	}
	*write = !j->kind->reads || !verify_has_flag(v, *block, VERIFY_KNOWN) ||
		 !bench_pattern_is_read(&j->pattern);
	return true;
}

/* False: there is none now. */
static bool next_request(struct job *j, struct job_request *r)
{
	if (unlikely(j->verify)) {
		if (!next_verified(j, &r->block, &r->write))
			return false;
		verify_set_flag(j->verify, r->block, VERIFY_BUSY, true);
		if (r->write)
			r->generation = verify_fill(j->verify, r->block, r->buf);
		return true;
	}
	r->block = bench_pattern_next(&j->pattern);
	r->write = j->kind->writes;
	if (r->write && j->kind->reads)
		r->write = !bench_pattern_is_read(&j->pattern);
	return true;
}

static int put(struct job *j, struct job_request *r)
{
	uint64_t offset = r->block * j->block_bytes;

	if (j->kind->flush)
		return ringside_flush(j->queue, r);
	if (j->kind->discard)
		return ringside_discard(j->queue, offset, j->block_bytes, r);
	if (r->write)
		return ringside_write(j->queue, offset, r->buf, j->block_bytes, r);
	return ringside_read(j->queue, offset, r->buf, j->block_bytes, r);
}

static bool put_one(struct job *j, uint64_t start_ns)
{
	struct job_request *r = j->free[j->free_count - 1];
	int ret;

	if (unlikely(!next_request(j, r)))
		return false;
	r->start_ns = start_ns;
	ret = put(j, r);
	if (unlikely(ret < 0)) {
		if (j->verify)
			verify_set_flag(j->verify, r->block, VERIFY_BUSY, false);
		if (ret != -EAGAIN || !j->in_flight)
			j->broken = ret;
		return false;
	}
	j->free_count--;
	j->in_flight++;
	j->put++;
	return true;
}

/* As many as there is room for; open loop: as many as are due. */
static void put_all(struct job *j, uint64_t now_ns)
{
	uint64_t before = j->put;

	if (!j->in_flight)
		j->progress_ns = now_ns;
	while (j->free_count && j->put < j->count) {
		uint64_t start_ns = now_ns;

		if (j->open_loop) {
			start_ns = bench_arrivals_due_ns(&j->arrivals);
			if (start_ns > now_ns)
				break;
		}
		if (!put_one(j, start_ns))
			break;
		if (j->open_loop)
			bench_arrivals_take(&j->arrivals);
	}
	if (j->put != before)
		ringside_submit(j->queue);
}

/* ---- reap ---- */

/* Polling never sleeps: it looks, until enough is there or it is time to do something else. */
static int reap_polling(struct job *j, unsigned min, uint64_t until_ns)
{
	unsigned n = 0, looks = 0, every = until_ns == UINT64_MAX ? LOOKS : 1;

	for (;;) {
		int ret = ringside_poll(j->queue, j->done + n, j->iodepth - n);

		if (unlikely(ret < 0))
			return n ? (int)n : ret;
		n += (unsigned)ret;
		if (n >= min)
			return (int)n;
		if (++looks >= every) {
			if (every == LOOKS || clock_now_ns() >= until_ns)
				return (int)n;
			looks = 0;
		}
	}
}

/* The thread has nothing to do until the next request is due. */
static void pause_until(const struct job *j, uint64_t now_ns, uint64_t until_ns)
{
	uint64_t end = MIN(until_ns, now_ns + WAIT_NS);
	struct timespec ts = {(time_t)(end / 1000000000), (long)(end % 1000000000)};

	if (j->completion != BENCH_POLL)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* until_ns: when the next request is due, or UINT64_MAX. */
static int reap(struct job *j, uint64_t now_ns, uint64_t until_ns)
{
	unsigned min = MIN(j->batch, j->in_flight);
	int64_t timeout_ns = (int64_t)WAIT_NS;

	if (!j->in_flight) {
		pause_until(j, now_ns, until_ns);
		return 0;
	}
	if (j->completion == BENCH_POLL)
		return reap_polling(j, min, until_ns);
	if (until_ns != UINT64_MAX)
		timeout_ns = until_ns > now_ns ? (int64_t)MIN(until_ns - now_ns, WAIT_NS) : 0;
	if (j->completion == BENCH_SLEEP)
		return ringside_wait(j->queue, j->done, j->iodepth, min, timeout_ns);
	return ringside_hybrid(j->queue, j->done, j->iodepth, min, timeout_ns);
}

static noinline_cold void note_error(struct job *j, const struct job_request *r, int error)
{
	if (!j->errors++) {
		j->first_error = error;
		j->first_error_bytes = r->block * j->block_bytes;
	}
}

static void completed_verified(struct job *j, const struct job_request *r, int result)
{
	verify_set_flag(j->verify, r->block, VERIFY_BUSY, false);
	if (r->write)
		verify_written(j->verify, r->block, r->generation, !result);
	else if (!result && j->fault.kind == VERIFY_GOOD)
		j->fault.kind = verify_check(j->verify, r->block, r->buf, &j->fault);
}

static void completed(struct job *j, const struct ringside_completion *c, uint64_t now_ns)
{
	struct job_request *r = c->cookie;

	if (unlikely(c->result))
		note_error(j, r, c->result);
	if (unlikely(j->verify))
		completed_verified(j, r, c->result);
	j->free[j->free_count++] = r;
	if (!j->counting || c->result)
		return;
	histogram_add(j->latency, now_ns - r->start_ns);
	j->counts.requests++;
}

/* ---- the window ---- */

static void begin_counting(struct job *j, uint64_t now_ns)
{
	j->counting = true;
	j->counts.begin_ns = now_ns;
	j->before.struct_bytes = sizeof(j->before);
	ringside_queue_stats(j->queue, &j->before);
}

static void end_counting(struct job *j, uint64_t now_ns)
{
	struct ringside_stats after = {.struct_bytes = sizeof(after)};

	if (!j->counting)
		return;
	ringside_queue_stats(j->queue, &after);
	j->counting = false;
	j->counts.end_ns = now_ns;
	j->counts.bytes = j->kind->flush ? 0 : j->counts.requests * j->block_bytes;
	j->counts.kicks = after.kicks_sent - j->before.kicks_sent;
	j->counts.calls = after.calls_received - j->before.calls_received;
	j->counts.system_calls = after.system_calls - j->before.system_calls;
}

/* True as long as requests are to be put. */
static bool goes_on(const struct job *j, uint64_t now_ns)
{
	return !j->broken && j->fault.kind == VERIFY_GOOD && j->put < j->count &&
	       now_ns < j->window->end_ns && !stopped(j);
}

/* Nothing completes any more? */
static void check_stall(struct job *j, uint64_t now_ns)
{
	uint64_t limit = stopped(j) ? STALL_STOP_NS : JOB_STALL_NS;

	if (j->in_flight && now_ns > j->progress_ns && now_ns - j->progress_ns > limit)
		j->broken = -ETIMEDOUT;
}

/* Reaps once.  The time after it. */
static uint64_t reap_all(struct job *j, uint64_t now_ns, uint64_t until_ns)
{
	int n = reap(j, now_ns, until_ns);

	now_ns = clock_now_ns();
	if (unlikely(n < 0)) {
		j->broken = n;
		j->gone = true;
		return now_ns;
	}
	j->in_flight -= (unsigned)n;
	for (int i = 0; i < n; i++)
		completed(j, &j->done[i], now_ns);
	if (n)
		j->progress_ns = now_ns;
	else
		check_stall(j, now_ns);
	return now_ns;
}

/* When the next request is due that there is room for; closed loops know no time. */
static uint64_t next_due_ns(const struct job *j)
{
	if (!j->open_loop || !j->free_count)
		return UINT64_MAX;
	return bench_arrivals_due_ns(&j->arrivals);
}

void job_run(struct job *j)
{
	uint64_t now_ns = clock_now_ns();

	if (j->open_loop)
		bench_arrivals_start(&j->arrivals, now_ns);
	while (goes_on(j, now_ns)) {
		if (unlikely(!j->counting) && now_ns >= j->window->begin_ns)
			begin_counting(j, now_ns);
		put_all(j, now_ns);
		if (j->check_only && !j->in_flight)
			break;
		now_ns = reap_all(j, now_ns, next_due_ns(j));
	}
	/* With a count the last ones count, too; with a time they are behind its end. */
	if (j->window->end_ns != UINT64_MAX || j->broken)
		end_counting(j, now_ns);
	/* What is in flight comes back, from a broken queue with its error. */
	while (j->in_flight && !j->gone && j->broken != -ETIMEDOUT)
		now_ns = reap_all(j, now_ns, UINT64_MAX);
	end_counting(j, now_ns);
}
