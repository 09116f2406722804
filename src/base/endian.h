/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Little-endian wire integers.  A field of type le16/le32/le64 is as the wire has it; it becomes a
 * number only through these functions.  They are structs so that mixing the two does not compile.
 */
#ifndef BASE_ENDIAN_H
#define BASE_ENDIAN_H

#include <endian.h>
#include <stdint.h>

struct le16 {
	uint16_t raw;
};
struct le32 {
	uint32_t raw;
};
struct le64 {
	uint64_t raw;
};

static inline uint16_t le16_get(struct le16 v)
{
	return le16toh(v.raw);
}
static inline uint32_t le32_get(struct le32 v)
{
	return le32toh(v.raw);
}
static inline uint64_t le64_get(struct le64 v)
{
	return le64toh(v.raw);
}
static inline struct le16 le16_put(uint16_t v)
{
	return (struct le16){htole16(v)};
}
static inline struct le32 le32_put(uint32_t v)
{
	return (struct le32){htole32(v)};
}
static inline struct le64 le64_put(uint64_t v)
{
	return (struct le64){htole64(v)};
}

#endif
