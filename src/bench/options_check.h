/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What options demand of each other, and defaults that depend on others.
 */
#ifndef BENCH_OPTIONS_CHECK_H
#define BENCH_OPTIONS_CHECK_H

#include "bench/options.h"

int bench_options_check(struct bench_options *o, struct error *err) must_check;

#endif
