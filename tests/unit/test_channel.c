/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel over an engine that does as the test says (fakes/script_engine.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/defer.h"
#include "fakes/block_rig.h"
#include "fakes/script_engine.h"

#define DISK_BYTES (4u << 20)

static struct script script;
static struct block_rig rig;
static char buffer[1 << 20] __attribute__((aligned(4096)));

static void setup(void)
{
	script_init(&script, DISK_BYTES);
	for (unsigned i = 0; i < DISK_BYTES; i++)
		script.memory[i] = (char)(i / 512 + i);
}

static void open_block(uint32_t block_bytes, bool read_only)
{
	struct disk_config config = {
		.id = "test",
		.ops = &script.ops,
		.engine = {.fd = -1, .read_only = read_only},
		.block_bytes = block_bytes,
		.discard = true,
	};

	rig_open(&rig, &config, 1);
}

static void open_disk(void)
{
	open_block(512, false);
}

static void teardown(void)
{
	rig_close(&rig);
	script_fini(&script);
}

static void read_stats(void *arg)
{
	blk_channel_stats_read(rig.channels[0], arg);
}

/* On the iothread: after the pass that completed what the test has waited for. */
static struct blk_channel_stats stats(void)
{
	struct blk_channel_stats s;

	iothread_run_sync(rig.threads[0], read_stats, &s);
	return s;
}

/* n one-buffer requests of len bytes, each starting `step` after the one before. */
static void many(struct rig_request *r, struct iovec *iov, unsigned n, enum blk_op op,
		 uint64_t offset, uint64_t len, uint64_t step)
{
	for (unsigned i = 0; i < n; i++) {
		iov[i] = (struct iovec){buffer + i * len, len};
		rig_request_init(&r[i], op, offset + i * step, &iov[i], 1);
	}
}

static void assert_all(const struct rig_request *r, unsigned n, int ret)
{
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(r[i].done, 1);
		assert_int_equal(r[i].ret, ret);
	}
}

static void wait_in_flight(unsigned n)
{
	for (unsigned i = 0; i < 5000 && atomic_load_relaxed(&script.nlog) < n; i++)
		usleep(1000);
	assert_int_equal(atomic_load_relaxed(&script.nlog), n);
}

/* ---- one pass, one batch ---- */

static void test_one_batch_a_pass(void **state)
{
	struct rig_request r[64];
	struct iovec iov[64];

	setup();
	open_disk();
	many(r, iov, 64, BLK_READ, 0, 512, 8192);
	rig_run(&rig, 0, r, 64);
	assert_all(r, 64, 0);
	assert_int_equal(script.batches, 1);
	assert_int_equal(script.nlog, 64);
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(script.log[i].offset, i * 8192);
		assert_memory_equal(buffer + i * 512, script.memory + i * 8192, 512);
	}
	assert_int_equal(stats().requests, 64);
	assert_int_equal(stats().batches, 1);
	teardown();
}

static void test_more_than_a_batch(void **state)
{
	enum { N = 1000 };
	struct rig_request *r = calloc(N, sizeof(*r));
	struct iovec *iov = calloc(N, sizeof(*iov));

	setup();
	script.hold = true;
	script.depth = 8;
	open_disk();
	script_release(&script, SCRIPT_RELEASE_ALL);
	many(r, iov, N, BLK_READ, 0, 512, 1024);
	rig_run(&rig, 0, r, N);
	assert_all(r, N, 0);
	/* Never reordered, each once, and it was full most of the time. */
	assert_int_equal(script.nlog, N);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(script.log[i].offset, i * 1024);
	assert_true(stats().blocked > 0);
	teardown();
	free(r);
	free(iov);
}

static void test_merging(void **state)
{
	struct rig_request r[8];
	struct iovec iov[8];

	setup();
	open_disk();
	many(r, iov, 8, BLK_WRITE, 4096, 4096, 4096);
	memset(buffer, 0x5a, sizeof(buffer));
	rig_run(&rig, 0, r, 8);
	assert_all(r, 8, 0);
	assert_int_equal(script.nlog, 1);
	assert_int_equal(script.log[0].offset, 4096);
	assert_int_equal(script.log[0].len, 8 * 4096);
	assert_int_equal(script.log[0].iovcnt, 8);
	assert_memory_equal(script.memory + 4096, buffer, 8 * 4096);
	assert_int_equal(stats().merged, 7);
	teardown();
}

static bool bad_block_at_8192(struct script *s, const struct blk_request *req, int64_t *result)
{
	if (req->op != BLK_READ || req->offset_bytes > 8192 ||
	    req->offset_bytes + req->len_bytes <= 8192)
		return false;
	*result = -ENODATA;
	return true;
}

static void test_only_the_bad_member_fails(void **state)
{
	struct rig_request r[8];
	struct iovec iov[8];

	setup();
	script.fault = bad_block_at_8192;
	open_disk();
	many(r, iov, 8, BLK_READ, 0, 4096, 4096);
	rig_run(&rig, 0, r, 8);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(r[i].ret, i == 2 ? -ENODATA : 0);
		if (i != 2)
			assert_memory_equal(buffer + i * 4096, script.memory + i * 4096, 4096);
	}
	assert_int_equal(script.nlog, 9);
	teardown();
}

/* ---- plug ---- */

struct plugged {
	struct rig_request r[3];
	struct iovec iov[3];
	unsigned seen[3];
};

static void submit_plugged(void *arg)
{
	struct plugged *p = arg;
	struct blk_channel *c = rig.channels[0];

	defer_begin();
	blk_plug(c);
	blk_submit(c, &p->r[0].req);
	blk_plug(c);
	blk_submit(c, &p->r[1].req);
	blk_unplug(c);
	defer_end();
	p->seen[0] = script.batches;
	blk_submit(c, &p->r[2].req);
	p->seen[1] = script.batches;
	blk_unplug(c);
}

static void test_plug_nests(void **state)
{
	struct plugged p = {0};

	setup();
	open_disk();
	many(p.r, p.iov, 3, BLK_READ, 0, 512, 8192);
	for (unsigned i = 0; i < 3; i++)
		p.r[i].rig = &rig;
	rig.outstanding = 3;
	iothread_run_sync(rig.threads[0], submit_plugged, &p);
	rig_wait(&rig);
	assert_int_equal(p.seen[0], 0);
	assert_int_equal(p.seen[1], 0);
	assert_int_equal(script.batches, 1);
	assert_all(p.r, 3, 0);
	teardown();
}

/* ---- blocked ---- */

static void test_takes_less(void **state)
{
	struct rig_request r[10];
	struct iovec iov[10];

	setup();
	script.take_max = 3;
	open_disk();
	many(r, iov, 10, BLK_READ, 0, 512, 8192);
	rig_run(&rig, 0, r, 10);
	assert_all(r, 10, 0);
	/* It completed inline what it took: asked again at once, without a timer. */
	assert_int_equal(script.batches, 4);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(script.log[i].offset, i * 8192);
	teardown();
}

static void test_takes_nothing_while_nothing_is_in_flight(void **state)
{
	struct rig_request r[4];
	struct iovec iov[4];

	setup();
	script.refuse = 5;
	open_disk();
	many(r, iov, 4, BLK_READ, 0, 512, 8192);
	rig_run(&rig, 0, r, 4);
	assert_all(r, 4, 0);
	assert_int_equal(script.batches, 6);
	assert_int_equal(stats().blocked, 5);
	teardown();
}

static void test_blocked_waits_for_a_completion(void **state)
{
	struct rig_request r[8], late;
	struct iovec iov[8], late_iov = {buffer, 512};

	setup();
	script.hold = true;
	script.depth = 4;
	open_disk();
	many(r, iov, 8, BLK_READ, 0, 512, 8192);
	rig_start(&rig, 0, r, 8);
	wait_in_flight(4);
	/* While blocked nothing is tried, however often something is submitted. */
	rig_request_init(&late, BLK_READ, 1 << 20, &late_iov, 1);
	rig_start(&rig, 0, &late, 1);
	usleep(20000);
	assert_int_equal(atomic_load_relaxed(&script.batches), 1);
	script_release(&script, 1);
	wait_in_flight(5);
	assert_int_equal(atomic_load_relaxed(&script.batches), 2);
	script_release(&script, SCRIPT_RELEASE_ALL);
	rig_wait(&rig);
	assert_all(r, 8, 0);
	assert_all(&late, 1, 0);
	assert_int_equal(script.log[8].offset, 1 << 20);
	teardown();
}

/* ---- checks ---- */

static void test_bad_requests(void **state)
{
	setup();
	open_disk();
	assert_int_equal(rig_io(&rig, BLK_READ, 0, DISK_BYTES, buffer, 512), -EINVAL);
	assert_int_equal(rig_io(&rig, BLK_READ, 0, DISK_BYTES - 512, buffer, 1024), -EINVAL);
	assert_int_equal(rig_io(&rig, BLK_READ, 0, UINT64_MAX - 511, buffer, 512), -EINVAL);
	assert_int_equal(rig_io(&rig, BLK_READ, 0, 1, buffer, 512), -EINVAL);
	assert_int_equal(rig_io(&rig, BLK_WRITE, 0, 0, buffer, 511), -EINVAL);
	assert_int_equal(rig_io(&rig, BLK_DISCARD, 0, DISK_BYTES, NULL, 512), -EINVAL);
	assert_int_equal(rig_io(&rig, BLK_READ, 0, DISK_BYTES, buffer, 0), 0);
	assert_int_equal(rig_io(&rig, BLK_READ, 0, DISK_BYTES - 512, buffer, 512), 0);
	assert_int_equal(script.nlog, 1);
	teardown();
}

static void test_read_only(void **state)
{
	setup();
	script.info.caps |= ENGINE_CAP_WRITE_CACHE;
	open_block(512, true);
	assert_int_equal(rig_io(&rig, BLK_WRITE, 0, 0, buffer, 512), -EROFS);
	assert_int_equal(rig_io(&rig, BLK_DISCARD, 0, 0, NULL, 512), -EROFS);
	assert_int_equal(rig_io(&rig, BLK_WRITE_ZEROES, 0, 0, NULL, 512), -EROFS);
	assert_int_equal(rig_io(&rig, BLK_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(rig_io(&rig, BLK_READ, 0, 0, buffer, 512), 0);
	assert_int_equal(script.nlog, 1);
	assert_true(disk_info(rig.disk)->read_only);
	assert_false(disk_info(rig.disk)->discard);
	teardown();
}

static void test_capacity(void **state)
{
	struct disk_config config = {
		.id = "odd", .ops = &script.ops, .engine = {.fd = -1}, .block_bytes = 4096};
	static const struct {
		uint64_t size;
		uint32_t block, engine_block;
		uint64_t capacity; /* 0: refused */
	} table[] = {
		{0, 512, 1, 0},
		{511, 512, 1, 0},
		{512, 512, 1, 512},
		{513, 512, 1, 512},
		{4095, 512, 1, 3584},
		{4095, 4096, 1, 0},
		{(1 << 20) + 1, 4096, 1, 1 << 20},
		{8191, 4096, 512, 4096},
		{4096 + 512, 512, 4096, 4096},
		{512, 512, 4096, 0},
	};

	script_init(&script, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(table); i++) {
		struct error err;
		struct disk *d;

		script.info.size_bytes = table[i].size;
		script.info.logical_block = table[i].engine_block;
		config.block_bytes = table[i].block;
		d = disk_create(&config, &err);
		assert_int_equal(d != NULL, table[i].capacity != 0);
		if (!d)
			continue;
		assert_int_equal(disk_capacity_bytes(d), table[i].capacity);
		disk_destroy(d);
	}
	script_fini(&script);
}

/* ---- resubmission ---- */

#define CHAIN 100000

static bool submit_again(struct rig_request *r)
{
	unsigned *left = r->private;

	if (!*left)
		return false;
	--*left;
	blk_submit(r->rig->channels[r->thread], &r->req);
	return true;
}

/* A completion that submits again: neither the stack grows nor do others starve. */
static void test_complete_may_submit(void **state)
{
	struct rig_request r[2];
	struct iovec iov[2];
	unsigned left[2] = {CHAIN, CHAIN};

	setup();
	open_disk();
	many(r, iov, 2, BLK_READ, 0, 512, 8192);
	for (unsigned i = 0; i < 2; i++) {
		r[i].next = submit_again;
		r[i].private = &left[i];
	}
	/* The second makes none but bad requests. */
	r[1].req.offset_bytes = DISK_BYTES;
	rig_run(&rig, 0, r, 2);
	assert_int_equal(r[0].done, CHAIN + 1);
	assert_int_equal(r[1].done, CHAIN + 1);
	assert_int_equal(r[1].ret, -EINVAL);
	teardown();
}

static void test_idle_channel_is_not_armed(void **state)
{
	unsigned polls, arms;

	setup();
	script.hold = true;
	open_disk();
	script_release(&script, SCRIPT_RELEASE_ALL);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(rig_io(&rig, BLK_READ, 0, 0, buffer, 512), 0);
		usleep(2000);
	}
	polls = atomic_load_relaxed(&script.polls);
	arms = atomic_load_relaxed(&script.arms);
	usleep(100000);
	assert_int_equal(atomic_load_relaxed(&script.polls), polls);
	assert_int_equal(atomic_load_relaxed(&script.arms), arms);
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_batch_a_pass),
		cmocka_unit_test(test_more_than_a_batch),
		cmocka_unit_test(test_merging),
		cmocka_unit_test(test_only_the_bad_member_fails),
		cmocka_unit_test(test_plug_nests),
		cmocka_unit_test(test_takes_less),
		cmocka_unit_test(test_takes_nothing_while_nothing_is_in_flight),
		cmocka_unit_test(test_blocked_waits_for_a_completion),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_complete_may_submit),
		cmocka_unit_test(test_idle_channel_is_not_armed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
