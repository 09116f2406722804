/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest memory that the kernel has mapped and pinned once (fixed-buffers=on), so that a request
 * need not do it each time.
 *
 * Pinning takes long and a ring can be told of memory by its own thread only.  So the control
 * thread registers the memory with a ring of its own, which does nothing else, and every queue
 * clones that registration (Linux 6.12), which is quick, on its thread: by a message of its loop,
 * or at its next batch if that comes first.
 */
#ifndef ENGINE_IO_URING_MEMORY_H
#define ENGINE_IO_URING_MEMORY_H

#include <liburing.h>
#include <pthread.h>

#include "base/list.h"
#include "block/engine.h"

/* A kernel's limit for one buffer. */
#define URING_PIECE_MAX ((uint64_t)1 << 30)

struct uring_piece {
	uintptr_t start, end;
};

/* Of one engine. */
struct uring_memory {
	bool enabled;        /* constant after init */
	char *path;          /* for messages */
	uint32_t generation; /* atomic: goes up with each new table */

	pthread_mutex_t lock; /* for what follows; a queue takes it when the table has changed */
	struct list views;    /* the queues' */
	struct uring_piece *pieces; /* sorted; the index is the kernel's buffer index */
	unsigned npieces;
	int ring_fd; /* the ring that holds the registration; -1 without a table */
	bool warned;
};

struct uring_refresh;

/* Of one queue; its thread's, but for node and refresh, which are under the lock above. */
struct uring_view {
	struct uring_memory *memory;
	struct list node;
	struct uring_refresh *refresh; /* the message under way */
	struct loop *loop;
	struct io_uring *ring;
	uint32_t generation;
	struct uring_piece *pieces;
	unsigned npieces; /* 0: no registered memory */
	bool registered;
};

void uring_memory_init(struct uring_memory *m, const char *path, bool enabled);
void uring_memory_fini(struct uring_memory *m);
/* Control thread: engine_ops.set_memory. */
int uring_memory_set(struct uring_memory *m, const struct engine_memory *memory, unsigned n);

/* The queue's thread. */
void uring_view_init(struct uring_view *v, struct uring_memory *m, struct io_uring *ring);
void uring_view_fini(struct uring_view *v);
void uring_view_update(struct uring_view *v);
/* The registered buffer that holds all of [base, base + len), or -1. */
int uring_view_find(const struct uring_view *v, const void *base, uint64_t len);

#endif
