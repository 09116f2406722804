/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "block/range_lock.h"

struct holder {
	struct range_hold hold;
	unsigned granted;
};

static void on_granted(struct range_hold *h)
{
	__atomic_add_fetch(&container_of(h, struct holder, hold)->granted, 1, __ATOMIC_RELEASE);
}

static void set(struct holder *h, uint64_t offset, uint64_t len, bool exclusive)
{
	*h = (struct holder){.hold = {.offset_bytes = offset,
				      .len_bytes = len,
				      .exclusive = exclusive,
				      .granted = on_granted}};
}

static void test_shared_do_not_wait(void **state)
{
	struct range_lock l;
	struct holder a, b;

	range_lock_init(&l);
	set(&a, 0, 4096, false);
	set(&b, 0, 4096, false);
	assert_true(range_lock_acquire(&l, &a.hold));
	assert_true(range_lock_acquire(&l, &b.hold));
	range_lock_release(&l, &a.hold);
	range_lock_release(&l, &b.hold);
	assert_int_equal(a.granted + b.granted, 0);
	range_lock_fini(&l);
}

static void test_exclusive_waits_for_what_is_in_flight(void **state)
{
	struct range_lock l;
	struct holder write1, write2, rmw, elsewhere;

	range_lock_init(&l);
	set(&write1, 0, 8192, false);
	set(&write2, 4096, 4096, false);
	set(&rmw, 4096, 4096, true);
	set(&elsewhere, 8192, 4096, true);
	assert_true(range_lock_acquire(&l, &write1.hold));
	assert_true(range_lock_acquire(&l, &write2.hold));
	assert_false(range_lock_acquire(&l, &rmw.hold));
	assert_true(range_lock_acquire(&l, &elsewhere.hold));
	range_lock_release(&l, &write1.hold);
	assert_int_equal(rmw.granted, 0);
	range_lock_release(&l, &write2.hold);
	assert_int_equal(rmw.granted, 1);
	range_lock_release(&l, &rmw.hold);
	range_lock_release(&l, &elsewhere.hold);
	range_lock_fini(&l);
}

static void test_first_come_first_served(void **state)
{
	struct range_lock l;
	struct holder write, rmw, later, later_exclusive, other;

	range_lock_init(&l);
	set(&write, 0, 4096, false);
	set(&rmw, 0, 4096, true);
	set(&later, 0, 4096, false);
	set(&later_exclusive, 0, 4096, true);
	set(&other, 0, 512, false);
	assert_true(range_lock_acquire(&l, &write.hold));
	assert_false(range_lock_acquire(&l, &rmw.hold));
	/* Nothing that is held is in the way, but the rmw came first. */
	assert_false(range_lock_acquire(&l, &later.hold));
	assert_false(range_lock_acquire(&l, &later_exclusive.hold));
	assert_false(range_lock_acquire(&l, &other.hold));
	range_lock_release(&l, &write.hold);
	assert_int_equal(rmw.granted, 1);
	assert_int_equal(later.granted + later_exclusive.granted + other.granted, 0);
	range_lock_release(&l, &rmw.hold);
	assert_int_equal(later.granted, 1);
	assert_int_equal(later_exclusive.granted + other.granted, 0);
	range_lock_release(&l, &later.hold);
	assert_int_equal(later_exclusive.granted, 1);
	range_lock_release(&l, &later_exclusive.hold);
	assert_int_equal(other.granted, 1);
	range_lock_release(&l, &other.hold);
	range_lock_fini(&l);
}

static void test_several_are_granted_at_once(void **state)
{
	struct range_lock l;
	struct holder rmw, a, b, c;

	range_lock_init(&l);
	set(&rmw, 0, 65536, true);
	set(&a, 0, 4096, true);
	set(&b, 4096, 4096, true);
	set(&c, 0, 65536, false);
	assert_true(range_lock_acquire(&l, &rmw.hold));
	assert_false(range_lock_acquire(&l, &a.hold));
	assert_false(range_lock_acquire(&l, &b.hold));
	assert_false(range_lock_acquire(&l, &c.hold));
	range_lock_release(&l, &rmw.hold);
	assert_int_equal(a.granted + b.granted, 2);
	assert_int_equal(c.granted, 0);
	range_lock_release(&l, &b.hold);
	assert_int_equal(c.granted, 0);
	range_lock_release(&l, &a.hold);
	assert_int_equal(c.granted, 1);
	range_lock_release(&l, &c.hold);
	range_lock_fini(&l);
}

/* ---- threads: whoever is alone is alone ---- */

#define BLOCKS  4
#define THREADS 4
#define ROUNDS  20000

static struct {
	struct range_lock lock;
	unsigned inside[BLOCKS];  /* shared holders; exclusive ones count 1000 */
	unsigned counter[BLOCKS]; /* plain: only under an exclusive hold */
	unsigned expected[BLOCKS];
} stress;

static void *stress_thread(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		bool exclusive = rand_r(&seed) % 2;
		unsigned first = (unsigned)rand_r(&seed) % BLOCKS;
		unsigned n = 1 + (unsigned)rand_r(&seed) % (BLOCKS - first);
		unsigned weight = exclusive ? 1000 : 1;
		struct holder h;

		set(&h, first * 4096, n * 4096, exclusive);
		if (!range_lock_acquire(&stress.lock, &h.hold)) {
			while (!atomic_load_acquire(&h.granted))
				sched_yield();
		}
		for (unsigned b = first; b < first + n; b++) {
			unsigned now = __atomic_add_fetch(&stress.inside[b], weight,
							  __ATOMIC_SEQ_CST);

			if (exclusive ? now != 1000 : now >= 1000)
				abort();
			if (exclusive) {
				stress.counter[b]++;
				__atomic_add_fetch(&stress.expected[b], 1, __ATOMIC_RELAXED);
			}
		}
		for (unsigned b = first; b < first + n; b++)
			__atomic_sub_fetch(&stress.inside[b], weight, __ATOMIC_SEQ_CST);
		range_lock_release(&stress.lock, &h.hold);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS];

	range_lock_init(&stress.lock);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, stress_thread,
						(void *)(uintptr_t)(i + 1)),
				 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned b = 0; b < BLOCKS; b++)
		assert_int_equal(stress.counter[b], stress.expected[b]);
	range_lock_fini(&stress.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared_do_not_wait),
		cmocka_unit_test(test_exclusive_waits_for_what_is_in_flight),
		cmocka_unit_test(test_first_come_first_served),
		cmocka_unit_test(test_several_are_granted_at_once),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
