/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a line to stdout without stopping the control thread: stdout may be a pipe that nobody
 * reads.  One line at a time.
 */
#ifndef DAEMON_REPORT_H
#define DAEMON_REPORT_H

#include "loop/worker.h"

struct report {
	struct worker_item item;
	char *line;                 /* NULL: nothing is being written */
	void (*written)(void *arg); /* set by the owner: the line is out; the control thread */
	void *arg;
};

/* The control thread; no line is on its way.  Takes over line (free). */
void report_write(struct report *r, char *line);

static inline bool report_busy(const struct report *r)
{
	return r->line;
}

#endif
