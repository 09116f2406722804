/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The io_uring engine from inside: registered memory, a kernel that refuses, completions that
 * only a look at the submission ring's flags reveals.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "engine/io_uring_queue.h"
#include "engine_rig.h"
#include "test_places.h"

#define MIB   1048576u
#define IMAGE (4u * MIB)

struct fixture {
	struct place place;
	int fd;
	struct engine_config config;
	unsigned char *data; /* what the image holds */
};

static void open_image(struct fixture *f, bool fixed)
{
	if (!place_open(&f->place, PLACE_FILE, IMAGE))
		skip();
	f->fd = place_image(&f->place, true, false);
	assert_true(f->fd >= 0);
	f->config = (struct engine_config){.path = "an image", .fd = f->fd, .direct = true};
	f->config.fixed_buffers = fixed;
	f->data = aligned_alloc(4096, IMAGE);
	assert_non_null(f->data);
	for (unsigned i = 0; i < IMAGE; i++)
		f->data[i] = (unsigned char)(i / 4096 + i * 3);
	assert_int_equal(pwrite(f->fd, f->data, IMAGE, 0), IMAGE);
}

static void close_image(struct fixture *f)
{
	free(f->data);
	fd_close(&f->fd);
	place_close(&f->place);
}

static void *map(void *at, size_t len)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0);
	void *p = mmap(at, len, PROT_READ | PROT_WRITE, flags, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

/* Reads and writes len bytes at buf, and checks them; returns the registered buffer or -1. */
static int use(struct engine_rig *rig, struct fixture *f, void *buf, size_t len)
{
	uint64_t offset = 64 * 1024;

	memset(buf, 0, len);
	assert_int_equal(engine_rig_io(rig, BLK_READ, 0, offset, buf, len), len);
	assert_memory_equal(buf, f->data + offset, len);
	assert_int_equal(engine_rig_io(rig, BLK_WRITE, BLK_FUA, offset, buf, len), len);
	memset(f->data + offset, 0, len);
	assert_int_equal(pread(f->fd, f->data + offset, len, (off_t)offset), len);
	assert_memory_equal(buf, f->data + offset, len);
	return uring_view_find(&rig->queue->view, buf, len);
}

static void need_clones(struct engine_rig *rig, struct fixture *f)
{
	if (rig->engine->memory.enabled)
		return;
	fprintf(stderr, "SKIPPED: this kernel does not clone registered buffers\n");
	engine_rig_close(rig);
	close_image(f);
	skip();
}

static void test_registered_memory(void **state)
{
	struct engine_memory table[2];
	struct engine_rig rig;
	struct fixture f;
	unsigned char *a, *b, *other;

	open_image(&f, true);
	engine_rig_open(&rig, &engine_io_uring, &f.config, 16, false);
	need_clones(&rig, &f);
	a = map(NULL, 2 * MIB);
	b = map(NULL, 8 * MIB);
	other = map(NULL, MIB);
	assert_int_equal(use(&rig, &f, a, 65536), -1);

	table[0] = (struct engine_memory){b, 8 * MIB};
	table[1] = (struct engine_memory){a, 2 * MIB};
	assert_int_equal(engine_io_uring.set_memory(rig.engine, table, 2), 0);
	assert_int_equal(use(&rig, &f, a, 65536), a < b ? 0 : 1);
	assert_int_equal(use(&rig, &f, b + 4 * MIB, 65536), a < b ? 1 : 0);
	assert_int_equal(use(&rig, &f, b + 8 * MIB - 4096, 4096), a < b ? 1 : 0);
	assert_int_equal(use(&rig, &f, other, 65536), -1);

	/* Other memory at the same address: what is read must be there, not in the old pages. */
	munmap(a, 2 * MIB);
	map(a, 2 * MIB);
	assert_int_equal(engine_io_uring.set_memory(rig.engine, table, 2), 0);
	assert_int_equal(use(&rig, &f, a, 65536), a < b ? 0 : 1);

	/* Taken away: the queue lets go of it though nobody submits. */
	assert_int_equal(engine_io_uring.set_memory(rig.engine, NULL, 0), 0);
	assert_int_equal(rig.queue->view.npieces, 2);
	engine_rig_pass(&rig);
	assert_int_equal(rig.queue->view.npieces, 0);
	assert_false(rig.queue->view.registered);
	assert_int_equal(use(&rig, &f, a, 65536), -1);
	engine_rig_close(&rig);
	munmap(a, 2 * MIB);
	munmap(b, 8 * MIB);
	munmap(other, MIB);
	close_image(&f);
}

/* Memory beyond 1 GiB is registered in pieces, and a request across two goes the ordinary way. */
static void test_pieces(void **state)
{
	const size_t gib = URING_PIECE_MAX, len = gib + 4 * MIB;
	struct engine_memory table;
	struct iovec iov[2];
	struct engine_rig_request r;
	struct engine_rig rig;
	struct fixture f;
	unsigned char *a;

	open_image(&f, true);
	engine_rig_open(&rig, &engine_io_uring, &f.config, 16, false);
	need_clones(&rig, &f);
	a = map(NULL, len);
	madvise(a, len, MADV_HUGEPAGE);
	table = (struct engine_memory){a, len};
	assert_int_equal(engine_io_uring.set_memory(rig.engine, &table, 1), 0);
	assert_int_equal(use(&rig, &f, a + gib - 65536, 65536), 0);
	assert_int_equal(use(&rig, &f, a + gib, 65536), 1);
	assert_int_equal(use(&rig, &f, a + gib - 4096, 65536), -1);
	assert_int_equal(use(&rig, &f, a + len - 4096, 4096), 1);

	iov[0] = (struct iovec){a + gib, 4096};
	iov[1] = (struct iovec){a, 4096};
	engine_rig_init(&r, BLK_READ, 0, 8192, NULL, 8192);
	r.req.iov = iov;
	r.req.iovcnt = 2;
	engine_rig_run(&rig, &r, 1);
	assert_int_equal(r.result, 8192);
	assert_memory_equal(a + gib, f.data + 8192, 4096);
	assert_memory_equal(a, f.data + 12288, 4096);
	engine_rig_close(&rig);
	munmap(a, len);
	close_image(&f);
}

/* As a user who may lock 64 KiB: a warning, an errno, and the ordinary way (B52). */
static int limited_child(struct fixture *f)
{
	struct rlimit limit = {65536, 65536};
	struct engine_memory table;
	struct engine_rig rig;
	unsigned char *a;
	int ret;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0 || setuid(65534) < 0)
		return 2;
	engine_rig_open(&rig, &engine_io_uring, &f->config, 16, false);
	a = map(NULL, 16 * MIB);
	table = (struct engine_memory){a, 16 * MIB};
	ret = engine_io_uring.set_memory(rig.engine, &table, 1);
	if (engine_rig_io(&rig, BLK_READ, 0, 4096, a, 4096) != 4096 ||
	    memcmp(a, f->data + 4096, 4096) || rig.queue->view.npieces)
		return 3;
	engine_rig_close(&rig);
	return ret == -ENOMEM ? 0 : 4;
}

static void test_memlock(void **state)
{
	struct engine_rig rig;
	struct fixture f;
	int status;
	pid_t pid;

	if (geteuid()) {
		fprintf(stderr, "SKIPPED: root is needed to become a user with a limit\n");
		skip();
	}
	open_image(&f, true);
	engine_rig_open(&rig, &engine_io_uring, &f.config, 16, false);
	need_clones(&rig, &f);
	engine_rig_close(&rig);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(limited_child(&f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close_image(&f);
}

/* ---- the ring ---- */

/* io_uring_enter fails for good: every request of the batch ends with its error, none is lost. */
static void test_enter_refused(void **state)
{
	static struct engine_rig_request r[20];
	struct engine_rig rig;
	struct fixture f;
	unsigned char *buf;
	int good;

	open_image(&f, false);
	buf = aligned_alloc(4096, IMAGE);
	assert_non_null(buf);
	engine_rig_open(&rig, &engine_io_uring, &f.config, 8, false);
	io_uring_unregister_ring_fd(&rig.queue->ring);
	good = rig.queue->ring.enter_ring_fd;
	rig.queue->ring.enter_ring_fd = -1;
	for (unsigned i = 0; i < ARRAY_SIZE(r); i++)
		engine_rig_init(&r[i], BLK_READ, 0, i * 4096, buf + i * 4096, 4096);
	engine_rig_run(&rig, r, ARRAY_SIZE(r));
	for (unsigned i = 0; i < ARRAY_SIZE(r); i++)
		assert_int_equal(r[i].result, -EBADF);
	assert_int_equal(rig.queue->in_flight, 0);

	rig.queue->ring.enter_ring_fd = good;
	engine_rig_run(&rig, r, ARRAY_SIZE(r));
	for (unsigned i = 0; i < ARRAY_SIZE(r); i++)
		assert_int_equal(r[i].result, 4096);
	assert_memory_equal(buf, f.data, ARRAY_SIZE(r) * 4096);
	engine_rig_close(&rig);
	free(buf);
	close_image(&f);
}

/* ---- without a loop: nobody but the test looks ---- */

struct bare {
	struct fixture f;
	struct engine *e;
	struct engine_queue *q;
	struct blk_request req;
	struct iovec iov;
	unsigned char *buf;
	unsigned done;
	int event_fd;
};

static void bare_done(struct blk_request *req, int64_t result)
{
	struct bare *b = container_of(req, struct bare, req);

	assert_int_equal(result, 4096);
	b->done++;
}

static void bare_open(struct bare *b, bool fixed)
{
	struct engine_queue_config depth = {.depth = 4};
	struct engine_info info;
	struct error err;

	memset(b, 0, sizeof(*b));
	open_image(&b->f, fixed);
	b->buf = map(NULL, 65536);
	assert_int_equal(engine_io_uring.open(&b->f.config, &b->e, &info, &err), 0);
	assert_int_equal(engine_io_uring.queue_create(b->e, &depth, &b->q, &err), 0);
	b->event_fd = engine_io_uring.event_fd(b->q);
}

static void bare_close(struct bare *b)
{
	engine_io_uring.queue_destroy(b->q);
	engine_io_uring.close(b->e);
	munmap(b->buf, 65536);
	close_image(&b->f);
}

static void bare_submit_read(struct bare *b, uint64_t offset)
{
	struct blk_request *list[1] = {&b->req};

	b->iov = (struct iovec){b->buf, 4096};
	b->req = (struct blk_request){.op = BLK_READ,
				      .offset_bytes = offset,
				      .len_bytes = 4096,
				      .iov = &b->iov,
				      .iovcnt = 1,
				      .engine_done = bare_done};
	b->done = 0;
	assert_int_equal(engine_io_uring.submit_batch(b->q, list, 1), 1);
}

/*
 * Submit, arm, wait for the eventfd alone.  With deferred task work the completion is not in the
 * ring when the eventfd fires: a bit in the submission ring's flags is all there is.
 */
static void test_event_reveals_task_work(void **state)
{
	struct pollfd pfd = {.events = POLLIN};
	unsigned hidden = 0;
	struct bare b;

	bare_open(&b, false);
	pfd.fd = b.event_fd;
	for (unsigned i = 0; i < 300; i++) {
		engine_io_uring.disarm(b.q);
		bare_submit_read(&b, i * 4096);
		while (!engine_io_uring.poll(b.q)) {
			if (engine_io_uring.arm(b.q))
				continue;
			assert_int_equal(poll(&pfd, 1, 10000), 1); /* the wake-up is not lost */
			eventfd_clear(pfd.fd);
			hidden += *b.q->ring.cq.khead == *b.q->ring.cq.ktail;
			engine_io_uring.disarm(b.q);
		}
		assert_int_equal(b.done, 1);
	}
	if (b.q->ring.flags & IORING_SETUP_DEFER_TASKRUN)
		assert_true(hidden > 0);
	bare_close(&b);
}

/* What ended before arm made no event: arm has to see it, and the next poll has to reap it. */
static void test_arm_looks_again(void **state)
{
	struct timespec pause = {0, 100000};
	struct bare b;

	bare_open(&b, false);
	for (unsigned i = 0; i < 50; i++) {
		engine_io_uring.disarm(b.q);
		eventfd_clear(b.event_fd);
		bare_submit_read(&b, i * 4096);
		for (unsigned n = 0; n < 10000; n++) { /* 1 s at least */
			if (*(volatile unsigned *)b.q->ring.sq.kflags & IORING_SQ_TASKRUN ||
			    *(volatile unsigned *)b.q->ring.cq.ktail != *b.q->ring.cq.khead)
				break;
			nanosleep(&pause, NULL);
		}
		assert_false(eventfd_clear(b.event_fd));
		assert_true(engine_io_uring.arm(b.q));
		assert_int_equal(engine_io_uring.poll(b.q), 1);
		assert_int_equal(b.done, 1);
		assert_false(eventfd_clear(b.event_fd));
	}
	bare_close(&b);
}

/* Puts another ring in the place of the queue's. */
static void replace_ring(struct bare *b, struct io_uring_params *params, unsigned entries)
{
	struct engine_queue *q = b->q;

	io_uring_queue_exit(&q->ring);
	assert_int_equal(io_uring_queue_init_params(entries, &q->ring, params), 0);
	assert_int_equal(io_uring_register_eventfd(&q->ring, q->event_fd), 0);
	io_uring_cq_eventfd_toggle(&q->ring, false);
	q->fixed_file = false;
}

/* Rings as older kernels make them: sleeping on the eventfd works with each. */
static void test_older_rings(void **state)
{
	static const unsigned flags[] = {0, IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG};
	struct pollfd pfd = {.events = POLLIN};

	for (unsigned k = 0; k < ARRAY_SIZE(flags); k++) {
		struct io_uring_params params = {.flags = flags[k]};
		struct bare b;

		bare_open(&b, false);
		pfd.fd = b.event_fd;
		replace_ring(&b, &params, 4);
		for (unsigned i = 0; i < 200; i++) {
			engine_io_uring.disarm(b.q);
			bare_submit_read(&b, i * 4096);
			while (!engine_io_uring.poll(b.q)) {
				if (!engine_io_uring.arm(b.q)) {
					assert_int_equal(poll(&pfd, 1, 10000), 1);
					eventfd_clear(pfd.fd);
				}
				engine_io_uring.disarm(b.q);
			}
			assert_int_equal(b.done, 1);
		}
		bare_close(&b);
	}
}

static unsigned many_done;

static void many_count(struct blk_request *req, int64_t result)
{
	assert_int_equal(result, 4096);
	many_done++;
}

/*
 * Sixty-four completions for a completion ring of eight, by a queue that is told that it holds
 * them: those that overflowed are seen by looking alone, without a new submission (B12, B38).
 */
static void test_overflow_is_seen(void **state)
{
	struct io_uring_params params = {.flags = IORING_SETUP_CQSIZE, .cq_entries = 8};
	static struct blk_request reqs[64];
	struct blk_request *list[64];
	struct timespec pause = {0, 1000000};
	unsigned accepted = 0;
	struct bare b;

	bare_open(&b, false);
	replace_ring(&b, &params, 8);
	b.q->depth = 64;
	b.iov = (struct iovec){b.buf, 4096};
	for (unsigned i = 0; i < 64; i++) {
		reqs[i] = (struct blk_request){.op = BLK_READ,
					       .offset_bytes = i * 4096,
					       .len_bytes = 4096,
					       .iov = &b.iov,
					       .iovcnt = 1,
					       .engine_done = many_count};
		list[i] = &reqs[i];
	}
	many_done = 0;
	while (accepted < 64) {
		unsigned n = engine_io_uring.submit_batch(b.q, list + accepted, 64 - accepted);

		if (!n) /* EBUSY: the kernel wants us to reap first */
			engine_io_uring.poll(b.q);
		accepted += n;
		nanosleep(&pause, NULL);
	}
	for (unsigned i = 0; i < 1000 && many_done < 64; i++) {
		if (!engine_io_uring.poll(b.q))
			nanosleep(&pause, NULL);
	}
	assert_int_equal(many_done, 64);
	assert_int_equal(b.q->in_flight, 0);
	bare_close(&b);
}

/* A queue that no message reaches in time takes a new table at its next batch. */
static void test_memory_at_next_batch(void **state)
{
	struct engine_memory table;
	struct bare b;

	bare_open(&b, true);
	for (unsigned i = 0; b.e->memory.enabled && i < 3; i++) {
		munmap(b.buf, 65536);
		map(b.buf, 65536);
		table = (struct engine_memory){b.buf, 65536};
		assert_int_equal(engine_io_uring.set_memory(b.e, &table, 1), 0);
		bare_submit_read(&b, i * 4096);
		assert_int_equal(uring_view_find(&b.q->view, b.buf, 4096), 0);
		while (!engine_io_uring.poll(b.q))
			;
		assert_memory_equal(b.buf, b.f.data + i * 4096, 4096);
	}
	bare_close(&b);
}

/* While somebody looks nobody is notified: a thousand completions, not one eventfd write. */
static void test_polled_without_events(void **state)
{
	struct engine_rig_request r;
	struct engine_rig rig;
	struct fixture f;
	unsigned char *buf;

	open_image(&f, false);
	buf = aligned_alloc(4096, 4096);
	assert_non_null(buf);
	engine_rig_open(&rig, &engine_io_uring, &f.config, 8, true);
	engine_rig_init(&r, BLK_READ, 0, 0, buf, 4096);
	engine_rig_run(&rig, &r, 1);
	loop_remove_fd(rig.loop, &rig.event);
	eventfd_clear(rig.event.fd);
	for (unsigned i = 0; i < 1000; i++) {
		engine_rig_run(&rig, &r, 1);
		assert_int_equal(r.result, 4096);
	}
	assert_false(eventfd_clear(rig.event.fd));
	rig.event.fd = -1;
	engine_rig_close(&rig);
	free(buf);
	close_image(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registered_memory),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_memlock),
		cmocka_unit_test(test_enter_refused),
		cmocka_unit_test(test_event_reveals_task_work),
		cmocka_unit_test(test_arm_looks_again),
		cmocka_unit_test(test_older_rings),
		cmocka_unit_test(test_overflow_is_seen),
		cmocka_unit_test(test_memory_at_next_batch),
		cmocka_unit_test(test_polled_without_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
