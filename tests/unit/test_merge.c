/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "block/merge.h"

#define MAX_REQS 8

struct shape {
	enum blk_op op;
	uint64_t offset, len;
	unsigned iovcnt;
	uint32_t flags;
	uint32_t state;
};

static const struct merge_limits limits = {.max_iov = 8, .max_bytes = 65536};

static unsigned run(const struct shape *shapes, unsigned n)
{
	struct blk_request reqs[MAX_REQS] = {0}, *ptrs[MAX_REQS];

	for (unsigned i = 0; i < n; i++) {
		reqs[i].op = shapes[i].op;
		reqs[i].offset_bytes = shapes[i].offset;
		reqs[i].len_bytes = shapes[i].len;
		reqs[i].iovcnt = shapes[i].iovcnt;
		reqs[i].flags = shapes[i].flags;
		reqs[i].block_state = shapes[i].state;
		ptrs[i] = &reqs[i];
	}
	return merge_run(ptrs, n, &limits);
}

#define RUN(...) run((struct shape[]){__VA_ARGS__}, ARRAY_SIZE(((struct shape[]){__VA_ARGS__})))

static void test_neighbours_merge(void **state)
{
	assert_int_equal(RUN({BLK_READ, 0, 4096, 1}), 1);
	assert_int_equal(RUN({BLK_READ, 0, 4096, 1}, {BLK_READ, 4096, 512, 1}), 2);
	assert_int_equal(RUN({BLK_WRITE, 0, 4096, 1}, {BLK_WRITE, 4096, 4096, 1},
			     {BLK_WRITE, 8192, 4096, 1}),
			 3);
	/* Up to where they cease to be neighbours. */
	assert_int_equal(
		RUN({BLK_READ, 0, 4096, 1}, {BLK_READ, 4096, 4096, 1}, {BLK_READ, 12288, 4096, 1}),
		2);
}

static void test_others_do_not(void **state)
{
	/* Backwards, overlapping, the same. */
	assert_int_equal(RUN({BLK_READ, 4096, 4096, 1}, {BLK_READ, 0, 4096, 1}), 1);
	assert_int_equal(RUN({BLK_WRITE, 0, 4096, 1}, {BLK_WRITE, 2048, 4096, 1}), 1);
	assert_int_equal(RUN({BLK_WRITE, 0, 4096, 1}, {BLK_WRITE, 0, 4096, 1}), 1);
	/* Another operation, another flag. */
	assert_int_equal(RUN({BLK_READ, 0, 4096, 1}, {BLK_WRITE, 4096, 4096, 1}), 1);
	assert_int_equal(RUN({BLK_WRITE, 0, 4096, 1}, {BLK_WRITE, 4096, 4096, 1, BLK_FUA}), 1);
	assert_int_equal(RUN({BLK_WRITE, 0, 4096, 1, BLK_FUA}, {BLK_WRITE, 4096, 4096, 1, BLK_FUA}),
			 2);
	/* Never these. */
	assert_int_equal(RUN({BLK_FLUSH, 0, 0, 0}, {BLK_FLUSH, 0, 0, 0}), 1);
	assert_int_equal(RUN({BLK_DISCARD, 0, 4096, 0}, {BLK_DISCARD, 4096, 4096, 0}), 1);
	assert_int_equal(RUN({BLK_WRITE_ZEROES, 0, 4096, 0}, {BLK_WRITE_ZEROES, 4096, 4096, 0}), 1);
	assert_int_equal(RUN({BLK_WRITE, 0, 4096, 1}, {BLK_WRITE_ZEROES, 4096, 4096, 0}), 1);
	/* Those that have to go alone. */
	assert_int_equal(
		RUN({BLK_READ, 0, 4096, 1, 0, BLOCK_STATE_ALONE}, {BLK_READ, 4096, 4096, 1}), 1);
	assert_int_equal(
		RUN({BLK_READ, 0, 4096, 1}, {BLK_READ, 4096, 4096, 1, 0, BLOCK_STATE_ALONE | 3}),
		1);
}

static void test_limits(void **state)
{
	/* To the byte and to the part. */
	assert_int_equal(RUN({BLK_READ, 0, 32768, 1}, {BLK_READ, 32768, 32768, 1}), 2);
	assert_int_equal(RUN({BLK_READ, 0, 32768, 1}, {BLK_READ, 32768, 33280, 1}), 1);
	assert_int_equal(RUN({BLK_READ, 0, 4096, 4}, {BLK_READ, 4096, 4096, 4}), 2);
	assert_int_equal(RUN({BLK_READ, 0, 4096, 4}, {BLK_READ, 4096, 4096, 5}), 1);
	/* The first may be larger than what a merged one may be. */
	assert_int_equal(RUN({BLK_READ, 0, 1 << 20, 1}, {BLK_READ, 1 << 20, 512, 1}), 1);
	assert_int_equal(RUN({BLK_READ, 0, 4096, 900}, {BLK_READ, 4096, 512, 1}), 1);
	/* Sums that would wrap. */
	assert_int_equal(RUN({BLK_READ, 0, 512, 1}, {BLK_READ, 512, UINT64_MAX, UINT32_MAX}), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_neighbours_merge),
		cmocka_unit_test(test_others_do_not),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
