/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* Reads digits; *end is behind the last.  False when there is none or the number does not fit. */
static bool read_digits(const char *text, const char **end, uint64_t *out)
{
	uint64_t v = 0;
	const char *p;

	for (p = text; *p >= '0' && *p <= '9'; p++) {
		if (!checked_mul(v, (uint64_t)10, &v) || !checked_add(v, (uint64_t)(*p - '0'), &v))
			return false;
	}
	*end = p;
	*out = v;
	return p != text;
}

int value_number(const char *text, uint64_t min, uint64_t max, uint64_t *out, struct error *err)
{
	const char *end;
	uint64_t v;

	if (!read_digits(text, &end, &v) || *end || v < min || v > max)
		return error_set(err, -EINVAL, "'%.100s' is not a whole number from %llu to %llu",
				 text, (unsigned long long)min, (unsigned long long)max);
	*out = v;
	return 0;
}

/* Powers of two that a suffix stands for; 0 when c is none. */
static unsigned suffix_shift(char c)
{
	switch (c) {
	case 'k':
	case 'K':
		return 10;
	case 'm':
	case 'M':
		return 20;
	case 'g':
	case 'G':
		return 30;
	case 't':
	case 'T':
		return 40;
	default:
		return 0;
	}
}

int value_size(const char *text, uint64_t *out, struct error *err)
{
	const char *end;
	uint64_t v;
	unsigned shift = 0;
	bool fits = read_digits(text, &end, &v);

	if (fits && *end) {
		shift = suffix_shift(*end);
		fits = shift && !end[1] && checked_mul(v, (uint64_t)1 << shift, &v);
	}
	if (!fits || v > INT64_MAX)
		return error_set(
			err, -EINVAL,
			"'%.100s' is not a size: write bytes, or a whole number with K, M, G "
			"or T behind it, less than 8388608T",
			text);
	*out = v;
	return 0;
}

int value_switch(const char *text, bool *out, struct error *err)
{
	if (strcmp(text, "on") && strcmp(text, "off"))
		return error_set(err, -EINVAL, "'%.100s' is neither on nor off", text);
	*out = !strcmp(text, "on");
	return 0;
}

/* Copies up to a single comma, with doubled commas made one.  *cursor: at the comma or the end. */
static char *take_item(const char **cursor)
{
	char *item = malloc(strlen(*cursor) + 1), *to = item;
	const char *p = *cursor;

	if (!item)
		return NULL;
	for (; *p && !(p[0] == ',' && p[1] != ','); p++) {
		if (*p == ',')
			p++;
		*to++ = *p;
	}
	*to = '\0';
	*cursor = p;
	return item;
}

int keyval_next(const char **cursor, char **key, char **value, struct error *err)
{
	const char *p = *cursor;
	size_t key_len;
	char *item;

	*key = *value = NULL;
	if (!*p)
		return 0;
	item = take_item(&p);
	if (!item)
		return error_set(err, -ENOMEM, "out of memory");
	key_len = strcspn(item, "=");
	if (!key_len || (*p == ',' && !p[1])) {
		free(item);
		return error_set(
			err, -EINVAL,
			"an empty key: keys are separated by single commas, and a comma in "
			"a value is written twice");
	}
	if (item[key_len]) {
		*value = strdup(item + key_len + 1);
		if (!*value) {
			free(item);
			return error_set(err, -ENOMEM, "out of memory");
		}
		item[key_len] = '\0';
	}
	*key = item;
	*cursor = *p ? p + 1 : p;
	return 1;
}
