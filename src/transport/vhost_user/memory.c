/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's memory: SET_MEM_TABLE, ADD_MEM_REG, REM_MEM_REG.
 *
 * Rings get a new table at once and requests in flight keep the old one; a message that asked for
 * an acknowledgement is answered when the old table has gone, so that the client may then take the
 * memory away.  Nothing else waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "transport/vhost_user/internal.h"

/* A table in the hands of one ring: a reference, given back by a message to the control thread. */
struct ring_memory {
	struct virtq_mem vm;
	struct loop_msg msg;
	struct loop *loop;
};

static void give_back(struct loop_msg *m)
{
	struct ring_memory *rm = container_of(m, struct ring_memory, msg);

	guest_memory_unref(rm->vm.mem);
	free(rm);
}

static void on_released(struct virtq_mem *vm)
{
	struct ring_memory *rm = container_of(vm, struct ring_memory, vm);

	loop_post(rm->loop, &rm->msg);
}

struct virtq_mem *memory_for_ring(struct session *s)
{
	struct ring_memory *rm = calloc(1, sizeof(*rm));

	if (!rm) {
		log_error("%s: out of memory", s->server->name);
		return NULL;
	}
	rm->vm.mem = guest_memory_ref(s->memory);
	rm->vm.released = on_released;
	rm->msg.run = give_back;
	rm->loop = s->server->config.loop;
	return &rm->vm;
}

static void table_released(struct guest_memory *m, void *arg)
{
	struct session *s = arg;

	s->released_memory = NULL;
	session_wait_done(s);
}

static void finish_ok(struct session *s)
{
	session_finish(s, 0, NULL);
}

/* Puts a new table in place of the session's and finishes the message. */
static void replace_table(struct session *s, struct guest_memory *table)
{
	struct virtio_device *dev = s->server->config.device;
	struct guest_memory *old = s->memory;
	bool wait = old && (s->header.flags & VHOST_USER_FLAG_NEED_REPLY);

	s->memory = table;
	vring_memory_changed(s->server);
	if (dev->ops->set_memory)
		dev->ops->set_memory(dev, table);
	vring_update_all(s->server);
	if (!wait) {
		guest_memory_unref(old);
		session_finish(s, 0, NULL);
		return;
	}
	/* Before the last reference can go: the count is this thread's. */
	old->released = table_released;
	old->released_arg = s;
	s->released_memory = old;
	session_wait(s, 1, finish_ok);
	guest_memory_unref(old);
}

static struct guest_region_config region_config(const struct vhost_user_memory_region *r, int fd)
{
	return (struct guest_region_config){
		.gpa = r->guest_addr,
		.len_bytes = r->len_bytes,
		.user_addr = r->user_addr,
		.offset_bytes = r->mmap_offset,
		.fd = fd,
	};
}

void memory_set_table(struct session *s)
{
	struct guest_region_config config[VHOST_USER_MAX_TABLE_REGIONS];
	const struct vhost_user_memory *m = &s->payload.memory;
	struct guest_memory *table;
	struct error err;

	for (unsigned i = 0; i < m->nregions; i++)
		config[i] = region_config(&m->regions[i], s->fds[i]);
	table = guest_memory_create(config, m->nregions, s->memory, s->broken_memory.fd, &err);
	if (!table)
		session_finish(s, -EINVAL, &err);
	else
		replace_table(s, table);
}

/* The regions of the present table, to be kept; config has room for one more. */
static unsigned present_regions(struct session *s, struct guest_region_config *config);

void memory_add_region(struct session *s)
{
	struct guest_region_config config[VHOST_USER_MAX_MEM_SLOTS];
	struct guest_memory *table;
	struct error err;
	unsigned n;

	if (s->memory && s->memory->nregions >= VHOST_USER_MAX_MEM_SLOTS) {
		error_set(&err, -ENOSPC, "more than %u memory regions", VHOST_USER_MAX_MEM_SLOTS);
		session_finish(s, -ENOSPC, &err);
		return;
	}
	n = present_regions(s, config);
	config[n] = region_config(&s->payload.single.region, s->fds[0]);
	table = guest_memory_create(config, n + 1, s->memory, s->broken_memory.fd, &err);
	if (!table)
		session_finish(s, -EINVAL, &err);
	else
		replace_table(s, table);
}

void memory_remove_region(struct session *s)
{
	struct guest_region_config config[VHOST_USER_MAX_MEM_SLOTS];
	const struct vhost_user_memory_region *gone = &s->payload.single.region;
	unsigned n = present_regions(s, config), kept = 0;
	struct guest_memory *table;
	struct error err;

	/* The specification: a region is named by guest address, user address and size. */
	for (unsigned i = 0; i < n; i++) {
		if (config[i].gpa != gone->guest_addr || config[i].len_bytes != gone->len_bytes ||
		    config[i].user_addr != gone->user_addr)
			config[kept++] = config[i];
	}
	if (kept == n) {
		error_set(&err, -ENOENT, "there is no memory region at 0x%llx to remove",
			  (unsigned long long)gone->guest_addr);
		session_finish(s, -ENOENT, &err);
		return;
	}
	table = guest_memory_create(config, kept, s->memory, s->broken_memory.fd, &err);
	if (!table)
		session_finish(s, -ENOMEM, &err);
	else
		replace_table(s, table);
}

static unsigned present_regions(struct session *s, struct guest_region_config *config)
{
	unsigned n = s->memory ? s->memory->nregions : 0;

	for (unsigned i = 0; i < n; i++) {
		const struct guest_region *r = &s->memory->regions[i];

		config[i] = (struct guest_region_config){
			.gpa = r->gpa,
			.len_bytes = r->len_bytes,
			.user_addr = r->user_addr,
			.offset_bytes = guest_region_offset(r),
			.fd = -1,
		};
	}
	return n;
}

void memory_drop(struct session *s)
{
	struct virtio_device *dev = s->server->config.device;

	if (!s->memory)
		return;
	if (dev->ops->set_memory)
		dev->ops->set_memory(dev, NULL);
	guest_memory_unref(s->memory);
	s->memory = NULL;
}
