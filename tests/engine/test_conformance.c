/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One suite for every engine: what goes in through a channel comes out again, on every kind of
 * image, whatever the kernel does in between.  Engines differ in what they can, not in this.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/iov.h"
#include "engine/fault.h"
#include "fakes/block_rig.h"
#include "test_places.h"

#define IMAGE_BYTES (16u << 20)
#define BATCH       64 /* requests at once */
#define KERNEL      8  /* that the kernel's queue holds */
#define MAX_BYTES   (1u << 20)
#define MAX_PARTS   40
#define NO_PLACE    PLACE_COUNT

struct subject {
	const struct engine_ops *ops;
	enum place_kind kind;
	bool direct;
	uint32_t block_bytes;
	/* Made by open_subject(). */
	const struct engine_ops *wrapped;
	struct place place;
	struct block_rig rig;
	unsigned seed;
	bool keeps_data;
};

static char model[IMAGE_BYTES];

static const char *subject_name(const struct subject *s)
{
	static char name[128];

	snprintf(name, sizeof(name), "%s on %s%s, block %u", s->ops->name,
		 s->kind == NO_PLACE ? "nothing" : place_names[s->kind],
		 s->direct ? " (direct)" : "", s->block_bytes);
	return name;
}

/* ---- images ---- */

static bool open_subject(struct subject *s, const char *faults, unsigned nthreads, uint64_t bytes,
			 unsigned queue_depth)
{
	struct disk_config config = {
		.id = "conformance",
		.engine = {.fd = -1, .direct = s->direct, .size_bytes = bytes},
		.block_bytes = s->block_bytes,
		.discard = true,
		.queue_depth = queue_depth,
	};

	if (s->kind != NO_PLACE) {
		if (!place_open(&s->place, s->kind, bytes))
			return false;
		config.engine.path = s->place.path;
		config.engine.fd = place_image(&s->place, s->direct, false);
		if (config.engine.fd < 0) {
			print_message("%s: %s\n", subject_name(s), strerror(-config.engine.fd));
			place_close(&s->place);
			return false;
		}
	}
	s->wrapped = faults ? fault_wrap(s->ops, faults) : NULL;
	config.ops = faults ? s->wrapped : s->ops;
	s->seed = 42;
	s->keeps_data = s->ops != &engine_null;
	rig_open(&s->rig, &config, nthreads);
	return true;
}

static void close_subject(struct subject *s)
{
	rig_close(&s->rig);
	if (s->wrapped)
		fault_unwrap(s->wrapped);
	if (s->kind != NO_PLACE)
		place_close(&s->place);
}

static unsigned pick(struct subject *s, unsigned n)
{
	return (unsigned)rand_r(&s->seed) % n;
}

static void fill(struct subject *s, char *p, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		p[i] = (char)(i * 7 + s->seed);
	rand_r(&s->seed);
}

/* The whole of the disk, in requests of the usual kind. */
static void assert_image(struct subject *s)
{
	static char got[MAX_BYTES] __attribute__((aligned(4096)));

	if (!s->keeps_data)
		return;
	for (uint64_t at = 0; at < IMAGE_BYTES; at += MAX_BYTES) {
		assert_int_equal(rig_io(&s->rig, BLK_READ, 0, at, got, MAX_BYTES), 0);
		assert_memory_equal(got, model + at, MAX_BYTES);
	}
}

/* ---- random requests against a model ---- */

struct random_request {
	struct rig_request r;
	struct iovec iov[MAX_PARTS];
	char *memory;
};

static uint64_t pick_len(struct subject *s, uint64_t room)
{
	uint64_t max = pick(s, 8) ? 32768 : MAX_BYTES;
	uint64_t len = s->block_bytes * (uint64_t)(1 + pick(s, (unsigned)(max / s->block_bytes)));

	return MIN(len, room);
}

/* Cuts len bytes of memory into parts, at any alignment or at the usual ones. */
static unsigned cut(struct subject *s, struct random_request *q, uint64_t len)
{
	bool odd = pick(s, 4) == 0;
	unsigned parts = 0;
	char *at = q->memory + (odd ? pick(s, 4096) : pick(s, 8) * 512);

	while (len) {
		uint64_t n = odd ? 1 + pick(s, 9000) : 512 * (1 + pick(s, 32));

		if (parts == MAX_PARTS - 1 || n > len)
			n = len;
		q->iov[parts++] = (struct iovec){at, n};
		/* Parts need not lie one behind the other. */
		at += n + (odd ? pick(s, 3) : 0);
		len -= n;
	}
	return parts;
}

/* A request inside of [from, from + room). */
static void make_random(struct subject *s, struct random_request *q, uint64_t from, uint64_t room)
{
	static const enum blk_op ops[] = {BLK_READ,    BLK_READ,         BLK_READ,
					  BLK_WRITE,   BLK_WRITE,        BLK_WRITE,
					  BLK_DISCARD, BLK_WRITE_ZEROES, BLK_FLUSH};
	enum blk_op op = ops[pick(s, ARRAY_SIZE(ops))];
	uint64_t len = pick_len(s, room);
	uint64_t slack = (room - len) / s->block_bytes;
	uint64_t offset = from + s->block_bytes * (slack ? pick(s, (unsigned)slack + 1) : 0);

	rig_request_init(&q->r, op, offset, q->iov, op <= BLK_WRITE ? cut(s, q, len) : 0);
	if (op == BLK_FLUSH)
		return;
	q->r.req.len_bytes = len;
	if (op == BLK_WRITE_ZEROES && pick(s, 2))
		q->r.req.flags |= BLK_UNMAP;
	if ((op == BLK_WRITE || op == BLK_WRITE_ZEROES) && pick(s, 8) == 0)
		q->r.req.flags |= BLK_FUA;
	if (op == BLK_WRITE) {
		for (unsigned i = 0; i < q->r.req.iovcnt; i++)
			fill(s, q->iov[i].iov_base, q->iov[i].iov_len);
		iov_to_buf(q->iov, q->r.req.iovcnt, 0, model + offset, len);
	} else if (op == BLK_READ) {
		iov_fill(q->iov, q->r.req.iovcnt, 0, 0xee, len);
	} else if (op == BLK_WRITE_ZEROES) {
		memset(model + offset, 0, len);
	}
}

static void check_random(struct subject *s, const struct random_request *q)
{
	static char got[MAX_BYTES];
	const struct blk_request *req = &q->r.req;

	if (q->r.ret)
		fail_msg("%s: operation %d of %llu bytes at %llu: %s", subject_name(s), req->op,
			 (unsigned long long)req->len_bytes, (unsigned long long)req->offset_bytes,
			 strerror(-q->r.ret));
	if (req->op == BLK_READ && s->keeps_data) {
		iov_to_buf(req->iov, req->iovcnt, 0, got, req->len_bytes);
		assert_memory_equal(got, model + req->offset_bytes, req->len_bytes);
	} else if (req->op == BLK_DISCARD && s->keeps_data) {
		/* May read as anything; but no byte beside it. */
		assert_int_equal(rig_io(&s->rig, BLK_READ, 0, req->offset_bytes,
					model + req->offset_bytes, req->len_bytes),
				 0);
	}
}

static void run_random(struct subject *s, unsigned rounds)
{
	const uint64_t room = IMAGE_BYTES / BATCH;
	struct random_request *q = calloc(BATCH, sizeof(*q));
	struct rig_request *one;

	memset(model, 0, sizeof(model));
	for (unsigned i = 0; i < BATCH; i++) {
		q[i].memory = aligned_alloc(4096, MAX_BYTES + 16384);
		assert_non_null(q[i].memory);
	}
	for (unsigned round = 0; round < rounds; round++) {
		unsigned n = 1 + pick(s, BATCH), first = pick(s, BATCH - n + 1);

		/* Each in a part of its own, so that the order does not matter. */
		for (unsigned i = 0; i < n; i++)
			make_random(s, &q[i], (first + i) * room, room);
		for (unsigned i = 0; i < n; i++) {
			one = &q[i].r;
			rig_start(&s->rig, i % s->rig.nthreads, one, 1);
		}
		rig_wait(&s->rig);
		for (unsigned i = 0; i < n; i++)
			check_random(s, &q[i]);
	}
	assert_image(s);
	for (unsigned i = 0; i < BATCH; i++)
		free(q[i].memory);
	free(q);
}

static unsigned rounds(unsigned n)
{
	return getenv("RINGSIDE_SOAK") ? n * 20 : n;
}

static void test_random(void **state)
{
	struct subject *s = *state;

	for (unsigned threads = 1; threads <= 2; threads++) {
		if (!open_subject(s, NULL, threads, IMAGE_BYTES, KERNEL))
			skip();
		run_random(s, rounds(24));
		close_subject(s);
	}
}

/* What the caller sees is the same whatever happens below. */
static void test_faults_are_not_seen(void **state)
{
	static const char *const faults[] = {
		"read:short=512@20%; write:short=half@20%",
		"read:short=-300@20%; write:short=100@10%",
		"all:eagain@30%; all:eintr@20%",
		"submit:max=1; submit:none@/2",
		"submit:depth=3; all:delay=200us@20%",
		"zeroes:eopnotsupp; discard:eopnotsupp@2+",
		"submit:max=3; read:short=half@30%; write:eagain@/2; flush:eintr@/2",
	};
	struct subject *s = *state;

	for (unsigned i = 0; i < ARRAY_SIZE(faults); i++) {
		if (!open_subject(s, faults[i], 1, IMAGE_BYTES, KERNEL))
			skip();
		run_random(s, rounds(6));
		close_subject(s);
	}
}

/* ---- errors ---- */

static void test_errors_are_seen(void **state)
{
	enum { N = 32, BAD = 5 };
	struct subject *s = *state;
	static char memory[N * 4096] __attribute__((aligned(4096)));
	struct rig_request r[N];
	struct iovec iov[N];

	/* Neighbours, so that they merge: only the bad one fails. */
	if (!open_subject(s, "write:enospc@=20480; read:enodata@=20480; flush:eio@2", 1,
			  IMAGE_BYTES, KERNEL))
		skip();
	for (unsigned op = BLK_READ; op <= BLK_WRITE; op++) {
		for (unsigned i = 0; i < N; i++) {
			iov[i] = (struct iovec){memory + i * 4096, 4096};
			rig_request_init(&r[i], op, i * 4096, &iov[i], 1);
		}
		rig_run(&s->rig, 0, r, N);
		for (unsigned i = 0; i < N; i++)
			assert_int_equal(r[i].ret, i != BAD         ? 0
						   : op == BLK_READ ? -ENODATA
								    : -ENOSPC);
	}
	if (disk_info(s->rig.disk)->write_cache) {
		assert_int_equal(rig_io(&s->rig, BLK_FLUSH, 0, 0, NULL, 0), 0);
		assert_int_equal(rig_io(&s->rig, BLK_FLUSH, 0, 0, NULL, 0), -EIO);
		/* With the page cache it stays so. */
		assert_int_equal(rig_io(&s->rig, BLK_FLUSH, 0, 0, NULL, 0), s->direct ? 0 : -EIO);
	}
	close_subject(s);
}

static void test_edges(void **state)
{
	static char memory[8192] __attribute__((aligned(4096)));
	struct subject *s = *state;
	uint32_t block = s->block_bytes;

	if (!open_subject(s, NULL, 1, IMAGE_BYTES, KERNEL))
		skip();
	assert_int_equal(disk_capacity_bytes(s->rig.disk), IMAGE_BYTES);
	memset(memory, 0x5a, sizeof(memory));
	assert_int_equal(rig_io(&s->rig, BLK_WRITE, 0, IMAGE_BYTES - block, memory, block), 0);
	assert_int_equal(rig_io(&s->rig, BLK_READ, 0, IMAGE_BYTES - block, memory + 4096, block),
			 0);
	if (s->keeps_data)
		assert_memory_equal(memory, memory + 4096, block);
	for (unsigned op = BLK_READ; op < BLK_OP_COUNT; op++) {
		if (op == BLK_FLUSH)
			continue;
		assert_int_equal(rig_io(&s->rig, op, 0, IMAGE_BYTES, memory, block), -EINVAL);
		assert_int_equal(rig_io(&s->rig, op, 0, IMAGE_BYTES - block, memory, 2 * block),
				 -EINVAL);
		assert_int_equal(rig_io(&s->rig, op, 0, block / 2, memory, block), -EINVAL);
		assert_int_equal(rig_io(&s->rig, op, 0, 0, memory, block / 2), -EINVAL);
		assert_int_equal(rig_io(&s->rig, op, 0, IMAGE_BYTES, memory, 0), 0);
	}
	close_subject(s);
}

/* Somebody makes the image shorter while it is served (B36). */
static void test_truncated(void **state)
{
	static char memory[65536] __attribute__((aligned(4096)));
	struct subject *s = *state;

	if (s->kind != PLACE_FILE && s->kind != PLACE_TMPFS)
		skip();
	if (!open_subject(s, NULL, 1, IMAGE_BYTES, KERNEL))
		skip();
	assert_int_equal(rig_io(&s->rig, BLK_WRITE, 0, 0, memory, 65536), 0);
	for (unsigned odd = 0; odd < 2; odd++) {
		assert_int_equal(ftruncate(s->place.backing_fd, 32768 + odd * 100), 0);
		assert_int_equal(rig_io(&s->rig, BLK_READ, 0, 0, memory, 32768), 0);
		assert_int_equal(rig_io(&s->rig, BLK_READ, 0, 0, memory, 65536), -EIO);
		assert_int_equal(rig_io(&s->rig, BLK_READ, 0, 36864, memory, 4096), -EIO);
		assert_int_equal(rig_io(&s->rig, BLK_READ, 0, 0, memory + 1, 65536 - 4096), -EIO);
	}
	close_subject(s);
}

/* ---- the trial of source D ---- */

#define TRIAL_DEPTH  1024
#define TRIAL_BYTES  65536u
#define TRIAL_KERNEL 64

struct trial {
	struct rig_request r;
	struct iovec iov;
	unsigned *left;
	uint64_t *next;
	unsigned wrong;
};

/* Writes a block with its number in every page, then reads it: data that goes astray is seen. */
static bool trial_next(struct rig_request *r)
{
	struct trial *t = r->private;
	uint64_t number = r->req.offset_bytes / TRIAL_BYTES;

	t->wrong += r->ret != 0;
	for (uint64_t *p = t->iov.iov_base; p < (uint64_t *)t->iov.iov_base + TRIAL_BYTES / 8;
	     p += 512) {
		if (r->req.op == BLK_READ)
			t->wrong += *p != number;
		*p = r->req.op == BLK_READ ? number : UINT64_MAX;
	}
	if (!*t->left)
		return false;
	--*t->left;
	r->req.op = r->req.op == BLK_READ ? BLK_WRITE : BLK_READ;
	blk_submit(r->rig->channels[r->thread], &r->req);
	return true;
}

static void test_nothing_is_lost(void **state)
{
	struct subject *s = *state;
	struct trial *t = calloc(TRIAL_DEPTH, sizeof(*t));
	char *memory = aligned_alloc(4096, (size_t)TRIAL_DEPTH * TRIAL_BYTES);
	unsigned left = getenv("RINGSIDE_SOAK") ? 100000 : 20000, wrong = 0, done = 0;
	const unsigned total = left;

	if (!open_subject(s, NULL, 1, (uint64_t)TRIAL_DEPTH * TRIAL_BYTES, TRIAL_KERNEL))
		skip();
	left -= TRIAL_DEPTH;
	for (uint64_t i = 0; i < TRIAL_DEPTH; i++) {
		t[i].iov = (struct iovec){memory + i * TRIAL_BYTES, TRIAL_BYTES};
		for (uint64_t at = 0; at < TRIAL_BYTES; at += 4096)
			memcpy(memory + i * TRIAL_BYTES + at, &i, sizeof(i));
		t[i].left = &left;
		rig_request_init(&t[i].r, BLK_WRITE, i * TRIAL_BYTES, &t[i].iov, 1);
		t[i].r.next = trial_next;
		t[i].r.private = &t[i];
	}
	for (unsigned i = 0; i < TRIAL_DEPTH; i++)
		rig_start(&s->rig, 0, &t[i].r, 1);
	rig_wait(&s->rig);
	for (unsigned i = 0; i < TRIAL_DEPTH; i++) {
		wrong += t[i].wrong;
		done += t[i].r.done;
	}
	assert_int_equal(wrong, 0);
	assert_int_equal(done, total);
	close_subject(s);
	free(memory);
	free(t);
}

/* ---- every engine, every place ---- */

static struct subject subjects[64];
static unsigned nsubjects;
static struct CMUnitTest tests[512];
static unsigned ntests;

static void add_test(const char *what, CMUnitTestFunction fn, struct subject *s)
{
	char name[256];

	snprintf(name, sizeof(name), "%s: %s", what, subject_name(s));
	ASSERT(ntests < ARRAY_SIZE(tests));
	tests[ntests++] = (struct CMUnitTest){strdup(name), fn, NULL, NULL, s};
}

static void add_subject(const struct engine_ops *ops, enum place_kind kind, bool direct,
			uint32_t block_bytes)
{
	struct subject *s = &subjects[nsubjects++];

	ASSERT(nsubjects <= ARRAY_SIZE(subjects));
	*s = (struct subject){
		.ops = ops, .kind = kind, .direct = direct, .block_bytes = block_bytes};
	add_test("random", test_random, s);
	add_test("faults are not seen", test_faults_are_not_seen, s);
	add_test("errors are seen", test_errors_are_seen, s);
	add_test("edges", test_edges, s);
	add_test("truncated", test_truncated, s);
	if (direct && kind == PLACE_FILE)
		add_test("nothing is lost", test_nothing_is_lost, s);
}

int main(int argc, char **argv)
{
	static const struct engine_ops *const files[] = {&engine_threads, &engine_linux_aio,
							 &engine_io_uring};
	const char *only = argc > 1 ? argv[1] : NULL;

	if (argc > 2)
		cmocka_set_test_filter(argv[2]); /* e.g. "nothing is lost*" */
	if (!only || !strcmp(only, "null"))
		add_subject(&engine_null, NO_PLACE, false, 512);
	if (!only || !strcmp(only, "memory")) {
		add_subject(&engine_memory, NO_PLACE, false, 512);
		add_subject(&engine_memory, NO_PLACE, false, 4096);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(files); i++) {
		if (only && strcmp(only, files[i]->name))
			continue;
		add_subject(files[i], PLACE_FILE, true, 512);
		add_subject(files[i], PLACE_FILE, true, 4096);
		add_subject(files[i], PLACE_FILE, false, 512);
		add_subject(files[i], PLACE_TMPFS, false, 512);
		add_subject(files[i], PLACE_LOOP512, true, 512);
		/* A block shown that is smaller than the device's: read-modify-write. */
		add_subject(files[i], PLACE_LOOP4096, true, 512);
		add_subject(files[i], PLACE_LOOP4096, true, 4096);
	}
	return _cmocka_run_group_tests("conformance", tests, ntests, NULL, NULL);
}
