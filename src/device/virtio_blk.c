/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block device's control half: features, config space, life of its queues.
 * Requests are in virtio_blk_request.c.
 */
#include "device/virtio_blk.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/checked.h"
#include "device/virtio_blk_internal.h"

static_assert((uint16_t)(VIRTIO_BLK_SIZE_MAX * VIRTIO_BLK_SEG_MAX) >= 4096,
	      "SeaBIOS could not read a block");

static struct virtio_blk *to_blk(struct virtio_device *dev)
{
	return container_of(dev, struct virtio_blk, base);
}

static uint64_t blk_features(struct virtio_device *dev)
{
	struct virtio_blk *blk = to_blk(dev);
	uint64_t f = VIRTIO_BIT(VIRTIO_BLK_F_SIZE_MAX) | VIRTIO_BIT(VIRTIO_BLK_F_SEG_MAX) |
		     VIRTIO_BIT(VIRTIO_BLK_F_BLK_SIZE) | VIRTIO_BIT(VIRTIO_BLK_F_FLUSH) |
		     VIRTIO_BIT(VIRTIO_BLK_F_TOPOLOGY) | VIRTIO_BIT(VIRTIO_BLK_F_CONFIG_WCE) |
		     VIRTIO_BIT(VIRTIO_BLK_F_MQ);

	if (blk->read_only)
		return f | VIRTIO_BIT(VIRTIO_BLK_F_RO);
	f |= VIRTIO_BIT(VIRTIO_BLK_F_WRITE_ZEROES);
	if (blk->discard)
		f |= VIRTIO_BIT(VIRTIO_BLK_F_DISCARD);
	return f;
}

static bool has_feature(const struct virtio_blk *blk, unsigned bit)
{
	return blk->features & VIRTIO_BIT(bit);
}

/* 5.2.6.2: writes are durable when they complete unless the driver knows of the cache and uses it.
 * 5.2.5.2: the field counts only for a driver that took CONFIG_WCE. */
static void update_cache_mode(struct virtio_blk *blk)
{
	bool through = !has_feature(blk, VIRTIO_BLK_F_FLUSH) ||
		       (has_feature(blk, VIRTIO_BLK_F_CONFIG_WCE) && !blk->writeback);

	atomic_store_relaxed(&blk->writethrough, through); /* relaxed: see the field */
}

/* 5.2.6.2: with CONFIG_WCE and without FLUSH the field is 0.  Before features are known it must not
 * be: QEMU reads the config once, then, and shows that to its guests. */
static uint8_t shown_writeback(const struct virtio_blk *blk)
{
	if (has_feature(blk, VIRTIO_BLK_F_CONFIG_WCE) && !has_feature(blk, VIRTIO_BLK_F_FLUSH))
		return 0;
	return blk->writeback;
}

static void blk_set_features(struct virtio_device *dev, uint64_t features)
{
	struct virtio_blk *blk = to_blk(dev);

	blk->features = features;
	update_cache_mode(blk);
}

static unsigned blk_queue_count(struct virtio_device *dev)
{
	return to_blk(dev)->nqueues;
}

static uint8_t log2_of(uint32_t power_of_2)
{
	return (uint8_t)(31 - __builtin_clz(power_of_2));
}

static void fill_config(struct virtio_blk *blk, struct virtio_blk_config *c)
{
	const struct disk_info *info = disk_info(blk->disk);
	uint32_t block = info->block_bytes, sectors = block >> VIRTIO_BLK_SECTOR_SHIFT;
	uint32_t physical = MAX(info->physical_block_bytes, block);
	uint32_t granularity = MAX(info->discard_granularity_bytes, block);
	uint32_t zeroes = info->discard ? VIRTIO_BLK_RANGE_SECTORS : VIRTIO_BLK_WRITTEN_SECTORS;

	memset(c, 0, sizeof(*c));
	c->capacity = htole64(disk_capacity_bytes(blk->disk) >> VIRTIO_BLK_SECTOR_SHIFT);
	c->size_max = htole32(VIRTIO_BLK_SIZE_MAX);
	c->seg_max = htole32(VIRTIO_BLK_SEG_MAX);
	c->blk_size = htole32(block);
	c->physical_block_exp = log2_of(MIN(physical / block, 1u << 15));
	c->min_io_size = htole16((uint16_t)MIN(physical / block, 0xffffu));
	c->opt_io_size = htole32(info->optimal_io_bytes / block);
	c->wce = shown_writeback(blk);
	c->num_queues = htole16((uint16_t)blk->nqueues);
	if (blk->read_only)
		return;
	/* Never zero where the feature is offered: a driver may divide by them. */
	c->max_write_zeroes_sectors = htole32(zeroes);
	c->max_write_zeroes_seg = htole32(VIRTIO_BLK_MAX_RANGE_SEGS);
	c->write_zeroes_may_unmap = info->discard;
	if (!blk->discard)
		return;
	c->max_discard_sectors = htole32(VIRTIO_BLK_RANGE_SECTORS);
	c->max_discard_seg = htole32(VIRTIO_BLK_MAX_RANGE_SEGS);
	c->discard_sector_alignment = htole32(MAX(granularity >> VIRTIO_BLK_SECTOR_SHIFT, sectors));
}

static void blk_config_read(struct virtio_device *dev, uint32_t offset, void *buf, uint32_t len)
{
	struct virtio_blk_config config;

	fill_config(to_blk(dev), &config);
	memset(buf, 0, len);
	if (offset < sizeof(config))
		memcpy(buf, (char *)&config + offset, MIN((size_t)len, sizeof(config) - offset));
}

static int blk_config_write(struct virtio_device *dev, uint32_t offset, const void *buf,
			    uint32_t len)
{
	struct virtio_blk *blk = to_blk(dev);
	const uint32_t at = offsetof(struct virtio_blk_config, wce);
	uint8_t value;

	/* The only writable field: writeback (5.2.5.2). */
	if (offset > at || len <= at - offset)
		return 0;
	/* Without the feature it is not writable.  A front-end may pass a write on before it tells
	 * us the features (QEMU does so when the driver starts); then it counts. */
	if (blk->features && !has_feature(blk, VIRTIO_BLK_F_CONFIG_WCE))
		return 0;
	value = ((const uint8_t *)buf)[at - offset];
	if (value > 1)
		return -EINVAL;
	blk->writeback = value;
	update_cache_mode(blk);
	return 0;
}

static void blk_reset(struct virtio_device *dev)
{
	struct virtio_blk *blk = to_blk(dev);

	/* The mode after a reset can be either (5.2.5); it stays as the front-end remembers it.
	 * QEMU shows its guest the last one written, through stop and cont and reboots: falling
	 * back to writeback here would lose the writes of a guest that believes in writethrough. */
	blk->features = 0;
	update_cache_mode(blk);
}

static void blk_detach(struct virtio_device *dev)
{
	to_blk(dev)->writeback = 1;
	blk_reset(dev);
}

static void queue_free(struct virtio_blk_queue *q)
{
	free(q->slots);
	free(q->medium);
	free(q->large);
	q->slots = NULL;
	q->medium = q->large = NULL;
}

static int queue_alloc(struct virtio_blk_queue *q, unsigned size)
{
	q->nslots = MIN(size, VIRTIO_BLK_MAX_SLOTS);
	q->large_parts = VIRTQ_PARTS_MAX(size);
	q->slots = calloc(q->nslots, sizeof(*q->slots));
	q->medium = malloc((size_t)q->nslots * VIRTIO_BLK_MEDIUM_IOV * sizeof(struct iovec));
	q->large = malloc((size_t)VIRTIO_BLK_LARGE_IOVS * q->large_parts * sizeof(struct iovec));
	if (!q->slots || !q->medium || !q->large) {
		queue_free(q);
		return -ENOMEM;
	}
	q->free = NULL;
	for (unsigned i = q->nslots; i-- > 0;) {
		q->slots[i].queue = q;
		q->slots[i].next_free = q->free;
		q->free = &q->slots[i];
	}
	q->nfree = q->nslots;
	q->large_used = 0;
	return 0;
}

static int blk_queue_start(struct virtio_device *dev, unsigned index, struct virtq *vq,
			   struct error *err)
{
	struct virtio_blk *blk = to_blk(dev);
	struct virtio_blk_queue *q = &blk->queues[index];

	if (queue_alloc(q, vq->size) < 0)
		return error_set(err, -ENOMEM, "out of memory for %u request slots", q->nslots);
	q->channel = disk_channel_get(blk->disk, err);
	if (!q->channel) {
		queue_free(q);
		return -EIO;
	}
	q->dev = blk;
	q->batch_most = disk_info(blk->disk)->inline_io ? VIRTIO_BLK_INLINE_BATCH : UINT_MAX;
	q->vq = vq;
	vq->queue.device = &virtio_blk_queue_ops;
	vq->queue.device_data = q;
	return 0;
}

static void blk_queue_stop(struct virtio_device *dev, unsigned index)
{
	struct virtio_blk_queue *q = &to_blk(dev)->queues[index];

	ASSERT(q->nfree == q->nslots);
	disk_channel_put(q->channel);
	q->channel = NULL;
	q->vq = NULL;
	queue_free(q);
}

static void blk_set_memory(struct virtio_device *dev, const struct guest_memory *memory)
{
	struct virtio_blk *blk = to_blk(dev);
	struct engine_memory *m;
	unsigned n = memory ? memory->nregions : 0;

	m = calloc(n ? n : 1, sizeof(*m));
	if (!m)
		return; /* only an optimisation is lost */
	for (unsigned i = 0; i < n; i++) {
		m[i].base = memory->regions[i].host;
		m[i].len_bytes = memory->regions[i].len_bytes;
	}
	disk_set_memory(blk->disk, blk, m, n);
	free(m);
}

static const struct virtio_device_ops virtio_blk_ops = {
	.device_id = VIRTIO_ID_BLOCK,
	.features = blk_features,
	.set_features = blk_set_features,
	.queue_count = blk_queue_count,
	.config_read = blk_config_read,
	.config_write = blk_config_write,
	.reset = blk_reset,
	.detach = blk_detach,
	.queue_start = blk_queue_start,
	.queue_stop = blk_queue_stop,
	.set_memory = blk_set_memory,
};

struct virtio_device *virtio_blk_create(const struct virtio_blk_config_options *options,
					struct disk *disk, struct error *err)
{
	struct virtio_blk *blk = calloc(1, sizeof(*blk));

	if (!blk)
		goto no_memory;
	blk->base.ops = &virtio_blk_ops;
	blk->name = strdup(options->name);
	blk->queues = calloc(options->queues, sizeof(*blk->queues));
	if (!blk->name || !blk->queues)
		goto no_memory;
	blk->base.name = blk->name;
	blk->disk = disk;
	blk->nqueues = options->queues;
	blk->read_only = options->read_only || disk_info(disk)->read_only;
	blk->discard = options->discard && !blk->read_only;
	if (options->serial)
		memcpy(blk->serial, options->serial,
		       MIN(strlen(options->serial), sizeof(blk->serial)));
	blk_detach(&blk->base);
	return &blk->base;

no_memory:
	error_set(err, -ENOMEM, "%s: out of memory", options->name);
	if (blk)
		virtio_blk_destroy(&blk->base);
	return NULL;
}

void virtio_blk_destroy(struct virtio_device *dev)
{
	struct virtio_blk *blk = to_blk(dev);

	free(blk->queues);
	free(blk->name);
	free(blk);
}

bool virtio_blk_channel_stats(struct virtio_device *dev, unsigned queue,
			      struct blk_channel_stats *out)
{
	struct virtio_blk *blk = to_blk(dev);

	if (queue >= blk->nqueues || !blk->queues[queue].channel)
		return false;
	blk_channel_stats_read(blk->queues[queue].channel, out);
	return true;
}
