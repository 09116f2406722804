/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `--report`: one HTML page with plots, tables, the command line and the machine.  It needs nothing
 * but itself: no network, no other file.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "base/compiler.h"
#include "bench/result.h"

/* All of it is the caller's, and only read. */
struct bench_report {
	const struct bench_point *points;
	size_t count;                    /* 0: the page says that nothing was measured */
	const struct bench_floor *floor; /* NULL: not measured */
	const char *command_line;
	const char *machine; /* bench_machine_text(); the date is added */
};

/*
 * Writes the page beside path and renames it, so that path holds a whole page, the old or the new.
 * What is not a regular file (a terminal, a pipe) is written directly.  0, or a negative errno with
 * one line for a person in err.
 */
int bench_report_write(const char *path, const struct bench_report *r, char *err,
		       size_t err_len) must_check;

#endif
