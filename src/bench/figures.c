/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/figures.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* More repeats than this are not looked at; the options' limit. */
#define RUNS_MAX 1000

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double bench_median(double *v, size_t n)
{
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), compare);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

void bench_figures_of_run(const struct bench_run *run, struct bench_figures *out)
{
	const struct histogram *h = run->latency;
	double n = run->requests ? (double)run->requests : 1;

	memset(out, 0, sizeof(*out));
	if (run->seconds > 0) {
		out->iops = (double)run->requests / run->seconds;
		out->bytes_per_s = (double)run->bytes / run->seconds;
	}
	if (h->count) {
		out->mean_ns = (double)h->sum_ns / (double)h->count;
		out->p50_ns = (double)histogram_percentile_ns(h, 50);
		out->p99_ns = (double)histogram_percentile_ns(h, 99);
		out->p999_ns = (double)histogram_percentile_ns(h, 99.9);
		out->max_ns = (double)h->max_ns;
	}
	out->kicks_per_request = (double)run->kicks / n;
	out->calls_per_request = (double)run->calls / n;
	out->system_calls_per_request = (double)run->system_calls / n;
	out->client_cpu_ns = (double)run->client_cpu_ns / n;
	out->server_cpu_ns = (double)run->server_cpu_ns / n;
	out->server_known = run->server_known;
	out->errors = run->errors;
}

void bench_figures_median(const struct bench_run *runs, size_t n, struct bench_figures *out)
{
	static const size_t fields[] = {
#define FIELD(f) offsetof(struct bench_figures, f)
		FIELD(iops),
		FIELD(bytes_per_s),
		FIELD(mean_ns),
		FIELD(p50_ns),
		FIELD(p99_ns),
		FIELD(p999_ns),
		FIELD(max_ns),
		FIELD(kicks_per_request),
		FIELD(calls_per_request),
		FIELD(system_calls_per_request),
		FIELD(client_cpu_ns),
		FIELD(server_cpu_ns),
#undef FIELD
	};
	struct bench_figures all = {.server_known = true};
	double values[RUNS_MAX];

	n = MIN(n, (size_t)RUNS_MAX);
	for (size_t f = 0; f < ARRAY_SIZE(fields); f++) {
		for (size_t i = 0; i < n; i++) {
			struct bench_figures one;

			bench_figures_of_run(&runs[i], &one);
			values[i] = *(const double *)((const char *)&one + fields[f]);
		}
		*(double *)((char *)&all + fields[f]) = bench_median(values, n);
	}
	for (size_t i = 0; i < n; i++) {
		all.errors += runs[i].errors;
		all.server_known = all.server_known && runs[i].server_known;
	}
	*out = all;
}

bool bench_ratio(const struct bench_run *base, size_t base_n, const struct bench_run *runs,
		 size_t n, double *median, double *min, double *max)
{
	double values[RUNS_MAX];
	size_t found = 0;

	n = MIN(MIN(n, base_n), (size_t)RUNS_MAX);
	for (size_t i = 0; i < n; i++) {
		struct bench_figures a, b;

		bench_figures_of_run(&base[i], &a);
		bench_figures_of_run(&runs[i], &b);
		if (a.iops > 0)
			values[found++] = b.iops / a.iops;
	}
	if (!found)
		return false;
	*median = bench_median(values, found);
	*min = values[0];
	*max = values[found - 1];
	return true;
}
