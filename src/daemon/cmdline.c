/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cmdline.h"

#include <errno.h>
#include <string.h>

bool cmdline_has(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--", 2) && !strcmp(argv[i] + 2, name))
			return true;
	}
	return false;
}

static int find_option(const struct cmdline_option *table, unsigned n, const char *word)
{
	size_t len;

	if (strncmp(word, "--", 2))
		return -1;
	word += 2;
	len = strcspn(word, "=");
	for (unsigned i = 0; i < n; i++) {
		if (strlen(table[i].name) == len && !strncmp(table[i].name, word, len))
			return (int)i;
	}
	return -1;
}

/* The value of argv[*i], from behind '=' or from the next word. */
static int take_value(const struct cmdline_option *o, int argc, char **argv, int *i,
		      const char **value, struct error *err)
{
	const char *equals = strchr(argv[*i], '=');

	*value = NULL;
	if (!o->value) {
		if (equals)
			return error_set(err, -EINVAL, "--%s takes no value", o->name);
		return 0;
	}
	if (equals)
		*value = equals + 1;
	else if (*i + 1 < argc)
		*value = argv[++*i];
	else
		return error_set(err, -EINVAL, "--%s needs a value: --%s %s", o->name, o->name,
				 o->value);
	return 0;
}

int cmdline_parse(const struct cmdline_option *table, unsigned n, int argc, char **argv,
		  void *context, struct error *err)
{
	uint32_t seen = 0;

	ASSERT(n <= CMDLINE_MAX_OPTIONS);
	for (int i = 1; i < argc; i++) {
		int found = find_option(table, n, argv[i]);
		const struct cmdline_option *o;
		const char *value;
		int ret;

		if (found < 0)
			return error_set(err, -EINVAL,
					 "%s: unknown option '%.100s' (see 'ringside help %s')",
					 argv[0], argv[i], argv[0]);
		o = &table[found];
		if (!o->many && (seen & (1u << found)))
			return error_set(err, -EINVAL, "--%s is given twice", o->name);
		seen |= 1u << found;
		ret = take_value(o, argc, argv, &i, &value, err);
		if (ret == 0)
			ret = o->handle(context, value, err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

void cmdline_print_help(const struct cmdline_option *table, unsigned n, FILE *out)
{
	for (unsigned i = 0; i < n; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", table[i].name, table[i].value ? " " : "",
			 table[i].value ? table[i].value : "");
		fprintf(out, "  %-28s %s\n", left, table[i].help);
	}
}
