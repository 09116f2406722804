/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: targets: the same tests over each engine, on a file with and without O_DIRECT; what may be
 * asked of a device and its queues on one thread.  See test_inproc_threads.c and
 * test_inproc_open.c.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "driver/inproc_rig.h"

#define DEPTH    32u
#define SEGMENTS 8u
#define FOR_ME   1000000000ll /* longer than any of this takes, unless something is lost */

static struct inproc_place place;
static struct ringside_device *dev;
static struct ringside_queue *q;
static char *buf;
static unsigned fds;

static int setup(void **state)
{
	struct ringside_options o = RINGSIDE_OPTIONS_INIT;

	fds = drv_fds();
	dev = NULL;
	inproc_place_open(&place, *state);
	o.depth = DEPTH;
	o.max_segments = SEGMENTS;
	if (!place.missing) {
		dev = drv_open(place.target, &o);
		q = ringside_queue(dev, 0);
		buf = drv_memory(dev, MIB);
	}
	return 0;
}

static int teardown(void **state)
{
	ringside_close(dev);
	inproc_place_close(&place);
	drv_expect_fds(fds);
	return 0;
}

/* ---- requests ---- */

static int write_at(uint64_t offset, const void *from, size_t len)
{
	int ret = ringside_write(q, offset, from, len, NULL);

	return ret < 0 ? ret : drv_finish(q);
}

static int read_at(uint64_t offset, void *to, size_t len)
{
	int ret = ringside_read(q, offset, to, len, NULL);

	return ret < 0 ? ret : drv_finish(q);
}

/* What is at offset is what drv_fill() makes of seed; or nothing can be said of it. */
static void expect_data(uint64_t offset, size_t len, uint32_t seed)
{
	char *want = malloc(len), *got = malloc(len);

	memset(got, 0x55, len);
	assert_int_equal(read_at(offset, got, len), 0);
	drv_fill(want, len, seed);
	if (place.engine->keeps_data)
		assert_memory_equal(got, want, len);
	free(want);
	free(got);
}

static void expect_byte(uint64_t offset, size_t len, int byte)
{
	memset(buf, 0x55, len);
	assert_int_equal(read_at(offset, buf, len), 0);
	if (!place.engine->keeps_data)
		return;
	for (size_t i = 0; i < len; i++)
		assert_int_equal(buf[i], byte);
}

static void test_info(void **state)
{
	struct ringside_info info = drv_info(dev);

	assert_true(info.capacity_bytes == PLACE_BYTES);
	assert_int_equal(info.block_bytes, 512);
	assert_int_equal(info.max_segments, SEGMENTS);
	assert_int_equal(info.depth, DEPTH);
	assert_int_equal(info.queues, 1);
	assert_int_equal(info.server_pid, 0);
	assert_true(info.max_transfer_bytes >= MIB);
	assert_false(info.read_only);
	assert_true(info.flush);
	assert_true(info.write_zeroes);
	assert_false(info.event_idx);
	assert_false(info.indirect);
	assert_null(ringside_queue(dev, 1));
}

/* In lent memory and in any other, aligned and not, below a page and above. */
static void test_data(void **state)
{
	static const size_t lengths[] = {512, 4096, 3 * 512, 65536, MIB / 2};
	static const unsigned shifts[] = {0, 512, 1, 13};

	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		for (unsigned s = 0; s < ARRAY_SIZE(shifts); s++) {
			size_t len = lengths[i];
			uint64_t offset = 512 * (7 * i + s);

			drv_fill(buf + shifts[s], len, i * 8 + s);
			assert_int_equal(write_at(offset, buf + shifts[s], len), 0);
			expect_data(offset, len, i * 8 + s);
			memset(buf, 0, MIB);
			assert_int_equal(read_at(offset, buf + shifts[s], len), 0);
			expect_data(offset, len, i * 8 + s);
		}
	}
	assert_true(drv_stats(q).bytes > 0);
	assert_int_equal(drv_stats(q).errors, 0);
}

static void cut(struct iovec *iov, char *at, const size_t *parts, size_t gap)
{
	for (unsigned i = 0; i < SEGMENTS; i++) {
		iov[i] = (struct iovec){at, parts[i]};
		at += parts[i] + gap;
	}
}

/* Whole blocks, blocks in odd places, and parts that are no blocks but add up to some. */
static void test_segments(void **state)
{
	static const size_t parts[][SEGMENTS] = {
		{4096, 4096, 4096, 4096, 8192, 4096, 4096, 4096},
		{512, 1024, 512, 512, 4096, 512, 512, 512},
		{1, 511, 100, 412, 1000, 24, 1, 1023},
	};
	static const size_t gaps[] = {0, 4096, 7};
	char *lin = malloc(MIB);
	uint32_t seed = 100;

	for (unsigned p = 0; p < ARRAY_SIZE(parts); p++) {
		for (unsigned g = 0; g < ARRAY_SIZE(gaps); g++, seed++) {
			struct iovec iov[SEGMENTS];
			size_t len = 0;

			cut(iov, buf, parts[p], gaps[g]);
			for (unsigned i = 0; i < SEGMENTS; i++)
				len += parts[p][i];
			drv_fill(lin, len, seed);
			for (size_t i = 0, at = 0; i < SEGMENTS; at += iov[i++].iov_len)
				memcpy(iov[i].iov_base, lin + at, iov[i].iov_len);
			assert_int_equal(ringside_writev(q, 8192, iov, SEGMENTS, NULL), 0);
			assert_int_equal(drv_finish(q), 0);
			expect_data(8192, len, seed);
			memset(buf, 0, MIB);
			assert_int_equal(ringside_readv(q, 8192, iov, SEGMENTS, NULL), 0);
			assert_int_equal(drv_finish(q), 0);
			for (size_t i = 0, at = 0; i < SEGMENTS; at += iov[i++].iov_len)
				if (place.engine->keeps_data)
					assert_memory_equal(iov[i].iov_base, lin + at,
							    iov[i].iov_len);
		}
	}
	free(lin);
}

/* It is in the file, not only in ours: another descriptor sees it after a flush. */
static void test_flush(void **state)
{
	drv_fill(buf, 65536, 9);
	assert_int_equal(write_at(4096, buf, 65536), 0);
	assert_int_equal(ringside_flush(q, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
	if (place.engine->has_file) {
		char *seen = malloc(65536);

		inproc_place_read(&place, 4096, seen, 65536);
		assert_memory_equal(seen, buf, 65536);
		free(seen);
	}
	/* Several at once, among writes. */
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(i % 4 ? ringside_write(q, 512 * i, buf, 512, NULL)
				       : ringside_flush(q, NULL),
				 0);
	ringside_submit(q);
	for (unsigned i = 0; i < DEPTH; i++) {
		struct ringside_completion done = {.result = -1};

		assert_int_equal(ringside_wait(q, &done, 1, 1, FOR_ME), 1);
		assert_int_equal(done.result, 0);
	}
}

static void test_zeroes(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		/* From the middle of a page, and of some length. */
		uint64_t offset = 65536 + (i & 1 ? 512 : 0), len = i & 2 ? 512 : 65536;

		memset(buf, 0x77, MIB / 2);
		assert_int_equal(write_at(0, buf, MIB / 2), 0);
		assert_int_equal(ringside_write_zeroes(q, offset, len, i & 1, NULL), 0);
		assert_int_equal(drv_finish(q), 0);
		expect_byte(0, offset, 0x77);
		expect_byte(offset, len, 0);
		expect_byte(offset + len, 65536, 0x77);
	}
	/* All of it. */
	assert_int_equal(ringside_write_zeroes(q, 0, PLACE_BYTES, true, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
	expect_byte(0, MIB / 2, 0);
}

static void test_discard(void **state)
{
	if (!drv_info(dev).discard) {
		assert_int_equal(ringside_discard(q, 0, 4096, NULL), -EOPNOTSUPP);
		skip();
	}
	memset(buf, 0x33, MIB / 2);
	assert_int_equal(write_at(0, buf, MIB / 2), 0);
	assert_int_equal(ringside_discard(q, 65536, 65536, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
	expect_byte(0, 65536, 0x33);
	expect_byte(131072, 65536, 0x33);
	/* What is there now is not said, but it can be read, and written. */
	assert_int_equal(read_at(65536, buf, 65536), 0);
	assert_int_equal(write_at(65536, buf, 65536), 0);
	assert_int_equal(ringside_discard(q, 512, 512, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
}

/* The name of the file, as far as it goes. */
static void test_id(void **state)
{
	char id[RINGSIDE_ID_BYTES + 1], want[RINGSIDE_ID_BYTES + 1] = "";

	if (place.engine->has_file)
		snprintf(want, sizeof(want), "%s", strrchr(place.path, '/') + 1);
	memset(id, 'x', sizeof(id));
	assert_int_equal(ringside_get_id(q, id, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
	assert_int_equal(id[RINGSIDE_ID_BYTES], 'x');
	assert_memory_equal(id, want, RINGSIDE_ID_BYTES);
	/* Among others; it is no transfer. */
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(ringside_get_id(q, id, NULL), 0);
		assert_int_equal(ringside_read(q, 0, buf, 512, NULL), 0);
	}
	ringside_submit(q);
	while (ringside_in_flight(q)) {
		struct ringside_completion done[8];
		int n = ringside_wait(q, done, 8, 8, FOR_ME);

		assert_true(n > 0);
		for (int i = 0; i < n; i++)
			assert_int_equal(done[i].result, 0);
	}
	assert_int_equal(drv_stats(q).bytes, 4 * 512);
}

static void test_what_is_refused(void **state)
{
	struct iovec iov[SEGMENTS + 1];

	for (unsigned i = 0; i <= SEGMENTS; i++)
		iov[i] = (struct iovec){buf + i * 512, 512};
	assert_int_equal(ringside_readv(q, 0, iov, SEGMENTS + 1, NULL), -EINVAL);
	assert_int_equal(ringside_readv(q, 0, iov, 0, NULL), -EINVAL);
	iov[1].iov_len = 0;
	assert_int_equal(ringside_readv(q, 0, iov, 3, NULL), -EINVAL);
	assert_int_equal(ringside_read(q, 1, buf, 512, NULL), -EINVAL);
	assert_int_equal(ringside_read(q, 0, buf, 511, NULL), -EINVAL);
	assert_int_equal(ringside_write(q, PLACE_BYTES, buf, 512, NULL), -ERANGE);
	assert_int_equal(ringside_write(q, PLACE_BYTES - 512, buf, 1024, NULL), -ERANGE);
	assert_int_equal(ringside_write(q, -512ull, buf, 1024, NULL), -ERANGE);
	assert_int_equal(ringside_write_zeroes(q, PLACE_BYTES, 512, true, NULL), -ERANGE);
	assert_int_equal(ringside_in_flight(q), 0);
	assert_int_equal(drv_stats(q).requests, 0);
	assert_int_equal(write_at(PLACE_BYTES - 512, buf, 512), 0);
}

/* ---- completions ---- */

static void put_reads(unsigned n)
{
	for (uintptr_t i = 0; i < n; i++)
		assert_int_equal(ringside_read(q, i * 512, buf + i * 512, 512, (void *)i), 0);
}

static void test_full(void **state)
{
	struct ringside_completion done[DEPTH];
	int error;

	for (unsigned round = 0; round < 100; round++) {
		put_reads(DEPTH);
		assert_int_equal(ringside_read(q, 0, buf, 512, NULL), -EAGAIN);
		assert_int_equal(ringside_flush(q, NULL), -EAGAIN);
		assert_int_equal(ringside_get_id(q, buf, NULL), -EAGAIN);
		assert_int_equal(ringside_in_flight(q), DEPTH);
		ringside_submit(q);
		assert_int_equal(ringside_read(q, 0, buf, 512, NULL), -EAGAIN);
		/* One comes back, one more has room. */
		assert_int_equal(drv_collect(q, round % DRV_MODES, done, 1, &error), 1);
		assert_int_equal(ringside_read(q, 0, buf, 512, NULL), 0);
		assert_int_equal(ringside_read(q, 0, buf, 512, NULL), -EAGAIN);
		ringside_submit(q);
		assert_int_equal(drv_collect(q, round % DRV_MODES, done, DEPTH, &error), DEPTH);
		for (unsigned i = 0; i < DEPTH; i++)
			assert_int_equal(done[i].result, 0);
	}
	assert_int_equal(drv_stats(q).requests, 100 * (DEPTH + 1));
	assert_int_equal(drv_stats(q).completions, 100 * (DEPTH + 1));
}

/* Every cookie comes back once, in any mode and any mixture of depths. */
static void test_modes(void **state)
{
	static const unsigned batches[] = {1, 2, 31, 32};

	for (unsigned round = 0; round < 100 * DRV_MODES; round++) {
		unsigned n = batches[round / DRV_MODES % ARRAY_SIZE(batches)];
		struct ringside_completion done[DEPTH];
		uint64_t seen = 0;
		int error;

		put_reads(n);
		ringside_submit(q);
		if (drv_collect(q, round % DRV_MODES, done, n, &error) != n)
			fail_msg("%s: %d", drv_mode_names[round % DRV_MODES], error);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(done[i].result, 0);
			seen |= 1ull << (uintptr_t)done[i].cookie;
		}
		assert_true(seen == (1ull << n) - 1);
		assert_int_equal(ringside_in_flight(q), 0);
	}
	/* With nothing in flight nobody sleeps. */
	assert_int_equal(ringside_poll(q, NULL, 0), 0);
	assert_int_equal(ringside_wait(q, (struct ringside_completion[1]){{0}}, 1, 1, -1), 0);
	assert_int_equal(ringside_hybrid(q, (struct ringside_completion[1]){{0}}, 1, 1, -1), 0);
}

/* Modes one after the other, with what they leave behind. */
static void test_modes_mixed(void **state)
{
	struct ringside_completion done[8];
	unsigned x = 1;
	int error;

	for (unsigned round = 0; round < 1000; round++) {
		unsigned n = 1 + (x = x * 1103515245u + 12345) / 65536u % 8, got = 0;

		/* Armed while nothing is in flight. */
		if (x & (1u << 22))
			(void)ringside_arm(q);
		put_reads(n);
		ringside_submit(q);
		while (got < n) {
			enum drv_mode mode = (x = x * 1103515245u + 12345) / 65536u % DRV_MODES;

			/* Armed, and then waited for in another way. */
			if (x & (1u << 20))
				(void)ringside_arm(q);
			if (x & (1u << 21))
				drv_stats(q);
			got += drv_collect(q, mode, done, 1, &error);
			assert_int_equal(error, 0);
		}
	}
	assert_int_equal(drv_stats(q).completions, drv_stats(q).requests);
	assert_int_equal(drv_stats(q).errors, 0);
}

static void test_wait_for_several(void **state)
{
	struct ringside_completion done[DEPTH];

	for (unsigned round = 0; round < 100; round++) {
		int hybrid = round & 1, n;

		put_reads(DEPTH);
		ringside_submit(q);
		n = hybrid ? ringside_hybrid(q, done, DEPTH, 20, FOR_ME)
			   : ringside_wait(q, done, DEPTH, 20, FOR_ME);
		assert_in_range(n, 20, DEPTH);
		/* More than there are: all there are. */
		if (n < (int)DEPTH) {
			n += hybrid ? ringside_hybrid(q, done, DEPTH, DEPTH, -1)
				    : ringside_wait(q, done, DEPTH, DEPTH, -1);
			assert_int_equal(n, DEPTH);
		}
		/* More than the caller has room for: as many as that. */
		put_reads(8);
		ringside_submit(q);
		assert_int_equal(ringside_wait(q, done, 4, 8, -1), 4);
		n = ringside_hybrid(q, done, 4, 0, -1);
		assert_in_range(n, 1, 4);
		while (ringside_in_flight(q))
			assert_true(ringside_wait(q, done, DEPTH, 1, -1) > 0);
	}
}

/* Not told, so that nothing completes: each wait ends by its time, and by nothing else. */
static void test_timeouts(void **state)
{
	struct ringside_completion done[4];
	uint64_t before;

	put_reads(1);
	assert_int_equal(ringside_poll(q, done, 4), 0);
	assert_int_equal(ringside_wait(q, done, 4, 1, 0), 0);
	assert_int_equal(ringside_hybrid(q, done, 4, 1, 0), 0);
	assert_int_equal(drv_stats(q).sleeps, 0);
	for (unsigned i = 0; i < 4; i++) {
		before = clock_now_ns();
		assert_int_equal(i % 2 ? ringside_wait(q, done, 4, 1 + i, 20 * MS)
				       : ringside_hybrid(q, done, 4, 1 + i, 20 * MS),
				 0);
		assert_true(clock_now_ns() - before >= 20 * MS);
	}
	/* It slept, and not in many small pieces. */
	assert_in_range(drv_stats(q).sleeps, 4, 40);
	assert_int_equal(ringside_wait(q, done, 4, 1, 1), 0);
	assert_int_equal(ringside_in_flight(q), 1);
	/* It comes when it is told of, and no later for all that. */
	assert_true(ringside_tell(q));
	assert_false(ringside_tell(q));
	assert_int_equal(ringside_wait(q, done, 4, 1, FOR_ME), 1);
	/* What is there when the time is over is given, although it is less than was wanted. */
	put_reads(1);
	ringside_submit(q);
	put_reads(1);
	assert_int_equal(ringside_wait(q, done, 4, 2, 50 * MS), 1);
	ringside_submit(q);
	assert_int_equal(ringside_hybrid(q, done, 4, 2, FOR_ME), 1);
}

static bool readable(int timeout_ms)
{
	struct pollfd p = {.fd = ringside_queue_fd(q), .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

/* Arms a queue that has nothing in flight, as a caller's loop does before it waits. */
static void arm_idle(void)
{
	struct ringside_completion done;
	unsigned vain = 0;

	/* Now and then for nothing is allowed, for ever is not. */
	while (ringside_arm(q) || readable(0)) {
		assert_int_equal(ringside_poll(q, &done, 1), 0);
		assert_true(++vain < 4);
	}
}

/* The descriptor tells of what was submitted before it was armed, and after. */
static void test_descriptor(void **state)
{
	struct ringside_completion done[8];

	for (unsigned round = 0; round < 200; round++) {
		unsigned n = 1 + round % 8, got = 0;

		if (round & 1)
			arm_idle();
		put_reads(n);
		ringside_submit(q);
		while (got < n) {
			int ret;

			/* Not armed, or no more since it was polled. */
			if ((got || !(round & 1)) && ringside_arm(q))
				;
			else if (!readable(10000))
				fail_msg("round %u: %u of %u are not told of", round, n - got, n);
			/* Counting does not take it away. */
			if (round & 2)
				drv_stats(q);
			ret = ringside_poll(q, done, 1 + round % 3);
			assert_true(ret >= 0);
			got += (unsigned)ret;
		}
		/* In any other way, and idle after it. */
		put_reads(1);
		if (round & 4)
			arm_idle();
		ringside_submit(q);
		assert_int_equal(round & 8 ? ringside_wait(q, done, 8, 1, FOR_ME)
					   : ringside_hybrid(q, done, 8, 1, FOR_ME),
				 1);
		arm_idle();
		assert_false(readable(0));
	}
	assert_int_equal(ringside_poll(q, done, 1), 0);
}

/* What a batch costs is one submission, and looking costs nothing of which we know. */
static void test_counts(void **state)
{
	struct ringside_completion done[DEPTH];
	struct ringside_stats s;
	int error;

	for (unsigned round = 0; round < 100; round++) {
		put_reads(DEPTH);
		ringside_publish(q);
		assert_true(ringside_tell(q));
		ringside_publish(q);
		assert_false(ringside_tell(q));
		drv_collect(q, DRV_POLL, done, DEPTH, &error);
	}
	s = drv_stats(q);
	assert_int_equal(s.requests, 100 * DEPTH);
	assert_int_equal(s.completions, 100 * DEPTH);
	assert_int_equal(s.bytes, 100 * DEPTH * 512);
	assert_int_equal(s.errors, 0);
	assert_int_equal(s.sleeps, 0);
	assert_int_equal(s.calls_received, 0);
	assert_int_equal(s.spins_hit + s.spins_missed, 0);
	/* A few more where it took less than it was given. */
	if (place.engine->has_file)
		assert_in_range(s.system_calls, 100, 1000);
	else
		assert_int_equal(s.system_calls, 0);
}

/* ---- memory ---- */

#define PIECES 64

static void test_memory(void **state)
{
	void *pieces[PIECES] = {NULL}, *own;
	struct ringside_error err = {""};
	unsigned x = 7;

	for (unsigned round = 0; round < 1000; round++) {
		unsigned i = (x = x * 1103515245u + 12345) / 65536u % PIECES;
		size_t len = 1 + x % 100000;

		if (pieces[i]) {
			assert_int_equal(ringside_memory_free(dev, pieces[i], &err), 0);
			pieces[i] = NULL;
			continue;
		}
		pieces[i] = drv_memory(dev, len);
		assert_int_equal((uintptr_t)pieces[i] % 4096, 0);
		for (size_t b = 0; b < len; b += 997)
			assert_int_equal(((char *)pieces[i])[b], 0);
		memset(pieces[i], 1, len);
		assert_int_equal(read_at(0, pieces[i], 512), 0);
	}
	assert_int_equal(ringside_memory_free(dev, buf + 4096, &err), -ENOENT);
	assert_true(strlen(err.text) > 0);
	assert_int_equal(ringside_memory_free(dev, buf, &err), 0);
	assert_int_equal(ringside_memory_free(dev, buf, NULL), -ENOENT);
	assert_int_equal(ringside_memory_alloc(dev, SIZE_MAX, &own, &err), -EINVAL);
	assert_int_equal(ringside_memory_alloc(dev, 1ull << 60, &own, &err), -ENOMEM);
	assert_null(own);

	/* The caller's own stays the caller's. */
	own = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(own, MAP_FAILED);
	assert_int_equal(ringside_memory_map(dev, own, 8192, -1, 0, &err), 0);
	assert_int_equal(read_at(0, own, 8192), 0);
	assert_int_equal(ringside_memory_free(dev, own, &err), 0);
	memset(own, 0, 8192);
	munmap(own, 8192);
}

/* Closed with what is put and not told, in flight, and done and not taken. */
static void test_close_with_requests(void **state)
{
	for (unsigned round = 0; round < 30; round++) {
		struct ringside_options o = RINGSIDE_OPTIONS_INIT;

		o.depth = 64;
		put_reads(round % 3 * 16);
		ringside_submit(q);
		put_reads(round & 1 ? 8 : 0);
		if (round & 4)
			usleep(2000);
		if (round & 8)
			(void)ringside_arm(q);
		ringside_close(dev);
		/* Nothing has kept the lock. */
		dev = drv_open(place.target, &o);
		q = ringside_queue(dev, 0);
		buf = drv_memory(dev, MIB);
		assert_int_equal(read_at(0, buf, 4096), 0);
	}
}

static const struct inproc_test tests[] = {
	{"info", test_info},
	{"data", test_data},
	{"segments", test_segments},
	{"flush", test_flush},
	{"zeroes", test_zeroes},
	{"discard", test_discard},
	{"id", test_id},
	{"what is refused", test_what_is_refused},
	{"full", test_full},
	{"modes", test_modes},
	{"modes mixed", test_modes_mixed},
	{"wait for several", test_wait_for_several},
	{"timeouts", test_timeouts},
	{"descriptor", test_descriptor},
	{"counts", test_counts},
	{"memory", test_memory},
	{"close with requests", test_close_with_requests},
};

int main(void)
{
	drv_no_hang();
	return inproc_run(tests, ARRAY_SIZE(tests), setup, teardown);
}
