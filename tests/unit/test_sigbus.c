/* SPDX-License-Identifier: Apache-2.0 */
/*
 * B48: guest memory whose file shrinks under us.
 *
 * All in one test: cmocka puts its own SIGBUS handler in place before each, and ours is installed
 * once, with the first mapping.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fd.h"
#include "mem/guest_memory.h"

#define MIB (1ull << 20)

static struct error err;

static int make_file(uint64_t bytes, unsigned flags)
{
	int fd = memfd_create("guest", MFD_CLOEXEC | flags);

	if (fd >= 0 && ftruncate(fd, (off_t)bytes) < 0)
		fd_close(&fd);
	return fd;
}

static struct guest_region_config region(int fd, uint64_t gpa, uint64_t len, uint64_t offset)
{
	return (struct guest_region_config){.gpa = gpa,
					    .len_bytes = len,
					    .user_addr = gpa + 0x7000000000ull,
					    .offset_bytes = offset,
					    .fd = fd};
}

static void shrink(void)
{
	int event = eventfd_create(), calm = eventfd_create();
	int file = make_file(16 * MIB, 0), other = make_file(MIB, 0);
	struct guest_region_config c[2] = {region(file, MIB, 4 * MIB, 0),
					   region(file, 8 * MIB, MIB, 5 * MIB)};
	struct guest_region_config oc = region(other, MIB, MIB, 0);
	struct guest_memory *m, *o;
	volatile char *p;

	m = guest_memory_create(c, 2, NULL, event, &err);
	o = guest_memory_create(&oc, 1, NULL, calm, &err);
	assert_non_null(m);
	assert_non_null(o);
	p = m->regions[0].host;
	for (unsigned i = 0; i < 4; i++)
		p[i * MIB] = 'a';
	assert_int_equal(ftruncate(file, 2 * MIB), 0);
	assert_false(guest_memory_is_broken(m)); /* nobody has touched the hole */
	assert_int_equal(p[0], 'a');
	p[2 * MIB + 5] = 'b'; /* the first byte that is gone, and so on */
	assert_true(guest_memory_is_broken(m));
	assert_true(eventfd_clear(event));
	assert_int_equal(p[2 * MIB + 5], 'b');
	assert_int_equal(p[3 * MIB], 0);
	assert_int_equal(p[MIB], 'a'); /* what is there still is */
	assert_false(eventfd_clear(event));
	/* The other region has its own fault. */
	m->regions[1].host[MIB - 1] = 'c';
	assert_true(eventfd_clear(event));
	/* The neighbour notices nothing. */
	o->regions[0].host[0] = 'x';
	assert_false(guest_memory_is_broken(o));
	assert_false(eventfd_clear(calm));
	guest_memory_unref(m);
	/* A new mapping in the place of the old one begins whole. */
	assert_int_equal(ftruncate(file, 16 * MIB), 0);
	m = guest_memory_create(c, 2, NULL, event, &err);
	assert_false(guest_memory_is_broken(m));
	guest_memory_unref(m);
	guest_memory_unref(o);
	fd_close(&file);
	fd_close(&event);
	fd_close(&calm);
	fd_close(&other);
}

/* Huge pages, where there are any: touched in the middle of a page that is gone. */
static void shrink_huge(void)
{
	int huge = make_file(4 * MIB, MFD_HUGETLB);
	struct guest_region_config c = region(huge, 0, 4 * MIB, 0);
	struct guest_memory *m = huge < 0 ? NULL : guest_memory_create(&c, 1, NULL, -1, &err);
	volatile char *p;

	if (!m) {
		print_message("no huge pages here\n");
		fd_close(&huge);
		return;
	}
	p = m->regions[0].host;
	p[0] = 'a';
	assert_int_equal(ftruncate(huge, 2 * MIB), 0);
	p[3 * MIB + 123] = 'b';
	assert_true(guest_memory_is_broken(m));
	assert_int_equal(p[3 * MIB + 123], 'b');
	assert_int_equal(p[0], 'a');
	guest_memory_unref(m);
	fd_close(&huge);
}

static void test_shrink(void **state)
{
	shrink();
	shrink_huge();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_shrink)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
