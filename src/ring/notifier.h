/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A way to tell the other side: an eventfd, or nobody (the other side polls).
 * The fd belongs to whoever set it.
 */
#ifndef RING_NOTIFIER_H
#define RING_NOTIFIER_H

#include "base/fd.h"

struct notifier {
	int fd; /* -1: nobody to tell */
};

static inline bool notifier_exists(const struct notifier *n)
{
	return n->fd >= 0;
}

static inline void notifier_signal(const struct notifier *n)
{
	if (n->fd >= 0)
		eventfd_signal(n->fd);
}

#endif
