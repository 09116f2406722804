/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report pages with made-up figures, for the tests in a browser: make_report FOLDER.  The same
 * pages every time.  Targets are named by somebody who means ill.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report.h"

#define POINTS_MAX 256

static struct bench_point points[POINTS_MAX];
static size_t count;

static const char *const targets[] = {
	"vhost-user-blk:/run/ringside/a-rather-long-folder-name/ringside.sock",
	"vhost-user-blk:/tmp/\"><script>document.title='bad'</script>&'.sock",
	"file:/var/lib/images/disk.img?engine=io_uring&direct=on",
	"vhost-user-blk:/run/ünïcödé/\xff\x01.sock",
};

static unsigned next_random(void)
{
	static unsigned state = 1;

	state = state * 1103515245u + 12345u;
	return state >> 16 & 0x7fff;
}

/* Most requests take about ns, a few a hundred times as long. */
static struct histogram *latencies(double ns, unsigned samples)
{
	struct histogram *h = calloc(1, sizeof(*h));

	if (!h)
		exit(1);
	for (unsigned i = 0; i < samples; i++) {
		double u = (next_random() + 1) / 32769.0;

		histogram_add(h, (uint64_t)(ns * (0.8 + 0.1 / pow(u, 0.4))));
	}
	return h;
}

static void fill_figures(struct bench_point *p, double ns)
{
	struct bench_figures *v = &p->figures;
	bool poll = !strcmp(p->params.completion, "poll");
	double depth = p->params.iodepth;

	p->latency = latencies(ns, 20000);
	v->iops = 1e9 * depth / ns;
	v->bytes_per_s = v->iops * p->params.block_bytes;
	v->mean_ns = ns * 1.1;
	v->p50_ns = (double)histogram_percentile_ns(p->latency, 50);
	v->p99_ns = (double)histogram_percentile_ns(p->latency, 99);
	v->p999_ns = (double)histogram_percentile_ns(p->latency, 99.9);
	v->max_ns = (double)p->latency->max_ns;
	v->kicks_per_request = poll ? 0 : 1 / depth;
	v->calls_per_request = poll ? 0 : 0.7 / depth;
	v->system_calls_per_request = poll ? 0 : 2.7 / depth;
	v->client_cpu_ns = poll ? ns / depth : 3000 / depth;
	v->server_known = strncmp(p->target, "file:", 5);
	v->server_cpu_ns = v->server_known ? 0.8 * v->client_cpu_ns : 0;
}

static void add(unsigned target, struct bench_params params, double slowness)
{
	double ns = slowness * (500 + 150 * params.iodepth + 0.05 * params.block_bytes);
	struct bench_point *p = &points[count++];

	*p = (struct bench_point){.target = targets[target], .params = params, .repeats = 3};
	if (!strcmp(params.completion, "sleep"))
		ns += 12000;
	fill_figures(p, ns);
	p->has_ratio = target > 0;
	p->ratio = 1 / slowness;
	p->ratio_min = 0.9 / slowness;
	p->ratio_max = 1.1 / slowness;
}

static const struct bench_params usual = {
	.rw = "randread", .completion = "poll", .block_bytes = 4096, .iodepth = 1, .jobs = 1};

static void one(void)
{
	add(0, usual, 1);
}

static void two(void)
{
	add(0, usual, 1);
	add(1, usual, 17);
}

static void depths(void)
{
	for (unsigned depth = 1; depth <= 256; depth *= 2) {
		for (unsigned target = 0; target < 4; target++) {
			struct bench_params params = usual;

			params.iodepth = depth;
			add(target, params, 1 + target);
		}
	}
}

static void blocks(void)
{
	for (unsigned bytes = 512; bytes <= 1u << 20; bytes *= 2) {
		for (unsigned target = 0; target < 2; target++) {
			struct bench_params params = usual;

			params.block_bytes = bytes;
			add(target, params, 1 + target);
		}
	}
}

/* What --matrix measures. */
static void matrix(void)
{
	static const char *const patterns[] = {"read", "write", "randread", "randwrite"};

	for (unsigned i = 0; i < 16; i++) {
		struct bench_params params = usual;

		params.rw = patterns[i / 4];
		params.block_bytes = 4096u << 2 * (i % 4);
		params.completion = "sleep";
		add(0, params, 1);
		params.completion = "poll";
		add(0, params, 1);
	}
}

static void strange(void)
{
	add(0, usual, 1);
	add(0, usual, 1.01);
	add(0, usual, 1.02);
	points[0].figures = (struct bench_figures){.iops = NAN, .p50_ns = INFINITY, .errors = 7};
	points[0].latency->count = 0;
	free(points[1].latency);
	points[1].latency = NULL;
	points[2].figures = (struct bench_figures){0};
	points[2].params.rate = 1000;
}

static void clear(void)
{
	while (count)
		free(points[--count].latency);
}

static void nothing(void)
{
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fill)(void);
	} pages[] = {{"one", one},        {"two", two},       {"depths", depths},
		     {"blocks", blocks},  {"matrix", matrix}, {"strange", strange},
		     {"nothing", nothing}};
	const struct bench_floor floor = {103, 11600, 79, {0, 1}};
	char path[4096], err[256];

	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(pages); i++) {
		struct bench_report r = {
			.points = points,
			.floor = i ? &floor : NULL,
			.command_line =
				"ringside bench 'vhost-user-blk:/run/<vm>.sock' --rw randread "
				"--bs 4k --iodepth 1,2,4,8,16,32,64,128,256 "
				"--completion poll --report out.html",
			.machine = "Example(R) Processor <E5> v4 @ 2.20GHz, 2 cpus, Linux 6.12.1 "
				   "x86_64",
		};

		clear();
		pages[i].fill();
		r.count = count;
		snprintf(path, sizeof(path), "%s/%s.html", argv[1], pages[i].name);
		if (bench_report_write(path, &r, err, sizeof(err))) {
			fprintf(stderr, "%s\n", err);
			return 1;
		}
	}
	clear();
	return argc == 2 ? 0 : 2;
}
