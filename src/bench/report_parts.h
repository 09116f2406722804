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

/* 0 or -ENOMEM.  Sorts the points. */
int report_write_plots(FILE *f, struct report_points *p) must_check;

void report_write_figures(FILE *f, struct report_points *p);
void report_write_floor(FILE *f, struct report_points *p, const struct bench_floor *floor);

#endif
