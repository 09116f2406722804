/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of the vhost-user transport.
 *
 * The control thread owns the configuration and decides; what touches the virtqueue runs on the
 * ring's iothread, called synchronously (an iothread never waits, so this is short) except for
 * draining, which takes as long as the disk takes and is told by a message.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/fd.h"
#include "base/log.h"
#include "spec/virtio.h"
#include "transport/vhost_user/internal.h"

static void on_broken(struct virtq *vq);
static void on_drained(struct virtq *vq);
static void broken_message(struct loop_msg *m);
static void drained_message(struct loop_msg *m);

struct vhost_vring *vring_get(struct vhost_user_server *server, unsigned index)
{
	struct vhost_vring *v;

	if (index >= server->nvrings)
		return NULL;
	if (server->vrings[index])
		return server->vrings[index];
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->server = server;
	v->index = index;
	v->iothread = -1;
	v->kick_fd = v->call_fd = v->err_fd = -1;
	virtq_init(&v->vq);
	v->vq.broken = on_broken;
	v->vq.drained = on_drained;
	v->broken_msg.run = broken_message;
	v->drained_msg.run = drained_message;
	vring_reset(v);
	server->vrings[index] = v;
	return v;
}

void vring_reset(struct vhost_vring *v)
{
	v->num = 0;
	memset(&v->addr, 0, sizeof(v->addr));
	v->have_addr = v->kicked = v->complained = false;
	v->base = 0;
	v->enable = -1;
	fd_close(&v->kick_fd);
	fd_close(&v->call_fd);
	fd_close(&v->err_fd);
}

void vring_free(struct vhost_vring *v)
{
	if (!v)
		return;
	vring_reset(v);
	free(v);
}

static struct iothread *vring_iothread(const struct vhost_vring *v)
{
	return v->server->config.iothreads[v->iothread];
}

/* ---- on the iothread ---- */

struct start_args {
	struct vhost_vring *v;
	struct virtq_config config;
	struct error err;
	int ret;
};

static void start_on_iothread(void *arg)
{
	struct start_args *a = arg;
	struct vhost_vring *v = a->v;
	struct virtio_device *dev = v->server->config.device;
	const struct poll_policy_limits *limits = v->server->config.poll ? &v->server->poll : NULL;

	a->ret = virtq_start(&v->vq, &a->config, &a->err);
	if (a->ret < 0)
		return;
	a->ret = dev->ops->queue_start(dev, v->index, &v->vq, &a->err);
	if (a->ret < 0)
		goto stop;
	a->ret = queue_poller_add(&v->poller, loop_current(), &v->vq.queue, v->kick_fd, limits);
	if (a->ret < 0) {
		error_set(&a->err, a->ret, "cannot wait for the kick descriptor: %s",
			  strerror(-a->ret));
		dev->ops->queue_stop(dev, v->index);
		goto stop;
	}
	return;
stop:
	/* Not started after all: nothing is in flight and nobody is to be told. */
	v->vq.drained = NULL;
	virtq_stop(&v->vq);
	v->vq.drained = on_drained;
	v->vq.mem = NULL;
}

static void stop_on_iothread(void *arg)
{
	struct vhost_vring *v = arg;

	queue_poller_remove(&v->poller);
	virtq_stop(&v->vq);
}

static void release_on_iothread(void *arg)
{
	struct vhost_vring *v = arg;
	struct virtio_device *dev = v->server->config.device;

	dev->ops->queue_stop(dev, v->index);
	virtq_release_memory(&v->vq);
}

static void on_drained(struct virtq *vq)
{
	struct vhost_vring *v = container_of(vq, struct vhost_vring, vq);

	loop_post(v->server->config.loop, &v->drained_msg);
}

static void on_broken(struct virtq *vq)
{
	struct vhost_vring *v = container_of(vq, struct vhost_vring, vq);

	loop_post(v->server->config.loop, &v->broken_msg);
}

/* ---- on the control thread ---- */

static unsigned least_loaded(const struct vhost_user_server *server)
{
	const unsigned *load = server->config.iothread_load;
	unsigned best = 0;

	for (unsigned i = 1; i < server->config.niothreads; i++) {
		if (load[i] < load[best])
			best = i;
	}
	return best;
}

/* Enabled from the start without PROTOCOL_FEATURES, else only when told ("Ring states"). */
static bool vring_enabled(const struct vhost_vring *v)
{
	const struct session *s = v->server->session;

	if (v->enable >= 0)
		return v->enable;
	return !(s->features & VIRTIO_BIT(VHOST_USER_F_PROTOCOL_FEATURES));
}

static bool vring_wants_to_run(const struct vhost_vring *v)
{
	const struct session *s = v->server->session;

	return s && !s->closing && s->have_features && s->memory && v->kicked && v->num &&
	       v->have_addr && vring_enabled(v);
}

void vring_update(struct vhost_vring *v)
{
	struct vhost_user_server *server = v->server;
	struct session *s = server->session;
	struct start_args a = {.v = v};

	if (v->running || !vring_wants_to_run(v))
		return;
	v->iothread = (int)least_loaded(server);
	a.config = (struct virtq_config){
		.size = (uint16_t)v->num,
		.last_avail_idx = v->base,
		.event_idx = s->features & VIRTIO_BIT(VIRTIO_RING_F_EVENT_IDX),
		.indirect = s->features & VIRTIO_BIT(VIRTIO_RING_F_INDIRECT_DESC),
		.desc_user = v->addr.desc_user_addr,
		.avail_user = v->addr.avail_user_addr,
		.used_user = v->addr.used_user_addr,
		.mem = memory_for_ring(s),
		.call_fd = v->call_fd,
		.err_fd = v->err_fd,
	};
	if (!a.config.mem)
		return;
	iothread_run_sync(vring_iothread(v), start_on_iothread, &a);
	if (a.ret < 0) {
		a.config.mem->released(a.config.mem);
		/* Perhaps the memory comes with a later message; the ring is tried again then. */
		if (!v->complained)
			log_warn("%s: queue %u does not start: %s", server->name, v->index,
				 a.err.text);
		v->complained = true;
		return;
	}
	v->running = true;
	server->config.iothread_load[v->iothread]++;
}

void vring_update_all(struct vhost_user_server *server)
{
	for (unsigned i = 0; i < server->nvrings; i++) {
		if (server->vrings[i])
			vring_update(server->vrings[i]);
	}
}

unsigned vring_stop(struct vhost_vring *v)
{
	if (!v->running)
		return 0;
	if (!v->stopping) {
		v->stopping = true;
		iothread_run_sync(vring_iothread(v), stop_on_iothread, v);
	}
	return 1;
}

unsigned vring_stop_all(struct vhost_user_server *server)
{
	unsigned n = 0;

	for (unsigned i = 0; i < server->nvrings; i++) {
		if (server->vrings[i])
			n += vring_stop(server->vrings[i]);
	}
	return n;
}

static void drained_message(struct loop_msg *m)
{
	struct vhost_vring *v = container_of(m, struct vhost_vring, drained_msg);

	iothread_run_sync(vring_iothread(v), release_on_iothread, v);
	v->base = virtq_base(&v->vq);
	v->running = v->stopping = false;
	v->server->config.iothread_load[v->iothread]--;
	session_wait_done(v->server->session);
}

static void broken_message(struct loop_msg *m)
{
	struct vhost_vring *v = container_of(m, struct vhost_vring, broken_msg);

	if (!v->running)
		return;
	log_error("%s: queue %u is broken: %s; it rests until the guest resets the device",
		  v->server->name, v->index, v->vq.broken_why);
}

bool vring_any_broken(const struct vhost_user_server *server)
{
	for (unsigned i = 0; i < server->nvrings; i++) {
		const struct vhost_vring *v = server->vrings[i];

		/* relaxed: the message that logs it may still be on its way */
		if (v && v->running && atomic_load_relaxed(&v->vq.queue.state) == QUEUE_BROKEN)
			return true;
	}
	return false;
}

/* ---- descriptors ---- */

struct fd_args {
	struct vhost_vring *v;
	int ret;
};

/* Somebody else's description: make sure that neither reading nor writing it can block us. */
static int make_nonblocking(int fd)
{
	int flags = fd < 0 ? 0 : fcntl(fd, F_GETFL);

	if (flags < 0 ||
	    (fd >= 0 && !(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0))
		return -errno;
	return 0;
}

static void kick_on_iothread(void *arg)
{
	struct fd_args *a = arg;

	a->ret = queue_poller_set_kick(&a->v->poller, a->v->kick_fd);
}

int vring_set_kick(struct vhost_vring *v, int fd)
{
	struct fd_args a = {.v = v};
	int old = v->kick_fd;

	v->kick_fd = fd;
	v->kicked = true;
	a.ret = make_nonblocking(fd);
	if (v->running && !v->stopping)
		iothread_run_sync(vring_iothread(v), kick_on_iothread, &a);
	fd_close(&old);
	return a.ret;
}

static void call_on_iothread(void *arg)
{
	struct fd_args *a = arg;

	virtq_set_call(&a->v->vq, a->v->call_fd);
}

void vring_set_call(struct vhost_vring *v, int fd)
{
	struct fd_args a = {.v = v};
	int old = v->call_fd;

	v->call_fd = fd;
	if (make_nonblocking(fd) < 0)
		fd_close(&v->call_fd);
	if (v->running)
		iothread_run_sync(vring_iothread(v), call_on_iothread, &a);
	fd_close(&old);
}

static void err_on_iothread(void *arg)
{
	struct fd_args *a = arg;

	virtq_set_err(&a->v->vq, a->v->err_fd);
}

void vring_set_err(struct vhost_vring *v, int fd)
{
	struct fd_args a = {.v = v};
	int old = v->err_fd;

	v->err_fd = fd;
	if (make_nonblocking(fd) < 0)
		fd_close(&v->err_fd);
	if (v->running)
		iothread_run_sync(vring_iothread(v), err_on_iothread, &a);
	fd_close(&old);
}

/* ---- memory ---- */

struct memory_args {
	struct vhost_vring *v;
	struct virtq_mem *vm;
};

static void memory_on_iothread(void *arg)
{
	struct memory_args *a = arg;

	/* [MEM1] the message that runs this released the table by loop_post() */
	virtq_set_memory(&a->v->vq, a->vm);
}

void vring_memory_changed(struct vhost_user_server *server)
{
	for (unsigned i = 0; i < server->nvrings; i++) {
		struct vhost_vring *v = server->vrings[i];
		struct memory_args a = {.v = v};

		if (!v || !v->running || v->stopping)
			continue;
		a.vm = memory_for_ring(server->session);
		if (a.vm)
			iothread_run_sync(vring_iothread(v), memory_on_iothread, &a);
	}
}
