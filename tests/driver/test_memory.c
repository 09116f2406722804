/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the server is given: lent, the caller's own, too much of it, taken away again. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "driver/driver_rig.h"
#include "fakes/disk_server.h"
#include "fakes/fake_vhost_server.h"

#define MIB (1u << 20)

static struct disk_server server;
static struct fake_vhost fake;
static struct ringside_device *dev;
static struct ringside_queue *q;
static struct ringside_error err;

static void start(void)
{
	disk_server_start(&server, "engine=memory,size=1M", 1);
	dev = drv_open(server.target, NULL);
	q = ringside_queue(dev, 0);
}

static void stop(void)
{
	ringside_close(dev);
	disk_server_stop(&server);
}

/* A block through the first and the last bytes of a piece. */
static void use(char *memory, size_t len, unsigned seed)
{
	char *end = memory + len - 512;

	drv_fill(memory, 512, seed);
	assert_int_equal(ringside_write(q, seed % 100 * 512, memory, 512, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
	memset(end, 0xee, 512);
	assert_int_equal(ringside_read(q, seed % 100 * 512, end, 512, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
	if (end >= memory + 512)
		assert_memory_equal(memory, end, 512);
}

static int read_into(void *to, size_t len)
{
	return ringside_read(q, 0, to, len, NULL);
}

static void test_lent(void **state)
{
	static const size_t lens[] = {1, 512, 4096, 4097, 3 * MIB};
	long page = sysconf(_SC_PAGESIZE);
	char *pieces[ARRAY_SIZE(lens)];
	unsigned fds;
	void *none = (void *)1;

	start();
	fds = drv_fds();
	for (unsigned i = 0; i < ARRAY_SIZE(lens); i++) {
		size_t whole = (lens[i] + (size_t)page - 1) & ~((size_t)page - 1);

		pieces[i] = drv_memory(dev, lens[i]);
		assert_int_equal((uintptr_t)pieces[i] % (uintptr_t)page, 0);
		for (size_t at = 0; at < whole; at += 512)
			assert_int_equal(pieces[i][at], 0);
		use(pieces[i], whole, i);
	}
	/* Pieces need not be freed in order. */
	for (unsigned i = 0; i < ARRAY_SIZE(lens); i++)
		assert_int_equal(ringside_memory_free(dev, pieces[(i * 2) % 5], &err), 0);
	assert_int_equal(ringside_memory_free(dev, pieces[0], &err), -ENOENT);
	drv_expect_fds(fds);
	assert_int_equal(ringside_memory_alloc(dev, 0, &none, &err), -EINVAL);
	assert_null(none);
	assert_int_equal(ringside_memory_alloc(dev, SIZE_MAX, &none, NULL), -EINVAL);
	assert_true(ringside_memory_alloc(dev, SIZE_MAX / 2, &none, &err) < 0);
	drv_expect_fds(fds);
	use(drv_memory(dev, 4096), 4096, 9);
	stop();
}

/* Ours, at an offset of its file, and known by its address only. */
static void test_mapped(void **state)
{
	unsigned fds;
	int fd = memfd_create("test", MFD_CLOEXEC);
	uint64_t was_open = 0;
	char *p, *q_end;

	start();
	for (int other = 0; other < 64; other++)
		was_open |= (uint64_t)(fcntl(other, F_GETFD) >= 0) << other;
	assert_int_equal(ftruncate(fd, 64 * 4096), 0);
	/* With nothing of the library's beside it. */
	p = mmap(NULL, 18 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	p = mmap(p + 4096, 16 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 8 * 4096);
	assert_true(p != MAP_FAILED);
	q_end = p + 16 * 4096;
	assert_int_equal(read_into(p, 512), -EFAULT);
	fds = drv_fds();
	assert_int_equal(ringside_memory_map(dev, p, 16 * 4096, fd, 8 * 4096, &err), 0);
	use(p, 16 * 4096, 1);
	/* In the file, too. */
	for (int i = 0; i < 512; i += 8) {
		char word[8];

		assert_int_equal(pread(fd, word, 8, 8 * 4096 + i), 8);
		assert_memory_equal(word, p + i, 8);
	}
	/* Just what was given, no byte around it. */
	assert_int_equal(read_into(q_end - 512, 1024), -EFAULT);
	assert_int_equal(read_into(q_end, 512), -EFAULT);
	assert_int_equal(read_into(p - 512, 512), -EFAULT);
	assert_int_equal(ringside_in_flight(q), 0);

	assert_int_equal(ringside_memory_map(dev, p, 16 * 4096, fd, 8 * 4096, &err), -EEXIST);
	assert_int_equal(ringside_memory_map(dev, p + 4096, 4096, fd, 9 * 4096, &err), -EEXIST);
	assert_int_equal(ringside_memory_map(dev, p - 4096, 2 * 4096, fd, 0, &err), -EEXIST);
	assert_int_equal(ringside_memory_map(dev, p + 1, 4096, fd, 0, &err), -EINVAL);
	assert_int_equal(ringside_memory_map(dev, q_end, 4095, fd, 0, &err), -EINVAL);
	assert_int_equal(ringside_memory_map(dev, q_end, 4096, fd, 7, &err), -EINVAL);
	assert_int_equal(ringside_memory_map(dev, q_end, 0, fd, 0, &err), -EINVAL);
	assert_int_equal(ringside_memory_map(dev, q_end, SIZE_MAX & ~4095ull, fd, 0, &err),
			 -EINVAL);
	assert_int_equal(ringside_memory_map(dev, q_end, 4096, -1, 0, NULL), -EBADF);
	assert_int_equal(ringside_memory_map(dev, q_end, 4096, 9999, 0, &err), -EBADF);
	drv_expect_fds(fds + 1);
	/* The library's own descriptor does not go to a program that the caller starts. */
	for (int other = 0; other < 64; other++) {
		int flags = fcntl(other, F_GETFD);

		assert_true(flags < 0 || (flags & FD_CLOEXEC) || was_open & 1ull << other);
	}
	/* It stays the caller's. */
	assert_int_equal(ringside_memory_free(dev, p + 4096, &err), -ENOENT);
	assert_int_equal(ringside_memory_free(dev, p, &err), 0);
	p[0] = 1;
	assert_int_equal(read_into(p, 512), -EFAULT);
	drv_expect_fds(fds);
	munmap(p - 4096, 18 * 4096);
	close(fd);
	stop();
}

/* What was freed is not known any more, also to a queue that used it last. */
static void test_freed(void **state)
{
	char *a, *b;

	start();
	a = drv_memory(dev, 4096);
	b = drv_memory(dev, 4096);
	use(a, 4096, 1);
	assert_int_equal(ringside_memory_free(dev, a, &err), 0);
	assert_int_equal(read_into(a, 512), -EFAULT);
	use(b, 4096, 2);
	assert_int_equal(read_into(a, 512), -EFAULT);
	assert_int_equal(ringside_in_flight(q), 0);
	stop();
}

static void test_unknown(void **state)
{
	struct iovec iov[2];
	char stack[1024], *a;

	start();
	a = drv_memory(dev, 8192);
	assert_int_equal(read_into(stack, 512), -EFAULT);
	assert_int_equal(read_into(NULL, 512), -EFAULT);
	assert_int_equal(read_into((void *)(UINTPTR_MAX - 511), 512), -EFAULT);
	assert_int_equal(ringside_write(q, 0, stack, 512, NULL), -EFAULT);
	assert_int_equal(ringside_get_id(q, stack, NULL), -EFAULT);
	assert_int_equal(ringside_get_id(q, a + 8192 - 19, NULL), -EFAULT);
	assert_int_equal(ringside_get_id(q, a + 8192 - 20, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
	iov[0] = (struct iovec){a, 512};
	iov[1] = (struct iovec){stack, 512};
	assert_int_equal(ringside_readv(q, 0, iov, 2, NULL), -EFAULT);
	assert_int_equal(ringside_in_flight(q), 0);
	/* The library's own memory is nobody's to free. */
	assert_int_equal(ringside_memory_free(dev, NULL, &err), -ENOENT);
	assert_int_equal(ringside_memory_free(dev, stack, NULL), -ENOENT);
	stop();
}

/* One piece for the rings, and the rest for the caller, whatever the messages are. */
static void expect_pieces(unsigned most, bool slots)
{
	struct fake_vhost_config c;
	char *pieces[FAKE_REGIONS];
	unsigned fds = drv_fds();
	void *none;

	fake_vhost_config_init(&c);
	c.mem_slots = most;
	if (!slots)
		c.protocol_features &= ~(1ull << VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS);
	fake_vhost_start(&fake, &c);
	dev = drv_open(fake.target, NULL);
	q = ringside_queue(dev, 0);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i + 1 < most; i++)
			pieces[i] = drv_memory(dev, 4096 * (i + 1));
		assert_int_equal(ringside_memory_alloc(dev, 4096, &none, &err), -ENOSPC);
		assert_null(none);
		for (unsigned i = 0; i + 1 < most; i++)
			use(pieces[i], 4096 * (i + 1), i);
		/* With room for one again. */
		assert_int_equal(ringside_memory_free(dev, pieces[round % (most - 1)], &err), 0);
		pieces[round % (most - 1)] = drv_memory(dev, 4096);
		assert_int_equal(ringside_memory_alloc(dev, 4096, &none, NULL), -ENOSPC);
		for (unsigned i = 0; i + 1 < most; i++)
			assert_int_equal(ringside_memory_free(dev, pieces[i], &err), 0);
	}
	ringside_close(dev);
	fake_vhost_stop(&fake);
	assert_int_equal(fake.most_regions, most);
	assert_int_equal(fake.messages[VHOST_USER_ADD_MEM_REG] == 0, !slots);
	assert_int_equal(fake.messages[VHOST_USER_SET_MEM_TABLE] == 0, slots);
	drv_expect_fds(fds);
}

static void test_few_slots(void **state)
{
	expect_pieces(2, true);
	expect_pieces(3, true);
	expect_pieces(FAKE_REGIONS, true);
}

static void test_whole_tables(void **state)
{
	expect_pieces(8, false);
}

/* A server that says no slots at all cannot be used, and one that refuses a piece goes on. */
static void test_refused(void **state)
{
	struct fake_vhost_config c;
	unsigned fds = drv_fds();
	void *none;
	char *a;

	fake_vhost_config_init(&c);
	c.mem_slots = 0;
	fake_vhost_start(&fake, &c);
	assert_int_equal(ringside_open(fake.target, NULL, &dev, &err), -ENOSPC);
	fake_vhost_stop(&fake);

	c.mem_slots = 10;
	c.spoil_request = VHOST_USER_ADD_MEM_REG;
	c.spoil = FAKE_REFUSE;
	c.spoil_at = 2;
	fake_vhost_start(&fake, &c);
	dev = drv_open(fake.target, NULL);
	q = ringside_queue(dev, 0);
	a = drv_memory(dev, 4096);
	assert_int_equal(ringside_memory_alloc(dev, 4096, &none, &err), -EIO);
	assert_non_null(strstr(err.text, "refused ADD_MEM_REG"));
	use(a, 4096, 1);
	assert_int_equal(ringside_memory_free(dev, a, &err), 0);
	ringside_close(dev);
	fake_vhost_stop(&fake);
	drv_expect_fds(fds);
}

/*
 * A server that does not acknowledge must have read of a piece before a request that uses it may
 * be seen: it looks at its rings without being kicked.
 */
static void test_without_acknowledgements(void **state)
{
	struct fake_vhost_config c;

	for (unsigned slots = 0; slots < 2; slots++) {
		fake_vhost_config_init(&c);
		c.protocol_features &= ~(1ull << VHOST_USER_PROTOCOL_F_REPLY_ACK);
		if (!slots)
			c.protocol_features &= ~(1ull << VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS);
		fake_vhost_start(&fake, &c);
		dev = drv_open(fake.target, NULL);
		q = ringside_queue(dev, 0);
		for (unsigned round = 0; round < 50; round++) {
			char *p = drv_memory(dev, 4096);
			unsigned known = atomic_load_relaxed(&fake.known_regions);

			assert_int_equal(known, 2);
			use(p, 4096, round);
			assert_int_equal(ringside_memory_free(dev, p, &err), 0);
		}
		ringside_close(dev);
		fake_vhost_stop(&fake);
	}
}

/* Huge pages if there are any, else ordinary ones; the device says which. */
static void test_hugepages(void **state)
{
	struct ringside_options o = RINGSIDE_OPTIONS_INIT;
	char *a, *b;
	bool huge;

	o.hugepages = true;
	disk_server_start(&server, "engine=memory,size=1M", 1);
	dev = drv_open(server.target, &o);
	q = ringside_queue(dev, 0);
	huge = drv_info(dev).hugepages;
	a = drv_memory(dev, 5 * MIB);
	b = drv_memory(dev, 4096);
	if (huge)
		assert_int_equal((uintptr_t)a % (2 * MIB), 0);
	use(a, 5 * MIB, 1);
	use(b, 4096, 2);
	assert_int_equal(drv_info(dev).hugepages, huge);
	assert_int_equal(ringside_memory_free(dev, a, &err), 0);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lent),      cmocka_unit_test(test_mapped),
		cmocka_unit_test(test_freed),     cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_few_slots), cmocka_unit_test(test_whole_tables),
		cmocka_unit_test(test_refused),   cmocka_unit_test(test_without_acknowledgements),
		cmocka_unit_test(test_hugepages),
	};

	drv_no_hang();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
