/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that a person writes: numbers, sizes, switches.  Strict: nothing before, nothing behind,
 * no sign, decimal only; what does not fit is refused, never cut.  Pure.
 *
 * The text of an error is a clause for behind "…: ", such as "'1.5G' is not a size (…)".
 */
#ifndef DAEMON_VALUES_H
#define DAEMON_VALUES_H

#include <stdint.h>

#include "base/error.h"

/* A decimal number in [min, max]. */
int value_number(const char *text, uint64_t min, uint64_t max, uint64_t *out,
		 struct error *err) must_check;

/* Bytes, or with a suffix K, M, G or T (either case) in powers of 1024; at most INT64_MAX. */
int value_size(const char *text, uint64_t *out, struct error *err) must_check;

/* "on" or "off". */
int value_switch(const char *text, bool *out, struct error *err) must_check;

/*
 * Takes the next "key=value" off a comma-separated list: *cursor moves on, *key and *value are the
 * caller's (free); *value is NULL when there is no '='.  A comma in a value is doubled.
 * 1 = taken, 0 = the list is at its end, or a negative errno with *err.
 */
int keyval_next(const char **cursor, char **key, char **value, struct error *err) must_check;

#endif
