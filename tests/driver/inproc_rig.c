/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/inproc_rig.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"

static const struct inproc_engine engines[] = {
	{"engine=null", false, false},
	{"engine=memory", false, true},
	{"engine=threads&direct=on", true, true},
	{"engine=threads&direct=off", true, true},
	{"engine=linux-aio&direct=on", true, true},
	{"engine=linux-aio&direct=off", true, true},
	{"engine=io_uring&direct=on", true, true},
	{"engine=io_uring&direct=off", true, true},
	{"engine=auto&direct=on", true, true},
	{"direct=off", true, true},
};

static bool missing; /* the place that was opened last */

void inproc_file(char *path, uint64_t len)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	snprintf(path, 128, "%.100s/rs-inproc-XXXXXX", folder ? folder : "/var/tmp");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	close(fd);
}

/* Not offered by this machine, or its folder is not on a disk. */
static bool is_missing(const char *why)
{
	return strstr(why, "not permitted") || strstr(why, "not available") ||
	       strstr(why, "does not have it") || strstr(why, "has no O_DIRECT");
}

void inproc_place_open(struct inproc_place *p, const struct inproc_engine *engine)
{
	struct ringside_device *dev = NULL;
	struct ringside_error err;

	log_set_level(LOG_WARN);
	*p = (struct inproc_place){.engine = engine};
	if (engine->has_file) {
		inproc_file(p->path, PLACE_BYTES);
		snprintf(p->target, sizeof(p->target), "file:%s?%s", p->path, engine->name);
	} else {
		snprintf(p->target, sizeof(p->target), "file:?%s&size=4M", engine->name);
	}
	missing = false;
	if (ringside_open(p->target, NULL, &dev, &err) < 0 && is_missing(err.text)) {
		p->missing = missing = true;
		print_message("SKIPPED: %s: %s\n", engine->name, err.text);
	}
	ringside_close(dev);
}

void inproc_place_close(struct inproc_place *p)
{
	if (p->engine->has_file)
		unlink(p->path);
}

void inproc_place_read(const struct inproc_place *p, uint64_t offset, void *buf, size_t len)
{
	int fd = open(p->path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, buf, len, (off_t)offset), len);
	close(fd);
}

/* ---- each test over each engine ---- */

struct combination {
	const struct inproc_engine *engine;
	const struct inproc_test *test;
	int (*setup)(void **state);
	int (*teardown)(void **state);
};

static int set_up(void **state)
{
	const struct combination *c = *state;
	void *engine = (void *)(uintptr_t)c->engine;

	return c->setup(&engine);
}

static int tear_down(void **state)
{
	const struct combination *c = *state;

	return c->teardown(NULL);
}

static void run(void **state)
{
	const struct combination *c = *state;

	if (missing)
		skip();
	c->test->run(NULL);
}

int inproc_run(const struct inproc_test *tests, unsigned n, int (*setup)(void **state),
	       int (*teardown)(void **state))
{
	unsigned total = n * ARRAY_SIZE(engines);
	struct CMUnitTest *list = calloc(total, sizeof(*list));
	struct combination *all = calloc(total, sizeof(*all));
	char(*names)[96] = calloc(total, sizeof(*names));
	int ret;

	for (unsigned i = 0; i < total; i++) {
		const struct inproc_engine *e = &engines[i / n];

		all[i] = (struct combination){e, &tests[i % n], setup, teardown};
		snprintf(names[i], sizeof(names[i]), "%s: %s", e->name, tests[i % n].name);
		list[i] = (struct CMUnitTest){names[i], run, set_up, tear_down, &all[i]};
	}
	ret = _cmocka_run_group_tests("inproc", list, total, NULL, NULL);
	free(names);
	free(all);
	free(list);
	return ret;
}
