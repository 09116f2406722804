/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same hunt over the real event loop: an iothread with the queue as its poller, in several
 * polling modes, so short that it goes to sleep and is woken all the time.  A second poller holds
 * requests back and completes them later, as an engine does, so that the queue also blocks for want
 * of slots and is resumed.
 */
#include <stdio.h>
#include <string.h>

#include "loop/iothread.h"
#include "stress.h"
#include "transport/queue_poller.h"

struct device {
	struct stress s;
	struct iothread *thread;
	struct queue_poller queue;
	struct poller engine; /* completes what the echo device holds */
	unsigned long passes;
};

static struct device dev;

static void engine_begin(struct poller *p)
{
}

static bool engine_poll(struct poller *p)
{
	uint64_t r = stress_random(&dev.s.device_rng);

	/* For a while it completes at once, for a while it holds back. */
	if (++dev.passes % 1024 == 0)
		dev.s.echo.hold = r & 1;
	if (!dev.s.echo.nheld || (r & 6) == 6)
		return false;
	if (r & 8)
		stress_delay(&dev.s.device_rng);
	return echo_complete(&dev.s.echo, 1 + (unsigned)(r >> 8) % dev.s.config.slots) > 0;
}

static bool engine_end(struct poller *p)
{
	return dev.s.echo.nheld > 0;
}

static const struct poller_ops engine_ops = {engine_begin, engine_poll, engine_end};

static void held_some(struct echo_device *echo)
{
	poller_wake(&dev.engine);
}

static void start_on_thread(void *arg)
{
	int ret = queue_poller_add(&dev.queue, loop_current(), &dev.s.rig.vq.queue,
				   dev.s.rig.kick_fd, NULL);

	ASSERT(ret == 0);
	dev.engine = (struct poller){.ops = &engine_ops};
	dev.s.echo.held_some = held_some;
	loop_add_poller(loop_current(), &dev.engine);
}

static void stop_on_thread(void *arg)
{
	queue_poller_remove(&dev.queue);
	loop_remove_poller(loop_current(), &dev.engine);
	echo_complete(&dev.s.echo, UINT32_MAX);
}

static void run(const struct stress_config *config, const char *mode, double seconds, uint64_t seed)
{
	struct poll_policy_limits limits;
	struct stress_config named = *config;
	struct loop_stats stats;
	struct error err;
	char name[80];
	bool ok;

	snprintf(name, sizeof(name), "%s, poll %s", config->name, mode);
	named.name = name;
	ASSERT(poll_policy_parse(mode, &limits, &err) == 0);
	stress_init(&dev.s, &named, seed);
	dev.thread = iothread_create("notify", &limits, &err);
	ASSERT(dev.thread);
	iothread_run_sync(dev.thread, start_on_thread, NULL);
	ok = stress_drive(&dev.s, seconds);
	iothread_run_sync(dev.thread, stop_on_thread, NULL);
	loop_stats_read(iothread_loop(dev.thread), &stats);
	iothread_destroy(dev.thread);
	dev.s.device_sleeps = stats.sleeps;
	stress_report(&dev.s, ok, seconds);
	stress_fini(&dev.s);
}

int main(int argc, char **argv)
{
	static const char *const modes[] = {"off", "1us", "5us", "20us", "adaptive"};
	struct stress_options o;
	unsigned turn = 0;

	stress_options(&o, argc, argv, 0.7, 30);
	for (unsigned m = 0; m < ARRAY_SIZE(modes); m++) {
		/* In CI each mode meets half of the rings; in a soak all of them. */
		for (unsigned i = 0; i < stress_nconfigs; i++) {
			if (!strstr(stress_configs[i].name, o.only))
				continue;
			if (o.seconds < 5 && (i / 2 + m) % 2)
				continue;
			run(&stress_configs[i], modes[m], o.seconds, o.seed + turn++);
		}
	}
	return stress_end();
}
