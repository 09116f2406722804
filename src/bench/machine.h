/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which machine this is, in a line.
 */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stddef.h>

/* "AMD EPYC ..., 2 cpus, Linux 6.12.1 x86_64". */
void bench_machine_text(char *buf, size_t buf_len);

#endif
