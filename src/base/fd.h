/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File descriptors: -1 means none, always; never 0 by accident (fields are set to -1 at init).
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <stdint.h>

#include "base/compiler.h"

/* Closes *fd if there is one and sets it to -1.  For the cleanup attribute, too. */
void fd_close(int *fd);

/* A non-blocking close-on-exec eventfd with count 0, or a negative errno. */
int eventfd_create(void);

/* Wakes whoever waits on the eventfd.  A full counter counts as success: it is awake anyway. */
void eventfd_signal(int fd);

/* Takes the count, so that a level-triggered wait sleeps again.  True if there was one. */
bool eventfd_clear(int fd);

#define fd_cleanup cleanup(fd_close)

#endif
