/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of a vhost-user device: its ring, its eventfds, and the way of a request through them.
 * Data path but for start and stop; one thread, no allocation, no system call but the kick.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/fd.h"
#include "driver/vhost_device.h"
#include "spec/virtio.h"

#define BUFS_MOST  1024u
#define CACHE_LINE 64u

static struct vhost_queue *queue_of(struct ringside_queue *base)
{
	return container_of(base, struct vhost_queue, base);
}

#define SLOT_STRIDE (VHOST_SLOT_BYTES + VIRTQ_DRIVER_HEADER_BYTES)

static struct vhost_slot_memory slot_memory(const struct vhost_queue *q,
					    const struct driver_slot *s)
{
	char *own = q->slot_memory + (size_t)s->index * SLOT_STRIDE;

	return (struct vhost_slot_memory){
		.header = own + VHOST_SLOT_BYTES, .more = own, .status = &q->statuses[s->index]};
}

static bool buffers_known(struct vhost_queue *q, const struct driver_request *req)
{
	for (unsigned i = 0; i < req->iovcnt; i++) {
		if (!vhost_memory_has(q, req->iov[i].iov_base, req->iov[i].iov_len))
			return false;
	}
	return true;
}

static int vhost_put(struct ringside_queue *base, const struct driver_request *req,
		     struct driver_slot *slot)
{
	struct vhost_queue *q = queue_of(base);
	struct vhost_slot_memory memory = slot_memory(q, slot);
	void *header = virtq_driver_header(&q->vd);
	struct virtq_buf bufs[BUFS_MOST];
	unsigned out_num, in_num;
	int ret;

	if (unlikely(!buffers_known(q, req)))
		return -EFAULT;
	if (header)
		memory.header = header;
	ret = q->dev->kind->fill(q, req, &memory, bufs, &out_num, &in_num);
	if (unlikely(ret < 0))
		return ret;
	slot->in_bytes = 0;
	for (unsigned i = out_num; i < out_num + in_num; i++)
		slot->in_bytes += bufs[i].len_bytes;
	ret = virtq_driver_put(&q->vd, bufs, out_num, in_num, slot);
	return unlikely(ret == -ENOSPC) ? -EAGAIN : ret;
}

static void vhost_publish(struct ringside_queue *base)
{
	virtq_driver_publish(&queue_of(base)->vd);
}

static bool vhost_tell(struct ringside_queue *base)
{
	struct vhost_queue *q = queue_of(base);
	bool kicked = virtq_driver_tell(&q->vd);

	base->stats.kicks_sent = q->vd.stats.kicks_sent;
	base->stats.kicks_suppressed = q->vd.stats.kicks_suppressed;
	base->stats.system_calls += kicked;
	return kicked;
}

static int vhost_take(struct ringside_queue *base, struct driver_slot **slot, int *result)
{
	struct vhost_queue *q = queue_of(base);
	struct vhost_slot_memory memory;
	uint32_t written_bytes;
	void *cookie;
	int ret = virtq_driver_take(&q->vd, &cookie, &written_bytes);

	if (ret <= 0)
		return ret;
	*slot = cookie;
	/* 2.7.8: it cannot have written more than there was room for. */
	if (unlikely(written_bytes > (*slot)->in_bytes))
		return -EPROTO;
	memory = slot_memory(q, *slot);
	*result = q->dev->kind->finish(&memory);
	return 1;
}

static bool vhost_arm(struct ringside_queue *base, unsigned after)
{
	return virtq_driver_call_on(&queue_of(base)->vd, (uint16_t)after);
}

static void vhost_disarm(struct ringside_queue *base)
{
	virtq_driver_call_off(&queue_of(base)->vd);
}

static uint64_t vhost_calls(struct ringside_queue *base)
{
	uint64_t n;

	return read(base->wait_fds[0], &n, sizeof(n)) == sizeof(n) ? n : 0;
}

static int vhost_check(struct ringside_queue *base)
{
	struct pollfd p = {.fd = base->wait_fds[1], .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) ? -ENOTCONN : 0;
}

static const struct driver_queue_ops vhost_queue_ops = {
	.put = vhost_put,
	.publish = vhost_publish,
	.tell = vhost_tell,
	.take = vhost_take,
	.arm = vhost_arm,
	.disarm = vhost_disarm,
	.calls = vhost_calls,
	.check = vhost_check,
};

/* ---- start and stop ---- */

static uint16_t table_len(const struct vhost_device *dev)
{
	return dev->base.info.indirect ? (uint16_t)(dev->base.info.max_segments + 2) : 0;
}

static uint16_t ring_size(const struct vhost_device *dev)
{
	unsigned need = dev->base.info.depth * (dev->base.info.indirect ? 1 : 3), size = 4;

	/* 2.7.5.3.1: no chain is longer than the queue size, in a table neither. */
	need = MAX(need, dev->base.info.max_segments + 2);
	while (size < need && size < VHOST_RING_MOST)
		size *= 2;
	return (uint16_t)size;
}

static size_t ring_bytes(const struct vhost_device *dev)
{
	struct virtq_driver_layout at;

	virtq_driver_layout(ring_size(dev), table_len(dev), &at);
	return at.len_bytes;
}

size_t vhost_queue_memory_bytes(const struct vhost_device *dev)
{
	return ring_bytes(dev) + align_up((size_t)dev->base.info.depth * SLOT_STRIDE, CACHE_LINE);
}

static int init_ring(struct vhost_queue *q, void *memory, struct error *err)
{
	struct vhost_device *dev = q->dev;
	struct virtq_driver_layout at;
	struct virtq_driver_config config = {
		.size = ring_size(dev),
		.table_len = table_len(dev),
		.event_idx = dev->base.info.event_idx,
		.memory = memory,
		.memory_iova = (uintptr_t)memory,
		.kick_fd = q->kick_fd,
	};
	int ret = virtq_driver_init(&q->vd, &config, err);

	if (ret < 0)
		return ret;
	virtq_driver_layout(config.size, config.table_len, &at);
	q->statuses = (uint8_t *)memory + at.status_offset;
	q->slot_memory = (char *)memory + at.len_bytes;
	q->base = (struct ringside_queue){
		.ops = &vhost_queue_ops,
		.dev = &dev->base,
		.wait_fds = {q->call_fd, dev->client.sock},
		.wait_events = {EPOLLIN | EPOLLET, EPOLLRDHUP},
	};
	ret = driver_queue_init(&q->base, dev->base.info.depth, err);
	if (ret < 0)
		virtq_driver_fini(&q->vd);
	else
		virtq_driver_call_off(&q->vd);
	return ret;
}

static int set_state(struct vhost_queue *q, uint32_t request, uint32_t num, struct error *err)
{
	union vhost_user_payload p = {.state = {.index = q->index, .num = num}};

	return vhost_client_set(&q->dev->client, request, &p, sizeof(p.state), NULL, 0, err);
}

static int set_fd(struct vhost_queue *q, uint32_t request, int fd, struct error *err)
{
	union vhost_user_payload p = {.u64 = q->index};

	return vhost_client_set(&q->dev->client, request, &p, sizeof(p.u64), &fd, 1, err);
}

static int tell_server(struct vhost_queue *q, struct error *err)
{
	struct vhost_device *dev = q->dev;
	union vhost_user_payload p = {.addr = {
					      .index = q->index,
					      .desc_user_addr = (uintptr_t)q->vd.desc,
					      .avail_user_addr = (uintptr_t)q->vd.avail,
					      .used_user_addr = (uintptr_t)q->vd.used,
				      }};
	int ret = set_state(q, VHOST_USER_SET_VRING_NUM, q->vd.size, err);

	if (ret == 0)
		ret = set_state(q, VHOST_USER_SET_VRING_BASE, 0, err);
	if (ret == 0)
		ret = vhost_client_set(&dev->client, VHOST_USER_SET_VRING_ADDR, &p, sizeof(p.addr),
				       NULL, 0, err);
	if (ret == 0)
		ret = set_fd(q, VHOST_USER_SET_VRING_CALL, q->call_fd, err);
	if (ret == 0)
		ret = set_fd(q, VHOST_USER_SET_VRING_KICK, q->kick_fd, err);
	/* Without protocol features a ring is enabled from the start. */
	if (ret == 0 && (dev->features & VIRTIO_BIT(VHOST_USER_F_PROTOCOL_FEATURES)))
		ret = set_state(q, VHOST_USER_SET_VRING_ENABLE, 1, err);
	return ret;
}

int vhost_queue_start(struct vhost_queue *q, void *memory, struct error *err)
{
	int ret;

	q->kick_fd = eventfd_create();
	q->call_fd = eventfd_create();
	if (q->kick_fd < 0 || q->call_fd < 0)
		return error_set(err, -EMFILE, "no eventfd to be had");
	ret = init_ring(q, memory, err);
	if (ret < 0)
		return ret;
	q->started = true;
	return tell_server(q, err);
}

void vhost_queue_stop(struct vhost_queue *q)
{
	union vhost_user_payload p = {.state = {.index = q->index}};
	struct error err;

	if (q->started) {
		/* Answered when the server has let go of the memory.  If it does not answer it has
		 * lost the connection, or will. */
		if (!q->dev->client.broken &&
		    vhost_client_get(&q->dev->client, VHOST_USER_GET_VRING_BASE, &p,
				     sizeof(p.state), &err) < 0)
			q->dev->client.broken = -ENOTCONN;
		driver_queue_fini(&q->base);
		virtq_driver_fini(&q->vd);
	}
	fd_close(&q->kick_fd);
	fd_close(&q->call_fd);
}
