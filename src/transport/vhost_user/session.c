/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One vhost-user connection: bytes in, one checked message at a time, replies out.
 *
 * A message whose effect takes time (draining a ring) holds up this session's next message and
 * nothing else: session_wait().  The session is freed by a message to its own loop, so that no
 * caller is left with a pointer to nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/unix_socket.h"
#include "transport/vhost_user/internal.h"

#define HEADER_BYTES      sizeof(struct vhost_user_header)
#define MESSAGES_PER_TURN 32

static bool session_busy(const struct session *s)
{
	return s->wait.then || s->reply_bytes;
}

static void update_events(struct session *s)
{
	uint32_t events = 0;

	if (s->closing)
		return;
	if (s->reply_bytes)
		events |= EPOLLOUT;
	if (!session_busy(s))
		events |= EPOLLIN;
	if (loop_modify_fd(s->server->config.loop, &s->socket, events) < 0)
		session_close(s, "cannot wait for the socket");
}

static void drop_fds(struct session *s)
{
	while (s->nfds)
		fd_close(&s->fds[--s->nfds]);
}

int session_take_fd(struct session *s, unsigned i)
{
	int fd = i < s->nfds ? s->fds[i] : -1;

	if (fd >= 0)
		s->fds[i] = -1;
	return fd;
}

bool session_has_protocol(const struct session *s, enum vhost_user_protocol_feature f)
{
	return s->protocol_features & (1ull << f);
}

/* ---- replies ---- */

static void send_reply(struct session *s)
{
	while (s->reply_sent < s->reply_bytes) {
		ssize_t n = unix_socket_send(s->socket.fd, s->reply + s->reply_sent,
					     s->reply_bytes - s->reply_sent, NULL, 0);

		if (n == -EAGAIN)
			return;
		if (n < 0) {
			session_close(s, NULL);
			return;
		}
		s->reply_sent += (size_t)n;
	}
	s->reply_bytes = s->reply_sent = 0;
}

void session_reply(struct session *s, const void *payload, uint32_t size)
{
	struct vhost_user_header h = {
		.request = s->header.request,
		.flags = VHOST_USER_VERSION | VHOST_USER_FLAG_REPLY,
		.size = size,
	};

	if (s->closing)
		return;
	memcpy(s->reply, &h, HEADER_BYTES);
	memcpy(s->reply + HEADER_BYTES, payload, size);
	s->reply_bytes = HEADER_BYTES + size;
	s->reply_sent = 0;
	send_reply(s);
}

static void next_message(struct session *s)
{
	drop_fds(s);
	s->received_bytes = 0;
	update_events(s);
}

void session_finish(struct session *s, int ret, const struct error *err)
{
	const struct vhost_message_kind *kind = vhost_message_kind(s->header.request);
	uint64_t ack = ret < 0;
	bool acked = (s->header.flags & VHOST_USER_FLAG_NEED_REPLY) && !kind->replies &&
		     session_has_protocol(s, VHOST_USER_PROTOCOL_F_REPLY_ACK);

	if (s->closing)
		return;
	if (ret < 0 && !acked) {
		session_close(s, err->text);
		return;
	}
	if (ret < 0)
		log_warn("%s: %s refused: %s", s->server->name, kind->name, err->text);
	if (acked)
		session_reply(s, &ack, sizeof(ack));
	next_message(s);
}

/* ---- waiting ---- */

static void wait_over(struct session *s)
{
	void (*then)(struct session *) = s->wait.then;

	s->wait.then = NULL;
	then(s);
}

void session_wait(struct session *s, unsigned pending, void (*then)(struct session *s))
{
	ASSERT(!s->wait.then);
	s->wait.pending = pending;
	s->wait.then = then;
	if (!pending)
		wait_over(s);
	else
		update_events(s);
}

void session_wait_done(struct session *s)
{
	ASSERT(s->wait.then && s->wait.pending);
	if (!--s->wait.pending)
		wait_over(s);
}

/* ---- receiving ---- */

/* Reads up to `want` bytes of the message in all.  1: there; 0: not yet; negative: closed. */
static int receive_until(struct session *s, size_t want)
{
	while (s->received_bytes < want) {
		int fds[VHOST_MESSAGE_MAX_FDS];
		unsigned nfds;
		bool in_header = s->received_bytes < HEADER_BYTES;
		char *to = in_header ? (char *)&s->header + s->received_bytes
				     : (char *)&s->payload + (s->received_bytes - HEADER_BYTES);
		ssize_t n = unix_socket_recv(s->socket.fd, to, want - s->received_bytes, fds,
					     VHOST_MESSAGE_MAX_FDS - s->nfds, &nfds);

		if (n == -EAGAIN)
			return 0;
		if (n == -EMSGSIZE) {
			session_close(s, "a message with too many file descriptors");
			return -EPROTO;
		}
		if (n < 0 || (n == 0 && !nfds)) {
			session_close(s, s->received_bytes ? "the client left within a message"
							   : NULL);
			return -ECONNRESET;
		}
		memcpy(s->fds + s->nfds, fds, nfds * sizeof(int));
		s->nfds += nfds;
		s->received_bytes += (size_t)n;
	}
	return 1;
}

/* One message, as far as it has come.  True if there may be another. */
static bool receive_message(struct session *s)
{
	struct error err;

	if (receive_until(s, HEADER_BYTES) <= 0)
		return false;
	if (vhost_message_check_header(&s->header, &err) < 0)
		goto refuse;
	if (receive_until(s, HEADER_BYTES + s->header.size) <= 0)
		return false;
	if (vhost_message_check(&s->header, &s->payload, s->nfds, &err) < 0)
		goto refuse;
	message_dispatch(s);
	return !s->closing && !session_busy(s);

refuse:
	session_close(s, err.text);
	return false;
}

static void on_socket(struct loop_fd *lf, uint32_t events)
{
	struct session *s = container_of(lf, struct session, socket);

	if (s->reply_bytes && (events & EPOLLOUT)) {
		send_reply(s);
		if (!s->reply_bytes)
			update_events(s);
	}
	if (session_busy(s)) {
		/* Nothing may be read now; a client that hung up needs no more waiting. */
		if (events & (EPOLLHUP | EPOLLERR))
			session_close(s, NULL);
		return;
	}
	/* In portions: a client that never stops talking must not keep the others waiting. */
	for (unsigned i = 0; i < MESSAGES_PER_TURN && receive_message(s); i++)
		;
}

static void on_broken_memory(struct loop_fd *lf, uint32_t events)
{
	struct session *s = container_of(lf, struct session, broken_memory);

	eventfd_clear(lf->fd);
	session_close(s, "the client cut short a file that it shared as guest memory");
}

/* ---- begin and end ---- */

static void destroy_message(struct loop_msg *m)
{
	struct session *s = container_of(m, struct session, destroy_msg);
	struct vhost_user_server *server = s->server;

	memory_drop(s);
	loop_remove_fd(server->config.loop, &s->broken_memory);
	fd_close(&s->broken_memory.fd);
	free(s);
	server_session_ended(server);
}

static void rings_stopped(struct session *s)
{
	loop_post(s->server->config.loop, &s->destroy_msg);
}

void session_close(struct session *s, const char *why)
{
	if (s->closing)
		return;
	s->closing = true;
	if (why)
		log_error("%s: connection closed: %s", s->server->name, why);
	else
		log_info("%s: the client left", s->server->name);
	loop_remove_fd(s->server->config.loop, &s->socket);
	fd_close(&s->socket.fd);
	fd_close(&s->backend_req_fd);
	drop_fds(s);
	s->reply_bytes = 0;
	if (s->released_memory)
		s->released_memory->released = NULL;
	/* Whatever was waited for, now it is for every ring. */
	s->wait.then = NULL;
	session_wait(s, vring_stop_all(s->server), rings_stopped);
}

struct session *session_create(struct vhost_user_server *server, int fd)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s) {
		fd_close(&fd);
		return NULL;
	}
	s->server = server;
	s->backend_req_fd = -1;
	s->destroy_msg.run = destroy_message;
	s->socket.fd = fd;
	s->socket.ready = on_socket;
	s->broken_memory.ready = on_broken_memory;
	s->broken_memory.fd = eventfd_create();
	if (s->broken_memory.fd < 0)
		goto fail;
	if (loop_add_fd(server->config.loop, &s->broken_memory, EPOLLIN) < 0)
		goto fail_eventfd;
	if (loop_add_fd(server->config.loop, &s->socket, EPOLLIN) < 0)
		goto fail_watch;
	return s;

fail_watch:
	loop_remove_fd(server->config.loop, &s->broken_memory);
fail_eventfd:
	fd_close(&s->broken_memory.fd);
fail:
	fd_close(&s->socket.fd);
	free(s);
	return NULL;
}
