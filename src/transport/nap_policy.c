/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See nap_policy.h.
 */
#include "transport/nap_policy.h"

#include "base/compiler.h"

/* A quarter: a third or a half leaves a guest idle at times, a sixth costs it a third more
 * interrupts (bench/compare.py --only guest). */
#define NAP_SHARE       4u
#define NAP_LEAST_DEPTH 3u
#define NAP_LEAST_NS    20000u
#define NAP_MOST_NS     3000000u
#define NAP_STEP_GAPS   4u
/* So many requests for one notification: there is little left to save. */
#define NAP_NOT_NEEDED 32u
/* One that brought less than half of what it should puts off the next, up to so many armings. */
#define NAP_SKIP_MOST 63u

/* One nap in so many is a sounding, once several in a row have found depth. */
#define SOUND_EVERY     64u
#define SOUND_CONFIRMED 3u
#define SOUND_SURE      7u
#define SOUND_GAPS      8u
#define SOUND_LEAST     8u /* requests given, for it to mean anything */
/* One that finds nothing puts off the next, up to so many armings; with a longer gap than this
 * there is too little to save.  A burst that is seen is reason enough to try again. */
#define SOUND_SKIP_MOST 16383u
#define SOUND_GAP_MOST  500000u
#define SOUND_BURST     8u

#define GAP_WEIGHT  8u
#define BASE_WEIGHT 64u
#define BASE_AGAIN  8u

void nap_policy_init(struct nap_policy *p, uint64_t now_ns)
{
	*p = (struct nap_policy){.work_ns = now_ns};
}

static uint64_t mean(uint64_t old, uint64_t sample, uint32_t weight)
{
	return old - old / weight + sample / weight;
}

void nap_policy_note_work(struct nap_policy *p, uint64_t now_ns, uint32_t taken)
{
	uint64_t gap = MIN((now_ns - p->work_ns) / MAX(taken, 1u), (uint64_t)NAP_MOST_NS);

	p->gap_ns = mean(p->gap_ns, gap, GAP_WEIGHT);
	if (p->armed) {
		p->base_count = MIN(p->base_count + 1, BASE_WEIGHT);
		p->base_gap_ns = mean(p->base_gap_ns, gap, p->base_count);
	}
	p->armed = false;
	p->work_ns = now_ns;
	p->taken += taken;
	p->nap_taken += taken;
}

static void begin(struct nap_policy *p, uint64_t now_ns, uint64_t len_ns)
{
	p->begin_ns = p->given_ns = now_ns;
	p->end_ns = now_ns + len_ns;
	p->nap_taken = p->given = 0;
}

static void next_look(struct nap_policy *p, uint64_t now_ns)
{
	uint64_t gap = p->sounding ? p->base_gap_ns : p->gap_ns;
	uint64_t step = MAX(gap * NAP_STEP_GAPS, (uint64_t)NAP_LEAST_NS);

	p->look_ns = MIN(now_ns + step, p->end_ns);
}

/* What is seen, or what is known to be hidden. */
static uint64_t nap_len_ns(struct nap_policy *p, uint32_t outstanding)
{
	uint32_t hidden = p->good >= SOUND_CONFIRMED && p->naps_left ? p->depth : 0;
	uint32_t depth = MAX(outstanding, hidden);

	if (depth < NAP_LEAST_DEPTH)
		return 0;
	if (p->nap_skip) {
		p->nap_skip--;
		return 0;
	}
	if (hidden)
		p->naps_left--;
	p->expected = depth / NAP_SHARE;
	return MIN(p->gap_ns * depth / NAP_SHARE, (uint64_t)NAP_MOST_NS);
}

/* 0: not now. */
static uint64_t sounding_len_ns(struct nap_policy *p)
{
	if (p->skip) {
		p->skip--;
		return 0;
	}
	if (p->base_count < BASE_WEIGHT || p->base_gap_ns > SOUND_GAP_MOST)
		return 0;
	return MIN(p->base_gap_ns * SOUND_GAPS, (uint64_t)NAP_MOST_NS);
}

bool nap_policy_begin(struct nap_policy *p, uint64_t now_ns, uint32_t outstanding)
{
	uint32_t taken = p->taken;
	uint64_t len_ns = 0;

	p->taken = 0;
	if (outstanding >= SOUND_BURST && !p->distrust)
		p->skip = 0;
	if (taken && taken < NAP_NOT_NEEDED) {
		len_ns = nap_len_ns(p, outstanding);
		p->sounding = !len_ns && !p->nap_skip;
		if (p->sounding)
			len_ns = sounding_len_ns(p);
	}
	if (len_ns < NAP_LEAST_NS) {
		p->armed = true;
		return false;
	}
	begin(p, now_ns, len_ns);
	next_look(p, now_ns);
	return true;
}

/* Did it give half as many again as it had given before in that time? */
static bool gave_more(const struct nap_policy *p)
{
	uint64_t ns = p->given_ns - p->begin_ns;

	return p->given >= SOUND_LEAST && p->given * p->base_gap_ns * 2 >= ns * 3;
}

static void judge(struct nap_policy *p)
{
	if (!gave_more(p)) {
		p->good /= 2;
		p->penalty = MIN(2 * p->penalty + 1, SOUND_SKIP_MOST);
		p->skip = p->penalty;
		return;
	}
	p->depth = p->given;
	p->good = MIN(p->good + 1, SOUND_SURE);
}

static void learn(struct nap_policy *p)
{
	judge(p);
	if (p->good < SOUND_CONFIRMED)
		return;
	p->skip = p->penalty = 0;
	p->naps_left = SOUND_EVERY;
	/* What it gives while it is armed is looked at again before the next one. */
	p->base_count = BASE_WEIGHT - BASE_AGAIN;
}

static void trust(struct nap_policy *p)
{
	if (p->given >= MAX(p->expected / 2, 1u)) {
		p->distrust = 0;
		return;
	}
	p->distrust = MIN(2 * p->distrust + 1, NAP_SKIP_MOST);
	p->nap_skip = p->distrust;
}

bool nap_policy_look(struct nap_policy *p, uint64_t now_ns, uint32_t backlog)
{
	uint32_t given = p->nap_taken + backlog;

	if (given > p->given) {
		p->given = given;
		p->given_ns = now_ns;
		if (now_ns < p->end_ns) {
			next_look(p, now_ns);
			return true;
		}
	}
	if (p->sounding)
		learn(p);
	else
		trust(p);
	return false;
}
