/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See guest_memory.h.  A mapping belongs to the tables that name it (refs, control thread).
 */
#include "mem/guest_memory.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "mem/sigbus.h"

struct guest_mapping {
	unsigned refs;
	void *base; /* what mmap gave: page-aligned, at or below the region's first byte */
	size_t map_bytes;
	char *host;
	/* Identity: a region with the same values is this mapping. */
	dev_t dev;
	ino_t ino;
	uint64_t offset_bytes;
	uint64_t len_bytes;
	struct sigbus_range *sigbus;
};

static void mapping_unref(struct guest_mapping *map)
{
	if (--map->refs)
		return;
	sigbus_unwatch(map->sigbus);
	munmap(map->base, map->map_bytes);
	free(map);
}

/* What mappings of this file are made of: pages, or huge pages on hugetlbfs. */
static uint64_t page_of_file(int fd, const struct stat *st)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC)
		return (uint64_t)st->st_blksize;
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static int mapping_create(const struct guest_region_config *c, const struct stat *st, int broken_fd,
			  struct guest_mapping **out, struct error *err)
{
	struct guest_mapping *map;
	uint64_t page = page_of_file(c->fd, st);
	uint64_t start, end;

	if (!checked_add(c->offset_bytes, c->len_bytes, &end) || end > (uint64_t)INT64_MAX)
		return error_set(err, -EINVAL, "memory region: offset + length overflow");
	if ((uint64_t)st->st_size < end)
		return error_set(err, -EINVAL,
				 "memory region at 0x%llx needs a file of %llu bytes, it has %llu",
				 (unsigned long long)c->gpa, (unsigned long long)end,
				 (unsigned long long)st->st_size);
	map = calloc(1, sizeof(*map));
	if (!map)
		return error_set(err, -ENOMEM, "memory region: out of memory");
	/* mmap wants whole pages in its offset, munmap in its length.  end <= INT64_MAX: the sum
	 * does not overflow. */
	start = align_down(c->offset_bytes, page);
	map->map_bytes = align_up(end, page) - start;
	map->base = mmap(NULL, map->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			 c->fd, (off_t)start);
	if (map->base == MAP_FAILED) {
		int ret = -errno;

		free(map);
		return error_set(err, ret, "memory region at 0x%llx: mmap of %llu bytes: %s",
				 (unsigned long long)c->gpa, (unsigned long long)c->len_bytes,
				 strerror(-ret));
	}
	madvise(map->base, map->map_bytes, MADV_DONTDUMP);
	map->refs = 1;
	map->host = (char *)map->base + (c->offset_bytes - start);
	map->dev = st->st_dev;
	map->ino = st->st_ino;
	map->offset_bytes = c->offset_bytes;
	map->len_bytes = c->len_bytes;
	map->sigbus = sigbus_watch(map->base, map->map_bytes, page, broken_fd);
	*out = map;
	return 0;
}

/* The same file, offset, length, guest address and client address: kept, not mapped again. */
static const struct guest_region *find_same(const struct guest_memory *previous,
					    const struct guest_region_config *c,
					    const struct stat *st)
{
	for (unsigned i = 0; previous && i < previous->nregions; i++) {
		const struct guest_region *r = &previous->regions[i];

		if (r->gpa != c->gpa || r->len_bytes != c->len_bytes ||
		    r->user_addr != c->user_addr || r->mapping->offset_bytes != c->offset_bytes)
			continue;
		if (!st || (r->mapping->dev == st->st_dev && r->mapping->ino == st->st_ino))
			return r;
	}
	return NULL;
}

static int region_create(const struct guest_region_config *c, const struct guest_memory *previous,
			 int broken_fd, struct guest_region *out, struct error *err)
{
	const struct guest_region *same;
	struct stat st;
	uint64_t end;

	if (!c->len_bytes || !checked_add(c->gpa, c->len_bytes, &end) ||
	    !checked_add(c->user_addr, c->len_bytes, &end))
		return error_set(err, -EINVAL, "memory region at 0x%llx: empty, or it wraps",
				 (unsigned long long)c->gpa);
	if (c->fd >= 0 && fstat(c->fd, &st) < 0)
		return error_set(err, -errno, "memory region: fstat: %s", strerror(errno));
	same = find_same(previous, c, c->fd >= 0 ? &st : NULL);
	out->gpa = c->gpa;
	out->len_bytes = c->len_bytes;
	out->user_addr = c->user_addr;
	if (same) {
		out->mapping = same->mapping;
		out->mapping->refs++;
	} else {
		int ret;

		if (c->fd < 0)
			return error_set(err, -EINVAL, "memory region at 0x%llx: no descriptor",
					 (unsigned long long)c->gpa);
		ret = mapping_create(c, &st, broken_fd, &out->mapping, err);
		if (ret < 0)
			return ret;
	}
	out->host = out->mapping->host;
	return 0;
}

static int by_gpa(const void *a, const void *b)
{
	const struct guest_region *ra = a, *rb = b;

	return ra->gpa < rb->gpa ? -1 : ra->gpa > rb->gpa;
}

static void table_free(struct guest_memory *m)
{
	for (unsigned i = 0; i < m->nregions; i++)
		mapping_unref(m->regions[i].mapping);
	free(m);
}

/* Rings are given in the client's addresses, so these must be as unambiguous as the guest's. */
static bool user_overlap(const struct guest_memory *m, struct error *err)
{
	for (unsigned i = 0; i < m->nregions; i++) {
		for (unsigned j = 0; j < i; j++) {
			const struct guest_region *a = &m->regions[i], *b = &m->regions[j];

			if (!ranges_overlap(a->user_addr, a->len_bytes, b->user_addr, b->len_bytes))
				continue;
			error_set(err, -EINVAL, "memory regions overlap at user address 0x%llx",
				  (unsigned long long)MAX(a->user_addr, b->user_addr));
			return true;
		}
	}
	return false;
}

struct guest_memory *guest_memory_create(const struct guest_region_config *config, unsigned n,
					 const struct guest_memory *previous, int broken_fd,
					 struct error *err)
{
	struct guest_memory *m = calloc(1, sizeof(*m) + n * sizeof(m->regions[0]));

	if (!m) {
		error_set(err, -ENOMEM, "memory table: out of memory");
		return NULL;
	}
	m->refs = 1;
	for (unsigned i = 0; i < n; i++) {
		if (region_create(&config[i], previous, broken_fd, &m->regions[i], err) < 0) {
			table_free(m);
			return NULL;
		}
		m->nregions++;
	}
	qsort(m->regions, n, sizeof(m->regions[0]), by_gpa);
	for (unsigned i = 1; i < n; i++) {
		const struct guest_region *a = &m->regions[i - 1], *b = &m->regions[i];

		if (a->gpa + a->len_bytes > b->gpa) {
			error_set(err, -EINVAL, "memory regions at 0x%llx and 0x%llx overlap",
				  (unsigned long long)a->gpa, (unsigned long long)b->gpa);
			table_free(m);
			return NULL;
		}
	}
	if (user_overlap(m, err)) {
		table_free(m);
		return NULL;
	}
	return m;
}

struct guest_memory *guest_memory_ref(struct guest_memory *m)
{
	m->refs++;
	return m;
}

void guest_memory_unref(struct guest_memory *m)
{
	if (!m || --m->refs)
		return;
	if (m->released)
		m->released(m, m->released_arg);
	table_free(m);
}

uint64_t guest_region_offset(const struct guest_region *r)
{
	return r->mapping->offset_bytes;
}

bool guest_memory_is_broken(const struct guest_memory *m)
{
	for (unsigned i = 0; i < m->nregions; i++) {
		if (sigbus_hit(m->regions[i].mapping->sigbus))
			return true;
	}
	return false;
}

/* The region that holds gpa, or NULL.  Few regions: QEMU has two to four; halving covers 509. */
static const struct guest_region *find_region(const struct guest_memory *m, uint64_t gpa)
{
	unsigned lo = 0, hi = m->nregions;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		const struct guest_region *r = &m->regions[mid];

		if (gpa < r->gpa)
			hi = mid;
		else if (gpa - r->gpa < r->len_bytes)
			return r;
		else
			lo = mid + 1;
	}
	return NULL;
}

void *guest_memory_host(const struct guest_memory *m, uint64_t gpa, uint64_t len,
			enum guest_access access)
{
	const struct guest_region *r = find_region(m, gpa);

	if (!r || len > r->len_bytes - (gpa - r->gpa))
		return NULL;
	return r->host + (gpa - r->gpa);
}

int guest_memory_translate(const struct guest_memory *m, uint64_t gpa, uint64_t len,
			   enum guest_access access, struct iovec *iov, unsigned max)
{
	unsigned parts = 0;

	while (len) {
		const struct guest_region *r = find_region(m, gpa);
		uint64_t n;

		if (!r)
			return -EFAULT;
		if (parts == max)
			return -ENOBUFS;
		n = MIN(len, r->len_bytes - (gpa - r->gpa));
		iov[parts].iov_base = r->host + (gpa - r->gpa);
		iov[parts].iov_len = n;
		parts++;
		len -= n;
		/* Regions end below 2^64, so a range that wraps meets an unmapped byte first. */
		gpa += n;
	}
	return (int)parts;
}

void *guest_memory_from_user(const struct guest_memory *m, uint64_t user_addr, uint64_t len)
{
	for (unsigned i = 0; i < m->nregions; i++) {
		const struct guest_region *r = &m->regions[i];

		if (user_addr >= r->user_addr &&
		    range_within(user_addr - r->user_addr, len, r->len_bytes))
			return r->host + (user_addr - r->user_addr);
	}
	return NULL;
}
