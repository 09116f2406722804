/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_all(const char *p, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		/* A reader that left is no reason to complain. */
		if (n <= 0)
			return;
		p += n;
		len -= (size_t)n;
	}
}

static void work(struct worker_item *w)
{
	struct report *r = container_of(w, struct report, item);

	write_all(r->line, strlen(r->line));
}

static void done(struct worker_item *w)
{
	struct report *r = container_of(w, struct report, item);

	free(r->line);
	r->line = NULL;
	r->written(r->arg);
}

void report_write(struct report *r, char *line)
{
	ASSERT(!r->line);
	r->line = line;
	r->item.work = work;
	r->item.done = done;
	worker_submit(worker_pool_default(), &r->item);
}
