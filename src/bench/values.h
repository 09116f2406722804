/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that a person writes behind an option of the benchmark, and lists of them.  Strict: whole
 * decimal numbers, nothing before or behind but a unit; what does not fit is refused.  Pure.
 *
 * The text of an error is a clause for behind "--option: ".
 */
#ifndef BENCH_VALUES_H
#define BENCH_VALUES_H

#include <stdint.h>

#include "base/error.h"

/* The most values in a comma list. */
#define BENCH_LIST_MAX 32

struct bench_list {
	uint64_t values[BENCH_LIST_MAX];
	unsigned count;
};

enum bench_unit {
	BENCH_UNIT_NONE, /* a number */
	BENCH_UNIT_SIZE, /* bytes: K, M, G, T, powers of 1024 */
	BENCH_UNIT_TIME, /* written in us, ms, s or m, without a unit in s; becomes nanoseconds */
};

/* In [min, max], both in the unit that comes out. */
int bench_value(const char *text, enum bench_unit unit, uint64_t min, uint64_t max, uint64_t *out,
		struct error *err) must_check;

/* The same, several with commas between them.  A value twice is refused. */
int bench_value_list(const char *text, enum bench_unit unit, uint64_t min, uint64_t max,
		     struct bench_list *out, struct error *err) must_check;

/* A comma list of names; what comes out are their places in names[0..n). */
int bench_name_list(const char *text, const char *const *names, unsigned n, struct bench_list *out,
		    struct error *err) must_check;

#endif
