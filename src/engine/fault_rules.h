/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the fault layer: parsing and matching.  See fault.h for what they say.
 */
#ifndef ENGINE_FAULT_RULES_H
#define ENGINE_FAULT_RULES_H

#include "block/engine.h"

#define FAULT_RULES_MAX  32
#define FAULT_ON_SUBMIT  (1u << BLK_OP_COUNT)
#define FAULT_ON_ALL_OPS (FAULT_ON_SUBMIT - 1)

enum fault_action {
	FAULT_ERRNO, /* argument: the negative errno */
	FAULT_SHORT, /* bytes; negative: less than all */
	FAULT_SHORT_HALF,
	FAULT_DELAY, /* nanoseconds */
	FAULT_MAX,
	FAULT_NONE,
	FAULT_DEPTH,
};

enum fault_when {
	FAULT_ALWAYS,
	FAULT_NTH,
	FAULT_FROM_NTH,
	FAULT_EVERY_NTH,
	FAULT_PERCENT,
	FAULT_AT
};

struct fault_rule {
	unsigned ops; /* bits of enum blk_op, or FAULT_ON_SUBMIT */
	enum fault_action action;
	int64_t argument;
	enum fault_when when;
	uint64_t when_argument;
	uint64_t count; /* requests that the rule is for; several threads */
	uint64_t seed;  /* the same */
};

struct fault_rules {
	struct fault_rule rules[FAULT_RULES_MAX];
	unsigned n;
};

/* What the rules say of one request. */
struct fault_verdict {
	bool is_short;
	int64_t result; /* < 0: the errno; short: bytes; else 0 */
	uint64_t delay_ns;
};

int fault_rules_parse(const char *spec, struct fault_rules *out, struct error *err) must_check;

/* Counts the request. */
struct fault_verdict fault_rules_judge(struct fault_rules *rules, const struct blk_request *req);

/* How many of a batch of n may be taken while `held` are.  Counts the batch. */
unsigned fault_rules_take(struct fault_rules *rules, unsigned n, unsigned held);

#endif
