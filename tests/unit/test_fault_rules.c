/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "engine/fault_rules.h"

static void test_parse(void **state)
{
	static const char *const good[] = {
		"",
		" ; ",
		"eio",
		"write:eio@3",
		"read:short=512@10%",
		"all:delay=5000",
		"delay=50ms",
		"delay=300us@=4096",
		"delay=2s@7+",
		"submit:max=2",
		"submit:none@/3",
		"submit:depth=8",
		"flush:enospc@1",
		"read:short=-512;write:short=half;read:short=zero@=0",
		" write : eio @ 3 ; read : eagain @ 30 % ",
	};
	static const char *const bad[] = {
		"eoops",        "write:",         "scan:eio",
		"eio@",         "eio@0",          "eio@x",
		"eio@3x",       "eio@/",          "eio@-1",
		"delay=",       "delay=5m",       "short=",
		"short=0",      "submit:eio",     "write:max=2",
		"submit:max=0", "submit:max",     "eio:write",
		"eio;;oops",    "read:eio@5%%",   "eio@99999999999999999999",
		"eiofoo",       "read:write:eio",
	};
	struct fault_rules rules;
	struct error err;

	for (unsigned i = 0; i < ARRAY_SIZE(good); i++) {
		if (fault_rules_parse(good[i], &rules, &err) < 0)
			fail_msg("'%s': %s", good[i], err.text);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		if (fault_rules_parse(bad[i], &rules, &err) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
	}
}

static struct fault_rules rules;

static void parse(const char *spec)
{
	struct error err;

	assert_int_equal(fault_rules_parse(spec, &rules, &err), 0);
}

static struct fault_verdict judge(enum blk_op op, uint64_t offset, uint64_t len)
{
	struct blk_request req = {.op = op, .offset_bytes = offset, .len_bytes = len};

	return fault_rules_judge(&rules, &req);
}

static void test_when(void **state)
{
	unsigned hits = 0;

	parse("write:eio@3;read:enodata@2+;flush:enospc@/2;discard:eintr@=8191;zeroes:eagain@30%");
	for (unsigned i = 1; i <= 6; i++) {
		assert_int_equal(judge(BLK_WRITE, 0, 512).result, i == 3 ? -EIO : 0);
		assert_int_equal(judge(BLK_READ, 0, 512).result, i >= 2 ? -ENODATA : 0);
		assert_int_equal(judge(BLK_FLUSH, 0, 0).result, i % 2 ? 0 : -ENOSPC);
	}
	assert_int_equal(judge(BLK_DISCARD, 0, 8191).result, 0);
	assert_int_equal(judge(BLK_DISCARD, 0, 8192).result, -EINTR);
	assert_int_equal(judge(BLK_DISCARD, 8191, 1).result, -EINTR);
	assert_int_equal(judge(BLK_DISCARD, 8192, 512).result, 0);
	for (unsigned i = 0; i < 1000; i++)
		hits += judge(BLK_WRITE_ZEROES, 0, 512).result != 0;
	assert_in_range(hits, 250, 350);
}

static void test_verdict(void **state)
{
	struct fault_verdict v;

	parse("read:short=-512;read:delay=5;read:delay=300us;read:eio;write:short=half;all:eio@2");
	v = judge(BLK_READ, 0, 4096);
	assert_true(v.is_short);
	assert_int_equal(v.result, 4096 - 512);
	assert_int_equal(v.delay_ns, 5300000);
	v = judge(BLK_READ, 0, 512);
	assert_true(v.is_short);
	assert_int_equal(v.result, 1);
	v = judge(BLK_WRITE, 0, 512);
	assert_int_equal(v.result, 256);
	assert_int_equal(judge(BLK_FLUSH, 0, 0).result, 0);
}

static void test_take(void **state)
{
	parse("submit:max=3;submit:none@2;submit:depth=8");
	assert_int_equal(fault_rules_take(&rules, 10, 0), 3);
	assert_int_equal(fault_rules_take(&rules, 10, 0), 0);
	assert_int_equal(fault_rules_take(&rules, 10, 6), 2);
	assert_int_equal(fault_rules_take(&rules, 10, 8), 0);
	assert_int_equal(fault_rules_take(&rules, 10, 9), 0);
	assert_int_equal(fault_rules_take(&rules, 1, 0), 1);
	/* A rule of all operations is none of submission. */
	parse("all:eio");
	assert_int_equal(fault_rules_take(&rules, 10, 0), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_when),
		cmocka_unit_test(test_verdict),
		cmocka_unit_test(test_take),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
