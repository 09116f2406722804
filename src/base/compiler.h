/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for what the compiler can check or do for us.  Macros only; no data.
 */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Each use has names of its own, so that one can stand inside another. */
#define CHOOSE_(op, a, b, x, y)                                                                    \
	({                                                                                         \
		__auto_type x = (a);                                                               \
		__auto_type y = (b);                                                               \
		x op y ? x : y;                                                                    \
	})
#define CHOOSE_NAMED_(op, a, b, n) CHOOSE_(op, a, b, JOIN_(left_, n), JOIN_(right_, n))
#define JOIN_(a, b)                JOIN_AGAIN_(a, b)
#define JOIN_AGAIN_(a, b)          a##b
#define MIN(a, b)                  CHOOSE_NAMED_(<, a, b, __COUNTER__)
#define MAX(a, b)                  CHOOSE_NAMED_(>, a, b, __COUNTER__)

/* The caller must look at the result: ignoring it is a bug, not a style. */
#define must_check           __attribute__((warn_unused_result))
#define printf_like(fmt, va) __attribute__((format(printf, fmt, va)))
#define cleanup(fn)          __attribute__((cleanup(fn)))
#define cacheline_aligned    __attribute__((aligned(64)))
#define maybe_unused         __attribute__((unused))
#define noinline_cold        __attribute__((noinline, cold))

/* An assertion about our own code, kept in release builds; never about guest data. */
#define ASSERT(cond)                                                                               \
	do {                                                                                       \
		if (unlikely(!(cond)))                                                             \
			assert_failed(#cond, __FILE__, __LINE__);                                  \
	} while (0)

/* Prints one line to stderr and aborts; in base/log.c. */
void assert_failed(const char *cond, const char *file, int line) __attribute__((noreturn, cold));

/* Tell the core that this is a spin loop: gives the sibling thread room and saves power. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

#endif
