/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fuzzer's bytes as a stream of numbers; zeroes when it is at its end.
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <string.h>

#include "base/compiler.h"

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

static inline void fuzz_bytes(struct fuzz_input *in, void *out, size_t len)
{
	size_t n = len < in->left ? len : in->left;

	memset(out, 0, len);
	if (n)
		memcpy(out, in->at, n);
	in->at += n;
	in->left -= n;
}

static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
	uint8_t v;

	fuzz_bytes(in, &v, sizeof(v));
	return v;
}

static inline uint16_t fuzz_u16(struct fuzz_input *in)
{
	uint16_t v;

	fuzz_bytes(in, &v, sizeof(v));
	return v;
}

static inline uint32_t fuzz_u32(struct fuzz_input *in)
{
	uint32_t v;

	fuzz_bytes(in, &v, sizeof(v));
	return v;
}

static inline uint64_t fuzz_u64(struct fuzz_input *in)
{
	uint64_t v;

	fuzz_bytes(in, &v, sizeof(v));
	return v;
}

#endif
