/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sleeping and being woken costs on this machine.  Measured once a process, at first use
 * (two threads wake each other through eventfds and epoll; a few milliseconds at most).
 */
#ifndef LOOP_WAKE_COST_H
#define LOOP_WAKE_COST_H

#include <stdint.h>

/* From the write to an eventfd until the thread that slept on it runs. */
uint64_t wake_latency_ns(void);

/*
 * What looking on may save, for struct poll_policy: the time that the request waits (the latency
 * above), the CPU time of the one who notifies and that of the one who is woken.  Each of the two
 * is about as long as the latency.
 */
uint64_t wake_cost_ns(void);

#endif
