/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vhost-user messages: what each may carry.  Used by our server and by our own client; knows no
 * socket and no device.
 */
#ifndef PROTO_VHOST_MESSAGE_H
#define PROTO_VHOST_MESSAGE_H

#include "base/error.h"
#include "spec/vhost_user.h"

#define VHOST_MESSAGE_MAX_FDS 8

enum vhost_message_fds {
	VHOST_FDS_NONE,
	VHOST_FDS_ONE,
	VHOST_FDS_OPTIONAL,    /* none or one */
	VHOST_FDS_UNLESS_FLAG, /* one, or none with VHOST_USER_VRING_NO_FD in the u64 */
	VHOST_FDS_PER_REGION,  /* one for each region of the memory table */
};

struct vhost_message_kind {
	const char *name; /* NULL: a request that we do not know */
	uint16_t min_bytes, max_bytes;
	enum vhost_message_fds fds;
	bool replies; /* has an answer of its own, REPLY_ACK or not */
	/* The protocol feature that must be negotiated first; -1 for none. */
	int protocol_feature;
};

/* The kind of a request, or NULL when it is unknown or not served here. */
const struct vhost_message_kind *vhost_message_kind(uint32_t request);

/* Name for messages: "SET_OWNER", or "request 77" in buf. */
const char *vhost_message_name(uint32_t request, char buf[24]);

/* A header just received: version, known request, payload size.  0 or -EPROTO with *err. */
int vhost_message_check_header(const struct vhost_user_header *h, struct error *err) must_check;

/* The whole message: sizes inside the payload, and the number of descriptors that came with it. */
int vhost_message_check(const struct vhost_user_header *h, const union vhost_user_payload *p,
			unsigned nfds, struct error *err) must_check;

#endif
