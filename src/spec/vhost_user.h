/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vhost-user wire format (QEMU docs/interop/vhost-user.rst): structs and numbers, no code.
 * All fields are in host byte order: both ends are on one machine.
 */
#ifndef SPEC_VHOST_USER_H
#define SPEC_VHOST_USER_H

#include <assert.h>
#include <stdint.h>

enum vhost_user_request {
	VHOST_USER_NONE = 0,
	VHOST_USER_GET_FEATURES = 1,
	VHOST_USER_SET_FEATURES = 2,
	VHOST_USER_SET_OWNER = 3,
	VHOST_USER_RESET_OWNER = 4,
	VHOST_USER_SET_MEM_TABLE = 5,
	VHOST_USER_SET_LOG_BASE = 6,
	VHOST_USER_SET_LOG_FD = 7,
	VHOST_USER_SET_VRING_NUM = 8,
	VHOST_USER_SET_VRING_ADDR = 9,
	VHOST_USER_SET_VRING_BASE = 10,
	VHOST_USER_GET_VRING_BASE = 11,
	VHOST_USER_SET_VRING_KICK = 12,
	VHOST_USER_SET_VRING_CALL = 13,
	VHOST_USER_SET_VRING_ERR = 14,
	VHOST_USER_GET_PROTOCOL_FEATURES = 15,
	VHOST_USER_SET_PROTOCOL_FEATURES = 16,
	VHOST_USER_GET_QUEUE_NUM = 17,
	VHOST_USER_SET_VRING_ENABLE = 18,
	VHOST_USER_SET_BACKEND_REQ_FD = 21,
	VHOST_USER_GET_CONFIG = 24,
	VHOST_USER_SET_CONFIG = 25,
	VHOST_USER_GET_INFLIGHT_FD = 31,
	VHOST_USER_SET_INFLIGHT_FD = 32,
	VHOST_USER_RESET_DEVICE = 34,
	VHOST_USER_GET_MAX_MEM_SLOTS = 36,
	VHOST_USER_ADD_MEM_REG = 37,
	VHOST_USER_REM_MEM_REG = 38,
	VHOST_USER_SET_STATUS = 39,
	VHOST_USER_GET_STATUS = 40,
	VHOST_USER_REQUEST_MAX = 41,
};

#define VHOST_USER_FLAG_VERSION_MASK 0x3u
#define VHOST_USER_VERSION           0x1u
#define VHOST_USER_FLAG_REPLY        0x4u
#define VHOST_USER_FLAG_NEED_REPLY   0x8u

struct vhost_user_header {
	uint32_t request;
	uint32_t flags;
	uint32_t size; /* of the payload that follows */
};
static_assert(sizeof(struct vhost_user_header) == 12, "header");

/* In the feature bits of GET/SET_FEATURES. */
#define VHOST_USER_F_PROTOCOL_FEATURES 30

enum vhost_user_protocol_feature {
	VHOST_USER_PROTOCOL_F_MQ = 0,
	VHOST_USER_PROTOCOL_F_LOG_SHMFD = 1,
	VHOST_USER_PROTOCOL_F_REPLY_ACK = 3,
	VHOST_USER_PROTOCOL_F_BACKEND_REQ = 5,
	VHOST_USER_PROTOCOL_F_CONFIG = 9,
	VHOST_USER_PROTOCOL_F_BACKEND_SEND_FD = 10,
	VHOST_USER_PROTOCOL_F_INFLIGHT_SHMFD = 12,
	VHOST_USER_PROTOCOL_F_RESET_DEVICE = 13,
	VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS = 15,
	VHOST_USER_PROTOCOL_F_STATUS = 16,
};

struct vhost_user_vring_state {
	uint32_t index;
	uint32_t num;
};
static_assert(sizeof(struct vhost_user_vring_state) == 8, "vring state");

struct vhost_user_vring_addr {
	uint32_t index;
	uint32_t flags;
	uint64_t desc_user_addr;
	uint64_t used_user_addr;
	uint64_t avail_user_addr;
	uint64_t log_guest_addr;
};
static_assert(sizeof(struct vhost_user_vring_addr) == 40, "vring address");

/* The u64 of SET_VRING_KICK, CALL and ERR. */
#define VHOST_USER_VRING_INDEX_MASK 0xffull
#define VHOST_USER_VRING_NO_FD      0x100ull

struct vhost_user_memory_region {
	uint64_t guest_addr;
	uint64_t len_bytes;
	uint64_t user_addr;
	uint64_t mmap_offset;
};
static_assert(sizeof(struct vhost_user_memory_region) == 32, "memory region");

#define VHOST_USER_MAX_TABLE_REGIONS 8

struct vhost_user_memory {
	uint32_t nregions;
	uint32_t padding;
	struct vhost_user_memory_region regions[VHOST_USER_MAX_TABLE_REGIONS];
};
static_assert(sizeof(struct vhost_user_memory) == 8 + 8 * 32, "memory table");

struct vhost_user_memory_single {
	uint64_t padding;
	struct vhost_user_memory_region region;
};
static_assert(sizeof(struct vhost_user_memory_single) == 40, "single memory region");

#define VHOST_USER_MAX_CONFIG_BYTES 256

struct vhost_user_config {
	uint32_t offset;
	uint32_t size;
	uint32_t flags;
	uint8_t data[VHOST_USER_MAX_CONFIG_BYTES];
};
#define VHOST_USER_CONFIG_HEADER_BYTES 12u
static_assert(sizeof(struct vhost_user_config) == 12 + 256, "config");

union vhost_user_payload {
	uint64_t u64;
	struct vhost_user_vring_state state;
	struct vhost_user_vring_addr addr;
	struct vhost_user_memory memory;
	struct vhost_user_memory_single single;
	struct vhost_user_config config;
};

#endif
