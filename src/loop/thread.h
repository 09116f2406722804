/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of the daemon: signals belong to the control thread, so all are blocked here but those
 * that a thread raises by its own memory accesses and instructions.
 */
#ifndef LOOP_THREAD_H
#define LOOP_THREAD_H

#include <pthread.h>

#include "base/compiler.h"

#define THREAD_STACK_DEFAULT 0
#define THREAD_STACK_SMALL   (256u * 1024u) /* shallow code; sanitizers need more than they say */

/* 0 or -errno.  *thread is set even when detached, but then good for nothing. */
int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, size_t stack_bytes,
		 bool detached) must_check;

/* Names the calling thread: the first 15 bytes of name. */
void thread_set_name(const char *name);

#endif
