/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets as text: SCHEME:PATH?KEY=VALUE&KEY=VALUE, with %XX for a byte.  Pure but for its memory.
 */
#ifndef DRIVER_URI_H
#define DRIVER_URI_H

#include "base/error.h"

#define URI_MAX_OPTIONS 16

struct uri_option {
	const char *key, *value;
};

/* The strings live in `text`. */
struct uri {
	char *text;
	const char *scheme;
	const char *path; /* decoded; may be empty */
	struct uri_option options[URI_MAX_OPTIONS];
	unsigned option_count;
};

/* 0; -EINVAL (no scheme, a bad %XX, a key twice or without value, too many) or -ENOMEM. */
int uri_parse(const char *text, struct uri *out, struct error *err) must_check;
void uri_fini(struct uri *u);

/* The value, or NULL. */
const char *uri_get(const struct uri *u, const char *key);

/* -EINVAL with *err when there is an option that is not in the NULL-terminated list. */
int uri_check_keys(const struct uri *u, const char *const *known, struct error *err) must_check;

#endif
