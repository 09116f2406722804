/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block device again: descriptor layouts, bad chains, long chains, shortages, config space and
 * the life of a queue.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "blk_rig.h"

#define W VRING_DESC_F_WRITE
#define N VRING_DESC_F_NEXT
#define I VRING_DESC_F_INDIRECT

static struct blk_rig_config config;

static int setup(void **state)
{
	config = (struct blk_rig_config){0};
	blk_rig_init(&config);
	return 0;
}

static int teardown(void **state)
{
	blk_rig_fini();
	return 0;
}

static void restart(void)
{
	blk_rig_fini();
	blk_rig_init(&config);
}

/* ---- layouts ---- */

#define HDR    (BLK_DATA)
#define STATUS (BLK_DATA + 0x1000)
#define DATA   (BLK_DATA + 0x2000)

/* A chain of these, from descriptor 0; returns the used length. */
struct part {
	uint64_t gpa;
	uint32_t len;
	uint16_t flags;
};

static uint32_t send(const struct part *p, unsigned n)
{
	uint16_t before = ring_rig_used_idx(&rig.ring);
	uint32_t id, len;

	for (unsigned i = 0; i < n; i++)
		ring_rig_desc(&rig.ring, (uint16_t)i, p[i].gpa, p[i].len,
			      (uint16_t)(p[i].flags | (i + 1 < n ? N : 0)), (uint16_t)(i + 1));
	ring_rig_avail(&rig.ring, 0);
	assert_int_equal(blk_kick(), SERVICE_WORKED);
	while (fake_disk_complete(&rig.disk, UINT32_MAX))
		;
	assert_int_equal(ring_rig_used_idx(&rig.ring), (uint16_t)(before + 1));
	ring_rig_used(&rig.ring, before, &id, &len);
	assert_int_equal(id, 0);
	return len;
}

static void header(uint32_t type, uint64_t sector)
{
	struct virtio_blk_outhdr h = {.type = htole32(type), .sector = htole64(sector)};

	memcpy(ring_rig_host(&rig.ring, HDR, sizeof(h)), &h, sizeof(h));
	memset(ring_rig_host(&rig.ring, STATUS, 64), 0xee, 64);
	memset(ring_rig_host(&rig.ring, DATA, 65536), 0xcc, 65536);
}

static void test_split_header(void **state)
{
	struct part p[20];

	/* The header a byte a descriptor, then in two at every place. */
	header(VIRTIO_BLK_T_IN, 4);
	for (unsigned i = 0; i < 16; i++)
		p[i] = (struct part){HDR + i, 1, 0};
	p[16] = (struct part){DATA, 1024, W};
	p[17] = (struct part){STATUS, 1, W};
	assert_int_equal(send(p, 18), 1025);
	assert_int_equal(blk_status(STATUS), VIRTIO_BLK_S_OK);
	assert_memory_equal(ring_rig_host(&rig.ring, DATA, 1024), rig.disk.data + 2048, 1024);
	for (uint32_t cut = 1; cut < 16; cut++) {
		header(VIRTIO_BLK_T_IN, 4);
		p[0] = (struct part){HDR, cut, 0};
		p[1] = (struct part){HDR + cut, 16 - cut, 0};
		p[2] = (struct part){DATA, 1024, W};
		p[3] = (struct part){STATUS, 1, W};
		assert_int_equal(send(p, 4), 1025);
		assert_int_equal(blk_status(STATUS), VIRTIO_BLK_S_OK);
	}
}

static void test_joined(void **state)
{
	uint8_t *hdr = ring_rig_host(&rig.ring, HDR, 4096);
	struct part p[4];

	/* OUT: header and data in one descriptor. */
	header(VIRTIO_BLK_T_OUT, 9);
	memset(hdr + 16, 0x77, 1024);
	p[0] = (struct part){HDR, 16 + 1024, 0};
	p[1] = (struct part){STATUS, 1, W};
	assert_int_equal(send(p, 2), 1);
	assert_int_equal(blk_status(STATUS), VIRTIO_BLK_S_OK);
	assert_memory_equal(rig.disk.data + 9 * 512, hdr + 16, 1024);
	/* Some data behind the header, the rest elsewhere. */
	header(VIRTIO_BLK_T_OUT, 20);
	memset(hdr + 16, 0x78, 100);
	p[0] = (struct part){HDR, 16 + 100, 0};
	p[1] = (struct part){DATA, 412, 0};
	p[2] = (struct part){STATUS, 1, W};
	assert_int_equal(send(p, 3), 1);
	assert_memory_equal(rig.disk.data + 20 * 512, hdr + 16, 100);
	assert_memory_equal(rig.disk.data + 20 * 512 + 100, ring_rig_host(&rig.ring, DATA, 412),
			    412);
	/* IN: data and status in one descriptor. */
	header(VIRTIO_BLK_T_IN, 3);
	p[0] = (struct part){HDR, 16, 0};
	p[1] = (struct part){DATA, 513, W};
	assert_int_equal(send(p, 2), 513);
	assert_memory_equal(ring_rig_host(&rig.ring, DATA, 512), rig.disk.data + 1536, 512);
	assert_int_equal(blk_status(DATA + 512), VIRTIO_BLK_S_OK);
	/* The status is the last byte of what can be written, however long that is. */
	header(VIRTIO_BLK_T_OUT, 3);
	p[0] = (struct part){HDR, 16, 0};
	p[1] = (struct part){DATA, 512, 0};
	p[2] = (struct part){STATUS, 8, W};
	assert_int_equal(send(p, 3), 1);
	assert_int_equal(blk_status(STATUS + 7), VIRTIO_BLK_S_OK);
	assert_int_equal(blk_status(STATUS), 0xee);
}

static void test_cut_data(void **state)
{
	struct part p[64];
	uint32_t len = 0;

	header(VIRTIO_BLK_T_IN, 8);
	p[0] = (struct part){HDR, 16, 0};
	for (unsigned i = 0; i < 60; i++) {
		uint32_t n = i == 59 ? 4096 - len : 1 + i * 37 % 131;

		p[1 + i] = (struct part){DATA + len, n, W};
		len += n;
	}
	p[61] = (struct part){STATUS, 1, W};
	assert_int_equal(len, 4096);
	assert_int_equal(send(p, 62), 4097);
	assert_int_equal(blk_status(STATUS), VIRTIO_BLK_S_OK);
	assert_memory_equal(ring_rig_host(&rig.ring, DATA, 4096), rig.disk.data + 4096, 4096);
	assert_int_equal(*(uint8_t *)ring_rig_host(&rig.ring, DATA + 4096, 1), 0xcc);
}

/* Header, data and status each over the seam of two regions. */
static void test_seam(void **state)
{
	struct virtio_blk_outhdr h = {.type = 0, .sector = htole64(8)};
	struct part p[3];
	uint8_t back[1024];

	for (unsigned off = 1; off < 16; off++) {
		for (unsigned i = 0; i < 16; i++)
			*(uint8_t *)ring_rig_host(&rig.ring, RIG_SEAM - off + i,
						  1) = ((uint8_t *)&h)[i];
		p[0] = (struct part){RIG_SEAM - off, 16, 0};
		p[1] = (struct part){DATA, 512, W};
		p[2] = (struct part){STATUS, 1, W};
		assert_int_equal(send(p, 3), 513);
	}
	header(VIRTIO_BLK_T_IN, 8);
	for (uint32_t off = 1; off < 1024; off += 73) {
		p[0] = (struct part){HDR, 16, 0};
		p[1] = (struct part){RIG_SEAM - off, 1024, W};
		p[2] = (struct part){STATUS, 1, W};
		assert_int_equal(send(p, 3), 1025);
		memcpy(back, ring_rig_host(&rig.ring, RIG_SEAM - off, off), off);
		memcpy(back + off, ring_rig_host(&rig.ring, RIG_SEAM, 1024 - off), 1024 - off);
		assert_memory_equal(back, rig.disk.data + 4096, 1024);
	}
	p[1] = (struct part){DATA, 512, W};
	p[2] = (struct part){RIG_SEAM - 1, 2, W};
	send(p, 3);
	assert_int_not_equal(blk_status(RIG_SEAM), 0xee);
}

/* ---- bad chains (B16) ---- */

static void test_bad_chains(void **state)
{
	enum { NONE, ERROR };
	static const struct {
		struct part p[4];
		unsigned n;
		int status; /* is there a byte to answer with? */
	} table[] = {
		{{{HDR, 16, 0}}, 1, NONE},
		{{{HDR, 15, 0}}, 1, NONE},
		{{{HDR, 16, 0}, {DATA, 512, 0}}, 2, NONE},
		{{{HDR, 16, 0}, {STATUS, 0, W}}, 2, NONE},
		{{{HDR, 15, 0}, {STATUS, 1, W}}, 2, ERROR},
		{{{HDR, 1, 0}, {STATUS, 1, W}}, 2, ERROR},
		{{{HDR, 0, 0}, {STATUS, 1, W}}, 2, ERROR},
		{{{STATUS, 1, W}}, 1, ERROR},
		{{{HDR, 16, 0}, {DATA, 512, W}, {DATA, 512, 0}, {STATUS, 1, W}}, 4, ERROR},
		{{{DATA, 512, W}, {HDR, 16, 0}, {STATUS, 1, W}}, 3, ERROR},
		{{{RIG_UNMAPPED, 16, 0}, {DATA, 512, W}, {STATUS, 1, W}}, 3, ERROR},
		{{{HDR, 16, 0}, {RIG_UNMAPPED, 512, W}, {STATUS, 1, W}}, 3, ERROR},
		{{{HDR, 16, 0}, {DATA, 512, W}, {RIG_UNMAPPED, 1, W}}, 3, NONE},
		{{{HDR, 16, 0}, {DATA, 512, W}, {UINT64_MAX, 2, W}}, 3, NONE},
		{{{HDR, 16, 0}, {RIG_END - 100, 512, W}, {STATUS, 1, W}}, 3, ERROR},
	};

	for (unsigned round = 0; round < 3; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
			uint64_t errors = rig.ring.vq.queue.stats.errors;

			header(VIRTIO_BLK_T_IN, 0);
			assert_int_equal(send(table[i].p, table[i].n), table[i].status);
			assert_int_equal(blk_status(STATUS),
					 table[i].status == NONE ? 0xee : VIRTIO_BLK_S_IOERR);
			assert_int_equal(rig.ring.vq.queue.stats.errors, errors + 1);
			assert_int_equal(rig.disk.nlog, 0);
		}
	}
	assert_int_equal(rig.ring.broken, 0);
	/* A status byte at the end of data that lacks one: the sector is short of a byte. */
	header(VIRTIO_BLK_T_IN, 0);
	assert_int_equal(send((struct part[]){{HDR, 16, 0}, {DATA, 512, W}, {STATUS, 0, W}}, 3), 1);
	assert_int_equal(blk_status(DATA + 511), VIRTIO_BLK_S_IOERR);
	header(VIRTIO_BLK_T_IN, 0);
	assert_int_equal(send((struct part[]){{HDR, 16, 0}, {DATA, 512, W}, {STATUS, 1, W}}, 3),
			 513);
}

static void test_unsupported_without_status(void **state)
{
	header(77, 0);
	assert_int_equal(send((struct part[]){{HDR, 16, 0}, {DATA, 512, 0}}, 2), 0);
}

/* ---- long chains (B24) ---- */

/* A request of n segments, sizes odd and mixed, at sector 8. */
static uint64_t put_long(uint32_t type, unsigned n, uint32_t *total)
{
	static struct virtq_buf bufs[1024];
	uint32_t len = 0;

	for (unsigned i = 0; i < n; i++) {
		uint32_t part = 1 + i * 7919 % 900;

		if (i + 1 == n)
			part = 512 - len % 512;
		bufs[i] = (struct virtq_buf){BLK_DATA + len, part};
		len += part;
	}
	*total = len;
	return blk_put(type, 8, bufs, n, type == VIRTIO_BLK_T_IN);
}

static void test_long_chains(void **state)
{
	static const unsigned lengths[] = {4, 5, 125, 126, 127, 128, 129, 515, 1022, 1024};
	uint32_t total, written;
	uint64_t status;
	void *cookie;

	for (unsigned indirect = 0; indirect < 2; indirect++) {
		config.size = indirect ? 128 : 2048;
		restart();
		for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
			status = put_long(VIRTIO_BLK_T_IN, lengths[i], &total);
			memset(blk_data(), 0xcc, total + 1);
			blk_kick();
			assert_int_equal(fake_disk_complete(&rig.disk, 1), 1);
			assert_int_equal(virtq_driver_take(&rig.ring.drv, &cookie, &written), 1);
			assert_int_equal(written, total + 1);
			assert_int_equal(blk_status(status), VIRTIO_BLK_S_OK);
			assert_memory_equal(blk_data(), rig.disk.data + 4096, total);
			assert_int_equal(((uint8_t *)blk_data())[total], 0xcc);
			memset(blk_data(), (int)i, total);
			status = put_long(VIRTIO_BLK_T_OUT, lengths[i], &total);
			blk_kick();
			fake_disk_complete(&rig.disk, 1);
			assert_int_equal(virtq_driver_take(&rig.ring.drv, &cookie, &written), 1);
			assert_int_equal(written, 1);
			assert_memory_equal(blk_data(), rig.disk.data + 4096, total);
		}
	}
}

/* Two large arrays: the third long chain waits in the ring for a completion. */
static void test_large_arrays_run_out(void **state)
{
	uint64_t status[4];
	uint32_t total;

	for (unsigned i = 0; i < 4; i++)
		status[i] = put_long(VIRTIO_BLK_T_IN, 200 + i, &total);
	assert_int_equal(blk_kick(), SERVICE_BLOCKED);
	assert_int_equal(rig.disk.channel.npending, 2);
	assert_int_equal(rig.ring.resumed, 0);
	/* What comes behind it waits, too: requests are taken in order. */
	blk_put(VIRTIO_BLK_T_FLUSH, 0, NULL, 0, false);
	assert_int_equal(blk_kick(), SERVICE_BLOCKED);
	/* The second comes back first: its array is the one that is free. */
	fake_disk_complete_newest(&rig.disk);
	assert_int_equal(rig.ring.resumed, 1);
	assert_int_equal(blk_status(status[1]), VIRTIO_BLK_S_OK);
	assert_int_equal(blk_kick(), SERVICE_BLOCKED);
	assert_int_equal(rig.disk.channel.npending, 2);
	fake_disk_complete(&rig.disk, 2);
	assert_int_equal(rig.ring.resumed, 2);
	assert_int_equal(blk_status(status[2]), VIRTIO_BLK_S_OK);
	assert_int_equal(blk_kick(), SERVICE_WORKED);
	fake_disk_complete(&rig.disk, 2);
	assert_int_equal(blk_status(status[3]), VIRTIO_BLK_S_OK);
	assert_int_equal(rig.ring.vq.queue.stats.requests, 5);
	assert_int_equal(rig.ring.vq.queue.stats.errors, 0);
}

/* ---- slots ---- */

static void test_slots_run_out(void **state)
{
	struct virtq_buf buf = {BLK_DATA, 512};
	void *cookie;
	uint32_t written;

	config = (struct blk_rig_config){.size = 2048, .table_len = 4};
	restart();
	for (unsigned i = 0; i < 2048; i++)
		blk_put(VIRTIO_BLK_T_IN, i, &buf, 1, true);
	assert_int_equal(blk_kick(), SERVICE_BLOCKED);
	assert_int_equal(rig.disk.channel.npending, 1024);
	assert_int_equal(rig.ring.resumed, 0);
	assert_int_equal(fake_disk_complete(&rig.disk, 1), 1);
	assert_int_equal(rig.ring.resumed, 1);
	assert_int_equal(blk_kick(), SERVICE_BLOCKED);
	assert_int_equal(rig.disk.channel.npending, 1024);
	assert_int_equal(fake_disk_complete(&rig.disk, 1024), 1024);
	assert_int_equal(rig.ring.resumed, 2);
	assert_int_equal(blk_kick(), SERVICE_WORKED);
	assert_int_equal(fake_disk_complete(&rig.disk, 1024), 1023);
	assert_int_equal(rig.ring.resumed, 2);
	for (unsigned i = 0; i < 2048; i++)
		assert_int_equal(virtq_driver_take(&rig.ring.drv, &cookie, &written), 1);
	assert_int_equal(rig.ring.vq.queue.stats.bytes, 2048 * 512);
}

static void test_ring_of_one(void **state)
{
	config = (struct blk_rig_config){.size = 1, .table_len = 8};
	restart();
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(blk_in(VIRTIO_BLK_T_IN, i, 512, NULL), VIRTIO_BLK_S_OK);
}

/* One call and one index store for what completes together. */
static void test_batch(void **state)
{
	struct virtq_buf buf = {BLK_DATA, 512};

	for (unsigned i = 0; i < 32; i++)
		blk_put(VIRTIO_BLK_T_IN, i, &buf, 1, true);
	blk_kick();
	ring_rig_event(rig.ring.call_fd, 0);
	fake_disk_complete(&rig.disk, 32);
	assert_int_equal(ring_rig_event(rig.ring.call_fd, 0), 1);
	assert_int_equal(rig.ring.vq.queue.stats.batches, 1);
}

/* ---- life ---- */

static void test_stop_with_requests(void **state)
{
	struct virtq_buf buf = {BLK_DATA, 512};
	uint64_t status[3];

	for (unsigned i = 0; i < 3; i++)
		status[i] = blk_put(VIRTIO_BLK_T_IN, i, &buf, 1, true);
	blk_kick();
	ring_rig_stop(&rig.ring);
	assert_int_equal(rig.ring.drained, 0);
	fake_disk_complete(&rig.disk, 2);
	assert_int_equal(rig.ring.drained, 0);
	fake_disk_complete(&rig.disk, 1);
	assert_int_equal(rig.ring.drained, 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(blk_status(status[i]), VIRTIO_BLK_S_OK);
	/* And again, as after a reboot. */
	rig.dev->ops->queue_stop(rig.dev, 0);
	ring_rig_release(&rig.ring);
	ring_rig_start(&rig.ring, virtq_base(&rig.ring.vq));
	rig.ring.vq.indirect = true;
	assert_int_equal(rig.dev->ops->queue_start(rig.dev, 0, &rig.ring.vq, &(struct error){{0}}),
			 0);
	rig.ring.drained = 0;
	assert_int_equal(virtq_driver_take(&rig.ring.drv, &(void *){NULL}, &(uint32_t){0}), 1);
	assert_int_equal(virtq_driver_take(&rig.ring.drv, &(void *){NULL}, &(uint32_t){0}), 1);
	assert_int_equal(virtq_driver_take(&rig.ring.drv, &(void *){NULL}, &(uint32_t){0}), 1);
	assert_int_equal(blk_in(VIRTIO_BLK_T_IN, 0, 512, NULL), VIRTIO_BLK_S_OK);
}

/* Requests keep the table that they were translated through. */
static void test_memory_change(void **state)
{
	static const struct blk_segment segs[] = {{0, 8, 0}, {16, 8, 0}};
	struct virtq_buf buf = {BLK_DATA, 32};

	blk_write_segments(segs, 2);
	blk_put(VIRTIO_BLK_T_WRITE_ZEROES, 0, &buf, 1, false);
	blk_kick();
	virtq_set_memory(&rig.ring.vq, ring_rig_new_memory(&rig.ring, true));
	fake_disk_complete(&rig.disk, 1); /* reads the second segment: through the old one */
	assert_int_equal(rig.ring.released, 0);
	fake_disk_complete(&rig.disk, 1);
	assert_int_equal(rig.ring.released, 1);
	rig.dev->ops->set_memory(rig.dev, rig.ring.vq.mem->mem);
	assert_int_equal(rig.disk.memory_regions, 2);
	rig.dev->ops->set_memory(rig.dev, NULL);
	assert_int_equal(rig.disk.memory_regions, 0);
}

static void test_queue_start_fails(void **state)
{
	struct virtq vq;
	struct error err;

	virtq_init(&vq);
	vq.size = 16;
	rig.disk.no_channel = true;
	assert_true(rig.dev->ops->queue_start(rig.dev, 1, &vq, &err) < 0);
	assert_string_equal(err.text, "no channel");
	rig.disk.no_channel = false;
	assert_int_equal(rig.dev->ops->queue_start(rig.dev, 1, &vq, &err), 0);
	rig.dev->ops->queue_stop(rig.dev, 1);
}

/* ---- config space ---- */

static void test_config_read(void **state)
{
	struct virtio_blk_config c;
	uint8_t whole[256], part[300];

	rig.dev->ops->config_read(rig.dev, 0, whole, sizeof(whole));
	memcpy(&c, whole, sizeof(c));
	assert_int_equal(le64toh(c.capacity), DISK_BYTES / 512);
	assert_int_equal(le32toh(c.seg_max), 126);
	assert_int_equal(le32toh(c.blk_size), 512);
	assert_int_equal(c.physical_block_exp, 3);
	assert_int_equal(c.alignment_offset, 0);
	assert_int_equal(le16toh(c.min_io_size), 8);
	assert_int_equal(le32toh(c.opt_io_size), 128);
	assert_int_equal(c.wce, 1);
	assert_int_equal(le16toh(c.num_queues), 2);
	assert_int_equal(le32toh(c.discard_sector_alignment), 8);
	assert_int_equal(c.write_zeroes_may_unmap, 1);
	for (uint32_t offset = 0; offset < 70; offset++) {
		for (uint32_t len = 0; len <= 70; len++) {
			memset(part, 0xaa, sizeof(part));
			rig.dev->ops->config_read(rig.dev, offset, part, len);
			for (uint32_t i = 0; i < len; i++)
				assert_int_equal(part[i], whole[offset + i]);
			assert_int_equal(part[len], 0xaa);
		}
	}
	memset(part, 0xaa, sizeof(part));
	rig.dev->ops->config_read(rig.dev, UINT32_MAX, part, 256);
	assert_int_equal(part[0], 0);
	assert_int_equal(part[255], 0);
}

static void test_config_write(void **state)
{
	const uint32_t wce = offsetof(struct virtio_blk_config, wce);
	uint8_t whole[64], after[64], buf[128];

	rig.dev->ops->config_read(rig.dev, 0, whole, sizeof(whole));
	for (uint32_t offset = 0; offset < 70; offset++) {
		for (uint32_t len = 0; len <= 64; len++) {
			bool touches = offset <= wce && len > wce - offset;

			memset(buf, 0xff, sizeof(buf));
			if (touches)
				buf[wce - offset] = 0;
			assert_int_equal(rig.dev->ops->config_write(rig.dev, offset, buf, len), 0);
			rig.dev->ops->config_read(rig.dev, 0, after, sizeof(after));
			assert_int_equal(after[wce], touches ? 0 : 1);
			after[wce] = 1;
			assert_memory_equal(after, whole, sizeof(after));
			buf[0] = 1;
			rig.dev->ops->config_write(rig.dev, wce, buf, 1);
		}
	}
	assert_int_equal(rig.dev->ops->config_write(rig.dev, UINT32_MAX, buf, 100), 0);
}

static void test_config_odd_disks(void **state)
{
	struct virtio_blk_config c;

	/* 4 KiB blocks; a smaller granularity than a block; nothing known of the best size. */
	config.block_bytes = 4096;
	config.no_discard = true;
	restart();
	rig.disk.info.discard_granularity_bytes = 0;
	rig.disk.info.optimal_io_bytes = 0;
	rig.disk.info.physical_block_bytes = 512;
	rig.dev->ops->config_read(rig.dev, 0, &c, sizeof(c));
	assert_int_equal(le32toh(c.blk_size), 4096);
	assert_int_equal(c.physical_block_exp, 0);
	assert_int_equal(le32toh(c.opt_io_size), 0);
	assert_int_equal(le32toh(c.max_discard_seg), 0);
	assert_true(le32toh(c.max_write_zeroes_sectors) > 0);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_split_header),
		CASE(test_joined),
		CASE(test_cut_data),
		CASE(test_seam),
		CASE(test_bad_chains),
		CASE(test_unsupported_without_status),
		CASE(test_long_chains),
		CASE(test_large_arrays_run_out),
		CASE(test_slots_run_out),
		CASE(test_ring_of_one),
		CASE(test_batch),
		CASE(test_stop_with_requests),
		CASE(test_memory_change),
		CASE(test_queue_start_fails),
		CASE(test_config_read),
		CASE(test_config_write),
		CASE(test_config_odd_disks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
