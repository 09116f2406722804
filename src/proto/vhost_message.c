/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See vhost_message.h.  One table; the checks are the same for every row.
 */
#include "proto/vhost_message.h"

#include <errno.h>
#include <stdio.h>

#define F(name) VHOST_USER_PROTOCOL_F_##name

#define KIND(req, min, max, fds_, replies_, feature)                                               \
	[VHOST_USER_##req] = {                                                                     \
		.name = #req,                                                                      \
		.min_bytes = (min),                                                                \
		.max_bytes = (max),                                                                \
		.fds = VHOST_FDS_##fds_,                                                           \
		.replies = (replies_),                                                             \
		.protocol_feature = (feature),                                                     \
	}

#define STATE_BYTES  sizeof(struct vhost_user_vring_state)
#define ADDR_BYTES   sizeof(struct vhost_user_vring_addr)
#define TABLE_BYTES  sizeof(struct vhost_user_memory)
#define SINGLE_BYTES sizeof(struct vhost_user_memory_single)
#define CONFIG_BYTES sizeof(struct vhost_user_config)

/* Requests of features that we do not offer are not here: they are as unknown as any other. */
static const struct vhost_message_kind kinds[VHOST_USER_REQUEST_MAX] = {
	KIND(GET_FEATURES, 0, 0, NONE, true, -1),
	KIND(SET_FEATURES, 8, 8, NONE, false, -1),
	KIND(SET_OWNER, 0, 0, NONE, false, -1),
	KIND(RESET_OWNER, 0, 0, NONE, false, -1),
	KIND(SET_MEM_TABLE, 8, TABLE_BYTES, PER_REGION, false, -1),
	KIND(SET_VRING_NUM, STATE_BYTES, STATE_BYTES, NONE, false, -1),
	KIND(SET_VRING_ADDR, ADDR_BYTES, ADDR_BYTES, NONE, false, -1),
	KIND(SET_VRING_BASE, STATE_BYTES, STATE_BYTES, NONE, false, -1),
	KIND(GET_VRING_BASE, STATE_BYTES, STATE_BYTES, NONE, true, -1),
	KIND(SET_VRING_KICK, 8, 8, UNLESS_FLAG, false, -1),
	KIND(SET_VRING_CALL, 8, 8, UNLESS_FLAG, false, -1),
	KIND(SET_VRING_ERR, 8, 8, UNLESS_FLAG, false, -1),
	KIND(GET_PROTOCOL_FEATURES, 0, 0, NONE, true, -1),
	KIND(SET_PROTOCOL_FEATURES, 8, 8, NONE, false, -1),
	KIND(GET_QUEUE_NUM, 0, 0, NONE, true, -1),
	KIND(SET_VRING_ENABLE, STATE_BYTES, STATE_BYTES, NONE, false, -1),
	KIND(SET_BACKEND_REQ_FD, 0, 8, ONE, false, F(BACKEND_REQ)),
	KIND(GET_CONFIG, VHOST_USER_CONFIG_HEADER_BYTES, CONFIG_BYTES, NONE, true, F(CONFIG)),
	KIND(SET_CONFIG, VHOST_USER_CONFIG_HEADER_BYTES, CONFIG_BYTES, NONE, false, F(CONFIG)),
	KIND(RESET_DEVICE, 0, 0, NONE, false, F(RESET_DEVICE)),
	KIND(GET_MAX_MEM_SLOTS, 0, 0, NONE, true, F(CONFIGURE_MEM_SLOTS)),
	KIND(ADD_MEM_REG, SINGLE_BYTES, SINGLE_BYTES, ONE, false, F(CONFIGURE_MEM_SLOTS)),
	KIND(REM_MEM_REG, SINGLE_BYTES, SINGLE_BYTES, OPTIONAL, false, F(CONFIGURE_MEM_SLOTS)),
	KIND(SET_STATUS, 8, 8, NONE, false, F(STATUS)),
	KIND(GET_STATUS, 0, 0, NONE, true, F(STATUS)),
};

const struct vhost_message_kind *vhost_message_kind(uint32_t request)
{
	if (request >= ARRAY_SIZE(kinds) || !kinds[request].name)
		return NULL;
	return &kinds[request];
}

const char *vhost_message_name(uint32_t request, char buf[24])
{
	const struct vhost_message_kind *kind = vhost_message_kind(request);

	if (kind)
		return kind->name;
	snprintf(buf, 24, "request %u", request);
	return buf;
}

int vhost_message_check_header(const struct vhost_user_header *h, struct error *err)
{
	const struct vhost_message_kind *kind = vhost_message_kind(h->request);
	char buf[24];

	if ((h->flags & VHOST_USER_FLAG_VERSION_MASK) != VHOST_USER_VERSION)
		return error_set(err, -EPROTO, "vhost-user version %u, only 1 is known",
				 h->flags & VHOST_USER_FLAG_VERSION_MASK);
	if (!kind)
		return error_set(err, -EPROTO, "%s is unknown or was not offered",
				 vhost_message_name(h->request, buf));
	if (h->size < kind->min_bytes || h->size > kind->max_bytes)
		return error_set(err, -EPROTO, "%s with %u bytes, it has %u to %u", kind->name,
				 h->size, kind->min_bytes, kind->max_bytes);
	return 0;
}

static int check_payload(const struct vhost_user_header *h, const union vhost_user_payload *p,
			 const char *name, struct error *err)
{
	switch (h->request) {
	case VHOST_USER_SET_MEM_TABLE:
		if (p->memory.nregions > VHOST_USER_MAX_TABLE_REGIONS ||
		    h->size < 8 + p->memory.nregions * sizeof(p->memory.regions[0]))
			return error_set(err, -EPROTO, "%s with %u regions in %u bytes", name,
					 p->memory.nregions, h->size);
		break;
	case VHOST_USER_GET_CONFIG:
	case VHOST_USER_SET_CONFIG:
		if (p->config.size != h->size - VHOST_USER_CONFIG_HEADER_BYTES)
			return error_set(err, -EPROTO, "%s of %u bytes in a message of %u", name,
					 p->config.size, h->size);
		break;
	default:
		break;
	}
	return 0;
}

int vhost_message_check(const struct vhost_user_header *h, const union vhost_user_payload *p,
			unsigned nfds, struct error *err)
{
	const struct vhost_message_kind *kind = vhost_message_kind(h->request);
	unsigned least = 0, most = 0;
	int ret = check_payload(h, p, kind->name, err);

	if (ret < 0)
		return ret;
	switch (kind->fds) {
	case VHOST_FDS_NONE:
		break;
	case VHOST_FDS_ONE:
		least = most = 1;
		break;
	case VHOST_FDS_OPTIONAL:
		most = 1;
		break;
	case VHOST_FDS_UNLESS_FLAG:
		least = most = !(p->u64 & VHOST_USER_VRING_NO_FD);
		break;
	case VHOST_FDS_PER_REGION:
		least = most = p->memory.nregions;
		break;
	}
	if (nfds < least || nfds > most)
		return error_set(err, -EPROTO, "%s with %u file descriptors, it takes %u",
				 kind->name, nfds, most);
	return 0;
}
