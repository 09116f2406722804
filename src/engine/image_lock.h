/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks on an image that QEMU and we both see.
 *
 * They are open-file-description locks on single bytes of the image, as QEMU's file driver takes
 * them: byte 100 + p held (shared) says "I use permission p", byte 200 + p says "nobody else may
 * use p".  Whoever comes takes its bytes first and then looks for another's byte on the other side,
 * so that of two that come at once at least one sees the other.  The locks go with the last
 * descriptor of the open file, also when the process is killed.
 *
 * A disk takes what QEMU's virtio-blk device takes: it reads, writes unless read-only, and lets
 * others read only.
 */
#ifndef ENGINE_IMAGE_LOCK_H
#define ENGINE_IMAGE_LOCK_H

#include "base/error.h"

/*
 * 0: locked for as long as the open file of fd lives.
 * -EBUSY with *err: somebody else uses the image; nothing is held.
 * -EOPNOTSUPP with *err (the reason): this file system has no such locks; nothing is held.
 */
int image_lock(int fd, bool read_only, struct error *err) must_check;

/* Drops all of it now: when the last descriptor goes is for the kernel to say, since an io_uring
 * that has ended holds its files for some time yet.  Nothing is in flight any more. */
void image_unlock(int fd);

#endif
