/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of the driver library share: opening, and the four ways to wait for completions.
 */
#ifndef DRIVER_RIG_H
#define DRIVER_RIG_H

#include "base/compiler.h"
#include "ringside/driver.h"

/* The ways to find completions: looking, sleeping, both, and the caller's own epoll loop. */
enum drv_mode { DRV_POLL, DRV_WAIT, DRV_HYBRID, DRV_LOOP, DRV_MODES };
extern const char *const drv_mode_names[];

/* Opens, or fails the test with the library's line.  options may be NULL. */
struct ringside_device *drv_open(const char *target, const struct ringside_options *options);

/* Lent memory, or the test fails. */
char *drv_memory(struct ringside_device *dev, size_t len_bytes);

struct ringside_info drv_info(const struct ringside_device *dev);
struct ringside_stats drv_stats(const struct ringside_queue *q);

/* Takes completions until n are there, or the queue has nothing more to give: then *error is what
 * it said, else 0.  How many were taken. */
unsigned drv_collect(struct ringside_queue *q, enum drv_mode mode, struct ringside_completion *out,
		     unsigned n, int *error);

/* Submits what was put, which is one request, and waits for it.  Its result. */
int drv_finish(struct ringside_queue *q);

/* Descriptors that this process has open. */
unsigned drv_fds(void);

/* As many are open, or soon are: a server in this process lets go a moment after its client. */
void drv_expect_fds(unsigned n);

/* Deterministic bytes. */
void drv_fill(void *buf, size_t len, uint32_t seed);

/* Nothing in these tests may hang: the process ends when it has run for long. */
void drv_no_hang(void);

#endif
