/* SPDX-License-Identifier: Apache-2.0 */
/* The module of file: targets, as a program that is linked with nothing but libringside has it. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ringside/driver.h"

static int finish(struct ringside_queue *q)
{
	struct ringside_completion done = {.result = -1};

	ringside_submit(q);
	return ringside_hybrid(q, &done, 1, 1, -1) == 1 ? done.result : -ENOMSG;
}

static void test_loaded(void **state)
{
	struct ringside_device *dev = NULL;
	struct ringside_error err = {""};
	struct ringside_queue *q;
	char *buf;

	if (ringside_open("file:?engine=memory&size=1M", NULL, &dev, &err) < 0)
		fail_msg("%s", err.text);
	q = ringside_queue(dev, 0);
	assert_int_equal(ringside_memory_alloc(dev, 8192, (void **)&buf, &err), 0);
	memset(buf, 7, 4096);
	assert_int_equal(ringside_write(q, 4096, buf, 4096, NULL), 0);
	assert_int_equal(finish(q), 0);
	assert_int_equal(ringside_read(q, 4096, buf + 4096, 4096, NULL), 0);
	assert_int_equal(finish(q), 0);
	assert_memory_equal(buf, buf + 4096, 4096);
	assert_int_equal(ringside_arm(q), 0);
	ringside_close(dev);
	/* What it says comes through. */
	assert_int_equal(ringside_open("file:?engine=memory", NULL, &dev, &err), -EINVAL);
	assert_non_null(strstr(err.text, "size="));
}

/* One name, and no second copy of the public functions for a program to fall over. */
static void test_exports(void **state)
{
	static const char *const inner[] = {"ringside_read", "ringside_poll", "loop_create",
					    "driver_queue_init", "engine_io_uring"};
	void *module = dlopen("libringside-inproc.so.0", RTLD_NOW | RTLD_LOCAL);

	if (!module)
		fail_msg("%s", dlerror());
	assert_non_null(dlsym(module, "driver_inproc"));
	for (unsigned i = 0; i < sizeof(inner) / sizeof(inner[0]); i++) {
		if (dlsym(module, inner[i]))
			fail_msg("%s is exported", inner[i]);
	}
	dlclose(module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loaded),
		cmocka_unit_test(test_exports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
