/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening file: targets: what is refused, and with what line; locks; options; several at once; a
 * queue that goes from thread to thread; an engine that is not to be had here.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"
#include "driver/inproc_rig.h"

static char path[128];
static unsigned fds;

static int setup(void **state)
{
	log_set_level(LOG_ERROR);
	fds = drv_fds();
	inproc_file(path, PLACE_BYTES);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	drv_expect_fds(fds);
	return 0;
}

/* "file:PATH?keys" */
static const char *target(const char *keys)
{
	static char text[256];

	snprintf(text, sizeof(text), "file:%s?%s", path, keys);
	return text;
}

/* ---- what is refused ---- */

static int refused(const char *text, const char *says)
{
	struct ringside_device *dev = (void *)1;
	struct ringside_error err = {""};
	int ret = ringside_open(text, NULL, &dev, &err);

	if (ret >= 0 || dev || !strstr(err.text, says) || strchr(err.text, '\n') ||
	    strlen(err.text) > 300)
		fail_msg("%s: %d: '%s' does not say '%s'", text, ret, err.text, says);
	return ret;
}

static void test_bad_options(void **state)
{
	static const struct {
		const char *keys, *says;
	} cases[] = {
		{"engine=", "is no engine"},
		{"engine=spdk", "'spdk' is no engine"},
		{"engine=io-uring", "'io-uring' is no engine"},
		{"engine=null", "engine null has no file"},
		{"engine=memory&size=1M", "engine memory has no file"},
		{"size=1M", "engine auto takes its size from the file"},
		{"engine=threads&size=1M", "engine threads takes its size from the file"},
		{"color=red", "there is no option 'color'"},
		{"Engine=null", "there is no option 'Engine'"},
		{"engine=null&engine=null", "'engine' is given twice"},
		{"engine", "'engine' is not KEY=VALUE"},
		{"direct=maybe", "direct=maybe is neither on nor off"},
		{"direct=", "direct= is neither on nor off"},
		{"readonly=1", "readonly=1 is neither on nor off"},
		{"discard=ON", "discard=ON is neither on nor off"},
		{"block-size=1000", "block-size is 512 or 4096"},
		{"block-size=0", "block-size is 512 or 4096"},
		{"block-size=8192", "block-size=8192 is not a number up to 4096"},
		{"block-size=", "block-size= is not a number"},
		{"depth=4097", "depth=4097 is not a number up to 4096"},
		{"depth=many", "depth=many is not a number"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(refused(target(cases[i].keys), cases[i].says), -EINVAL);
}

static void test_bad_sizes(void **state)
{
	static const char *const sizes[] = {
		"",
		"M",
		"-1",
		"+1",
		" 1",
		"1%20",
		"1 ",
		"0x1000",
		"1.5",
		"1KK",
		"1KiB",
		"1e6",
		"1P",
		"8388608T",
		"one",
		"1%4d ",
		"9223372036854775808",
		"1%0a",
		"16777216T",
		"99999999999999999999999999",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		char text[128];

		snprintf(text, sizeof(text), "file:?engine=null&size=%s", sizes[i]);
		assert_int_equal(refused(text, "is not a number"), -EINVAL);
	}
	assert_int_equal(refused("file:?engine=null", "engine null needs a size="), -EINVAL);
	assert_int_equal(refused("file:?engine=memory&size=0", "engine memory needs a size="),
			 -EINVAL);
	assert_true(refused("file:?engine=null&size=511", "less than one block of 512") < 0);
	assert_true(refused("file:?engine=null&size=4095&block-size=4096",
			    "less than one block of 4096") < 0);
	assert_true(refused("file:?engine=memory&size=8388607T", "cannot map") < 0);
}

static void test_good_sizes(void **state)
{
	static const struct {
		const char *size;
		uint64_t bytes;
	} cases[] = {
		{"512", 512},
		{"513", 512},
		{"1k", 1024},
		{"3K", 3072},
		{"5m", 5 * MIB},
		{"1M", MIB},
		{"2G", 2ull << 30},
		{"1g", 1ull << 30},
		{"7T", 7ull << 40},
		{"1t", 1ull << 40},
		{"8388607T", 8388607ull << 40},
		{"0512", 512},
		{"%31M", MIB},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ringside_device *dev;
		char text[128];

		snprintf(text, sizeof(text), "file:?engine=null&size=%s", cases[i].size);
		dev = drv_open(text, NULL);
		assert_true(drv_info(dev).capacity_bytes == cases[i].bytes);
		ringside_close(dev);
	}
}

static void test_bad_files(void **state)
{
	char text[256];

	assert_int_equal(refused("file:/nowhere/at/all", "'/nowhere/at/all'"), -ENOENT);
	/* Nobody needs the line. */
	assert_int_equal(
		ringside_open("file:/nowhere", NULL, &(struct ringside_device *){NULL}, NULL),
		-ENOENT);
	assert_int_equal(refused("file:", "engine auto needs a path"), -EINVAL);
	assert_int_equal(refused("file:?engine=io_uring", "engine io_uring needs a path"), -EINVAL);
	assert_int_equal(refused("file:/tmp", "'/tmp' is a directory"), -EINVAL);
	assert_int_equal(refused("file:/dev/zero", "is a character device"), -EINVAL);
	snprintf(text, sizeof(text), "file:%s/x", path);
	assert_int_equal(refused(text, "Not a directory"), -ENOTDIR);
	assert_int_equal(truncate(path, 0), 0);
	assert_true(refused(target(""), "has 0 bytes") < 0);
	assert_int_equal(truncate(path, 511), 0);
	assert_true(refused(target("direct=off"), "has 511 bytes") < 0);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(refused(target(""), "is a pipe"), -EINVAL);
}

/* Names are of any bytes, when they are written so. */
static void test_names(void **state)
{
	char odd[160], text[256];

	snprintf(odd, sizeof(odd), "%s ?&=%%", path);
	assert_int_equal(rename(path, odd), 0);
	snprintf(text, sizeof(text), "file:%s%%20%%3f&=%%25?engine=threads&direct=off", path);
	ringside_close(drv_open(text, NULL));
	unlink(odd);
}

/* ---- locks ---- */

static void test_second_open(void **state)
{
	static const char *const keys[] = {"", "engine=threads&direct=off", "engine=linux-aio"};
	char first[256];

	for (unsigned i = 0; i < ARRAY_SIZE(keys); i++) {
		struct ringside_device *dev;
		char *buf;

		snprintf(first, sizeof(first), "%s", target(keys[i]));
		dev = drv_open(first, NULL);
		buf = drv_memory(dev, 4096);
		assert_int_equal(refused(target("engine=threads"), "is in use"), -EBUSY);
		assert_int_equal(refused(target("readonly=on"), "is in use"), -EBUSY);
		/* That it was refused has not unlocked it, and does not disturb it. */
		assert_int_equal(ringside_write(ringside_queue(dev, 0), 0, buf, 4096, NULL), 0);
		assert_int_equal(drv_finish(ringside_queue(dev, 0)), 0);
		assert_int_equal(refused(first, "is in use"), -EBUSY);
		ringside_close(dev);
	}
}

static void test_many_may_read(void **state)
{
	struct ringside_device *dev[3];

	for (unsigned i = 0; i < ARRAY_SIZE(dev); i++)
		dev[i] = drv_open(target("readonly=on"), NULL);
	assert_int_equal(refused(target(""), "is in use"), -EBUSY);
	for (unsigned i = 0; i < ARRAY_SIZE(dev); i++)
		ringside_close(dev[i]);
	ringside_close(drv_open(target(""), NULL));
}

/* ---- options ---- */

static void test_read_only(void **state)
{
	static const char *const kinds[] = {"readonly=on", "readonly=on&engine=threads&direct=off",
					    "readonly=on&engine=linux-aio",
					    "readonly=on&engine=io_uring&direct=off"};

	assert_int_equal(chmod(path, 0400), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct ringside_device *dev = drv_open(target(kinds[i]), NULL);
		struct ringside_queue *q = ringside_queue(dev, 0);
		char *buf = drv_memory(dev, 4096);

		assert_true(drv_info(dev).read_only);
		assert_int_equal(ringside_write(q, 0, buf, 4096, NULL), -EROFS);
		assert_int_equal(ringside_write_zeroes(q, 0, 4096, true, NULL), -EROFS);
		assert_true(ringside_discard(q, 0, 4096, NULL) < 0);
		assert_int_equal(ringside_in_flight(q), 0);
		assert_int_equal(ringside_read(q, 0, buf, 4096, NULL), 0);
		assert_int_equal(drv_finish(q), 0);
		assert_int_equal(ringside_flush(q, NULL), 0);
		assert_int_equal(drv_finish(q), 0);
		ringside_close(dev);
	}
}

static void test_blocks_and_discard(void **state)
{
	struct ringside_device *dev = drv_open(target("block-size=4096&discard=off"), NULL);
	struct ringside_queue *q = ringside_queue(dev, 0);
	char *buf = drv_memory(dev, 8192);

	assert_int_equal(drv_info(dev).block_bytes, 4096);
	assert_false(drv_info(dev).discard);
	assert_true(drv_info(dev).max_discard_bytes == 0);
	assert_int_equal(ringside_read(q, 0, buf, 512, NULL), -EINVAL);
	assert_int_equal(ringside_read(q, 512, buf, 4096, NULL), -EINVAL);
	assert_int_equal(ringside_discard(q, 0, 4096, NULL), -EOPNOTSUPP);
	assert_int_equal(ringside_read(q, 4096, buf, 4096, NULL), 0);
	assert_int_equal(drv_finish(q), 0);
	ringside_close(dev);
	dev = drv_open("file:?engine=memory&size=5000&block-size=4096", NULL);
	assert_true(drv_info(dev).capacity_bytes == 4096);
	ringside_close(dev);
}

/* A kernel queue that is shorter than ours: what it does not take waits. */
static void test_short_kernel_queue(void **state)
{
	static const char *const kinds[] = {"depth=1&engine=threads", "depth=1&engine=linux-aio",
					    "depth=1&engine=io_uring", "depth=3"};
	struct ringside_options o = RINGSIDE_OPTIONS_INIT;

	o.depth = 1024;
	o.max_segments = 1022;
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct ringside_device *dev = drv_open(target(kinds[i]), &o);
		struct ringside_queue *q = ringside_queue(dev, 0);
		char *buf = drv_memory(dev, PLACE_BYTES);
		struct ringside_completion done[1024];
		int error;

		for (unsigned mode = 0; mode < DRV_MODES; mode++) {
			/* Not adjacent: they do not merge. */
			for (unsigned n = 0; n < 1024; n++)
				assert_int_equal(ringside_read(q, n * 389 % 1024 * 4096,
							       buf + n * 4096, 4096, NULL),
						 0);
			ringside_submit(q);
			assert_int_equal(drv_collect(q, mode, done, 1024, &error), 1024);
			for (unsigned n = 0; n < 1024; n++)
				assert_int_equal(done[n].result, 0);
		}
		ringside_close(dev);
	}
}

/* An image that shrinks: what is behind its end fails, the rest goes on. */
static void test_shrinks(void **state)
{
	static const char *const kinds[] = {"engine=threads&direct=off", "engine=linux-aio",
					    "engine=io_uring"};

	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct ringside_device *dev;
		struct ringside_queue *q;
		char *buf;

		assert_int_equal(truncate(path, PLACE_BYTES), 0);
		dev = drv_open(target(kinds[i]), NULL);
		q = ringside_queue(dev, 0);
		buf = drv_memory(dev, 4096);
		assert_int_equal(truncate(path, MIB), 0);
		assert_int_equal(ringside_read(q, 2 * MIB, buf, 4096, NULL), 0);
		assert_int_equal(drv_finish(q), -EIO);
		assert_int_equal(ringside_read(q, 0, buf, 4096, NULL), 0);
		assert_int_equal(drv_finish(q), 0);
		assert_int_equal(drv_stats(q).errors, 1);
		ringside_close(dev);
	}
}

/* ---- several at once ---- */

#define DEVICES 6

struct some_devices {
	char paths[DEVICES][128];
	struct ringside_device *dev[DEVICES];
	struct ringside_queue *q[DEVICES];
	char *buf[DEVICES];
};

static void some_open(struct some_devices *s)
{
	static const char *const kinds[DEVICES] = {
		"engine=io_uring",       "engine=linux-aio",
		"engine=threads",        "engine=io_uring&direct=off",
		"engine=memory&size=1M", "engine=io_uring"};

	for (unsigned i = 0; i < DEVICES; i++) {
		bool file = !strstr(kinds[i], "memory");
		char text[256];

		s->paths[i][0] = '\0';
		if (file)
			inproc_file(s->paths[i], MIB);
		snprintf(text, sizeof(text), "file:%s?%s", s->paths[i], kinds[i]);
		s->dev[i] = drv_open(text, NULL);
		s->q[i] = ringside_queue(s->dev[i], 0);
		s->buf[i] = drv_memory(s->dev[i], MIB);
	}
}

static void some_close(struct some_devices *s, unsigned i)
{
	ringside_close(s->dev[i]);
	s->dev[i] = NULL;
	if (s->paths[i][0])
		unlink(s->paths[i]);
}

/* In flight on all of them together; taken in another order, each in its own way. */
static void test_several_on_one_thread(void **state)
{
	struct ringside_completion done;
	struct some_devices s;
	int error;

	some_open(&s);
	for (unsigned round = 0; round < 200; round++) {
		for (unsigned i = 0; i < DEVICES; i++) {
			drv_fill(s.buf[i], 4096, round * DEVICES + i);
			assert_int_equal(ringside_write(s.q[i], 4096, s.buf[i], 4096, NULL), 0);
			ringside_submit(s.q[i]);
		}
		for (unsigned k = 0; k < DEVICES; k++) {
			unsigned i = (k * 5 + round) % DEVICES;

			assert_int_equal(
				drv_collect(s.q[i], (round + k) % DRV_MODES, &done, 1, &error), 1);
			assert_int_equal(done.result, 0);
			/* Beside the writes of the others. */
			assert_int_equal(ringside_read(s.q[i], 4096, s.buf[i] + 4096, 4096, NULL),
					 0);
			assert_int_equal(drv_finish(s.q[i]), 0);
			assert_memory_equal(s.buf[i], s.buf[i] + 4096, 4096);
		}
	}
	/* One goes, the others stay. */
	for (unsigned i = 0; i < DEVICES; i++) {
		some_close(&s, i);
		for (unsigned k = i + 1; k < DEVICES; k++) {
			assert_int_equal(ringside_read(s.q[k], 0, s.buf[k], 4096, NULL), 0);
			assert_int_equal(drv_finish(s.q[k]), 0);
		}
	}
}

/* ---- a queue on several threads, one after the other ---- */

struct turn {
	struct ringside_queue *q;
	char *buf;
	unsigned number;
	const char *wrong;
};

static void *take_turn(void *arg)
{
	struct turn *t = arg;
	struct ringside_completion done;
	int error;

	for (unsigned i = 0; i < 8 && !t->wrong; i++) {
		drv_fill(t->buf, 4096, t->number * 8 + i);
		if (ringside_write(t->q, 4096 * i, t->buf, 4096, NULL) < 0)
			t->wrong = "write";
		ringside_submit(t->q);
		if (drv_collect(t->q, i % DRV_MODES, &done, 1, &error) != 1 || done.result)
			t->wrong = "completion of the write";
		if (t->wrong)
			break;
		if (ringside_read(t->q, 4096 * i, t->buf + 4096, 4096, NULL) < 0)
			t->wrong = "read";
		ringside_submit(t->q);
		if (drv_collect(t->q, (i + 1) % DRV_MODES, &done, 1, &error) != 1 || done.result)
			t->wrong = "completion of the read";
		else if (memcmp(t->buf, t->buf + 4096, 4096))
			t->wrong = "data";
	}
	return NULL;
}

/* "Called by one thread at a time": not always by the same. */
static void test_queue_changes_threads(void **state)
{
	struct some_devices s;

	some_open(&s);
	for (unsigned i = 0; i < DEVICES; i++) {
		struct turn t = {.q = s.q[i], .buf = s.buf[i]};

		for (t.number = 0; t.number < 6; t.number++) {
			pthread_t thread;

			if (t.number % 3 == 2) {
				take_turn(&t);
			} else {
				assert_int_equal(pthread_create(&thread, NULL, take_turn, &t), 0);
				pthread_join(thread, NULL);
			}
			if (t.wrong)
				fail_msg("device %u, turn %u: %s", i, t.number, t.wrong);
		}
		some_close(&s, i);
	}
}

/* Puts one of each and takes none. */
struct hand_over {
	struct ringside_queue *q;
	char *buf;
	int put;
	sem_t submitted, go_on;
};

#define HANDED 24u

static void *put_and_go(void *arg)
{
	struct hand_over *h = arg;

	for (unsigned i = 0; i < HANDED && !h->put; i += 4) {
		uint64_t offset = 16384ull * i;

		h->put = ringside_write(h->q, offset, h->buf + offset % MIB, 16384, NULL);
		if (!h->put)
			h->put = ringside_read(h->q, offset + 16384, h->buf + offset % MIB, 16384,
					       NULL);
		if (!h->put)
			h->put = ringside_write_zeroes(h->q, offset + 32768, 16384, true, NULL);
		if (!h->put)
			h->put = ringside_flush(h->q, NULL);
	}
	ringside_submit(h->q);
	sem_post(&h->submitted);
	while (sem_wait(&h->go_on) < 0)
		;
	return NULL;
}

/* The one who takes them is another than has put them, who sleeps, or has gone. */
static void hand_over(struct some_devices *s, unsigned i, bool gone, enum drv_mode mode)
{
	struct hand_over h = {.q = s->q[i], .buf = s->buf[i]};
	struct ringside_completion done[HANDED];
	pthread_t thread;
	int error;

	sem_init(&h.submitted, 0, 0);
	sem_init(&h.go_on, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, put_and_go, &h), 0);
	while (sem_wait(&h.submitted) < 0)
		;
	if (gone) {
		sem_post(&h.go_on);
		pthread_join(thread, NULL);
	}
	assert_int_equal(h.put, 0);
	assert_int_equal(drv_collect(h.q, mode, done, HANDED, &error), HANDED);
	for (unsigned k = 0; k < HANDED; k++)
		if (done[k].result)
			fail_msg("device %u, %s, %s: %d", i, gone ? "gone" : "there",
				 drv_mode_names[mode], done[k].result);
	if (!gone) {
		sem_post(&h.go_on);
		pthread_join(thread, NULL);
	}
	sem_destroy(&h.submitted);
	sem_destroy(&h.go_on);
}

static void test_queue_changes_threads_in_flight(void **state)
{
	struct some_devices s;

	some_open(&s);
	for (unsigned i = 0; i < DEVICES; i++) {
		for (unsigned n = 0; n < 4 * DRV_MODES; n++)
			hand_over(&s, i, n / DRV_MODES % 2, n % DRV_MODES);
		some_close(&s, i);
	}
}

/* ---- without io_uring ---- */

/* Of this thread only: io_uring_setup is not permitted, as in many containers. */
static bool forbid(long call)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {ARRAY_SIZE(code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

struct forbidden {
	const char *target; /* engine=auto */
	const char *by_name;
	long calls[2];
	int opened, ret, result;
	bool no_filter;
	struct ringside_error err;
};

static void *open_forbidden(void *arg)
{
	struct forbidden *f = arg;
	struct ringside_device *dev;
	struct ringside_completion done = {.result = -1};
	char buf[512];

	for (unsigned i = 0; i < ARRAY_SIZE(f->calls); i++)
		f->no_filter |= f->calls[i] && !forbid(f->calls[i]);
	if (f->no_filter)
		return NULL;
	f->ret = ringside_open(f->by_name, NULL, &dev, &f->err);
	ringside_close(dev);
	f->opened = ringside_open(f->target, NULL, &dev, NULL);
	if (f->opened < 0)
		return NULL;
	if (ringside_read(ringside_queue(dev, 0), 0, buf, sizeof(buf), NULL) == 0) {
		ringside_submit(ringside_queue(dev, 0));
		if (ringside_wait(ringside_queue(dev, 0), &done, 1, 1, -1) == 1)
			f->result = done.result;
	}
	ringside_close(dev);
	return NULL;
}

static void test_next_engine(void **state)
{
	static const struct {
		const char *keys, *says;
		long calls[2];
	} cases[] = {
		{"engine=io_uring", "io_uring: not permitted here", {SYS_io_uring_setup}},
		{"engine=linux-aio",
		 "linux-aio: not available here",
		 {SYS_io_uring_setup, SYS_io_setup}},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		char by_name[256], any[256];
		struct forbidden f = {.target = any, .by_name = by_name, .result = -1};
		pthread_t thread;

		memcpy(f.calls, cases[i].calls, sizeof(f.calls));
		snprintf(any, sizeof(any), "%s", target("direct=on"));
		snprintf(by_name, sizeof(by_name), "%s", target(cases[i].keys));
		assert_int_equal(pthread_create(&thread, NULL, open_forbidden, &f), 0);
		pthread_join(thread, NULL);
		if (f.no_filter)
			skip();
		assert_true(f.ret < 0);
		if (!strstr(f.err.text, cases[i].says))
			fail_msg("%s", f.err.text);
		assert_null(strchr(f.err.text, '\n'));
		assert_int_equal(f.opened, 0);
		assert_int_equal(f.result, 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_bad_options),
		TEST(test_bad_sizes),
		TEST(test_good_sizes),
		TEST(test_bad_files),
		TEST(test_names),
		TEST(test_second_open),
		TEST(test_many_may_read),
		TEST(test_read_only),
		TEST(test_blocks_and_discard),
		TEST(test_short_kernel_queue),
		TEST(test_shrinks),
		TEST(test_several_on_one_thread),
		TEST(test_queue_changes_threads),
		TEST(test_queue_changes_threads_in_flight),
		TEST(test_next_engine),
	};

	drv_no_hang();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
