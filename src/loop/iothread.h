/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that runs a loop.  Created and destroyed by the control thread.
 */
#ifndef LOOP_IOTHREAD_H
#define LOOP_IOTHREAD_H

#include "loop/loop.h"

struct iothread;

/* Starts a thread named `name` (at most 15 bytes).  NULL with *err set on failure. */
struct iothread *iothread_create(const char *name, const struct poll_policy_limits *limits,
				 struct error *err);

/* Stops the loop and joins the thread.  Everything on it has been removed before. */
void iothread_destroy(struct iothread *t);

struct loop *iothread_loop(struct iothread *t);

/* Runs fn(arg) on the iothread and waits for it.  Control thread only, for start and stop. */
void iothread_run_sync(struct iothread *t, void (*fn)(void *arg), void *arg);

#endif
