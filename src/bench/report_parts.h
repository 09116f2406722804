/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a report's page, each in a file of its own; put together by report.c.
 */
#ifndef BENCH_REPORT_PARTS_H
#define BENCH_REPORT_PARTS_H

#include <stdio.h>

#include "bench/report.h"
#include "bench/report_points.h"

/* From the doctype to the opening tag of body: how the page looks. */
void report_write_head(FILE *f);

/* What shows the values that one points at. */
void report_write_script(FILE *f);

/* ---- plots ---- */

/* Writes one plot of these items.  0 or -ENOMEM. */
typedef int report_plot_fn(FILE *f, const struct report_item *items, size_t n);

/* Cuts the sorted items into plots of at most `most` lines over x, and writes them. */
int report_write_cut(FILE *f, const struct report_item *items, size_t n, enum report_dim x,
		     unsigned most, report_plot_fn *plot) must_check;

/* What the items have in common, into buf[CHART_LABEL_LEN]; differs: a mask of enum report_dim. */
void report_name_subject(char *buf, const struct report_item *items, unsigned differs);

/* throughput: its bars, too; a sweep shows it better. */
int report_write_bars(FILE *f, struct report_points *p, bool throughput) must_check;

/* All of them.  0 or -ENOMEM.  Sorts the points. */
int report_write_plots(FILE *f, struct report_points *p) must_check;

/* ---- tables ---- */

void report_write_figures(FILE *f, struct report_points *p);
void report_write_floor(FILE *f, struct report_points *p, const struct bench_floor *floor);

#endif
