/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening an image: a regular file or a block device, locked, with or without the page cache.
 */
#ifndef ENGINE_IMAGE_H
#define ENGINE_IMAGE_H

#include "base/error.h"

struct image_options {
	const char *id; /* for messages */
	const char *path;
	bool read_only;
	bool direct;      /* go past the page cache */
	bool must_direct; /* ... and refuse the image if that is not possible */
	bool lock;
};

struct image {
	int fd;         /* -1 = none */
	bool direct;    /* fd has O_DIRECT */
	bool locked;    /* as long as the open file of fd lives, or until image_close() */
	bool no_direct; /* wanted, but the file system cannot */
};

/* 0, or a negative errno with *err (a line for a person) and image->fd == -1. */
int image_open(const struct image_options *o, struct image *image, struct error *err) must_check;

/* Unlocks and closes; other descriptors of the same open file stay open, unlocked.  Nothing is in
 * flight on any of them. */
void image_close(struct image *image);

/* Do both names lead to one file or device?  False when one leads nowhere. */
bool image_same(const char *a, const char *b);

#endif
