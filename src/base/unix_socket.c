/* SPDX-License-Identifier: Apache-2.0 */
#include "base/unix_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"

static int fill_address(struct sockaddr_un *addr, const char *path, struct error *err)
{
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (!*path)
		return error_set(err, -EINVAL, "socket path is empty");
	if (strlen(path) >= sizeof(addr->sun_path))
		return error_set(err, -ENAMETOOLONG,
				 "socket path '%s' has more than %zu bytes: use a shorter one",
				 path, sizeof(addr->sun_path) - 1);
	strcpy(addr->sun_path, path);
	return 0;
}

/* 0 when path is free to bind: nothing there, or a stale socket that was removed just now. */
static int clear_stale(const struct sockaddr_un *addr, const char *path, struct error *err)
{
	struct stat st;
	int fd_cleanup probe = -1;

	if (lstat(path, &st) < 0)
		return errno == ENOENT
			       ? 0
			       : error_set(err, -errno, "socket '%s': %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return error_set(
			err, -EEXIST,
			"'%s' exists and is not a socket: it is left alone, choose another", path);
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0)
		return error_set(err, -errno, "socket: %s", strerror(errno));
	/* EAGAIN: somebody listens whose backlog is full; only ECONNREFUSED says nobody does. */
	if (connect(probe, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ||
	    errno != ECONNREFUSED)
		return error_set(
			err, -EADDRINUSE,
			"socket '%s' is in use by another process: stop it or choose another",
			path);
	if (unlink(path) < 0 && errno != ENOENT)
		return error_set(err, -errno, "cannot replace stale socket '%s': %s", path,
				 strerror(errno));
	return 0;
}

int unix_socket_listen(const char *path, struct error *err)
{
	struct sockaddr_un addr;
	mode_t old_mask;
	int fd, ret;

	ret = fill_address(&addr, path, err);
	if (ret < 0)
		return ret;
	ret = clear_stale(&addr, path, err);
	if (ret < 0)
		return ret;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(err, -errno, "socket: %s", strerror(errno));
	/* The mask, not a chmod afterwards: the socket is never open to others, not for a moment.
	 */
	old_mask = umask(0177);
	ret = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
	umask(old_mask);
	if (!ret && listen(fd, 128) < 0)
		ret = -errno;
	if (ret < 0) {
		fd_close(&fd);
		return error_set(err, ret, "cannot listen on socket '%s': %s", path,
				 strerror(-ret));
	}
	return fd;
}

int unix_socket_connect(const char *path, unsigned timeout_ms, struct error *err)
{
	struct timeval tv = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
	struct sockaddr_un addr;
	int fd, ret;

	ret = fill_address(&addr, path, err);
	if (ret < 0)
		return ret;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "socket: %s", strerror(errno));
	/* Before connect: it waits where the backlog of the listener is full. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0 ||
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		ret = errno == EAGAIN ? -ETIMEDOUT : -errno;
		fd_close(&fd);
		return error_set(err, ret, "cannot connect to '%s': %s", path, strerror(-ret));
	}
	return fd;
}

static void take_fds(struct msghdr *msg, int *fds, unsigned *nfds)
{
	struct cmsghdr *c;

	*nfds = 0;
	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		unsigned n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds + *nfds, CMSG_DATA(c), n * sizeof(int));
		*nfds += n;
	}
}

ssize_t unix_socket_recv(int sock, void *buf, size_t len, int *fds, unsigned max_fds,
			 unsigned *nfds)
{
	union {
		char buf[CMSG_SPACE(UNIX_SOCKET_MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf)};
	int got[UNIX_SOCKET_MAX_FDS];
	ssize_t n;

	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	*nfds = 0;
	if (n < 0)
		return -errno;
	take_fds(&msg, got, nfds);
	/* A cut control message (more fds than there is room for) must not leak those that fit. */
	if (*nfds > max_fds || (msg.msg_flags & MSG_CTRUNC)) {
		while (*nfds)
			fd_close(&got[--*nfds]);
		return -EMSGSIZE;
	}
	memcpy(fds, got, *nfds * sizeof(int));
	return n;
}

ssize_t unix_socket_send(int sock, const void *buf, size_t len, const int *fds, unsigned nfds)
{
	union {
		char buf[CMSG_SPACE(UNIX_SOCKET_MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	ASSERT(nfds <= UNIX_SOCKET_MAX_FDS);
	if (nfds) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}
