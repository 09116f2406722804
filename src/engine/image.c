/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/image_lock.h"

/* Larger than any logical block that is around. */
#define PROBE_BYTES 4096

static const char *kind_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a directory";
	case S_IFCHR:
		return "a character device";
	case S_IFIFO:
		return "a pipe";
	case S_IFSOCK:
		return "a socket";
	default:
		return "something else";
	}
}

/* Before opening: to open a pipe would block, to open a tape would wind it. */
static int check_kind(const struct image_options *o, const struct stat *st, struct error *err)
{
	if (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode))
		return 0;
	return error_set(err, -EINVAL,
			 "disk '%s': '%.200s' is %s: an image is a file or a block device", o->id,
			 o->path, kind_name(st->st_mode));
}

/* What a person can do about it. */
static const char *advice(int err, bool read_only)
{
	switch (err) {
	case ENOENT:
		return ": create it first, or correct path=";
	case EACCES:
	case EPERM:
	case EROFS:
		return read_only ? ": change its permissions, or run as another user"
				 : ": change its permissions, or serve it with readonly=on";
	case EMFILE:
		return ": raise the limit with 'ulimit -n', or serve fewer disks";
	default:
		return "";
	}
}

static int open_error(const struct image_options *o, int error, struct error *err)
{
	return error_set(err, -error, "disk '%s': cannot open '%.200s'%s: %s%s", o->id, o->path,
			 o->read_only ? "" : " for writing", strerror(error),
			 advice(error, o->read_only));
}

/*
 * Some file systems take O_DIRECT at open and refuse the first read: read once.  Only EINVAL says
 * so; a bad sector is the guest's to see.
 */
static bool direct_works(int fd)
{
	char buf[PROBE_BYTES] __attribute__((aligned(PROBE_BYTES)));
	ssize_t n;

	do {
		n = pread(fd, buf, sizeof(buf), 0);
	} while (n < 0 && errno == EINTR);
	return n >= 0 || errno != EINVAL;
}

static int open_direct(const struct image_options *o, int flags)
{
	int fd = open(o->path, flags | O_DIRECT);

	if (fd >= 0 && !direct_works(fd)) {
		fd_close(&fd);
		errno = EINVAL;
	}
	return fd < 0 ? -errno : fd;
}

static int open_file(const struct image_options *o, struct image *image, struct error *err)
{
	int flags = (o->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC;
	int fd = -EINVAL;

	if (o->direct) {
		fd = open_direct(o, flags);
		image->direct = fd >= 0;
		if (fd == -EINVAL && o->must_direct)
			return error_set(
				err, -EINVAL,
				"disk '%s': '%.200s' cannot be opened with direct=on: its file "
				"system has no O_DIRECT; use direct=off",
				o->id, o->path);
	}
	if (fd == -EINVAL) {
		fd = open(o->path, flags);
		fd = fd < 0 ? -errno : fd;
	}
	if (fd < 0)
		return open_error(o, -fd, err);
	image->fd = fd;
	image->no_direct = o->direct && !image->direct;
	return 0;
}

/*
 * The image of a process that was killed stays locked until the kernel has ended its requests and
 * taken its rings down, which takes up to 50 ms when nothing is in flight: a restart waits for it.
 */
#define LOCK_PATIENCE_NS 500000000u
#define LOCK_RETRY_NS    5000000

static int lock_patiently(const struct image_options *o, int fd, struct error *err)
{
	const struct timespec pause = {.tv_nsec = LOCK_RETRY_NS};
	uint64_t end_ns = clock_now_ns() + LOCK_PATIENCE_NS;
	int ret;

	while ((ret = image_lock(fd, o->read_only, err)) == -EBUSY && clock_now_ns() < end_ns)
		nanosleep(&pause, NULL);
	return ret;
}

static int lock_file(const struct image_options *o, struct image *image, struct error *err)
{
	struct error why;
	int ret = lock_patiently(o, image->fd, &why);

	if (ret == -EBUSY)
		return error_set(err, -EBUSY,
				 "disk '%s': image '%.200s' is in use: %s; stop that first%s",
				 o->id, o->path, why.text,
				 o->read_only ? "" : " (several may read with readonly=on)");
	if (ret < 0)
		log_warn("disk '%s': '%.200s' cannot be locked (%s): take care that nothing else "
			 "writes to it",
			 o->id, o->path, why.text);
	image->locked = ret == 0;
	return 0;
}

int image_open(const struct image_options *o, struct image *image, struct error *err)
{
	struct stat st;
	int ret;

	*image = (struct image){.fd = -1};
	if (stat(o->path, &st) < 0)
		return open_error(o, errno, err);
	ret = check_kind(o, &st, err);
	if (ret == 0)
		ret = open_file(o, image, err);
	if (ret == 0 && fstat(image->fd, &st) < 0)
		ret = open_error(o, errno, err);
	/* Again, on what was opened: the name may have changed its meaning in between. */
	if (ret == 0)
		ret = check_kind(o, &st, err);
	if (ret == 0 && o->lock)
		ret = lock_file(o, image, err);
	if (ret < 0) {
		fd_close(&image->fd);
		return ret;
	}
	return 0;
}

void image_close(struct image *image)
{
	if (image->locked)
		image_unlock(image->fd);
	image->locked = false;
	fd_close(&image->fd);
}

bool image_same(const char *a, const char *b)
{
	struct stat sa, sb;

	if (stat(a, &sa) < 0 || stat(b, &sb) < 0)
		return false;
	if (S_ISBLK(sa.st_mode) && S_ISBLK(sb.st_mode))
		return sa.st_rdev == sb.st_rdev;
	return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}
