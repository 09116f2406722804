/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See vhost_device.h: opening and closing a device behind a vhost-user server.
 */
#include "driver/vhost_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spec/virtio.h"

#define PF(name) (1ull << VHOST_USER_PROTOCOL_F_##name)

#define RING_FEATURES                                                                              \
	(VIRTIO_BIT(VIRTIO_F_VERSION_1) | VIRTIO_BIT(VIRTIO_RING_F_INDIRECT_DESC) |                \
	 VIRTIO_BIT(VIRTIO_RING_F_EVENT_IDX))
#define PROTOCOL_FEATURES (PF(MQ) | PF(REPLY_ACK) | PF(CONFIG) | PF(CONFIGURE_MEM_SLOTS))

static int negotiate_protocol(struct vhost_device *dev, struct error *err)
{
	uint64_t offered, slots;
	int ret = vhost_client_get_u64(&dev->client, VHOST_USER_GET_PROTOCOL_FEATURES, &offered,
				       err);

	if (ret < 0)
		return ret;
	if (!(offered & PF(CONFIG)))
		return error_set(err, -EOPNOTSUPP,
				 "%s: the server does not show its configuration space "
				 "(VHOST_USER_PROTOCOL_F_CONFIG)",
				 dev->path);
	dev->protocol_features = offered & PROTOCOL_FEATURES;
	ret = vhost_client_set_u64(&dev->client, VHOST_USER_SET_PROTOCOL_FEATURES,
				   dev->protocol_features, err);
	if (ret < 0)
		return ret;
	/* From here on, what has no answer is acknowledged. */
	dev->client.reply_ack = dev->protocol_features & PF(REPLY_ACK);
	if (!(dev->protocol_features & PF(CONFIGURE_MEM_SLOTS)))
		return 0;
	ret = vhost_client_get_u64(&dev->client, VHOST_USER_GET_MAX_MEM_SLOTS, &slots, err);
	dev->slots_messages = true;
	dev->max_regions = (unsigned)MIN(slots, (uint64_t)4096);
	return ret;
}

static int negotiate(struct vhost_device *dev, struct error *err)
{
	uint64_t offered;
	int ret = vhost_client_set(&dev->client, VHOST_USER_SET_OWNER, NULL, 0, NULL, 0, err);

	if (ret == 0)
		ret = vhost_client_get_u64(&dev->client, VHOST_USER_GET_FEATURES, &offered, err);
	if (ret < 0)
		return ret;
	if (!(offered & VIRTIO_BIT(VIRTIO_F_VERSION_1)))
		return error_set(err, -EOPNOTSUPP, "%s: the server knows legacy virtio only",
				 dev->path);
	if (!(offered & VIRTIO_BIT(VHOST_USER_F_PROTOCOL_FEATURES)))
		return error_set(err, -EOPNOTSUPP,
				 "%s: the server has no protocol features, so its size cannot be "
				 "known",
				 dev->path);
	dev->features = offered & (RING_FEATURES | dev->kind->features |
				   VIRTIO_BIT(VHOST_USER_F_PROTOCOL_FEATURES));
	ret = negotiate_protocol(dev, err);
	return ret < 0 ? ret
		       : vhost_client_set_u64(&dev->client, VHOST_USER_SET_FEATURES, dev->features,
					      err);
}

static int check_queues(struct vhost_device *dev, struct error *err)
{
	uint64_t most = 1;
	unsigned want = dev->kind->first_queue + dev->options.queues;
	int ret = 0;

	if (dev->protocol_features & PF(MQ))
		ret = vhost_client_get_u64(&dev->client, VHOST_USER_GET_QUEUE_NUM, &most, err);
	if (ret == 0 && most < want)
		ret = error_set(err, -EINVAL, "%s: the server has %llu queues, not %u", dev->path,
				(unsigned long long)most, want);
	return ret;
}

static int read_config(struct vhost_device *dev, struct error *err)
{
	union vhost_user_payload p = {.config = {.size = dev->kind->config_bytes}};
	int ret = vhost_client_get(&dev->client, VHOST_USER_GET_CONFIG, &p,
				   VHOST_USER_CONFIG_HEADER_BYTES + dev->kind->config_bytes, err);

	if (ret < 0)
		return ret;
	dev->base.info = (struct ringside_info){
		.struct_bytes = sizeof(struct ringside_info),
		.max_segments = dev->options.max_segments,
		.hugepages = dev->options.hugepages,
		.event_idx = dev->features & VIRTIO_BIT(VIRTIO_RING_F_EVENT_IDX),
		.indirect = dev->features & VIRTIO_BIT(VIRTIO_RING_F_INDIRECT_DESC),
		.queues = dev->options.queues,
		.depth = dev->options.depth,
		.server_pid = vhost_client_server_pid(&dev->client),
	};
	/* Without tables each request takes three descriptors of the ring, at least. */
	if (!dev->base.info.indirect)
		dev->base.info.depth = MIN(dev->base.info.depth, VHOST_RING_MOST / 3);
	return dev->kind->read_config(dev, p.config.data, err);
}

static int start_queues(struct vhost_device *dev, struct error *err)
{
	unsigned n = dev->base.info.queues;
	size_t bytes = vhost_queue_memory_bytes(dev);
	int ret;

	dev->base.queues = calloc(n, sizeof(*dev->base.queues));
	dev->queue_memory = aligned_alloc(_Alignof(struct vhost_queue),
					  n * sizeof(*dev->queue_memory));
	if (!dev->base.queues || !dev->queue_memory)
		return error_set(err, -ENOMEM, "out of memory for %u queues", n);
	memset(dev->queue_memory, 0, n * sizeof(*dev->queue_memory));
	for (unsigned i = 0; i < n; i++) {
		struct vhost_queue *q = &dev->queue_memory[i];

		q->dev = dev;
		q->kick_fd = q->call_fd = -1;
		q->index = dev->kind->first_queue + i;
		dev->base.queues[i] = &q->base;
	}
	ret = vhost_memory_alloc(&dev->base, n * bytes, &dev->ring_memory, err);
	for (unsigned i = 0; ret == 0 && i < n; i++)
		ret = vhost_queue_start(&dev->queue_memory[i], (char *)dev->ring_memory + i * bytes,
					err);
	return ret;
}

static int open_device(struct vhost_device *dev, struct error *err)
{
	int ret = vhost_client_open(&dev->client, dev->path, dev->options.timeout_ms, err);

	if (ret == 0)
		ret = negotiate(dev, err);
	if (ret == 0)
		ret = check_queues(dev, err);
	if (ret == 0)
		ret = read_config(dev, err);
	if (ret == 0)
		ret = start_queues(dev, err);
	return ret;
}

int vhost_device_open(const struct driver_transport *transport, const struct vhost_kind *kind,
		      const struct uri *uri, const struct ringside_options *options,
		      struct ringside_device **out, struct error *err)
{
	static const char *const known[] = {NULL};
	int ret = uri_check_keys(uri, known, err);
	struct vhost_device *dev;

	if (ret < 0)
		return ret;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return error_set(err, -ENOMEM, "out of memory");
	dev->base.transport = transport;
	dev->kind = kind;
	dev->client.sock = -1;
	dev->options = *options;
	dev->max_regions = VHOST_USER_MAX_TABLE_REGIONS;
	pthread_mutex_init(&dev->lock, NULL);
	dev->path = strdup(uri->path);
	ret = dev->path ? open_device(dev, err) : error_set(err, -ENOMEM, "out of memory");
	if (ret < 0)
		vhost_device_close(&dev->base);
	else
		*out = &dev->base;
	return ret;
}

void vhost_device_close(struct ringside_device *base)
{
	struct vhost_device *dev = container_of(base, struct vhost_device, base);

	for (unsigned i = 0; dev->queue_memory && i < base->info.queues; i++) {
		if (dev->queue_memory[i].dev)
			vhost_queue_stop(&dev->queue_memory[i]);
	}
	vhost_client_close(&dev->client);
	vhost_memory_fini(dev);
	pthread_mutex_destroy(&dev->lock);
	free(dev->queue_memory);
	free(base->queues);
	free(dev->path);
	free(dev);
}
