/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/probe.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "bench/pattern.h"

#define ENDS_BYTES  (UINT64_C(1) << 20)
#define SAMPLES     64
#define CHUNK_BYTES 65536u
#define TIMEOUT_NS  INT64_C(30000000000)

struct probe {
	struct ringside_device *dev;
	const struct ringside_info *info;
	unsigned char *buf;
	uint32_t chunk_bytes;
};

static int read_chunk(struct probe *p, uint64_t offset, uint32_t len, struct error *err)
{
	struct ringside_queue *q = ringside_queue(p->dev, 0);
	struct ringside_completion done = {.result = 0};
	int ret = ringside_read(q, offset, p->buf, len, NULL);

	if (ret == 0) {
		ringside_submit(q);
		ret = ringside_wait(q, &done, 1, 1, TIMEOUT_NS);
		ret = ret > 0 ? done.result : ret ? ret : -ETIMEDOUT;
	}
	if (ret < 0)
		return error_set(err, ret, "reading at byte %llu, to see whether it holds data: %s",
				 (unsigned long long)offset, strerror(-ret));
	return 0;
}

/* 1: there is something in [offset, offset + len). */
static int look(struct probe *p, uint64_t offset, uint64_t len, uint64_t *where, struct error *err)
{
	while (len) {
		uint32_t part = (uint32_t)MIN(len, (uint64_t)p->chunk_bytes);
		int ret = read_chunk(p, offset, part, err);

		if (ret < 0)
			return ret;
		for (uint32_t i = 0; i < part; i++) {
			if (p->buf[i]) {
				*where = offset + i;
				return 1;
			}
		}
		offset += part;
		len -= part;
	}
	return 0;
}

static int look_everywhere(struct probe *p, uint64_t bytes, uint64_t seed, uint64_t *where,
			   struct error *err)
{
	uint64_t ends = MIN(ENDS_BYTES - ENDS_BYTES % p->info->block_bytes, bytes);
	uint64_t blocks = bytes / p->info->block_bytes;
	struct bench_random random;
	int ret = look(p, 0, ends, where, err);

	if (ret == 0)
		ret = look(p, bytes - ends, ends, where, err);
	bench_random_init(&random, seed, 0);
	for (unsigned i = 0; i < SAMPLES && ret == 0; i++) {
		uint64_t block = bench_random_below(&random, blocks);

		ret = look(p, block * p->info->block_bytes, p->info->block_bytes, where, err);
	}
	return ret;
}

int bench_probe(struct ringside_device *dev, const struct ringside_info *info, uint64_t bytes,
		uint64_t seed, uint64_t *where, struct error *err)
{
	struct probe p = {.dev = dev, .info = info};
	struct ringside_error why = {""};
	void *buf;
	int ret;

	bytes -= bytes % info->block_bytes;
	p.chunk_bytes = MAX((uint32_t)MIN((uint64_t)CHUNK_BYTES, info->max_transfer_bytes),
			    info->block_bytes);
	p.chunk_bytes -= p.chunk_bytes % info->block_bytes;
	ret = ringside_memory_alloc(dev, p.chunk_bytes, &buf, &why);
	if (ret < 0)
		return error_set(err, ret, "memory: %.400s", why.text);
	p.buf = buf;
	ret = look_everywhere(&p, bytes, seed, where, err);
	ringside_memory_free(dev, buf, NULL);
	return ret;
}
