/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See server.h.  Owns the listening socket, the rings (kept over clients for their statistics) and
 * the one session.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"
#include "transport/vhost_user/internal.h"

static void server_free(struct vhost_user_server *server)
{
	for (unsigned i = 0; server->vrings && i < server->nvrings; i++)
		vring_free(server->vrings[i]);
	free(server->vrings);
	fd_close(&server->listener.fd);
	fd_close(&server->next_client_fd);
	free(server->name);
	free(server);
}

static void start_session(struct vhost_user_server *server, int fd)
{
	server->session = session_create(server, fd);
	if (!server->session)
		log_error("%s: no memory or descriptors left for a client", server->name);
	else
		log_info("%s: a client connected", server->name);
}

void server_session_ended(struct vhost_user_server *server)
{
	struct virtio_device *dev = server->config.device;
	int next = server->next_client_fd;

	for (unsigned i = 0; i < server->nvrings; i++) {
		if (server->vrings[i])
			vring_reset(server->vrings[i]);
	}
	dev->ops->detach(dev);
	server->session = NULL;
	server->next_client_fd = -1;
	if (server->stopping) {
		void (*stopped)(void *arg) = server->stopped;
		void *arg = server->stopped_arg;

		fd_close(&next);
		server_free(server);
		stopped(arg);
		return;
	}
	if (next >= 0)
		start_session(server, next);
	if (server->config.client_left)
		server->config.client_left(server->config.arg);
}

/* The client may be gone without our having read so yet: its successor is not a second client. */
static bool session_hung_up(const struct session *s)
{
	struct pollfd p = {.fd = s->socket.fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static void on_listener(struct loop_fd *lf, uint32_t events)
{
	struct vhost_user_server *server = container_of(lf, struct vhost_user_server, listener);
	int fd = accept4(lf->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE) {
			/* Waiting on would be a busy loop; when a client leaves we listen again. */
			log_error("%s: no descriptors left to accept a client", server->name);
			loop_remove_fd(server->config.loop, lf);
			loop_timer_start(server->config.loop, &server->accept_again,
					 loop_now_ns(server->config.loop) + 1000000000u);
		}
		return;
	}
	if (server->session && !server->session->closing && session_hung_up(server->session))
		session_close(server->session, NULL);
	if (!server->session) {
		start_session(server, fd);
	} else if (server->session->closing && server->next_client_fd < 0) {
		server->next_client_fd = fd; /* its turn comes when the last one has drained */
	} else {
		log_warn("%s: a second client was refused: the first is still connected",
			 server->name);
		fd_close(&fd);
	}
}

static void accept_again(struct loop_timer *t)
{
	struct vhost_user_server *server = container_of(t, struct vhost_user_server, accept_again);

	if (loop_add_fd(server->config.loop, &server->listener, EPOLLIN) < 0)
		log_error("%s: cannot listen again", server->name);
}

struct vhost_user_server *vhost_user_server_create(const struct vhost_user_server_config *config,
						   struct error *err)
{
	struct vhost_user_server *server = calloc(1, sizeof(*server));
	int listen_fd = config->listen_fd, client_fd = config->client_fd;
	int ret;

	if (!server)
		goto no_memory;
	server->config = *config;
	server->listener.fd = listen_fd;
	server->next_client_fd = -1;
	server->accept_again.expired = accept_again;
	server->nvrings = config->device->ops->queue_count(config->device);
	server->vrings = calloc(server->nvrings, sizeof(server->vrings[0]));
	server->name = strdup(config->name);
	if (!server->vrings || !server->name)
		goto no_memory;
	if (config->poll)
		server->poll = *config->poll;
	if (listen_fd >= 0) {
		server->listener.ready = on_listener;
		ret = loop_add_fd(config->loop, &server->listener, EPOLLIN);
		if (ret < 0) {
			error_set(err, ret, "%s: cannot wait for clients: %s", config->name,
				  strerror(-ret));
			goto fail;
		}
	}
	if (client_fd >= 0)
		start_session(server, client_fd);
	return server;

no_memory:
	error_set(err, -ENOMEM, "%s: out of memory", config->name);
fail:
	if (server)
		server_free(server);
	else
		fd_close(&listen_fd);
	fd_close(&client_fd);
	return NULL;
}

void vhost_user_server_stop(struct vhost_user_server *s, void (*stopped)(void *arg), void *arg)
{
	s->stopping = true;
	s->stopped = stopped;
	s->stopped_arg = arg;
	loop_timer_stop(s->config.loop, &s->accept_again);
	loop_remove_fd(s->config.loop, &s->listener);
	fd_close(&s->listener.fd);
	if (s->session)
		session_close(s->session, NULL);
	else
		server_session_ended(s);
}

bool vhost_user_server_connected(const struct vhost_user_server *s)
{
	return s->session && !s->session->closing;
}

void vhost_user_server_queues(const struct vhost_user_server *s,
			      void (*fn)(const struct vhost_user_queue_info *info, void *arg),
			      void *arg)
{
	for (unsigned i = 0; i < s->nvrings; i++) {
		const struct vhost_vring *v = s->vrings[i];
		struct vhost_user_queue_info info;

		if (!v || v->iothread < 0)
			continue;
		info = (struct vhost_user_queue_info){
			.index = i,
			.iothread = v->iothread,
			.running = v->running,
			.stats = &v->vq.queue.stats,
		};
		fn(&info, arg);
	}
}
