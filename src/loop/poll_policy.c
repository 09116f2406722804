/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See poll_policy.h.  Pure: all state is the struct's.
 */
#include "loop/poll_policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* A gap counts this much when it is new, and half as much after each DECAY_GAPS further gaps. */
#define WEIGHT_NEW 256u
#define DECAY_GAPS 32u

/* The answer changes only every so many gaps: under load there is one in each microsecond. */
#define CHOOSE_GAPS 8u

#define UNIT_SHIFT  10 /* 1024 ns */
#define LAST_BUCKET (POLL_POLICY_BUCKETS - 1)

static unsigned bucket_of(uint64_t gap_ns)
{
	uint64_t v = gap_ns >> UNIT_SHIFT;
	unsigned octave;

	if (v < 4)
		return (unsigned)v;
	if (v >= 256)
		return LAST_BUCKET;
	octave = 61u - (unsigned)__builtin_clzll(v); /* 0 for 4..7 */
	return 4 * octave + (unsigned)(v >> octave);
}

/* Where the bucket begins, which is where the one before it ends. */
static uint64_t bucket_ns(unsigned bucket)
{
	unsigned octave = bucket < 4 ? 0 : bucket / 4 - 1;

	return (uint64_t)(bucket - 4 * octave) << octave << UNIT_SHIFT;
}

/* Longest time worth considering: more than the wake-up costs can never pay. */
static uint64_t longest_ns(const struct poll_policy *p)
{
	uint64_t longest = MIN(p->wake_cost_ns, bucket_ns(LAST_BUCKET));

	return p->limits.max_ns ? MIN(longest, p->limits.max_ns) : longest;
}

/*
 * Cost, times WEIGHT_NEW, of looking for t_ns, had it been done in all the gaps remembered.  In the
 * bucket that t_ns cuts, gaps are taken to be spread evenly.  At most 2^14 gaps x 2^19 ns: no
 * overflow.
 */
static uint64_t cost_of(const struct poll_policy *p, uint64_t t_ns)
{
	uint64_t ended = 0, cost = 0;

	for (unsigned b = 0; b < LAST_BUCKET && bucket_ns(b) < t_ns; b++) {
		uint64_t from = bucket_ns(b), to = bucket_ns(b + 1);
		uint64_t upto = MIN(to, t_ns);
		uint64_t part = p->weight[b] * (upto - from) / (to - from);

		ended += part;
		cost += part * ((from + upto) / 2);
	}
	return cost + (p->total - ended) * (t_ns + p->wake_cost_ns);
}

/* Looking that has cost as much as so many wake-ups is given up... */
#define LOSS_WAKE_UPS 8
/* ...and savings of long ago do not count against that. */
#define GAIN_WAKE_UPS 64

/* Gaps between giving up, if it was for a loss, and beginning again. */
#define WAIT_FIRST 128u
#define WAIT_MAX   1024u

static void turn(struct poll_policy *p, uint64_t spin_ns)
{
	if (!p->spin_ns && spin_ns) {
		if (p->since_turn < p->rise_wait)
			return;
		p->gain_ns = 0;
		p->since_turn = 0;
	} else if (p->spin_ns && !spin_ns) {
		p->rise_wait = p->gain_ns < 0 ? MIN(MAX(2 * p->rise_wait, WAIT_FIRST), WAIT_MAX)
					      : 0;
		p->since_turn = 0;
	}
	p->spin_ns = spin_ns;
}

/* A gap was looked at, or not: what came of that. */
static void note_gain(struct poll_policy *p, uint64_t gap_ns)
{
	int64_t wake = (int64_t)p->wake_cost_ns;

	if (p->since_turn < WAIT_MAX)
		p->since_turn++;
	if (!p->spin_ns)
		return;
	p->gain_ns += gap_ns <= p->spin_ns ? wake - (int64_t)gap_ns : -(int64_t)p->spin_ns;
	p->gain_ns = MIN(p->gain_ns, GAIN_WAKE_UPS * wake);
	if (p->gain_ns < -LOSS_WAKE_UPS * wake)
		turn(p, 0);
}

static void choose(struct poll_policy *p)
{
	uint64_t longest = longest_ns(p), best = 0, best_cost = cost_of(p, 0), now_cost;

	for (unsigned b = 1; b <= LAST_BUCKET; b++) {
		uint64_t t = MIN(bucket_ns(b), longest);
		uint64_t cost = cost_of(p, t);

		/* Of equal ones the longest: room for gaps a little longer than any before. */
		if (cost <= best_cost) {
			best = t;
			best_cost = cost;
		}
		if (t == longest)
			break;
	}
	/*
	 * A few gaps make a poor estimate.  Looking shorter is always allowed, longer only for a
	 * gain that is not likely to be chance.
	 */
	now_cost = cost_of(p, p->spin_ns);
	if (best < p->spin_ns || best_cost + now_cost / 16 < now_cost)
		turn(p, best);
}

void poll_policy_init(struct poll_policy *p, const struct poll_policy_limits *limits,
		      uint64_t wake_cost_ns)
{
	memset(p, 0, sizeof(*p));
	p->limits = *limits;
	p->wake_cost_ns = wake_cost_ns;
	p->spin_ns = MIN(wake_cost_ns / 2, longest_ns(p));
}

static void decay(struct poll_policy *p)
{
	p->total = 0;
	for (unsigned b = 0; b < POLL_POLICY_BUCKETS; b++) {
		p->weight[b] /= 2;
		p->total += p->weight[b];
	}
	p->since_decay = 0;
}

void poll_policy_note_gap(struct poll_policy *p, uint64_t gap_ns)
{
	p->weight[bucket_of(gap_ns)] += WEIGHT_NEW;
	p->total += WEIGHT_NEW;
	note_gain(p, gap_ns);
	if (++p->since_decay % CHOOSE_GAPS == 0)
		choose(p);
	if (p->since_decay == DECAY_GAPS)
		decay(p);
}

uint64_t poll_policy_spin_ns(const struct poll_policy *p)
{
	switch (p->limits.mode) {
	case POLL_OFF:
		return 0;
	case POLL_FIXED:
		return p->limits.fixed_ns;
	case POLL_ALWAYS:
		return POLL_SPIN_FOREVER;
	case POLL_ADAPTIVE:
		break;
	}
	return p->spin_ns;
}

/* ---- text ---- */

static const struct {
	const char *name;
	enum poll_mode mode;
} modes[] = {
	{"adaptive", POLL_ADAPTIVE},
	{"off", POLL_OFF},
	{"always", POLL_ALWAYS},
};

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
	{"s", 1000000000},
};

#define FIXED_MAX_NS 3600000000000u /* an hour; who wants more wants "always" */

const char poll_policy_help[] = "adaptive, off, always, or a time such as 20000ns, 50us, 1ms";

static int parse_time(const char *text, uint64_t *out_ns)
{
	uint64_t value;
	char *unit;

	if (*text < '0' || *text > '9') /* strtoull would take spaces and signs */
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &unit, 10);
	if (errno)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(unit, units[i].name))
			continue;
		if (!checked_mul(value, units[i].ns, out_ns) || *out_ns > FIXED_MAX_NS)
			return -EINVAL;
		return 0;
	}
	return -EINVAL;
}

int poll_policy_parse(const char *text, struct poll_policy_limits *out, struct error *err)
{
	struct poll_policy_limits limits = {.mode = POLL_FIXED};

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (!strcmp(text, modes[i].name)) {
			*out = (struct poll_policy_limits){.mode = modes[i].mode};
			return 0;
		}
	}
	if (parse_time(text, &limits.fixed_ns) < 0)
		return error_set(err, -EINVAL, "'%.100s' is not a poll mode (%s)", text,
				 poll_policy_help);
	*out = limits;
	return 0;
}
