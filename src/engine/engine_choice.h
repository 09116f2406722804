/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engines by name.  The only place, with export.c, that knows which engines there are.
 */
#ifndef ENGINE_ENGINE_CHOICE_H
#define ENGINE_ENGINE_CHOICE_H

#include "block/engine.h"

enum engine_kind {
	ENGINE_AUTO,
	ENGINE_IO_URING,
	ENGINE_LINUX_AIO,
	ENGINE_THREADS,
	ENGINE_NULL,
	ENGINE_MEMORY,
};

/* For help and messages: "auto|io_uring|…". */
#define ENGINE_KIND_VALUES "auto|io_uring|linux-aio|threads|null|memory"

int engine_kind_parse(const char *text, enum engine_kind *out, struct error *err) must_check;

const char *engine_kind_name(enum engine_kind kind);

/* Does it serve a file (path=), or make up its own bytes (size=)? */
bool engine_kind_has_file(enum engine_kind kind);

/*
 * The engine to try at the given attempt (0, 1, …), or NULL when there is no other: one for a kind
 * by name, for auto the fastest first.
 */
const struct engine_ops *engine_kind_candidate(enum engine_kind kind, unsigned attempt);

#endif
