/* SPDX-License-Identifier: Apache-2.0 */
/* Targets as text: what they may be, what each byte becomes, and every way to get one wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "driver/uri.h"

static void test_parts(void **state)
{
	static const struct {
		const char *text, *scheme, *path;
	} good[] = {
		{"vhost-user-blk:/run/vm.sock", "vhost-user-blk", "/run/vm.sock"},
		{"file:", "file", ""},
		{"file:a", "file", "a"},
		{"file:?size=1", "file", ""},
		{"file:/a:b:c", "file", "/a:b:c"},
		{"file:/a&b=c", "file", "/a&b=c"},
		{"file:/a?", "file", "/a"},
		{"file:/a?&&", "file", "/a"},
		{"file:/a%3fb%26c%3Dd%25e%20f", "file", "/a?b&c=d%e f"},
		{"file:%ff%01%7F", "file", "\xff\x01\x7f"},
		{"file:%0a", "file", "\n"},
		{"file:%2500", "file", "%00"},
		{"x y%41:z", "x y%41", "z"}, /* a scheme is taken as it is, and then not known */
	};
	struct error err;
	struct uri u;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(uri_parse(good[i].text, &u, &err), 0);
		assert_string_equal(u.scheme, good[i].scheme);
		assert_string_equal(u.path, good[i].path);
		uri_fini(&u);
	}
}

static void test_options(void **state)
{
	struct error err;
	struct uri u;

	assert_int_equal(
		uri_parse("file:/d?engine=io_uring&&direct=on&e=&a%3db=c%26d&q=a=b?c&", &u, &err),
		0);
	assert_string_equal(u.path, "/d");
	assert_int_equal(u.option_count, 5);
	assert_string_equal(uri_get(&u, "engine"), "io_uring");
	assert_string_equal(uri_get(&u, "direct"), "on");
	assert_string_equal(uri_get(&u, "e"), "");
	assert_string_equal(uri_get(&u, "a=b"), "c&d");
	assert_string_equal(uri_get(&u, "q"), "a=b?c");
	assert_null(uri_get(&u, "eng"));
	assert_null(uri_get(&u, "engines"));
	assert_null(uri_get(&u, "Engine"));
	assert_null(uri_get(&u, ""));
	uri_fini(&u);
	/* What was parsed is gone, and finishing twice is nothing. */
	assert_null(uri_get(&u, "engine"));
	uri_fini(&u);
}

static void test_most_options(void **state)
{
	char text[16 + (URI_MAX_OPTIONS + 1) * 8];
	struct error err;
	struct uri u;
	int n = snprintf(text, sizeof(text), "file:/d?");

	for (unsigned i = 0; i < URI_MAX_OPTIONS; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%sk%u=%u", i ? "&" : "", i, i);
	assert_int_equal(uri_parse(text, &u, &err), 0);
	assert_int_equal(u.option_count, URI_MAX_OPTIONS);
	assert_string_equal(uri_get(&u, "k15"), "15");
	uri_fini(&u);
	snprintf(text + n, sizeof(text) - (size_t)n, "&l=1");
	assert_int_equal(uri_parse(text, &u, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 16"));
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "SCHEME:PATH"},
		{":", "SCHEME:PATH"},
		{":/run/vm.sock", "SCHEME:PATH"},
		{"/run/vm.sock", "'/run/vm.sock' is not SCHEME:PATH"},
		{"file", "SCHEME:PATH"},
		{"file:/a%", "hexadecimal"},
		{"file:/a%4", "hexadecimal"},
		{"file:/a%4g", "hexadecimal"},
		{"file:/a%g4", "hexadecimal"},
		{"file:/a% 4", "hexadecimal"},
		{"file:/a%-1", "hexadecimal"},
		{"file:/a%%41", "hexadecimal"},
		{"file:/a%00", "not 00"},
		{"file:/a%00b", "not 00"},
		{"file:/a?b", "'b' is not KEY=VALUE"},
		{"file:/a?=b", "'=b' is not KEY=VALUE"},
		{"file:/a?c=d&b", "'b' is not KEY=VALUE"},
		{"file:/a?b=%", "hexadecimal"},
		{"file:/a?b=%00", "not 00"},
		{"file:/a?%zz=1", "hexadecimal"},
		{"file:/a?b=1&b=2", "'b' is given twice"},
		{"file:/a?b=1&%62=1", "'b' is given twice"},
	};
	struct error err;
	struct uri u;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(&err, 0, sizeof(err));
		assert_int_equal(uri_parse(bad[i].text, &u, &err), -EINVAL);
		if (!strstr(err.text, bad[i].says))
			fail_msg("%s: %s", bad[i].text, err.text);
		uri_fini(&u); /* nothing is left, and this is allowed */
	}
}

static void test_known_keys(void **state)
{
	static const char *const none[] = {NULL}, *const some[] = {"engine", "direct", NULL};
	struct error err;
	struct uri u;

	assert_int_equal(uri_parse("file:/a", &u, &err), 0);
	assert_int_equal(uri_check_keys(&u, none, &err), 0);
	uri_fini(&u);
	assert_int_equal(uri_parse("file:/a?direct=on", &u, &err), 0);
	assert_int_equal(uri_check_keys(&u, some, &err), 0);
	assert_int_equal(uri_check_keys(&u, none, &err), -EINVAL);
	assert_string_equal(err.text, "file: there is no option 'direct'");
	uri_fini(&u);
	assert_int_equal(uri_parse("file:/a?engine=x&directs=on", &u, &err), 0);
	assert_int_equal(uri_check_keys(&u, some, &err), -EINVAL);
	assert_string_equal(err.text, "file: there is no option 'directs'");
	uri_fini(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),        cmocka_unit_test(test_options),
		cmocka_unit_test(test_most_options), cmocka_unit_test(test_errors),
		cmocka_unit_test(test_known_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
