/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device half of a virtqueue but for its chains: the two indexes, notifications and calls by
 * their exact number, start, stop, memory changes, broken rings.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <endian.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "fakes/ring_rig.h"

static struct ring_rig rig;
static struct iovec iov[16];
static struct virtq_chain chain;

static void start(uint16_t size, uint16_t start_idx, bool event_idx)
{
	ring_rig_init(&rig, &(struct ring_rig_config){
				    .size = size, .start_idx = start_idx, .event_idx = event_idx});
	assert_int_equal(ring_rig_event(rig.call_fd, 0), 1); /* a started ring owes one */
	for (unsigned i = 0; i < size; i++)
		ring_rig_desc(&rig, (uint16_t)i, RIG_DATA, 16, 0, 0);
}

static void end(void)
{
	ring_rig_fini(&rig);
}

static int pop(void)
{
	chain = (struct virtq_chain){.iov = iov, .max = ARRAY_SIZE(iov)};
	return virtq_pop(&rig.vq, &chain);
}

/* n requests go through, completed in one batch. */
static void batch(unsigned n)
{
	struct virtq_token tokens[64];

	assert_true(n <= ARRAY_SIZE(tokens));
	for (unsigned i = 0; i < n; i++)
		ring_rig_avail(&rig, (uint16_t)(i & rig.drv.mask));
	defer_begin();
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(pop(), 1);
		tokens[i] = chain.token;
	}
	for (unsigned i = 0; i < n; i++)
		virtq_push(&rig.vq, &tokens[i], i);
	defer_end();
}

static void set_used_event(uint16_t idx)
{
	*rig.drv.used_event = htole16(idx);
}

/* ---- indexes ---- */

static void test_full_ring(void **state)
{
	static const uint16_t sizes[] = {1, 2, 16, 128, 1024, 32768};
	static const uint16_t starts[] = {0, 1, 32768, 65530, 65535};

	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		for (size_t b = 0; b < ARRAY_SIZE(starts); b++) {
			uint16_t size = sizes[s];

			start(size, starts[b], true);
			for (unsigned round = 0; round < 3; round++) {
				uint16_t first = ring_rig_used_idx(&rig);
				uint32_t id, len;

				/* All heads with one index update (B09: full is not empty). */
				for (unsigned i = 0; i < size; i++)
					rig.drv.avail->ring[(first + i) & rig.drv.mask] =
						htole16((uint16_t)(size - 1 - i));
				ring_rig_set_avail_idx(&rig, (uint16_t)(first + size));
				assert_true(rig.vq.queue.ring->pending(&rig.vq.queue));
				defer_begin();
				for (unsigned i = 0; i < size; i++) {
					assert_int_equal(pop(), 1);
					assert_int_equal(chain.token.head, size - 1 - i);
					virtq_push(&rig.vq, &chain.token, i);
				}
				assert_int_equal(pop(), 0);
				/* Of a long batch some are to be seen already. */
				assert_int_equal(ring_rig_used_idx(&rig),
						 (uint16_t)(first + size - size % 8));
				defer_end();
				assert_int_equal(ring_rig_used_idx(&rig), (uint16_t)(first + size));
				ring_rig_used(&rig, (uint16_t)(first + size - 1), &id, &len);
				assert_int_equal(id, 0);
				assert_int_equal(len, size - 1);
			}
			assert_int_equal(rig.vq.queue.stats.requests, 3 * size);
			assert_int_equal(rig.vq.queue.stats.batches, 3);
			end();
		}
	}
}

static void test_index_is_read_once_a_batch(void **state)
{
	start(16, 0, true);
	ring_rig_avail(&rig, 0);
	ring_rig_avail(&rig, 1);
	assert_int_equal(pop(), 1);
	ring_rig_set_avail_idx(&rig, 1); /* taken back: too late */
	assert_int_equal(pop(), 1);
	assert_int_equal(chain.token.head, 1);
	rig.vq.in_flight = rig.vm->in_flight = 0;
	end();
}

static void test_start_refused(void **state)
{
	static const uint16_t sizes[] = {0, 3, 12, 32769, 65535};
	struct virtq vq;
	struct virtq_config good, c;
	struct error err;

	start(16, 0, true);
	good = rig.vq_config;
	virtq_init(&vq);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		c = good;
		c.size = sizes[i];
		assert_int_equal(virtq_start(&vq, &c, &err), -EINVAL);
	}
	for (unsigned part = 0; part < 3; part++) {
		uint64_t parts_len[3] = {256, 38, 134};
		uint64_t last = RIG_USER + RIG_REGION_BYTES;

		for (unsigned bad = 0; bad < 4; bad++) {
			uint64_t *addr;

			c = good;
			addr = part == 0 ? &c.desc_user : part == 1 ? &c.avail_user : &c.used_user;
			if (bad == 0)
				*addr = RIG_UNMAPPED;
			else if (bad == 1)
				*addr += 1; /* misaligned */
			else if (bad == 2)
				*addr = UINT64_MAX - 15;
			else /* as far as the event word, one byte over the end */
				*addr = (last - parts_len[part] + 16) & ~15ull;
			assert_int_equal(virtq_start(&vq, &c, &err), -EINVAL);
			assert_int_equal(vq.queue.state, QUEUE_STOPPED);
		}
	}
	end();
}

/* B27: another driver has made the ring anew, or left an index in it. */
static void test_used_index_from_ring(void **state)
{
	start(16, 100, true);
	batch(7);
	assert_int_equal(ring_rig_used_idx(&rig), 107);
	ring_rig_stop(&rig);
	ring_rig_release(&rig);
	rig.drv.used->idx = htole16(0);
	ring_rig_set_avail_idx(&rig, 0);
	ring_rig_start(&rig, 0);
	batch(2);
	assert_int_equal(ring_rig_used_idx(&rig), 2);
	assert_int_equal(virtq_base(&rig.vq), 2);
	end();
}

/* ---- broken rings ---- */

static void expect_broken(const char *why)
{
	assert_int_equal(rig.vq.queue.state, QUEUE_BROKEN);
	assert_non_null(strstr(rig.vq.broken_why, why));
	assert_int_equal(rig.broken, 1);
	assert_int_equal(ring_rig_event(rig.err_fd, 0), 1);
	/* Sticky and silent, whatever the driver does. */
	for (unsigned i = 0; i < 20; i++) {
		ring_rig_avail(&rig, 0);
		assert_int_equal(pop(), -EPROTO);
		assert_int_equal(service_run(&rig.vq.queue, 16), SERVICE_IDLE);
		assert_int_equal(service_kick(&rig.vq.queue, 16), SERVICE_IDLE);
		assert_false(service_poll_end(&rig.vq.queue));
	}
	assert_int_equal(rig.broken, 1);
	assert_int_equal(ring_rig_event(rig.err_fd, 0), 0);
	/* A new err eventfd is told, too. */
	virtq_set_err(&rig.vq, rig.err_fd);
	assert_int_equal(ring_rig_event(rig.err_fd, 0), 1);
}

static void test_avail_jump(void **state)
{
	static const uint16_t jumps[] = {17, 18, 32768, 65535};

	for (size_t i = 0; i < ARRAY_SIZE(jumps); i++) {
		start(16, 65530, true);
		batch(3);
		ring_rig_event(rig.call_fd, 0);
		ring_rig_set_avail_idx(&rig, (uint16_t)(ring_rig_avail_idx(&rig) + jumps[i]));
		assert_int_equal(pop(), -EPROTO);
		expect_broken("avail index");
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 0);
		assert_int_equal(virtq_base(&rig.vq), 65533);
		/* Recovers by a restart. */
		ring_rig_stop(&rig);
		assert_int_equal(rig.drained, 1);
		ring_rig_release(&rig);
		ring_rig_set_avail_idx(&rig, 65533);
		ring_rig_start(&rig, 65533);
		batch(16);
		assert_int_equal(rig.broken, 1);
		end();
	}
}

static void test_head_out_of_range(void **state)
{
	static const uint16_t heads[] = {16, 17, 32768, 65535};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		struct virtq_token good;

		start(16, 0, true);
		ring_rig_avail(&rig, 3);
		ring_rig_avail(&rig, heads[i]);
		assert_int_equal(pop(), 1);
		good = chain.token;
		assert_int_equal(pop(), -EPROTO);
		expect_broken("descriptor");
		/* What was taken before is completed. */
		virtq_push(&rig.vq, &good, 16);
		assert_int_equal(ring_rig_used_idx(&rig), 1);
		end();
	}
}

/* ---- calls ---- */

static void test_calls_event_idx(void **state)
{
	static const uint16_t starts[] = {0, 65530};

	for (size_t b = 0; b < ARRAY_SIZE(starts); b++) {
		uint16_t at = starts[b];

		start(16, at, true);
		/* After a start what was signalled is not known: one call, whatever it says. */
		set_used_event((uint16_t)(at + 1000));
		batch(1);
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 1);
		at = (uint16_t)(at + 1);
		/* Far away: none. */
		batch(5);
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 0);
		at = (uint16_t)(at + 5);
		/* The next one: one call a batch, and only when it is passed. */
		set_used_event(at);
		batch(16);
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 1);
		at = (uint16_t)(at + 16);
		batch(16);
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 0);
		at = (uint16_t)(at + 16);
		/* The eighth from here. */
		set_used_event((uint16_t)(at + 7));
		batch(7);
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 0);
		batch(1);
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 1);
		/* NO_INTERRUPT means nothing here. */
		at = (uint16_t)(at + 8);
		rig.drv.avail->flags = htole16(VRING_AVAIL_F_NO_INTERRUPT);
		set_used_event(at);
		batch(1);
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 1);
		assert_int_equal(rig.vq.queue.stats.calls_sent, 4);
		assert_int_equal(rig.vq.queue.stats.calls_suppressed, 3);
		assert_int_equal(rig.vq.queue.stats.batches, 7);
		end();
	}
}

static void test_calls_flags(void **state)
{
	start(16, 65530, false);
	for (unsigned i = 0; i < 10; i++) {
		rig.drv.avail->flags = htole16(0);
		set_used_event((uint16_t)(ring_rig_used_idx(&rig) + 1000)); /* means nothing here */
		batch(1 + i);
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 1);
		rig.drv.avail->flags = htole16(VRING_AVAIL_F_NO_INTERRUPT);
		batch(1 + i);
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 0);
	}
	end();
}

/* Nothing is published and nobody told before the section ends, or when nothing was pushed. */
static void test_flush(void **state)
{
	start(16, 0, false);
	virtq_flush(&rig.vq);
	assert_int_equal(rig.vq.queue.stats.batches, 0);
	ring_rig_avail(&rig, 0);
	assert_int_equal(pop(), 1);
	virtq_push(&rig.vq, &chain.token, 1); /* outside a section: at once */
	assert_int_equal(ring_rig_used_idx(&rig), 1);
	assert_int_equal(ring_rig_event(rig.call_fd, 0), 1);
	end();
}

/* In a nap: published at once, the call waits while there is more to come, and is never lost. */
static void test_call_waits_in_a_nap(void **state)
{
	struct virtq_token tokens[4];

	for (unsigned how = 0; how < 4; how++) {
		start(16, 65529, true);
		batch(1); /* the first one is never kept back (B11) */
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 1);
		set_used_event(ring_rig_used_idx(&rig));
		for (unsigned i = 0; i < 4; i++) {
			ring_rig_avail(&rig, (uint16_t)i);
			assert_int_equal(pop(), 1);
			tokens[i] = chain.token;
		}
		rig.vq.queue.napping = true;
		for (unsigned i = 0; i < 3; i++)
			virtq_push(&rig.vq, &tokens[i], 0);
		assert_int_equal(ring_rig_used_idx(&rig), (uint16_t)(65530 + 3));
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 0);
		assert_int_equal(rig.resumed, 3);
		if (how == 0) { /* the last one: nothing more is to come */
			virtq_push(&rig.vq, &tokens[3], 0);
		} else if (how == 1) { /* the nap is over */
			rig.vq.queue.napping = false;
			rig.vq.queue.ring->flush(&rig.vq.queue);
		} else if (how == 2) { /* it is stopped in its nap */
			virtq_stop(&rig.vq);
			rig.vq.queue.state = QUEUE_RUNNING; /* and was not */
		} else { /* the driver has looked and waits for the fourth only */
			set_used_event((uint16_t)(65530 + 3));
			rig.vq.queue.napping = false;
			rig.vq.queue.ring->flush(&rig.vq.queue);
		}
		assert_int_equal(ring_rig_event(rig.call_fd, 0), how < 3);
		if (how)
			virtq_push(&rig.vq, &tokens[3], 0);
		assert_int_equal(rig.vq.queue.stats.batches,
				 rig.vq.queue.stats.calls_sent +
					 rig.vq.queue.stats.calls_suppressed);
		end();
	}
}

/* B11: a restarted ring signals its start and its first completion. */
static void test_calls_after_restart(void **state)
{
	static const uint16_t used[] = {0, 1, 40, 65535};

	for (size_t i = 0; i < ARRAY_SIZE(used); i++) {
		start(64, (uint16_t)(used[i] - 40), true);
		set_used_event((uint16_t)(used[i] + 20000));
		batch(40);
		assert_int_equal(ring_rig_used_idx(&rig), used[i]);
		ring_rig_stop(&rig);
		assert_int_equal(virtq_base(&rig.vq), used[i]);
		ring_rig_release(&rig);
		ring_rig_event(rig.call_fd, 0);
		ring_rig_start(&rig, used[i]);
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 1);
		batch(1);
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 1);
		batch(1);
		assert_int_equal(ring_rig_event(rig.call_fd, 0), 0);
		end();
	}
}

/* Completions without a call eventfd are made good when one comes. */
static void test_set_call(void **state)
{
	start(64, 0, true);
	batch(1);
	assert_int_equal(ring_rig_event(rig.call_fd, 0), 1);
	virtq_set_call(&rig.vq, -1);
	/* Once round and five less, so that a stale index would look like the future. */
	for (unsigned i = 0; i < 65531; i++)
		batch(1);
	virtq_set_call(&rig.vq, rig.call_fd);
	assert_int_equal(ring_rig_event(rig.call_fd, 0), 1);
	set_used_event(ring_rig_used_idx(&rig));
	batch(6);
	assert_int_equal(ring_rig_event(rig.call_fd, 0), 1);
	end();
}

/* ---- notifications ---- */

static void test_notify(void **state)
{
	for (unsigned event_idx = 0; event_idx < 2; event_idx++) {
		struct queue *q = &rig.vq.queue;

		start(16, 65535, event_idx);
		assert_int_equal(rig.drv.used->flags, 0);
		q->ring->notify_off(q);
		if (event_idx)
			assert_int_equal(le16toh(*rig.drv.avail_event), 65534);
		else
			assert_int_equal(le16toh(rig.drv.used->flags), VRING_USED_F_NO_NOTIFY);
		assert_false(q->ring->notify_on(q));
		if (event_idx)
			assert_int_equal(le16toh(*rig.drv.avail_event), 65535);
		assert_int_equal(rig.drv.used->flags, 0);
		batch(4);
		assert_false(q->ring->notify_on(q));
		if (event_idx)
			assert_int_equal(le16toh(*rig.drv.avail_event), 3);
		ring_rig_avail(&rig, 0);
		assert_true(q->ring->notify_on(q)); /* the driver raced us */
		assert_int_equal(pop(), 1);
		virtq_push(&rig.vq, &chain.token, 0);
		end();
	}
}

/* Hints for whoever decides how long to look. */
static void test_hints(void **state)
{
	struct queue *q = &rig.vq.queue;

	start(16, 65530, true);
	assert_int_equal(q->ring->backlog(q), 0);
	set_used_event(65530);
	for (unsigned i = 0; i < 10; i++)
		ring_rig_avail(&rig, (uint16_t)i);
	assert_int_equal(q->ring->backlog(q), 10);
	assert_int_equal(q->ring->outstanding(q), 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(pop(), 1);
	assert_int_equal(q->ring->backlog(q), 0);
	assert_int_equal(q->ring->outstanding(q), 10);
	set_used_event(2);
	assert_int_equal(q->ring->outstanding(q), 2);
	set_used_event(5); /* ahead of us, or far behind: it tells nothing */
	assert_int_equal(q->ring->outstanding(q), 0);
	set_used_event(65530 - 7);
	assert_int_equal(q->ring->outstanding(q), 0);
	rig.vq.in_flight = rig.vm->in_flight = 0;
	end();
}

/* A ring that ran in flag mode and is started with EVENT_IDX does not keep NO_NOTIFY. */
static void test_flags_of_another_life(void **state)
{
	start(16, 0, false);
	rig.vq.queue.ring->notify_off(&rig.vq.queue);
	ring_rig_stop(&rig);
	ring_rig_release(&rig);
	rig.vq_config.event_idx = true;
	ring_rig_start(&rig, 0);
	assert_int_equal(rig.drv.used->flags, 0);
	end();
}

/* ---- stop, memory ---- */

static void test_stop(void **state)
{
	struct virtq_token a, b;

	start(16, 65530, true);
	for (unsigned i = 0; i < 8; i++)
		ring_rig_avail(&rig, (uint16_t)i);
	defer_begin();
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pop(), 1);
	a = b = chain.token;
	a.head = 0;
	b.head = 1;
	virtq_push(&rig.vq, &chain.token, 16);
	virtq_stop(&rig.vq); /* publishes what was pushed */
	assert_int_equal(ring_rig_used_idx(&rig), 65531);
	defer_end();
	assert_int_equal(rig.drained, 0);
	assert_int_equal(virtq_base(&rig.vq), 65533);
	/* Takes no more; in flight still completes. */
	assert_int_equal(pop(), 0);
	assert_int_equal(service_kick(&rig.vq.queue, 16), SERVICE_IDLE);
	virtq_push(&rig.vq, &a, 16);
	assert_int_equal(rig.drained, 0);
	virtq_push(&rig.vq, &b, 16);
	assert_int_equal(rig.drained, 1);
	assert_int_equal(ring_rig_used_idx(&rig), 65533);
	assert_int_equal(rig.vq.queue.state, QUEUE_STOPPED);
	assert_int_equal(rig.released, 0);
	ring_rig_release(&rig);
	assert_int_equal(rig.released, 1);
	/* B04: the other five are there after the restart. */
	ring_rig_start(&rig, virtq_base(&rig.vq));
	for (unsigned i = 3; i < 8; i++) {
		assert_int_equal(pop(), 1);
		assert_int_equal(chain.token.head, i);
		virtq_push(&rig.vq, &chain.token, 0);
	}
	assert_int_equal(pop(), 0);
	end();
}

static void test_stop_inside_section(void **state)
{
	start(16, 0, true);
	ring_rig_avail(&rig, 0);
	defer_begin();
	assert_int_equal(pop(), 1);
	virtq_stop(&rig.vq);
	assert_int_equal(rig.drained, 0);
	virtq_push(&rig.vq, &chain.token, 0);
	assert_int_equal(rig.drained, 0); /* not before it is published */
	defer_end();
	assert_int_equal(rig.drained, 1);
	assert_int_equal(ring_rig_used_idx(&rig), 1);
	end();
}

static void test_set_memory(void **state)
{
	struct virtq_token first, second;

	start(16, 0, true);
	ring_rig_avail(&rig, 0);
	assert_int_equal(pop(), 1);
	first = chain.token;
	virtq_set_memory(&rig.vq, ring_rig_new_memory(&rig, true));
	assert_int_equal(rig.released, 0);
	ring_rig_avail(&rig, 1);
	assert_int_equal(pop(), 1);
	second = chain.token;
	virtq_set_memory(&rig.vq, ring_rig_new_memory(&rig, true));
	/* In any order: each table goes with its own last request. */
	virtq_push(&rig.vq, &second, 0);
	assert_int_equal(rig.released, 1);
	virtq_set_memory(&rig.vq, ring_rig_new_memory(&rig, true));
	assert_int_equal(rig.released, 2); /* nothing was in flight on that one */
	virtq_push(&rig.vq, &first, 0);
	assert_int_equal(rig.released, 3);
	assert_int_equal(ring_rig_used_idx(&rig), 2);
	batch(5);
	assert_int_equal(rig.broken, 0);
	end();
	assert_int_equal(rig.released, 4);
}

static void test_memory_without_ring(void **state)
{
	struct virtq_token token;

	start(16, 0, true);
	ring_rig_avail(&rig, 0);
	ring_rig_avail(&rig, 1);
	assert_int_equal(pop(), 1);
	token = chain.token;
	assert_int_equal(rig.vq.queue.ring->backlog(&rig.vq.queue), 1);
	virtq_set_memory(&rig.vq, ring_rig_new_memory(&rig, false));
	/* The old pointers lead nowhere now, and hints must not follow them. */
	assert_int_equal(rig.vq.queue.ring->backlog(&rig.vq.queue), 0);
	assert_int_equal(rig.vq.queue.ring->outstanding(&rig.vq.queue), 0);
	expect_broken("new memory table");
	/* The completion has nowhere to go; the old table does. */
	assert_int_equal(rig.released, 0);
	virtq_push(&rig.vq, &token, 0);
	assert_int_equal(rig.released, 1);
	assert_int_equal(ring_rig_used_idx(&rig), 0);
	ring_rig_stop(&rig);
	assert_int_equal(rig.drained, 1);
	assert_int_equal(virtq_base(&rig.vq), 1);
	end();
	assert_int_equal(rig.released, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_ring),
		cmocka_unit_test(test_index_is_read_once_a_batch),
		cmocka_unit_test(test_start_refused),
		cmocka_unit_test(test_used_index_from_ring),
		cmocka_unit_test(test_avail_jump),
		cmocka_unit_test(test_head_out_of_range),
		cmocka_unit_test(test_calls_event_idx),
		cmocka_unit_test(test_calls_flags),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_call_waits_in_a_nap),
		cmocka_unit_test(test_calls_after_restart),
		cmocka_unit_test(test_set_call),
		cmocka_unit_test(test_notify),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_flags_of_another_life),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_stop_inside_section),
		cmocka_unit_test(test_set_memory),
		cmocka_unit_test(test_memory_without_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
