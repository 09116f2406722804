/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (VERIFY_SECTOR_BYTES / sizeof(uint64_t))

static const uint64_t magic = 0x65646973676e6952ull; /* "Ringside" */

/* What 512 bytes look like.  In the host's order: only this process reads them. */
struct sector {
	uint64_t magic;
	uint64_t run;
	uint64_t offset_bytes;
	uint64_t generation;
	uint64_t checksum; /* of all words but this one */
	uint64_t data[WORDS - 5];
};

const char *const verify_kind_names[VERIFY_KIND_COUNT] = {
	[VERIFY_GOOD] = "good",           [VERIFY_TORN] = "torn",       [VERIFY_STALE] = "stale",
	[VERIFY_MISPLACED] = "misplaced", [VERIFY_FOREIGN] = "foreign",
};

int verify_region_init(struct verify_region *r, uint64_t run, uint64_t first, uint64_t blocks,
		       uint32_t block_bytes)
{
	r->run = run;
	r->first = first;
	r->blocks = blocks;
	r->block_bytes = block_bytes;
	r->generations = calloc(blocks, sizeof(*r->generations));
	r->flags = calloc(blocks, sizeof(*r->flags));
	if (r->generations && r->flags)
		return 0;
	verify_region_fini(r);
	return -ENOMEM;
}

void verify_region_fini(struct verify_region *r)
{
	free(r->generations);
	free(r->flags);
	r->generations = NULL;
	r->flags = NULL;
}

/* Every bit of every word counts, and so does its place. */
static uint64_t checksum(const struct sector *s)
{
	uint64_t sum = s->magic ^ s->run * 3 ^ s->offset_bytes * 5 ^ s->generation * 7;

	for (unsigned i = 0; i < ARRAY_SIZE(s->data); i++) {
		sum = (sum ^ s->data[i]) * 0x9e3779b97f4a7c15ull;
		sum ^= sum >> 32;
	}
	return sum;
}

uint32_t verify_fill(const struct verify_region *r, uint64_t block, void *buf)
{
	uint32_t generation = verify_generation(r, block) + 1;
	uint64_t offset = block * r->block_bytes;
	struct sector *s = buf;

	for (uint32_t done = 0; done < r->block_bytes; done += VERIFY_SECTOR_BYTES, s++) {
		uint64_t x = r->run ^ (offset + done) ^ ((uint64_t)generation << 40);

		s->magic = magic;
		s->run = r->run;
		s->offset_bytes = offset + done;
		s->generation = generation;
		for (unsigned i = 0; i < ARRAY_SIZE(s->data); i++) {
			x = x * 6364136223846793005ull + 1442695040888963407ull;
			s->data[i] = x;
		}
		s->checksum = checksum(s);
	}
	return generation;
}

static enum verify_kind check_sector(const struct verify_region *r, const struct sector *s,
				     uint64_t offset, struct verify_fault *f)
{
	f->offset_bytes = offset;
	f->found = 0;
	f->found_offset_bytes = 0;
	if (s->magic != magic || s->run != r->run)
		return VERIFY_FOREIGN;
	f->found = (uint32_t)s->generation;
	f->found_offset_bytes = s->offset_bytes;
	if (s->checksum != checksum(s))
		return VERIFY_TORN;
	if (s->offset_bytes != offset)
		return VERIFY_MISPLACED;
	return s->generation == f->expected ? VERIFY_GOOD : VERIFY_STALE;
}

/* A block that is old in all its parts is stale; in some of them, or also bad, it is torn. */
enum verify_kind verify_check(const struct verify_region *r, uint64_t block, const void *buf,
			      struct verify_fault *fault)
{
	struct verify_fault first = {.kind = VERIFY_GOOD}, f;
	const struct sector *s = buf;
	unsigned stale = 0, sectors = r->block_bytes / VERIFY_SECTOR_BYTES;
	bool one_generation = true;

	for (unsigned i = 0; i < sectors; i++, s++) {
		f.expected = verify_generation(r, block);
		f.kind = check_sector(r, s, block * r->block_bytes + i * VERIFY_SECTOR_BYTES, &f);
		if (f.kind == VERIFY_GOOD)
			continue;
		if (first.kind == VERIFY_GOOD)
			first = f;
		if (f.kind == VERIFY_STALE) {
			stale++;
			one_generation = one_generation && f.found == first.found;
		}
	}
	if (first.kind == VERIFY_STALE && (stale < sectors || !one_generation))
		first.kind = VERIFY_TORN;
	if (first.kind != VERIFY_GOOD)
		*fault = first;
	return first.kind;
}

void verify_written(struct verify_region *r, uint64_t block, uint32_t generation, bool ok)
{
	r->generations[block - r->first] = generation;
	verify_set_flag(r, block, VERIFY_KNOWN, ok);
}

void verify_fault_text(const struct verify_fault *f, char *buf, size_t buf_len)
{
	int n = snprintf(buf, buf_len,
			 "%s data at byte %" PRIu64 ": generation %u was written last, ",
			 verify_kind_names[f->kind], f->offset_bytes, f->expected);

	if (n < 0 || (size_t)n >= buf_len)
		return;
	buf += n;
	buf_len -= (size_t)n;
	if (f->kind == VERIFY_FOREIGN)
		snprintf(buf, buf_len, "what was read is not from this run");
	else if (f->kind == VERIFY_MISPLACED)
		snprintf(buf, buf_len, "what was read is generation %u of byte %" PRIu64, f->found,
			 f->found_offset_bytes);
	else
		snprintf(buf, buf_len, "what was read says generation %u%s", f->found,
			 f->kind == VERIFY_TORN ? ", in parts or with a wrong checksum" : "");
}
