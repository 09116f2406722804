/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a target hold data?  Its first and last MiB and 64 blocks between them are looked at.
 */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include "base/error.h"
#include "ringside/driver.h"

/* Of the first `bytes` of it.  1 and *where: there is a byte that is not zero; 0: none was found;
 * or a negative errno with *err. */
int bench_probe(struct ringside_device *dev, const struct ringside_info *info, uint64_t bytes,
		uint64_t seed, uint64_t *where, struct error *err) must_check;

#endif
