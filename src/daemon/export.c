/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/export.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/unix_socket.h"
#include "control/statistics.h"
#include "device/virtio_blk.h"

int export_init(struct disk_export *e, const struct disk_options *o, struct backing *backing,
		struct error *err)
{
	struct virtio_blk_config_options config = {.name = o->id,
						   .serial = o->serial,
						   .queues = o->queues,
						   .read_only = o->readonly,
						   .discard = backing->options->discard};
	struct error why;

	*e = (struct disk_export){.options = o, .backing = backing, .listen_fd = -1};
	e->device = virtio_blk_create(&config, backing->disk, &why);
	if (!e->device)
		return error_set(err, -EINVAL, "disk '%s': %.400s", o->id, why.text);
	return 0;
}

/* A descriptor from outside: ours to configure, and not for children. */
static int prepare_fd(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return 0;
}

int export_listen(struct disk_export *e, struct error *err)
{
	const struct disk_options *o = e->options;
	int handed_in = o->listen_fd >= 0 ? o->listen_fd : o->conn_fd;
	struct error why;
	struct stat st;
	int ret;

	if (handed_in >= 0) {
		ret = prepare_fd(handed_in);
		return ret < 0 ? error_set(err, ret, "descriptor %d: %s", handed_in, strerror(-ret))
			       : 0;
	}
	e->listen_fd = unix_socket_listen(o->socket, &why);
	if (e->listen_fd < 0)
		return error_set(err, e->listen_fd, "disk '%s': %.450s", o->id, why.text);
	if (lstat(o->socket, &st) == 0) {
		e->socket_dev = st.st_dev;
		e->socket_ino = st.st_ino;
	}
	return 0;
}

/* The name goes only if it is still our socket: another daemon may have put its own there. */
static void remove_socket(struct disk_export *e)
{
	struct stat st;

	if (e->socket_ino && lstat(e->options->socket, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    st.st_dev == e->socket_dev && st.st_ino == e->socket_ino)
		unlink(e->options->socket);
	e->socket_ino = 0;
}

int export_start(struct disk_export *e, const struct export_threads *threads,
		 void (*client_left)(void *arg), void *arg, struct error *err)
{
	const struct disk_options *o = e->options;
	const struct disk_options *of_disk = e->backing->options;
	struct vhost_user_server_config config = {
		.name = o->id,
		.loop = threads->loop,
		.device = e->device,
		.iothreads = threads->iothreads,
		.iothread_load = threads->load,
		.niothreads = threads->niothreads,
		.poll = disk_options_given(of_disk, DISK_KEY_POLL) ? &of_disk->poll : NULL,
		.listen_fd = o->listen_fd >= 0 ? o->listen_fd : e->listen_fd,
		.client_fd = o->conn_fd,
		.client_left = client_left,
		.arg = arg,
	};
	struct error why;

	e->listen_fd = -1; /* the server's, also when it fails */
	e->server = vhost_user_server_create(&config, &why);
	if (!e->server) {
		remove_socket(e);
		return error_set(err, -EIO, "disk '%s': %.450s", o->id, why.text);
	}
	return 0;
}

void export_stop(struct disk_export *e, void (*stopped)(void *arg), void *arg)
{
	struct vhost_user_server *server = e->server;

	/* The name first: who connects from now on is told that nobody is there. */
	remove_socket(e);
	e->server = NULL;
	vhost_user_server_stop(server, stopped, arg);
}

void export_fini(struct disk_export *e)
{
	remove_socket(e);
	fd_close(&e->listen_fd);
	if (e->device)
		virtio_blk_destroy(e->device);
	e->device = NULL;
}

void export_announce(const struct disk_export *e)
{
	const struct disk_options *o = e->options;
	const struct backing *b = e->backing;
	char size[40], socket[160];
	uint64_t bytes = disk_capacity_bytes(b->disk);

	if (bytes % (1u << 20))
		snprintf(size, sizeof(size), "%llu bytes", (unsigned long long)bytes);
	else
		snprintf(size, sizeof(size), "%llu MiB", (unsigned long long)(bytes >> 20));
	if (o->socket)
		snprintf(socket, sizeof(socket), "socket %s", o->socket);
	else
		snprintf(socket, sizeof(socket), "descriptor %d",
			 o->listen_fd >= 0 ? o->listen_fd : o->conn_fd);
	log_info("disk '%s': %.200s%s%s%s, engine %s%s, %u queue%s, %s%s", o->id,
		 b->options->path ? b->options->path : "", b->options->path ? ", " : "", size,
		 o->readonly ? " read-only" : "", b->engine,
		 !b->options->path ? ""
		 : b->image.direct ? ", direct on"
				   : ", direct off",
		 o->queues, o->queues == 1 ? "" : "s", socket, o->share ? " (shared)" : "");
}

/* ---- statistics ---- */

struct statistics_walk {
	const struct disk_export *e;
	const struct export_threads *threads;
	json_t *queues;
};

static void add_queue(const struct vhost_user_queue_info *info, void *arg)
{
	struct statistics_walk *w = arg;
	struct blk_channel_stats channel = {0};
	struct loop_stats loop = {0};
	unsigned iothread = info->iothread < 0 ? 0 : (unsigned)info->iothread;

	if (!virtio_blk_channel_stats(w->e->device, info->index, &channel))
		channel = (struct blk_channel_stats){0};
	loop_stats_read(iothread_loop(w->threads->iothreads[iothread]), &loop);
	if (json_array_append_new(w->queues, statistics_queue(info->index, iothread, info->stats,
							      &channel, &loop)) < 0)
		log_warn("statistics: out of memory");
}

json_t *export_statistics(const struct disk_export *e, const struct export_threads *threads)
{
	struct statistics_walk w = {.e = e, .threads = threads, .queues = json_array()};
	struct statistics_export info = {.id = e->options->id,
					 .path = e->backing->options->path,
					 .engine = e->backing->engine,
					 .socket = e->options->socket,
					 .connected = e->server &&
						      vhost_user_server_connected(e->server)};

	if (w.queues && e->server)
		vhost_user_server_queues(e->server, add_queue, &w);
	return statistics_export(&info, w.queues);
}
