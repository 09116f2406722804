/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lost wake-ups, hunted by two threads over the service loop alone: a thread that sleeps on the
 * kick eventfd and runs service_kick(), or its parts with delays between them as a poller does.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "stress.h"

/* One pass over the queue, how is random.  True: there is more to do before a sleep. */
static bool device_pass(struct stress *s, uint64_t r)
{
	struct queue *q = &s->rig.vq.queue;
	unsigned budget = (r & 1) ? SERVICE_BUDGET : 1 + (unsigned)(r >> 8) % 4;
	bool parts = r & 2;
	enum service_result result;

	s->echo.hold = (r & 12) == 12;
	if (r & 32) /* a slow device: the driver is already asleep when it completes */
		stress_delay(&s->device_rng);
	if (r & 64)
		stress_delay(&s->device_rng);
	defer_begin();
	if (parts) {
		service_poll_begin(q);
		result = service_run(q, budget);
	} else {
		result = service_kick(q, budget);
	}
	if (s->echo.nheld && (r & 16)) {
		stress_delay(&s->device_rng);
		echo_complete(&s->echo, 1 + (unsigned)(r >> 16) % s->config.slots);
	}
	defer_end();
	if (parts && result != SERVICE_MORE && result != SERVICE_BLOCKED) {
		if (r & 128)
			stress_delay(&s->device_rng);
		if (service_poll_end(q))
			result = SERVICE_MORE;
	}
	if (s->rig.resumed) {
		s->rig.resumed = 0;
		return true;
	}
	return result == SERVICE_MORE;
}

/* B04, B11: stopped and started again where it was; what is in the ring is looked at, and whoever
 * sleeps on what was completed before is called. */
static void restart(struct stress *s)
{
	ring_rig_stop(&s->rig);
	defer_begin();
	echo_complete(&s->echo, UINT32_MAX);
	defer_end();
	ring_rig_release(&s->rig);
	ring_rig_start(&s->rig, virtq_base(&s->rig.vq));
	s->rig.resumed = 0;
}

static void *device_main(void *arg)
{
	struct stress *s = arg;
	struct pollfd p = {.fd = s->rig.kick_fd, .events = POLLIN};
	bool more = true; /* a ring that was started is looked at once */
	uint64_t passes = 0, manner = 0;

	while (!atomic_load_acquire(&s->stop)) {
		uint64_t r = stress_random(&s->device_rng);

		/* For a while each pass is different; for a while all are swift, and alike. */
		if (++passes % 256 == 0)
			manner = r & 256 ? UINT64_MAX : (r >> 32) & 3;
		if (!more && !s->echo.nheld) {
			s->device_sleeps++;
			/* The time-out is there to see `stop`: it does not look at the ring. */
			if (poll(&p, 1, 20) < 1)
				continue;
			eventfd_clear(p.fd);
		}
		if (manner == UINT64_MAX && (r >> 40) % 512 == 0) {
			restart(s);
			more = true;
		} else {
			more = device_pass(s, r & manner);
		}
	}
	defer_begin();
	echo_complete(&s->echo, UINT32_MAX);
	defer_end();
	return NULL;
}

static void run(const struct stress_config *config, double seconds, uint64_t seed)
{
	static struct stress s;
	pthread_t device;
	bool ok;

	stress_init(&s, config, seed);
	ASSERT(pthread_create(&device, NULL, device_main, &s) == 0);
	ok = stress_drive(&s, seconds);
	atomic_store_release(&s.stop, true);
	pthread_join(device, NULL);
	stress_report(&s, ok, seconds);
	stress_fini(&s);
}

int main(int argc, char **argv)
{
	struct stress_options o;

	stress_options(&o, argc, argv, 1.0, 60);
	for (unsigned i = 0; i < stress_nconfigs; i++) {
		if (strstr(stress_configs[i].name, o.only))
			run(&stress_configs[i], o.seconds, o.seed + 2 * i);
	}
	return stress_end();
}
