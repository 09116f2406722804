/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

/* What stands behind a number, and what it multiplies with. */
struct suffix {
	const char *text;
	uint64_t factor;
};

static const struct suffix no_suffixes[] = {{"", 1}, {NULL, 0}};
static const struct suffix sizes[] = {
	{"", 1},         {"k", 1u << 10}, {"K", 1u << 10},   {"m", 1u << 20},   {"M", 1u << 20},
	{"g", 1u << 30}, {"G", 1u << 30}, {"t", 1ull << 40}, {"T", 1ull << 40}, {NULL, 0},
};
static const struct suffix times[] = {
	{"", 1000000000}, {"s", 1000000000},     {"ms", 1000000}, {"us", 1000},
	{"ns", 1},        {"m", 60000000000ull}, {NULL, 0},
};

static const struct {
	const struct suffix *suffixes;
	const char *what, *how;
} units[] = {
	[BENCH_UNIT_NONE] = {no_suffixes, "a whole number", ""},
	[BENCH_UNIT_SIZE] = {sizes, "a size", " (bytes, or K, M, G, T behind a whole number)"},
	[BENCH_UNIT_TIME] = {times, "a time", " (seconds, or us, ms, s, m behind a whole number)"},
};

/* Digits and a unit, and nothing else. */
static bool read_value(const char *text, size_t len, const struct suffix *suffixes, uint64_t *out)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < len && text[i] >= '0' && text[i] <= '9'; i++) {
		if (!checked_mul(v, (uint64_t)10, &v) ||
		    !checked_add(v, (uint64_t)(text[i] - '0'), &v))
			return false;
	}
	if (!i)
		return false;
	for (const struct suffix *s = suffixes; s->text; s++) {
		if (strlen(s->text) == len - i && !memcmp(s->text, text + i, len - i))
			return checked_mul(v, s->factor, out);
	}
	return false;
}

/* A limit in the way that people write it. */
static const char *limit_text(enum bench_unit unit, uint64_t v, char *buf, size_t buf_len)
{
	static const char size_letters[] = {'T', 'G', 'M', 'K'};

	if (unit == BENCH_UNIT_TIME) {
		snprintf(buf, buf_len, "%llu ms", (unsigned long long)(v / 1000000));
		return buf;
	}
	if (unit == BENCH_UNIT_SIZE) {
		for (unsigned i = 0; i < ARRAY_SIZE(size_letters); i++) {
			unsigned shift = 40 - 10 * i;

			if (v >> shift && !(v & ((1ull << shift) - 1))) {
				snprintf(buf, buf_len, "%llu%c", (unsigned long long)(v >> shift),
					 size_letters[i]);
				return buf;
			}
		}
	}
	snprintf(buf, buf_len, "%llu", (unsigned long long)v);
	return buf;
}

static int read_checked(const char *text, size_t len, enum bench_unit unit, uint64_t min,
			uint64_t max, uint64_t *out, struct error *err)
{
	char low[32], high[32];
	uint64_t v;

	if (!read_value(text, len, units[unit].suffixes, &v))
		return error_set(err, -EINVAL, "'%.*s' is not %s%s", (int)MIN(len, (size_t)100),
				 text, units[unit].what, units[unit].how);
	if (v < min || v > max)
		return error_set(err, -EINVAL, "'%.*s' is not from %s to %s",
				 (int)MIN(len, (size_t)100), text,
				 limit_text(unit, min, low, sizeof(low)),
				 limit_text(unit, max, high, sizeof(high)));
	*out = v;
	return 0;
}

int bench_value(const char *text, enum bench_unit unit, uint64_t min, uint64_t max, uint64_t *out,
		struct error *err)
{
	return read_checked(text, strlen(text), unit, min, max, out, err);
}

static int list_add(struct bench_list *list, uint64_t v, const char *text, size_t len,
		    struct error *err)
{
	for (unsigned i = 0; i < list->count; i++) {
		if (list->values[i] == v)
			return error_set(err, -EINVAL, "'%.*s' is in the list twice",
					 (int)MIN(len, (size_t)100), text);
	}
	if (list->count == BENCH_LIST_MAX)
		return error_set(err, -EINVAL, "more than %d values", BENCH_LIST_MAX);
	list->values[list->count++] = v;
	return 0;
}

int bench_value_list(const char *text, enum bench_unit unit, uint64_t min, uint64_t max,
		     struct bench_list *out, struct error *err)
{
	out->count = 0;
	for (;;) {
		size_t len = strcspn(text, ",");
		uint64_t v;
		int ret = read_checked(text, len, unit, min, max, &v, err);

		if (ret == 0)
			ret = list_add(out, v, text, len, err);
		if (ret < 0 || !text[len])
			return ret;
		text += len + 1;
	}
}

static int unknown_name(const char *text, size_t len, const char *const *names, unsigned n,
			struct error *err)
{
	char known[256] = "";
	size_t used = 0;

	for (unsigned i = 0; i < n && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 names[i]);
	return error_set(err, -EINVAL, "'%.*s' is none of %s", (int)MIN(len, (size_t)100), text,
			 known);
}

int bench_name_list(const char *text, const char *const *names, unsigned n, struct bench_list *out,
		    struct error *err)
{
	out->count = 0;
	for (;;) {
		size_t len = strcspn(text, ",");
		unsigned i = 0;
		int ret;

		while (i < n && (strlen(names[i]) != len || memcmp(names[i], text, len)))
			i++;
		ret = i < n ? list_add(out, i, text, len, err)
			    : unknown_name(text, len, names, n, err);
		if (ret < 0 || !text[len])
			return ret;
		text += len + 1;
	}
}
