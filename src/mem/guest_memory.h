/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest memory: an immutable table of regions, address range -> pointer.
 *
 * Tables are made, referenced and released by the control thread alone; iothreads only translate
 * through a table that somebody holds for them.  A new table takes over the mappings of the old one
 * where file, offset, length and address are the same; the rest is unmapped when the last table
 * that has it goes.
 */
#ifndef MEM_GUEST_MEMORY_H
#define MEM_GUEST_MEMORY_H

#include <stdint.h>
#include <sys/uio.h>

#include "base/compiler.h"
#include "base/error.h"

enum guest_access {
	GUEST_READ = 1, /* we read guest memory */
	GUEST_WRITE = 2,
};

struct guest_mapping; /* one mmap of a client's file; see guest_memory.c */

struct guest_region {
	uint64_t gpa;
	uint64_t len_bytes;
	uint64_t user_addr; /* the client's own address of it: vhost-user gives rings in these */
	char *host;
	struct guest_mapping *mapping;
};

struct guest_memory {
	unsigned refs; /* control thread */
	/* Called by the control thread when the last reference goes, before unmapping; may be NULL.
	 */
	void (*released)(struct guest_memory *m, void *arg);
	void *released_arg;
	unsigned nregions;
	struct guest_region regions[]; /* by gpa, not overlapping */
};

struct guest_region_config {
	uint64_t gpa;
	uint64_t len_bytes;
	uint64_t user_addr;
	uint64_t offset_bytes; /* into the file */
	int fd;                /* the caller's; -1: must be a region of the previous table */
};

/*
 * Makes a table (one reference, the caller's) of n regions.  `previous` (may be NULL) is where
 * mappings are taken over from.  Each file must be as long as its region says.  NULL with *err set
 * on overlap, zero length, overflow, short file, or a failed mmap; nothing is left behind.
 *
 * broken_fd: an eventfd that is signalled (in a signal handler) when the client shrank a file under
 * us and an access met the hole; guest_memory_is_broken() is then true.  -1 for none.
 */
struct guest_memory *guest_memory_create(const struct guest_region_config *config, unsigned n,
					 const struct guest_memory *previous, int broken_fd,
					 struct error *err);
struct guest_memory *guest_memory_ref(struct guest_memory *m);
void guest_memory_unref(struct guest_memory *m);

/* Where in its file a region begins. */
uint64_t guest_region_offset(const struct guest_region *r);

bool guest_memory_is_broken(const struct guest_memory *m);

/* The pointer for [gpa, gpa + len) if it lies in one region, else NULL.  len may be 0. */
void *guest_memory_host(const struct guest_memory *m, uint64_t gpa, uint64_t len,
			enum guest_access access);

/*
 * Describes [gpa, gpa + len) in iov[0..max): one part a region.  Returns the number of parts,
 * -EFAULT if some byte is not mapped or the range wraps, -ENOBUFS if max is too small.
 * (An IOTLB's *miss* will be another negative result.)
 */
int guest_memory_translate(const struct guest_memory *m, uint64_t gpa, uint64_t len,
			   enum guest_access access, struct iovec *iov, unsigned max);

/* As guest_memory_host(), by the client's address. */
void *guest_memory_from_user(const struct guest_memory *m, uint64_t user_addr, uint64_t len);

#endif
