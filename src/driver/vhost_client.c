/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See vhost_client.h.
 */
#include "driver/vhost_client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/unix_socket.h"
#include "proto/vhost_message.h"

int vhost_client_open(struct vhost_client *c, const char *path, unsigned timeout_ms,
		      struct error *err)
{
	*c = (struct vhost_client){.sock = -1, .path = path, .timeout_ms = timeout_ms};
	c->sock = unix_socket_connect(path, timeout_ms, err);
	return c->sock < 0 ? c->sock : 0;
}

void vhost_client_close(struct vhost_client *c)
{
	fd_close(&c->sock);
}

int vhost_client_server_pid(const struct vhost_client *c)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(c->sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.pid == getpid())
		return 0;
	return cred.pid;
}

static int broken(struct vhost_client *c, uint32_t request, int ret, struct error *err)
{
	char name[24];

	vhost_message_name(request, name);
	c->broken = ret == -EAGAIN                        ? -ETIMEDOUT
		    : ret == -EPIPE || ret == -ECONNRESET ? -ENOTCONN
							  : ret;
	if (ret == -EMSGSIZE) {
		c->broken = -EPROTO;
		return error_set(err, c->broken, "%s: too many descriptors at %s", c->path,
				 vhost_message_name(request, name));
	}
	if (c->broken == -ETIMEDOUT)
		return error_set(err, c->broken, "%s: no answer to %s within %u ms", c->path,
				 vhost_message_name(request, name), c->timeout_ms);
	if (c->broken == -ENOTCONN)
		return error_set(err, c->broken, "%s: the server closed the connection at %s",
				 c->path, vhost_message_name(request, name));
	return error_set(err, c->broken, "%s: %s: %s", c->path, vhost_message_name(request, name),
			 strerror(-c->broken));
}

static int send_message(struct vhost_client *c, uint32_t request, uint32_t flags,
			const union vhost_user_payload *p, uint32_t bytes, const int *fds,
			unsigned nfds, struct error *err)
{
	struct {
		struct vhost_user_header h;
		union vhost_user_payload p;
	} __attribute__((packed))
	m = {.h = {.request = request, .flags = VHOST_USER_VERSION | flags, .size = bytes}};
	size_t len = sizeof(m.h) + bytes;
	ssize_t n;

	if (c->broken)
		return broken(c, request, c->broken, err);
	if (bytes)
		memcpy(&m.p, p, bytes);
	n = unix_socket_send(c->sock, &m, len, fds, nfds);
	if (n >= 0 && (size_t)n < len) /* the descriptors went with the first byte */
		n = unix_socket_send(c->sock, (char *)&m + n, len - (size_t)n, NULL, 0);
	return n < 0 ? broken(c, request, (int)n, err) : 0;
}

static int wait_readable(struct vhost_client *c, uint64_t deadline_ns)
{
	uint64_t now = clock_now_ns();
	int ms = now < deadline_ns ? (int)((deadline_ns - now) / 1000000 + 1) : 0, n;
	struct pollfd p = {.fd = c->sock, .events = POLLIN};

	do {
		n = poll(&p, 1, ms);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n ? 0 : -ETIMEDOUT;
}

/* Exactly len bytes, in time; descriptors are not expected and closed. */
static int receive(struct vhost_client *c, void *buf, size_t len, uint64_t deadline_ns)
{
	size_t at = 0;

	while (at < len) {
		int fds[UNIX_SOCKET_MAX_FDS], ret = wait_readable(c, deadline_ns);
		unsigned nfds = 0;
		ssize_t n;

		if (ret < 0)
			return ret;
		n = unix_socket_recv(c->sock, (char *)buf + at, len - at, fds, UNIX_SOCKET_MAX_FDS,
				     &nfds);
		for (unsigned i = 0; i < nfds; i++)
			fd_close(&fds[i]);
		if (n == 0)
			return -ENOTCONN;
		if (n < 0 && n != -EAGAIN)
			return (int)n;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int receive_answer(struct vhost_client *c, uint32_t request, union vhost_user_payload *p,
			  uint32_t bytes, struct error *err)
{
	uint64_t deadline_ns = clock_now_ns() + c->timeout_ms * 1000000ull;
	struct vhost_user_header h;
	int ret = receive(c, &h, sizeof(h), deadline_ns);

	if (ret < 0)
		return broken(c, request, ret, err);
	if (h.request != request || !(h.flags & VHOST_USER_FLAG_REPLY) || h.size != bytes) {
		c->broken = -EPROTO;
		return error_set(err, -EPROTO,
				 "%s: the answer to request %u is request %u, flags %#x, %u bytes, "
				 "not %u",
				 c->path, request, h.request, h.flags, h.size, bytes);
	}
	ret = receive(c, p, bytes, deadline_ns);
	return ret < 0 ? broken(c, request, ret, err) : 0;
}

int vhost_client_set(struct vhost_client *c, uint32_t request, const union vhost_user_payload *p,
		     uint32_t bytes, const int *fds, unsigned nfds, struct error *err)
{
	union vhost_user_payload answer;
	char name[24];
	int ret = send_message(c, request, c->reply_ack ? VHOST_USER_FLAG_NEED_REPLY : 0, p, bytes,
			       fds, nfds, err);

	if (ret < 0 || !c->reply_ack)
		return ret;
	ret = receive_answer(c, request, &answer, sizeof(answer.u64), err);
	if (ret < 0)
		return ret;
	if (answer.u64)
		return error_set(err, -EIO, "%s: the server refused %s", c->path,
				 vhost_message_name(request, name));
	return 0;
}

int vhost_client_set_u64(struct vhost_client *c, uint32_t request, uint64_t value,
			 struct error *err)
{
	union vhost_user_payload p = {.u64 = value};

	return vhost_client_set(c, request, &p, sizeof(p.u64), NULL, 0, err);
}

int vhost_client_get(struct vhost_client *c, uint32_t request, union vhost_user_payload *p,
		     uint32_t bytes, struct error *err)
{
	int ret = send_message(c, request, 0, p, bytes, NULL, 0, err);

	return ret < 0 ? ret : receive_answer(c, request, p, bytes ? bytes : sizeof(p->u64), err);
}

int vhost_client_get_u64(struct vhost_client *c, uint32_t request, uint64_t *value,
			 struct error *err)
{
	union vhost_user_payload p = {.u64 = 0};
	int ret = vhost_client_get(c, request, &p, 0, err);

	*value = ret < 0 ? 0 : p.u64;
	return ret;
}
