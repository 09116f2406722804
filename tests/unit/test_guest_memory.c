/* SPDX-License-Identifier: Apache-2.0 */
/* Guest memory: what a table refuses, what it keeps, where addresses lead.
 * Files that shrink: test_sigbus.c. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fd.h"
#include "mem/guest_memory.h"

#define PAGE 4096ull
#define MIB  (1ull << 20)

static int file;
static struct error err;

static int make_file(uint64_t bytes)
{
	int fd = memfd_create("guest", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

static int setup(void **state)
{
	file = make_file(16 * MIB);
	return 0;
}

static int teardown(void **state)
{
	fd_close(&file);
	return 0;
}

static struct guest_region_config region(uint64_t gpa, uint64_t len, uint64_t offset)
{
	return (struct guest_region_config){.gpa = gpa,
					    .len_bytes = len,
					    .user_addr = gpa + 0x7000000000ull,
					    .offset_bytes = offset,
					    .fd = file};
}

static struct guest_memory *create(const struct guest_region_config *c, unsigned n,
				   const struct guest_memory *previous)
{
	struct guest_memory *m = guest_memory_create(c, n, previous, -1, &err);

	if (!m)
		print_error("%s\n", err.text);
	assert_non_null(m);
	return m;
}

/* Mappings of the process whose line has this text. */
static unsigned mappings(const char *text)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	fclose(f);
	return n;
}

static void test_translate(void **state)
{
	/* Two that touch, out of order in config and file, and one apart. */
	struct guest_region_config c[3] = {region(3 * MIB, MIB, 0), region(2 * MIB, MIB, 4 * MIB),
					   region(8 * MIB, PAGE, 0)};
	struct guest_memory *m = create(c, 3, NULL);
	static const struct {
		uint64_t gpa, len;
		int parts; /* or -errno */
		bool one;  /* in one region */
	} table[] = {
		{2 * MIB, MIB, 1, true},
		{2 * MIB, MIB + 1, 2, false},
		{2 * MIB, 2 * MIB, 2, false},
		{2 * MIB, 2 * MIB + 1, -EFAULT, false},
		{3 * MIB - 1, 1, 1, true},
		{3 * MIB - 1, 2, 2, false},
		{3 * MIB, 1, 1, true},
		{4 * MIB - 1, 1, 1, true},
		{4 * MIB - 1, 2, -EFAULT, false},
		{4 * MIB, 1, -EFAULT, false},
		{2 * MIB - 1, 1, -EFAULT, false},
		{2 * MIB - 1, 2, -EFAULT, false},
		{8 * MIB, PAGE, 1, true},
		{8 * MIB, PAGE + 1, -EFAULT, false},
		{8 * MIB, UINT64_MAX, -EFAULT, false},
		{2 * MIB, UINT64_MAX - 2 * MIB + 1, -EFAULT, false},
		{0, 1, -EFAULT, false},
		{UINT64_MAX, 1, -EFAULT, false},
		{UINT64_MAX, 2, -EFAULT, false},
		{UINT64_MAX, UINT64_MAX, -EFAULT, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct iovec iov[4];
		uint64_t gpa = table[i].gpa, len = table[i].len, sum = 0;
		int parts = guest_memory_translate(m, gpa, len, GUEST_WRITE, iov, 4);

		assert_int_equal(parts, table[i].parts);
		assert_int_equal(guest_memory_host(m, gpa, len, GUEST_READ) != NULL, table[i].one);
		if (table[i].one)
			assert_ptr_equal(guest_memory_host(m, gpa, len, GUEST_READ),
					 iov[0].iov_base);
		for (int p = 0; p < parts; p++) {
			assert_ptr_equal(iov[p].iov_base,
					 guest_memory_host(m, gpa + sum, 1, GUEST_READ));
			sum += iov[p].iov_len;
		}
		if (parts > 0)
			assert_int_equal(sum, len);
		if (parts > 1)
			assert_int_equal(guest_memory_translate(m, gpa, len, GUEST_READ, iov, 1),
					 -ENOBUFS);
	}
	assert_int_equal(guest_memory_translate(m, 2 * MIB, 0, GUEST_READ, NULL, 0), 0);
	assert_int_equal(guest_memory_translate(m, 2 * MIB, 1, GUEST_READ, NULL, 0), -ENOBUFS);
	guest_memory_unref(m);
}

static void test_user_addresses(void **state)
{
	struct guest_region_config c[2] = {region(2 * MIB, MIB, 0), region(4 * MIB, MIB, MIB)};
	struct guest_memory *m = create(c, 2, NULL);
	uint64_t a = c[0].user_addr, b = c[1].user_addr;

	assert_ptr_equal(guest_memory_from_user(m, a, MIB), m->regions[0].host);
	assert_ptr_equal(guest_memory_from_user(m, b + 5, MIB - 5), m->regions[1].host + 5);
	assert_null(guest_memory_from_user(m, a, MIB + 1));
	assert_null(guest_memory_from_user(m, a - 1, 1));
	assert_null(guest_memory_from_user(m, b + MIB, 1));
	assert_null(guest_memory_from_user(m, a + 5, UINT64_MAX - 4));
	assert_null(guest_memory_from_user(m, UINT64_MAX, 2));
	guest_memory_unref(m);
}

static void test_offset(void **state)
{
	/* Not a multiple of a page: the right byte all the same. */
	struct guest_region_config c = region(0, 100, 5 * PAGE + 123);
	struct guest_memory *m;
	char byte = 'x';

	assert_int_equal(pwrite(file, &byte, 1, 5 * PAGE + 123), 1);
	m = create(&c, 1, NULL);
	assert_int_equal(m->regions[0].host[0], 'x');
	assert_int_equal(guest_region_offset(&m->regions[0]), 5 * PAGE + 123);
	m->regions[0].host[99] = 'y';
	assert_int_equal(pread(file, &byte, 1, 5 * PAGE + 123 + 99), 1);
	assert_int_equal(byte, 'y');
	guest_memory_unref(m);
}

static void test_refused(void **state)
{
	struct guest_region_config c[2], good = region(MIB, MIB, 0);
	unsigned before = mappings("memfd:guest");
	int ro;
	char path[64];

#define REFUSED(first, second)                                                                     \
	do {                                                                                       \
		c[0] = (first);                                                                    \
		c[1] = (second);                                                                   \
		err.text[0] = '\0';                                                                \
		assert_null(guest_memory_create(c, 2, NULL, -1, &err));                            \
		assert_true(err.text[0] != '\0');                                                  \
		assert_int_equal(mappings("memfd:guest"), before);                                 \
	} while (0)

	REFUSED(good, region(3 * MIB, 0, 0));                      /* empty */
	REFUSED(good, region(3 * MIB, 16 * MIB + 1, 0));           /* the file is shorter */
	REFUSED(good, region(3 * MIB, MIB, 15 * MIB + 1));         /* by a byte */
	REFUSED(good, region(3 * MIB, MIB, UINT64_MAX - MIB + 1)); /* offset + length wraps */
	REFUSED(good, region(3 * MIB, MIB, (uint64_t)INT64_MAX));
	REFUSED(good, region(UINT64_MAX - PAGE + 1, PAGE, 0)); /* gpa + length wraps, to 0 */
	REFUSED(good, region(UINT64_MAX, 2, 0));
	REFUSED(good, region(3 * MIB, UINT64_MAX, 0));
	REFUSED(good, good);
	REFUSED(good, region(2 * MIB - 1, MIB, 0)); /* overlap by a byte */
	REFUSED(good, region(1, MIB, 0));
	REFUSED(good, region(0, 16 * MIB, 0)); /* one inside another */
	c[1] = region(3 * MIB, MIB, 0);
	c[1].fd = -1;
	REFUSED(good, c[1]); /* no descriptor and nothing to keep */
	c[1].fd = 9999;
	REFUSED(good, c[1]);
	c[1] = region(3 * MIB, MIB, 0);
	c[1].user_addr = UINT64_MAX - MIB + 1;
	REFUSED(good, c[1]);
	c[1].user_addr = good.user_addr + MIB - 1;
	REFUSED(good, c[1]);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(ro >= 0);
	c[1] = region(3 * MIB, MIB, 0);
	c[1].fd = ro;
	REFUSED(good, c[1]); /* cannot be mapped for writing */
	fd_close(&ro);
	/* To the last byte of the file, and touching: fine. */
	c[0] = region(0, MIB, 15 * MIB);
	c[1] = region(MIB, 16 * MIB, 0);
	guest_memory_unref(create(c, 2, NULL));
	assert_int_equal(mappings("memfd:guest"), before);
}

static void test_empty_table(void **state)
{
	struct guest_memory *m = create(NULL, 0, NULL);

	assert_null(guest_memory_host(m, 0, 0, GUEST_READ));
	assert_null(guest_memory_from_user(m, 0, 0));
	assert_false(guest_memory_is_broken(m));
	guest_memory_unref(m);
	guest_memory_unref(NULL);
}

static void test_many_regions(void **state)
{
	enum { N = 509 };
	struct guest_region_config c[N];
	struct guest_memory *m;
	struct iovec iov[N];

	/* In a mixed order, touching. */
	for (uint64_t i = 0; i < N; i++)
		c[i * 100 % N] = region(MIB + i * PAGE, PAGE, i * PAGE);
	m = create(c, N, NULL);
	for (uint64_t i = 0; i < N; i++) {
		char *host = guest_memory_host(m, MIB + i * PAGE + i, 1, GUEST_WRITE);

		assert_non_null(host);
		*host = (char)i;
	}
	for (uint64_t i = 0; i < N; i++) {
		char byte;

		assert_int_equal(pread(file, &byte, 1, (off_t)(i * PAGE + i)), 1);
		assert_int_equal(byte, (char)i);
	}
	assert_int_equal(guest_memory_translate(m, MIB, N * PAGE, GUEST_READ, iov, N), N);
	assert_int_equal(guest_memory_translate(m, MIB, N * PAGE, GUEST_READ, iov, N - 1),
			 -ENOBUFS);
	assert_int_equal(guest_memory_translate(m, MIB, N * PAGE + 1, GUEST_READ, iov, N), -EFAULT);
	guest_memory_unref(m);
}

/* ---- what a new table keeps ---- */

static void count_release(struct guest_memory *m, void *arg)
{
	assert_non_null(m);
	++*(unsigned *)arg;
}

static void test_keep(void **state)
{
	struct guest_region_config c[2] = {region(MIB, MIB, 0), region(3 * MIB, MIB, MIB)};
	struct guest_memory *a = create(c, 2, NULL), *b, *d;
	unsigned before = mappings("memfd:guest"), released = 0;
	char *host = a->regions[0].host;
	int other;

	a->released = count_release;
	a->released_arg = &released;
	host[0] = 'a';
	/* Another descriptor of the same file, and none at all. */
	other = dup(file);
	c[0].fd = other;
	c[1].fd = -1;
	b = create(c, 2, a);
	fd_close(&other);
	c[0].fd = file;
	assert_ptr_equal(b->regions[0].mapping, a->regions[0].mapping);
	assert_ptr_equal(b->regions[1].host, a->regions[1].host);
	assert_int_equal(mappings("memfd:guest"), before);
	guest_memory_ref(a);
	guest_memory_unref(a);
	assert_int_equal(released, 0);
	guest_memory_unref(a);
	assert_int_equal(released, 1);
	assert_int_equal(mappings("memfd:guest"), before);
	assert_int_equal(b->regions[0].host[0], 'a');
	/* A failure takes nothing of the previous table with it. */
	c[1] = region(MIB, MIB, 0);
	assert_null(guest_memory_create(c, 2, b, -1, &err));
	assert_int_equal(b->regions[0].host[0], 'a');
	/* One stays, one goes. */
	d = create(c, 1, b);
	guest_memory_unref(b);
	assert_int_equal(mappings("memfd:guest"), before - 1);
	assert_int_equal(d->regions[0].host[0], 'a');
	guest_memory_unref(d);
	assert_int_equal(mappings("memfd:guest"), before - 2);
}

static void test_not_the_same(void **state)
{
	struct guest_region_config c = region(MIB, MIB, 0), changed;
	struct guest_memory *a = create(&c, 1, NULL);
	int other = make_file(16 * MIB);

	for (unsigned what = 0; what < 5; what++) {
		struct guest_memory *b;

		changed = c;
		if (what == 0)
			changed.fd = other;
		else if (what == 1)
			changed.offset_bytes = PAGE;
		else if (what == 2)
			changed.len_bytes = MIB - PAGE;
		else if (what == 3)
			changed.gpa += MIB;
		else
			changed.user_addr += MIB;
		b = create(&changed, 1, a);
		assert_ptr_not_equal(b->regions[0].mapping, a->regions[0].mapping);
		if (what == 0)
			assert_int_equal(mappings("memfd:guest"), 2);
		guest_memory_unref(b);
		/* Without a descriptor there is nothing to map. */
		changed.fd = -1;
		if (what > 0)
			assert_null(guest_memory_create(&changed, 1, a, -1, &err));
	}
	fd_close(&other);
	guest_memory_unref(a);
}

/* Pages of 2 MiB (where that is the default), regions that are not a multiple of them. */
static void test_huge_pages(void **state)
{
	int huge = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	struct guest_region_config c = region(0, 5 * MIB, MIB);
	unsigned before = mappings("memfd:huge");
	struct guest_memory *m;
	char *p;
	void *probe;

	if (huge < 0 || ftruncate(huge, 6 * MIB) < 0)
		skip();
	probe = mmap(NULL, 6 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, huge, 0);
	if (probe == MAP_FAILED) /* none in this machine's pool */
		skip();
	munmap(probe, 6 * MIB);
	c.fd = huge;
	m = create(&c, 1, NULL);
	p = m->regions[0].host;
	p[0] = p[5 * MIB - 1] = 'a';
	guest_memory_unref(m);
	assert_int_equal(mappings("memfd:huge"), before);
	c = region(0, 2 * MIB, 2 * MIB);
	c.fd = huge;
	c.len_bytes = MIB; /* ends inside a page */
	m = create(&c, 1, NULL);
	m->regions[0].host[0] = 'a';
	guest_memory_unref(m);
	assert_int_equal(mappings("memfd:huge"), before);
	fd_close(&huge);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_translate), CASE(test_user_addresses), CASE(test_offset),
		CASE(test_refused),   CASE(test_empty_table),    CASE(test_many_regions),
		CASE(test_keep),      CASE(test_not_the_same),   CASE(test_huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
