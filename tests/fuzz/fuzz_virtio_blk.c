/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block device under any driver: requests that are nearly right in rings that are nearly right,
 * a disk that completes them when and how it likes, control calls in between.  The disk must see
 * only whole blocks inside its capacity, and no write when it is read-only.
 */
#include <endian.h>
#include <errno.h>

#include "fuzz_ring.h"
#include "unit/blk_rig.h"

#define RING (&rig.ring)

static bool read_only;

/* The disk's side of the contract, over what came since the last look. */
static void check_disk(void)
{
	for (unsigned i = 0; i < rig.disk.nlog; i++) {
		const struct fake_disk_op *op = &rig.disk.log[i];
		uint32_t block = rig.disk.info.block_bytes;

		ASSERT(op->op == BLK_READ || op->op == BLK_FLUSH || !read_only);
		if (op->op == BLK_FLUSH)
			continue;
		ASSERT(op->len_bytes && op->len_bytes % block == 0 &&
		       op->offset_bytes % block == 0);
		ASSERT(op->offset_bytes < DISK_BYTES &&
		       op->len_bytes <= DISK_BYTES - op->offset_bytes);
	}
	rig.disk.nlog = 0;
}

/* A header somewhere in the data area. */
static void put_header(struct fuzz_input *in)
{
	static const uint32_t types[] = {VIRTIO_BLK_T_IN,           VIRTIO_BLK_T_OUT,
					 VIRTIO_BLK_T_FLUSH,        VIRTIO_BLK_T_GET_ID,
					 VIRTIO_BLK_T_DISCARD,      VIRTIO_BLK_T_WRITE_ZEROES,
					 VIRTIO_BLK_T_SECURE_ERASE, 0};
	uint8_t kind = fuzz_u8(in);
	uint64_t sector = kind & 8 ? fuzz_u64(in) : fuzz_u16(in) % (DISK_BYTES / 512 + 2);
	struct virtio_blk_outhdr h = {.type = htole32(kind & 16 ? fuzz_u32(in) : types[kind & 7]),
				      .sector = htole64(sector)};
	uint64_t gpa = RIG_DATA + 16ull * (kind >> 5);

	memcpy(ring_rig_host(RING, gpa, sizeof(h)), &h, sizeof(h));
}

/* A segment of a discard, where a request may take it for its table. */
static void put_segment(struct fuzz_input *in)
{
	uint8_t kind = fuzz_u8(in);
	struct virtio_blk_discard_write_zeroes seg = {
		.sector = htole64(kind & 1 ? fuzz_u64(in) : fuzz_u8(in)),
		.num_sectors = htole32(kind & 2 ? fuzz_u32(in) : fuzz_u8(in)),
		.flags = htole32(kind & 4 ? fuzz_u32(in) : (kind >> 3) & 1),
	};

	memcpy(ring_rig_host(RING, RIG_DATA + 16ull * (kind >> 4), sizeof(seg)), &seg, sizeof(seg));
}

/* Descriptor i with the one behind it as its next; that one is returned. */
static uint16_t put_desc(uint16_t i, uint64_t gpa, uint32_t len, uint16_t flags)
{
	uint16_t next = (uint16_t)((i + 1) & RING->drv.mask);

	ring_rig_desc(RING, i, gpa, len, flags, next);
	return next;
}

/* A whole request of the usual kind, cut at a place from the input. */
static void put_request(struct fuzz_input *in)
{
	uint16_t head = fuzz_u8(in) & RING->drv.mask, i = head;
	uint64_t hdr = RIG_DATA + 16ull * (fuzz_u8(in) & 7), data = fuzz_gpa(in);
	uint32_t len = fuzz_len(in), first = 0;
	uint8_t cut = fuzz_u8(in);
	uint16_t flags = (cut & 1 ? VRING_DESC_F_WRITE : 0) | VRING_DESC_F_NEXT;

	if (cut & 2) {
		first = cut >> 4;
		i = put_desc(i, hdr, first, VRING_DESC_F_NEXT);
	}
	i = put_desc(i, hdr + first, 16 - first, VRING_DESC_F_NEXT);
	if (cut & 4) {
		i = put_desc(i, data, len / 2, flags);
		data += len / 2;
		len -= len / 2;
	}
	i = put_desc(i, data, len, flags);
	put_desc(i, RIG_DATA + 0x8000, 1, VRING_DESC_F_WRITE);
	ring_rig_avail(RING, head);
}

static void control(struct fuzz_input *in)
{
	const struct virtio_device_ops *ops = rig.dev->ops;
	uint8_t what = fuzz_u8(in), buf[256];
	uint32_t offset, len;

	switch (what & 3) {
	case 0:
		offset = fuzz_u8(in);
		len = fuzz_u8(in);
		fuzz_bytes(in, buf, len);
		if (what & 4)
			offset = fuzz_u32(in);
		ops->config_write(rig.dev, offset, buf, len);
		ops->config_read(rig.dev, offset, buf, len);
		break;
	case 1:
		ops->set_features(rig.dev, fuzz_u64(in) & ops->features(rig.dev));
		break;
	case 2:
		if (what & 4)
			ops->reset(rig.dev);
		else
			ops->detach(rig.dev);
		break;
	default:
		virtq_set_memory(&RING->vq, ring_rig_new_memory(RING, what & 0xf0));
	}
}

static void complete(struct fuzz_input *in)
{
	static const int results[] = {0, 0, 0, -EIO, -ENOSPC, -EOPNOTSUPP};
	uint8_t r = fuzz_u8(in);

	rig.disk.fail = results[r % ARRAY_SIZE(results)];
	if (r & 0x80)
		fake_disk_complete_newest(&rig.disk);
	else
		fake_disk_complete(&rig.disk, 1 + (r >> 4));
}

static void step(struct fuzz_input *in)
{
	switch (fuzz_u8(in) % 12) {
	case 0:
	case 1:
		put_header(in);
		break;
	case 2:
		put_segment(in);
		break;
	case 3:
	case 4:
		put_request(in);
		break;
	case 5:
		fuzz_desc(in, RING);
		break;
	case 6:
		ring_rig_avail(RING, fuzz_u16(in) & RING->drv.mask);
		break;
	case 7:
		control(in);
		break;
	case 8:
	case 9:
		complete(in);
		break;
	default:
		blk_kick();
	}
	check_disk();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t shape = fuzz_u8(&in);
	struct blk_rig_config config = {
		.size = (uint16_t)(1u << (shape & 7)),
		.table_len = 1,
		.read_only = shape & 8,
		.no_discard = shape & 16,
		.serial = shape & 32 ? "fuzz" : NULL,
		.block_bytes = shape & 64 ? 4096 : 512,
	};

	blk_rig_init(&config);
	read_only = config.read_only;
	while (in.left)
		step(&in);
	rig.disk.fail = 0;
	blk_rig_fini();
	return 0;
}
