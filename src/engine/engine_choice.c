/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine_choice.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	const struct engine_ops *ops;
	bool has_file;
} kinds[] = {
	[ENGINE_AUTO] = {"auto", NULL, true},
	[ENGINE_IO_URING] = {"io_uring", &engine_io_uring, true},
	[ENGINE_LINUX_AIO] = {"linux-aio", &engine_linux_aio, true},
	[ENGINE_THREADS] = {"threads", &engine_threads, true},
	[ENGINE_NULL] = {"null", &engine_null, false},
	[ENGINE_MEMORY] = {"memory", &engine_memory, false},
};

int engine_kind_parse(const char *text, enum engine_kind *out, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(text, kinds[i].name)) {
			*out = (enum engine_kind)i;
			return 0;
		}
	}
	return error_set(err, -EINVAL, "'%.100s' is no engine (%s)", text, ENGINE_KIND_VALUES);
}

const char *engine_kind_name(enum engine_kind kind)
{
	return kinds[kind].name;
}

bool engine_kind_has_file(enum engine_kind kind)
{
	return kinds[kind].has_file;
}

const struct engine_ops *engine_kind_candidate(enum engine_kind kind, unsigned attempt)
{
	/* Fastest first; threads serve every file. */
	static const enum engine_kind order[] = {ENGINE_IO_URING, ENGINE_LINUX_AIO, ENGINE_THREADS};

	if (kind != ENGINE_AUTO)
		return attempt ? NULL : kinds[kind].ops;
	return attempt < ARRAY_SIZE(order) ? kinds[order[attempt]].ops : NULL;
}
