/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures as a person reads them: three digits and a unit.  Pure.
 */
#ifndef BENCH_UNITS_H
#define BENCH_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* "812k", "1.25M". */
void units_count(double v, char *buf, size_t buf_len);

/* "345 ns", "12.1 us". */
void units_time(double ns, char *buf, size_t buf_len);

/* "3.21 GB/s": powers of 1000, as drives are sold. */
void units_bandwidth(double bytes_per_s, char *buf, size_t buf_len);

/* "4k", "1536": what --bs takes. */
void units_size(uint64_t bytes, char *buf, size_t buf_len);

#endif
