/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See uri.h.
 */
#include "driver/uri.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place.  False: a % that two hexadecimal digits do not follow, or a NUL. */
static bool decode(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '%') {
			int high = hex(s[1]), low = high < 0 ? -1 : hex(s[2]);

			if (low < 0 || !(high | low))
				return false;
			*to++ = (char)(high << 4 | low);
			s += 2;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
	return true;
}

const char *uri_get(const struct uri *u, const char *key)
{
	for (unsigned i = 0; i < u->option_count; i++) {
		if (!strcmp(u->options[i].key, key))
			return u->options[i].value;
	}
	return NULL;
}

static int parse_option(struct uri *u, char *text, struct error *err)
{
	char *value = strchr(text, '=');

	if (!value || value == text)
		return error_set(err, -EINVAL, "target: '%s' is not KEY=VALUE", text);
	*value++ = '\0';
	if (!decode(text) || !decode(value))
		return error_set(err, -EINVAL,
				 "target: '%%' needs two hexadecimal digits, not 00, in '%s'",
				 text);
	if (uri_get(u, text))
		return error_set(err, -EINVAL, "target: '%s' is given twice", text);
	if (u->option_count == URI_MAX_OPTIONS)
		return error_set(err, -EINVAL, "target: more than %u options", URI_MAX_OPTIONS);
	u->options[u->option_count++] = (struct uri_option){text, value};
	return 0;
}

static int parse_parts(struct uri *u, struct error *err)
{
	char *path = strchr(u->text, ':'), *options, *save = NULL;
	int ret;

	if (!path || path == u->text)
		return error_set(
			err, -EINVAL,
			"target '%s' is not SCHEME:PATH, such as vhost-user-blk:/run/vm.sock",
			u->text);
	*path++ = '\0';
	u->scheme = u->text;
	u->path = path;
	options = strchr(path, '?');
	if (options)
		*options++ = '\0';
	if (!decode(path))
		return error_set(err, -EINVAL,
				 "target: '%%' needs two hexadecimal digits, not 00, in '%s'",
				 path);
	for (char *o = options ? strtok_r(options, "&", &save) : NULL; o;
	     o = strtok_r(NULL, "&", &save)) {
		ret = parse_option(u, o, err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int uri_parse(const char *text, struct uri *out, struct error *err)
{
	int ret;

	memset(out, 0, sizeof(*out));
	out->text = strdup(text);
	if (!out->text)
		return error_set(err, -ENOMEM, "out of memory");
	ret = parse_parts(out, err);
	if (ret < 0)
		uri_fini(out);
	return ret;
}

void uri_fini(struct uri *u)
{
	free(u->text);
	memset(u, 0, sizeof(*u));
}

int uri_check_keys(const struct uri *u, const char *const *known, struct error *err)
{
	for (unsigned i = 0; i < u->option_count; i++) {
		const char *const *k = known;

		while (*k && strcmp(*k, u->options[i].key))
			k++;
		if (!*k)
			return error_set(err, -EINVAL, "%s: there is no option '%s'", u->scheme,
					 u->options[i].key);
	}
	return 0;
}
