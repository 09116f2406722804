/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic over arrays of struct iovec.  Nothing here allocates or keeps a pointer.
 */
#ifndef BASE_IOV_H
#define BASE_IOV_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Sum of the lengths.  The caller's lengths come from 32-bit fields: no overflow below 2^31 parts.
 */
uint64_t iov_length(const struct iovec *iov, unsigned count);

/* Copies at most len bytes from the iovec, starting at byte `offset` of it.  Returns bytes copied.
 */
size_t iov_to_buf(const struct iovec *iov, unsigned count, uint64_t offset, void *buf, size_t len);

/* Copies at most len bytes into the iovec, starting at byte `offset` of it.  Returns bytes copied.
 */
size_t buf_to_iov(const struct iovec *iov, unsigned count, uint64_t offset, const void *buf,
		  size_t len);

/* Sets at most len bytes of the iovec, from byte `offset`, to value.  Returns bytes set. */
size_t iov_fill(const struct iovec *iov, unsigned count, uint64_t offset, int value, uint64_t len);

/*
 * Describes bytes [offset, offset + len) of src in dst[0..max).  Returns the parts written, or
 * -ENOBUFS when max is too small, or -EINVAL when src is shorter than that.
 */
int iov_slice(const struct iovec *src, unsigned count, uint64_t offset, uint64_t len,
	      struct iovec *dst, unsigned max);

#endif
