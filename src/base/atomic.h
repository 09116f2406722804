/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C11 memory model, and nothing else, for words shared between threads or with a guest.
 *
 * The __atomic builtins are used because they apply to plain integers: ring memory is laid out by
 * a specification and shared with another program, so its words cannot be declared _Atomic.
 * Every use with an order names its partner by a tag listed in docs/memory-ordering.md.
 */
#ifndef BASE_ATOMIC_H
#define BASE_ATOMIC_H

#include <stdint.h>

#define atomic_load_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define atomic_load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define atomic_load_seq_cst(p)     __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define atomic_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define atomic_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define atomic_store_seq_cst(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)

#define atomic_xchg(p, v)              __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define atomic_fetch_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define atomic_fetch_add_seq_cst(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define atomic_fetch_sub_acq_rel(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_ACQ_REL)

/* *p goes from *expected to v, or *expected becomes what was found.  True on success. */
#define atomic_cmpxchg(p, expected, v)                                                             \
	__atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

/*
 * A counter with one writer and any number of readers: a plain add, made of relaxed accesses so
 * that a reader in another thread never sees half of it.  Relaxed is enough: nothing is ordered by
 * a statistic.
 */
#define atomic_stat_add(p, v) atomic_store_relaxed((p), atomic_load_relaxed(p) + (v))

/*
 * Full fence: my earlier stores are visible before my later loads are done.  The middle of
 * "arm, full fence, look again".  ThreadSanitizer does not know fences; there a sequentially
 * consistent read-modify-write takes its place (same instruction cost, same order on x86).
 */
#if defined(__SANITIZE_THREAD__)
#define ATOMIC_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ATOMIC_TSAN 1
#endif
#endif

static inline void atomic_fence_full(void)
{
#ifdef ATOMIC_TSAN
	uint32_t word = 0;

	__atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#endif
