/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix stream sockets that carry file descriptors.  Everything here is for the control plane.
 */
#ifndef BASE_UNIX_SOCKET_H
#define BASE_UNIX_SOCKET_H

#include <sys/types.h>

#include "base/error.h"

/* The most descriptors that one message may carry here (vhost-user sends at most 8 with memory). */
#define UNIX_SOCKET_MAX_FDS 32

/*
 * Listens on path, mode 0600, non-blocking.  A stale socket file (nobody answers) is replaced; a
 * live one, or a file that is no socket, is refused.  Returns the listening fd (the caller's) or a
 * negative errno with *err set.
 */
int unix_socket_listen(const char *path, struct error *err) must_check;

/*
 * Connects to path.  Connecting, and each send later, waits at most timeout_ms (0: for ever).
 * Returns the fd (blocking, close-on-exec), or a negative errno with *err set: -ETIMEDOUT when so
 * many wait to be accepted that there was no room for one more.
 */
int unix_socket_connect(const char *path, unsigned timeout_ms, struct error *err) must_check;

/*
 * Receives up to len bytes and any descriptors (close-on-exec) into fds[0..*nfds), at most max_fds
 * <= UNIX_SOCKET_MAX_FDS.  More descriptors than that: all are closed and -EMSGSIZE is returned.
 * Returns bytes (0 = the peer closed), -EAGAIN, or another negative errno.  The caller owns fds.
 */
ssize_t unix_socket_recv(int sock, void *buf, size_t len, int *fds, unsigned max_fds,
			 unsigned *nfds) must_check;

/* Sends len bytes with nfds descriptors (still the caller's).  Returns bytes sent or -errno. */
ssize_t unix_socket_send(int sock, const void *buf, size_t len, const int *fds,
			 unsigned nfds) must_check;

#endif
