/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptor chains: every layout that is legal, and every way to be illegal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fakes/ring_rig.h"

#define N VRING_DESC_F_NEXT
#define W VRING_DESC_F_WRITE
#define I VRING_DESC_F_INDIRECT

#define TABLE (RIG_DATA + 0x100000)

static struct ring_rig rig;
static struct iovec iov[2048];
static struct virtq_chain chain;

static void setup_ring(uint16_t size, bool indirect)
{
	ring_rig_init(&rig, &(struct ring_rig_config){.size = size, .table_len = indirect ? 1 : 0});
	memset(iov, 0xee, sizeof(iov));
}

static int setup(void **state)
{
	setup_ring(16, true);
	return 0;
}

static int teardown(void **state)
{
	ring_rig_fini(&rig);
	return 0;
}

static int pop(unsigned max)
{
	chain = (struct virtq_chain){.iov = iov, .max = max};
	return virtq_pop(&rig.vq, &chain);
}

static void finish(uint32_t len)
{
	virtq_push(&rig.vq, &chain.token, len);
}

/* Takes the chain at head and gives it back: the device side of a test of its shape. */
static void take(uint16_t head, unsigned max)
{
	ring_rig_avail(&rig, head);
	assert_int_equal(pop(max), 1);
	assert_int_equal(chain.token.head, head);
	finish(0);
}

static void expect_parts(unsigned out_num, unsigned in_num)
{
	assert_false(chain.bad);
	assert_false(chain.last_in_bad);
	assert_int_equal(chain.out_num, out_num);
	assert_int_equal(chain.in_num, in_num);
}

static void expect_part(unsigned i, uint64_t gpa, size_t len)
{
	assert_ptr_equal(iov[i].iov_base, ring_rig_host(&rig, gpa, len));
	assert_int_equal(iov[i].iov_len, len);
}

static void test_layouts(void **state)
{
	for (unsigned out = 0; out <= 8; out++) {
		for (unsigned in = 0; in <= 8; in++) {
			unsigned n = out + in;

			if (!n)
				continue;
			/* From the end of the table to its start, to see that next is followed. */
			for (unsigned k = 0; k < n; k++)
				ring_rig_desc(&rig, (uint16_t)(15 - k), RIG_DATA + k * 4096,
					      100 + k,
					      (uint16_t)((k + 1 < n ? N : 0) | (k >= out ? W : 0)),
					      (uint16_t)(14 - k));
			take(15, 16);
			expect_parts(out, in);
			for (unsigned k = 0; k < n; k++)
				expect_part(k, RIG_DATA + k * 4096, 100 + k);
		}
	}
}

static void test_zero_length(void **state)
{
	ring_rig_desc(&rig, 0, RIG_DATA, 16, N, 1);
	ring_rig_desc(&rig, 1, RIG_UNMAPPED, 0, N, 2); /* an empty buffer is nowhere */
	ring_rig_desc(&rig, 2, RIG_DATA + 100, 0, N | W, 3);
	ring_rig_desc(&rig, 3, RIG_DATA + 200, 1, W, 0);
	take(0, 2);
	expect_parts(1, 1);
	expect_part(1, RIG_DATA + 200, 1);
	ring_rig_desc(&rig, 0, RIG_DATA, 0, 0, 0);
	take(0, 0);
	expect_parts(0, 0);
	/* An empty one at the end does not mend the unmapped one before it. */
	ring_rig_desc(&rig, 0, RIG_DATA, 16, N, 1);
	ring_rig_desc(&rig, 1, RIG_DATA + 512, 512, N | W, 2);
	ring_rig_desc(&rig, 2, RIG_UNMAPPED, 1, N | W, 3);
	ring_rig_desc(&rig, 3, RIG_DATA, 0, W, 0);
	take(0, 16);
	assert_true(chain.bad);
	assert_true(chain.last_in_bad);
}

static void test_indirect(void **state)
{
	ring_rig_table(&rig, TABLE, 0, RIG_DATA, 16, N, 2);
	ring_rig_table(&rig, TABLE, 2, RIG_DATA + 512, 512, N | W, 1);
	ring_rig_table(&rig, TABLE, 1, RIG_DATA + 16, 1, W, 7);
	ring_rig_desc(&rig, 3, TABLE, 48, I, 0);
	take(3, 16);
	expect_parts(1, 2);
	expect_part(0, RIG_DATA, 16);
	expect_part(1, RIG_DATA + 512, 512);
	expect_part(2, RIG_DATA + 16, 1);
	/* 2.7.5.3.2: the write flag of the reference means nothing. */
	ring_rig_desc(&rig, 3, TABLE, 48, I | W, 0);
	take(3, 16);
	expect_parts(1, 2);
	/* 2.7.5.3.2: ordinary descriptors, then one reference. */
	ring_rig_desc(&rig, 0, RIG_DATA + 4096, 10, N, 5);
	ring_rig_desc(&rig, 5, RIG_DATA + 8192, 11, N, 3);
	take(0, 16);
	expect_parts(3, 2);
	expect_part(0, RIG_DATA + 4096, 10);
	expect_part(1, RIG_DATA + 8192, 11);
	expect_part(2, RIG_DATA, 16);
}

/* An indirect table longer than the ring: more than the standard allows, and what drivers do. */
static void test_indirect_longer_than_ring(void **state)
{
	for (uint16_t k = 0; k < 1026; k++)
		ring_rig_table(&rig, TABLE, k, RIG_DATA + k * 16, 16,
			       (uint16_t)((k < 1025 ? N : 0) | (k ? W : 0)), (uint16_t)(k + 1));
	ring_rig_desc(&rig, 0, TABLE, 1026 * 16, I, 0);
	take(0, 1100);
	expect_parts(1, 1025);
	expect_part(1025, RIG_DATA + 1025 * 16, 16);
	/* One more than is taken at all. */
	ring_rig_table(&rig, TABLE, 1025, RIG_DATA, 16, N | W, 1026);
	ring_rig_table(&rig, TABLE, 1026, RIG_DATA, 16, W, 0);
	ring_rig_desc(&rig, 0, TABLE, 1027 * 16, I, 0);
	take(0, 1100);
	assert_true(chain.bad);
}

static void test_indirect_bad(void **state)
{
	static const struct {
		uint64_t table;
		uint32_t len;
		uint16_t flags;
	} refs[] = {
		{TABLE, 0, I},
		{TABLE, 15, I},
		{TABLE, 17, I},
		{TABLE, 49, I},
		{TABLE, 48, I | N},
		{TABLE, 0xfffffff0, I},
		{RIG_UNMAPPED, 48, I},
		{RIG_END - 16, 48, I}, /* its end is not mapped */
		{UINT64_MAX - 15, 48, I},
		{UINT64_MAX, 16, I},
		{0, 48, I},
	};

	for (size_t i = 0; i < ARRAY_SIZE(refs); i++) {
		ring_rig_table(&rig, TABLE, 0, RIG_DATA, 16, N, 1);
		ring_rig_table(&rig, TABLE, 1, RIG_DATA, 512, N | W, 2);
		ring_rig_table(&rig, TABLE, 2, RIG_DATA, 1, W, 0);
		ring_rig_desc(&rig, 0, refs[i].table, refs[i].len, refs[i].flags, 1);
		ring_rig_desc(&rig, 1, RIG_DATA, 1, W, 0);
		take(0, 16);
		assert_true(chain.bad);
		assert_int_equal(chain.in_num, 0);
	}
	/* Not aligned in guest memory: legal for the table, drivers do it. */
	for (uint16_t k = 0; k < 3; k++)
		ring_rig_table(&rig, TABLE + 3, k, RIG_DATA, 16, (uint16_t)(k < 2 ? N : W),
			       (uint16_t)(k + 1));
	ring_rig_desc(&rig, 0, TABLE + 3, 48, I, 0);
	take(0, 16);
	expect_parts(2, 1);
}

static void test_indirect_nested(void **state)
{
	ring_rig_table(&rig, TABLE, 0, RIG_DATA, 16, N, 1);
	ring_rig_table(&rig, TABLE, 1, TABLE, 32, I, 0);
	ring_rig_desc(&rig, 0, TABLE, 32, I, 0);
	take(0, 16);
	assert_true(chain.bad);
	assert_int_equal(chain.out_num, 1);
}

static void test_indirect_not_negotiated(void **state)
{
	ring_rig_fini(&rig);
	setup_ring(16, false);
	ring_rig_table(&rig, TABLE, 0, RIG_DATA, 16, 0, 0);
	ring_rig_desc(&rig, 0, TABLE, 16, I, 0);
	take(0, 16);
	assert_true(chain.bad);
	assert_int_equal(chain.out_num, 0);
}

static void test_indirect_next_out_of_range(void **state)
{
	static const uint16_t nexts[] = {2, 3, 100, 32768, 65535};

	for (size_t i = 0; i < ARRAY_SIZE(nexts); i++) {
		ring_rig_table(&rig, TABLE, 0, RIG_DATA, 16, N, nexts[i]);
		ring_rig_table(&rig, TABLE, 1, RIG_DATA, 1, W, 0);
		ring_rig_desc(&rig, 0, TABLE, 32, I, 0);
		take(0, 16);
		assert_true(chain.bad);
		assert_int_equal(chain.out_num, 1);
	}
}

static void test_loops(void **state)
{
	/* Of every length, entered at its first descriptor and one before it. */
	for (uint16_t len = 1; len <= 15; len++) {
		for (uint16_t k = 0; k < len; k++)
			ring_rig_desc(&rig, k, RIG_DATA, 16, N, (uint16_t)((k + 1) % len));
		ring_rig_desc(&rig, 15, RIG_DATA, 16, N, 0);
		take(0, 2048);
		assert_true(chain.bad);
		take(15, 2048);
		assert_true(chain.bad);
	}
	/* Without a byte of data, it must end all the same. */
	ring_rig_desc(&rig, 0, RIG_DATA, 0, N, 0);
	take(0, 1);
	assert_true(chain.bad);
	/* A chain of exactly the ring's size is none. */
	for (uint16_t k = 0; k < 16; k++)
		ring_rig_desc(&rig, k, RIG_DATA, 16, k < 15 ? N : 0, (uint16_t)(k + 1));
	take(0, 16);
	expect_parts(16, 0);
}

static void test_indirect_loops(void **state)
{
	ring_rig_table(&rig, TABLE, 0, RIG_DATA, 16, N, 1);
	ring_rig_table(&rig, TABLE, 1, RIG_DATA, 16, N | W, 2);
	ring_rig_table(&rig, TABLE, 2, RIG_DATA, 0, N | W, 1);
	ring_rig_desc(&rig, 0, TABLE, 48, I, 0);
	take(0, VIRTQ_PARTS_MAX(16));
	assert_true(chain.bad);
}

static void test_next_out_of_range(void **state)
{
	static const uint16_t nexts[] = {16, 17, 32768, 65535};

	for (size_t i = 0; i < ARRAY_SIZE(nexts); i++) {
		ring_rig_desc(&rig, 0, RIG_DATA, 16, N, nexts[i]);
		take(0, 16);
		assert_true(chain.bad);
		assert_int_equal(chain.out_num, 1);
	}
	/* Without the flag it is not looked at. */
	ring_rig_desc(&rig, 0, RIG_DATA, 16, 0, 65535);
	take(0, 16);
	expect_parts(1, 0);
}

static void test_unmapped(void **state)
{
	static const struct {
		uint64_t gpa;
		uint32_t len;
	} bad[] = {
		{RIG_UNMAPPED, 1},
		{0, 1},
		{RIG_GPA - 1, 1},
		{RIG_GPA - 1, 2}, /* its first byte is not mapped */
		{RIG_END, 1},
		{RIG_END - 1, 2}, /* its last byte is not mapped */
		{RIG_DATA, 0xffffffff},
		{UINT64_MAX, 1},
		{UINT64_MAX, 2}, /* wraps */
		{UINT64_MAX - 0xff, 0xffffffff},
		{0x8000000000000000u, 0x80000000},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		/* In the middle: the last buffer is good, and can take a status. */
		ring_rig_desc(&rig, 0, RIG_DATA, 16, N, 1);
		ring_rig_desc(&rig, 1, bad[i].gpa, bad[i].len, N | W, 2);
		ring_rig_desc(&rig, 2, RIG_DATA + 32, 1, W, 0);
		take(0, 16);
		assert_true(chain.bad);
		assert_false(chain.last_in_bad);
		assert_int_equal(chain.in_num, 1);
		expect_part(1, RIG_DATA + 32, 1);
		/* At the end. */
		ring_rig_desc(&rig, 1, RIG_DATA + 512, 512, N | W, 2);
		ring_rig_desc(&rig, 2, bad[i].gpa, bad[i].len, W, 0);
		take(0, 16);
		assert_true(chain.bad);
		assert_true(chain.last_in_bad);
		/* To be read. */
		ring_rig_desc(&rig, 0, bad[i].gpa, bad[i].len, N, 2);
		ring_rig_desc(&rig, 2, RIG_DATA + 32, 1, W, 0);
		take(0, 16);
		assert_true(chain.bad);
		assert_false(chain.last_in_bad);
	}
}

static void test_read_after_write(void **state)
{
	ring_rig_desc(&rig, 0, RIG_DATA, 16, N, 1);
	ring_rig_desc(&rig, 1, RIG_DATA + 512, 512, N | W, 2);
	ring_rig_desc(&rig, 2, RIG_DATA, 16, N, 3);
	ring_rig_desc(&rig, 3, RIG_DATA + 32, 1, W, 0);
	take(0, 16);
	assert_true(chain.bad);
	assert_false(chain.last_in_bad);
	assert_int_equal(chain.out_num, 1);
	assert_int_equal(chain.in_num, 2);
}

static void test_straddle(void **state)
{
	/* Buffers over the seam of two regions are two parts. */
	ring_rig_desc(&rig, 0, RIG_SEAM - 10, 16, N, 1);
	ring_rig_desc(&rig, 1, RIG_SEAM - 512, 1024, N | W, 2);
	ring_rig_desc(&rig, 2, RIG_SEAM, 1, W, 0);
	take(0, 16);
	expect_parts(2, 3);
	expect_part(0, RIG_SEAM - 10, 10);
	expect_part(1, RIG_SEAM, 6);
	expect_part(2, RIG_SEAM - 512, 512);
	expect_part(3, RIG_SEAM, 512);
	/* A table over the seam, and a descriptor of it, at every offset. */
	for (uint64_t off = 1; off < 48; off++) {
		uint64_t table = RIG_SEAM - off;

		ring_rig_table(&rig, table, 0, RIG_DATA, 16, N, 1);
		ring_rig_table(&rig, table, 1, RIG_DATA + 512, 512, N | W, 2);
		ring_rig_table(&rig, table, 2, RIG_DATA + 16, 1, W, 0);
		ring_rig_desc(&rig, 0, table, 48, I, 0);
		take(0, 16);
		expect_parts(1, 2);
		expect_part(2, RIG_DATA + 16, 1);
	}
}

static void test_no_room(void **state)
{
	/* A straddling buffer needs two parts. */
	ring_rig_desc(&rig, 0, RIG_DATA, 16, N, 1);
	ring_rig_desc(&rig, 1, RIG_SEAM - 1, 2, N | W, 2);
	ring_rig_desc(&rig, 2, RIG_DATA, 1, W, 0);
	ring_rig_avail(&rig, 0);
	for (unsigned max = 0; max < 4; max++) {
		assert_int_equal(pop(max), -ENOBUFS);
		assert_int_equal(virtq_base(&rig.vq), 0); /* it stays in the ring */
		assert_int_equal(rig.vq.in_flight, 0);
		assert_ptr_equal(iov[max].iov_base, (void *)0xeeeeeeeeeeeeeeee);
	}
	assert_int_equal(pop(4), 1);
	expect_parts(1, 3);
	finish(0);
}

/* More parts than any array has: bad, or it would wait in the ring for ever. */
static void test_no_room_ever(void **state)
{
	unsigned most = VIRTQ_PARTS_MAX(16);

	for (uint16_t k = 0; k < 600; k++)
		ring_rig_table(&rig, TABLE, k, RIG_SEAM - 1, 2, (uint16_t)((k < 599 ? N : 0) | W),
			       (uint16_t)(k + 1));
	ring_rig_desc(&rig, 0, TABLE, 600 * 16, I, 0);
	ring_rig_avail(&rig, 0);
	assert_int_equal(pop(most - 1), -ENOBUFS);
	assert_int_equal(pop(most), 1);
	assert_true(chain.bad);
	assert_true(chain.last_in_bad);
	assert_int_equal(chain.in_num, most);
	assert_ptr_equal(iov[most].iov_base, (void *)0xeeeeeeeeeeeeeeee);
	finish(0);
	for (uint16_t k = 0; k < 600; k++)
		ring_rig_table(&rig, TABLE, k, RIG_SEAM - 1, 2, N, (uint16_t)(k + 1));
	ring_rig_table(&rig, TABLE, 600, RIG_DATA, 1, W, 0);
	ring_rig_desc(&rig, 0, TABLE, 601 * 16, I, 0);
	take(0, most);
	assert_true(chain.bad);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_layouts),
		CASE(test_zero_length),
		CASE(test_indirect),
		CASE(test_indirect_longer_than_ring),
		CASE(test_indirect_bad),
		CASE(test_indirect_nested),
		CASE(test_indirect_not_negotiated),
		CASE(test_indirect_next_out_of_range),
		CASE(test_loops),
		CASE(test_indirect_loops),
		CASE(test_next_out_of_range),
		CASE(test_unmapped),
		CASE(test_read_after_write),
		CASE(test_straddle),
		CASE(test_no_room),
		CASE(test_no_room_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
