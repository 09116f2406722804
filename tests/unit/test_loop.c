/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop: fds, messages (and no lost wake-up), timers, the life of a poller in and out of
 * the poll set, and that an idle loop does nothing.  What is asserted are counts and orders.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/defer.h"
#include "base/fd.h"
#include "loop/iothread.h"
#include "loop/wake_cost.h"

#define MS 1000000u

static const struct poll_policy_limits off = {.mode = POLL_OFF};
static const struct poll_policy_limits adaptive = {.mode = POLL_ADAPTIVE};
static const struct poll_policy_limits always = {.mode = POLL_ALWAYS};
static const struct poll_policy_limits fixed_1ms = {.mode = POLL_FIXED, .fixed_ns = MS};

/* A timer that ends the loop: the end of a test, or what keeps a wrong one from hanging. */
struct stopper {
	struct loop_timer timer;
	struct loop *loop;
};

static void on_stop_time(struct loop_timer *t)
{
	loop_stop(container_of(t, struct stopper, timer)->loop);
}

static void run_for(struct loop *loop, uint64_t ns)
{
	struct stopper s = {.timer.expired = on_stop_time, .loop = loop};

	loop_timer_start(loop, &s.timer, clock_now_ns() + ns);
	loop_run(loop);
	loop_timer_stop(loop, &s.timer);
}

static struct loop_stats stats_of(struct loop *loop)
{
	struct loop_stats s;

	loop_stats_read(loop, &s);
	return s;
}

/* ---- fds ---- */

struct fake_fd {
	struct loop_fd lf;
	struct loop *loop;
	struct fake_fd *remove; /* when ready */
	unsigned calls;
	unsigned stop_after;
	uint32_t events;
};

static void fake_ready(struct loop_fd *lf, uint32_t events)
{
	struct fake_fd *f = container_of(lf, struct fake_fd, lf);

	eventfd_clear(lf->fd);
	f->events = events;
	if (f->remove)
		loop_remove_fd(f->loop, &f->remove->lf);
	if (++f->calls == f->stop_after)
		loop_stop(f->loop);
}

static void fake_fd_add(struct fake_fd *f, struct loop *loop)
{
	*f = (struct fake_fd){.lf = {.fd = eventfd_create(), .ready = fake_ready}, .loop = loop};
	assert_int_equal(loop_add_fd(loop, &f->lf, EPOLLIN), 0);
}

static void fake_fd_drop(struct fake_fd *f)
{
	loop_remove_fd(f->loop, &f->lf);
	loop_remove_fd(f->loop, &f->lf);
	fd_close(&f->lf.fd);
}

static void test_fds(void **state)
{
	struct loop *loop = loop_create(&off);
	struct fake_fd a, b;

	fake_fd_add(&a, loop);
	fake_fd_add(&b, loop);
	a.stop_after = 1;
	eventfd_signal(a.lf.fd);
	run_for(loop, 10000ull * MS);
	assert_int_equal(a.calls, 1);
	assert_int_equal(b.calls, 0);
	assert_true(a.events & EPOLLIN);
	/* An eventfd is always writable. */
	assert_int_equal(loop_modify_fd(loop, &a.lf, EPOLLOUT), 0);
	a.stop_after = 2;
	run_for(loop, 10000ull * MS);
	assert_int_equal(a.calls, 2);
	assert_true(a.events & EPOLLOUT);
	fake_fd_drop(&a);
	fake_fd_drop(&b);
	loop_destroy(loop);
}

/* A regular file cannot be waited for, and it is not left half added. */
static void test_add_fails(void **state)
{
	struct loop *loop = loop_create(&off);
	FILE *file = tmpfile();
	struct loop_fd lf = {.fd = fileno(file), .ready = fake_ready};

	assert_int_equal(loop_add_fd(loop, &lf, EPOLLIN), -EPERM);
	assert_false(lf.added);
	loop_remove_fd(loop, &lf);
	fclose(file);
	loop_destroy(loop);
}

/* Whichever of the two comes first removes the other, whose event is in the same batch. */
static void test_remove_within_batch(void **state)
{
	struct loop *loop = loop_create(&off);
	struct fake_fd a, b;

	fake_fd_add(&a, loop);
	fake_fd_add(&b, loop);
	a.remove = &b;
	b.remove = &a;
	eventfd_signal(a.lf.fd);
	eventfd_signal(b.lf.fd);
	run_for(loop, 20 * MS);
	assert_int_equal(a.calls + b.calls, 1);
	fake_fd_drop(&a);
	fake_fd_drop(&b);
	loop_destroy(loop);
}

static void on_hang_up(struct loop_fd *lf, uint32_t events)
{
	struct fake_fd *f = container_of(lf, struct fake_fd, lf);

	f->events = events;
	loop_remove_fd(f->loop, lf);
	loop_stop(f->loop);
}

static void test_hang_up_is_told(void **state)
{
	struct loop *loop = loop_create(&off);
	struct fake_fd f = {.lf.ready = on_hang_up, .loop = loop};
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	f.lf.fd = ends[0];
	assert_int_equal(loop_add_fd(loop, &f.lf, EPOLLIN), 0);
	close(ends[1]);
	run_for(loop, 10000ull * MS);
	assert_true(f.events & EPOLLHUP);
	close(ends[0]);
	loop_destroy(loop);
}

/* ---- timers ---- */

struct fake_timer {
	struct loop_timer timer;
	struct loop *loop;
	struct fake_timer *stop; /* when expired */
	unsigned restart;        /* so many times, in the past */
	unsigned expired;
	unsigned place;
};

static unsigned places;

static void fake_expired(struct loop_timer *t)
{
	struct fake_timer *f = container_of(t, struct fake_timer, timer);

	assert_true(clock_now_ns() >= t->deadline_ns);
	f->expired++;
	f->place = ++places;
	if (f->stop)
		loop_timer_stop(f->loop, &f->stop->timer);
	if (f->restart && f->restart--)
		loop_timer_start(f->loop, t, 1);
}

static void test_timers(void **state)
{
	struct loop *loop = loop_create(&off);
	struct fake_timer t[5];
	uint64_t now = clock_now_ns();

	places = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		t[i] = (struct fake_timer){.timer.expired = fake_expired, .loop = loop};
	t[0].stop = &t[3];
	loop_timer_start(loop, &t[2].timer, now + 3 * MS);
	loop_timer_start(loop, &t[0].timer, now + 1 * MS);
	loop_timer_start(loop, &t[1].timer, now + 100000u * MS);
	loop_timer_start(loop, &t[1].timer, now + 2 * MS); /* started again */
	loop_timer_start(loop, &t[3].timer, now + 1 * MS); /* stopped by 0, due at the same time */
	t[4].restart = 100;
	loop_timer_start(loop, &t[4].timer, now);
	run_for(loop, 20 * MS);
	assert_int_equal(t[0].expired, 1);
	assert_int_equal(t[1].expired, 1);
	assert_int_equal(t[2].expired, 1);
	assert_int_equal(t[3].expired, 0);
	assert_int_equal(t[4].expired, 101);
	assert_true(t[0].place < t[1].place && t[1].place < t[2].place);
	loop_timer_stop(loop, &t[0].timer);
	loop_destroy(loop);
}

/* ---- messages ---- */

struct counted_msg {
	struct loop_msg msg;
	unsigned *count;
	unsigned number;
	uint32_t done; /* shared with the poster */
};

static void count_msg(struct loop_msg *m)
{
	struct counted_msg *c = container_of(m, struct counted_msg, msg);

	assert_int_equal(c->number, *c->count);
	++*c->count;
	atomic_store_release(&c->done, 1u);
}

/* Those posted before the stop are run, in order, even before the loop's first pass. */
static void test_messages_before_stop(void **state)
{
	struct loop *loop = loop_create(&off);
	struct counted_msg m[10];
	unsigned count = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(m); i++) {
		m[i] = (struct counted_msg){{.run = count_msg}, &count, i};
		loop_post(loop, &m[i].msg);
	}
	loop_stop(loop);
	loop_run(loop);
	assert_int_equal(count, ARRAY_SIZE(m));
	loop_destroy(loop);
}

#define POSTERS 3
#define POSTS   4000

struct poster {
	pthread_t thread;
	struct loop *loop;
	unsigned seed;
	unsigned count; /* the loop's */
	unsigned lost;
};

/* Now and then nothing, now and then until the loop is just about to sleep. */
static void random_delay(unsigned *seed)
{
	unsigned n = (unsigned)rand_r(seed) % 8 ? (unsigned)rand_r(seed) % 400 : 4000;

	for (volatile unsigned i = 0; i < n; i++)
		;
}

static bool wait_done(const uint32_t *done)
{
	uint64_t start = clock_now_ns();

	while (!atomic_load_acquire(done)) {
		if (clock_now_ns() - start > 10000ull * MS)
			return false;
		cpu_relax();
	}
	return true;
}

static void *post_many(void *arg)
{
	struct poster *p = arg;

	for (unsigned i = 0; i < POSTS && !p->lost; i++) {
		struct counted_msg m = {{.run = count_msg}, &p->count, i};

		random_delay(&p->seed);
		loop_post(p->loop, &m.msg);
		if (wait_done(&m.done))
			continue;
		p->lost++;
		loop_stop(p->loop); /* takes m, too, before it goes */
		while (!atomic_load_acquire(&m.done))
			cpu_relax();
	}
	return NULL;
}

/* Every post waits for its message: one wake-up lost and the poster waits in vain. */
static void lost_wakeups(unsigned posters)
{
	struct poster p[POSTERS] = {0};
	struct iothread *t;
	struct loop_stats stats;
	struct error err;

	t = iothread_create("posted", &adaptive, &err);
	assert_non_null(t);
	for (unsigned i = 0; i < posters; i++) {
		p[i] = (struct poster){.loop = iothread_loop(t), .seed = i + 1};
		pthread_create(&p[i].thread, NULL, post_many, &p[i]);
	}
	for (unsigned i = 0; i < posters; i++) {
		pthread_join(p[i].thread, NULL);
		assert_int_equal(p[i].lost, 0);
		assert_int_equal(p[i].count, POSTS);
	}
	stats = stats_of(iothread_loop(t));
	iothread_destroy(t);
	assert_true(stats.sleeps > POSTS / 10); /* else nothing has been tested */
}

static void test_no_wakeup_lost(void **state)
{
	lost_wakeups(1);
	lost_wakeups(POSTERS);
}

static void count_call(void *arg)
{
	assert_non_null(loop_current());
	++*(unsigned *)arg;
}

struct deferred {
	struct defer d;
	unsigned *runs;
	unsigned again;
};

static void deferred_run(struct defer *d)
{
	struct deferred *f = container_of(d, struct deferred, d);

	++*f->runs;
	if (f->again && f->again--)
		defer_call(d);
}

static void note_deferred(void *arg)
{
	defer_call(&((struct deferred *)arg)->d);
}

/* The caller may free what the call has used: all that it put off has been done. */
static void test_run_sync(void **state)
{
	struct iothread *t;
	struct error err;
	unsigned calls = 0, runs = 0;

	t = iothread_create("a-name-longer-than-15-bytes", &adaptive, &err);
	assert_non_null(t);
	for (unsigned i = 0; i < 1000; i++) {
		struct deferred f = {.runs = &runs, .again = 3};

		defer_init(&f.d, deferred_run);
		iothread_run_sync(t, count_call, &calls);
		iothread_run_sync(t, note_deferred, &f);
		assert_int_equal(calls, i + 1);
		assert_int_equal(runs, 4 * (i + 1));
	}
	iothread_destroy(t);
}

static void read_mask(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
}

static void test_signals_blocked(void **state)
{
	struct iothread *t;
	struct error err;
	sigset_t mask;

	t = iothread_create("signals", &adaptive, &err);
	assert_non_null(t);
	iothread_run_sync(t, read_mask, &mask);
	iothread_destroy(t);
	assert_true(sigismember(&mask, SIGTERM));
	assert_true(sigismember(&mask, SIGPIPE));
	assert_false(sigismember(&mask, SIGBUS));
	assert_false(sigismember(&mask, SIGSEGV));
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&mask, SIGTERM));
}

/* ---- pollers ---- */

struct fake_poller {
	struct poller poller;
	struct fake_fd kick; /* wakes the poller */
	char log[512];       /* b, p (found nothing), P (found work), e, E (work after all) */
	unsigned work;       /* looks that find some */
	unsigned race;       /* ends that find some; it is work for one look */
	unsigned stop_after; /* looks */
	unsigned looks;
	unsigned ends;
	struct poller *wake;   /* at the first look */
	struct poller *remove; /* at the first look */
	struct deferred *put_off;
};

static void note(struct fake_poller *f, char what)
{
	size_t len = strlen(f->log);

	if (len < sizeof(f->log) - 1)
		f->log[len] = what;
}

static void fake_begin(struct poller *p)
{
	note(container_of(p, struct fake_poller, poller), 'b');
}

static bool fake_poll(struct poller *p)
{
	struct fake_poller *f = container_of(p, struct fake_poller, poller);

	assert_true(p->begun);
	if (++f->looks == f->stop_after)
		loop_stop(p->loop);
	if (f->wake)
		poller_wake(f->wake);
	if (f->put_off)
		defer_call(&f->put_off->d);
	if (f->remove)
		loop_remove_poller(p->loop, f->remove);
	f->wake = f->remove = NULL;
	f->put_off = NULL;
	note(f, f->work ? 'P' : 'p');
	return f->work && f->work--;
}

static bool fake_end(struct poller *p)
{
	struct fake_poller *f = container_of(p, struct fake_poller, poller);

	if (f->race) {
		f->race--;
		f->work++;
	}
	f->ends++;
	note(f, f->work ? 'E' : 'e');
	return f->work;
}

static const struct poller_ops fake_ops = {fake_begin, fake_poll, fake_end};

static void fake_poller_add(struct fake_poller *f, struct loop *loop, unsigned work)
{
	*f = (struct fake_poller){.poller.ops = &fake_ops, .work = work};
	loop_add_poller(loop, &f->poller);
}

static void on_kick(struct loop_fd *lf, uint32_t events)
{
	struct fake_poller *f = container_of(lf, struct fake_poller, kick.lf);

	eventfd_clear(lf->fd);
	f->kick.calls++;
	poller_wake(&f->poller);
}

static void fake_kick_add(struct fake_poller *f, struct loop *loop)
{
	f->kick = (struct fake_fd){.lf = {.fd = eventfd_create(), .ready = on_kick}, .loop = loop};
	assert_int_equal(loop_add_fd(loop, &f->kick.lf, EPOLLIN), 0);
}

static void test_poller_order(void **state)
{
	struct loop *loop = loop_create(&off);
	struct fake_poller f;

	/* Looked at once as if notified, drained, armed; and not looked at while asleep. */
	fake_poller_add(&f, loop, 3);
	run_for(loop, 20 * MS);
	assert_string_equal(f.log, "bPPPpe");
	assert_false(f.poller.active);

	/* Work that came while it was armed: begun again. */
	memset(f.log, 0, sizeof(f.log));
	f.race = 2;
	poller_wake(&f.poller);
	poller_wake(&f.poller);
	run_for(loop, 20 * MS);
	assert_string_equal(f.log, "bpEbPpEbPpe");

	/* A kick without work. */
	memset(f.log, 0, sizeof(f.log));
	poller_wake(&f.poller);
	run_for(loop, 20 * MS);
	assert_string_equal(f.log, "bpe");

	loop_remove_poller(loop, &f.poller);
	loop_remove_poller(loop, &f.poller);
	poller_wake(&f.poller);
	memset(f.log, 0, sizeof(f.log));
	run_for(loop, 20 * MS);
	assert_string_equal(f.log, "");
	loop_destroy(loop);
}

/* The same when the loop spins: the race is met when it goes to sleep. */
static void test_poller_spins_then_sleeps(void **state)
{
	struct loop *loop = loop_create(&adaptive);
	struct fake_poller f;
	struct loop_stats stats;
	size_t len;

	fake_poller_add(&f, loop, 2);
	f.race = 1;
	f.poller.limits = &fixed_1ms;
	run_for(loop, 50 * MS);
	stats = stats_of(loop);
	assert_memory_equal(f.log, "bPPppp", 6);
	assert_false(f.poller.active);
	assert_true(stats.time_spun_ns >= MS);
	assert_int_equal(stats.spin_hits, 1); /* the work that it met when it armed */
	assert_int_equal(stats.spin_misses, 1);
	assert_in_range(stats.sleeps, 1, 3);
	len = strlen(f.log);
	assert_true(len > 10);
	loop_remove_poller(loop, &f.poller);
	loop_destroy(loop);
}

static void test_poller_always(void **state)
{
	struct loop *loop = loop_create(&off);
	struct fake_poller f, lazy;

	fake_poller_add(&f, loop, 1);
	fake_poller_add(&lazy, loop, 1);
	f.poller.limits = &always;
	run_for(loop, 20 * MS); /* the timer is seen although nothing ever sleeps */
	assert_int_equal(stats_of(loop).sleeps, 0);
	assert_true(f.poller.active);
	assert_int_equal(f.ends, 0);
	assert_string_equal(lazy.log, "bPpe");
	loop_remove_poller(loop, &f.poller);
	loop_remove_poller(loop, &lazy.poller);
	loop_destroy(loop);
}

/* A kick of a poller outside of the set is seen while others keep the loop awake. */
static void test_kick_beside_busy_poller(void **state)
{
	struct loop *loop = loop_create(&adaptive);
	struct fake_poller busy, other;

	fake_poller_add(&busy, loop, 1000000000);
	fake_poller_add(&other, loop, 1);
	fake_kick_add(&other, loop);
	run_for(loop, 20 * MS);
	assert_false(other.poller.active); /* idle for so long that it was armed */
	assert_true(busy.poller.active);
	assert_int_equal(other.ends, 1);

	memset(other.log, 0, sizeof(other.log));
	other.work = 1;
	other.looks = 0;
	other.stop_after = 1;
	eventfd_signal(other.kick.lf.fd);
	busy.looks = 0;
	run_for(loop, 10000ull * MS);
	assert_int_equal(other.kick.calls, 1);
	assert_memory_equal(other.log, "bP", 2);
	assert_in_range(busy.looks, 1, 33);
	assert_int_equal(stats_of(loop).sleeps, 0);
	fake_fd_drop(&other.kick);
	loop_remove_poller(loop, &busy.poller);
	loop_remove_poller(loop, &other.poller);
	loop_destroy(loop);
}

/* In poll, pollers wake and remove each other and themselves. */
static void test_pollers_change_the_set(void **state)
{
	struct loop *loop = loop_create(&off);
	struct fake_poller a, b, c;

	fake_poller_add(&c, loop, 0);
	run_for(loop, 5 * MS);
	assert_string_equal(c.log, "bpe");
	fake_poller_add(&a, loop, 1);
	fake_poller_add(&b, loop, 1);
	a.wake = &c.poller; /* outside: looked at in the same pass */
	a.remove = &a.poller;
	run_for(loop, 5 * MS);
	assert_string_equal(a.log, "bP");
	assert_string_equal(b.log, "bPpe");
	assert_string_equal(c.log, "bpebpe");

	fake_poller_add(&a, loop, 1);
	a.remove = &b.poller; /* the next one */
	poller_wake(&b.poller);
	poller_wake(&c.poller);
	run_for(loop, 5 * MS);
	assert_string_equal(a.log, "bPpe");
	assert_string_equal(b.log, "bPpe");
	assert_string_equal(c.log, "bpebpebpe");
	loop_remove_poller(loop, &a.poller);
	loop_remove_poller(loop, &c.poller);
	loop_destroy(loop);
}

struct waker {
	struct defer d;
	struct poller *poller;
};

static void wake_run(struct defer *d)
{
	poller_wake(container_of(d, struct waker, d)->poller);
}

static void note_waker(struct loop_msg *m);

struct waker_msg {
	struct loop_msg msg;
	struct waker waker;
};

static void note_waker(struct loop_msg *m)
{
	defer_call(&container_of(m, struct waker_msg, msg)->waker.d);
}

/* Woken when the pollers have had their turn: the loop does not sleep over it. */
static void test_woken_at_the_end_of_a_pass(void **state)
{
	struct loop *loop = loop_create(&off);
	struct waker_msg m = {.msg.run = note_waker};
	struct fake_poller f;

	fake_poller_add(&f, loop, 0);
	run_for(loop, 5 * MS);
	m.waker.poller = &f.poller;
	defer_init(&m.waker.d, wake_run);
	loop_post(loop, &m.msg);
	memset(f.log, 0, sizeof(f.log));
	f.work = 1;
	run_for(loop, 5 * MS);
	assert_string_equal(f.log, "bPpe");
	loop_remove_poller(loop, &f.poller);
	loop_destroy(loop);
}

/* What a poller puts off is done in the same pass. */
static void test_defer_in_pass(void **state)
{
	struct loop *loop = loop_create(&off);
	struct fake_poller f;
	unsigned runs = 0;
	struct deferred d = {.runs = &runs};

	defer_init(&d.d, deferred_run);
	fake_poller_add(&f, loop, 0);
	f.put_off = &d;
	f.stop_after = 1;
	run_for(loop, 10000ull * MS);
	assert_int_equal(runs, 1);
	loop_remove_poller(loop, &f.poller);
	loop_destroy(loop);
}

/* ---- idle ---- */

static void test_idle_does_nothing(void **state)
{
	static struct fake_poller f[64];
	struct loop *loop = loop_create(&adaptive);
	struct loop_stats before, after;

	for (unsigned i = 0; i < ARRAY_SIZE(f); i++) {
		fake_poller_add(&f[i], loop, 1);
		fake_kick_add(&f[i], loop);
	}
	run_for(loop, 50 * MS);
	for (unsigned i = 0; i < ARRAY_SIZE(f); i++) {
		assert_false(f[i].poller.active);
		f[i].looks = 0;
	}
	before = stats_of(loop);
	run_for(loop, 200 * MS);
	after = stats_of(loop);
	/* The first pass, and the one for the timer that ends it, and the last. */
	assert_true(after.passes - before.passes <= 4);
	assert_true(after.sleeps - before.sleeps <= 3);
	assert_true(after.time_slept_ns - before.time_slept_ns >= 150 * MS);
	for (unsigned i = 0; i < ARRAY_SIZE(f); i++)
		assert_int_equal(f[i].looks, 0);

	/* One kick touches one poller. */
	eventfd_signal(f[17].kick.lf.fd);
	run_for(loop, 50 * MS);
	for (unsigned i = 0; i < ARRAY_SIZE(f); i++)
		assert_int_equal(f[i].looks > 0, i == 17);
	for (unsigned i = 0; i < ARRAY_SIZE(f); i++) {
		fake_fd_drop(&f[i].kick);
		loop_remove_poller(loop, &f[i].poller);
	}
	loop_destroy(loop);
}

static void test_wake_cost(void **state)
{
	uint64_t cost = wake_cost_ns();

	assert_in_range(cost, 20000, 200000);
	assert_int_equal(cost, wake_cost_ns());
	assert_true(wake_latency_ns() > 0);
	print_message("wake-up latency %lu ns, cost %lu ns\n", (unsigned long)wake_latency_ns(),
		      (unsigned long)cost);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wake_cost),
		cmocka_unit_test(test_fds),
		cmocka_unit_test(test_add_fails),
		cmocka_unit_test(test_remove_within_batch),
		cmocka_unit_test(test_hang_up_is_told),
		cmocka_unit_test(test_timers),
		cmocka_unit_test(test_messages_before_stop),
		cmocka_unit_test(test_no_wakeup_lost),
		cmocka_unit_test(test_run_sync),
		cmocka_unit_test(test_signals_blocked),
		cmocka_unit_test(test_poller_order),
		cmocka_unit_test(test_poller_spins_then_sleeps),
		cmocka_unit_test(test_poller_always),
		cmocka_unit_test(test_kick_beside_busy_poller),
		cmocka_unit_test(test_pollers_change_the_set),
		cmocka_unit_test(test_woken_at_the_end_of_a_pass),
		cmocka_unit_test(test_defer_in_pass),
		cmocka_unit_test(test_idle_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
