/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device half of a virtqueue under a driver that does anything: configuration, ring memory and
 * what happens when, all from the input.  An echo device behind it reads and writes what the chains
 * say.  Whatever the driver does: what was taken comes back, a broken ring says so once, and
 * stopping ends.
 */
#include <endian.h>

#include "fakes/echo_device.h"
#include "fuzz_ring.h"

static struct ring_rig rig;
static struct echo_device echo;

static void pass(struct fuzz_input *in)
{
	uint8_t r = fuzz_u8(in);
	enum service_result result;

	echo.hold = r & 1;
	defer_begin();
	if (r & 2) {
		service_poll_begin(&rig.vq.queue);
		result = service_run(&rig.vq.queue, 1 + (r >> 4));
		if (result != SERVICE_MORE && result != SERVICE_BLOCKED &&
		    service_poll_end(&rig.vq.queue))
			result = SERVICE_MORE;
	} else {
		result = service_kick(&rig.vq.queue, 1 + (r >> 4));
	}
	/* A blocked queue would wait for ever if nothing were in flight. */
	ASSERT(result != SERVICE_BLOCKED || echo.nheld || rig.vq.queue.state != QUEUE_RUNNING ||
	       echo.nfree);
	if (r & 4)
		echo_complete(&echo, 1 + (r >> 4));
	defer_end();
}

static void stop(void)
{
	unsigned before = rig.drained;

	if (rig.vq.queue.state == QUEUE_STOPPED)
		return;
	ring_rig_stop(&rig);
	defer_begin();
	echo_complete(&echo, UINT32_MAX);
	defer_end();
	ASSERT(rig.drained == before + 1);
	ring_rig_release(&rig);
}

static void restart(struct fuzz_input *in)
{
	uint16_t base = virtq_base(&rig.vq);

	stop();
	ring_rig_start(&rig, fuzz_u8(in) & 1 ? fuzz_u16(in) : base);
	rig.broken = 0;
}

static void step(struct fuzz_input *in)
{
	uint16_t idx = ring_rig_avail_idx(&rig);

	switch (fuzz_u8(in) % 14) {
	case 0:
	case 1:
	case 2:
		fuzz_desc(in, &rig);
		break;
	case 3:
	case 4:
		ring_rig_avail(&rig, fuzz_u8(in) & rig.drv.mask);
		break;
	case 5:
		ring_rig_avail(&rig, fuzz_u16(in));
		break;
	case 6:
		ring_rig_set_avail_idx(&rig, (uint16_t)(idx + (int8_t)fuzz_u8(in)));
		break;
	case 7:
		*rig.drv.used_event = htole16((uint16_t)(ring_rig_used_idx(&rig) + fuzz_u8(in)));
		rig.drv.avail->flags = htole16(fuzz_u8(in) & 1);
		break;
	case 8:
		virtq_set_memory(&rig.vq, ring_rig_new_memory(&rig, fuzz_u8(in) & 7));
		break;
	case 9:
		restart(in);
		break;
	case 10:
		virtq_set_call(&rig.vq, fuzz_u8(in) & 1 ? rig.call_fd : -1);
		break;
	case 11:
		fuzz_bytes(in, (char *)rig.drv.used + fuzz_u8(in) % 32, 4);
		break;
	default:
		pass(in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t shape = fuzz_u8(&in);
	struct ring_rig_config config = {
		.size = (uint16_t)(1u << (shape & 7)),
		.table_len = shape & 8 ? 1 : 0,
		.start_idx = shape & 16 ? 65530 : 0,
		.event_idx = shape & 32,
	};

	ring_rig_init(&rig, &config);
	echo_init(&echo, &rig.vq, shape & 64 ? 2 : 64);
	while (in.left) {
		step(&in);
		ASSERT(rig.broken <= 1);
		ASSERT((rig.vq.queue.state == QUEUE_BROKEN) == (rig.broken == 1));
	}
	stop();
	ASSERT(echo.nheld == 0);
	ASSERT(rig.vq.queue.stats.requests == echo.taken);
	ring_rig_start(&rig, 0);
	ring_rig_fini(&rig);
	return 0;
}
