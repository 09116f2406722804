/* SPDX-License-Identifier: Apache-2.0 */
/* The driver library against our own server: opening, what it says of itself, every request. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/checked.h"
#include "driver/driver_rig.h"
#include "fakes/disk_server.h"

#define MIB (1u << 20)

static struct disk_server server;

static struct ringside_options options(unsigned depth, unsigned segments)
{
	struct ringside_options o = RINGSIDE_OPTIONS_INIT;

	o.depth = depth;
	o.max_segments = segments;
	return o;
}

/* ---- opening ---- */

static void test_info(void **state)
{
	struct ringside_options o = options(0, 0);
	struct ringside_device *dev;
	struct ringside_info info;

	disk_server_start(&server, "engine=memory,size=16M,block-size=4096,queues=3", 1);
	dev = drv_open(server.target, NULL);
	info = drv_info(dev);
	assert_int_equal(info.capacity_bytes, 16 * MIB);
	assert_int_equal(info.block_bytes, 4096);
	assert_int_equal(info.queues, 1);
	assert_int_equal(info.depth, 128);
	assert_int_equal(info.max_segments, 16);
	assert_true(info.max_transfer_bytes >= MIB && info.max_transfer_bytes % 4096 == 0);
	assert_true(info.max_discard_bytes >= MIB && info.max_discard_bytes % 4096 == 0);
	assert_true(info.max_write_zeroes_bytes >= MIB);
	assert_true(info.flush && info.discard && info.write_zeroes && !info.read_only);
	assert_true(info.event_idx && info.indirect && !info.hugepages);
	assert_int_equal(info.server_pid, 0);
	assert_non_null(ringside_queue(dev, 0));
	assert_null(ringside_queue(dev, 1));
	ringside_close(dev);

	o.queues = 3;
	o.depth = 1024;
	o.max_segments = 1022;
	dev = drv_open(server.target, &o);
	info = drv_info(dev);
	assert_int_equal(info.queues, 3);
	assert_int_equal(info.depth, 1024);
	assert_int_equal(info.max_segments, 126); /* what the server takes */
	assert_non_null(ringside_queue(dev, 2));
	assert_null(ringside_queue(dev, 3));
	ringside_close(dev);
	ringside_close(NULL);
	disk_server_stop(&server);
}

/* Callers that were built with an earlier header, whose structs are shorter. */
static void test_short_structs(void **state)
{
	struct ringside_options o = options(7, 3);
	struct ringside_error err;
	struct ringside_device *dev;
	struct ringside_info info;
	struct ringside_stats stats;

	disk_server_start(&server, "engine=null,size=1M,queues=2", 1);
	o.queues = 2;
	o.struct_bytes = offsetof(struct ringside_options, depth);
	dev = drv_open(server.target, &o);
	assert_int_equal(drv_info(dev).queues, 2);
	assert_int_equal(drv_info(dev).depth, 128);
	assert_int_equal(drv_info(dev).max_segments, 16);

	memset(&info, 0xee, sizeof(info));
	info.struct_bytes = offsetof(struct ringside_info, block_bytes);
	ringside_info(dev, &info);
	assert_int_equal(info.struct_bytes, offsetof(struct ringside_info, block_bytes));
	assert_int_equal(info.capacity_bytes, MIB);
	assert_int_equal(info.block_bytes, 0xeeeeeeee);

	memset(&stats, 0xee, sizeof(stats));
	stats.struct_bytes = offsetof(struct ringside_stats, completions);
	ringside_queue_stats(ringside_queue(dev, 0), &stats);
	assert_int_equal(stats.requests, 0);
	assert_int_equal(stats.completions, 0xeeeeeeeeeeeeeeee);
	ringside_close(dev);

	o.struct_bytes = 0;
	assert_int_equal(ringside_open(server.target, &o, &dev, &err), -EINVAL);
	assert_null(dev);
	disk_server_stop(&server);
}

static void expect_no_open(const char *target, const struct ringside_options *o, int ret,
			   const char *says)
{
	struct ringside_device *dev = (void *)1;
	struct ringside_error err = {"nothing"};

	assert_int_equal(ringside_open(target, o, &dev, NULL), ret);
	assert_int_equal(ringside_open(target, o, &dev, &err), ret);
	assert_null(dev);
	if (!strstr(err.text, says))
		fail_msg("%s: %s", target, err.text);
}

static void test_open_refused(void **state)
{
	struct ringside_options o = options(0, 0);
	char text[300];
	unsigned fds;

	disk_server_start(&server, "engine=null,size=1M,queues=2", 1);
	fds = drv_fds();
	expect_no_open("", NULL, -EINVAL, "SCHEME:PATH");
	expect_no_open(server.socket, NULL, -EINVAL, "SCHEME:PATH");
	expect_no_open("vhost-user-scsi:/x", NULL, -EINVAL, "unknown scheme 'vhost-user-scsi'");
	expect_no_open("vhost-user-blk:", NULL, -EINVAL, "empty");
	expect_no_open("vhost-user-blk:/x%zz", NULL, -EINVAL, "hexadecimal");
	snprintf(text, sizeof(text), "%s?direct=on", server.target);
	expect_no_open(text, NULL, -EINVAL, "no option 'direct'");
	snprintf(text, sizeof(text), "vhost-user-blk:/%0200d", 0);
	expect_no_open(text, NULL, -ENAMETOOLONG, "shorter");
	expect_no_open("vhost-user-blk:/nowhere/s", NULL, -ENOENT, "/nowhere/s");
	o.queues = 3;
	expect_no_open(server.target, &o, -EINVAL, "has 2 queues");
	o = options(1025, 0);
	expect_no_open(server.target, &o, -EINVAL, "depth 1025 is above 1024");
	o = options(0, 1023);
	expect_no_open(server.target, &o, -EINVAL, "max_segments 1023 is above 1022");
	o = options(0, 0);
	o.timeout_ms = ~0u;
	expect_no_open(server.target, &o, -EINVAL, "timeout_ms");
	drv_expect_fds(fds);
	/* None of it has harmed the server. */
	ringside_close(drv_open(server.target, NULL));
	disk_server_stop(&server);
}

static void test_nobody_listens(void **state)
{
	char folder[] = "/tmp/rs-drv-XXXXXX", target[128];
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_non_null(mkdtemp(folder));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/s", folder);
	snprintf(target, sizeof(target), "vhost-user-blk:%s", addr.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	expect_no_open(target, NULL, -ECONNREFUSED, addr.sun_path);
	close(fd);
	unlink(addr.sun_path);
	rmdir(folder);
}

/* One client a socket; and the next one at once when it has closed, with the data still there. */
static void test_reconnect(void **state)
{
	struct ringside_device *dev, *other = NULL;
	unsigned fds;

	disk_server_start(&server, "engine=memory,size=1M,queues=2", 2);
	fds = drv_fds();
	dev = drv_open(server.target, NULL);
	assert_true(ringside_open(server.target, NULL, &other, NULL) < 0);
	assert_null(other);
	ringside_close(dev);
	for (unsigned i = 0; i < 50; i++) {
		struct ringside_options o = options(1 + i, 1 + i % 20);
		struct ringside_queue *q;
		char *buf;

		o.queues = 1 + i % 2;
		dev = drv_open(server.target, &o);
		q = ringside_queue(dev, i % o.queues);
		buf = drv_memory(dev, 1024);
		assert_int_equal(ringside_read(q, 0, buf, 512, NULL), 0);
		assert_int_equal(drv_finish(q), 0);
		assert_int_equal(buf[0], i ? i - 1 : 0);
		assert_int_equal(buf[511], i ? i - 1 : 0);
		memset(buf, (int)i, 512);
		assert_int_equal(ringside_write(q, 0, buf, 512, NULL), 0);
		assert_int_equal(drv_finish(q), 0);
		ringside_close(dev);
	}
	drv_expect_fds(fds);
	disk_server_stop(&server);
}

/* What was put, published or completed, and never taken. */
static void test_close_with_requests_in_flight(void **state)
{
	struct ringside_device *dev;
	struct ringside_queue *q;
	char *buf;

	disk_server_start(&server, "engine=memory,size=1M", 1);
	for (unsigned round = 0; round < 30; round++) {
		dev = drv_open(server.target, NULL);
		q = ringside_queue(dev, 0);
		buf = drv_memory(dev, 64 * 512);
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(ringside_read(q, i * 512, buf + i * 512, 512, NULL), 0);
		if (round % 3 >= 1)
			ringside_publish(q);
		if (round % 3 == 2)
			ringside_tell(q);
		assert_int_equal(ringside_in_flight(q), 64);
		ringside_close(dev);
	}
	disk_server_stop(&server);
}

/* ---- requests ---- */

/* Cuts len bytes into n parts, not at blocks; deterministic. */
static void cut(struct iovec *iov, unsigned n, char *buf, size_t len, unsigned seed)
{
	for (unsigned i = 0; i < n; i++) {
		size_t left = n - i - 1, part = i + 1 == n ? len : 1 + (seed * 131 + i * 97) % 700;

		if (part > len - left)
			part = len - left;
		iov[i] = (struct iovec){buf, part};
		buf += part;
		len -= part;
	}
}

static void write_and_read(struct ringside_device *dev, struct ringside_queue *q, char *buf,
			   unsigned segments, size_t len)
{
	struct iovec iov[126];
	char *back = buf + 2 * MIB;
	uint64_t at = (segments * 37u % 64u) * 4096u;

	drv_fill(buf, len, segments);
	memset(back, 0xaa, len + 512);
	cut(iov, segments, buf, len, segments);
	assert_int_equal(ringside_writev(q, at, iov, segments, NULL), 0);
	/* The array is not the request's. */
	memset(iov, 0, sizeof(iov));
	assert_int_equal(drv_finish(q), 0);
	cut(iov, segments, back, len, segments + 1);
	assert_int_equal(ringside_readv(q, at, iov, segments, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
	assert_memory_equal(buf, back, len);
	assert_int_equal((unsigned char)back[len], 0xaa);
	assert_int_equal(drv_stats(q).errors, 0);
}

static void test_read_write(void **state)
{
	static const unsigned depths[] = {1, 2, 128}, most[] = {1, 2, 16, 126};
	unsigned fds;

	disk_server_start(&server, "engine=memory,size=4M", 1);
	fds = drv_fds();
	for (unsigned d = 0; d < ARRAY_SIZE(depths); d++) {
		for (unsigned m = 0; m < ARRAY_SIZE(most); m++) {
			struct ringside_options o = options(depths[d], most[m]);
			struct ringside_device *dev = drv_open(server.target, &o);
			char *buf = drv_memory(dev, 5 * MIB);

			assert_int_equal(drv_info(dev).max_segments, most[m]);
			for (unsigned s = 1; s <= most[m]; s++)
				write_and_read(dev, ringside_queue(dev, 0), buf, s,
					       align_up((size_t)s * 600, 512));
			write_and_read(dev, ringside_queue(dev, 0), buf, 1, 2 * MIB);
			ringside_close(dev);
		}
	}
	drv_expect_fds(fds);
	disk_server_stop(&server);
}

static void test_flush_and_id(void **state)
{
	static const char *const serials[] = {"abc", "12345678901234567890"};

	for (unsigned i = 0; i < ARRAY_SIZE(serials); i++) {
		char keys[100];
		struct ringside_device *dev;
		struct ringside_queue *q;
		char *id;

		snprintf(keys, sizeof(keys), "engine=memory,size=1M,serial=%s", serials[i]);
		disk_server_start(&server, keys, 1);
		dev = drv_open(server.target, NULL);
		q = ringside_queue(dev, 0);
		id = drv_memory(dev, 64);
		memset(id, 0xee, 64);
		assert_int_equal(ringside_get_id(q, id + 1, NULL), 0);
		assert_int_equal(drv_finish(q), 0);
		assert_memory_equal(id + 1, serials[i], strnlen(serials[i], 20));
		if (strlen(serials[i]) < 20)
			assert_int_equal(id[1 + strlen(serials[i])], 0);
		assert_int_equal((unsigned char)id[0], 0xee);
		assert_int_equal((unsigned char)id[21], 0xee);
		assert_int_equal(ringside_flush(q, NULL), 0);
		assert_int_equal(drv_finish(q), 0);
		/* Neither has moved data. */
		assert_int_equal(drv_stats(q).bytes, 0);
		ringside_close(dev);
		disk_server_stop(&server);
	}
}

static void test_discard_and_zeroes(void **state)
{
	struct ringside_device *dev;
	struct ringside_queue *q;
	char *buf;

	disk_server_start(&server, "engine=memory,size=1M", 1);
	dev = drv_open(server.target, NULL);
	q = ringside_queue(dev, 0);
	buf = drv_memory(dev, 3 * 65536);
	memset(buf + 65536, 0, 65536);
	for (unsigned how = 0; how < 3; how++) {
		memset(buf, 0x55, 65536);
		assert_int_equal(ringside_write(q, 65536, buf, 65536, NULL), 0);
		assert_int_equal(drv_finish(q), 0);
		assert_int_equal(how == 2 ? ringside_discard(q, 65536 + 4096, 8192, NULL)
					  : ringside_write_zeroes(q, 65536 + 4096, 8192, how, NULL),
				 0);
		assert_int_equal(drv_finish(q), 0);
		assert_int_equal(ringside_read(q, 65536, buf + 131072, 65536, NULL), 0);
		assert_int_equal(drv_finish(q), 0);
		assert_memory_equal(buf + 131072, buf, 4096);
		/* What a discard leaves is the device's affair. */
		if (how < 2)
			assert_memory_equal(buf + 131072 + 4096, buf + 65536, 8192);
		assert_memory_equal(buf + 131072 + 12288, buf, 65536 - 12288);
	}
	assert_int_equal(drv_stats(q).bytes, 3 * 2 * 65536);
	ringside_close(dev);
	disk_server_stop(&server);
}

/* ---- what is refused before it is put ---- */

static void test_refused_ranges(void **state)
{
	const uint64_t end = MIB;
	struct ringside_device *dev;
	struct ringside_queue *q;
	struct iovec iov[20];
	char *buf;

	disk_server_start(&server, "engine=memory,size=1M,block-size=4096", 1);
	dev = drv_open(server.target, NULL);
	q = ringside_queue(dev, 0);
	buf = drv_memory(dev, 32 * MIB);
	assert_int_equal(ringside_read(q, 512, buf, 4096, NULL), -EINVAL);
	assert_int_equal(ringside_read(q, 0, buf, 512, NULL), -EINVAL);
	assert_int_equal(ringside_read(q, 0, buf, 0, NULL), -EINVAL);
	assert_int_equal(ringside_write(q, 1, buf, 4096, NULL), -EINVAL);
	assert_int_equal(ringside_write(q, 0, buf, 4097, NULL), -EINVAL);
	assert_int_equal(ringside_discard(q, 0, 0, NULL), -EINVAL);
	assert_int_equal(ringside_discard(q, 512, 4096, NULL), -EINVAL);
	assert_int_equal(ringside_write_zeroes(q, 0, 512, true, NULL), -EINVAL);
	assert_int_equal(ringside_read(q, end, buf, 4096, NULL), -ERANGE);
	assert_int_equal(ringside_read(q, end - 4096, buf, 8192, NULL), -ERANGE);
	assert_int_equal(ringside_read(q, 0 - 4096ull, buf, 8192, NULL), -ERANGE);
	assert_int_equal(ringside_read(q, 0, buf, 32 * MIB, NULL), -ERANGE);
	assert_int_equal(ringside_read(q, 0, buf, SIZE_MAX & ~4095ull, NULL), -ERANGE);
	assert_int_equal(ringside_write(q, 1ull << 63, buf, 4096, NULL), -ERANGE);
	assert_int_equal(ringside_discard(q, end, 4096, NULL), -ERANGE);
	assert_int_equal(ringside_discard(q, 0, 1ull << 50, NULL), -ERANGE);
	assert_int_equal(ringside_write_zeroes(q, end - 4096, 8192, false, NULL), -ERANGE);
	/* Parts: none, too many, one that is nothing, and a sum that is more than there is. */
	for (unsigned i = 0; i < 20; i++)
		iov[i] = (struct iovec){buf + i * 4096, 4096};
	assert_int_equal(ringside_readv(q, 0, iov, 0, NULL), -EINVAL);
	assert_int_equal(ringside_readv(q, 0, iov, 17, NULL), -EINVAL);
	assert_int_equal(ringside_writev(q, 0, iov, ~0u, NULL), -EINVAL);
	iov[1].iov_len = 0;
	assert_int_equal(ringside_readv(q, 0, iov, 3, NULL), -EINVAL);
	iov[1].iov_len = 100;
	assert_int_equal(ringside_readv(q, 0, iov, 3, NULL), -EINVAL);
	iov[1].iov_len = SIZE_MAX - 4096;
	assert_int_equal(ringside_readv(q, 0, iov, 2, NULL), -EINVAL);
	assert_int_equal(ringside_readv(q, 0, iov, 3, NULL), -ERANGE);
	/* Nothing was put. */
	assert_int_equal(ringside_in_flight(q), 0);
	assert_int_equal(drv_stats(q).requests, 0);
	assert_int_equal(drv_stats(q).kicks_sent, 0);
	/* And the last block is there. */
	assert_int_equal(ringside_write(q, end - 4096, buf, 4096, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
	ringside_close(dev);
	disk_server_stop(&server);
}

static void test_read_only(void **state)
{
	char image[] = "/tmp/rs-drv-img-XXXXXX", keys[100];
	struct ringside_device *dev;
	struct ringside_queue *q;
	int fd = mkstemp(image);
	char *buf;

	assert_int_equal(ftruncate(fd, MIB), 0);
	assert_int_equal(pwrite(fd, "hello", 5, 512), 5);
	close(fd);
	snprintf(keys, sizeof(keys), "path=%s,readonly=on", image);
	disk_server_start(&server, keys, 1);
	dev = drv_open(server.target, NULL);
	q = ringside_queue(dev, 0);
	buf = drv_memory(dev, 4096);
	assert_true(drv_info(dev).read_only);
	assert_int_equal(ringside_write(q, 0, buf, 512, NULL), -EROFS);
	assert_int_equal(ringside_write(q, 1, buf, 512, NULL), -EINVAL);
	if (drv_info(dev).discard)
		assert_int_equal(ringside_discard(q, 0, 512, NULL), -EROFS);
	else
		assert_int_equal(ringside_discard(q, 0, 512, NULL), -EOPNOTSUPP);
	assert_int_equal(ringside_read(q, 512, buf, 512, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
	assert_memory_equal(buf, "hello", 5);
	ringside_close(dev);
	disk_server_stop(&server);
	unlink(image);
}

static void test_not_supported(void **state)
{
	struct ringside_device *dev;
	struct ringside_queue *q;

	disk_server_start(&server, "engine=memory,size=1M,discard=off", 1);
	dev = drv_open(server.target, NULL);
	q = ringside_queue(dev, 0);
	assert_false(drv_info(dev).discard);
	assert_int_equal(drv_info(dev).max_discard_bytes, 0);
	assert_int_equal(ringside_discard(q, 0, 512, NULL), -EOPNOTSUPP);
	assert_int_equal(ringside_in_flight(q), 0);
	ringside_close(dev);
	disk_server_stop(&server);
}

static void test_full(void **state)
{
	struct ringside_completion done[1024];
	int error;

	disk_server_start(&server, "engine=memory,size=1M", 1);
	for (unsigned depth = 1; depth <= 1024; depth = depth * 3 + depth / 200) {
		struct ringside_options o = options(depth, 0);
		struct ringside_device *dev = drv_open(server.target, &o);
		struct ringside_queue *q = ringside_queue(dev, 0);
		char *buf = drv_memory(dev, 512);

		for (unsigned round = 0; round < 3; round++) {
			for (uintptr_t i = 0; i < depth; i++)
				assert_int_equal(ringside_read(q, 0, buf, 512, (void *)i), 0);
			assert_int_equal(ringside_read(q, 0, buf, 512, NULL), -EAGAIN);
			assert_int_equal(ringside_flush(q, NULL), -EAGAIN);
			assert_int_equal(ringside_in_flight(q), depth);
			ringside_submit(q);
			assert_int_equal(drv_collect(q, DRV_WAIT, done, 1, &error), 1);
			/* As many as came back have room. */
			assert_int_equal(ringside_read(q, 0, buf, 512, NULL), 0);
			assert_int_equal(ringside_read(q, 0, buf, 512, NULL), -EAGAIN);
			ringside_submit(q);
			assert_int_equal(drv_collect(q, DRV_POLL, done, depth, &error), depth);
			assert_int_equal(ringside_in_flight(q), 0);
		}
		assert_int_equal(drv_stats(q).requests, 3 * (depth + 1));
		assert_int_equal(drv_stats(q).completions, 3 * (depth + 1));
		ringside_close(dev);
	}
	disk_server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_short_structs),
		cmocka_unit_test(test_open_refused),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_reconnect),
		cmocka_unit_test(test_close_with_requests_in_flight),
		cmocka_unit_test(test_read_write),
		cmocka_unit_test(test_flush_and_id),
		cmocka_unit_test(test_discard_and_zeroes),
		cmocka_unit_test(test_refused_ranges),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_not_supported),
		cmocka_unit_test(test_full),
	};

	drv_no_hang();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
