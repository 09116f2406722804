/* SPDX-License-Identifier: Apache-2.0 */
/* The driver half of a virtqueue: its three steps, its descriptors, devices that misbehave. */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/fd.h"
#include "ring/virtq_driver.h"
#include "spec/virtio.h"

#define IOVA 0x40000000ull

static struct virtq_driver drv;
static struct virtq_driver_config config;
static struct virtq_buf bufs[64];
static uint16_t device_used_idx;
static void *cookie;
static uint32_t written;

static void start(uint16_t size, uint16_t table_len, uint16_t start_idx, bool event_idx)
{
	struct virtq_driver_layout at;
	struct error err;

	virtq_driver_layout(size, table_len, &at);
	config = (struct virtq_driver_config){.size = size,
					      .table_len = table_len,
					      .start_idx = start_idx,
					      .event_idx = event_idx,
					      .memory = aligned_alloc(64, at.len_bytes),
					      .memory_iova = IOVA,
					      .kick_fd = eventfd_create()};
	memset(config.memory, 0xff, at.len_bytes); /* recycled memory */
	assert_int_equal(virtq_driver_init(&drv, &config, &err), 0);
	device_used_idx = start_idx;
	for (unsigned i = 0; i < ARRAY_SIZE(bufs); i++)
		bufs[i] = (struct virtq_buf){0x1000 * (i + 1), 100 + i};
}

static void end(void)
{
	virtq_driver_fini(&drv);
	fd_close(&config.kick_fd);
	free(config.memory);
}

static uint16_t head_at(uint16_t idx)
{
	return le16toh(drv.avail->ring[idx & drv.mask]);
}

/* The device completes this head, without publishing. */
static void device_pushes(uint32_t id, uint32_t len)
{
	struct vring_used_elem *e = &drv.used->ring[device_used_idx++ & drv.mask];

	e->id = htole32(id);
	e->len = htole32(len);
}

static void device_publishes(void)
{
	drv.used->idx = htole16(device_used_idx);
}

static int put(unsigned out, unsigned in, uintptr_t tag)
{
	return virtq_driver_put(&drv, bufs, out, in, (void *)tag);
}

static void expect_desc(const struct vring_desc *d, unsigned buf, uint16_t flags)
{
	assert_int_equal(le64toh(d->addr), bufs[buf].iova);
	assert_int_equal(le32toh(d->len), bufs[buf].len_bytes);
	assert_int_equal(le16toh(d->flags), flags);
}

static void test_layout(void **state)
{
	struct virtq_driver_layout at;

	for (unsigned size = 1; size <= 32768; size *= 2) {
		for (uint16_t table = 0; table < 130; table += 43) {
			virtq_driver_layout((uint16_t)size, table, &at);
			assert_int_equal(at.desc_offset % VIRTQ_DESC_ALIGN, 0);
			assert_int_equal(at.avail_offset % 64, 0);
			assert_int_equal(at.used_offset % 64, 0);
			assert_int_equal(at.tables_offset % 64, 0);
			assert_true(at.avail_offset >= at.desc_offset + size * 16);
			assert_true(at.used_offset >= at.avail_offset + 6 + size * 2);
			assert_true(at.tables_offset >= at.used_offset + 6 + size * 8);
			assert_true(at.len_bytes >= at.tables_offset + 16ull * size * table);
		}
	}
}

static void test_init_refused(void **state)
{
	static const uint16_t sizes[] = {0, 3, 100, 32769, 65535};
	struct virtq_driver d;
	struct virtq_driver_config c;
	struct error err;

	start(16, 0, 0, true);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		c = config;
		c.size = sizes[i];
		assert_int_equal(virtq_driver_init(&d, &c, &err), -EINVAL);
	}
	c = config;
	c.memory = (char *)c.memory + 8;
	assert_int_equal(virtq_driver_init(&d, &c, &err), -EINVAL);
	c = config;
	c.memory_iova += 8;
	assert_int_equal(virtq_driver_init(&d, &c, &err), -EINVAL);
	end();
}

static void test_direct(void **state)
{
	uint16_t head, next;

	start(16, 0, 65535, true);
	assert_int_equal(put(2, 1, 1), 0);
	head = head_at(65535);
	expect_desc(&drv.desc[head], 0, VRING_DESC_F_NEXT);
	next = le16toh(drv.desc[head].next);
	expect_desc(&drv.desc[next], 1, VRING_DESC_F_NEXT);
	next = le16toh(drv.desc[next].next);
	expect_desc(&drv.desc[next], 2, VRING_DESC_F_WRITE);
	/* Not to be seen before it is published. */
	assert_int_equal(le16toh(drv.avail->idx), 65535);
	assert_int_equal(put(0, 1, 2), 0);
	expect_desc(&drv.desc[head_at(0)], 0, VRING_DESC_F_WRITE);
	assert_int_equal(le16toh(drv.avail->idx), 65535);
	virtq_driver_publish(&drv);
	assert_int_equal(le16toh(drv.avail->idx), 1);
	end();
}

static void test_room(void **state)
{
	start(16, 0, 0, true);
	assert_int_equal(put(0, 0, 0), -EINVAL);
	assert_int_equal(put(16, 1, 0), -E2BIG);
	assert_int_equal(put(8, 8, 1), 0); /* all of the ring */
	assert_int_equal(put(1, 0, 2), -ENOSPC);
	virtq_driver_publish(&drv);
	device_pushes(head_at(0), 1);
	device_publishes();
	assert_int_equal(virtq_driver_take(&drv, &cookie, &written), 1);
	/* 5 + 5 + 5, the middle one comes back, and its five are one chain again. */
	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(put(3, 2, i), 0);
	assert_int_equal(put(1, 1, 9), -ENOSPC);
	assert_int_equal(put(1, 0, 9), 0);
	virtq_driver_publish(&drv);
	device_pushes(head_at(2), 1);
	device_publishes();
	assert_int_equal(virtq_driver_take(&drv, &cookie, &written), 1);
	assert_ptr_equal(cookie, (void *)1);
	assert_int_equal(put(6, 0, 4), -ENOSPC);
	assert_int_equal(put(5, 0, 4), 0);
	end();
}

static void test_indirect(void **state)
{
	const struct vring_desc *ref, *table;

	start(2, 8, 0, true);
	assert_int_equal(put(3, 5, 1), 0);
	ref = &drv.desc[head_at(0)];
	assert_int_equal(le16toh(ref->flags), VRING_DESC_F_INDIRECT);
	assert_int_equal(le32toh(ref->len), 8 * 16);
	table = (void *)((char *)config.memory + (le64toh(ref->addr) - IOVA));
	for (unsigned i = 0; i < 8; i++) {
		expect_desc(&table[i], i,
			    (uint16_t)((i < 7 ? VRING_DESC_F_NEXT : 0) |
				       (i >= 3 ? VRING_DESC_F_WRITE : 0)));
		if (i < 7)
			assert_int_equal(le16toh(table[i].next), i + 1);
	}
	/* A single buffer needs no table; more than the table holds goes direct, if it fits. */
	assert_int_equal(put(9, 0, 2), -E2BIG);
	assert_int_equal(put(1, 0, 2), 0);
	expect_desc(&drv.desc[head_at(1)], 0, 0);
	assert_int_equal(put(2, 0, 3), -ENOSPC);
	end();
	start(1, 8, 0, true);
	assert_int_equal(put(1, 1, 1), 0);
	assert_int_equal(put(1, 0, 2), -ENOSPC);
	end();
	start(16, 2, 0, true);
	assert_int_equal(put(2, 1, 1), 0);
	expect_desc(&drv.desc[head_at(0)], 0, VRING_DESC_F_NEXT);
	end();
}

/* ---- kicks ---- */

/* Who publishes in a loop does not take the device's cache line away for nothing. */
static void test_publishing_nothing_writes_nothing(void **state)
{
	start(8, 4, 5, true);
	drv.avail->idx = htole16(77);
	virtq_driver_publish(&drv);
	assert_int_equal(le16toh(drv.avail->idx), 77);
	assert_int_equal(put(1, 1, 1), 0);
	virtq_driver_publish(&drv);
	assert_int_equal(le16toh(drv.avail->idx), 6);
	drv.avail->idx = htole16(77);
	virtq_driver_publish(&drv);
	assert_int_equal(le16toh(drv.avail->idx), 77);
	end();
}

static uint64_t publish_and_tell(unsigned n)
{
	uint64_t before = drv.stats.kicks_sent;
	bool kicked;

	for (unsigned i = 0; i < n; i++)
		assert_int_equal(put(1, 0, i), 0);
	virtq_driver_publish(&drv);
	kicked = virtq_driver_tell(&drv);
	assert_int_equal(eventfd_clear(config.kick_fd), kicked);
	assert_false(virtq_driver_tell(&drv)); /* nothing is new any more */
	return drv.stats.kicks_sent - before;
}

static void test_kicks_event_idx(void **state)
{
	start(64, 0, 65530, true);
	/* A fresh ring is armed for its first entry. */
	assert_int_equal(publish_and_tell(1), 1);
	assert_int_equal(publish_and_tell(3), 0);
	*drv.avail_event = htole16((uint16_t)(65530 + 4));
	drv.used->flags = htole16(VRING_USED_F_NO_NOTIFY); /* means nothing here */
	assert_int_equal(publish_and_tell(1), 1);
	*drv.avail_event = htole16((uint16_t)(65530 + 8));
	assert_int_equal(publish_and_tell(3), 0); /* 65535..1: not yet */
	assert_int_equal(publish_and_tell(4), 1); /* passes 2 */
	assert_int_equal(publish_and_tell(4), 0);
	assert_int_equal(drv.stats.kicks_suppressed, 3);
	end();
}

static void test_kicks_flags(void **state)
{
	start(64, 0, 65530, false);
	assert_int_equal(publish_and_tell(1), 1);
	*drv.avail_event = htole16(1000); /* means nothing here */
	assert_int_equal(publish_and_tell(5), 1);
	drv.used->flags = htole16(VRING_USED_F_NO_NOTIFY);
	assert_int_equal(publish_and_tell(5), 0);
	end();
}

static void test_no_kick_fd(void **state)
{
	start(64, 0, 0, false);
	drv.kick.fd = -1;
	assert_int_equal(publish_and_tell(5), 0);
	end();
}

/* ---- completions ---- */

static void test_take(void **state)
{
	start(64, 0, 65530, true);
	for (unsigned round = 0; round < 1000; round++) {
		uint16_t first = drv.avail_idx;

		for (uintptr_t i = 0; i < 20; i++)
			assert_int_equal(put(1, 2, i), 0);
		virtq_driver_publish(&drv);
		assert_int_equal(virtq_driver_take(&drv, &cookie, &written), 0);
		/* Any order. */
		for (uint16_t i = 0; i < 20; i++)
			device_pushes(head_at((uint16_t)(first + i * 7 % 20)), i);
		assert_int_equal(virtq_driver_take(&drv, &cookie, &written), 0);
		device_publishes();
		for (uintptr_t i = 0; i < 20; i++) {
			assert_int_equal(virtq_driver_take(&drv, &cookie, &written), 1);
			assert_ptr_equal(cookie, (void *)(i * 7 % 20));
			assert_int_equal(written, i);
		}
		assert_int_equal(drv.nfree, 64);
		assert_int_equal(drv.in_flight, 0);
	}
	assert_int_equal(drv.stats.completions, 20000);
	end();
}

static void test_bad_device(void **state)
{
	for (unsigned what = 0; what < 6; what++) {
		start(16, 0, 65530, true);
		assert_int_equal(put(1, 1, 1), 0);
		assert_int_equal(put(1, 1, 2), 0);
		virtq_driver_publish(&drv);
		if (what == 0)
			device_pushes(16, 0); /* no such descriptor */
		else if (what == 1)
			device_pushes(0xffff0000u | head_at(65530), 0);
		else if (what == 2)
			device_pushes(le16toh(drv.desc[head_at(65530)].next), 0); /* not a head */
		else if (what == 3)
			device_pushes(15, 0); /* not in flight */
		else if (what == 4)
			device_used_idx = (uint16_t)(device_used_idx + 3); /* more than we sent */
		else
			device_used_idx--; /* backwards */
		device_publishes();
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(virtq_driver_take(&drv, &cookie, &written), -EPROTO);
		assert_int_equal(put(1, 0, 3), -EPROTO);
		end();
	}
	/* One completion twice. */
	start(16, 0, 0, true);
	put(1, 0, 1);
	put(1, 0, 2);
	virtq_driver_publish(&drv);
	device_pushes(head_at(0), 0);
	device_pushes(head_at(0), 0);
	device_publishes();
	assert_int_equal(virtq_driver_take(&drv, &cookie, &written), 1);
	assert_int_equal(virtq_driver_take(&drv, &cookie, &written), -EPROTO);
	end();
}

/* What the device scribbles into the descriptors does not lead us astray. */
static void test_descriptors_overwritten(void **state)
{
	start(16, 0, 0, true);
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(put(2, 2, i), 0);
	virtq_driver_publish(&drv);
	memset(drv.desc, 0xff, 16 * 16);
	for (uint16_t i = 0; i < 4; i++)
		device_pushes(head_at(i), 0);
	device_publishes();
	for (uintptr_t i = 0; i < 4; i++) {
		assert_int_equal(virtq_driver_take(&drv, &cookie, &written), 1);
		assert_ptr_equal(cookie, (void *)i);
	}
	assert_int_equal(put(8, 8, 1), 0);
	end();
}

/* ---- calls ---- */

static void test_call_on_event_idx(void **state)
{
	start(16, 0, 65534, true);
	assert_false(virtq_driver_call_on(&drv, 5)); /* nothing in flight: the next one */
	assert_int_equal(le16toh(*drv.used_event), 65534);
	for (uintptr_t i = 0; i < 4; i++)
		put(1, 0, i);
	virtq_driver_publish(&drv);
	assert_false(virtq_driver_call_on(&drv, 3));
	assert_int_equal(le16toh(*drv.used_event), 0);
	assert_false(virtq_driver_call_on(&drv, 100)); /* never more than can come */
	assert_int_equal(le16toh(*drv.used_event), 1);
	assert_false(virtq_driver_call_on(&drv, 0));
	assert_int_equal(le16toh(*drv.used_event), 65534);
	device_pushes(head_at(65534), 0);
	device_pushes(head_at(65535), 0);
	device_publishes();
	assert_true(virtq_driver_call_on(&drv, 1)); /* it raced us */
	assert_true(virtq_driver_call_on(&drv, 2));
	assert_false(virtq_driver_call_on(&drv, 3));
	assert_int_equal(virtq_driver_take(&drv, &cookie, &written), 1);
	assert_int_equal(virtq_driver_take(&drv, &cookie, &written), 1);
	assert_false(virtq_driver_call_on(&drv, 1));
	assert_int_equal(le16toh(*drv.used_event), 0);
	virtq_driver_call_off(&drv);
	assert_int_equal(le16toh(*drv.used_event), 65535); /* behind us */
	assert_int_equal(drv.avail->flags, 0);
	end();
}

static void test_call_on_flags(void **state)
{
	start(16, 0, 0, false);
	put(1, 0, 0);
	put(1, 0, 1);
	virtq_driver_publish(&drv);
	virtq_driver_call_off(&drv);
	assert_int_equal(le16toh(drv.avail->flags), VRING_AVAIL_F_NO_INTERRUPT);
	assert_false(virtq_driver_call_on(&drv, 2));
	assert_int_equal(drv.avail->flags, 0);
	device_pushes(head_at(0), 0);
	device_publishes();
	assert_true(virtq_driver_call_on(&drv, 2)); /* without EVENT_IDX each one counts */
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_publishing_nothing_writes_nothing),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_init_refused),
		cmocka_unit_test(test_direct),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_indirect),
		cmocka_unit_test(test_kicks_event_idx),
		cmocka_unit_test(test_kicks_flags),
		cmocka_unit_test(test_no_kick_fd),
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_bad_device),
		cmocka_unit_test(test_descriptors_overwritten),
		cmocka_unit_test(test_call_on_event_idx),
		cmocka_unit_test(test_call_on_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
