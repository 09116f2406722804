/* SPDX-License-Identifier: Apache-2.0 */
#include "test_places.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"

const char *const place_names[PLACE_COUNT] = {
	[PLACE_FILE] = "file",
	[PLACE_TMPFS] = "tmpfs",
	[PLACE_LOOP512] = "loop512",
	[PLACE_LOOP4096] = "loop4096",
};

static bool skip(enum place_kind kind, const char *what, int err)
{
	fprintf(stderr, "SKIPPED: no %s here: %s: %s\n", place_names[kind], what, strerror(err));
	return false;
}

static int try_device(struct place *p, int control, unsigned block)
{
	struct loop_config config = {
		.fd = (uint32_t)p->backing_fd,
		.block_size = block,
		.info = {.lo_flags = LO_FLAGS_AUTOCLEAR},
	};
	int number = ioctl(control, LOOP_CTL_GET_FREE);

	if (number < 0)
		return -errno;
	snprintf(p->path, sizeof(p->path), "/dev/loop%d", number);
	p->device_fd = open(p->path, O_RDWR | O_CLOEXEC);
	if (p->device_fd < 0)
		return -errno;
	if (ioctl(p->device_fd, LOOP_CONFIGURE, &config) < 0) {
		int err = errno;

		fd_close(&p->device_fd);
		return -err;
	}
	return 0;
}

static int make_device(struct place *p, unsigned block)
{
	fd_cleanup int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int ret = control < 0 ? -errno : -EBUSY;

	/* Somebody else may take the free one first. */
	for (int i = 0; i < 16 && ret == -EBUSY; i++)
		ret = try_device(p, control, block);
	return ret;
}

bool place_open(struct place *p, enum place_kind kind, uint64_t size_bytes)
{
	const char *tmp = getenv("TMPDIR");
	const char *dir = kind == PLACE_TMPFS ? "/dev/shm" : tmp ? tmp : "/var/tmp";
	int ret;

	*p = (struct place){.kind = kind, .device_fd = -1, .size_bytes = size_bytes};
	p->backing_fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (p->backing_fd < 0)
		return skip(kind, dir, errno);
	snprintf(p->path, sizeof(p->path), "/proc/self/fd/%d", p->backing_fd);
	if (ftruncate(p->backing_fd, (off_t)size_bytes) < 0) {
		ret = errno;
		fd_close(&p->backing_fd);
		return skip(kind, "ftruncate", ret);
	}
	if (kind == PLACE_FILE || kind == PLACE_TMPFS)
		return true;
	ret = make_device(p, kind == PLACE_LOOP512 ? 512 : 4096);
	if (ret < 0) {
		fd_close(&p->backing_fd);
		return skip(kind, "loop device", -ret);
	}
	return true;
}

void place_close(struct place *p)
{
	fd_close(&p->device_fd);
	fd_close(&p->backing_fd);
}

int place_image(const struct place *p, bool direct, bool read_only)
{
	int flags = O_CLOEXEC | (direct ? O_DIRECT : 0) | (read_only ? O_RDONLY : O_RDWR);
	int fd = open(p->path, flags);

	return fd < 0 ? -errno : fd;
}
