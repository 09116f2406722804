/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines to stderr, one write(2) each, so that threads do not mix.  "LEVEL: text".
 * Any thread, but never on the data path: device models and rings do not log per request.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/compiler.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Lines above this level are dropped.  Default LOG_INFO.  Set before threads start. */
void log_set_level(enum log_level level);

void log_write(enum log_level level, const char *fmt, ...) printf_like(2, 3);

#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)

/*
 * At most `burst` lines a second from one place that a guest can reach; the rest are counted and
 * the count is told with the next line that passes.  Zero-initialise with a burst.  One thread.
 */
struct log_ratelimit {
	unsigned burst;
	unsigned passed;
	uint64_t dropped;
	uint64_t window_start_ns;
};

/* True if a line may be written now.  *dropped (may be NULL) gets how many were not. */
bool log_ratelimit_pass(struct log_ratelimit *rl, uint64_t now_ns, uint64_t *dropped);

#endif
