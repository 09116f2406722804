/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtio-blk driver (VIRTIO 1.2, 5.2): configuration space, requests, status.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "driver/vhost_device.h"
#include "spec/virtio.h"

#define SECTOR 512u

static_assert(sizeof(struct virtio_blk_outhdr) <= VIRTQ_DRIVER_HEADER_BYTES, "header");
static_assert(sizeof(struct virtio_blk_discard_write_zeroes) <= VHOST_SLOT_BYTES, "segment");

/* No device writes this one. */
#define STATUS_NONE 0xff

static bool has(const struct vhost_device *dev, unsigned bit)
{
	return dev->features & VIRTIO_BIT(bit);
}

static uint32_t sectors_or_none(uint32_t le_sectors)
{
	return le32toh(le_sectors) ? le32toh(le_sectors) : 0xffffffffu;
}

static int blk_read_config(struct vhost_device *dev, const void *data, struct error *err)
{
	const struct virtio_blk_config *c = data;
	struct ringside_info *info = &dev->base.info;
	uint64_t segments = info->max_segments;

	if (has(dev, VIRTIO_BLK_F_SEG_MAX) && le32toh(c->seg_max))
		segments = MIN(segments, (uint64_t)le32toh(c->seg_max));
	info->max_segments = (uint32_t)segments;
	info->block_bytes = has(dev, VIRTIO_BLK_F_BLK_SIZE) ? le32toh(c->blk_size) : SECTOR;
	if (!is_power_of_2(info->block_bytes) || info->block_bytes < SECTOR)
		return error_set(err, -EPROTO, "%s: the server says a block size of %u", dev->path,
				 info->block_bytes);
	if (!checked_mul(le64toh(c->capacity), (uint64_t)SECTOR, &info->capacity_bytes))
		return error_set(err, -EPROTO, "%s: the server says a capacity of %llu sectors",
				 dev->path, (unsigned long long)le64toh(c->capacity));
	info->capacity_bytes = align_down(info->capacity_bytes, info->block_bytes);
	/* size_max (5.2.4) limits a part, and a part of ours is whole. */
	info->max_transfer_bytes = has(dev, VIRTIO_BLK_F_SIZE_MAX) && le32toh(c->size_max)
					   ? align_down(le32toh(c->size_max), info->block_bytes)
					   : 1u << 30;
	info->read_only = has(dev, VIRTIO_BLK_F_RO);
	info->flush = has(dev, VIRTIO_BLK_F_FLUSH);
	info->discard = has(dev, VIRTIO_BLK_F_DISCARD);
	info->write_zeroes = has(dev, VIRTIO_BLK_F_WRITE_ZEROES);
	if (info->discard)
		info->max_discard_bytes =
			align_down((uint64_t)sectors_or_none(c->max_discard_sectors) * SECTOR,
				   info->block_bytes);
	if (info->write_zeroes)
		info->max_write_zeroes_bytes =
			align_down((uint64_t)sectors_or_none(c->max_write_zeroes_sectors) * SECTOR,
				   info->block_bytes);
	return 0;
}

static const uint32_t types[] = {
	[DRIVER_READ] = VIRTIO_BLK_T_IN,
	[DRIVER_WRITE] = VIRTIO_BLK_T_OUT,
	[DRIVER_FLUSH] = VIRTIO_BLK_T_FLUSH,
	[DRIVER_DISCARD] = VIRTIO_BLK_T_DISCARD,
	[DRIVER_WRITE_ZEROES] = VIRTIO_BLK_T_WRITE_ZEROES,
	[DRIVER_GET_ID] = VIRTIO_BLK_T_GET_ID,
};

static struct virtq_buf buffer(const void *addr, size_t len_bytes)
{
	return (struct virtq_buf){.iova = (uintptr_t)addr, .len_bytes = (uint32_t)len_bytes};
}

static struct virtq_buf fill_segment(void *memory, const struct driver_request *req)
{
	struct virtio_blk_discard_write_zeroes *segment = memory;

	segment->sector = htole64(req->offset_bytes / SECTOR);
	segment->num_sectors = htole32((uint32_t)(req->len_bytes / SECTOR));
	segment->flags = htole32(req->may_unmap ? VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP : 0);
	return buffer(segment, sizeof(*segment));
}

static int blk_fill(struct vhost_queue *q, const struct driver_request *req,
		    const struct vhost_slot_memory *memory, struct virtq_buf *bufs,
		    unsigned *out_num, unsigned *in_num)
{
	struct virtio_blk_outhdr *header = memory->header;
	bool segment = req->op == DRIVER_DISCARD || req->op == DRIVER_WRITE_ZEROES;
	unsigned n = 0;

	header->type = htole32(types[req->op]);
	header->ioprio = 0;
	/* 5.2.6: sector means something for reads and writes only. */
	header->sector = segment ? 0 : htole64(req->offset_bytes / SECTOR);
	*memory->status = STATUS_NONE;
	bufs[n++] = buffer(header, sizeof(*header));
	if (segment)
		bufs[n++] = fill_segment(memory->more, req);
	for (unsigned i = 0; i < req->iovcnt; i++)
		bufs[n++] = buffer(req->iov[i].iov_base, req->iov[i].iov_len);
	*out_num = req->op == DRIVER_READ || req->op == DRIVER_GET_ID ? 1 : n;
	bufs[n++] = buffer(memory->status, 1);
	*in_num = n - *out_num;
	return 0;
}

static int blk_finish(const struct vhost_slot_memory *memory)
{
	switch (*memory->status) {
	case VIRTIO_BLK_S_OK:
		return 0;
	case VIRTIO_BLK_S_UNSUPP:
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

static const struct vhost_kind blk_kind = {
	.features = VIRTIO_BIT(VIRTIO_BLK_F_SIZE_MAX) | VIRTIO_BIT(VIRTIO_BLK_F_SEG_MAX) |
		    VIRTIO_BIT(VIRTIO_BLK_F_RO) | VIRTIO_BIT(VIRTIO_BLK_F_BLK_SIZE) |
		    VIRTIO_BIT(VIRTIO_BLK_F_FLUSH) | VIRTIO_BIT(VIRTIO_BLK_F_MQ) |
		    VIRTIO_BIT(VIRTIO_BLK_F_DISCARD) | VIRTIO_BIT(VIRTIO_BLK_F_WRITE_ZEROES),
	/* Up to and with the write zeroes fields, which every server has room for. */
	.config_bytes = offsetof(struct virtio_blk_config, write_zeroes_may_unmap) + 4,
	.read_config = blk_read_config,
	.fill = blk_fill,
	.finish = blk_finish,
};

static int open_blk(const struct uri *uri, const struct ringside_options *options,
		    struct ringside_device **out, struct error *err)
{
	return vhost_device_open(&driver_vhost_user_blk, &blk_kind, uri, options, out, err);
}

const struct driver_transport driver_vhost_user_blk = {
	.scheme = "vhost-user-blk",
	.open = open_blk,
	.close = vhost_device_close,
	.memory_alloc = vhost_memory_alloc,
	.memory_map = vhost_memory_map,
	.memory_free = vhost_memory_free,
};
