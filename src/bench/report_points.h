/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The points of a report in the order in which a plot wants them: what differs among them, what
 * they are called, which of them make a line and which lines share a plot.
 */
#ifndef BENCH_REPORT_POINTS_H
#define BENCH_REPORT_POINTS_H

#include "base/compiler.h"
#include "bench/result.h"

enum report_dim {
	REPORT_TARGET,
	REPORT_RW,
	REPORT_BLOCK,
	REPORT_DEPTH,
	REPORT_JOBS,
	REPORT_COMPLETION,
	REPORT_RATE,
	REPORT_DIMS,
	REPORT_NO_DIM = REPORT_DIMS,
};

#define REPORT_ALL ((1u << REPORT_DIMS) - 1)

struct report_item {
	const struct bench_point *point;
	unsigned target; /* its number on the page; the same target named twice is two */
	size_t order;    /* as they were given */
	size_t group;    /* report_points_sort(): alike but for target and x */
};

struct report_points {
	struct report_item *items;
	size_t count;
	unsigned targets;
	const struct bench_point **target_points; /* for each target its first point */
};

/* 0 or -ENOMEM.  The points stay the caller's, and are needed until _fini. */
int report_points_init(struct report_points *p, const struct bench_point *points,
		       size_t count) must_check;
void report_points_fini(struct report_points *p);

/* By group, then target, then x (or the order given). */
void report_points_sort(struct report_points *p, enum report_dim x);

/* How many of the n items from the first on are one line over x: one group, one target. */
size_t report_points_line(const struct report_item *items, size_t n, enum report_dim x);

/* How many of the n items share a plot of at most `most` lines: whole groups, at least one.  Where
 * not all fit, those of one pattern. */
size_t report_points_plot(const struct report_item *items, size_t n, enum report_dim x,
			  unsigned most);

/* Bit k: the items differ in enum report_dim k. */
unsigned report_points_varying(const struct report_item *items, size_t n);

/* Bytes with which the names of all targets begin, up to and with a '/' or ':'. */
size_t report_points_common(const struct report_item *items, size_t n);

double report_point_value(const struct bench_point *point, enum report_dim dim);

/* 'A' for the first target; past 'Z' it starts again. */
char report_target_letter(unsigned target);

/* "vhost-user-blk:/run/vm.sock, depth 32, poll": those of the mask, in at most max characters, the
 * target cut for it.  Empty if the mask is. */
void report_label(char *buf, size_t len, const struct bench_point *point, unsigned mask,
		  size_t max);

#endif
