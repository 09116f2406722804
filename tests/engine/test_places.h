/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where images can lie: a disk file system, tmpfs, loop devices of both block sizes.
 */
#ifndef TESTS_ENGINE_TEST_PLACES_H
#define TESTS_ENGINE_TEST_PLACES_H

#include <stdbool.h>
#include <stdint.h>

enum place_kind { PLACE_FILE, PLACE_TMPFS, PLACE_LOOP512, PLACE_LOOP4096, PLACE_COUNT };

struct place {
	enum place_kind kind;
	char path[64];  /* of the image: a file or a device */
	int backing_fd; /* the file, or the file below the device */
	int device_fd;  /* keeps the loop device until place_close() */
	uint64_t size_bytes;
};

extern const char *const place_names[PLACE_COUNT];

/* An image of size_bytes.  False, with a line that says why, where this machine has none. */
bool place_open(struct place *p, enum place_kind kind, uint64_t size_bytes);
/* Nothing is left behind, also when the process dies: the file has no name, the device goes with
 * its last descriptor. */
void place_close(struct place *p);

/* Another descriptor of the image, or a negative errno. */
int place_image(const struct place *p, bool direct, bool read_only);

#endif
