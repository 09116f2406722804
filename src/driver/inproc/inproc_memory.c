/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for file: targets.  The engines take any; what is lent is only kept to be given back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "driver/inproc/inproc.h"

/* Said, as a system may have another size by default. */
#define HUGEPAGE_SHIFT 21
#define HUGEPAGE_BYTES ((size_t)1 << HUGEPAGE_SHIFT)
#define HUGEPAGE_FLAGS (MAP_HUGETLB | HUGEPAGE_SHIFT << MAP_HUGE_SHIFT)

struct inproc_memory {
	struct inproc_memory *next;
	void *addr;
	size_t len_bytes;
	bool lent;
};

static int remember(struct inproc_device *dev, void *addr, size_t len_bytes, bool lent,
		    struct error *err)
{
	struct inproc_memory *m = malloc(sizeof(*m));

	if (!m)
		return error_set(err, -ENOMEM, "out of memory");
	*m = (struct inproc_memory){.addr = addr, .len_bytes = len_bytes, .lent = lent};
	pthread_mutex_lock(&dev->lock);
	m->next = dev->memory;
	dev->memory = m;
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

static void *map(size_t len_bytes, int flags)
{
	return mmap(NULL, len_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | flags, -1, 0);
}

bool inproc_memory_has_hugepages(void)
{
	void *addr = map(HUGEPAGE_BYTES, HUGEPAGE_FLAGS);

	return addr != MAP_FAILED && munmap(addr, HUGEPAGE_BYTES) == 0;
}

int inproc_memory_alloc(struct ringside_device *base, size_t len_bytes, void **out,
			struct error *err)
{
	struct inproc_device *dev = container_of(base, struct inproc_device, base);
	void *addr = MAP_FAILED;
	size_t len = 0;
	int ret;

	if (!len_bytes || len_bytes > SIZE_MAX / 2)
		return error_set(err, -EINVAL, "memory of %zu bytes", len_bytes);
	if (base->info.hugepages) {
		len = align_up(len_bytes, HUGEPAGE_BYTES);
		addr = map(len, HUGEPAGE_FLAGS);
	}
	if (addr == MAP_FAILED) {
		len = align_up(len_bytes, (size_t)sysconf(_SC_PAGESIZE));
		addr = map(len, 0);
	}
	if (addr == MAP_FAILED)
		return error_set(err, -errno, "mmap of %zu bytes: %s", len, strerror(errno));
	ret = remember(dev, addr, len, true, err);
	if (ret < 0)
		munmap(addr, len);
	else
		*out = addr;
	return ret;
}

int inproc_memory_map(struct ringside_device *base, void *addr, size_t len_bytes, int fd,
		      uint64_t offset_bytes, struct error *err)
{
	return remember(container_of(base, struct inproc_device, base), addr, len_bytes, false,
			err);
}

static void forget(struct inproc_memory *m)
{
	if (m->lent)
		munmap(m->addr, m->len_bytes);
	free(m);
}

int inproc_memory_free(struct ringside_device *base, void *addr, struct error *err)
{
	struct inproc_device *dev = container_of(base, struct inproc_device, base);
	struct inproc_memory **at, *m;

	pthread_mutex_lock(&dev->lock);
	for (at = &dev->memory; *at && (*at)->addr != addr; at = &(*at)->next)
		;
	m = *at;
	if (m)
		*at = m->next;
	pthread_mutex_unlock(&dev->lock);
	if (!m)
		return error_set(err, -ENOENT, "there is no memory at %p", addr);
	forget(m);
	return 0;
}

void inproc_memory_fini(struct inproc_device *dev)
{
	while (dev->memory) {
		struct inproc_memory *m = dev->memory;

		dev->memory = m->next;
		forget(m);
	}
}
