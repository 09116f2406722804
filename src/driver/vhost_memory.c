/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the server has.  The server knows a piece by our own address, so nothing is
 * translated; a request's buffers are only looked up.
 *
 * Control: under the device's lock.  Data: vhost_memory_has(), without it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/checked.h"
#include "base/fd.h"
#include "driver/vhost_device.h"

#define HUGEPAGE_BYTES (2u << 20)

static bool region_has(const struct vhost_region *r, uintptr_t start, size_t len_bytes)
{
	return start >= r->start && start < r->end && len_bytes <= r->end - start;
}

bool vhost_memory_has(struct vhost_queue *q, const void *addr, size_t len_bytes)
{
	/* [DRV1] pairs with the release when a table is published */
	const struct vhost_regions *all = atomic_load_acquire(&q->dev->regions);
	const struct vhost_region *r = q->last_region;
	uintptr_t start = (uintptr_t)addr;

	/* One of an older table may have been freed. */
	if (likely(all == q->last_regions && region_has(r, start, len_bytes)))
		return true;
	for (unsigned i = 0; all && i < all->count; i++) {
		r = &all->regions[i];
		if (region_has(r, start, len_bytes)) {
			q->last_regions = all;
			q->last_region = r;
			return true;
		}
	}
	return false;
}

static struct vhost_regions *copy_regions(const struct vhost_regions *from, unsigned room,
					  struct error *err)
{
	unsigned count = from ? from->count : 0;
	struct vhost_regions *r = calloc(1,
					 sizeof(*r) + (count + room) * sizeof(struct vhost_region));

	if (!r) {
		error_set(err, -ENOMEM, "out of memory for a table of %u regions", count + room);
		return NULL;
	}
	r->count = count;
	if (count)
		memcpy(r->regions, from->regions, count * sizeof(struct vhost_region));
	return r;
}

static void publish(struct vhost_device *dev, struct vhost_regions *r)
{
	r->older = dev->regions;
	/* [DRV1] pairs with the acquire of a queue that looks a buffer up */
	atomic_store_release(&dev->regions, r);
}

static struct vhost_user_memory_region wire_region(const struct vhost_region *r)
{
	return (struct vhost_user_memory_region){.guest_addr = r->start,
						 .len_bytes = r->end - r->start,
						 .user_addr = r->start,
						 .mmap_offset = r->offset_bytes};
}

/*
 * A server that does not acknowledge may see a request in its ring before it has read of the memory
 * that the request uses; that it answers another message says that it has read this one.
 */
static int wait_until_read(struct vhost_device *dev, int ret, struct error *err)
{
	uint64_t features;

	if (ret < 0 || dev->client.reply_ack)
		return ret;
	return vhost_client_get_u64(&dev->client, VHOST_USER_GET_FEATURES, &features, err);
}

static int send_one(struct vhost_device *dev, uint32_t request, const struct vhost_region *r,
		    struct error *err)
{
	union vhost_user_payload p = {.single = {.region = wire_region(r)}};
	bool add = request == VHOST_USER_ADD_MEM_REG;
	int ret = vhost_client_set(&dev->client, request, &p, sizeof(p.single), &r->fd, add ? 1 : 0,
				   err);

	return wait_until_read(dev, ret, err);
}

static int send_table(struct vhost_device *dev, const struct vhost_regions *all, struct error *err)
{
	union vhost_user_payload p = {.memory = {.nregions = all->count}};
	int fds[VHOST_USER_MAX_TABLE_REGIONS], ret;

	for (unsigned i = 0; i < all->count; i++) {
		p.memory.regions[i] = wire_region(&all->regions[i]);
		fds[i] = all->regions[i].fd;
	}
	ret = vhost_client_set(&dev->client, VHOST_USER_SET_MEM_TABLE, &p,
			       (uint32_t)(8 + all->count * sizeof(p.memory.regions[0])), fds,
			       all->count, err);
	return wait_until_read(dev, ret, err);
}

static int check_new(const struct vhost_device *dev, const struct vhost_region *r,
		     struct error *err)
{
	const struct vhost_regions *all = dev->regions;
	unsigned count = all ? all->count : 0;

	if (count >= dev->max_regions)
		return error_set(err, -ENOSPC, "%s takes no more than %u pieces of memory",
				 dev->path, dev->max_regions);
	for (unsigned i = 0; i < count; i++) {
		if (ranges_overlap(r->start, r->end - r->start, all->regions[i].start,
				   all->regions[i].end - all->regions[i].start))
			return error_set(err, -EEXIST, "memory at %p is known already",
					 (void *)r->start);
	}
	return 0;
}

/* r->fd is taken over on success. */
static int add_region(struct vhost_device *dev, const struct vhost_region *r, struct error *err)
{
	struct vhost_regions *all;
	int ret;

	pthread_mutex_lock(&dev->lock);
	ret = check_new(dev, r, err);
	all = ret < 0 ? NULL : copy_regions(dev->regions, 1, err);
	if (all) {
		all->regions[all->count++] = *r;
		ret = dev->slots_messages ? send_one(dev, VHOST_USER_ADD_MEM_REG, r, err)
					  : send_table(dev, all, err);
		if (ret == 0)
			publish(dev, all);
		else
			free(all);
	} else if (ret == 0) {
		ret = -ENOMEM;
	}
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

static int memfd(size_t len_bytes, bool huge, struct error *err)
{
	int fd = memfd_create("ringside", MFD_CLOEXEC | (huge ? MFD_HUGETLB | MFD_HUGE_2MB : 0));

	if (fd < 0)
		return error_set(err, -errno, "memfd_create: %s", strerror(errno));
	if (ftruncate(fd, (off_t)len_bytes) < 0) {
		int ret = error_set(err, -errno, "ftruncate to %zu bytes: %s", len_bytes,
				    strerror(errno));

		close(fd);
		return ret;
	}
	return fd;
}

static int map(int fd, size_t len_bytes, void **out, struct error *err)
{
	*out = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (*out == MAP_FAILED) {
		*out = NULL;
		return error_set(err, -errno, "mmap of %zu bytes: %s", len_bytes, strerror(errno));
	}
	return 0;
}

/* fd and mapping; *huge becomes false if there are no huge pages. */
static int get_memory(bool *huge, size_t *len_bytes, int *fd, void **out, struct error *err)
{
	size_t page = *huge ? HUGEPAGE_BYTES : (size_t)sysconf(_SC_PAGESIZE);
	size_t len = align_up(*len_bytes, page);
	int ret;

	*fd = memfd(len, *huge, err);
	ret = *fd < 0 ? *fd : map(*fd, len, out, err);
	if (ret == 0) {
		*len_bytes = len;
		return 0;
	}
	fd_close(fd);
	if (!*huge)
		return ret;
	*huge = false;
	return get_memory(huge, len_bytes, fd, out, err);
}

int vhost_memory_alloc(struct ringside_device *base, size_t len_bytes, void **out,
		       struct error *err)
{
	struct vhost_device *dev = container_of(base, struct vhost_device, base);
	struct vhost_region r = {.fd = -1, .lent = true};
	bool huge = dev->base.info.hugepages;
	int ret;

	if (!len_bytes || len_bytes > SIZE_MAX / 2)
		return error_set(err, -EINVAL, "memory of %zu bytes", len_bytes);
	ret = get_memory(&huge, &len_bytes, &r.fd, out, err);
	if (ret < 0)
		return ret;
	/* The first piece says what the device is; that does not change under other threads. */
	if (out == &dev->ring_memory)
		dev->base.info.hugepages = huge;
	r.start = (uintptr_t)*out;
	r.end = r.start + len_bytes;
	ret = add_region(dev, &r, err);
	if (ret < 0) {
		munmap(*out, len_bytes);
		fd_close(&r.fd);
		*out = NULL;
	}
	return ret;
}

int vhost_memory_map(struct ringside_device *base, void *addr, size_t len_bytes, int fd,
		     uint64_t offset_bytes, struct error *err)
{
	struct vhost_device *dev = container_of(base, struct vhost_device, base);
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct vhost_region r = {.start = (uintptr_t)addr, .offset_bytes = offset_bytes};
	int ret;

	if (!len_bytes || ((uintptr_t)addr | len_bytes | offset_bytes) % page ||
	    !checked_add(r.start, len_bytes, &r.end))
		return error_set(err, -EINVAL, "memory at %p, %zu bytes, is not of whole pages",
				 addr, len_bytes);
	r.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* a table that is sent whole needs it again */
	if (r.fd < 0)
		return error_set(err, -errno, "memory descriptor %d: %s", fd, strerror(errno));
	ret = add_region(dev, &r, err);
	if (ret < 0)
		fd_close(&r.fd);
	return ret;
}

static int remove_region(struct vhost_device *dev, unsigned at, struct error *err)
{
	struct vhost_region gone = dev->regions->regions[at];
	struct vhost_regions *all = copy_regions(dev->regions, 0, err);
	int ret;

	if (!all)
		return -ENOMEM;
	all->regions[at] = all->regions[--all->count];
	ret = dev->slots_messages ? send_one(dev, VHOST_USER_REM_MEM_REG, &gone, err)
				  : send_table(dev, all, err);
	if (ret < 0) {
		free(all);
		return ret;
	}
	publish(dev, all);
	if (gone.lent)
		munmap((void *)gone.start, gone.end - gone.start);
	close(gone.fd);
	return 0;
}

int vhost_memory_free(struct ringside_device *base, void *addr, struct error *err)
{
	struct vhost_device *dev = container_of(base, struct vhost_device, base);
	int ret = error_set(err, -ENOENT, "there is no memory at %p", addr);

	pthread_mutex_lock(&dev->lock);
	for (unsigned i = 0; dev->regions && i < dev->regions->count; i++) {
		if (dev->regions->regions[i].start == (uintptr_t)addr && addr != dev->ring_memory) {
			ret = remove_region(dev, i, err);
			break;
		}
	}
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

void vhost_memory_fini(struct vhost_device *dev)
{
	struct vhost_regions *all = dev->regions, *older;

	for (unsigned i = 0; all && i < all->count; i++) {
		if (all->regions[i].lent)
			munmap((void *)all->regions[i].start,
			       all->regions[i].end - all->regions[i].start);
		close(all->regions[i].fd);
	}
	for (; all; all = older) {
		older = all->older;
		free(all);
	}
	dev->regions = NULL;
}
