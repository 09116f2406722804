/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/statistics.h"
#include "daemon/export.h"
#include "daemon/report.h"
#include "daemon/signals.h"
#include "engine/image.h"

struct daemon {
	const struct serve_options *options;
	struct loop *loop;
	struct signals signals;
	struct report report;
	bool report_again;              /* asked for while a line was on its way */
	struct loop_timer report_timer; /* at the end: how long a line may take to be read */
	struct iothread **iothreads;
	unsigned *load; /* started queues of each iothread */
	unsigned niothreads;
	struct backing *backings; /* one a disk that is not shared */
	unsigned nbackings;
	struct disk_export *exports; /* one a --disk */
	unsigned nexports;
	unsigned nstarted; /* the first of them have a server */
	unsigned stopping; /* what has not yet ended: servers, a line on its way */
	bool terminating;
};

static struct export_threads threads_of(const struct daemon *d)
{
	return (struct export_threads){.loop = d->loop,
				       .iothreads = d->iothreads,
				       .load = d->load,
				       .niothreads = d->niothreads};
}

/* ---- the end ---- */

/* How long the end waits for a reader of the statistics. */
#define REPORT_WAIT_NS 1000000000u

static void one_stopped(void *arg)
{
	struct daemon *d = arg;

	if (--d->stopping == 0)
		loop_stop(d->loop);
}

static void on_report_late(struct loop_timer *t)
{
	one_stopped(container_of(t, struct daemon, report_timer));
}

static void begin_stop(struct daemon *d)
{
	if (d->terminating)
		return;
	d->terminating = true;
	/* One more than there are servers, so that the loop stops also when there is none. */
	d->stopping = d->nstarted + 1;
	if (report_busy(&d->report)) {
		d->stopping++;
		loop_timer_start(d->loop, &d->report_timer, clock_now_ns() + REPORT_WAIT_NS);
	}
	for (unsigned i = 0; i < d->nstarted; i++)
		export_stop(&d->exports[i], one_stopped, d);
	one_stopped(d);
}

static void on_terminate(void *arg)
{
	struct daemon *d = arg;

	if (d->terminating) {
		log_warn("second signal: ending without waiting for requests in flight");
		_exit(1);
	}
	begin_stop(d);
}

/* The one client of a connection that was handed in has left: there will be no other. */
static void on_client_left(void *arg)
{
	begin_stop(arg);
}

/* ---- statistics ---- */

static char *statistics_text(const struct daemon *d)
{
	struct export_threads threads = threads_of(d);
	json_t *exports = json_array(), *iothreads = json_array();

	for (unsigned i = 0; i < d->nexports; i++)
		json_array_append_new(exports, export_statistics(&d->exports[i], &threads));
	for (unsigned i = 0; i < d->niothreads; i++) {
		struct loop_stats loop;

		loop_stats_read(iothread_loop(d->iothreads[i]), &loop);
		json_array_append_new(iothreads, statistics_iothread(i, &loop));
	}
	return statistics_line(statistics_root(RINGSIDE_VERSION, exports, iothreads));
}

static void on_report(void *arg)
{
	struct daemon *d = arg;
	char *line;

	d->report_again = report_busy(&d->report);
	if (d->terminating || d->report_again)
		return;
	line = statistics_text(d);
	if (line)
		report_write(&d->report, line);
	else
		log_warn("statistics: out of memory");
}

static void on_report_written(void *arg)
{
	struct daemon *d = arg;

	if (d->report_timer.armed) {
		loop_timer_stop(d->loop, &d->report_timer);
		one_stopped(d);
	} else if (d->report_again) {
		on_report(d);
	}
}

/* ---- the start ---- */

static void raise_limit(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(resource, &limit);
	}
}

static void raise_limits(void)
{
	/* Every disk, queue and client takes descriptors, rings and registered buffers take locked
	 * memory: the soft limits protect from nothing here. */
	raise_limit(RLIMIT_NOFILE);
	raise_limit(RLIMIT_MEMLOCK);
	/* Nothing is allocated on the data path, so threads need no arenas of their own. */
	mallopt(M_ARENA_MAX, 1);
}

static int start_threads(struct daemon *d, struct error *err)
{
	const struct serve_options *o = d->options;
	struct poll_policy_limits off = {.mode = POLL_OFF};

	d->loop = loop_create(&off);
	d->iothreads = calloc(o->iothreads, sizeof(struct iothread *));
	d->load = calloc(o->iothreads, sizeof(unsigned));
	d->backings = calloc(o->disk_count, sizeof(struct backing));
	d->exports = calloc(o->disk_count, sizeof(struct disk_export));
	if (!d->loop || !d->iothreads || !d->load || !d->backings || !d->exports)
		return error_set(err, -ENOMEM, "cannot start: out of memory or descriptors");
	while (d->niothreads < o->iothreads) {
		struct error why;
		char name[16];

		snprintf(name, sizeof(name), "io%u", d->niothreads);
		d->iothreads[d->niothreads] = iothread_create(name, &o->poll, &why);
		if (!d->iothreads[d->niothreads])
			return error_set(err, -EAGAIN, "iothread %u of %u: %.400s",
					 d->niothreads + 1, o->iothreads, why.text);
		d->niothreads++;
	}
	return 0;
}

/* Two opens of one image in this process would lock each other out with a misleading message. */
static int check_same_image(const struct daemon *d, const struct disk_options *o, struct error *err)
{
	for (unsigned i = 0; i < d->nbackings; i++) {
		const struct disk_options *other = d->backings[i].options;

		if (!o->lock || !other->lock || (o->readonly && other->readonly) || !o->path ||
		    !other->path || !image_same(o->path, other->path))
			continue;
		return error_set(
			err, -EBUSY,
			"disk '%s': '%.200s' is the image of disk '%s' already: to serve it on "
			"two sockets use id=%s,share=on,socket=PATH",
			o->id, o->path, other->id, other->id);
	}
	return 0;
}

static struct backing *find_backing(struct daemon *d, const char *id)
{
	for (unsigned i = 0; i < d->nbackings; i++) {
		if (!strcmp(d->backings[i].options->id, id))
			return &d->backings[i];
	}
	return NULL;
}

static int open_disks(struct daemon *d, struct error *err)
{
	for (unsigned i = 0; i < d->options->disk_count; i++) {
		const struct disk_options *o = &d->options->disks[i];
		struct backing *b = find_backing(d, o->id);
		int ret;

		if (!b) {
			b = &d->backings[d->nbackings];
			ret = check_same_image(d, o, err);
			if (ret == 0)
				ret = backing_open(b, o, d->iothreads, d->niothreads, err);
			if (ret < 0)
				return ret;
			d->nbackings++;
		}
		ret = export_init(&d->exports[d->nexports], o, b, err);
		if (ret < 0)
			return ret;
		d->nexports++;
	}
	return 0;
}

/* All sockets before any client is answered: a socket that cannot be had ends the start. */
static int start_exports(struct daemon *d, struct error *err)
{
	struct export_threads threads = threads_of(d);
	int ret;

	for (unsigned i = 0; i < d->nexports; i++) {
		ret = export_listen(&d->exports[i], err);
		if (ret < 0)
			return ret;
	}
	while (d->nstarted < d->nexports) {
		struct disk_export *e = &d->exports[d->nstarted];

		ret = export_start(e, &threads, e->options->conn_fd >= 0 ? on_client_left : NULL, d,
				   err);
		if (ret < 0)
			return ret;
		d->nstarted++;
	}
	for (unsigned i = 0; i < d->nbackings; i++)
		backing_announce(&d->backings[i]);
	for (unsigned i = 0; i < d->nexports; i++)
		export_announce(&d->exports[i]);
	return 0;
}

static void tear_down(struct daemon *d)
{
	for (unsigned i = 0; i < d->nexports; i++)
		export_fini(&d->exports[i]);
	for (unsigned i = 0; i < d->nbackings; i++)
		backing_close(&d->backings[i]);
	for (unsigned i = 0; i < d->niothreads; i++)
		iothread_destroy(d->iothreads[i]);
	signals_stop(&d->signals);
	if (d->loop)
		loop_destroy(d->loop);
	free(d->exports);
	free(d->backings);
	free(d->load);
	free(d->iothreads);
}

int daemon_run(const struct serve_options *options, struct error *err)
{
	struct daemon d = {.options = options,
			   .report = {.written = on_report_written, .arg = &d},
			   .report_timer = {.expired = on_report_late}};
	int ret;

	raise_limits();
	signals_block();
	d.signals = (struct signals){
		.source = {.fd = -1}, .terminate = on_terminate, .report = on_report, .arg = &d};
	ret = start_threads(&d, err);
	if (ret == 0)
		ret = signals_start(&d.signals, d.loop, err);
	if (ret == 0)
		ret = open_disks(&d, err);
	if (ret == 0)
		ret = start_exports(&d, err);
	if (ret < 0 && d.loop)
		begin_stop(&d);
	/* Runs also when the start failed half-way and servers must end in order. */
	if (ret == 0 || d.stopping)
		loop_run(d.loop);
	/* Nobody reads stdout, and a thread is stuck in write(2) with d's memory: leave it all. */
	if (report_busy(&d.report))
		_exit(0);
	tear_down(&d);
	return ret;
}
