/* SPDX-License-Identifier: Apache-2.0 */
#include "blk_rig.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

struct blk_rig rig;

void blk_rig_init(const struct blk_rig_config *config)
{
	uint16_t size = config->size ? config->size : 128;
	struct ring_rig_config ring = {
		.size = size, .table_len = config->table_len, .event_idx = true};
	struct virtio_blk_config_options options = {.name = "test",
						    .serial = config->serial,
						    .queues = 2,
						    .read_only = config->read_only,
						    .discard = !config->no_discard};
	uint64_t features = config->features ? config->features : BLK_FEATURES_ALL;
	uint8_t pattern[1024];
	struct error err;

	if (!ring.table_len && size <= 128)
		ring.table_len = 1100;
	memset(&rig, 0, sizeof(rig));
	ring_rig_init(&rig.ring, &ring);
	rig.ring.vq.indirect = true;
	fake_disk_init(&rig.disk, DISK_BYTES);
	if (config->block_bytes)
		rig.disk.info.block_bytes = config->block_bytes;
	/* Sectors differ, and bytes within them; quick, because fuzzers come here all the time. */
	for (unsigned i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + i / 256);
	for (unsigned sector = 0; sector < DISK_BYTES / 512; sector++)
		memcpy(rig.disk.data + sector * 512, pattern + sector % 512, 512);
	rig.dev = virtio_blk_create(&options, &rig.disk, &err);
	ASSERT(rig.dev);
	rig.dev->ops->set_features(rig.dev, features & rig.dev->ops->features(rig.dev));
	ASSERT(rig.dev->ops->queue_start(rig.dev, 0, &rig.ring.vq, &err) == 0);
}

void blk_rig_fini(void)
{
	ring_rig_stop(&rig.ring);
	while (fake_disk_complete(&rig.disk, UINT32_MAX))
		;
	ASSERT(rig.ring.drained == 1);
	rig.dev->ops->queue_stop(rig.dev, 0);
	ring_rig_fini(&rig.ring);
	virtio_blk_destroy(rig.dev);
	fake_disk_fini(&rig.disk);
}

uint64_t blk_put(uint32_t type, uint64_t sector, const struct virtq_buf *data, unsigned n,
		 bool data_in)
{
	static struct virtq_buf bufs[2048];
	uint64_t gpa = BLK_META + 64ull * (rig.next++ % 8192);
	struct virtio_blk_outhdr *hdr = ring_rig_host(&rig.ring, gpa, 64);

	*hdr = (struct virtio_blk_outhdr){.type = htole32(type), .sector = htole64(sector)};
	((uint8_t *)hdr)[32] = 0xee;
	bufs[0] = (struct virtq_buf){gpa, sizeof(*hdr)};
	if (n)
		memcpy(&bufs[1], data, n * sizeof(*data));
	bufs[1 + n] = (struct virtq_buf){gpa + 32, 1};
	ASSERT(virtq_driver_put(&rig.ring.drv, bufs, data_in ? 1 : 1 + n, data_in ? n + 1 : 1,
				(void *)(uintptr_t)gpa) == 0);
	virtq_driver_publish(&rig.ring.drv);
	return gpa + 32;
}

enum service_result blk_kick(void)
{
	enum service_result result;

	do {
		defer_begin();
		result = service_kick(&rig.ring.vq.queue, SERVICE_BUDGET);
		defer_end();
	} while (result == SERVICE_MORE);
	return result;
}

uint8_t blk_status(uint64_t status_gpa)
{
	return *(uint8_t *)ring_rig_host(&rig.ring, status_gpa, 1);
}

uint8_t blk_do(uint32_t type, uint64_t sector, const struct virtq_buf *data, unsigned n,
	       bool data_in, uint32_t *written)
{
	uint64_t status = blk_put(type, sector, data, n, data_in);
	uint32_t len;
	void *cookie;

	blk_kick();
	while (fake_disk_complete(&rig.disk, UINT32_MAX))
		;
	ASSERT(virtq_driver_take(&rig.ring.drv, &cookie, written ? written : &len) == 1);
	return blk_status(status);
}

uint8_t blk_in(uint32_t type, uint64_t sector, uint32_t len, uint32_t *written)
{
	struct virtq_buf buf = {BLK_DATA, len};

	return blk_do(type, sector, &buf, 1, true, written);
}

uint8_t blk_out(uint32_t type, uint64_t sector, uint32_t len, uint32_t *written)
{
	struct virtq_buf buf = {BLK_DATA, len};

	return blk_do(type, sector, &buf, 1, false, written);
}

void *blk_data(void)
{
	return ring_rig_host(&rig.ring, BLK_DATA, 2u << 20);
}

void blk_write_segments(const struct blk_segment *segs, unsigned n)
{
	struct virtio_blk_discard_write_zeroes *out = blk_data();

	for (unsigned i = 0; i < n; i++) {
		out[i].sector = htole64(segs[i].sector);
		out[i].num_sectors = htole32(segs[i].sectors);
		out[i].flags = htole32(segs[i].flags);
	}
}
