/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/commands.h"

#include <stdio.h>

#include "base/log.h"
#include "daemon/daemon.h"

static int fail(const struct error *err)
{
	log_error("%s", err->text);
	return 1;
}

void command_serve_help(void)
{
	serve_options_print_help(stdout);
}

void command_vhost_user_blk_help(void)
{
	vhost_user_blk_options_print_help(stdout);
}

int command_serve(int argc, char **argv)
{
	struct serve_options options;
	struct error err;
	int ret;

	serve_options_init(&options);
	ret = serve_options_parse(&options, argc, argv, &err);
	if (ret == 1)
		command_serve_help();
	else if (ret == 0)
		ret = daemon_run(&options, &err);
	serve_options_fini(&options);
	return ret < 0 ? fail(&err) : 0;
}

int command_vhost_user_blk(int argc, char **argv)
{
	struct serve_options options;
	struct error err;
	int ret;

	serve_options_init(&options);
	ret = vhost_user_blk_options_parse(&options, argc, argv, &err);
	if (ret == 2)
		puts("{\"type\": \"block\", \"features\": [\"read-only\", \"blk-file\"]}");
	else if (ret == 1)
		command_vhost_user_blk_help();
	else if (ret == 0)
		ret = daemon_run(&options, &err);
	serve_options_fini(&options);
	return ret < 0 ? fail(&err) : 0;
}
