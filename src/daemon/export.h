/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An export: one socket with one virtio-blk device in front of a disk.  Control thread.
 */
#ifndef DAEMON_EXPORT_H
#define DAEMON_EXPORT_H

#include <jansson.h>

#include "daemon/backing.h"
#include "device/virtio_device.h"
#include "transport/vhost_user/server.h"

struct disk_export {
	const struct disk_options *options; /* the caller's, outlives the export */
	struct backing *backing;            /* shared with other exports of the disk */
	struct virtio_device *device;
	struct vhost_user_server *server;
	int listen_fd; /* until the server has it */
	dev_t socket_dev;
	ino_t socket_ino; /* of the socket that we made; 0 = none */
};

/* What exports share; see struct vhost_user_server_config. */
struct export_threads {
	struct loop *loop;
	struct iothread *const *iothreads;
	unsigned *load;
	unsigned niothreads;
};

/* The device; nothing that others can see.  0, or a negative errno with *err. */
int export_init(struct disk_export *e, const struct disk_options *options, struct backing *backing,
		struct error *err) must_check;

/* Makes the socket, or takes the one that was handed in. */
int export_listen(struct disk_export *e, struct error *err) must_check;

/* Serves clients from now on.  client_left (may be NULL): see the server's configuration. */
int export_start(struct disk_export *e, const struct export_threads *threads,
		 void (*client_left)(void *arg), void *arg, struct error *err) must_check;

/* Takes the socket's file away, lets requests end, calls stopped.  Started exports only. */
void export_stop(struct disk_export *e, void (*stopped)(void *arg), void *arg);

/* Not started, or stopped. */
void export_fini(struct disk_export *e);

/* One info line about what is served. */
void export_announce(const struct disk_export *e);

/* Statistics; a new reference or NULL.  load as in struct export_threads. */
json_t *export_statistics(const struct disk_export *e, const struct export_threads *threads);

#endif
