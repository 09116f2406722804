/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own server in the test's process: what `ringside serve` does for one disk, on a thread of its
 * own with its iothreads, so that a client can be tried against it under the sanitizers.
 */
#ifndef FAKES_DISK_SERVER_H
#define FAKES_DISK_SERVER_H

#include <pthread.h>
#include <semaphore.h>

#include "daemon/export.h"

#define DISK_SERVER_MAX_IOTHREADS 4

struct disk_server {
	char folder[32];
	char socket[64];
	char target[96]; /* "vhost-user-blk:…" */

	pthread_t thread;
	sem_t ready;
	struct loop_msg stop;
	struct loop *loop;
	struct disk_options options;
	struct backing backing;
	struct disk_export export;
	struct iothread *iothreads[DISK_SERVER_MAX_IOTHREADS];
	unsigned load[DISK_SERVER_MAX_IOTHREADS];
	unsigned niothreads;
};

/* keys: as behind --disk, but for the socket.  Listens when it returns.  Fails the test. */
void disk_server_start(struct disk_server *s, const char *keys, unsigned niothreads);
/* An orderly end. */
void disk_server_stop(struct disk_server *s);

#endif
