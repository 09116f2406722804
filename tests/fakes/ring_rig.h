/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtqueue in shared memory, both halves, without a transport: guest memory of two regions that
 * touch each other in guest addresses (not in ours), a driver half and a device half.
 *
 * The driver half uses the same mapping as the device half, so that ThreadSanitizer sees both.
 * Tests that want chains no driver would make write descriptors themselves (ring_rig_desc and
 * friends); they then use one of the two, not both.
 */
#ifndef FAKES_RING_RIG_H
#define FAKES_RING_RIG_H

#include "ring/service.h"
#include "ring/virtq.h"
#include "ring/virtq_driver.h"

/* Guest addresses: the ring and data in region 0, more data in region 1 right behind it. */
#define RIG_GPA          0x100000ull
#define RIG_REGION_BYTES (8ull << 20)
#define RIG_SEAM         (RIG_GPA + RIG_REGION_BYTES) /* first byte of region 1 */
#define RIG_END          (RIG_SEAM + RIG_REGION_BYTES)
#define RIG_USER         0x7e0000000000ull /* the client's address of region 0 */
#define RIG_UNMAPPED     0x700000000000ull
/* Data that a test may use as it likes; the ring is below. */
#define RIG_DATA (RIG_GPA + (4ull << 20))

struct ring_rig_config {
	uint16_t size;
	uint16_t table_len; /* of the driver half; > 0 also negotiates INDIRECT_DESC */
	uint16_t start_idx;
	bool event_idx;
};

struct ring_rig {
	struct ring_rig_config config;
	int memfd;
	struct guest_memory *mem;
	struct virtq_mem *vm; /* the device's table; one a start or change */
	struct virtq_config vq_config;
	struct virtq vq;
	struct virtq_driver drv;
	int kick_fd, call_fd, err_fd;

	/* What the device half told. */
	unsigned broken, drained, released, resumed;
};

/* Memory, eventfds and an empty ring; the device half is started (ring_rig_start).  Asserts
 * success. */
void ring_rig_init(struct ring_rig *rig, const struct ring_rig_config *config);
void ring_rig_fini(struct ring_rig *rig);

/* Starts the device half at this avail index. */
void ring_rig_start(struct ring_rig *rig, uint16_t last_avail_idx);
/* Stops it; the test looks at rig->drained, and releases. */
void ring_rig_stop(struct ring_rig *rig);
/* After the drain: drops the memory table.  The ring can be started again. */
void ring_rig_release(struct ring_rig *rig);

/* A table for the queue: the same two regions, kept, or one moved away (user addresses changed). */
struct virtq_mem *ring_rig_new_memory(struct ring_rig *rig, bool with_ring);

/* Our pointer to guest memory; len must lie in one region. */
void *ring_rig_host(struct ring_rig *rig, uint64_t gpa, uint64_t len);

/* ---- raw writing ---- */

void ring_rig_desc(struct ring_rig *rig, uint16_t i, uint64_t gpa, uint32_t len, uint16_t flags,
		   uint16_t next);
/* The same into an indirect table at gpa. */
void ring_rig_table(struct ring_rig *rig, uint64_t table_gpa, uint16_t i, uint64_t gpa,
		    uint32_t len, uint16_t flags, uint16_t next);
/* Adds a head and shows it. */
void ring_rig_avail(struct ring_rig *rig, uint16_t head);
uint16_t ring_rig_avail_idx(struct ring_rig *rig);
void ring_rig_set_avail_idx(struct ring_rig *rig, uint16_t idx);
uint16_t ring_rig_used_idx(struct ring_rig *rig);
/* The used element of running index idx. */
void ring_rig_used(struct ring_rig *rig, uint16_t idx, uint32_t *id, uint32_t *len);

/* Waits for the eventfd (0: only looks) and clears it.  How often it was signalled. */
uint64_t ring_rig_event(int fd, int timeout_ms);

#endif
