/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/file_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/fd.h"

#ifndef BCACHEFS_STATFS_MAGIC
#define BCACHEFS_STATFS_MAGIC 0xca451a4e
#endif

#define PROBE_ALIGN_MAX 65536u

/* What read(2) and write(2) move at most (MAX_RW_COUNT). */
#define FILE_MAX_TRANSFER ((uint64_t)INT_MAX & ~(uint64_t)4095)
/* A BLKZEROOUT that the kernel does by writing: not more than this in one call. */
#define ZEROOUT_WRITTEN_MAX (128u << 20)

int64_t file_size(int fd)
{
	struct stat st;
	uint64_t bytes;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return st.st_size;
	if (!S_ISBLK(st.st_mode))
		return -ENOTSUP;
	if (ioctl(fd, BLKGETSIZE64, &bytes) < 0)
		return -errno;
	return bytes <= INT64_MAX ? (int64_t)bytes : -EFBIG;
}

/* ---- alignment ---- */

static bool usable_align(uint64_t v)
{
	return is_power_of_2(v) && v <= PROBE_ALIGN_MAX;
}

/*
 * Asks for what O_DIRECT wants.  1: *offset and *memory are set; 0: the file does not do direct
 * I/O though it was opened so; -EOPNOTSUPP: this kernel or file system does not say.
 */
static int statx_dioalign(int fd, uint32_t *offset, uint32_t *memory)
{
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) < 0)
		return -EOPNOTSUPP;
	if (!(stx.stx_mask & STATX_DIOALIGN))
		return -EOPNOTSUPP;
	if (!stx.stx_dio_offset_align)
		return 0;
	if (!usable_align(stx.stx_dio_offset_align) || !usable_align(stx.stx_dio_mem_align))
		return -EOPNOTSUPP;
	*offset = stx.stx_dio_offset_align;
	*memory = stx.stx_dio_mem_align;
	return 1;
#else
	return -EOPNOTSUPP;
#endif
}

/*
 * The smallest read that the file takes, from 512 bytes on.  A hole may be read with any
 * alignment, so several places are tried and the largest answer counts.  0 if none was taken.
 */
static uint32_t probe_by_reading(int fd, uint64_t size)
{
	uint32_t worst = 0;
	void *buf;

	if (posix_memalign(&buf, PROBE_ALIGN_MAX, 2 * PROBE_ALIGN_MAX))
		return 0;
	for (unsigned place = 0; place < 8; place++) {
		uint64_t start = align_down(size / 8 * place, PROBE_ALIGN_MAX);
		uint32_t align = 512;

		while (align <= PROBE_ALIGN_MAX &&
		       pread(fd, buf, align, (off_t)(start + align)) < 0)
			align *= 2;
		if (align > PROBE_ALIGN_MAX) {
			worst = 0;
			break;
		}
		worst = MAX(worst, align);
	}
	free(buf);
	return worst;
}

static void probe_alignment(struct file *f, const struct stat *st, uint32_t fs_type,
			    struct engine_info *info)
{
	uint32_t offset = 1, memory = 1;
	int sector = 0, ret;

	if (f->block_device && ioctl(f->fd, BLKSSZGET, &sector) == 0 &&
	    usable_align((uint64_t)sector))
		offset = (uint32_t)sector; /* also without O_DIRECT: BLKZEROOUT wants it */
	/* tmpfs takes O_DIRECT and copies all the same: any alignment will do. */
	if (f->direct && (f->block_device || fs_type != TMPFS_MAGIC)) {
		ret = statx_dioalign(f->fd, &offset, &memory);
		if (ret == 0) {
			f->direct = false;
		} else if (ret < 0) {
			if (!f->block_device)
				offset = probe_by_reading(f->fd, info->size_bytes);
			if (!offset)
				offset = usable_align((uint64_t)st->st_blksize) &&
							 st->st_blksize >= 512
						 ? (uint32_t)st->st_blksize
						 : 4096;
			memory = offset;
		}
		if (!f->direct)
			memory = 1;
	}
	info->logical_block = offset;
	info->memory_align = memory;
}

/* ---- block devices ---- */

/* A number from the device's queue directory in sysfs (of the whole disk, for a partition). */
static int64_t queue_limit(dev_t rdev, const char *name)
{
	static const char *const forms[] = {"/sys/dev/block/%u:%u/queue/%s",
					    "/sys/dev/block/%u:%u/../queue/%s"};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		char path[128], text[32];
		fd_cleanup int fd = -1;
		ssize_t n;

		snprintf(path, sizeof(path), i ? forms[1] : forms[0], major(rdev), minor(rdev),
			 name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		n = read(fd, text, sizeof(text) - 1);
		if (n <= 0)
			return -EIO;
		text[n] = '\0';
		if (strncmp(text, "write ", 6) == 0) /* "write back" or "write through" */
			return text[6] == 'b';
		return (int64_t)MIN(strtoull(text, NULL, 10), (unsigned long long)INT64_MAX);
	}
	return -ENOENT;
}

/*
 * A range that every kernel refuses for its alignment, after it has refused what the device cannot
 * do: EOPNOTSUPP means no, EINVAL means yes, and no byte changes.
 */
static bool blkdiscard_works(int fd)
{
	uint64_t range[2] = {1, 512};

	return ioctl(fd, BLKDISCARD, range) < 0 && errno == EINVAL;
}

static void probe_block_device(struct file *f, const struct stat *st, struct engine_info *info)
{
	unsigned physical = 0, optimal = 0;
	int64_t limit;

	if (ioctl(f->fd, BLKPBSZGET, &physical) == 0 && usable_align(physical))
		info->physical_block = physical;
	if (ioctl(f->fd, BLKIOOPT, &optimal) == 0)
		info->optimal_io_bytes = optimal;
	limit = queue_limit(st->st_rdev, "nr_requests");
	f->nr_requests = limit > 0 ? (unsigned)MIN(limit, INT_MAX) : 0;
	if (f->direct && queue_limit(st->st_rdev, "write_cache") == 0)
		info->caps &= ~(uint32_t)ENGINE_CAP_WRITE_CACHE;
	if (f->read_only)
		return;

	f->discard = blkdiscard_works(f->fd);
	if (f->discard) {
		info->caps |= ENGINE_CAP_DISCARD;
		limit = queue_limit(st->st_rdev, "discard_granularity");
		info->discard_granularity = limit > 0 && limit <= UINT32_MAX ? (uint32_t)limit
									     : info->logical_block;
	}
	/* BLKZEROOUT always works, and if by writing then without copying from us. */
	info->caps |= ENGINE_CAP_WRITE_ZEROES | ENGINE_CAP_ZERO_NO_UNMAP;
	if (queue_limit(st->st_rdev, "write_zeroes_max_bytes") <= 0)
		info->max_discard_bytes = ZEROOUT_WRITTEN_MAX;
}

/* ---- regular files ---- */

/* ext4 zeroes ranges of files with extents only; ext2 and ext3 files have none. */
static bool has_extents(int fd)
{
	int flags = 0;

	return ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_EXTENT_FL);
}

/*
 * Punches behind the end of the file.  No byte of the file lies there, and the call says whether
 * the file system can do it at all.
 */
static bool punch_hole_works(int fd, uint64_t size)
{
	uint64_t start = align_up(size, PROBE_ALIGN_MAX);

	if (start > INT64_MAX - PROBE_ALIGN_MAX)
		return false;
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start, 4096) == 0;
}

static void probe_fallocate(struct file *f, uint32_t fs_type, uint64_t size)
{
	switch (fs_type) {
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case BCACHEFS_STATFS_MAGIC:
		f->punch_hole = f->zero_range = true;
		break;
	case EXT4_SUPER_MAGIC:
		f->punch_hole = true;
		f->zero_range = has_extents(f->fd);
		break;
	case TMPFS_MAGIC:
		f->punch_hole = true;
		break;
	default: /* NFS, FUSE, overlayfs, ...: depends on what is behind them */
		f->punch_hole = punch_hole_works(f->fd, size);
		break;
	}
}

static void probe_regular_file(struct file *f, const struct statfs *fs, struct engine_info *info)
{
	uint64_t block = (uint64_t)fs->f_bsize;

	info->physical_block = usable_align(block) && block >= 512 ? (uint32_t)block : 4096;
	if (f->read_only)
		return;
	probe_fallocate(f, (uint32_t)fs->f_type, info->size_bytes);
	if (f->punch_hole) {
		info->caps |= ENGINE_CAP_DISCARD | ENGINE_CAP_WRITE_ZEROES;
		info->discard_granularity = info->physical_block;
	}
	if (f->zero_range)
		info->caps |= ENGINE_CAP_WRITE_ZEROES | ENGINE_CAP_ZERO_NO_UNMAP;
}

int file_probe(const struct engine_config *config, struct file *file, struct engine_info *info,
	       struct error *err)
{
	const char *path = config->path ? config->path : "image";
	struct statfs fs;
	struct stat st;
	int64_t size;

	if (fstat(config->fd, &st) < 0 || fstatfs(config->fd, &fs) < 0)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return error_set(err, -ENOTSUP, "%s: neither a regular file nor a block device",
				 path);
	size = file_size(config->fd);
	if (size < 0)
		return error_set(err, (int)size, "%s: cannot find its size: %s", path,
				 strerror((int)-size));

	*file = (struct file){.fd = config->fd,
			      .block_device = S_ISBLK(st.st_mode),
			      .direct = config->direct,
			      .read_only = config->read_only};
	*info = (struct engine_info){.size_bytes = (uint64_t)size,
				     .max_iov = IOV_MAX,
				     .max_transfer_bytes = FILE_MAX_TRANSFER};
	if (!config->read_only)
		info->caps = ENGINE_CAP_FUA | ENGINE_CAP_WRITE_CACHE;
	probe_alignment(file, &st, (uint32_t)fs.f_type, info);
	if (file->block_device)
		probe_block_device(file, &st, info);
	else
		probe_regular_file(file, &fs, info);
	info->physical_block = MAX(info->physical_block, info->logical_block);
	return 0;
}
