/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/io_uring_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fd.h"
#include "base/log.h"
#include "loop/loop.h"

/* uapi of Linux 6.12. */
#define REGISTER_CLONE_BUFFERS 30

struct clone_buffers {
	uint32_t src_fd;
	uint32_t flags;
	uint32_t src_off;
	uint32_t dst_off;
	uint32_t nr;
	uint32_t pad[3];
};

/* The kernel's limit for one table. */
#define PIECES_MAX 16384u

struct uring_refresh {
	struct loop_msg msg;
	struct uring_memory *memory;
	struct uring_view *view; /* under the lock; NULL when the queue has gone */
};

static int clone_buffers(int to_fd, int from_fd)
{
	struct clone_buffers arg = {.src_fd = (uint32_t)from_fd};
	long ret = syscall(SYS_io_uring_register, to_fd, REGISTER_CLONE_BUFFERS, &arg, 1);

	return ret < 0 ? -errno : 0;
}

/* Cloning nothing fails with ENXIO where the kernel can clone, with EINVAL where it cannot. */
static bool kernel_clones(void)
{
	struct io_uring_params params = {0};
	fd_cleanup int from = -1, to = -1;

	from = (int)syscall(SYS_io_uring_setup, 1, &params);
	memset(&params, 0, sizeof(params));
	to = (int)syscall(SYS_io_uring_setup, 1, &params);
	return from >= 0 && to >= 0 && clone_buffers(to, from) == -ENXIO;
}

void uring_memory_init(struct uring_memory *m, const char *path, bool enabled)
{
	*m = (struct uring_memory){.path = strdup(path ? path : "image"), .ring_fd = -1};
	list_init(&m->views);
	pthread_mutex_init(&m->lock, NULL);
	m->enabled = enabled && m->path && kernel_clones();
	if (enabled && m->path && !m->enabled)
		log_warn("%s: fixed-buffers needs Linux 6.12: serving without", m->path);
}

void uring_memory_fini(struct uring_memory *m)
{
	ASSERT(list_empty(&m->views));
	fd_close(&m->ring_fd);
	free(m->pieces);
	free(m->path);
	pthread_mutex_destroy(&m->lock);
}

/* ---- the control thread ---- */

static int compare_pieces(const void *a, const void *b)
{
	const struct uring_piece *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* The memory in pieces of at most 1 GiB, sorted.  The number of pieces or a negative errno. */
static int cut(const struct engine_memory *memory, unsigned n, struct uring_piece **out)
{
	uint64_t count = 0;
	struct uring_piece *pieces;
	unsigned k = 0;

	for (unsigned i = 0; i < n; i++)
		count += (memory[i].len_bytes + URING_PIECE_MAX - 1) / URING_PIECE_MAX;
	if (count > PIECES_MAX)
		return -E2BIG;
	pieces = calloc(count + 1, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		uintptr_t start = (uintptr_t)memory[i].base, end = start + memory[i].len_bytes;

		while (start < end) {
			uint64_t len = MIN((uint64_t)(end - start), URING_PIECE_MAX);

			pieces[k++] = (struct uring_piece){start, start + len};
			start += len;
		}
	}
	qsort(pieces, k, sizeof(*pieces), compare_pieces);
	*out = pieces;
	return (int)k;
}

/* A new ring that holds the pieces: its fd or a negative errno.  Takes long: pages are pinned. */
static int register_pieces(const struct uring_piece *pieces, unsigned n)
{
	struct io_uring_params params = {0};
	struct iovec *iov = calloc(n, sizeof(*iov));
	fd_cleanup int fd = -1;
	int ret;

	if (!iov)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		iov[i] = (struct iovec){(void *)pieces[i].start, pieces[i].end - pieces[i].start};
	fd = (int)syscall(SYS_io_uring_setup, 1, &params);
	ret = fd < 0 ? -errno : 0;
	if (ret == 0 && syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS, iov, n) < 0)
		ret = -errno;
	free(iov);
	if (ret < 0)
		return ret;
	ret = fd;
	fd = -1;
	return ret;
}

/* Once an image: it comes again with each table. */
static void warn(struct uring_memory *m, int err)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	bool again;

	pthread_mutex_lock(&m->lock);
	again = m->warned;
	m->warned = true;
	pthread_mutex_unlock(&m->lock);
	if (again)
		return;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (err == -ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		log_warn("%s: fixed-buffers: cannot pin guest memory: %s; the limit of locked "
			 "memory is %" PRIu64 " KiB (ulimit -l); serving without",
			 m->path, strerror(-err), (uint64_t)limit.rlim_cur / 1024);
	else
		log_warn("%s: fixed-buffers: cannot register guest memory: %s; serving without",
			 m->path, strerror(-err));
}

/* On the queue's loop. */
static void refresh_run(struct loop_msg *msg)
{
	struct uring_refresh *r = container_of(msg, struct uring_refresh, msg);
	struct uring_view *v;

	pthread_mutex_lock(&r->memory->lock);
	v = r->view;
	if (v)
		v->refresh = NULL;
	pthread_mutex_unlock(&r->memory->lock);
	if (v)
		uring_view_update(v);
	free(r);
}

/*
 * Tells the queues, with the lock.  A queue that is idle would keep memory pinned that the guest
 * has taken away; one that is not told (no memory for the message) finds out at its next batch.
 */
static void tell_views(struct uring_memory *m)
{
	struct list *pos;

	list_for_each (pos, &m->views) {
		struct uring_view *v = list_entry(pos, struct uring_view, node);

		if (!v->loop || v->refresh)
			continue;
		v->refresh = calloc(1, sizeof(*v->refresh));
		if (!v->refresh)
			continue;
		*v->refresh =
			(struct uring_refresh){.msg = {.run = refresh_run}, .memory = m, .view = v};
		loop_post(v->loop, &v->refresh->msg);
	}
}

int uring_memory_set(struct uring_memory *m, const struct engine_memory *memory, unsigned n)
{
	struct uring_piece *pieces = NULL, *old_pieces;
	int fd = -1, old_fd, npieces, ret = 0;

	if (!m->enabled)
		return 0;
	npieces = cut(memory, n, &pieces);
	if (npieces < 0)
		ret = npieces;
	if (npieces > 0) {
		fd = register_pieces(pieces, (unsigned)npieces);
		if (fd < 0)
			ret = fd;
	}
	if (ret < 0)
		warn(m, ret);

	pthread_mutex_lock(&m->lock);
	old_pieces = m->pieces;
	old_fd = m->ring_fd;
	m->pieces = fd >= 0 ? pieces : NULL;
	m->npieces = fd >= 0 ? (unsigned)npieces : 0;
	m->ring_fd = MAX(fd, -1);
	atomic_store_release(&m->generation, m->generation + 1); /* [MEM2] */
	tell_views(m);
	pthread_mutex_unlock(&m->lock);

	if (fd < 0)
		free(pieces);
	free(old_pieces);
	fd_close(&old_fd);
	return ret;
}

/* ---- the queue's thread ---- */

void uring_view_init(struct uring_view *v, struct uring_memory *m, struct io_uring *ring)
{
	*v = (struct uring_view){.memory = m, .ring = ring, .loop = loop_current()};
	if (!m->enabled)
		return;
	pthread_mutex_lock(&m->lock);
	list_push_back(&m->views, &v->node);
	pthread_mutex_unlock(&m->lock);
	uring_view_update(v);
}

void uring_view_fini(struct uring_view *v)
{
	struct uring_memory *m = v->memory;

	if (!m->enabled)
		return;
	pthread_mutex_lock(&m->lock);
	list_remove(&v->node);
	if (v->refresh)
		v->refresh->view = NULL;
	pthread_mutex_unlock(&m->lock);
	free(v->pieces);
}

/* With the lock: what the view knows becomes what the engine has. */
static int view_copy(struct uring_view *v, const struct uring_memory *m)
{
	int ret;

	if (!m->npieces)
		return 0;
	v->pieces = calloc(m->npieces, sizeof(*v->pieces));
	if (!v->pieces)
		return -ENOMEM;
	ret = clone_buffers(v->ring->ring_fd, m->ring_fd);
	if (ret < 0)
		return ret;
	v->registered = true;
	memcpy(v->pieces, m->pieces, m->npieces * sizeof(*v->pieces));
	v->npieces = m->npieces;
	return 0;
}

void uring_view_update(struct uring_view *v)
{
	struct uring_memory *m = v->memory;
	int ret;

	/* Requests in flight keep the old buffers alive in the kernel. */
	if (v->registered)
		io_uring_unregister_buffers(v->ring);
	v->registered = false;
	v->npieces = 0;
	free(v->pieces);
	v->pieces = NULL;

	pthread_mutex_lock(&m->lock);
	v->generation = m->generation;
	ret = view_copy(v, m);
	pthread_mutex_unlock(&m->lock);
	if (ret < 0)
		warn(m, ret);
}

int uring_view_find(const struct uring_view *v, const void *base, uint64_t len)
{
	uintptr_t start = (uintptr_t)base;
	unsigned low = 0, high = v->npieces;

	while (low < high) { /* the first piece that starts behind it */
		unsigned mid = low + (high - low) / 2;

		if (v->pieces[mid].start <= start)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || start >= v->pieces[low - 1].end || len > v->pieces[low - 1].end - start)
		return -1;
	return (int)(low - 1);
}
