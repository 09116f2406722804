/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's end of a vhost-user connection (QEMU docs/interop/vhost-user.rst): one message at a
 * time, and its answer, within the timeout.  Not for the data path.
 *
 * The caller serialises.  A message that failed leaves the connection unusable (sticky).
 */
#ifndef DRIVER_VHOST_CLIENT_H
#define DRIVER_VHOST_CLIENT_H

#include "base/error.h"
#include "spec/vhost_user.h"

struct vhost_client {
	int sock;
	const char *path; /* the caller's; for messages */
	unsigned timeout_ms;
	bool reply_ack; /* negotiated: every message without an answer of its own is acknowledged */
	int broken;
};

/* Connects.  0, or -errno with *err. */
int vhost_client_open(struct vhost_client *c, const char *path, unsigned timeout_ms,
		      struct error *err) must_check;
void vhost_client_close(struct vhost_client *c);

/* The process that listens; 0 if unknown, or our own. */
int vhost_client_server_pid(const struct vhost_client *c);

/* Sends `bytes` of *p and the descriptors (still the caller's), waits for the acknowledgement if
 * there is to be one.  0; -EIO: the server refused; -ETIMEDOUT, -ENOTCONN, -EPROTO. */
int vhost_client_set(struct vhost_client *c, uint32_t request, const union vhost_user_payload *p,
		     uint32_t bytes, const int *fds, unsigned nfds, struct error *err) must_check;
int vhost_client_set_u64(struct vhost_client *c, uint32_t request, uint64_t value,
			 struct error *err) must_check;

/* The same for a message that has an answer: *p is sent and replaced by it; the answer must have
 * exactly the length of what was sent, or 8 if nothing was. */
int vhost_client_get(struct vhost_client *c, uint32_t request, union vhost_user_payload *p,
		     uint32_t bytes, struct error *err) must_check;
int vhost_client_get_u64(struct vhost_client *c, uint32_t request, uint64_t *value,
			 struct error *err) must_check;

#endif
