/* SPDX-License-Identifier: Apache-2.0 */
/* What a block must hold, and each way in which it can hold something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bench/verify.h"

#define BLOCK 4096u

static struct verify_region region;

static int setup(void **state)
{
	return verify_region_init(&region, 0x1234, 100, 8, BLOCK);
}

static int teardown(void **state)
{
	verify_region_fini(&region);
	return 0;
}

/* As a write that ends well: what it wrote is in buf. */
static void write_block(uint64_t block, void *buf)
{
	uint32_t generation = verify_fill(&region, block, buf);

	verify_written(&region, block, generation, true);
}

static enum verify_kind check(uint64_t block, const void *buf, struct verify_fault *f)
{
	memset(f, 0, sizeof(*f));
	return verify_check(&region, block, buf, f);
}

static void test_good(void **state)
{
	uint8_t buf[BLOCK];
	struct verify_fault f;

	for (unsigned i = 0; i < 5; i++) {
		for (uint64_t block = 100; block < 108; block++) {
			write_block(block, buf);
			assert_int_equal(check(block, buf, &f), VERIFY_GOOD);
		}
	}
	assert_int_equal(verify_generation(&region, 103), 5);
}

static void test_stale(void **state)
{
	uint8_t old[BLOCK], new[BLOCK];
	struct verify_fault f;

	write_block(100, old);
	write_block(100, new);
	assert_int_equal(check(100, new, &f), VERIFY_GOOD);
	assert_int_equal(check(100, old, &f), VERIFY_STALE);
	assert_int_equal(f.expected, 2);
	assert_int_equal(f.found, 1);
	assert_int_equal(f.offset_bytes, 100 * BLOCK);
}

static void test_torn(void **state)
{
	uint8_t old[BLOCK], new[BLOCK];
	struct verify_fault f;

	for (unsigned sectors = 1; sectors < BLOCK / VERIFY_SECTOR_BYTES; sectors++) {
		write_block(101, old);
		write_block(101, new);
		memcpy(old, new, sectors * VERIFY_SECTOR_BYTES);
		assert_int_equal(check(101, old, &f), VERIFY_TORN);
		assert_int_equal(f.offset_bytes, 101 * BLOCK + sectors * VERIFY_SECTOR_BYTES);
	}
}

static void test_misplaced(void **state)
{
	uint8_t buf[BLOCK], other[BLOCK];
	struct verify_fault f;

	write_block(102, buf);
	write_block(105, other);
	assert_int_equal(check(102, other, &f), VERIFY_MISPLACED);
	assert_int_equal(f.found_offset_bytes, 105 * BLOCK);
	/* Parts of one block in the wrong order, too. */
	memcpy(other, buf + VERIFY_SECTOR_BYTES, VERIFY_SECTOR_BYTES);
	memcpy(buf + VERIFY_SECTOR_BYTES, buf, VERIFY_SECTOR_BYTES);
	memcpy(buf, other, VERIFY_SECTOR_BYTES);
	assert_int_equal(check(102, buf, &f), VERIFY_MISPLACED);
}

static void test_foreign(void **state)
{
	uint8_t buf[BLOCK] = {0};
	struct verify_region other;
	struct verify_fault f;

	write_block(103, buf);
	memset(buf, 0, BLOCK);
	assert_int_equal(check(103, buf, &f), VERIFY_FOREIGN);
	/* An earlier run's blocks have another number. */
	assert_int_equal(verify_region_init(&other, 0x1235, 100, 8, BLOCK), 0);
	verify_fill(&other, 103, buf);
	assert_int_equal(check(103, buf, &f), VERIFY_FOREIGN);
	verify_region_fini(&other);
}

static void test_every_byte_counts(void **state)
{
	uint8_t buf[BLOCK];
	struct verify_fault f;

	write_block(104, buf);
	for (unsigned i = 0; i < BLOCK; i++) {
		for (unsigned bit = 0; bit < 8; bit += 7) {
			buf[i] ^= (uint8_t)(1u << bit);
			assert_int_not_equal(check(104, buf, &f), VERIFY_GOOD);
			assert_int_equal(f.offset_bytes, 104 * BLOCK + i / VERIFY_SECTOR_BYTES *
									       VERIFY_SECTOR_BYTES);
			buf[i] ^= (uint8_t)(1u << bit);
		}
	}
	assert_int_equal(check(104, buf, &f), VERIFY_GOOD);
}

/* Nobody knows what a write that failed has left; the next one is newer than both. */
static void test_failed_write(void **state)
{
	uint8_t buf[BLOCK], old[BLOCK];
	struct verify_fault f;

	write_block(106, old);
	assert_true(verify_has_flag(&region, 106, VERIFY_KNOWN));
	verify_written(&region, 106, verify_fill(&region, 106, buf), false);
	assert_false(verify_has_flag(&region, 106, VERIFY_KNOWN));
	write_block(106, buf);
	assert_true(verify_has_flag(&region, 106, VERIFY_KNOWN));
	assert_int_equal(verify_generation(&region, 106), 3);
	assert_int_equal(check(106, old, &f), VERIFY_STALE);
}

static void test_text(void **state)
{
	static const struct {
		struct verify_fault fault;
		const char *says;
	} table[] = {
		{{VERIFY_TORN, 512, 0, 7, 6}, "torn data at byte 512: generation 7"},
		{{VERIFY_STALE, 0, 0, 7, 6}, "stale data at byte 0: generation 7"},
		{{VERIFY_MISPLACED, 0, 4096, 7, 6}, "generation 6 of byte 4096"},
		{{VERIFY_FOREIGN, 0, 0, 7, 0}, "not from this run"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char text[256];

		verify_fault_text(&table[i].fault, text, sizeof(text));
		assert_non_null(strstr(text, table[i].says));
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_good),         TEST(test_stale),   TEST(test_torn),
		TEST(test_misplaced),    TEST(test_foreign), TEST(test_every_byte_counts),
		TEST(test_failed_write), TEST(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
