/* SPDX-License-Identifier: Apache-2.0 */
#include "stress.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"

const struct stress_config stress_configs[] = {
	{"size 1 event_idx", 1, 4, 65530, true, 1, 1},
	{"size 1 flags", 1, 4, 65530, false, 1, 1},
	{"size 2 event_idx", 2, 0, 65530, true, 1, 2},
	{"size 2 flags", 2, 0, 65530, false, 1, 2},
	{"size 2 event_idx indirect", 2, 4, 0, true, 2, 1},
	{"size 2 flags indirect", 2, 4, 0, false, 2, 1},
	{"size 128 event_idx", 128, 4, 65530, true, 128, 128},
	{"size 128 flags", 128, 4, 65530, false, 128, 128},
	{"size 128 event_idx direct", 128, 0, 0, true, 64, 3},
	{"size 128 flags direct", 128, 0, 0, false, 64, 3},
};
const unsigned stress_nconfigs = ARRAY_SIZE(stress_configs);

uint64_t stress_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

void stress_delay(uint64_t *state)
{
	uint64_t r = stress_random(state);
	unsigned turns = (r & 3) ? (unsigned)(r >> 32) & 0xff : (unsigned)(r >> 32) % 4000;

	if (r & 4)
		return;
	for (unsigned i = 0; i < turns; i++)
		__asm__ volatile("");
}

void stress_init(struct stress *s, const struct stress_config *config, uint64_t seed)
{
	struct ring_rig_config rig = {
		.size = config->size,
		.table_len = config->table_len,
		.start_idx = config->start_idx,
		.event_idx = config->event_idx,
	};

	memset(s, 0, sizeof(*s));
	s->config = *config;
	ring_rig_init(&s->rig, &rig);
	echo_init(&s->echo, &s->rig.vq, config->slots);
	s->rng = seed;
	s->device_rng = seed * 0x9e3779b97f4a7c15u | 1;
	for (uint16_t i = 0; i < config->depth; i++)
		s->idle[s->nidle++] = i;
}

void stress_fini(struct stress *s)
{
	ring_rig_fini(&s->rig);
}

/* Request i in guest memory: 8 bytes to send and, apart from them, 8 to receive. */
static uint64_t request_gpa(unsigned i)
{
	return RIG_DATA + i * 64ull;
}

static bool put_one(struct stress *s)
{
	uint16_t i = s->idle[s->nidle - 1];
	uint64_t gpa = request_gpa(i), *data = ring_rig_host(&s->rig, gpa, 32);
	struct virtq_buf whole[2] = {{gpa, 8}, {gpa + 16, 8}};
	struct virtq_buf cut[4] = {{gpa, 3}, {gpa + 3, 5}, {gpa + 16, 1}, {gpa + 17, 7}};
	bool small = s->config.table_len < 4 || (stress_random(&s->rng) & 1);
	unsigned n = small ? 1 : 2;

	data[0] = s->sent[i] = ++s->requests;
	data[2] = 0;
	if (virtq_driver_put(&s->rig.drv, small ? whole : cut, n, n, &s->sent[i]) < 0) {
		s->requests--;
		return false;
	}
	s->nidle--;
	return true;
}

/* Puts up to n requests; shows and tells them together or one by one. */
static void submit(struct stress *s, unsigned n)
{
	struct virtq_driver *vd = &s->rig.drv;
	bool together = stress_random(&s->rng) & 1;

	while (n-- && s->nidle && put_one(s)) {
		if (together)
			continue;
		virtq_driver_publish(vd);
		virtq_driver_tell(vd);
		stress_delay(&s->rng);
	}
	virtq_driver_publish(vd);
	virtq_driver_tell(vd);
}

/* Takes what is there.  How many, or -1 if the device misbehaved. */
static int reap(struct stress *s)
{
	uint32_t written;
	void *cookie;
	int n = 0, ret;

	while ((ret = virtq_driver_take(&s->rig.drv, &cookie, &written)) == 1) {
		uint16_t i = (uint16_t)((uint64_t *)cookie - s->sent);
		uint64_t *data = ring_rig_host(&s->rig, request_gpa(i), 32);

		if (data[2] != s->sent[i] || written != 8) {
			printf("# request %llu came back as %llu with %u bytes\n",
			       (unsigned long long)s->sent[i], (unsigned long long)data[2],
			       written);
			return -1;
		}
		s->idle[s->nidle++] = i;
		n++;
	}
	if (ret < 0)
		printf("# the device broke the used ring\n");
	return ret < 0 ? -1 : n;
}

static bool lost(struct stress *s, const char *how)
{
	uint16_t used = ring_rig_used_idx(&s->rig), taken = s->rig.drv.last_used_idx;

	printf("# after %llu requests, %s: %u in the ring, used index %u, taken %u: a %s was lost\n",
	       (unsigned long long)s->requests, how, s->rig.drv.in_flight, used, taken,
	       used != taken ? "call" : "kick");
	return false;
}

/* Looks until everything is back: only a lost kick can hold that up. */
static bool spin(struct stress *s)
{
	uint64_t limit_ns = 0;
	unsigned turns = 0;

	while (s->nidle < s->config.depth) {
		int n = reap(s);

		if (n < 0)
			return false;
		if (n > 0) {
			turns = 0;
			limit_ns = 0;
		} else if (++turns % 4096 == 0) {
			uint64_t now_ns = clock_now_ns();

			if (!limit_ns)
				limit_ns = now_ns + STRESS_TIMEOUT_MS * 1000000ull;
			else if (now_ns > limit_ns)
				return lost(s, "looking");
			sched_yield(); /* more threads than processors */
		}
	}
	return true;
}

/* Arms, looks again, sleeps until called. */
static bool sleep_for(struct stress *s, uint16_t after)
{
	struct pollfd p = {.fd = s->rig.call_fd, .events = POLLIN};

	if (!virtq_driver_call_on(&s->rig.drv, after)) {
		s->sleeps++;
		if (poll(&p, 1, STRESS_TIMEOUT_MS) < 1)
			return lost(s, "sleeping");
		eventfd_clear(s->rig.call_fd);
	}
	if (stress_random(&s->rng) & 1)
		virtq_driver_call_off(&s->rig.drv);
	return true;
}

/* One wait of a random kind. */
static bool wait_some(struct stress *s)
{
	uint64_t r = stress_random(&s->rng);
	unsigned in_flight = s->config.depth - s->nidle;
	uint16_t after = 1;
	int n;

	if (!in_flight)
		return true;
	if ((r & 3) == 0)
		return spin(s);
	if ((r & 7) == 1)
		after = (uint16_t)(1 + (r >> 8) % in_flight);
	stress_delay(&s->rng);
	n = reap(s);
	if (n < 0)
		return false;
	if (n > 0 && (r & 16))
		return true;
	while (s->nidle < s->config.depth) {
		if (!sleep_for(s, after))
			return false;
		n = reap(s);
		if (n < 0)
			return false;
		if (n > 0)
			break;
	}
	return true;
}

/* Batches and waits of every kind. */
static bool mix(struct stress *s)
{
	for (unsigned i = 0; i < 100; i++) {
		uint64_t r = stress_random(&s->rng);

		submit(s, (r & 3) ? 1 : 1 + (unsigned)(r >> 8) % s->config.depth);
		if (!wait_some(s))
			return false;
	}
	return spin(s);
}

/*
 * One request at a time, the next one so long after the completion of the last: at some length it
 * meets the device just where that arms.
 */
static bool duel(struct stress *s)
{
	unsigned longest = 16u << (stress_random(&s->rng) % 8);

	for (unsigned i = 0; i < 200; i++) {
		unsigned turns = (unsigned)(stress_random(&s->rng) >> 32) % longest;

		submit(s, 1);
		if (!spin(s))
			return false;
		for (unsigned k = 0; k < turns; k++)
			__asm__ volatile("");
	}
	return true;
}

bool stress_drive(struct stress *s, double seconds)
{
	uint64_t end_ns = clock_now_ns() + (uint64_t)(seconds * 1e9);

	do {
		if (!((stress_random(&s->rng) >> 20) & 3 ? duel(s) : mix(s)))
			return false;
	} while (clock_now_ns() < end_ns);
	return true;
}

static struct {
	uint64_t sleeps, device_sleeps;
	unsigned failed;
} total;

void stress_report(const struct stress *s, bool ok, double seconds)
{
	const struct virtq_driver_stats *d = &s->rig.drv.stats;
	const struct queue_stats *q = &s->rig.vq.queue.stats;

	total.sleeps += s->sleeps;
	total.device_sleeps += s->device_sleeps;
	total.failed += !ok;
	printf("%s %s, from %u: %llu requests, sleeps a second: driver %.0f, device %.0f; "
	       "%llu kicks, %llu calls\n",
	       ok ? "ok" : "not ok", s->config.name, s->config.start_idx,
	       (unsigned long long)s->requests, (double)s->sleeps / seconds,
	       (double)s->device_sleeps / seconds, (unsigned long long)d->kicks_sent,
	       (unsigned long long)q->calls_sent);
	fflush(stdout);
}

int stress_end(void)
{
	bool slept = total.sleeps > 100 && total.device_sleeps > 100;

	printf("# %u failed; the driver slept %llu times, the device %llu times\n", total.failed,
	       (unsigned long long)total.sleeps, (unsigned long long)total.device_sleeps);
	return total.failed || !slept;
}

void stress_options(struct stress_options *o, int argc, char **argv, double ci_seconds,
		    double soak_seconds)
{
	const char *soak = getenv("RINGSIDE_SOAK"), *seed = getenv("RINGSIDE_SEED");

	o->seconds = soak && strcmp(soak, "1") == 0 ? soak_seconds : ci_seconds;
	if (argc > 1)
		o->seconds = atof(argv[1]);
	o->only = argc > 2 ? argv[2] : "";
	o->seed = seed ? strtoull(seed, NULL, 0) : clock_now_ns() | 1;
	printf("# seed %llu\n", (unsigned long long)o->seed);
}
