/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time of both sides.
 *
 * The clock of a process counts all its threads, those that have ended too, in nanoseconds; its
 * children are not in it.  What a thread runs at the moment is in it as of its last timer tick.
 */
#ifndef BENCH_CPU_H
#define BENCH_CPU_H

#include <stdbool.h>
#include <stdint.h>

struct bench_cpu {
	uint64_t client_ns; /* this process without the thread that asks, which only watches */
	uint64_t server_ns;
	bool server_known;
};

/* server_pid: 0 if unknown. */
void bench_cpu_read(int server_pid, struct bench_cpu *out);

#endif
