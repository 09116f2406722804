/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One clear line for a person: what, where, what to do.  Functions that can fail for a reason that
 * a number does not carry take a `struct error *` and return a negative errno; they set the text
 * only when they fail.  The caller owns the struct (usually on its stack).
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "base/compiler.h"

struct error {
	char text[512];
};

/* Sets the text (cut at the struct's size, control characters made '?') and returns err, so that
 * one can `return error_set()`.
 */
int error_set(struct error *e, int err, const char *fmt, ...) printf_like(3, 4);

#endif
