/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that answer badly, or say what cannot be: opening fails in time with a line that says
 * why, closing returns, and no descriptor is left.
 */
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

#include "base/clock.h"
#include "driver/driver_rig.h"
#include "fakes/fake_vhost_server.h"

#define TIMEOUT_MS 150u
#define PF(name)   (1ull << VHOST_USER_PROTOCOL_F_##name)

static struct fake_vhost fake;
static struct fake_vhost_config config;
static struct ringside_error err;

static struct ringside_options quick(void)
{
	struct ringside_options o = RINGSIDE_OPTIONS_INIT;

	o.timeout_ms = TIMEOUT_MS;
	return o;
}

/* Opens against a server of config, and closes; what open gave. */
static int try_open(const struct ringside_options *o)
{
	struct ringside_device *dev = (void *)1;
	unsigned fds = drv_fds();
	int ret;

	err.text[0] = '\0';
	fake_vhost_start(&fake, &config);
	ret = ringside_open(fake.target, o, &dev, &err);
	if (ret < 0) {
		assert_null(dev);
		assert_true(strlen(err.text) > 10);
		assert_non_null(strstr(err.text, fake.socket));
	} else {
		ringside_close(dev);
	}
	fake_vhost_stop(&fake);
	assert_int_equal(drv_fds(), fds);
	return ret;
}

static void test_good(void **state)
{
	fake_vhost_config_init(&config);
	assert_int_equal(try_open(NULL), 0);
	assert_int_equal(fake.messages[VHOST_USER_GET_VRING_BASE], 1);
	assert_int_equal(fake.messages[VHOST_USER_SET_OWNER], 1);
}

/* In the order of the handshake. */
static const uint32_t with_answer[] = {
	VHOST_USER_GET_FEATURES,      VHOST_USER_GET_PROTOCOL_FEATURES,
	VHOST_USER_GET_MAX_MEM_SLOTS, VHOST_USER_GET_QUEUE_NUM,
	VHOST_USER_GET_CONFIG,
};
static const uint32_t acknowledged[] = {
	VHOST_USER_SET_FEATURES,   VHOST_USER_ADD_MEM_REG,      VHOST_USER_SET_VRING_NUM,
	VHOST_USER_SET_VRING_BASE, VHOST_USER_SET_VRING_ADDR,   VHOST_USER_SET_VRING_CALL,
	VHOST_USER_SET_VRING_KICK, VHOST_USER_SET_VRING_ENABLE,
};

static const struct {
	enum fake_spoil spoil;
	int ret;
	const char *says;
} spoils[] = {
	{FAKE_SILENT, -ETIMEDOUT, "within 150 ms"},
	{FAKE_DRIP, -ETIMEDOUT, "within 150 ms"},
	{FAKE_CUT, -ENOTCONN, "closed the connection"},
	{FAKE_HANG_UP, -ENOTCONN, "closed the connection"},
	{FAKE_HALVES, 0, ""},
	{FAKE_OTHER, -EPROTO, "the answer to"},
	{FAKE_SHORT, -EPROTO, "the answer to"},
	{FAKE_LONG, -EPROTO, "the answer to"},
	{FAKE_HUGE, -EPROTO, "the answer to"},
	{FAKE_NO_FLAG, -EPROTO, "the answer to"},
	{FAKE_FDS, 0, ""},
	{FAKE_MANY_FDS, -EPROTO, "descriptors"},
};

static void spoil(uint32_t request, enum fake_spoil how, int ret, const char *says)
{
	struct ringside_options o = quick();
	uint64_t before = clock_now_ns(), took_ms;
	int got;

	fake_vhost_config_init(&config);
	config.spoil_request = request;
	config.spoil = how;
	got = try_open(&o);
	took_ms = (clock_now_ns() - before) / 1000000;
	if (got != ret || (ret < 0 && !strstr(err.text, says)))
		fail_msg("request %u spoiled by %d: %d, %s", request, how, got, err.text);
	if (ret == -ETIMEDOUT && took_ms < TIMEOUT_MS)
		fail_msg("request %u: given up after %llu ms", request,
			 (unsigned long long)took_ms);
}

static void test_spoiled_answers(void **state)
{
	for (unsigned s = 0; s < ARRAY_SIZE(spoils); s++) {
		for (unsigned r = 0; r < ARRAY_SIZE(with_answer); r++)
			spoil(with_answer[r], spoils[s].spoil, spoils[s].ret, spoils[s].says);
	}
}

static void test_spoiled_acknowledgements(void **state)
{
	for (unsigned r = 0; r < ARRAY_SIZE(acknowledged); r++) {
		for (unsigned s = 0; s < ARRAY_SIZE(spoils); s++)
			spoil(acknowledged[r], spoils[s].spoil, spoils[s].ret, spoils[s].says);
		spoil(acknowledged[r], FAKE_REFUSE, -EIO, "refused");
	}
}

/* The last message of a life: whatever comes back, closing returns, and within the timeout. */
static void test_spoiled_end(void **state)
{
	struct ringside_options o = quick();

	o.queues = 2;
	for (unsigned s = 0; s < ARRAY_SIZE(spoils); s++) {
		fake_vhost_config_init(&config);
		config.spoil_request = VHOST_USER_GET_VRING_BASE;
		config.spoil = spoils[s].spoil;
		assert_int_equal(try_open(&o), 0);
		/* One that does not answer is not asked again. */
		assert_int_equal(fake.messages[VHOST_USER_GET_VRING_BASE], spoils[s].ret ? 1 : 2);
	}
}

/* Messages that are not acknowledged: the fault shows at the next one. */
static void test_gone_without_acknowledgement(void **state)
{
	static const uint32_t requests[] = {VHOST_USER_GET_FEATURES, VHOST_USER_GET_CONFIG,
					    VHOST_USER_GET_PROTOCOL_FEATURES};
	struct ringside_options o = quick();

	for (unsigned i = 0; i < ARRAY_SIZE(requests); i++) {
		fake_vhost_config_init(&config);
		config.protocol_features &= ~PF(REPLY_ACK);
		config.spoil_request = requests[i];
		config.spoil = FAKE_HANG_UP;
		assert_int_equal(try_open(&o), -ENOTCONN);
	}
}

/* Listens, and takes nobody: its queue of connections is full. */
static void test_nobody_accepts(void **state)
{
	char folder[] = "/tmp/rs-drv-XXXXXX", target[128];
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), clients[16];
	struct ringside_options o = quick();
	struct ringside_device *dev;
	unsigned n = 0;

	assert_non_null(mkdtemp(folder));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/s", folder);
	snprintf(target, sizeof(target), "vhost-user-blk:%s", addr.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 0), 0);
	/* Connected, and never answered. */
	assert_int_equal(ringside_open(target, &o, &dev, &err), -ETIMEDOUT);
	for (; n < 16; n++) {
		clients[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (connect(clients[n], (struct sockaddr *)&addr, sizeof(addr)) < 0)
			break;
	}
	assert_true(n < 16 && errno == EAGAIN);
	assert_int_equal(ringside_open(target, &o, &dev, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, addr.sun_path));
	for (unsigned i = 0; i <= n; i++)
		close(clients[i]);
	close(fd);
	unlink(addr.sun_path);
	rmdir(folder);
}

/* ---- what a server may lack ---- */

static void lack(uint64_t features, uint64_t protocol_features, int ret, const char *says)
{
	fake_vhost_config_init(&config);
	config.features &= ~features;
	config.protocol_features &= ~protocol_features;
	assert_int_equal(try_open(NULL), ret);
	if (ret < 0 && !strstr(err.text, says))
		fail_msg("%s", err.text);
}

static void test_lacking(void **state)
{
	lack(VIRTIO_BIT(VIRTIO_F_VERSION_1), 0, -EOPNOTSUPP, "legacy");
	lack(VIRTIO_BIT(VHOST_USER_F_PROTOCOL_FEATURES), 0, -EOPNOTSUPP, "protocol features");
	lack(0, PF(CONFIG), -EOPNOTSUPP, "VHOST_USER_PROTOCOL_F_CONFIG");
	lack(~0ull, ~0ull, -EOPNOTSUPP, "");
	/* None of these is needed. */
	lack(VIRTIO_BIT(VIRTIO_RING_F_EVENT_IDX) | VIRTIO_BIT(VIRTIO_RING_F_INDIRECT_DESC), 0, 0,
	     "");
	lack(0, PF(MQ) | PF(REPLY_ACK) | PF(CONFIGURE_MEM_SLOTS), 0, "");
	lack(~(VIRTIO_BIT(VIRTIO_F_VERSION_1) | VIRTIO_BIT(VHOST_USER_F_PROTOCOL_FEATURES)),
	     ~PF(CONFIG), 0, "");
}

/* Only what we know is accepted. */
static void test_offers_everything(void **state)
{
	fake_vhost_config_init(&config);
	config.features = config.protocol_features = ~0ull;
	config.blk.size_max = 65536;
	assert_int_equal(try_open(NULL), 0);
	assert_int_equal(fake.features & VIRTIO_BIT(VIRTIO_F_RING_PACKED), 0);
	assert_int_equal(fake.features & VIRTIO_BIT(VIRTIO_F_ACCESS_PLATFORM), 0);
	assert_int_equal(fake.features & VIRTIO_BIT(26), 0); /* VHOST_F_LOG_ALL */
	assert_int_equal(fake.features & VIRTIO_BIT(VIRTIO_F_NOTIFICATION_DATA), 0);
	assert_int_equal(fake.protocol_features,
			 PF(MQ) | PF(REPLY_ACK) | PF(CONFIG) | PF(CONFIGURE_MEM_SLOTS));
}

static void test_queues(void **state)
{
	struct ringside_options o = RINGSIDE_OPTIONS_INIT;

	fake_vhost_config_init(&config);
	o.queues = 2;
	assert_int_equal(try_open(&o), 0);
	config.queue_num = 1;
	assert_int_equal(try_open(&o), -EINVAL);
	assert_non_null(strstr(err.text, "has 1 queue"));
	config.queue_num = 0;
	assert_int_equal(try_open(NULL), -EINVAL);
	config.queue_num = ~0ull;
	assert_int_equal(try_open(&o), 0);
	/* Without MQ there is one. */
	config.queue_num = 2;
	config.protocol_features &= ~PF(MQ);
	assert_int_equal(try_open(&o), -EINVAL);
	assert_int_equal(try_open(NULL), 0);
	assert_int_equal(fake.messages[VHOST_USER_GET_QUEUE_NUM], 0);
}

/* ---- a configuration that cannot be ---- */

static void test_block_size(void **state)
{
	static const uint32_t bad[] = {0, 1, 3, 256, 511, 513, 1000, 0x80000001, 0xffffffff};

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		fake_vhost_config_init(&config);
		config.blk.blk_size = bad[i];
		assert_int_equal(try_open(NULL), -EPROTO);
		assert_non_null(strstr(err.text, "block size"));
		/* Not looked at when it was not negotiated. */
		config.features &= ~VIRTIO_BIT(VIRTIO_BLK_F_BLK_SIZE);
		assert_int_equal(try_open(NULL), 0);
	}
}

static void test_capacity(void **state)
{
	static const uint64_t bad[] = {~0ull, 1ull << 63, (1ull << 55)};

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		fake_vhost_config_init(&config);
		config.blk.capacity = bad[i];
		assert_int_equal(try_open(NULL), -EPROTO);
		assert_non_null(strstr(err.text, "capacity"));
	}
}

/* Odd, but a disk: what it takes can be said, and what it does not take is refused. */
static void open_odd(struct ringside_device **dev, struct ringside_info *info)
{
	fake_vhost_start(&fake, &config);
	*dev = drv_open(fake.target, NULL);
	*info = drv_info(*dev);
}

static int read_one(struct ringside_device *dev, uint64_t at, size_t len)
{
	struct ringside_queue *q = ringside_queue(dev, 0);
	char *buf = drv_memory(dev, len);
	int ret = ringside_read(q, at, buf, len, NULL);

	ret = ret < 0 ? ret : drv_finish(q);
	assert_int_equal(ringside_memory_free(dev, buf, NULL), 0);
	return ret;
}

static void close_odd(struct ringside_device *dev)
{
	ringside_close(dev);
	fake_vhost_stop(&fake);
}

static void test_odd_configurations(void **state)
{
	struct ringside_device *dev;
	struct ringside_info info;

	/* Nothing on it. */
	fake_vhost_config_init(&config);
	config.blk.capacity = 0;
	open_odd(&dev, &info);
	assert_int_equal(info.capacity_bytes, 0);
	assert_int_equal(read_one(dev, 0, 512), -ERANGE);
	close_odd(dev);

	/* Less than a block, and a block with a tail. */
	for (unsigned sectors = 1; sectors < 16; sectors += 8) {
		fake_vhost_config_init(&config);
		config.blk.capacity = sectors;
		config.blk.blk_size = 4096;
		open_odd(&dev, &info);
		assert_int_equal(info.capacity_bytes, sectors < 8 ? 0 : 4096);
		assert_int_equal(read_one(dev, 0, 4096), sectors < 8 ? -ERANGE : 0);
		assert_int_equal(read_one(dev, 0, 8192), -ERANGE);
		close_odd(dev);
	}

	/* The largest there can be. */
	fake_vhost_config_init(&config);
	config.blk.capacity = (1ull << 55) - 1;
	open_odd(&dev, &info);
	assert_true(info.capacity_bytes == 0 - 512ull);
	assert_int_equal(read_one(dev, info.capacity_bytes, 512), -ERANGE);
	assert_int_equal(read_one(dev, info.capacity_bytes - 512, 512),
			 -EIO); /* the fake's limit */
	close_odd(dev);

	/* seg_max 0 means that nothing was said; 1 means one. */
	for (uint32_t seg_max = 0; seg_max < 2; seg_max++) {
		fake_vhost_config_init(&config);
		config.blk.seg_max = seg_max;
		open_odd(&dev, &info);
		assert_int_equal(info.max_segments, seg_max ? 1 : 16);
		assert_int_equal(read_one(dev, 512, 1024), 0);
		close_odd(dev);
	}

	/* No request fits. */
	fake_vhost_config_init(&config);
	config.features |= VIRTIO_BIT(VIRTIO_BLK_F_SIZE_MAX);
	config.blk.size_max = 511;
	open_odd(&dev, &info);
	assert_int_equal(info.max_transfer_bytes, 0);
	assert_int_equal(read_one(dev, 0, 512), -ERANGE);
	close_odd(dev);

	/* No limits. */
	fake_vhost_config_init(&config);
	config.features |= VIRTIO_BIT(VIRTIO_BLK_F_SIZE_MAX);
	config.blk.size_max = config.blk.seg_max = 0xffffffff;
	config.blk.max_discard_sectors = config.blk.max_write_zeroes_sectors = 0;
	open_odd(&dev, &info);
	assert_int_equal(info.max_segments, 16);
	assert_true(info.max_transfer_bytes && info.max_transfer_bytes % 512 == 0);
	assert_true(info.max_discard_bytes == 0xffffffffull * 512);
	assert_true(info.max_write_zeroes_bytes == 0xffffffffull * 512);
	assert_int_equal(ringside_discard(ringside_queue(dev, 0), 0, 1 << 20, NULL), 0);
	assert_int_equal(drv_finish(ringside_queue(dev, 0)), 0);
	close_odd(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_spoiled_answers),
		cmocka_unit_test(test_spoiled_acknowledgements),
		cmocka_unit_test(test_spoiled_end),
		cmocka_unit_test(test_gone_without_acknowledgement),
		cmocka_unit_test(test_nobody_accepts),
		cmocka_unit_test(test_lacking),
		cmocka_unit_test(test_offers_everything),
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_block_size),
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_odd_configurations),
	};

	drv_no_hang();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
