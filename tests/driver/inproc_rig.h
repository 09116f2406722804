/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of file: targets share: each engine on a file of its own, on a disk file system, and
 * every test over all of them.
 */
#ifndef INPROC_RIG_H
#define INPROC_RIG_H

#include "driver/driver_rig.h"

#define MIB         (1u << 20)
#define MS          1000000ll
#define PLACE_BYTES (4ull * MIB)

struct inproc_engine {
	const char *name; /* "engine=io_uring&direct=on" */
	bool has_file;
	bool keeps_data;
};

struct inproc_place {
	const struct inproc_engine *engine;
	bool missing; /* this machine has no such engine */
	char path[128];
	char target[256];
};

/* An empty file in TMPDIR or /var/tmp, and the target; what is missing here is told. */
void inproc_place_open(struct inproc_place *p, const struct inproc_engine *engine);
void inproc_place_close(struct inproc_place *p);
/* What another descriptor sees. */
void inproc_place_read(const struct inproc_place *p, uint64_t offset, void *buf, size_t len);

/* A file of len bytes, empty; path has 128 bytes. */
void inproc_file(char *path, uint64_t len);

struct inproc_test {
	const char *name;
	void (*run)(void **state);
};

/* Each test over each engine; *state of setup is the engine.  A test is skipped where its place is
 * missing.  The result of cmocka. */
int inproc_run(const struct inproc_test *tests, unsigned n, int (*setup)(void **state),
	       int (*teardown)(void **state));

#endif
