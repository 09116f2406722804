/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's side of the notification stress (known faults B02, B04, B11): requests in random
 * batches, small random delays so that they fall into the windows where the other side arms, and
 * waits that end in a real sleep.  Nobody looks at the ring unless he was told to or is awake, so
 * a lost notification is a sleep that does not end.
 */
#ifndef RING_STRESS_H
#define RING_STRESS_H

#include <pthread.h>

#include "fakes/echo_device.h"
#include "fakes/ring_rig.h"

#define STRESS_MAX_DEPTH 128
/* A sleep longer than this is a lost wake-up. */
#define STRESS_TIMEOUT_MS 2000

struct stress_config {
	const char *name;
	uint16_t size;
	uint16_t table_len;
	uint16_t start_idx;
	bool event_idx;
	unsigned depth; /* requests at a time */
	unsigned slots; /* of the device; fewer than depth: it blocks now and then */
};

struct stress {
	struct stress_config config;
	struct ring_rig rig;
	struct echo_device echo;

	/* The driver's thread. */
	uint64_t rng;
	unsigned nidle;
	uint16_t idle[STRESS_MAX_DEPTH]; /* requests that are not in the ring */
	uint64_t sent[STRESS_MAX_DEPTH]; /* what a request that is says */
	uint64_t requests, sleeps;

	/* The device's thread; read when it has ended. */
	uint64_t device_rng;
	uint64_t device_sleeps;
	bool stop; /* atomic */
};

uint64_t stress_random(uint64_t *state);
/* Between nothing and about two microseconds, often nothing. */
void stress_delay(uint64_t *state);

/* Rig, echo device and numbers; the seed is printed with a failure. */
void stress_init(struct stress *s, const struct stress_config *config, uint64_t seed);
void stress_fini(struct stress *s);

/* Runs the driver for so long.  False: a wake-up was lost, or data was wrong; printed. */
bool stress_drive(struct stress *s, double seconds);

/* One line, "ok NAME: numbers" or "not ok NAME: numbers". */
void stress_report(const struct stress *s, bool ok, double seconds);

/* The program's exit code: all were ok, and both sides did sleep; else it would prove nothing. */
int stress_end(void);

/* Command line of both programs: [SECONDS [TEXT]]: so long for each configuration, those with TEXT
 * in their names.  Without it: the size for CI, or for RINGSIDE_SOAK=1. */
struct stress_options {
	double seconds;
	const char *only;
	uint64_t seed;
};
void stress_options(struct stress_options *o, int argc, char **argv, double ci_seconds,
		    double soak_seconds);

/* {1 with indirect descriptors, 2, 128} x {EVENT_IDX, flags}, from index 65530 and from 0. */
extern const struct stress_config stress_configs[];
extern const unsigned stress_nconfigs;

#endif
