/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of opening and locking images (B59). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"
#include "engine/image.h"
#include "engine/image_lock.h"

static int interruptions; /* lock calls that fail with EINTR first */
static int refusal;       /* errno of every lock call; 0 = none */
static unsigned lock_calls;

/*
 * In the place of libc's: the program's own definition comes first.  What does not lock passes.
 */
static int shim_fcntl(int fd, int cmd, void *arg)
{
	if (cmd == F_OFD_SETLK || cmd == F_OFD_GETLK) {
		lock_calls++;
		if (interruptions > 0) {
			interruptions--;
			errno = EINTR;
			return -1;
		}
		if (refusal) {
			errno = refusal;
			return -1;
		}
	}
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

#define SHIM(name)                                                                                 \
	int name(int fd, int cmd, ...);                                                            \
	int name(int fd, int cmd, ...)                                                             \
	{                                                                                          \
		va_list ap;                                                                        \
		void *arg;                                                                         \
                                                                                                   \
		va_start(ap, cmd);                                                                 \
		arg = va_arg(ap, void *);                                                          \
		va_end(ap);                                                                        \
		return shim_fcntl(fd, cmd, arg);                                                   \
	}

#undef fcntl
#undef fcntl64
#ifndef __USE_FILE_OFFSET64 /* there fcntl is but a name of fcntl64 */
SHIM(fcntl)
#endif
SHIM(fcntl64)

static char dir[] = "/tmp/ringside-image-XXXXXX";
static char path[64];

static int setup(void **state)
{
	int fd;

	interruptions = refusal = 0;
	lock_calls = 0;
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a,b=c.img", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	close(fd);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	rmdir(dir);
	return 0;
}

static int open_fd(bool read_only)
{
	int fd = open(path, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void test_locks_among_us(void **state)
{
	struct error err;
	int rw = open_fd(false), rw2 = open_fd(false), ro = open_fd(true), ro2 = open_fd(true);

	assert_int_equal(image_lock(rw, false, &err), 0);
	assert_int_equal(image_lock(rw2, false, &err), -EBUSY);
	assert_int_equal(image_lock(ro, true, &err), -EBUSY);
	close(rw);
	/* Those that were refused left nothing behind. */
	assert_int_equal(image_lock(ro, true, &err), 0);
	assert_int_equal(image_lock(ro2, true, &err), 0);
	assert_int_equal(image_lock(rw2, false, &err), -EBUSY);
	close(ro);
	assert_int_equal(image_lock(rw2, false, &err), -EBUSY);
	close(ro2);
	assert_int_equal(image_lock(rw2, false, &err), 0);
	close(rw2);
}

/* A duplicate is the same open file: the lock lives until the last of them goes. */
static void test_lock_lives_with_duplicates(void **state)
{
	struct error err;
	int a = open_fd(false), b = open_fd(false), c;

	assert_int_equal(image_lock(a, false, &err), 0);
	c = fcntl(a, F_DUPFD_CLOEXEC, 3);
	close(a);
	assert_int_equal(image_lock(b, false, &err), -EBUSY);
	close(c);
	assert_int_equal(image_lock(b, false, &err), 0);
	close(b);
}

/* ... or until it is dropped for all of them. */
static void test_close_unlocks(void **state)
{
	struct image_options o = {.id = "x", .path = path, .lock = true};
	struct image image;
	struct error err;
	int other = open_fd(false), duplicate;

	assert_int_equal(image_open(&o, &image, &err), 0);
	assert_true(image.locked);
	duplicate = fcntl(image.fd, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(image_lock(other, false, &err), -EBUSY);
	image_close(&image);
	assert_int_equal(image.fd, -1);
	assert_int_equal(image_lock(other, false, &err), 0);
	close(duplicate);
	close(other);
}

static void *close_soon(void *fd)
{
	usleep(50000);
	close(*(int *)fd);
	return NULL;
}

/* What a killed process leaves locked for a moment is waited for. */
static void test_lock_is_waited_for(void **state)
{
	struct image_options o = {.id = "x", .path = path, .lock = true};
	struct image image;
	struct error err;
	pthread_t thread;
	int fd = open_fd(false);

	assert_int_equal(image_lock(fd, false, &err), 0);
	assert_int_equal(pthread_create(&thread, NULL, close_soon, &fd), 0);
	assert_int_equal(image_open(&o, &image, &err), 0);
	pthread_join(thread, NULL);
	image_close(&image);
}

static void test_interrupted(void **state)
{
	struct error err;
	int a = open_fd(false), b = open_fd(false);

	interruptions = 3;
	assert_int_equal(image_lock(a, false, &err), 0);
	assert_int_equal(interruptions, 0);
	interruptions = 3;
	assert_int_equal(image_lock(b, false, &err), -EBUSY);
	close(a);
	close(b);
}

static void test_not_supported(void **state)
{
	static const int errors[] = {ENOLCK, EINVAL, ENOTSUP, ENOSYS};
	struct image_options o = {.id = "x", .path = path, .lock = true};
	struct image image;
	struct error err = {""};
	int fd = open_fd(false);

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		refusal = errors[i];
		assert_int_equal(image_lock(fd, false, &err), -EOPNOTSUPP);
		assert_true(*err.text);
		/* A warning, not an error: the image is served. */
		assert_int_equal(image_open(&o, &image, &err), 0);
		image_close(&image);
	}
	refusal = EAGAIN;
	assert_int_equal(image_lock(fd, false, &err), -EBUSY);
	assert_int_equal(image_open(&o, &image, &err), -EBUSY);
	assert_int_equal(image.fd, -1);
	close(fd);
}

static void test_lock_off(void **state)
{
	struct image_options o = {.id = "x", .path = path};
	struct image a, b;
	struct error err;

	assert_int_equal(image_open(&o, &a, &err), 0);
	assert_int_equal(lock_calls, 0);
	assert_int_equal(image_open(&o, &b, &err), 0);
	image_close(&a);
	image_close(&b);
}

static void assert_open_refused(const struct image_options *o, int ret, const char *text)
{
	struct image image = {.fd = 0};
	struct error err = {""};

	assert_int_equal(image_open(o, &image, &err), ret);
	assert_int_equal(image.fd, -1);
	if (!strstr(err.text, text) || !strstr(err.text, "disk 'x'"))
		fail_msg("'%s' does not say '%s'", err.text, text);
}

static void test_refused(void **state)
{
	struct image_options o = {.id = "x", .lock = true};
	char pipe[64], link[64];

	snprintf(pipe, sizeof(pipe), "%s/pipe", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(symlink("nowhere", link), 0);
	for (int read_only = 0; read_only < 2; read_only++) {
		o.read_only = read_only;
		o.path = "/nonexistent/x.img";
		assert_open_refused(&o, -ENOENT, "create it first");
		o.path = link;
		assert_open_refused(&o, -ENOENT, "create it first");
		o.path = dir;
		assert_open_refused(&o, -EINVAL, "a directory");
		o.path = "/dev/null";
		assert_open_refused(&o, -EINVAL, "a character device");
		o.path = pipe;
		assert_open_refused(&o, -EINVAL, "a pipe");
	}
	unlink(pipe);
	unlink(link);
}

/* A file system without O_DIRECT (proc stands for it): the cache, unless direct=on was said. */
static void test_direct(void **state)
{
	struct image_options o = {
		.id = "x", .path = "/proc/self/status", .read_only = true, .direct = true};
	struct image image;
	struct error err;

	log_set_level(LOG_WARN);
	assert_int_equal(image_open(&o, &image, &err), 0);
	assert_false(image.direct);
	assert_false(fcntl(image.fd, F_GETFL) & O_DIRECT);
	image_close(&image);
	o.must_direct = true;
	assert_open_refused(&o, -EINVAL, "direct=off");
	o.direct = false;
	assert_int_equal(image_open(&o, &image, &err), 0);
	image_close(&image);
}

static void test_same(void **state)
{
	char other[64];

	snprintf(other, sizeof(other), "%s/hard", dir);
	assert_int_equal(link(path, other), 0);
	assert_true(image_same(path, other));
	assert_false(image_same(path, dir));
	assert_false(image_same(path, "/nonexistent"));
	assert_false(image_same("/nonexistent", "/nonexistent"));
	unlink(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_locks_among_us, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lock_lives_with_duplicates, setup, teardown),
		cmocka_unit_test_setup_teardown(test_close_unlocks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lock_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(test_interrupted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_supported, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lock_off, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_direct, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
