/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory that shrinks under us breaks one device, not the daemon.
 *
 * A process-wide SIGBUS handler looks the faulting address up among the registered ranges, puts
 * anonymous memory there so that the access ends, marks the range and signals its eventfd.  A fault
 * anywhere else ends the process as it would have without us.
 */
#ifndef MEM_SIGBUS_H
#define MEM_SIGBUS_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

struct sigbus_range; /* owned by sigbus.c, from a fixed table */

/* Installs the handler at the first call.  base and len_bytes are multiples of page_bytes, which is
 * that of the mapping (huge ones differ).  Control thread.  NULL when the table is full. */
struct sigbus_range *sigbus_watch(void *base, size_t len_bytes, size_t page_bytes, int eventfd);
void sigbus_unwatch(struct sigbus_range *r);
bool sigbus_hit(const struct sigbus_range *r);

#endif
