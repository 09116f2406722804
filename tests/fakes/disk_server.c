/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/disk_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"

static void on_stopped(void *arg)
{
	struct disk_server *s = arg;

	loop_stop(s->loop);
}

static void on_stop(struct loop_msg *m)
{
	struct disk_server *s = container_of(m, struct disk_server, stop);

	export_stop(&s->export, on_stopped, s);
}

static int set_up(struct disk_server *s, struct error *err)
{
	struct poll_policy_limits off = {.mode = POLL_OFF}, adaptive = {.mode = POLL_ADAPTIVE};
	struct export_threads threads = {
		.iothreads = s->iothreads, .load = s->load, .niothreads = s->niothreads};
	int ret;

	s->loop = threads.loop = loop_create(&off);
	for (unsigned i = 0; i < s->niothreads; i++)
		s->iothreads[i] = iothread_create("test", &adaptive, err);
	ret = backing_open(&s->backing, &s->options, s->iothreads, s->niothreads, err);
	if (ret == 0)
		ret = export_init(&s->export, &s->options, &s->backing, err);
	if (ret == 0)
		ret = export_listen(&s->export, err);
	return ret < 0 ? ret : export_start(&s->export, &threads, NULL, NULL, err);
}

/* The control thread; a fault here is the test's own. */
static void *run(void *arg)
{
	struct disk_server *s = arg;
	struct error err;

	if (set_up(s, &err) < 0) {
		log_error("disk_server: %s", err.text);
		abort();
	}
	sem_post(&s->ready);
	loop_run(s->loop);
	export_fini(&s->export);
	backing_close(&s->backing);
	for (unsigned i = 0; i < s->niothreads; i++)
		iothread_destroy(s->iothreads[i]);
	loop_destroy(s->loop);
	return NULL;
}

void disk_server_start(struct disk_server *s, const char *keys, unsigned niothreads)
{
	char text[256];
	struct error err;

	memset(s, 0, sizeof(*s));
	log_set_level(LOG_ERROR);
	strcpy(s->folder, "/tmp/rs-drv-XXXXXX");
	assert_non_null(mkdtemp(s->folder));
	snprintf(s->socket, sizeof(s->socket), "%s/s", s->folder);
	snprintf(s->target, sizeof(s->target), "vhost-user-blk:%s", s->socket);
	snprintf(text, sizeof(text), "%s,socket=%s", keys, s->socket);
	disk_options_init(&s->options, 1);
	if (disk_options_parse(&s->options, text, &err) < 0 ||
	    disk_options_check(&s->options, NULL, 0, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	s->niothreads = niothreads;
	s->stop.run = on_stop;
	sem_init(&s->ready, 0, 0);
	assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
	while (sem_wait(&s->ready) < 0)
		;
}

void disk_server_stop(struct disk_server *s)
{
	loop_post(s->loop, &s->stop);
	pthread_join(s->thread, NULL);
	disk_options_fini(&s->options);
	sem_destroy(&s->ready);
	rmdir(s->folder);
}
