/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person may say about a disk, and what `serve` takes.  Parsing only: no file is touched.
 *
 * One table (options.c) holds every key with its parser and its help; the command line form
 * "key=value,…", the JSON form and the help text all come from it.
 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdio.h>

#include "engine/engine_choice.h"
#include "loop/poll_policy.h"

enum disk_key {
	DISK_KEY_PATH,
	DISK_KEY_SOCKET,
	DISK_KEY_ID,
	DISK_KEY_ENGINE,
	DISK_KEY_DIRECT,
	DISK_KEY_READONLY,
	DISK_KEY_QUEUES,
	DISK_KEY_BLOCK_SIZE,
	DISK_KEY_SERIAL,
	DISK_KEY_DISCARD,
	DISK_KEY_POLL,
	DISK_KEY_FIXED_BUFFERS,
	DISK_KEY_LOCK,
	DISK_KEY_SHARE,
	DISK_KEY_SIZE,
	DISK_KEY_COUNT,
};

#define DISK_QUEUES_DEFAULT 128
#define DISK_QUEUES_MAX     1024
#define DISK_SERIAL_MAX     20

/* Strings are the struct's own; disk_options_fini() frees them. */
struct disk_options {
	unsigned number; /* which --disk it is, counted from 1; for messages */
	uint32_t given;  /* bit k: enum disk_key k was given */
	char *path;
	char *socket;
	char *id;
	char *serial;
	enum engine_kind engine;
	bool direct;
	bool readonly;
	bool discard;
	bool fixed_buffers;
	bool lock;
	bool share;
	unsigned queues;
	uint32_t block_bytes;
	uint64_t size_bytes;
	struct poll_policy_limits poll; /* meaningful if given */
	int listen_fd;                  /* instead of a socket path: -1 = none */
	int conn_fd;                    /* a client that is there already: -1 = none */
};

static inline bool disk_options_given(const struct disk_options *o, enum disk_key key)
{
	return o->given & (1u << key);
}

/* Defaults; number counts from 1. */
void disk_options_init(struct disk_options *o, unsigned number);
void disk_options_fini(struct disk_options *o);

const char *disk_key_name(enum disk_key key);

/* The value of one key, as text. */
int disk_options_set(struct disk_options *o, enum disk_key key, const char *value,
		     struct error *err) must_check;

/* "key=value,…" or a JSON object, into an initialised struct.  0, or a negative errno with *err;
 * the struct is to be finished either way. */
int disk_options_parse(struct disk_options *o, const char *text, struct error *err) must_check;

/* What the keys of a disk demand of each other and of the disks before it (n of them): required
 * keys, keys that do not go together, ids, sockets.  Fills in id and serial where not given. */
int disk_options_check(struct disk_options *o, const struct disk_options *before, unsigned n,
		       struct error *err) must_check;

void disk_options_print_help(FILE *out);

struct serve_options {
	struct disk_options *disks;
	unsigned disk_count;
	unsigned iothreads;
	struct poll_policy_limits poll;
};

#define SERVE_IOTHREADS_MAX 256

void serve_options_init(struct serve_options *o);
void serve_options_fini(struct serve_options *o);

/* A new disk with defaults at the end of the list; NULL when out of memory. */
struct disk_options *serve_options_add_disk(struct serve_options *o);

/* argv[0] is the subcommand.  1 = help was asked for, 0, or a negative errno with *err. */
int serve_options_parse(struct serve_options *o, int argc, char **argv,
			struct error *err) must_check;

/* All disks, in order: disk_options_check().  At least one. */
int serve_options_check(struct serve_options *o, struct error *err) must_check;

void serve_options_print_help(FILE *out);

/* `vhost-user-blk`: the conventions of QEMU's vhost-user document, into one disk.
 * 1 = help was asked for, 2 = --print-capabilities, 0, or a negative errno with *err. */
int vhost_user_blk_options_parse(struct serve_options *o, int argc, char **argv,
				 struct error *err) must_check;
void vhost_user_blk_options_print_help(FILE *out);

#endif
