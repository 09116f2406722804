/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's composition: threads, disks, exports, and the control loop that runs until a signal
 * (or the last client of a handed-in connection) ends it.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "daemon/options.h"

/*
 * Opens every disk, then makes every socket, then serves until told to stop.  0 after an orderly
 * end, or a negative errno with *err when it could not start; then no socket is left behind.
 * Once a process: it takes over its signals.
 */
int daemon_run(const struct serve_options *options, struct error *err) must_check;

#endif
