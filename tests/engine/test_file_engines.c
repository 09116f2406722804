/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engines that serve files, each on each kind of image, with and without O_DIRECT: data,
 * zeroes, errors, more requests than the queue holds, sleeping on the completion event.
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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "engine/linux_aio_queue.h"
#include "engine_rig.h"
#include "test_places.h"

#define MIB   1048576u
#define IMAGE (4u * MIB)
#define DEPTH 8u

static const struct engine_ops *const engines[] = {&engine_io_uring, &engine_linux_aio,
						   &engine_threads};

struct setting {
	const struct engine_ops *ops;
	enum place_kind place;
	bool direct, polling;
	bool no_ring; /* linux-aio: as on a kernel whose ring we do not know */
	char name[64];
};

struct fixture {
	struct place place;
	int fd;
	struct engine_rig rig;
	unsigned char *buf, *expect; /* IMAGE bytes each, page-aligned */
	struct engine_config config;
};

/* Fails by itself, or skips; *f is complete afterwards. */
static void open_fixture(struct fixture *f, const struct setting *s)
{
	if (!place_open(&f->place, s->place, IMAGE))
		skip();
	f->fd = place_image(&f->place, s->direct, false);
	if (f->fd == -EINVAL && s->direct) {
		fprintf(stderr, "SKIPPED: no O_DIRECT on %s here\n", place_names[s->place]);
		place_close(&f->place);
		skip();
	}
	assert_true(f->fd >= 0);
	f->buf = aligned_alloc(4096, IMAGE);
	f->expect = aligned_alloc(4096, IMAGE);
	assert_non_null(f->buf);
	assert_non_null(f->expect);
	f->config = (struct engine_config){.path = f->place.path, .fd = f->fd, .direct = s->direct};
	engine_rig_open(&f->rig, s->ops, &f->config, DEPTH, s->polling);
	if (s->no_ring)
		f->rig.queue->ring = NULL;
}

static void close_fixture(struct fixture *f)
{
	engine_rig_close(&f->rig);
	free(f->buf);
	free(f->expect);
	fd_close(&f->fd);
	place_close(&f->place);
}

static void fill(unsigned char *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (unsigned char)(seed + i / 512 * 7 + i);
}

/* Offsets and lengths of everything: a multiple of every block size here. */
static uint64_t block(const struct fixture *f)
{
	return MAX(f->rig.info.logical_block, 512u);
}

/* Writes expect[] to the image and reads the whole of it back. */
static void fill_image(struct fixture *f, unsigned seed)
{
	fill(f->expect, IMAGE, seed);
	assert_int_equal(engine_rig_io(&f->rig, BLK_WRITE, 0, 0, f->expect, IMAGE), IMAGE);
}

static void check_image(struct fixture *f)
{
	memset(f->buf, 0x55, IMAGE);
	assert_int_equal(engine_rig_io(&f->rig, BLK_READ, 0, 0, f->buf, IMAGE), IMAGE);
	assert_memory_equal(f->buf, f->expect, IMAGE);
}

/* ---- what open says ---- */

static void check_info(struct fixture *f, const struct setting *s)
{
	const struct engine_info *info = &f->rig.info;
	bool device = s->place >= PLACE_LOOP512;
	struct stat st;

	assert_int_equal(info->size_bytes, IMAGE);
	assert_int_equal(s->ops->refresh_size(f->rig.engine), IMAGE);
	assert_true(info->max_iov >= 128);
	assert_true(info->max_transfer_bytes >= MIB);
	assert_true(info->physical_block >= info->logical_block);
	assert_true(info->caps & ENGINE_CAP_WRITE_CACHE);
	assert_true(info->caps & ENGINE_CAP_FUA);
	assert_true(info->caps & ENGINE_CAP_DISCARD);
	assert_true(info->discard_granularity > 0);
	assert_true(info->caps & ENGINE_CAP_WRITE_ZEROES);
	assert_int_equal(!!(info->caps & ENGINE_CAP_ZERO_NO_UNMAP), s->place != PLACE_TMPFS);
	if (s->place == PLACE_LOOP4096)
		assert_int_equal(info->logical_block, 4096);
	else if (s->place == PLACE_LOOP512)
		assert_int_equal(info->logical_block, 512);
	else if (!s->direct || s->place == PLACE_TMPFS)
		assert_int_equal(info->logical_block, 1);
	if (!s->direct)
		assert_int_equal(info->memory_align, 1);
	if (!device) {
		assert_int_equal(fstat(f->place.backing_fd, &st), 0);
		assert_int_equal(info->physical_block, st.st_blksize);
	}
}

/* ---- data ---- */

static void check_segments(struct fixture *f)
{
	uint64_t unit = block(f), offset = 5 * unit;
	struct iovec iov[100];
	struct engine_rig_request r;

	fill(f->expect + offset, 100 * unit, 77);
	for (unsigned i = 0; i < 100; i++)
		iov[i] = (struct iovec){f->expect + offset + i * unit, unit};
	engine_rig_init(&r, BLK_WRITE, 0, offset, NULL, 100 * unit);
	r.req.iov = iov;
	r.req.iovcnt = 100;
	engine_rig_run(&f->rig, &r, 1);
	assert_int_equal(r.result, 100 * unit);

	/* Read backwards: segment 99 of the range first. */
	for (unsigned i = 0; i < 100; i++)
		iov[i] = (struct iovec){f->buf + (99 - i) * unit, unit};
	r.req.op = BLK_READ;
	engine_rig_run(&f->rig, &r, 1);
	assert_int_equal(r.result, 100 * unit);
	for (unsigned i = 0; i < 100; i++)
		assert_memory_equal(f->buf + (99 - i) * unit, f->expect + offset + i * unit, unit);
	check_image(f);
}

static void check_flush_and_fua(struct fixture *f)
{
	uint64_t unit = block(f);

	assert_int_equal(engine_rig_io(&f->rig, BLK_FLUSH, 0, 0, NULL, 0), 0);
	fill(f->expect + 3 * unit, 2 * unit, 31);
	assert_int_equal(engine_rig_io(&f->rig, BLK_WRITE, BLK_FUA, 3 * unit, f->expect + 3 * unit,
				       2 * unit),
			 2 * unit);
	check_image(f);
}

/* Flushes that a loop device was asked for, as its statistics count them; -1 if they do not say. */
static long device_flushes(const struct fixture *f)
{
	char path[64], text[512] = "";
	const char *p = text;
	fd_cleanup int fd = -1;

	snprintf(path, sizeof(path), "/sys/block/%.32s/stat", strrchr(f->place.path, '/') + 1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -1;
	for (unsigned i = 0; i < 15 && p; i++) { /* the 16th number */
		p += strspn(p, " ");
		p = strchr(p, ' ');
	}
	return p ? strtol(p, NULL, 10) : -1;
}

/* A durable write makes the device flush, a plain one does not, a flush request does (B43). */
static void check_durability(struct fixture *f, const struct setting *s)
{
	long start = device_flushes(f), after_plain, after_fua, after_flush;

	if (s->place < PLACE_LOOP512 || start < 0)
		return;
	for (unsigned i = 0; i < 3; i++)
		engine_rig_io(&f->rig, BLK_WRITE, 0, i * 4096, f->expect + i * 4096, 4096);
	after_plain = device_flushes(f);
	for (unsigned i = 0; i < 3; i++)
		engine_rig_io(&f->rig, BLK_WRITE, BLK_FUA, i * 4096, f->expect + i * 4096, 4096);
	after_fua = device_flushes(f);
	engine_rig_io(&f->rig, BLK_FLUSH, 0, 0, NULL, 0);
	after_flush = device_flushes(f);
	assert_int_equal(after_plain, start);
	/* pwritev2 flushes twice: after the request, and for the file. */
	assert_true(after_fua == start + 3 || after_fua == start + 6);
	assert_int_equal(after_flush, after_fua + 1);
}

/* The smallest alignment of memory that open promises, and not one byte more. */
static void check_memory_alignment(struct fixture *f)
{
	uint64_t unit = block(f), align = f->rig.info.memory_align;

	assert_int_equal(engine_rig_io(&f->rig, BLK_READ, 0, unit, f->buf + align, unit), unit);
	assert_memory_equal(f->buf + align, f->expect + unit, unit);
}

/* Twenty times what the queue holds, in one batch, reads and writes mixed; flushes between. */
static void check_beyond_depth(struct fixture *f)
{
	static struct engine_rig_request r[20 * DEPTH];
	unsigned n = ARRAY_SIZE(r), partial = f->rig.partial;
	uint64_t len = 4096;

	for (unsigned i = 0; i < n; i++) {
		uint64_t offset = i * len;

		if (i % 16 == 15) {
			engine_rig_init(&r[i], BLK_FLUSH, 0, 0, NULL, 0);
		} else if (i % 2) {
			fill(f->expect + offset, len, i * 3);
			engine_rig_init(&r[i], BLK_WRITE, 0, offset, f->expect + offset, len);
		} else {
			engine_rig_init(&r[i], BLK_READ, 0, offset, f->buf + offset, len);
		}
	}
	engine_rig_run(&f->rig, r, n);
	for (unsigned i = 0; i < n; i++) {
		if (r[i].req.op == BLK_FLUSH) {
			assert_int_equal(r[i].result, 0);
			continue;
		}
		assert_int_equal(r[i].result, len);
		if (r[i].req.op == BLK_READ)
			assert_memory_equal(f->buf + i * len, f->expect + i * len, len);
	}
	assert_true(f->rig.partial > partial);
	check_image(f);
}

/* One at a time: the loop has nothing to do but to sleep until the kernel wakes it. */
static void check_sleeping(struct fixture *f, const struct setting *s)
{
	struct loop_stats before, after;

	loop_stats_read(f->rig.loop, &before);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t offset = (i * 37 % 1000) * 4096;

		assert_int_equal(engine_rig_io(&f->rig, BLK_READ, 0, offset, f->buf + offset, 4096),
				 4096);
		assert_memory_equal(f->buf + offset, f->expect + offset, 4096);
	}
	loop_stats_read(f->rig.loop, &after);
	if (s->polling)
		assert_int_equal(after.sleeps, before.sleeps);
	else if (s->ops == &engine_threads)
		assert_true(after.sleeps > before.sleeps);
}

/* ---- zeroes and discards ---- */

static void check_zeroes_of(struct fixture *f, uint32_t flags)
{
	static const unsigned lens[] = {1, 2, 3, 5, 8, 16, 17, 64};
	uint64_t unit = block(f), at = 3 * unit;

	for (unsigned i = 0; i < ARRAY_SIZE(lens); i++) {
		uint64_t len = lens[i] * unit;

		assert_int_equal(engine_rig_io(&f->rig, BLK_WRITE_ZEROES, flags, at, NULL, len), 0);
		memset(f->expect + at, 0, len);
		at += len + unit;
	}
	check_image(f); /* what lies between is as it was */
}

static uint64_t allocated(const struct fixture *f)
{
	struct stat st;

	assert_int_equal(fdatasync(f->place.backing_fd), 0);
	assert_int_equal(fstat(f->place.backing_fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void check_zeroes_and_discard(struct fixture *f)
{
	uint32_t caps = f->rig.info.caps;
	uint64_t full;

	fill_image(f, 5);
	if (caps & ENGINE_CAP_ZERO_NO_UNMAP) {
		check_zeroes_of(f, 0);
		check_zeroes_of(f, BLK_FUA);
	}
	check_zeroes_of(f, BLK_UNMAP);

	fill_image(f, 6);
	assert_int_equal(engine_rig_io(&f->rig, BLK_FLUSH, 0, 0, NULL, 0), 0);
	full = allocated(f);
	if (caps & ENGINE_CAP_ZERO_NO_UNMAP) {
		assert_int_equal(engine_rig_io(&f->rig, BLK_WRITE_ZEROES, 0, MIB, NULL, MIB), 0);
		memset(f->expect + MIB, 0, MIB);
		assert_true(allocated(f) >= full);
	}
	assert_int_equal(engine_rig_io(&f->rig, BLK_WRITE_ZEROES, BLK_UNMAP, 2 * MIB, NULL, MIB),
			 0);
	memset(f->expect + 2 * MIB, 0, MIB);
	check_image(f);
	assert_int_equal(engine_rig_io(&f->rig, BLK_DISCARD, 0, 3 * MIB, NULL, MIB), 0);
	assert_true(allocated(f) <= full - MIB);
	/* Punched holes read as zeroes, in a file and in a file behind a loop device. */
	memset(f->expect + 3 * MIB, 0, MIB);
	check_image(f);
}

/* A batch where the kernel's queue and the worker pool take turns. */
static void check_mixed_batch(struct fixture *f)
{
	static struct engine_rig_request r[30];
	uint64_t len = 64 * 1024;

	fill_image(f, 9);
	for (unsigned i = 0; i < ARRAY_SIZE(r); i++) {
		uint64_t offset = i * len;

		if (i % 3 == 2) {
			engine_rig_init(&r[i], BLK_WRITE_ZEROES, BLK_UNMAP, offset, NULL, len);
			memset(f->expect + offset, 0, len);
		} else {
			engine_rig_init(&r[i], BLK_READ, 0, offset, f->buf + offset, len);
		}
	}
	engine_rig_run(&f->rig, r, ARRAY_SIZE(r));
	for (unsigned i = 0; i < ARRAY_SIZE(r); i++)
		assert_int_equal(r[i].result, i % 3 == 2 ? 0 : (int64_t)len);
	check_image(f);
}

/* ---- errors ---- */

static void check_errors(struct fixture *f, const struct setting *s)
{
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(hole != MAP_FAILED);
	assert_int_equal(engine_rig_io(&f->rig, BLK_READ, 0, 0, hole, 4096), -EFAULT);
	munmap(hole, 4096);
	if (s->direct && f->rig.info.logical_block > 1)
		assert_int_equal(engine_rig_io(&f->rig, BLK_READ, 0, 1, f->buf, 4096), -EINVAL);

	/* Refused by io_submit in the middle of a batch, by the others later. */
	if (s->place == PLACE_FILE) {
		static struct engine_rig_request r[5];

		for (unsigned i = 0; i < 5; i++)
			engine_rig_init(&r[i], BLK_READ, 0, i * 4096, f->buf + i * 4096, 4096);
		r[2].iov.iov_len = SIZE_MAX - 4095;
		if (s->ops != &engine_io_uring) { /* its lengths have 32 bits */
			engine_rig_run(&f->rig, r, 5);
			for (unsigned i = 0; i < 5; i++)
				assert_int_equal(r[i].result, i == 2 ? -EINVAL : 4096);
		}

		/* The image became shorter: the raw result is short, and the size is seen. */
		assert_int_equal(ftruncate(f->place.backing_fd, IMAGE - 4096), 0);
		assert_int_equal(s->ops->refresh_size(f->rig.engine), IMAGE - 4096);
		assert_int_equal(engine_rig_io(&f->rig, BLK_READ, 0, IMAGE - 8192, f->buf, 8192),
				 4096);
		assert_int_equal(engine_rig_io(&f->rig, BLK_READ, 0, IMAGE - 4096, f->buf, 4096),
				 0);
	}
}

static unsigned count_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_everything(void **state)
{
	const struct setting *s = *state;
	unsigned fds = count_fds();
	struct fixture f;

	open_fixture(&f, s);
	check_info(&f, s);
	fill_image(&f, 1);
	check_image(&f);
	check_segments(&f);
	check_flush_and_fua(&f);
	check_durability(&f, s);
	check_memory_alignment(&f);
	check_beyond_depth(&f);
	check_sleeping(&f, s);
	check_zeroes_and_discard(&f);
	check_mixed_batch(&f);
	check_errors(&f, s);
	close_fixture(&f);
	assert_int_equal(count_fds(), fds);
}

/* Two queues of one engine at once, many opens: nothing of one is left in the next. */
static void test_open_and_close(void **state)
{
	const struct setting *s = *state;
	struct engine_queue_config depth = {.depth = 32};
	unsigned fds = count_fds();
	struct fixture f;

	open_fixture(&f, s);
	fds = count_fds();
	for (unsigned i = 0; i < 20; i++) {
		struct engine_queue *a, *b;
		struct engine_info info;
		struct engine *e;
		struct error err;

		assert_int_equal(s->ops->open(&f.config, &e, &info, &err), 0);
		assert_int_equal(s->ops->queue_create(e, &depth, &a, &err), 0);
		assert_int_equal(s->ops->queue_create(e, &depth, &b, &err), 0);
		s->ops->queue_destroy(a);
		s->ops->queue_destroy(b);
		s->ops->close(e);
		assert_int_equal(count_fds(), fds);
	}
	close_fixture(&f);
}

static void test_read_only(void **state)
{
	const struct setting *s = *state;
	struct engine_rig rig;
	struct fixture f;

	open_fixture(&f, s);
	fill_image(&f, 3);
	fd_close(&f.fd);
	f.fd = place_image(&f.place, s->direct, true);
	assert_true(f.fd >= 0);
	f.config.fd = f.fd;
	f.config.read_only = true;
	engine_rig_open(&rig, s->ops, &f.config, DEPTH, s->polling);
	assert_int_equal(rig.info.caps, 0);
	assert_int_equal(engine_rig_io(&rig, BLK_READ, 0, 0, f.buf, 4096), 4096);
	assert_memory_equal(f.buf, f.expect, 4096);
	assert_int_equal(engine_rig_io(&rig, BLK_WRITE, 0, 0, f.buf, 4096), -EBADF);
	assert_int_equal(engine_rig_io(&rig, BLK_FLUSH, 0, 0, NULL, 0), 0);
	assert_true(engine_rig_io(&rig, BLK_DISCARD, 0, 0, NULL, 4096) < 0);
	engine_rig_close(&rig);
	close_fixture(&f);
}

static unsigned done_calls;

static void note_done(struct blk_request *req, int64_t result)
{
	assert_int_equal(result, 4096);
	done_calls++;
}

/* The owner read the eventfd and only then arms: what has completed is seen all the same. */
static void test_arm_looks_again(void **state)
{
	const struct setting *s = *state;
	struct pollfd pfd = {.events = POLLIN};
	struct engine_queue *q;
	struct fixture f;

	open_fixture(&f, s);
	fill_image(&f, 4);
	q = f.rig.queue;
	pfd.fd = s->ops->event_fd(q);
	for (unsigned i = 0; i < 20; i++) {
		struct iovec iov = {f.buf, 4096};
		struct blk_request req = {.op = BLK_READ,
					  .len_bytes = 4096,
					  .iov = &iov,
					  .iovcnt = 1,
					  .engine_done = note_done};
		struct blk_request *list[1] = {&req};

		done_calls = 0;
		eventfd_clear(pfd.fd);
		assert_int_equal(s->ops->submit_batch(q, list, 1), 1);
		assert_int_equal(poll(&pfd, 1, 10000), 1);
		eventfd_clear(pfd.fd);
		assert_true(s->ops->arm(q));
		assert_int_equal(s->ops->poll(q), 1);
		assert_int_equal(done_calls, 1);
	}
	close_fixture(&f);
}

/* Things that are no images are refused, with a word about what they are. */
static void test_refused(void **state)
{
	static const char *const paths[] = {"/dev/null", "/tmp"};

	for (unsigned i = 0; i < ARRAY_SIZE(engines); i++) {
		for (unsigned j = 0; j < ARRAY_SIZE(paths); j++) {
			struct engine_config config = {.path = paths[j], .read_only = true};
			struct engine_info info;
			struct engine *e;
			struct error err;

			config.fd = open(paths[j], O_RDONLY | O_CLOEXEC);
			assert_true(config.fd >= 0);
			assert_int_equal(engines[i]->open(&config, &e, &info, &err), -ENOTSUP);
			assert_non_null(strstr(err.text, paths[j]));
			close(config.fd);
		}
	}
}

/* Sizes that are no multiple of anything are told exactly (B45). */
static void test_odd_sizes(void **state)
{
	static const uint64_t sizes[] = {0, 1, 511, 512, 513, 4095, MIB + 1};

	for (unsigned i = 0; i < ARRAY_SIZE(engines); i++) {
		for (unsigned j = 0; j < ARRAY_SIZE(sizes); j++) {
			struct engine_config config = {.path = "odd", .direct = true};
			struct engine_info info;
			struct engine *e;
			struct error err;
			struct place p;

			assert_true(place_open(&p, PLACE_FILE, sizes[j]));
			config.fd = place_image(&p, true, false);
			assert_true(config.fd >= 0);
			assert_int_equal(engines[i]->open(&config, &e, &info, &err), 0);
			assert_int_equal(info.size_bytes, sizes[j]);
			assert_true(info.logical_block >= 1 && info.logical_block <= 4096);
			engines[i]->close(e);
			close(config.fd);
			place_close(&p);
		}
	}
}

#define SETTINGS ((ARRAY_SIZE(engines) + 1) * PLACE_COUNT * 4)

static void add_setting(struct CMUnitTest *test, struct setting *s)
{
	snprintf(s->name, sizeof(s->name), "%s%s, %s, %s, %s", s->ops->name,
		 s->no_ring ? " (io_getevents)" : "", place_names[s->place],
		 s->direct ? "direct" : "buffered", s->polling ? "polling" : "sleeping");
	*test = (struct CMUnitTest){
		.name = s->name, .test_func = test_everything, .initial_state = s};
}

static int run_everything(void)
{
	static struct setting settings[SETTINGS];
	static struct CMUnitTest tests[SETTINGS];
	unsigned n = 0;

	for (unsigned e = 0; e <= ARRAY_SIZE(engines); e++) {
		bool no_ring = e == ARRAY_SIZE(engines);

		for (unsigned p = 0; p < PLACE_COUNT; p++) {
			for (unsigned i = no_ring ? 2 : 0; i < 4; i++, n++) {
				settings[n] = (struct setting){.ops = no_ring ? &engine_linux_aio
									      : engines[e],
							       .place = (enum place_kind)p,
							       .direct = i & 2,
							       .polling = i & 1,
							       .no_ring = no_ring};
				add_setting(&tests[n], &settings[n]);
			}
		}
	}
	return _cmocka_run_group_tests("file engines", tests, n, NULL, NULL);
}

int main(void)
{
	static struct setting on_file[] = {{.ops = &engine_io_uring, .direct = true},
					   {.ops = &engine_linux_aio, .direct = true},
					   {.ops = &engine_threads, .direct = true}};
	static struct setting on_device = {
		.ops = &engine_io_uring, .place = PLACE_LOOP512, .direct = true};
	static struct setting no_ring = {.ops = &engine_linux_aio, .direct = true, .no_ring = true};
	static const struct CMUnitTest others[] = {
		cmocka_unit_test_prestate(test_arm_looks_again, &on_file[1]),
		cmocka_unit_test_prestate(test_arm_looks_again, &no_ring),
		cmocka_unit_test_prestate(test_open_and_close, &on_file[0]),
		cmocka_unit_test_prestate(test_open_and_close, &on_file[1]),
		cmocka_unit_test_prestate(test_open_and_close, &on_file[2]),
		cmocka_unit_test_prestate(test_read_only, &on_file[0]),
		cmocka_unit_test_prestate(test_read_only, &on_file[1]),
		cmocka_unit_test_prestate(test_read_only, &on_file[2]),
		cmocka_unit_test_prestate(test_read_only, &on_device),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_odd_sizes),
	};
	int failed = run_everything();

	return failed + cmocka_run_group_tests(others, NULL, NULL);
}
