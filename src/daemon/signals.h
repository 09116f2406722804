/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals as events of the control loop.
 */
#ifndef DAEMON_SIGNALS_H
#define DAEMON_SIGNALS_H

#include "loop/loop.h"

struct signals {
	struct loop_fd source;
	struct loop *loop;
	void (*terminate)(void *arg); /* SIGTERM, SIGINT: called once for each that comes */
	void (*report)(void *arg);    /* SIGUSR1 */
	void *arg;
};

/* Before any thread is made: blocks the signals in all that come, ignores SIGPIPE. */
void signals_block(void);

/* Fields other than source and loop are set by the caller.  0, or a negative errno with *err. */
int signals_start(struct signals *s, struct loop *loop, struct error *err) must_check;
void signals_stop(struct signals *s);

#endif
