/* SPDX-License-Identifier: Apache-2.0 */
/* The block device: every request type, every error, config space, durability, shortages. */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "blk_rig.h"

static struct blk_rig_config config;
static uint32_t written;

static void start(void)
{
	blk_rig_init(&config);
}

static int setup(void **state)
{
	config = (struct blk_rig_config){.serial = "serial-0123456789abcdef"};
	start();
	return 0;
}

static int teardown(void **state)
{
	blk_rig_fini();
	return 0;
}

/* Starts again with what the test has set in `config`. */
static void restart(void)
{
	blk_rig_fini();
	start();
}

static struct fake_disk_op last_op(void)
{
	assert_true(rig.disk.nlog > 0);
	return rig.disk.log[rig.disk.nlog - 1];
}

static const struct queue_stats *stats(void)
{
	return &rig.ring.vq.queue.stats;
}

/* ---- each type ---- */

static void test_read_write(void **state)
{
	uint8_t *data = blk_data();

	assert_int_equal(blk_in(VIRTIO_BLK_T_IN, 3, 4096, &written), VIRTIO_BLK_S_OK);
	assert_int_equal(written, 4097);
	assert_memory_equal(data, rig.disk.data + 3 * 512, 4096);
	memset(data, 0x5a, 8192);
	assert_int_equal(blk_out(VIRTIO_BLK_T_OUT, 5, 8192, &written), VIRTIO_BLK_S_OK);
	assert_int_equal(written, 1);
	assert_memory_equal(data, rig.disk.data + 5 * 512, 8192);
	assert_int_not_equal(rig.disk.data[5 * 512 - 1], 0x5a);
	assert_int_not_equal(rig.disk.data[5 * 512 + 8192], 0x5a);
	assert_int_equal(stats()->requests, 2);
	assert_int_equal(stats()->bytes, 4096 + 8192);
	assert_int_equal(stats()->errors, 0);
	/* The last sector. */
	assert_int_equal(blk_in(VIRTIO_BLK_T_IN, DISK_BYTES / 512 - 1, 512, NULL), VIRTIO_BLK_S_OK);
	/* No data. */
	assert_int_equal(blk_in(VIRTIO_BLK_T_IN, 0, 0, &written), VIRTIO_BLK_S_OK);
	assert_int_equal(written, 1);
	assert_int_equal(blk_do(VIRTIO_BLK_T_OUT, 0, NULL, 0, false, &written), VIRTIO_BLK_S_OK);
	assert_int_equal(rig.disk.nlog, 3);
}

static void test_flush(void **state)
{
	assert_int_equal(blk_do(VIRTIO_BLK_T_FLUSH, 0, NULL, 0, false, &written), VIRTIO_BLK_S_OK);
	assert_int_equal(written, 1);
	assert_int_equal(last_op().op, BLK_FLUSH);
	assert_int_equal(last_op().len_bytes, 0);
	/* Its sector means nothing. */
	assert_int_equal(blk_do(VIRTIO_BLK_T_FLUSH, UINT64_MAX, NULL, 0, false, NULL),
			 VIRTIO_BLK_S_OK);
	rig.disk.fail = -EIO;
	assert_int_equal(blk_do(VIRTIO_BLK_T_FLUSH, 0, NULL, 0, false, NULL), VIRTIO_BLK_S_IOERR);
}

static void test_get_id(void **state)
{
	char *data = blk_data();

	assert_int_equal(blk_in(VIRTIO_BLK_T_GET_ID, 0, 20, &written), VIRTIO_BLK_S_OK);
	assert_int_equal(written, 21);
	assert_memory_equal(data, "serial-0123456789abc", 20); /* cut at 20 */
	/* Shorter and longer buffers: no more than fits, no more than there is. */
	memset(data, 0xcc, 64);
	assert_int_equal(blk_in(VIRTIO_BLK_T_GET_ID, 0, 5, &written), VIRTIO_BLK_S_OK);
	assert_int_equal(written, 6);
	assert_memory_equal(data, "seria\xcc", 6);
	assert_int_equal(blk_in(VIRTIO_BLK_T_GET_ID, 0, 64, &written), VIRTIO_BLK_S_OK);
	assert_int_equal(written, 21);
	assert_int_equal((uint8_t)data[20], 0xcc);
	assert_int_equal(blk_do(VIRTIO_BLK_T_GET_ID, 0, NULL, 0, true, &written), VIRTIO_BLK_S_OK);
	assert_int_equal(written, 1);
	/* Padded with zeroes, and none at all. */
	config.serial = "x";
	restart();
	blk_in(VIRTIO_BLK_T_GET_ID, 0, 20, NULL);
	assert_memory_equal(data = blk_data(), "x\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
	config.serial = NULL;
	restart();
	assert_int_equal(blk_in(VIRTIO_BLK_T_GET_ID, 0, 20, NULL), VIRTIO_BLK_S_OK);
	assert_int_equal(rig.disk.nlog, 0);
}

static void test_unsupported(void **state)
{
	static const uint32_t types[] = {2,  3,  5,  6,   7,     9,          10,        12,
					 14, 15, 16, 255, 0x100, 0x80000001, UINT32_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		assert_int_equal(blk_in(types[i], 0, 512, &written), VIRTIO_BLK_S_UNSUPP);
		assert_int_equal(written, 1);
		assert_int_equal(blk_out(types[i], 0, 512, NULL), VIRTIO_BLK_S_UNSUPP);
		assert_int_equal(blk_do(types[i], 0, NULL, 0, true, NULL), VIRTIO_BLK_S_UNSUPP);
	}
	assert_int_equal(rig.disk.nlog, 0);
	assert_int_equal(stats()->errors, 3 * ARRAY_SIZE(types));
	assert_int_equal(stats()->bytes, 0);
}

/* ---- errors of reads and writes ---- */

static void expect_refused(uint64_t sector, uint32_t len)
{
	unsigned before = rig.disk.nlog;

	assert_int_equal(blk_in(VIRTIO_BLK_T_IN, sector, len, &written), VIRTIO_BLK_S_IOERR);
	assert_int_equal(written, 1); /* the status byte and no data */
	assert_int_equal(blk_out(VIRTIO_BLK_T_OUT, sector, len, &written), VIRTIO_BLK_S_IOERR);
	assert_int_equal(written, 1);
	assert_int_equal(rig.disk.nlog, before);
}

static void test_bad_range(void **state)
{
	static const struct {
		uint64_t sector;
		uint32_t len;
	} table[] = {
		{2048, 512},
		{2047, 1024},
		{0, DISK_BYTES + 512},
		{1ull << 40, 512},
		{(1ull << 55) - 1, 512},
		{1ull << 55, 512}, /* times 512 is 2^64 */
		{(1ull << 55) + 1, 512},
		{UINT64_MAX, 512},
		{UINT64_MAX - 7, 8192},
		{2049, 0},
		/* Not whole blocks. */
		{0, 1},
		{0, 511},
		{0, 513},
		{2047, 511},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		expect_refused(table[i].sector, table[i].len);
	config.block_bytes = 4096;
	restart();
	expect_refused(1, 4096);
	expect_refused(8, 512);
	expect_refused(8, 4096 + 512);
	assert_int_equal(blk_in(VIRTIO_BLK_T_IN, 8, 4096, NULL), VIRTIO_BLK_S_OK);
}

/* More than a used length can say, made of the same memory again and again. */
static void test_four_gib(void **state)
{
	static struct virtq_buf bufs[1025];

	rig.disk.capacity_bytes = 1ull << 50;
	for (unsigned i = 0; i < ARRAY_SIZE(bufs); i++)
		bufs[i] = (struct virtq_buf){RIG_DATA, 4u << 20};
	assert_int_equal(blk_do(VIRTIO_BLK_T_IN, 0, bufs, 1023, true, &written), VIRTIO_BLK_S_OK);
	assert_int_equal(written, (1023u << 22) + 1);
	assert_int_equal(blk_do(VIRTIO_BLK_T_IN, 0, bufs, 1024, true, &written),
			 VIRTIO_BLK_S_IOERR);
	assert_int_equal(written, 1);
	assert_int_equal(blk_do(VIRTIO_BLK_T_OUT, 0, bufs, 1024, false, NULL), VIRTIO_BLK_S_IOERR);
}

static void test_disk_errors(void **state)
{
	static const struct {
		int ret;
		uint8_t status;
	} table[] = {{-EIO, VIRTIO_BLK_S_IOERR},     {-ENOSPC, VIRTIO_BLK_S_IOERR},
		     {-EROFS, VIRTIO_BLK_S_IOERR},   {-EINVAL, VIRTIO_BLK_S_IOERR},
		     {-ENODATA, VIRTIO_BLK_S_IOERR}, {-EOPNOTSUPP, VIRTIO_BLK_S_UNSUPP}};
	struct blk_segment seg = {0, 8, 0};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		rig.disk.fail = table[i].ret;
		assert_int_equal(blk_in(VIRTIO_BLK_T_IN, 0, 512, &written), table[i].status);
		assert_int_equal(written, 1);
		assert_int_equal(blk_out(VIRTIO_BLK_T_OUT, 0, 512, NULL), table[i].status);
		blk_write_segments(&seg, 1);
		assert_int_equal(blk_out(VIRTIO_BLK_T_DISCARD, 0, 16, NULL), table[i].status);
		assert_int_equal(blk_out(VIRTIO_BLK_T_WRITE_ZEROES, 0, 16, NULL), table[i].status);
	}
	assert_int_equal(stats()->errors, 4 * ARRAY_SIZE(table));
	assert_int_equal(stats()->bytes, 0);
	rig.disk.fail = 0;
}

/* B44: whatever the driver negotiated. */
static void test_read_only(void **state)
{
	struct blk_segment seg = {0, 8, 0};
	uint64_t offered;

	for (unsigned i = 0; i < 2; i++) {
		config.read_only = true;
		config.features = i ? ~VIRTIO_BIT(VIRTIO_BLK_F_RO) : 0;
		restart();
		offered = rig.dev->ops->features(rig.dev);
		assert_true(offered & VIRTIO_BIT(VIRTIO_BLK_F_RO));
		assert_false(offered & VIRTIO_BIT(VIRTIO_BLK_F_DISCARD));
		assert_false(offered & VIRTIO_BIT(VIRTIO_BLK_F_WRITE_ZEROES));
		blk_write_segments(&seg, 1);
		assert_int_equal(blk_out(VIRTIO_BLK_T_OUT, 0, 512, NULL), VIRTIO_BLK_S_IOERR);
		assert_int_equal(blk_out(VIRTIO_BLK_T_OUT, 0, 0, NULL), VIRTIO_BLK_S_IOERR);
		assert_int_equal(blk_out(VIRTIO_BLK_T_DISCARD, 0, 16, NULL), VIRTIO_BLK_S_IOERR);
		assert_int_equal(blk_out(VIRTIO_BLK_T_WRITE_ZEROES, 0, 16, NULL),
				 VIRTIO_BLK_S_IOERR);
		assert_int_equal(rig.disk.nlog, 0);
		assert_int_equal(blk_do(VIRTIO_BLK_T_FLUSH, 0, NULL, 0, false, NULL),
				 VIRTIO_BLK_S_OK);
		assert_int_equal(blk_in(VIRTIO_BLK_T_IN, 0, 512, NULL), VIRTIO_BLK_S_OK);
		assert_int_equal(blk_in(VIRTIO_BLK_T_GET_ID, 0, 20, NULL), VIRTIO_BLK_S_OK);
	}
}

/* ---- durability (B43) ---- */

static void expect_fua(bool fua)
{
	struct blk_segment seg = {0, 8, 0};

	assert_int_equal(blk_out(VIRTIO_BLK_T_OUT, 0, 512, NULL), VIRTIO_BLK_S_OK);
	assert_int_equal(last_op().flags, fua ? BLK_FUA : 0);
	blk_write_segments(&seg, 1);
	assert_int_equal(blk_out(VIRTIO_BLK_T_WRITE_ZEROES, 0, 16, NULL), VIRTIO_BLK_S_OK);
	assert_int_equal(last_op().flags, fua ? BLK_FUA : 0);
	assert_int_equal(blk_out(VIRTIO_BLK_T_DISCARD, 0, 16, NULL), VIRTIO_BLK_S_OK);
	assert_int_equal(last_op().flags, 0); /* a hint needs no durability */
	assert_int_equal(blk_in(VIRTIO_BLK_T_IN, 0, 512, NULL), VIRTIO_BLK_S_OK);
	assert_int_equal(last_op().flags, 0);
}

static uint8_t writeback(void)
{
	uint8_t v = 0xff;

	rig.dev->ops->config_read(rig.dev, offsetof(struct virtio_blk_config, wce), &v, 1);
	return v;
}

static int set_writeback(uint8_t v)
{
	return rig.dev->ops->config_write(rig.dev, offsetof(struct virtio_blk_config, wce), &v, 1);
}

#define FLUSH VIRTIO_BIT(VIRTIO_BLK_F_FLUSH)
#define WCE   VIRTIO_BIT(VIRTIO_BLK_F_CONFIG_WCE)

static void set_features(uint64_t features)
{
	rig.dev->ops->set_features(rig.dev, features);
}

static void test_durability(void **state)
{
	uint64_t all = rig.dev->ops->features(rig.dev);

	set_features(all);
	assert_int_equal(writeback(), 1);
	expect_fua(false);
	assert_int_equal(set_writeback(0), 0);
	assert_int_equal(writeback(), 0);
	expect_fua(true);
	assert_int_equal(set_writeback(2), -EINVAL);
	expect_fua(true);
	assert_int_equal(set_writeback(1), 0);
	expect_fua(false);
	/* Without FLUSH the driver does not know of a cache. */
	set_features(all & ~(FLUSH | WCE));
	expect_fua(true);
	set_features(all & ~FLUSH);
	assert_int_equal(writeback(), 0);
	expect_fua(true);
	set_writeback(1); /* changes nothing without FLUSH */
	assert_int_equal(writeback(), 0);
	expect_fua(true);
	/* Without CONFIG_WCE: the default, and it cannot be changed. */
	set_features(all & ~WCE);
	expect_fua(false);
	assert_int_equal(set_writeback(0), 0);
	assert_int_equal(set_writeback(7), 0);
	assert_int_equal(writeback(), 1);
	expect_fua(false);
}

/* QEMU shows its guest the writeback that was last written, whatever happens below. */
static void test_writeback_stays(void **state)
{
	uint64_t all = rig.dev->ops->features(rig.dev);

	set_writeback(0);
	rig.dev->ops->reset(rig.dev);
	assert_int_equal(writeback(), 0);
	set_features(all & ~(FLUSH | WCE)); /* firmware */
	set_features(all);
	assert_int_equal(writeback(), 0);
	expect_fua(true);
	/* Before the features are told. */
	rig.dev->ops->reset(rig.dev);
	assert_int_equal(set_writeback(1), 0);
	set_features(all);
	expect_fua(false);
	/* Another client begins with the default. */
	set_writeback(0);
	rig.dev->ops->detach(rig.dev);
	assert_int_equal(writeback(), 1);
	set_features(all);
	expect_fua(false);
}

/* ---- discard and write zeroes ---- */

static uint8_t ranges(uint32_t type, const struct blk_segment *segs, unsigned n)
{
	blk_write_segments(segs, n);
	return blk_out(type, 0, n * 16, &written);
}

static void test_segments(void **state)
{
	static const struct blk_segment segs[] = {{8, 16, 0}, {100, 1, 0}, {7, 0, 0}, {2040, 8, 1}};
	static const uint8_t zeroes[8192];

	assert_int_equal(ranges(VIRTIO_BLK_T_WRITE_ZEROES, segs, 4), VIRTIO_BLK_S_OK);
	assert_int_equal(written, 1);
	assert_int_equal(rig.disk.nlog, 3); /* the empty one needs no I/O */
	assert_int_equal(rig.disk.log[0].op, BLK_WRITE_ZEROES);
	assert_int_equal(rig.disk.log[0].offset_bytes, 4096);
	assert_int_equal(rig.disk.log[0].len_bytes, 8192);
	assert_int_equal(rig.disk.log[0].flags, 0);
	assert_int_equal(rig.disk.log[2].offset_bytes, 2040 * 512);
	assert_int_equal(rig.disk.log[2].flags, BLK_UNMAP);
	assert_memory_equal(rig.disk.data + 4096, zeroes, 8192);
	assert_int_not_equal(rig.disk.data[4095] + rig.disk.data[4094], 0);
	assert_int_equal(ranges(VIRTIO_BLK_T_DISCARD, segs, 2), VIRTIO_BLK_S_OK);
	assert_int_equal(rig.disk.log[3].op, BLK_DISCARD);
	assert_int_equal(rig.disk.log[4].offset_bytes, 51200);
}

static void test_segments_refused(void **state)
{
	static const struct {
		struct blk_segment seg;
		uint8_t discard, zeroes;
	} table[] = {
		{{2048, 1, 0}, VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_IOERR},
		{{2047, 2, 0}, VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_IOERR},
		{{1ull << 55, 8, 0}, VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_IOERR},
		{{UINT64_MAX, 2, 0}, VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_IOERR},
		{{0, UINT32_MAX, 0}, VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_IOERR},
		{{2049, 0, 0}, VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_IOERR},
		{{0, 8, 2}, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_S_UNSUPP},
		{{0, 8, 3}, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_S_UNSUPP},
		{{0, 8, 0x80000000}, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_S_UNSUPP},
		{{0, 8, 1}, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_S_OK},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct blk_segment two[2] = {{0, 8, 0}, table[i].seg};
		unsigned before = rig.disk.nlog;

		/* Alone, and behind a good one, which must not be done either. */
		assert_int_equal(ranges(VIRTIO_BLK_T_DISCARD, &table[i].seg, 1), table[i].discard);
		assert_int_equal(ranges(VIRTIO_BLK_T_DISCARD, two, 2), table[i].discard);
		assert_int_equal(rig.disk.nlog, before);
		assert_int_equal(ranges(VIRTIO_BLK_T_WRITE_ZEROES, &table[i].seg, 1),
				 table[i].zeroes);
		assert_int_equal(ranges(VIRTIO_BLK_T_WRITE_ZEROES, two, 2), table[i].zeroes);
		if (table[i].zeroes != VIRTIO_BLK_S_OK)
			assert_int_equal(rig.disk.nlog, before);
	}
	/* Tables that are none. */
	for (uint32_t len = 0; len < 40; len++) {
		uint8_t want = len == 16 || len == 32 ? VIRTIO_BLK_S_OK : VIRTIO_BLK_S_IOERR;

		memset(blk_data(), 0, 64);
		assert_int_equal(blk_out(VIRTIO_BLK_T_WRITE_ZEROES, 0, len, NULL), want);
		assert_int_equal(blk_out(VIRTIO_BLK_T_DISCARD, 0, len, NULL), want);
	}
}

static void test_segment_limits(void **state)
{
	struct virtio_blk_config c;
	static struct blk_segment segs[300];
	struct blk_segment big = {0, 0, 0};
	uint32_t most;

	rig.disk.capacity_bytes = 1ull << 50;
	rig.dev->ops->config_read(rig.dev, 0, &c, sizeof(c));
	most = le32toh(c.max_discard_seg);
	assert_int_equal(most, le32toh(c.max_write_zeroes_seg));
	for (uint32_t i = 0; i < ARRAY_SIZE(segs); i++)
		segs[i] = (struct blk_segment){i * 8, 1, 0};
	assert_int_equal(ranges(VIRTIO_BLK_T_DISCARD, segs, most), VIRTIO_BLK_S_OK);
	assert_int_equal(rig.disk.nlog, most);
	assert_int_equal(ranges(VIRTIO_BLK_T_DISCARD, segs, most + 1), VIRTIO_BLK_S_IOERR);
	big.sectors = le32toh(c.max_discard_sectors);
	assert_int_equal(ranges(VIRTIO_BLK_T_DISCARD, &big, 1), VIRTIO_BLK_S_OK);
	big.sectors++;
	assert_int_equal(ranges(VIRTIO_BLK_T_DISCARD, &big, 1), VIRTIO_BLK_S_IOERR);
	big.sectors = le32toh(c.max_write_zeroes_sectors);
	assert_int_equal(ranges(VIRTIO_BLK_T_WRITE_ZEROES, &big, 1), VIRTIO_BLK_S_OK);
	big.sectors++;
	assert_int_equal(ranges(VIRTIO_BLK_T_WRITE_ZEROES, &big, 1), VIRTIO_BLK_S_IOERR);
}

/* One after the other; the first failure ends it. */
static void test_segments_fail(void **state)
{
	static const struct blk_segment segs[] = {{0, 8, 0}, {16, 8, 0}, {32, 8, 0}};
	struct virtq_buf buf = {BLK_DATA, 48};
	uint64_t status;

	blk_write_segments(segs, 3);
	status = blk_put(VIRTIO_BLK_T_DISCARD, 0, &buf, 1, false);
	blk_kick();
	assert_int_equal(rig.disk.channel.npending, 1);
	fake_disk_complete(&rig.disk, 1);
	assert_int_equal(rig.disk.channel.npending, 1);
	rig.disk.fail = -EIO;
	fake_disk_complete(&rig.disk, 1);
	assert_int_equal(rig.disk.channel.npending, 0);
	assert_int_equal(blk_status(status), VIRTIO_BLK_S_IOERR);
	assert_int_equal(rig.disk.nlog, 2);
}

/* B23: the guest changes the table between our looks. */
static void test_segments_changed(void **state)
{
	static const struct blk_segment segs[] = {{0, 8, 0}, {16, 8, 0}};
	struct virtio_blk_discard_write_zeroes *table = blk_data();
	struct virtq_buf buf = {BLK_DATA, 32};
	uint64_t status;

	blk_write_segments(segs, 2);
	status = blk_put(VIRTIO_BLK_T_WRITE_ZEROES, 0, &buf, 1, false);
	blk_kick();
	table[1].sector = htole64(2047); /* checked before, and again when it is done */
	fake_disk_complete(&rig.disk, 1);
	assert_int_equal(blk_status(status), VIRTIO_BLK_S_IOERR);
	assert_int_equal(rig.disk.nlog, 1);
}

static void test_discard_off(void **state)
{
	struct blk_segment seg = {0, 8, 0};

	config.no_discard = true;
	restart();
	assert_false(rig.dev->ops->features(rig.dev) & VIRTIO_BIT(VIRTIO_BLK_F_DISCARD));
	assert_int_equal(ranges(VIRTIO_BLK_T_DISCARD, &seg, 1), VIRTIO_BLK_S_UNSUPP);
	assert_int_equal(ranges(VIRTIO_BLK_T_WRITE_ZEROES, &seg, 1), VIRTIO_BLK_S_OK);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_read_write),      CASE(test_flush),         CASE(test_get_id),
		CASE(test_unsupported),     CASE(test_bad_range),     CASE(test_four_gib),
		CASE(test_disk_errors),     CASE(test_read_only),     CASE(test_durability),
		CASE(test_writeback_stays), CASE(test_segments),      CASE(test_segments_refused),
		CASE(test_segment_limits),  CASE(test_segments_fail), CASE(test_segments_changed),
		CASE(test_discard_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
