/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells in columns, each as wide as it must be; numbers to the right.
 */
#ifndef BENCH_GRID_H
#define BENCH_GRID_H

#include <stdio.h>

#include "base/compiler.h"

#define GRID_COLUMNS    32
#define GRID_CELL_BYTES 40

struct grid {
	char (*cells)[GRID_CELL_BYTES]; /* rows of GRID_COLUMNS; the first is the head */
	unsigned columns;               /* the most that a row has */
	unsigned rows, room;
	unsigned used; /* cells of the last row */
	bool failed;   /* out of memory: nothing is printed */
	unsigned left; /* bit k: column k is words, and begins at the left */
};

void grid_fini(struct grid *g);

/* The next cells go into a new row. */
void grid_row(struct grid *g);

void grid_cell(struct grid *g, const char *fmt, ...) printf_like(2, 3);

/* 0, or -ENOMEM. */
int grid_print(const struct grid *g, FILE *out);

#endif
