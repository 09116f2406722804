/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command lines of `serve` and `vhost-user-blk`.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/cmdline.h"
#include "daemon/options.h"
#include "daemon/values.h"

void serve_options_init(struct serve_options *o)
{
	memset(o, 0, sizeof(*o));
	o->iothreads = 1;
	o->poll.mode = POLL_ADAPTIVE;
}

void serve_options_fini(struct serve_options *o)
{
	for (unsigned i = 0; i < o->disk_count; i++)
		disk_options_fini(&o->disks[i]);
	free(o->disks);
	o->disks = NULL;
	o->disk_count = 0;
}

struct disk_options *serve_options_add_disk(struct serve_options *o)
{
	struct disk_options *disks;

	disks = reallocarray(o->disks, o->disk_count + 1, sizeof(*disks));
	if (!disks)
		return NULL;
	o->disks = disks;
	disk_options_init(&disks[o->disk_count], o->disk_count + 1);
	return &disks[o->disk_count++];
}

int serve_options_check(struct serve_options *o, struct error *err)
{
	if (!o->disk_count)
		return error_set(err, -EINVAL,
				 "no disk: give at least one --disk path=FILE,socket=PATH");
	for (unsigned i = 0; i < o->disk_count; i++) {
		struct error why;
		int ret = disk_options_check(&o->disks[i], o->disks, i, &why);

		if (ret < 0)
			return error_set(err, ret, "--disk number %u: %.450s", i + 1, why.text);
	}
	return 0;
}

static int handle_disk(void *context, const char *value, struct error *err)
{
	struct serve_options *o = context;
	struct disk_options *d = serve_options_add_disk(o);
	struct error why;
	int ret;

	if (!d)
		return error_set(err, -ENOMEM, "--disk: out of memory");
	ret = disk_options_parse(d, value, &why);
	if (ret < 0)
		return error_set(err, ret, "--disk number %u: %.450s", d->number, why.text);
	return 0;
}

static int handle_iothreads(void *context, const char *value, struct error *err)
{
	struct serve_options *o = context;
	struct error why;
	uint64_t n;

	if (value_number(value, 1, SERVE_IOTHREADS_MAX, &n, &why) < 0)
		return error_set(err, -EINVAL, "--iothreads: %.400s", why.text);
	o->iothreads = (unsigned)n;
	return 0;
}

static int handle_poll(void *context, const char *value, struct error *err)
{
	struct serve_options *o = context;
	struct error why;

	if (poll_policy_parse(value, &o->poll, &why) < 0)
		return error_set(err, -EINVAL, "--poll: %.400s", why.text);
	return 0;
}

/* --help is looked for before anything else; here it only has its place in the table. */
static int handle_nothing(void *context, const char *value, struct error *err)
{
	return 0;
}

static const struct cmdline_option serve_table[] = {
	{"disk", "KEY=VALUE,...", true, handle_disk, "a disk to serve; keys below"},
	{"iothreads", "N", false, handle_iothreads, "threads that do the I/O (1)"},
	{"poll", "MODE", false, handle_poll, "adaptive (default), off, always, or a time"},
	{"help", NULL, true, handle_nothing, "this text"},
};

int serve_options_parse(struct serve_options *o, int argc, char **argv, struct error *err)
{
	int ret;

	if (cmdline_has("help", argc, argv))
		return 1;
	ret = cmdline_parse(serve_table, ARRAY_SIZE(serve_table), argc, argv, o, err);
	return ret < 0 ? ret : serve_options_check(o, err);
}

void serve_options_print_help(FILE *out)
{
	fputs("usage: ringside serve --disk path=FILE,socket=PATH[,KEY=VALUE...] [--disk ...]\n"
	      "                      [--iothreads N] [--poll MODE]\n\n"
	      "Serves disk images to virtual machines: virtio-blk over vhost-user.\n\n"
	      "options:\n",
	      out);
	cmdline_print_help(serve_table, ARRAY_SIZE(serve_table), out);
	fputs("\nkeys of --disk (a comma in a value is written twice; a JSON object is taken, too):\n",
	      out);
	disk_options_print_help(out);
	fprintf(out,
		"\npoll modes: %s\n\n"
		"SIGTERM and SIGINT finish what is in flight and end the program; SIGUSR1 prints\n"
		"statistics as one line of JSON.\n",
		poll_policy_help);
}

/* ---- vhost-user-blk: QEMU's conventions for back-end programs ---- */

static int set_key(void *context, enum disk_key key, const char *option, const char *value,
		   struct error *err)
{
	struct serve_options *o = context;
	struct error why;
	int ret = disk_options_set(&o->disks[0], key, value, &why);

	return ret < 0 ? error_set(err, ret, "%s: %.450s", option, why.text) : 0;
}

static int handle_socket_path(void *context, const char *value, struct error *err)
{
	return set_key(context, DISK_KEY_SOCKET, "--socket-path", value, err);
}

static int handle_blk_file(void *context, const char *value, struct error *err)
{
	return set_key(context, DISK_KEY_PATH, "--blk-file", value, err);
}

static int handle_read_only(void *context, const char *value, struct error *err)
{
	return set_key(context, DISK_KEY_READONLY, "--read-only", "on", err);
}

static int socket_option(int fd, int option)
{
	socklen_t len = sizeof(int);
	int value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? -errno : value;
}

/* The convention does not say whether the socket listens or is connected; the socket does. */
static int handle_fd(void *context, const char *value, struct error *err)
{
	struct disk_options *d = &((struct serve_options *)context)->disks[0];
	struct error why;
	int listens;
	uint64_t v;

	if (value_number(value, 0, INT_MAX, &v, &why) < 0)
		return error_set(err, -EINVAL, "--fd: %.400s", why.text);
	if (socket_option((int)v, SO_DOMAIN) != AF_UNIX ||
	    socket_option((int)v, SO_TYPE) != SOCK_STREAM)
		return error_set(err, -EINVAL, "--fd: descriptor %d is not a Unix stream socket",
				 (int)v);
	listens = socket_option((int)v, SO_ACCEPTCONN);
	if (listens < 0)
		return error_set(err, listens, "--fd: descriptor %d: %s", (int)v,
				 strerror(-listens));
	*(listens ? &d->listen_fd : &d->conn_fd) = (int)v;
	return 0;
}

static const struct cmdline_option blk_table[] = {
	{"socket-path", "PATH", false, handle_socket_path, "where the hypervisor connects"},
	{"fd", "N", false, handle_fd, "instead: an open socket, listening or connected"},
	{"blk-file", "FILE", false, handle_blk_file, "the image: a file or a block device"},
	{"read-only", NULL, false, handle_read_only, "refuse writes"},
	{"print-capabilities", NULL, true, handle_nothing, "what this program can, as JSON"},
	{"help", NULL, true, handle_nothing, "this text"},
};

int vhost_user_blk_options_parse(struct serve_options *o, int argc, char **argv, struct error *err)
{
	struct disk_options *d;
	int ret;

	/* "Other options and arguments should be ignored", says the convention. */
	if (cmdline_has("print-capabilities", argc, argv))
		return 2;
	if (cmdline_has("help", argc, argv))
		return 1;
	d = serve_options_add_disk(o);
	if (!d)
		return error_set(err, -ENOMEM, "out of memory");
	ret = cmdline_parse(blk_table, ARRAY_SIZE(blk_table), argc, argv, o, err);
	if (ret < 0)
		return ret;
	if (!d->path)
		return error_set(err, -EINVAL, "--blk-file is missing: --blk-file=FILE");
	if (!d->socket == (d->listen_fd < 0 && d->conn_fd < 0))
		return error_set(
			err, -EINVAL,
			d->socket ? "--socket-path and --fd do not go together"
				  : "--socket-path is missing: --socket-path=PATH or --fd=N");
	return disk_options_check(d, NULL, 0, err);
}

void vhost_user_blk_options_print_help(FILE *out)
{
	fputs("usage: ringside vhost-user-blk --socket-path=PATH|--fd=N --blk-file=FILE [--read-only]\n\n"
	      "Serves one disk with the options that QEMU's vhost-user document lays down for\n"
	      "back-end programs. `ringside serve` can do more.\n\n"
	      "options:\n",
	      out);
	cmdline_print_help(blk_table, ARRAY_SIZE(blk_table), out);
}
