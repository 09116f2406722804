/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/image_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define USED_BASE    100
#define REFUSED_BASE 200

/* QEMU's permissions by number.  WRITE_UNCHANGED (2) is for its own block jobs. */
enum permission { CONSISTENT_READ = 0, WRITE = 1, RESIZE = 3 };

#define BIT(p) (1u << (p))

/* What a disk lets nobody else do. */
#define REFUSED (BIT(WRITE) | BIT(RESIZE))

static int lock_call(int fd, int cmd, struct flock *fl)
{
	int ret;

	do {
		ret = fcntl(fd, cmd, fl);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

/* Takes one byte for each bit, shared: locks of others are only seen, never in the way. */
static int lock_bytes(int fd, unsigned base, uint32_t bits)
{
	for (unsigned p = 0; bits >> p; p++) {
		struct flock fl = {
			.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = base + p, .l_len = 1};
		int ret = bits & BIT(p) ? lock_call(fd, F_OFD_SETLK, &fl) : 0;

		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Does another open file hold one of the bytes?  1, 0 or -errno. */
static int others_hold(int fd, unsigned base, uint32_t bits)
{
	for (unsigned p = 0; bits >> p; p++) {
		/* The question is asked for an exclusive lock: every holder would be in its way. */
		struct flock fl = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = base + p, .l_len = 1};
		int ret = bits & BIT(p) ? lock_call(fd, F_OFD_GETLK, &fl) : 0;

		if (ret < 0)
			return ret;
		if ((bits & BIT(p)) && fl.l_type != F_UNLCK)
			return 1;
	}
	return 0;
}

int image_lock(int fd, bool read_only, struct error *err)
{
	uint32_t used = BIT(CONSISTENT_READ) | (read_only ? 0 : BIT(WRITE));
	const char *who = NULL;
	int ret;

	ret = lock_bytes(fd, USED_BASE, used);
	if (ret == 0)
		ret = lock_bytes(fd, REFUSED_BASE, REFUSED);
	if (ret == 0) {
		ret = others_hold(fd, USED_BASE, REFUSED);
		who = "another program writes to it";
	}
	if (ret == 0) {
		ret = others_hold(fd, REFUSED_BASE, used);
		who = "another program has it open and lets nobody else write";
	}
	if (ret == 0)
		return 0;
	image_unlock(fd);
	/* EAGAIN, EACCES: somebody holds our bytes exclusively, which QEMU never does. */
	if (ret == -EAGAIN || ret == -EACCES) {
		who = "another program has locked it";
		ret = 1;
	}
	if (ret == 1)
		return error_set(err, -EBUSY, "%s", who);
	return error_set(err, -EOPNOTSUPP, "%s", strerror(-ret));
}

void image_unlock(int fd)
{
	struct flock fl = {.l_type = F_UNLCK,
			   .l_whence = SEEK_SET,
			   .l_start = USED_BASE,
			   .l_len = 2 * (REFUSED_BASE - USED_BASE)};

	(void)lock_call(fd, F_OFD_SETLK, &fl);
}
