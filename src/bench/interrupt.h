/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGINT and SIGTERM end the benchmark early, and what there is is printed; a second one ends the
 * program.  Workers block both (interrupt_block()), so that the thread that watches is woken.
 */
#ifndef BENCH_INTERRUPT_H
#define BENCH_INTERRUPT_H

#include <stdbool.h>

void interrupt_init(void);
void interrupt_block(void);
void interrupt_unblock(void);
bool interrupted(void);

#endif
