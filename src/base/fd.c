/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int eventfd_create(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void eventfd_signal(int fd)
{
	uint64_t one = 1;
	ssize_t n;

	do {
		n = write(fd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
}

bool eventfd_clear(int fd)
{
	uint64_t count;
	ssize_t n;

	do {
		n = read(fd, &count, sizeof(count));
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(count);
}
