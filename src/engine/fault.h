/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer over any engine that makes it fail as told.  For tests: the daemon puts it over every
 * engine when it was built with -Dfaults=true and the environment has RINGSIDE_FAULTS.
 *
 *     faults  = rule { ";" rule }
 *     rule    = [ op ":" ] action [ "@" when ]          op left out: all
 *     op      = read | write | flush | discard | zeroes | all | submit
 *     action  = an errno by name, lower case: eio enospc eagain eintr eopnotsupp enodata ecanceled
 *                              einval etimedout: the request is not carried out
 *             | short=BYTES    reads and writes: only the first BYTES are moved; zero; half;
 *                              -BYTES: all but the last BYTES (but always one)
 *             | delay=TIME     the completion is held back: 5, 5ms, 300us, 2s (default ms)
 *       and of submit:
 *             | max=N          takes at most N of a batch
 *             | none           takes nothing
 *             | depth=N        holds at most N requests
 *     when    = N              the Nth only, counting from 1 those that the rule is for
 *             | N+             from the Nth on
 *             | /N             every Nth
 *             | P%             at random (with the same seed always the same)
 *             | =OFFSET        those whose range has this byte of the disk
 *               (left out: always)
 *
 * "write:eio@3; read:short=512@10%; all:delay=5000; submit:max=2; flush:enospc@1"
 * Of several rules that fit a request the first errno or short counts, and all delays.
 */
#ifndef ENGINE_FAULT_H
#define ENGINE_FAULT_H

#include "block/engine.h"

/*
 * The table of an engine that is `inner` with faults.  A spec that does not parse is told by its
 * open.  NULL when out of memory.  Given back with fault_unwrap(), or never.
 */
const struct engine_ops *fault_wrap(const struct engine_ops *inner, const char *spec);
void fault_unwrap(const struct engine_ops *ops);

#endif
