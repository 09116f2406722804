/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to look before sleeping: a pure function of numbers.  No clock, no system call.
 *
 * Sleeping and being woken costs `wake_cost_ns` (measured).  Looking costs its own time.  From the
 * recent gaps (idle start to next work) the policy knows what each spin time would have cost:
 *
 *     cost(t) = sum of gaps that end within t  +  (t + wake_cost) for each gap that does not
 *
 * and takes the t that costs least, never more than wake_cost_ns: looking longer than the wake-up
 * it may save is worth can never pay.  When gaps grow, cost(0) becomes least and it stops.
 *
 * Gaps may be short only as long as nobody looks: where processors are scarce, the one who looks
 * keeps the one who works from running.  So what looking has saved is counted as well; where it has
 * cost instead, it is given up, and begun again only after a while, twice as long each time.
 */
#ifndef LOOP_POLL_POLICY_H
#define LOOP_POLL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum poll_mode { POLL_OFF, POLL_ADAPTIVE, POLL_FIXED, POLL_ALWAYS };

struct poll_policy_limits {
	enum poll_mode mode;
	uint64_t fixed_ns; /* POLL_FIXED: look for this long, always */
	uint64_t max_ns;   /* POLL_ADAPTIVE: never longer than this; 0 = only wake_cost limits */
};

/*
 * Gaps are counted in buckets: 1 us wide up to 8 us, then four to each power of two up to 262 us
 * (in units of 1024 ns).  The last is open: such a gap ends within no spin time that could ever
 * pay, and it does not matter how long it was.
 */
#define POLL_POLICY_BUCKETS 29

struct poll_policy {
	struct poll_policy_limits limits;
	uint64_t wake_cost_ns;
	uint32_t weight[POLL_POLICY_BUCKETS]; /* decayed number of gaps that ended in the bucket */
	uint32_t total;                       /* sum of weight */
	uint32_t since_decay;                 /* gaps */
	uint64_t spin_ns;                     /* the current answer */
	int64_t gain_ns;     /* what looking has saved since it was begun: negative = it has cost */
	uint32_t since_turn; /* gaps since looking was begun or given up */
	uint32_t rise_wait;  /* gaps that must pass before it is begun again */
};

#define POLL_SPIN_FOREVER UINT64_MAX

void poll_policy_init(struct poll_policy *p, const struct poll_policy_limits *limits,
		      uint64_t wake_cost_ns);

/* One gap has ended: gap_ns from finding nothing to finding work (sleeping or not). */
void poll_policy_note_gap(struct poll_policy *p, uint64_t gap_ns);

/* How long to look now.  0 = sleep at once, POLL_SPIN_FOREVER = never sleep.  Before the first gaps
 * are known: half of wake_cost_ns. */
uint64_t poll_policy_spin_ns(const struct poll_policy *p);

/* "adaptive", "off", "always", or a time: "50us", "1ms", "20000ns", "1s".  0 or -EINVAL with *err.
 */
int poll_policy_parse(const char *text, struct poll_policy_limits *out,
		      struct error *err) must_check;
/* The values that poll_policy_parse() takes, for help texts. */
extern const char poll_policy_help[];

#endif
