/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/grid.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void grid_fini(struct grid *g)
{
	free(g->cells);
	memset(g, 0, sizeof(*g));
}

static char *cell_at(const struct grid *g, unsigned row, unsigned column)
{
	return g->cells[row * GRID_COLUMNS + column];
}

void grid_row(struct grid *g)
{
	g->used = 0;
	if (g->rows == g->room) {
		unsigned room = g->room ? g->room * 2 : 16;
		void *cells = reallocarray(g->cells, (size_t)room * GRID_COLUMNS, GRID_CELL_BYTES);

		if (!cells) {
			g->failed = true;
			return;
		}
		g->cells = cells;
		g->room = room;
	}
	memset(cell_at(g, g->rows, 0), 0, GRID_COLUMNS * GRID_CELL_BYTES);
	g->rows++;
}

void grid_cell(struct grid *g, const char *fmt, ...)
{
	va_list ap;

	ASSERT(g->used < GRID_COLUMNS);
	if (g->failed)
		return;
	va_start(ap, fmt);
	vsnprintf(cell_at(g, g->rows - 1, g->used++), GRID_CELL_BYTES, fmt, ap);
	va_end(ap);
	g->columns = MAX(g->columns, g->used);
}

int grid_print(const struct grid *g, FILE *out)
{
	int widths[GRID_COLUMNS] = {0};

	if (g->failed)
		return -ENOMEM;
	for (unsigned i = 0; i < g->rows * GRID_COLUMNS; i++) {
		int *width = &widths[i % GRID_COLUMNS];

		*width = MAX(*width, (int)strlen(g->cells[i]));
	}
	for (unsigned row = 0; row < g->rows; row++) {
		for (unsigned i = 0; i < g->columns; i++) {
			bool left = g->left & (1u << i);
			int width = left && i + 1 == g->columns ? 0 : widths[i];

			fprintf(out, "%s%*s", i ? "  " : "", left ? -width : width,
				cell_at(g, row, i));
		}
		fputc('\n', out);
	}
	return 0;
}
