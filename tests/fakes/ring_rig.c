/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/ring_rig.h"

#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fd.h"

static struct guest_memory *make_table(struct ring_rig *rig, bool with_ring,
				       const struct guest_memory *previous)
{
	/* Region 1 comes first in the file: neighbours in guest addresses alone. */
	struct guest_region_config regions[2] = {
		{.gpa = RIG_GPA,
		 .len_bytes = RIG_REGION_BYTES,
		 .user_addr = with_ring ? RIG_USER : RIG_USER / 2,
		 .offset_bytes = RIG_REGION_BYTES,
		 .fd = rig->memfd},
		{.gpa = RIG_SEAM,
		 .len_bytes = RIG_REGION_BYTES,
		 .user_addr = RIG_USER + 2 * RIG_REGION_BYTES,
		 .offset_bytes = 0,
		 .fd = rig->memfd},
	};
	struct error err;
	struct guest_memory *mem = guest_memory_create(regions, 2, previous, -1, &err);

	ASSERT(mem);
	return mem;
}

static void vm_released(struct virtq_mem *vm)
{
	struct ring_rig *rig = vm->owner;

	rig->released++;
	guest_memory_unref(vm->mem);
	free(vm);
}

struct virtq_mem *ring_rig_new_memory(struct ring_rig *rig, bool with_ring)
{
	struct virtq_mem *vm = calloc(1, sizeof(*vm));

	ASSERT(vm);
	vm->mem = make_table(rig, with_ring, rig->mem);
	vm->released = vm_released;
	vm->owner = rig;
	return vm;
}

static void on_broken(struct virtq *vq)
{
	container_of(vq, struct ring_rig, vq)->broken++;
}

static void on_drained(struct virtq *vq)
{
	container_of(vq, struct ring_rig, vq)->drained++;
}

static void on_resume(struct queue *q)
{
	((struct ring_rig *)q->owner)->resumed++;
}

void ring_rig_init(struct ring_rig *rig, const struct ring_rig_config *config)
{
	struct virtq_driver_layout at;
	struct virtq_driver_config drv = {
		.size = config->size,
		.table_len = config->table_len,
		.start_idx = config->start_idx,
		.event_idx = config->event_idx,
		.memory_iova = RIG_GPA,
	};
	struct error err;

	memset(rig, 0, sizeof(*rig));
	rig->config = *config;
	rig->memfd = memfd_create("rig", MFD_CLOEXEC);
	ASSERT(rig->memfd >= 0 && ftruncate(rig->memfd, 2 * RIG_REGION_BYTES) == 0);
	rig->mem = make_table(rig, true, NULL);
	rig->kick_fd = eventfd_create();
	rig->call_fd = eventfd_create();
	rig->err_fd = eventfd_create();
	ASSERT(rig->kick_fd >= 0 && rig->call_fd >= 0 && rig->err_fd >= 0);
	virtq_driver_layout(config->size, config->table_len, &at);
	ASSERT(RIG_GPA + at.len_bytes <= RIG_DATA);
	drv.memory = ring_rig_host(rig, RIG_GPA, at.len_bytes);
	drv.kick_fd = rig->kick_fd;
	ASSERT(virtq_driver_init(&rig->drv, &drv, &err) == 0);
	virtq_init(&rig->vq);
	rig->vq.broken = on_broken;
	rig->vq.drained = on_drained;
	rig->vq.queue.owner = rig;
	rig->vq.queue.resume = on_resume;
	rig->vq_config = (struct virtq_config){
		.size = config->size,
		.event_idx = config->event_idx,
		.indirect = config->table_len > 0,
		.desc_user = RIG_USER + at.desc_offset,
		.avail_user = RIG_USER + at.avail_offset,
		.used_user = RIG_USER + at.used_offset,
		.call_fd = rig->call_fd,
		.err_fd = rig->err_fd,
	};
	ring_rig_start(rig, config->start_idx);
}

void ring_rig_start(struct ring_rig *rig, uint16_t last_avail_idx)
{
	struct error err;
	int ret;

	rig->vm = ring_rig_new_memory(rig, true);
	rig->vq_config.mem = rig->vm;
	rig->vq_config.last_avail_idx = last_avail_idx;
	ret = virtq_start(&rig->vq, &rig->vq_config, &err);
	if (ret < 0)
		fprintf(stderr, "%s\n", err.text);
	ASSERT(ret == 0);
}

void ring_rig_stop(struct ring_rig *rig)
{
	virtq_stop(&rig->vq);
}

void ring_rig_release(struct ring_rig *rig)
{
	virtq_release_memory(&rig->vq);
	rig->vm = NULL;
}

void ring_rig_fini(struct ring_rig *rig)
{
	if (rig->vq.queue.state != QUEUE_STOPPED)
		ring_rig_stop(rig);
	ASSERT(rig->vq.queue.state == QUEUE_STOPPED);
	ring_rig_release(rig);
	virtq_driver_fini(&rig->drv);
	guest_memory_unref(rig->mem);
	fd_close(&rig->memfd);
	fd_close(&rig->kick_fd);
	fd_close(&rig->call_fd);
	fd_close(&rig->err_fd);
}

void *ring_rig_host(struct ring_rig *rig, uint64_t gpa, uint64_t len)
{
	void *p = guest_memory_host(rig->mem, gpa, len, GUEST_READ);

	ASSERT(p);
	return p;
}

static void write_desc(struct vring_desc *d, uint64_t gpa, uint32_t len, uint16_t flags,
		       uint16_t next)
{
	*d = (struct vring_desc){htole64(gpa), htole32(len), htole16(flags), htole16(next)};
}

void ring_rig_desc(struct ring_rig *rig, uint16_t i, uint64_t gpa, uint32_t len, uint16_t flags,
		   uint16_t next)
{
	write_desc(&rig->drv.desc[i], gpa, len, flags, next);
}

void ring_rig_table(struct ring_rig *rig, uint64_t table_gpa, uint16_t i, uint64_t gpa,
		    uint32_t len, uint16_t flags, uint16_t next)
{
	struct vring_desc d;

	write_desc(&d, gpa, len, flags, next);
	/* A byte at a time: the table may lie over the seam of the regions. */
	for (size_t b = 0; b < sizeof(d); b++)
		*(char *)ring_rig_host(rig, table_gpa + i * sizeof(d) + b, 1) = ((char *)&d)[b];
}

uint16_t ring_rig_avail_idx(struct ring_rig *rig)
{
	return le16toh(rig->drv.avail->idx);
}

void ring_rig_set_avail_idx(struct ring_rig *rig, uint16_t idx)
{
	atomic_store_release(&rig->drv.avail->idx, htole16(idx));
}

void ring_rig_avail(struct ring_rig *rig, uint16_t head)
{
	uint16_t idx = ring_rig_avail_idx(rig);

	rig->drv.avail->ring[idx & rig->drv.mask] = htole16(head);
	ring_rig_set_avail_idx(rig, (uint16_t)(idx + 1));
}

uint16_t ring_rig_used_idx(struct ring_rig *rig)
{
	return le16toh(atomic_load_acquire(&rig->drv.used->idx));
}

void ring_rig_used(struct ring_rig *rig, uint16_t idx, uint32_t *id, uint32_t *len)
{
	struct vring_used_elem *e = &rig->drv.used->ring[idx & rig->drv.mask];

	*id = le32toh(e->id);
	*len = le32toh(e->len);
}

uint64_t ring_rig_event(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t count;

	if (timeout_ms && poll(&p, 1, timeout_ms) < 1)
		return 0;
	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}
