/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keys of a disk demand of each other, and disks of the disks before them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/options.h"

static int require(const struct disk_options *o, enum disk_key key, const char *why,
		   struct error *err)
{
	if (disk_options_given(o, key))
		return 0;
	return error_set(err, -EINVAL, "key '%s' is missing%s", disk_key_name(key), why);
}

static int refuse(const struct disk_options *o, enum disk_key key, const char *why,
		  struct error *err)
{
	if (!disk_options_given(o, key))
		return 0;
	return error_set(err, -EINVAL, "key '%s' %s", disk_key_name(key), why);
}

static int check_engine(const struct disk_options *o, struct error *err)
{
	char why[80];
	int ret;

	if (o->fixed_buffers && o->engine != ENGINE_AUTO && o->engine != ENGINE_IO_URING)
		return error_set(
			err, -EINVAL,
			"fixed-buffers=on does not go with engine=%s: only io_uring has them",
			engine_kind_name(o->engine));
	if (engine_kind_has_file(o->engine)) {
		ret = require(o, DISK_KEY_PATH, ": path=FILE", err);
		return ret ? ret
			   : refuse(o, DISK_KEY_SIZE,
				    "is for the engines null and memory; a file has its own size",
				    err);
	}
	snprintf(why, sizeof(why), " for engine=%s: size=SIZE", engine_kind_name(o->engine));
	ret = require(o, DISK_KEY_SIZE, why, err);
	snprintf(why, sizeof(why), "does not go with engine=%s, which has no file",
		 engine_kind_name(o->engine));
	if (ret == 0)
		ret = refuse(o, DISK_KEY_PATH, why, err);
	if (ret == 0 && o->direct)
		ret = refuse(o, DISK_KEY_DIRECT, why, err);
	return ret;
}

/* share=on: a further socket of an earlier disk; what belongs to the disk is said there. */
static int check_share(const struct disk_options *o, const struct disk_options *first,
		       struct error *err)
{
	static const enum disk_key of_the_disk[] = {
		DISK_KEY_PATH,    DISK_KEY_ENGINE,     DISK_KEY_DIRECT,
		DISK_KEY_DISCARD, DISK_KEY_BLOCK_SIZE, DISK_KEY_POLL,
		DISK_KEY_LOCK,    DISK_KEY_SIZE,       DISK_KEY_FIXED_BUFFERS,
	};
	int ret = require(o, DISK_KEY_ID, " for share=on: the id of an earlier disk", err);

	if (ret == 0 && !first)
		ret = error_set(err, -EINVAL, "share=on: no disk before this one has id=%s", o->id);
	for (size_t i = 0; ret == 0 && i < ARRAY_SIZE(of_the_disk); i++)
		ret = refuse(o, of_the_disk[i],
			     "does not go with share=on: it is said where the disk is given first",
			     err);
	if (ret == 0 && first->readonly && disk_options_given(o, DISK_KEY_READONLY) && !o->readonly)
		ret = error_set(err, -EINVAL,
				"readonly=off, but disk '%s' was given with readonly=on", o->id);
	return ret;
}

static int check_socket(const struct disk_options *o, const struct disk_options *before, unsigned n,
			struct error *err)
{
	if (o->listen_fd >= 0 || o->conn_fd >= 0)
		return 0;
	if (require(o, DISK_KEY_SOCKET, ": socket=PATH", err) < 0)
		return -EINVAL;
	for (unsigned i = 0; i < n; i++) {
		if (before[i].socket && !strcmp(before[i].socket, o->socket))
			return error_set(err, -EINVAL,
					 "socket '%.200s' is used by two disks: each needs its own",
					 o->socket);
	}
	return 0;
}

static const struct disk_options *find_id(const struct disk_options *disks, unsigned n,
					  const char *id)
{
	for (unsigned i = 0; i < n; i++) {
		if (!disks[i].share && !strcmp(disks[i].id, id))
			return &disks[i];
	}
	return NULL;
}

static int fill_in(struct disk_options *o, const struct disk_options *first, struct error *err)
{
	char text[32];

	if (!o->id) {
		snprintf(text, sizeof(text), "disk%u", o->number);
		o->id = strdup(text);
	}
	if (!o->serial) {
		snprintf(text, DISK_SERIAL_MAX + 1, "%s",
			 first ? first->serial : (o->id ? o->id : ""));
		o->serial = strdup(text);
	}
	if (first && !disk_options_given(o, DISK_KEY_READONLY))
		o->readonly = first->readonly;
	return o->id && o->serial ? 0 : error_set(err, -ENOMEM, "out of memory");
}

int disk_options_check(struct disk_options *o, const struct disk_options *before, unsigned n,
		       struct error *err)
{
	const struct disk_options *first = o->id ? find_id(before, n, o->id) : NULL;
	int ret;

	if (o->share)
		ret = check_share(o, first, err);
	else if (first)
		ret = error_set(err, -EINVAL,
				"id '%s' is used twice: another disk needs another id, a further "
				"socket of that disk needs share=on",
				o->id);
	else
		ret = check_engine(o, err);
	if (ret == 0)
		ret = check_socket(o, before, n, err);
	if (ret == 0)
		ret = fill_in(o, first, err);
	if (ret == 0 && !o->share && find_id(before, n, o->id))
		ret = error_set(err, -EINVAL,
				"id '%s' is used twice: give this disk an id of its own", o->id);
	return ret;
}
