/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each vhost-user message does.  Sizes and descriptor counts have been checked; a handler
 * checks values, and ends with session_reply() or session_finish(), now or after session_wait().
 */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/fd.h"
#include "spec/virtio.h"
#include "transport/vhost_user/internal.h"

#define PF(name) (1ull << VHOST_USER_PROTOCOL_F_##name)

/* Not offered, on purpose: RING_PACKED, IN_ORDER, ACCESS_PLATFORM, NOTIFICATION_DATA (not
 * implemented), RING_RESET (vhost-user has no message for it). */
#define RING_FEATURES                                                                              \
	(VIRTIO_BIT(VIRTIO_F_VERSION_1) | VIRTIO_BIT(VIRTIO_RING_F_INDIRECT_DESC) |                \
	 VIRTIO_BIT(VIRTIO_RING_F_EVENT_IDX))
#define TRANSPORT_FEATURES VIRTIO_BIT(VHOST_USER_F_PROTOCOL_FEATURES)

#define PROTOCOL_FEATURES                                                                          \
	(PF(MQ) | PF(REPLY_ACK) | PF(CONFIG) | PF(BACKEND_REQ) | PF(CONFIGURE_MEM_SLOTS) |         \
	 PF(RESET_DEVICE) | PF(STATUS))

/* Some front-ends address config space as virtio-mmio does, where it begins at 0x100. */
#define CONFIG_MMIO_OFFSET 0x100u

static struct virtio_device *device_of(struct session *s)
{
	return s->server->config.device;
}

static void finish_ok(struct session *s)
{
	session_finish(s, 0, NULL);
}

static void reply_u64(struct session *s, uint64_t value)
{
	session_reply(s, &value, sizeof(value));
	session_finish(s, 0, NULL);
}

static uint64_t offered_features(struct session *s)
{
	return RING_FEATURES | TRANSPORT_FEATURES | device_of(s)->ops->features(device_of(s));
}

/* ---- features ---- */

static void get_features(struct session *s)
{
	reply_u64(s, offered_features(s));
}

static void apply_features(struct session *s)
{
	s->features = s->payload.u64;
	s->have_features = true;
	device_of(s)->ops->set_features(device_of(s),
					s->features & ~(RING_FEATURES | TRANSPORT_FEATURES));
	vring_update_all(s->server);
	session_finish(s, 0, NULL);
}

static void set_features(struct session *s)
{
	uint64_t unknown = s->payload.u64 & ~offered_features(s);
	struct error err;

	if (unknown) {
		error_set(&err, -EINVAL, "features 0x%llx were not offered",
			  (unsigned long long)unknown);
		session_finish(s, -EINVAL, &err);
	} else if (s->have_features && s->payload.u64 == s->features) {
		session_finish(s, 0, NULL);
	} else {
		/* Rings that run go on with the new features where they were. */
		session_wait(s, vring_stop_all(s->server), apply_features);
	}
}

static void get_protocol_features(struct session *s)
{
	reply_u64(s, PROTOCOL_FEATURES);
}

static void set_protocol_features(struct session *s)
{
	uint64_t unknown = s->payload.u64 & ~(uint64_t)PROTOCOL_FEATURES;
	struct error err;

	if (unknown) {
		error_set(&err, -EINVAL, "protocol features 0x%llx were not offered",
			  (unsigned long long)unknown);
		session_finish(s, -EINVAL, &err);
		return;
	}
	s->protocol_features = s->payload.u64;
	session_finish(s, 0, NULL);
}

/* ---- device ---- */

static void get_queue_num(struct session *s)
{
	reply_u64(s, s->server->nvrings);
}

static void get_max_mem_slots(struct session *s)
{
	reply_u64(s, VHOST_USER_MAX_MEM_SLOTS);
}

static uint32_t config_offset(const struct session *s)
{
	uint32_t offset = s->payload.config.offset;

	return offset >= CONFIG_MMIO_OFFSET ? offset - CONFIG_MMIO_OFFSET : offset;
}

static void get_config(struct session *s)
{
	struct vhost_user_config *c = &s->payload.config;

	device_of(s)->ops->config_read(device_of(s), config_offset(s), c->data, c->size);
	session_reply(s, c, s->header.size);
	session_finish(s, 0, NULL);
}

static void set_config(struct session *s)
{
	struct vhost_user_config *c = &s->payload.config;
	struct error err;
	int ret = device_of(s)->ops->config_write(device_of(s), config_offset(s), c->data, c->size);

	if (ret < 0)
		error_set(&err, ret, "SET_CONFIG: %u bytes at offset %u have an invalid value",
			  c->size, c->offset);
	session_finish(s, ret, &err);
}

static void unstart_rings(struct session *s)
{
	for (unsigned i = 0; i < s->server->nvrings; i++) {
		if (s->server->vrings[i])
			s->server->vrings[i]->kicked = false;
	}
}

static void rings_are_disabled(struct session *s)
{
	unstart_rings(s);
	session_finish(s, 0, NULL);
}

/* Deprecated; the specification suggests to disable all rings. */
static void reset_owner(struct session *s)
{
	session_wait(s, vring_stop_all(s->server), rings_are_disabled);
}

static void reset_device_now(struct session *s)
{
	for (unsigned i = 0; i < s->server->nvrings; i++) {
		if (s->server->vrings[i])
			vring_reset(s->server->vrings[i]);
	}
	s->features = 0;
	s->have_features = false;
	s->status = 0;
	device_of(s)->ops->reset(device_of(s));
	session_finish(s, 0, NULL);
}

static void reset_device(struct session *s)
{
	session_wait(s, vring_stop_all(s->server), reset_device_now);
}

static void status_is_zero(struct session *s)
{
	struct virtio_device *dev = device_of(s);

	unstart_rings(s);
	s->status = 0;
	dev->ops->reset(dev);
	/* The front-end may start again without saying the features once more. */
	if (s->have_features)
		dev->ops->set_features(dev, s->features & ~(RING_FEATURES | TRANSPORT_FEATURES));
	session_finish(s, 0, NULL);
}

/* Recorded and echoed.  Only 0, the driver's reset, does something: rings start by kick and enable
 * alone, since front-ends need not send DRIVER_OK. */
static void set_status(struct session *s)
{
	if (s->payload.u64 & 0xff) {
		s->status = (uint8_t)s->payload.u64;
		session_finish(s, 0, NULL);
		return;
	}
	session_wait(s, vring_stop_all(s->server), status_is_zero);
}

static void get_status(struct session *s)
{
	uint64_t status = s->status;

	if (vring_any_broken(s->server))
		status |= VIRTIO_CONFIG_S_NEEDS_RESET;
	reply_u64(s, status);
}

static void set_backend_req_fd(struct session *s)
{
	fd_close(&s->backend_req_fd);
	s->backend_req_fd = session_take_fd(s, 0);
	session_finish(s, 0, NULL);
}

/* ---- rings ---- */

/* The ring that the message names, at the full width of its index; or ends the message. */
static struct vhost_vring *named_ring(struct session *s, uint64_t index)
{
	struct vhost_vring *v = index < s->server->nvrings ? vring_get(s->server, (unsigned)index)
							   : NULL;
	struct error err;

	if (v) {
		v->complained = false;
		return v;
	}
	error_set(&err, -EINVAL, "%s: there is no queue %llu, only 0 to %u",
		  vhost_message_kind(s->header.request)->name, (unsigned long long)index,
		  s->server->nvrings - 1);
	session_finish(s, -EINVAL, &err);
	return NULL;
}

/* After a change: a ring that was only stopped for it, or waited for it, runs. */
static void finish_ring(struct session *s, struct vhost_vring *v)
{
	vring_update(v);
	session_finish(s, 0, NULL);
}

static void apply_num(struct session *s)
{
	struct vhost_vring *v = vring_get(s->server, s->payload.state.index);

	v->num = s->payload.state.num;
	finish_ring(s, v);
}

static void set_vring_num(struct session *s)
{
	uint32_t num = s->payload.state.num;
	struct vhost_vring *v = named_ring(s, s->payload.state.index);
	struct error err;

	if (!v)
		return;
	if (!is_power_of_2(num) || num > VIRTQ_MAX_SIZE) {
		error_set(&err, -EINVAL, "SET_VRING_NUM: %u is not a power of two up to %u", num,
			  VIRTQ_MAX_SIZE);
		session_finish(s, -EINVAL, &err);
		return;
	}
	session_wait(s, num == v->num ? 0 : vring_stop(v), apply_num);
}

static void apply_addr(struct session *s)
{
	struct vhost_vring *v = vring_get(s->server, s->payload.addr.index);

	v->addr = s->payload.addr;
	v->have_addr = true;
	finish_ring(s, v);
}

static void set_vring_addr(struct session *s)
{
	const struct vhost_user_vring_addr *a = &s->payload.addr;
	struct vhost_vring *v = named_ring(s, a->index);
	bool same;

	if (!v)
		return;
	same = v->have_addr && a->desc_user_addr == v->addr.desc_user_addr &&
	       a->avail_user_addr == v->addr.avail_user_addr &&
	       a->used_user_addr == v->addr.used_user_addr;
	session_wait(s, same ? 0 : vring_stop(v), apply_addr);
}

static void apply_base(struct session *s)
{
	struct vhost_vring *v = vring_get(s->server, s->payload.state.index);

	v->base = (uint16_t)s->payload.state.num;
	finish_ring(s, v);
}

static void set_vring_base(struct session *s)
{
	struct vhost_vring *v = named_ring(s, s->payload.state.index);
	struct error err;

	if (!v)
		return;
	if (s->payload.state.num > UINT16_MAX) {
		error_set(&err, -EINVAL, "SET_VRING_BASE: index %u has more than 16 bits",
			  s->payload.state.num);
		session_finish(s, -EINVAL, &err);
		return;
	}
	session_wait(s, vring_stop(v), apply_base);
}

static void reply_base(struct session *s)
{
	struct vhost_user_vring_state *state = &s->payload.state;

	state->num = vring_get(s->server, state->index)->base;
	session_reply(s, state, sizeof(*state));
	session_finish(s, 0, NULL);
}

/* Stops the ring, and answers when its requests have ended. */
static void get_vring_base(struct session *s)
{
	struct vhost_vring *v = named_ring(s, s->payload.state.index);

	if (!v)
		return;
	v->kicked = false;
	session_wait(s, vring_stop(v), reply_base);
}

static void set_vring_enable(struct session *s)
{
	struct vhost_vring *v = named_ring(s, s->payload.state.index);
	struct error err;

	if (!v)
		return;
	if (s->payload.state.num > 1) {
		error_set(&err, -EINVAL, "SET_VRING_ENABLE: %u is neither 0 nor 1",
			  s->payload.state.num);
		session_finish(s, -EINVAL, &err);
		return;
	}
	v->enable = (int)s->payload.state.num;
	vring_update(v);
	session_wait(s, v->enable ? 0 : vring_stop(v), finish_ok);
}

static void set_vring_kick(struct session *s)
{
	struct vhost_vring *v = named_ring(s, s->payload.u64 & ~VHOST_USER_VRING_NO_FD);
	struct error err;
	int ret;

	if (!v)
		return;
	ret = vring_set_kick(v, session_take_fd(s, 0));
	if (ret < 0) {
		error_set(&err, ret, "SET_VRING_KICK: cannot wait for the descriptor: %s",
			  strerror(-ret));
		session_finish(s, ret, &err);
		return;
	}
	finish_ring(s, v);
}

static void set_vring_call(struct session *s)
{
	struct vhost_vring *v = named_ring(s, s->payload.u64 & ~VHOST_USER_VRING_NO_FD);

	if (!v)
		return;
	vring_set_call(v, session_take_fd(s, 0));
	finish_ring(s, v);
}

static void set_vring_err(struct session *s)
{
	struct vhost_vring *v = named_ring(s, s->payload.u64 & ~VHOST_USER_VRING_NO_FD);

	if (!v)
		return;
	vring_set_err(v, session_take_fd(s, 0));
	finish_ring(s, v);
}

static void (*const handlers[VHOST_USER_REQUEST_MAX])(struct session *s) = {
	[VHOST_USER_GET_FEATURES] = get_features,
	[VHOST_USER_SET_FEATURES] = set_features,
	[VHOST_USER_SET_OWNER] = finish_ok,
	[VHOST_USER_RESET_OWNER] = reset_owner,
	[VHOST_USER_SET_MEM_TABLE] = memory_set_table,
	[VHOST_USER_SET_VRING_NUM] = set_vring_num,
	[VHOST_USER_SET_VRING_ADDR] = set_vring_addr,
	[VHOST_USER_SET_VRING_BASE] = set_vring_base,
	[VHOST_USER_GET_VRING_BASE] = get_vring_base,
	[VHOST_USER_SET_VRING_KICK] = set_vring_kick,
	[VHOST_USER_SET_VRING_CALL] = set_vring_call,
	[VHOST_USER_SET_VRING_ERR] = set_vring_err,
	[VHOST_USER_GET_PROTOCOL_FEATURES] = get_protocol_features,
	[VHOST_USER_SET_PROTOCOL_FEATURES] = set_protocol_features,
	[VHOST_USER_GET_QUEUE_NUM] = get_queue_num,
	[VHOST_USER_SET_VRING_ENABLE] = set_vring_enable,
	[VHOST_USER_SET_BACKEND_REQ_FD] = set_backend_req_fd,
	[VHOST_USER_GET_CONFIG] = get_config,
	[VHOST_USER_SET_CONFIG] = set_config,
	[VHOST_USER_RESET_DEVICE] = reset_device,
	[VHOST_USER_GET_MAX_MEM_SLOTS] = get_max_mem_slots,
	[VHOST_USER_ADD_MEM_REG] = memory_add_region,
	[VHOST_USER_REM_MEM_REG] = memory_remove_region,
	[VHOST_USER_SET_STATUS] = set_status,
	[VHOST_USER_GET_STATUS] = get_status,
};

void message_dispatch(struct session *s)
{
	const struct vhost_message_kind *kind = vhost_message_kind(s->header.request);
	struct error err;

	if (kind->protocol_feature >= 0 &&
	    !session_has_protocol(s, (enum vhost_user_protocol_feature)kind->protocol_feature)) {
		error_set(&err, -EPROTO, "%s needs protocol feature %d, which was not negotiated",
			  kind->name, kind->protocol_feature);
		session_finish(s, -EPROTO, &err);
		return;
	}
	handlers[s->header.request](s);
}
