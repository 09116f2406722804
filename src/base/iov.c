/* SPDX-License-Identifier: Apache-2.0 */
#include "base/iov.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"

uint64_t iov_length(const struct iovec *iov, unsigned count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += iov[i].iov_len;
	return sum;
}

size_t iov_to_buf(const struct iovec *iov, unsigned count, uint64_t offset, void *buf, size_t len)
{
	size_t done = 0;

	for (unsigned i = 0; i < count && done < len; i++) {
		size_t n;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		n = MIN(iov[i].iov_len - (size_t)offset, len - done);
		memcpy((char *)buf + done, (char *)iov[i].iov_base + offset, n);
		done += n;
		offset = 0;
	}
	return done;
}

size_t buf_to_iov(const struct iovec *iov, unsigned count, uint64_t offset, const void *buf,
		  size_t len)
{
	size_t done = 0;

	for (unsigned i = 0; i < count && done < len; i++) {
		size_t n;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		n = MIN(iov[i].iov_len - (size_t)offset, len - done);
		memcpy((char *)iov[i].iov_base + offset, (const char *)buf + done, n);
		done += n;
		offset = 0;
	}
	return done;
}

size_t iov_fill(const struct iovec *iov, unsigned count, uint64_t offset, int value, uint64_t len)
{
	uint64_t done = 0;

	for (unsigned i = 0; i < count && done < len; i++) {
		uint64_t n;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		n = MIN((uint64_t)iov[i].iov_len - offset, len - done);
		memset((char *)iov[i].iov_base + offset, value, n);
		done += n;
		offset = 0;
	}
	return done;
}

int iov_slice(const struct iovec *src, unsigned count, uint64_t offset, uint64_t len,
	      struct iovec *dst, unsigned max)
{
	unsigned parts = 0;

	for (unsigned i = 0; i < count && len; i++) {
		uint64_t n;

		if (offset >= src[i].iov_len) {
			offset -= src[i].iov_len;
			continue;
		}
		if (parts == max)
			return -ENOBUFS;
		n = MIN((uint64_t)src[i].iov_len - offset, len);
		dst[parts].iov_base = (char *)src[i].iov_base + offset;
		dst[parts].iov_len = n;
		parts++;
		len -= n;
		offset = 0;
	}
	return len ? -EINVAL : (int)parts;
}
