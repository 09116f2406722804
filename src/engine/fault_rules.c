/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/fault_rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"

static const struct {
	const char *name;
	unsigned ops;
} ops[] = {
	{"read", 1u << BLK_READ},           {"write", 1u << BLK_WRITE},
	{"flush", 1u << BLK_FLUSH},         {"discard", 1u << BLK_DISCARD},
	{"zeroes", 1u << BLK_WRITE_ZEROES}, {"all", FAULT_ON_ALL_OPS},
	{"submit", FAULT_ON_SUBMIT},
};

static const struct {
	const char *name;
	int error;
} errors[] = {
	{"eio", EIO},       {"enospc", ENOSPC},         {"eagain", EAGAIN},
	{"eintr", EINTR},   {"eopnotsupp", EOPNOTSUPP}, {"enodata", ENODATA},
	{"einval", EINVAL}, {"ecanceled", ECANCELED},   {"etimedout", ETIMEDOUT},
};

static const struct {
	const char *name;
	uint64_t ns;
} times[] = {{"", 1000000}, {"ms", 1000000}, {"us", 1000}, {"s", 1000000000}};

/* The prefix if text begins with it; then *text is behind it. */
static bool skip(const char **text, const char *prefix)
{
	size_t n = strlen(prefix);

	if (strncmp(*text, prefix, n))
		return false;
	*text += n;
	return true;
}

static bool number(const char **text, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*out = strtoull(*text, &end, 10);
	*text = end;
	return !errno && *out <= INT64_MAX;
}

static bool parse_op(const char **text, struct fault_rule *r)
{
	const char *colon = strchr(*text, ':');

	r->ops = FAULT_ON_ALL_OPS;
	if (!colon)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		if (strlen(ops[i].name) == (size_t)(colon - *text) && skip(text, ops[i].name)) {
			r->ops = ops[i].ops;
			*text = colon + 1;
			return true;
		}
	}
	return false;
}

static bool parse_short(const char **text, struct fault_rule *r)
{
	bool minus;
	uint64_t v = 0;

	r->action = FAULT_SHORT;
	r->argument = 0;
	if (skip(text, "zero"))
		return true;
	if (skip(text, "half")) {
		r->action = FAULT_SHORT_HALF;
		return true;
	}
	minus = skip(text, "-");
	if (!number(text, &v) || !v)
		return false;
	r->argument = minus ? -(int64_t)v : (int64_t)v;
	return true;
}

static bool parse_delay(const char **text, struct fault_rule *r)
{
	size_t unit;
	uint64_t v;

	r->action = FAULT_DELAY;
	if (!number(text, &v))
		return false;
	unit = strcspn(*text, "@");
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		if (strlen(times[i].name) == unit && !strncmp(*text, times[i].name, unit)) {
			r->argument = (int64_t)(v * times[i].ns);
			*text += unit;
			return true;
		}
	}
	return false;
}

static bool parse_submit(const char **text, struct fault_rule *r)
{
	uint64_t v = 0;

	if (skip(text, "none")) {
		r->action = FAULT_NONE;
		return true;
	}
	if (skip(text, "max="))
		r->action = FAULT_MAX;
	else if (skip(text, "depth="))
		r->action = FAULT_DEPTH;
	else
		return false;
	if (!number(text, &v) || !v)
		return false;
	r->argument = (int64_t)v;
	return true;
}

static bool parse_action(const char **text, struct fault_rule *r)
{
	if (r->ops == FAULT_ON_SUBMIT)
		return parse_submit(text, r);
	if (skip(text, "short="))
		return parse_short(text, r);
	if (skip(text, "delay="))
		return parse_delay(text, r);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		if (skip(text, errors[i].name)) {
			r->action = FAULT_ERRNO;
			r->argument = -errors[i].error;
			return true;
		}
	}
	return false;
}

static bool parse_when(const char **text, struct fault_rule *r)
{
	r->when = FAULT_ALWAYS;
	if (!**text)
		return true;
	if (!skip(text, "@"))
		return false;
	if (skip(text, "="))
		r->when = FAULT_AT;
	else if (skip(text, "/"))
		r->when = FAULT_EVERY_NTH;
	else
		r->when = FAULT_NTH;
	if (!number(text, &r->when_argument))
		return false;
	if (r->when == FAULT_NTH && skip(text, "+"))
		r->when = FAULT_FROM_NTH;
	else if (r->when == FAULT_NTH && skip(text, "%"))
		r->when = FAULT_PERCENT;
	return !**text && (r->when_argument || r->when == FAULT_AT);
}

static bool parse_rule(const char *text, struct fault_rule *r)
{
	*r = (struct fault_rule){0};
	return parse_op(&text, r) && parse_action(&text, r) && parse_when(&text, r);
}

int fault_rules_parse(const char *spec, struct fault_rules *out, struct error *err)
{
	out->n = 0;
	while (*spec) {
		size_t len = strcspn(spec, ";");
		char rule[128];
		size_t n = 0;

		for (size_t i = 0; i < len && n < sizeof(rule) - 1; i++) {
			if (!isspace((unsigned char)spec[i]))
				rule[n++] = spec[i];
		}
		rule[n] = '\0';
		spec += len;
		spec += *spec == ';';
		if (!n)
			continue;
		if (out->n == FAULT_RULES_MAX || !parse_rule(rule, &out->rules[out->n]))
			return error_set(err, -EINVAL,
					 "fault rule '%s' is not understood (see engine/fault.h)",
					 rule);
		out->rules[out->n].seed = out->n + 1;
		out->n++;
	}
	return 0;
}

/* 0..99; the sequence of a rule does not depend on what happens elsewhere. */
static unsigned next_percent(struct fault_rule *r)
{
	uint64_t v = atomic_fetch_add_relaxed(&r->seed, 0x9e3779b97f4a7c15u);

	v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
	v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
	return (unsigned)((v ^ (v >> 31)) % 100);
}

static bool applies(struct fault_rule *r, const struct blk_request *req)
{
	uint64_t nth = atomic_fetch_add_relaxed(&r->count, 1) + 1, n = r->when_argument;

	switch (r->when) {
	case FAULT_NTH:
		return nth == n;
	case FAULT_FROM_NTH:
		return nth >= n;
	case FAULT_EVERY_NTH:
		return nth % n == 0;
	case FAULT_PERCENT:
		return next_percent(r) < n;
	case FAULT_AT:
		return req && req->op != BLK_FLUSH && req->offset_bytes <= n &&
		       n - req->offset_bytes < req->len_bytes;
	case FAULT_ALWAYS:
		break;
	}
	return true;
}

static int64_t short_len(const struct fault_rule *r, const struct blk_request *req)
{
	int64_t len = (int64_t)req->len_bytes, want = r->argument;

	if (r->action == FAULT_SHORT_HALF)
		want = -(len / 2);
	return want < 0 ? MAX(len + want, (int64_t)1) : MIN(want, len);
}

struct fault_verdict fault_rules_judge(struct fault_rules *rules, const struct blk_request *req)
{
	struct fault_verdict v = {0};

	for (unsigned i = 0; i < rules->n; i++) {
		struct fault_rule *r = &rules->rules[i];
		bool decided = v.is_short || v.result;

		if (!(r->ops & 1u << req->op) || !applies(r, req))
			continue;
		if (r->action == FAULT_DELAY) {
			v.delay_ns += (uint64_t)r->argument;
		} else if (r->action == FAULT_ERRNO) {
			v.result = decided ? v.result : r->argument;
		} else if (!decided && req->op <= BLK_WRITE) {
			v.is_short = true;
			v.result = short_len(r, req);
		}
	}
	return v;
}

unsigned fault_rules_take(struct fault_rules *rules, unsigned n, unsigned held)
{
	for (unsigned i = 0; i < rules->n; i++) {
		struct fault_rule *r = &rules->rules[i];
		unsigned most = (unsigned)r->argument;

		if (r->ops != FAULT_ON_SUBMIT || !applies(r, NULL))
			continue;
		if (r->action == FAULT_NONE)
			n = 0;
		else if (r->action == FAULT_MAX)
			n = MIN(n, most);
		else
			n = MIN(n, most > held ? most - held : 0);
	}
	return n;
}
