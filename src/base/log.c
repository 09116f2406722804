/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See log.h and error.h.  The level is the only state.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static enum log_level log_level = LOG_INFO;

void log_set_level(enum log_level level)
{
	log_level = level;
}

/* What was quoted from outside neither breaks the line nor commands a terminal. */
static void make_printable(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
	}
}

static void write_line(const char *prefix, const char *fmt, va_list ap)
{
	char line[1024];
	size_t len;
	int n;

	n = snprintf(line, sizeof(line), "ringside: %s", prefix);
	len = (size_t)n;
	n = vsnprintf(line + len, sizeof(line) - len - 1, fmt, ap);
	if (n > 0)
		len = MIN(len + (size_t)n, sizeof(line) - 2);
	line[len] = '\0';
	make_printable(line);
	line[len++] = '\n';
	/* A full pipe or a closed stderr must not stop the daemon: the result does not matter. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

void log_write(enum log_level level, const char *fmt, ...)
{
	static const char *const prefix[] = {"error: ", "warning: ", "", "debug: "};
	va_list ap;

	if (level > log_level)
		return;
	va_start(ap, fmt);
	write_line(prefix[level], fmt, ap);
	va_end(ap);
}

bool log_ratelimit_pass(struct log_ratelimit *rl, uint64_t now_ns, uint64_t *dropped)
{
	if (now_ns - rl->window_start_ns >= 1000000000u) {
		rl->window_start_ns = now_ns;
		rl->passed = 0;
	}
	if (rl->passed >= rl->burst) {
		rl->dropped++;
		return false;
	}
	rl->passed++;
	if (dropped)
		*dropped = rl->dropped;
	rl->dropped = 0;
	return true;
}

void assert_failed(const char *cond, const char *file, int line)
{
	log_error("assertion failed: %s (%s:%d); this is a bug in ringside", cond, file, line);
	abort();
}

int error_set(struct error *e, int err, const char *fmt, ...)
{
	va_list ap;

	if (e) {
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof(e->text), fmt, ap);
		va_end(ap);
		make_printable(e->text);
	}
	return err;
}
