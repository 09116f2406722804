/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on numbers that somebody else chose: false when the result does not fit.
 */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define checked_add(a, b, out) (!__builtin_add_overflow((a), (b), (out)))
#define checked_mul(a, b, out) (!__builtin_mul_overflow((a), (b), (out)))

/* Does [offset, offset + len) lie inside [0, size)?  Never overflows; an empty range may end at
 * size. */
static inline bool range_within(uint64_t offset, uint64_t len, uint64_t size)
{
	return len <= size && offset <= size - len;
}

static inline bool ranges_overlap(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
	return a_len && b_len && (a < b ? b - a < a_len : a - b < b_len);
}

static inline bool is_power_of_2(uint64_t v)
{
	return v && !(v & (v - 1));
}

static inline uint64_t align_down(uint64_t v, uint64_t power_of_2)
{
	return v & ~(power_of_2 - 1);
}

/* The caller knows that v + power_of_2 does not overflow. */
static inline uint64_t align_up(uint64_t v, uint64_t power_of_2)
{
	return (v + power_of_2 - 1) & ~(power_of_2 - 1);
}

#endif
