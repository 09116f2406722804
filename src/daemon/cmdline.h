/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command line as a table of options: "--name VALUE", "--name=VALUE", "--name".
 */
#ifndef DAEMON_CMDLINE_H
#define DAEMON_CMDLINE_H

#include <stdio.h>

#include "base/error.h"

struct cmdline_option {
	const char *name;  /* without the dashes */
	const char *value; /* what it takes, for help: "N"; NULL = nothing */
	bool many;         /* may be given more than once */
	/* value is NULL when the option takes none.  0, or a negative errno with *err. */
	int (*handle)(void *context, const char *value, struct error *err);
	const char *help;
};

/* The most options that a table may have. */
#define CMDLINE_MAX_OPTIONS 32

/* Goes through argv[1..argc).  Every word must be an option of the table.  Errors name the option
 * and the command (argv[0]). */
int cmdline_parse(const struct cmdline_option *table, unsigned n, int argc, char **argv,
		  void *context, struct error *err) must_check;

/* One option a line, with its help beside it. */
void cmdline_print_help(const struct cmdline_option *table, unsigned n, FILE *out);

/* Is --name among argv[1..argc)?  For options that make all others meaningless, like --help. */
bool cmdline_has(const char *name, int argc, char **argv);

#endif
