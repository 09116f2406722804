/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program: finds the subcommand and runs it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "bench/bench.h"
#include "daemon/commands.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	void (*help)(void);
	const char *summary;
} commands[] = {
	{"serve", command_serve, command_serve_help, "serve disk images to virtual machines"},
	{"vhost-user-blk", command_vhost_user_blk, command_vhost_user_blk_help,
	 "the same for one disk, with the options that QEMU's conventions ask for"},
	{"bench", command_bench, command_bench_help,
	 "measure disk servers, as a virtual machine would use them"},
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

static void print_help(void)
{
	printf("Ringside serves disk images to virtual machines.\n\n"
	       "usage: ringside COMMAND [OPTION...]\n\n"
	       "commands:\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-16s %s\n", commands[i].name, commands[i].summary);
	printf("  %-16s %s\n  %-16s %s\n", "help COMMAND", "what a command takes", "version",
	       "the program's version");
}

static int unknown(const char *name)
{
	log_error("unknown command '%.100s' (see 'ringside help')", name);
	return 1;
}

static int help(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		print_help();
		return 0;
	}
	c = find_command(argv[1]);
	if (!c)
		return unknown(argv[1]);
	c->help();
	return 0;
}

/* Nothing that was printed may get lost unnoticed: a full disk, a closed pipe. */
static int flushed(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	log_error("cannot write to the standard output");
	return 1;
}

/* Started without standard descriptors: else the first image would become the standard output. */
static void open_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0] ? argv[0] : "", '/');
	const char *name = slash ? slash + 1 : argv[0];
	const struct command *c = name ? find_command(name) : NULL;

	open_standard_fds();
	/* A link with a command's name is that command: QEMU's descriptors name a program only. */
	if (c)
		return flushed(c->run(argc, argv));
	if (argc < 2) {
		log_error("no command given (see 'ringside help')");
		return 1;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return flushed(help(argc - 1, argv + 1));
	if (!strcmp(argv[1], "version") || !strcmp(argv[1], "--version")) {
		puts("ringside " RINGSIDE_VERSION);
		return flushed(0);
	}
	c = find_command(argv[1]);
	return c ? flushed(c->run(argc - 1, argv + 1)) : unknown(argv[1]);
}
