/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the channel makes of requests that an engine cannot take, or does not finish.
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
#include "base/iov.h"
#include "fakes/block_rig.h"
#include "fakes/script_engine.h"

#define DISK_BYTES (4u << 20)
#define ALL_CAPS                                                                                   \
	(ENGINE_CAP_DISCARD | ENGINE_CAP_WRITE_ZEROES | ENGINE_CAP_ZERO_NO_UNMAP | ENGINE_CAP_FUA)

static struct script script;
static struct block_rig rig;
static char buffer[1 << 20] __attribute__((aligned(4096)));
static char model[DISK_BYTES];

static void setup(void)
{
	unsigned seed = 7;

	script_init(&script, DISK_BYTES);
	for (unsigned i = 0; i < DISK_BYTES; i++)
		model[i] = (char)rand_r(&seed);
	memcpy(script.memory, model, DISK_BYTES);
	for (unsigned i = 0; i < sizeof(buffer); i++)
		buffer[i] = (char)rand_r(&seed);
}

static void open_on(unsigned nthreads, int fd)
{
	struct disk_config config = {
		.id = "test",
		.ops = &script.ops,
		.engine = {.fd = fd},
		.block_bytes = 512,
		.discard = true,
	};

	rig_open(&rig, &config, nthreads);
}

static void open_disk(void)
{
	open_on(1, -1);
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

static struct blk_channel_stats stats(void)
{
	struct blk_channel_stats s;

	iothread_run_sync(rig.threads[0], read_stats, &s);
	return s;
}

static void assert_disk(void)
{
	assert_memory_equal(script.memory, model, DISK_BYTES);
}

static void read_and_compare(uint64_t offset, void *to, uint64_t len)
{
	memset(to, 0, len);
	assert_int_equal(rig_io(&rig, BLK_READ, 0, offset, to, len), 0);
	assert_memory_equal(to, model + offset, len);
}

static void write_both(uint64_t offset, void *from, uint64_t len, uint32_t flags)
{
	memcpy(model + offset, from, len);
	assert_int_equal(rig_io(&rig, BLK_WRITE, flags, offset, from, len), 0);
	assert_disk();
}

/* ---- results ---- */

static bool cut_to_half(struct script *s, const struct blk_request *req, int64_t *result)
{
	if (req->op > BLK_WRITE || req->len_bytes < 1024)
		return false;
	*result = (int64_t)req->len_bytes / 2;
	return true;
}

static bool cut_to_odd(struct script *s, const struct blk_request *req, int64_t *result)
{
	if (req->op > BLK_WRITE || req->len_bytes < 600)
		return false;
	*result = 517;
	return true;
}

static bool nothing_moved(struct script *s, const struct blk_request *req, int64_t *result)
{
	*result = 0;
	return true;
}

static void test_short_results_are_continued(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		setup();
		script.fault = i == 0 ? cut_to_half : cut_to_odd;
		if (i == 2)
			script.info.logical_block = script.info.memory_align = 512;
		open_disk();
		write_both(4096, buffer, 65536, 0);
		read_and_compare(0, buffer, 131072);
		assert_true(stats().retried > 0);
		teardown();
	}
}

static void test_nothing_moved_is_an_error(void **state)
{
	setup();
	script.fault = nothing_moved;
	open_disk();
	assert_int_equal(rig_io(&rig, BLK_READ, 0, 0, buffer, 4096), -EIO);
	assert_int_equal(rig_io(&rig, BLK_WRITE, 0, 0, buffer, 4096), -EIO);
	teardown();
}

/* The image ends inside of a block: bounded, not for ever. */
static bool end_inside_of_block(struct script *s, const struct blk_request *req, int64_t *result)
{
	*result = 100;
	return true;
}

static void test_end_inside_of_a_block(void **state)
{
	setup();
	script.info.logical_block = script.info.memory_align = 512;
	script.fault = end_inside_of_block;
	open_disk();
	assert_int_equal(rig_io(&rig, BLK_READ, 0, 0, buffer, 4096), -EIO);
	assert_int_equal(rig_io(&rig, BLK_READ, 0, 0, buffer + 1, 4096), -EIO);
	teardown();
}

static bool fails(struct script *s, const struct blk_request *req, int64_t *result)
{
	static const int errors[] = {EAGAIN, EINTR};

	if (!s->fault_count)
		return false;
	*result = -errors[s->fault_count-- % 2];
	return true;
}

static void test_try_again(void **state)
{
	/* More often than at once: by timer. */
	static const unsigned times[] = {1, 5, 16, 17, 25};

	for (unsigned i = 0; i < ARRAY_SIZE(times); i++) {
		setup();
		script.info.caps |= ENGINE_CAP_WRITE_CACHE;
		script.fault = fails;
		open_disk();
		script.fault_count = times[i];
		write_both(512, buffer, 4096, 0);
		assert_int_equal(stats().retried, times[i]);
		script.fault_count = times[i];
		read_and_compare(512, buffer, 4096);
		script.fault_count = times[i];
		assert_int_equal(rig_io(&rig, BLK_FLUSH, 0, 0, NULL, 0), 0);
		script.fault_count = times[i];
		assert_int_equal(rig_io(&rig, BLK_DISCARD, 0, 0, NULL, 512), 0);
		teardown();
	}
}

static int64_t the_error;

static bool the_error_always(struct script *s, const struct blk_request *req, int64_t *result)
{
	*result = the_error;
	return true;
}

static void test_errors(void **state)
{
	static const struct {
		int64_t from;
		int to;
	} table[] = {{-EIO, -EIO},       {-ENOSPC, -ENOSPC}, {-ENODATA, -ENODATA},
		     {-ECANCELED, -EIO}, {INT64_MIN, -EIO},  {1 << 30, -EIO}};

	setup();
	script.fault = the_error_always;
	open_disk();
	for (unsigned i = 0; i < ARRAY_SIZE(table); i++) {
		the_error = table[i].from;
		if (the_error > 0) /* more than it was asked for: would be moved */
			continue;
		assert_int_equal(rig_io(&rig, BLK_READ, 0, 0, buffer, 4096), table[i].to);
		assert_int_equal(rig_io(&rig, BLK_WRITE, 0, 0, buffer, 4096), table[i].to);
		assert_int_equal(rig_io(&rig, BLK_DISCARD, 0, 0, NULL, 4096), table[i].to);
		assert_int_equal(rig_io(&rig, BLK_WRITE_ZEROES, 0, 0, NULL, 4096), table[i].to);
	}
	teardown();
}

/* ---- splitting ---- */

static void test_split(void **state)
{
	enum { PARTS = 515 };
	struct iovec iov[PARTS];
	struct rig_request r;
	uint64_t len = 0;

	setup();
	script.info.max_iov = 4;
	script.info.max_transfer_bytes = 8192;
	open_disk();
	for (unsigned i = 0; i < PARTS; i++) {
		uint64_t n = i + 1 == PARTS ? 512 - len % 512 : 1 + (i * 37) % 1500;

		iov[i] = (struct iovec){buffer + len, n};
		len += n;
	}
	for (unsigned op = BLK_READ; op <= BLK_WRITE; op++) {
		rig_request_init(&r, op, 1024, iov, PARTS);
		assert_int_equal(r.req.len_bytes, len);
		rig_run(&rig, 0, &r, 1);
		assert_int_equal(r.ret, 0);
		assert_memory_equal(buffer, script.memory + 1024, len);
		for (unsigned i = 0; i < len; i++)
			buffer[i] ^= 0x55;
	}
	assert_true(stats().split > 2 * PARTS / 4 - 2);
	/* By length alone. */
	memcpy(model, script.memory, DISK_BYTES);
	read_and_compare(0, buffer, 1 << 20);
	teardown();
}

/* ---- durability ---- */

static void assert_log(unsigned at, enum blk_op op, uint32_t flags)
{
	assert_true(at < script.nlog);
	assert_int_equal(script.log[at].op, op);
	assert_int_equal(script.log[at].flags, flags);
}

static void test_fua(void **state)
{
	/* The engine can. */
	setup();
	script.info.caps = ALL_CAPS | ENGINE_CAP_WRITE_CACHE;
	open_disk();
	write_both(0, buffer, 4096, BLK_FUA);
	assert_int_equal(script.nlog, 1);
	assert_log(0, BLK_WRITE, BLK_FUA);
	/* Zeroes are flushed in any case. */
	assert_int_equal(rig_io(&rig, BLK_WRITE_ZEROES, BLK_FUA | BLK_UNMAP, 0, NULL, 4096), 0);
	assert_log(1, BLK_WRITE_ZEROES, BLK_UNMAP);
	assert_log(2, BLK_FLUSH, 0);
	assert_int_equal(script.nlog, 3);
	teardown();

	/* It cannot. */
	setup();
	script.info.caps = ENGINE_CAP_WRITE_CACHE;
	open_disk();
	write_both(0, buffer, 4096, BLK_FUA);
	write_both(0, buffer + 1, 4096, 0);
	assert_log(0, BLK_WRITE, 0);
	assert_log(1, BLK_FLUSH, 0);
	assert_log(2, BLK_WRITE, 0);
	assert_int_equal(script.nlog, 3);
	assert_int_equal(rig_io(&rig, BLK_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(script.nlog, 4);
	teardown();

	/* Nothing to make durable. */
	setup();
	script.info.caps = ALL_CAPS;
	open_disk();
	write_both(0, buffer, 4096, BLK_FUA);
	assert_int_equal(rig_io(&rig, BLK_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(script.nlog, 1);
	teardown();
}

static bool no_fua(struct script *s, const struct blk_request *req, int64_t *result)
{
	*result = -EOPNOTSUPP;
	return req->flags & BLK_FUA;
}

static void test_fua_turns_out_not_to_work(void **state)
{
	for (unsigned misaligned = 0; misaligned < 2; misaligned++) {
		setup();
		script.info.caps = ALL_CAPS | ENGINE_CAP_WRITE_CACHE;
		script.info.logical_block = script.info.memory_align = 512;
		script.fault = no_fua;
		open_disk();
		write_both(0, buffer + misaligned, 4096, BLK_FUA);
		assert_log(0, BLK_WRITE, BLK_FUA);
		assert_log(1, BLK_WRITE, 0);
		assert_log(2, BLK_FLUSH, 0);
		write_both(0, buffer + 512 + misaligned, 4096, BLK_FUA);
		assert_log(3, BLK_WRITE, 0); /* remembered */
		assert_log(4, BLK_FLUSH, 0);
		assert_int_equal(script.nlog, 5);
		teardown();
	}
}

static bool flush_fails_once(struct script *s, const struct blk_request *req, int64_t *result)
{
	*result = -EIO;
	return req->op == BLK_FLUSH && s->fault_count++ == 0;
}

static void test_failed_flush(void **state)
{
	/* O_DIRECT or no file: the next flush may succeed. */
	setup();
	script.info.caps = ENGINE_CAP_WRITE_CACHE;
	script.fault = flush_fails_once;
	open_disk();
	assert_int_equal(rig_io(&rig, BLK_WRITE, BLK_FUA, 0, buffer, 512), -EIO);
	assert_int_equal(rig_io(&rig, BLK_FLUSH, 0, 0, NULL, 0), 0);
	teardown();

	/* The page cache: the kernel has forgotten what it lost.  We have not. */
	setup();
	script.info.caps = ENGINE_CAP_WRITE_CACHE;
	script.fault = flush_fails_once;
	open_on(1, dup(0));
	assert_int_equal(rig_io(&rig, BLK_FLUSH, 0, 0, NULL, 0), -EIO);
	assert_int_equal(rig_io(&rig, BLK_FLUSH, 0, 0, NULL, 0), -EIO);
	assert_int_equal(rig_io(&rig, BLK_WRITE, BLK_FUA, 0, buffer, 512), -EIO);
	assert_int_equal(rig_io(&rig, BLK_WRITE, 0, 0, buffer, 512), 0);
	teardown();
}

/* ---- zeroes and discard ---- */

static void zero_both(enum blk_op op, uint32_t flags, uint64_t offset, uint64_t len)
{
	memset(model + offset, 0, len);
	assert_int_equal(rig_io(&rig, op, flags, offset, NULL, len), 0);
	assert_disk();
}

static bool no_zeroes(struct script *s, const struct blk_request *req, int64_t *result)
{
	*result = -EOPNOTSUPP;
	return req->op == BLK_WRITE_ZEROES;
}

static void test_zeroes(void **state)
{
	static const struct {
		uint32_t caps;
		bool fault;
		uint32_t engine_block;
	} table[] = {
		{ALL_CAPS, false, 1},
		{ALL_CAPS, true, 1},
		{0, false, 1},
		{ENGINE_CAP_WRITE_ZEROES, false, 1},
		{ENGINE_CAP_ZERO_NO_UNMAP, false, 1},
		{ALL_CAPS, false, 4096},
		{ALL_CAPS, true, 4096},
		{0, false, 4096},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(table); i++) {
		setup();
		script.info.caps = table[i].caps;
		script.info.logical_block = script.info.memory_align = table[i].engine_block;
		script.info.max_discard_bytes = 3 * 4096;
		script.info.max_transfer_bytes = 65536 * 3 + 4096;
		if (table[i].fault)
			script.fault = no_zeroes;
		open_disk();
		for (unsigned sectors = 1; sectors <= 17; sectors++) {
			for (unsigned odd = 0; odd < 9; odd += 1 + sectors % 3)
				zero_both(BLK_WRITE_ZEROES, odd % 2 ? BLK_UNMAP : 0,
					  sectors * 16384 + odd * 512, sectors * 512);
		}
		zero_both(BLK_WRITE_ZEROES, BLK_UNMAP, (1 << 20) + 512, (1 << 20) + 1024);
		zero_both(BLK_WRITE_ZEROES, 0, DISK_BYTES - 1024, 1024);
		teardown();
	}
}

static void test_zeroes_ask_for_what_is_wanted(void **state)
{
	setup();
	script.info.caps = ENGINE_CAP_WRITE_ZEROES;
	open_disk();
	zero_both(BLK_WRITE_ZEROES, BLK_UNMAP, 0, 512);
	zero_both(BLK_WRITE_ZEROES, 0, 512, 512);
	assert_log(0, BLK_WRITE_ZEROES, BLK_UNMAP);
	assert_log(1, BLK_WRITE, 0); /* must stay allocated */
	teardown();

	setup();
	script.info.caps = ENGINE_CAP_ZERO_NO_UNMAP;
	open_disk();
	zero_both(BLK_WRITE_ZEROES, BLK_UNMAP, 0, 512);
	zero_both(BLK_WRITE_ZEROES, 0, 512, 512);
	assert_log(0, BLK_WRITE_ZEROES, 0); /* may unmap, need not */
	assert_log(1, BLK_WRITE_ZEROES, 0);
	teardown();

	setup();
	script.fault = no_zeroes;
	open_disk();
	zero_both(BLK_WRITE_ZEROES, BLK_UNMAP, 0, 512);
	assert_log(0, BLK_WRITE_ZEROES, BLK_UNMAP);
	assert_log(1, BLK_WRITE_ZEROES, 0);
	assert_log(2, BLK_WRITE, 0);
	zero_both(BLK_WRITE_ZEROES, BLK_UNMAP, 0, 512);
	assert_log(3, BLK_WRITE, 0); /* remembered */
	teardown();
}

static bool no_discard(struct script *s, const struct blk_request *req, int64_t *result)
{
	*result = -EOPNOTSUPP;
	return req->op == BLK_DISCARD;
}

static void test_discard(void **state)
{
	setup();
	script.info.max_discard_bytes = 8192 + 512;
	open_disk();
	zero_both(BLK_DISCARD, 0, 512, 65536);
	assert_int_equal(script.nlog, 8);
	teardown();

	/* Only blocks that lie in the range as a whole. */
	setup();
	script.info.logical_block = script.info.memory_align = 4096;
	open_disk();
	assert_int_equal(rig_io(&rig, BLK_DISCARD, 0, 512, NULL, 4096), 0);
	assert_int_equal(rig_io(&rig, BLK_DISCARD, 0, 4096, NULL, 512), 0);
	assert_int_equal(script.nlog, 0);
	assert_disk();
	memset(model + 4096, 0, 8192);
	assert_int_equal(rig_io(&rig, BLK_DISCARD, 0, 512, NULL, 12288), 0);
	assert_int_equal(script.nlog, 1);
	assert_disk();
	teardown();

	/* A hint: never an error that it cannot be taken. */
	setup();
	script.fault = no_discard;
	open_disk();
	assert_int_equal(rig_io(&rig, BLK_DISCARD, 0, 0, NULL, 4096), 0);
	assert_int_equal(rig_io(&rig, BLK_DISCARD, 0, 0, NULL, 4096), 0);
	assert_int_equal(script.nlog, 1);
	assert_disk();
	teardown();

	setup();
	script.info.caps = 0;
	open_disk();
	assert_int_equal(rig_io(&rig, BLK_DISCARD, 0, 0, NULL, 4096), 0);
	assert_int_equal(script.nlog, 0);
	assert_false(disk_info(rig.disk)->discard);
	teardown();
}

/* ---- bouncing ---- */

static void test_misaligned_memory(void **state)
{
	enum { N = 40 };
	struct rig_request *r = calloc(N, sizeof(*r));
	struct iovec *iov = calloc(N * 3, sizeof(*iov));

	setup();
	script.info.logical_block = script.info.memory_align = 512;
	script.hold = script.shuffle = true;
	open_disk();
	script_release(&script, SCRIPT_RELEASE_ALL);
	/* Larger than a buffer, to the last byte of the disk. */
	write_both(DISK_BYTES - 524288, buffer + 3, 524288, 0);
	read_and_compare(DISK_BYTES - 524288, buffer + 5, 524288);
	/* More at once than there are buffers. */
	for (unsigned i = 0; i < N; i++) {
		uint64_t offset = i * 16384;

		iov[i * 3 + 0] = (struct iovec){buffer + 7 + offset, 1000};
		iov[i * 3 + 1] = (struct iovec){buffer + 1024 + offset, 24};
		iov[i * 3 + 2] = (struct iovec){buffer + 2048 + offset, 4096};
		rig_request_init(&r[i], BLK_WRITE, offset, iov + i * 3, 3);
		iov_to_buf(iov + i * 3, 3, 0, model + offset, 5120);
	}
	rig_run(&rig, 0, r, N);
	assert_disk();
	assert_int_equal(stats().bounced, N + 2);
	teardown();
	free(r);
	free(iov);
}

static void test_sub_block(void **state)
{
	unsigned seed = 3;

	setup();
	script.info.logical_block = script.info.memory_align = 4096;
	open_disk();
	for (unsigned i = 0; i < 200; i++) {
		uint64_t offset = (uint64_t)(rand_r(&seed) % 4096) * 512;
		uint64_t len = (uint64_t)(1 + rand_r(&seed) % 600) * 512;
		char *at = buffer + rand_r(&seed) % 5000;

		if (i % 2)
			write_both(offset, at, len, i % 4 ? BLK_FUA : 0);
		else
			read_and_compare(offset, at, len);
	}
	teardown();
}

/*
 * Fault B40.  Owners of one sector each, all in few blocks, on two threads; each writes a number
 * and reads it back before it writes the next, while whole blocks that others own are written,
 * zeroed and discarded beside them.  The engine carries requests out late and in any order.
 */
#define OWNERS 32
#define ROUNDS 150

struct owner {
	struct rig_request r;
	struct iovec iov;
	uint64_t words[64]; /* a sector */
	uint64_t value;
	bool writing;
	bool lost;
};

static bool owner_next(struct rig_request *r)
{
	struct owner *o = r->private;

	if (r->ret < 0)
		o->lost = true;
	if (r->req.op == BLK_READ) {
		for (unsigned i = 0; i < 64; i++)
			o->lost |= o->words[i] != o->value;
		if (o->lost || ++o->value == ROUNDS)
			return false;
		r->req.op = BLK_WRITE;
		for (unsigned i = 0; i < 64; i++)
			o->words[i] = o->value;
	} else {
		r->req.op = BLK_READ;
		memset(o->words, 0xff, sizeof(o->words));
	}
	blk_submit(r->rig->channels[r->thread], &r->req);
	return true;
}

struct neighbour {
	struct rig_request r;
	struct iovec iov;
	unsigned left;
	unsigned seed;
};

/* Blocks 1, 3, 5, 7 whole, often two requests for the same one. */
static bool neighbour_next(struct rig_request *r)
{
	struct neighbour *n = r->private;
	static const enum blk_op ops[] = {BLK_WRITE, BLK_DISCARD, BLK_WRITE_ZEROES, BLK_WRITE};

	if (!n->left--)
		return false;
	r->req.op = ops[rand_r(&n->seed) % 4];
	r->req.offset_bytes = (1 + 2 * (uint64_t)(rand_r(&n->seed) % 4)) * 4096;
	/* Zeroes that begin inside of the owners' block would be theirs; they end there instead. */
	blk_submit(r->rig->channels[r->thread], &r->req);
	return true;
}

static void test_no_lost_update(void **state)
{
	struct owner *o = calloc(OWNERS, sizeof(*o));
	struct neighbour n[4] = {0};

	for (unsigned threads = 1; threads <= 2; threads++) {
		setup();
		memset(script.memory, 0, DISK_BYTES);
		script.info.logical_block = script.info.memory_align = 4096;
		script.hold = script.shuffle = true;
		open_on(threads, -1);
		script_release(&script, SCRIPT_RELEASE_ALL);
		for (unsigned i = 0; i < OWNERS; i++) {
			o[i] = (struct owner){.iov = {o[i].words, 512}};
			/* Blocks 0, 2, 4, 6. */
			rig_request_init(&o[i].r, BLK_WRITE, (i / 8) * 8192 + i % 8 * 512,
					 &o[i].iov, 1);
			o[i].r.next = owner_next;
			o[i].r.private = &o[i];
		}
		for (unsigned i = 0; i < 4; i++) {
			n[i] = (struct neighbour){
				.iov = {buffer, 4096}, .left = OWNERS * ROUNDS, .seed = i + 1};
			rig_request_init(&n[i].r, BLK_WRITE, 4096, &n[i].iov, 1);
			n[i].r.next = neighbour_next;
			n[i].r.private = &n[i];
		}
		for (unsigned i = 0; i < OWNERS; i++)
			rig_start(&rig, i % threads, &o[i].r, 1);
		for (unsigned i = 0; i < 4; i++)
			rig_start(&rig, i % threads, &n[i].r, 1);
		rig_wait(&rig);
		for (unsigned i = 0; i < OWNERS; i++) {
			assert_false(o[i].lost);
			assert_int_equal(o[i].value, ROUNDS);
		}
		teardown();
	}
	free(o);
}

/* An aligned write that is in flight when a read-modify-write comes: its data is not lost. */
static void test_rmw_waits_for_aligned_write(void **state)
{
	struct rig_request aligned, rmw;
	struct iovec iov[2] = {{buffer, 4096}, {buffer + 8192, 512}};

	setup();
	script.info.logical_block = script.info.memory_align = 4096;
	script.hold = true;
	open_disk();
	rig_request_init(&aligned, BLK_WRITE, 0, &iov[0], 1);
	rig_request_init(&rmw, BLK_WRITE, 512, &iov[1], 1);
	rig_start(&rig, 0, &aligned, 1);
	rig_start(&rig, 0, &rmw, 1);
	usleep(20000);
	assert_int_equal(atomic_load_relaxed(&script.nlog), 1); /* the read has not begun */
	script_release(&script, SCRIPT_RELEASE_ALL);
	rig_wait(&rig);
	memcpy(model, buffer, 4096);
	memcpy(model + 512, buffer + 8192, 512);
	assert_disk();
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_results_are_continued),
		cmocka_unit_test(test_nothing_moved_is_an_error),
		cmocka_unit_test(test_end_inside_of_a_block),
		cmocka_unit_test(test_try_again),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_fua),
		cmocka_unit_test(test_fua_turns_out_not_to_work),
		cmocka_unit_test(test_failed_flush),
		cmocka_unit_test(test_zeroes),
		cmocka_unit_test(test_zeroes_ask_for_what_is_wanted),
		cmocka_unit_test(test_discard),
		cmocka_unit_test(test_misaligned_memory),
		cmocka_unit_test(test_sub_block),
		cmocka_unit_test(test_no_lost_update),
		cmocka_unit_test(test_rmw_waits_for_aligned_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
