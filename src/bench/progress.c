/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "bench/units.h"

void progress_init(struct bench_progress *p, unsigned runs)
{
	*p = (struct bench_progress){.on = isatty(STDERR_FILENO), .runs = runs};
}

void progress_begin(struct bench_progress *p, const char *label)
{
	p->run++;
	p->last_ns = 0;
	snprintf(p->label, sizeof(p->label), "%s", label);
}

void progress_show(struct bench_progress *p, uint64_t now_ns, uint64_t requests)
{
	char rate[32] = "...";

	if (!p->on)
		return;
	if (p->last_ns && now_ns > p->last_ns)
		units_count((double)(requests - p->last_requests) * 1e9 /
				    (double)(now_ns - p->last_ns),
			    rate, sizeof(rate));
	p->last_ns = now_ns;
	p->last_requests = requests;
	p->shown = true;
	fprintf(stderr, "\r\033[K[%u/%u] %s: %s IOPS", p->run, p->runs, p->label, rate);
	fflush(stderr);
}

void progress_clear(struct bench_progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
