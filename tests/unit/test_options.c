/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the command line: values, key=value lists, JSON, what goes with what (B60). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/options.h"
#include "daemon/values.h"

static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		int ret;
		uint64_t bytes;
	} table[] = {
		{"0", 0, 0},
		{"1", 0, 1},
		{"007", 0, 7},
		{"1k", 0, 1024},
		{"1K", 0, 1024},
		{"3M", 0, 3 << 20},
		{"2g", 0, 2ull << 30},
		{"16T", 0, 16ull << 40},
		{"9223372036854775807", 0, INT64_MAX},
		{"8388607T", 0, 8388607ull << 40},
		{"9223372036854775808", -EINVAL, 0},
		{"8388608T", -EINVAL, 0},
		{"16777216T", -EINVAL, 0},
		{"18446744073709551616", -EINVAL, 0},
		{"18446744073709551617", -EINVAL, 0},
		{"99999999999999999999999999", -EINVAL, 0},
		{"18014398509481985K", -EINVAL, 0},
		{"1KiB", -EINVAL, 0},
		{"1KB", -EINVAL, 0},
		{"1.5G", -EINVAL, 0},
		{"16E", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
		{"10 M", -EINVAL, 0},
		{" 10", -EINVAL, 0},
		{"10 ", -EINVAL, 0},
		{"10\n", -EINVAL, 0},
		{"M", -EINVAL, 0},
		{"", -EINVAL, 0},
		{"\xd9\xa1", -EINVAL, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		uint64_t bytes = 42;
		struct error err = {""};

		if (value_size(table[i].text, &bytes, &err) != table[i].ret)
			fail_msg("size '%s'", table[i].text);
		assert_int_equal(bytes, table[i].ret ? 42 : table[i].bytes);
		assert_int_equal(*err.text != '\0', table[i].ret != 0);
	}
}

static void test_numbers(void **state)
{
	static const char *const bad[] = {"",   "0",  "11", "-1",  "+1",  "1 ",
					  " 1", "1K", "1.", "0x1", "one", "18446744073709551617"};
	uint64_t v = 0;
	struct error err;
	bool on;

	assert_int_equal(value_number("10", 1, 10, &v, &err), 0);
	assert_int_equal(v, 10);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(value_number(bad[i], 1, 10, &v, &err), -EINVAL);
	assert_int_equal(v, 10);
	assert_int_equal(value_number("18446744073709551615", 0, UINT64_MAX, &v, &err), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(value_switch("on", &on, &err), 0);
	assert_true(on);
	assert_int_equal(value_switch("off", &on, &err), 0);
	assert_false(on);
	assert_int_equal(value_switch("yes", &on, &err), -EINVAL);
	assert_int_equal(value_switch("On", &on, &err), -EINVAL);
	assert_int_equal(value_switch("", &on, &err), -EINVAL);
}

/* Parses one --disk; 0 or -errno.  The caller finishes o. */
static int parse(struct disk_options *o, const char *text, struct error *err)
{
	int ret;

	err->text[0] = '\0';
	disk_options_init(o, 1);
	ret = disk_options_parse(o, text, err);
	return ret ? ret : disk_options_check(o, NULL, 0, err);
}

static void assert_path(const char *text, const char *path)
{
	struct disk_options o;
	struct error err;

	if (parse(&o, text, &err) < 0)
		fail_msg("'%s': %s", text, err.text);
	assert_string_equal(o.path, path);
	disk_options_fini(&o);
}

static void assert_refused(const char *text, const char *names)
{
	struct disk_options o;
	struct error err;

	if (parse(&o, text, &err) >= 0)
		fail_msg("'%s' was taken", text);
	if (!strstr(err.text, names))
		fail_msg("'%s': '%s' does not name '%s'", text, err.text, names);
	disk_options_fini(&o);
}

static void test_paths(void **state)
{
	assert_path("path=vm.img,socket=s", "vm.img");
	assert_path("socket=s,path=a,,b.img", "a,b.img");
	assert_path("path=,,,socket=s", ",");
	assert_path("path=a,,,socket=s", "a,");
	assert_path("path=,,,,b,socket=s", ",,b");
	assert_path("path=a=b,socket=s", "a=b");
	assert_path("path==,socket=s", "=");
	assert_path("path=nbd:x,socket=s", "nbd:x");
	assert_path("path=a\"b,socket=s", "a\"b");
	assert_path("path='x',socket=s", "'x'");
	assert_path("path= lead,socket=s", " lead");
	assert_path("path=trail ,socket=s", "trail ");
	assert_path("path=a\\b,socket=s", "a\\b");
	assert_path("path=[x]@{y},socket=s", "[x]@{y}");
	assert_path("path=\xc3\xa4\xe2\x82\xac,socket=s", "\xc3\xa4\xe2\x82\xac");
	assert_path("path=\xff\xfe,socket=s", "\xff\xfe");
	assert_path("{\"path\": \"a,b=c\", \"socket\": \"s\"}", "a,b=c");
	assert_path("  {\"path\": \" \\\"x\\\" \", \"socket\": \"s\"}", " \"x\" ");
	assert_path("{\"path\": \"\\u00e4\", \"socket\": \"s\"}", "\xc3\xa4");
	assert_refused("path=,socket=s", "'path': is empty");
	assert_refused("{\"path\": \"\", \"socket\": \"s\"}", "'path': is empty");
	assert_refused("{\"path\": \"a\\u0000b\", \"socket\": \"s\"}", "");
}

/* PATH_MAX counts the zero byte. */
static void test_long_path(void **state)
{
	char text[4200], path[4096];

	memset(path, 'x', sizeof(path));
	path[4095] = '\0';
	snprintf(text, sizeof(text), "path=%s,socket=s", path);
	assert_path(text, path);
	snprintf(text, sizeof(text), "path=%sx,socket=s", path);
	assert_refused(text, "'path'");
}

static void test_defaults_and_all_keys(void **state)
{
	struct disk_options o;
	struct error err;

	assert_int_equal(parse(&o, "path=p,socket=s", &err), 0);
	assert_string_equal(o.id, "disk1");
	assert_string_equal(o.serial, "disk1");
	assert_int_equal(o.engine, ENGINE_AUTO);
	assert_int_equal(o.queues, 128);
	assert_int_equal(o.block_bytes, 512);
	assert_true(o.direct && o.discard && o.lock);
	assert_true(!o.readonly && !o.fixed_buffers && !o.share);
	disk_options_fini(&o);

	assert_int_equal(
		parse(&o,
		      "path=p,socket=s,id=a.B-1_,engine=io_uring,direct=off,readonly=on,"
		      "queues=1024,block-size=4096,serial=12345678901234567890,discard=off,"
		      "poll=50us,fixed-buffers=on,lock=off,share=off",
		      &err),
		0);
	assert_string_equal(o.id, "a.B-1_");
	assert_string_equal(o.serial, "12345678901234567890");
	assert_int_equal(o.engine, ENGINE_IO_URING);
	assert_int_equal(o.queues, 1024);
	assert_int_equal(o.block_bytes, 4096);
	assert_true(!o.direct && !o.discard && !o.lock);
	assert_true(o.readonly && o.fixed_buffers);
	assert_int_equal(o.poll.mode, POLL_FIXED);
	assert_int_equal(o.poll.fixed_ns, 50000);
	disk_options_fini(&o);

	assert_int_equal(parse(&o, "engine=memory,size=16M,socket=s,readonly", &err), 0);
	assert_int_equal(o.size_bytes, 16 << 20);
	assert_true(o.readonly);
	disk_options_fini(&o);
}

static void test_engine_names(void **state)
{
	static const char *const bad[] = {"",          "AUTO",   "uring", "aio",    "io-uring",
					  "linux_aio", "thread", "null ", "memory2"};
	static const char *const good[] = {"auto", "io_uring", "linux-aio", "threads"};
	char text[80];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		snprintf(text, sizeof(text), "path=p,socket=s,engine=%s", good[i]);
		assert_path(text, "p");
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(text, sizeof(text), "path=p,socket=s,engine=%s", bad[i]);
		assert_refused(text, "'engine'");
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		const char *names;
	} table[] = {
		{"", "'path' is missing"},
		{"path=p", "'socket' is missing"},
		{"socket=s", "'path' is missing"},
		{"path=p,socket=s,foo=1", "unknown key 'foo'"},
		{"path=p,socket=s,Path=q", "unknown key 'Path'"},
		{"path=p, socket=s", "unknown key ' socket'"},
		{"path=a,b.img,socket=s", "unknown key 'b.img'"},
		{"path=p,socket=s,path=q", "'path' is given twice"},
		{"path=p,socket=s,lock=on,lock=on", "'lock' is given twice"},
		{"path,socket=s", "'path' needs a value"},
		{"path=p,socket=s,queues", "'queues' needs a value"},
		{"path=p,socket=s,", "empty key"},
		{",path=p,socket=s", "empty key"},
		{"path=p,socket=s,=x", "empty key"},
		{"=", "empty key"},
		{",", "empty key"},
		{"path=p,socket=", "'socket': is empty"},
		{"path=p,socket=s,queues=0", "'queues'"},
		{"path=p,socket=s,queues=1025", "'queues'"},
		{"path=p,socket=s,queues=-1", "'queues'"},
		{"path=p,socket=s,queues=", "'queues'"},
		{"path=p,socket=s,block-size=1024", "'block-size'"},
		{"path=p,socket=s,block-size=0512", "'block-size'"},
		{"path=p,socket=s,direct=yes", "'direct'"},
		{"path=p,socket=s,readonly=1", "'readonly'"},
		{"path=p,socket=s,serial=123456789012345678901", "'serial'"},
		{"path=p,socket=s,serial=", "'serial'"},
		{"path=p,socket=s,serial=a\tb", "'serial'"},
		{"path=p,socket=s,serial=\xc3\xa4", "'serial'"},
		{"path=p,socket=s,id=", "'id'"},
		{"path=p,socket=s,id=a b", "'id'"},
		{"path=p,socket=s,id=a/b", "'id'"},
		{"path=p,socket=s,poll=sometimes", "'poll'"},
		{"path=p,socket=s,size=1M", "'size'"},
		{"engine=null,socket=s", "'size' is missing"},
		{"engine=null,size=1M,socket=s,path=p", "'path'"},
		{"engine=memory,size=1M,socket=s,direct=on", "'direct'"},
		{"engine=null,size=16E,socket=s", "'size'"},
		{"path=p,socket=s,engine=threads,fixed-buffers=on", "fixed-buffers"},
		{"socket=s,share=on", "'id' is missing"},
		{"socket=s,share=on,id=x", "id=x"},
		{"{\"path\": \"p\", \"socket\": \"s\"", "JSON"},
		{"{\"path\": \"p\", \"socket\": \"s\"} x", "JSON"},
		{"{\"path\": \"p\", \"path\": \"q\", \"socket\": \"s\"}", "JSON"},
		{"{path: \"p\"}", "JSON"},
		{"{}", "'path' is missing"},
		{"{\"path\": 1, \"socket\": \"s\"}", "'path' must be a string"},
		{"{\"path\": null, \"socket\": \"s\"}", "'path' must be a string"},
		{"{\"path\": [\"p\"], \"socket\": \"s\"}", "'path' must be a string"},
		{"{\"path\": {\"a\": \"p\"}, \"socket\": \"s\"}", "'path' must be a string"},
		{"{\"path\": true, \"socket\": \"s\"}", "'path' must be a string"},
		{"{\"path\": \"p\", \"socket\": \"s\", \"queues\": 1.5}", "'queues' must be"},
		{"{\"path\": \"p\", \"socket\": \"s\", \"queues\": -4}", "'queues'"},
		{"{\"path\": \"p\", \"socket\": \"s\", \"queues\": true}", "'queues' must be"},
		{"{\"path\": \"p\", \"socket\": \"s\", \"queues\": 99999999999999999999}", "JSON"},
		{"{\"path\": \"p\", \"socket\": \"s\", \"lock\": 1}", "'lock' must be"},
		{"{\"path\": \"p\", \"socket\": \"s\", \"lock\": \"yes\"}", "'lock'"},
		{"{\"path\": \"p\", \"socket\": \"s\", \"foo\": 1}", "unknown key 'foo'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		assert_refused(table[i].text, table[i].names);
}

static void test_json(void **state)
{
	struct disk_options o;
	struct error err;

	assert_int_equal(parse(&o,
			       "{\"engine\": \"null\", \"size\": 1048576, \"socket\": \"s\","
			       " \"queues\": 4, \"readonly\": true, \"discard\": false,"
			       " \"block-size\": 4096, \"lock\": \"off\"}",
			       &err),
			 0);
	assert_int_equal(o.size_bytes, 1 << 20);
	assert_int_equal(o.queues, 4);
	assert_int_equal(o.block_bytes, 4096);
	assert_true(o.readonly && !o.discard && !o.lock);
	disk_options_fini(&o);
	assert_int_equal(parse(&o, "{\"engine\":\"null\",\"size\":\"1G\",\"socket\":\"s\"}", &err),
			 0);
	assert_int_equal(o.size_bytes, 1 << 30);
	disk_options_fini(&o);
}

/* A whole command line; `words` ends with NULL. */
static int parse_line(struct serve_options *o, struct error *err, char **words)
{
	int argc = 0;

	err->text[0] = '\0';
	while (words[argc])
		argc++;
	serve_options_init(o);
	return serve_options_parse(o, argc, words, err);
}

#define LINE(o, err, ...)                                                                          \
	parse_line(o, err, (char **)(const char *[]){"serve", ##__VA_ARGS__, NULL})

static void test_command_line(void **state)
{
	struct serve_options o;
	struct error err;

	assert_int_equal(LINE(&o, &err, "--disk", "path=a,socket=s1", "--disk=path=b,socket=s2",
			      "--iothreads=4", "--poll", "off"),
			 0);
	assert_int_equal(o.disk_count, 2);
	assert_int_equal(o.iothreads, 4);
	assert_int_equal(o.poll.mode, POLL_OFF);
	assert_string_equal(o.disks[1].path, "b");
	assert_string_equal(o.disks[1].id, "disk2");
	serve_options_fini(&o);
	assert_int_equal(LINE(&o, &err, "--disk", "nonsense", "--help"), 1);
	serve_options_fini(&o);
}

static void assert_line_refused(char **words, const char *names)
{
	struct serve_options o;
	struct error err;

	if (parse_line(&o, &err, words) >= 0)
		fail_msg("a command line was taken that '%s'", names);
	if (!strstr(err.text, names))
		fail_msg("'%s' does not name '%s'", err.text, names);
	serve_options_fini(&o);
}

#define REFUSED(names, ...)                                                                        \
	assert_line_refused((char **)(const char *[]){"serve", ##__VA_ARGS__, NULL}, names)

static void test_command_line_refused(void **state)
{
	REFUSED("no disk");
	REFUSED("--disk needs a value", "--disk");
	REFUSED("unknown option 'x'", "x");
	REFUSED("unknown option '--diskk'", "--diskk", "path=a,socket=s");
	REFUSED("unknown option '-d'", "-d");
	REFUSED("--iothreads is given twice", "--iothreads", "1", "--iothreads", "1");
	REFUSED("--iothreads", "--iothreads", "0");
	REFUSED("--iothreads", "--iothreads", "257");
	REFUSED("--iothreads", "--iothreads", "two");
	REFUSED("--poll", "--poll", "never");
	REFUSED("number 2: unknown key 'x'", "--disk", "path=a,socket=s", "--disk", "x=1");
	REFUSED("used by two disks", "--disk", "path=a,socket=s", "--disk", "path=b,socket=s");
	REFUSED("id 'a' is used twice", "--disk", "path=a,socket=s,id=a", "--disk",
		"path=b,socket=t,id=a");
	REFUSED("id 'disk2' is used twice", "--disk", "path=a,socket=s,id=disk2", "--disk",
		"path=b,socket=t");
	REFUSED("id=b", "--disk", "socket=s,id=b,share=on", "--disk", "path=b,socket=t,id=b");
	REFUSED("'path'", "--disk", "path=a,socket=s,id=a", "--disk",
		"path=a,socket=t,id=a,share=on");
	REFUSED("'lock'", "--disk", "path=a,socket=s,id=a", "--disk",
		"lock=on,socket=t,id=a,share=on");
	REFUSED("readonly=off", "--disk", "path=a,socket=s,id=a,readonly=on", "--disk",
		"readonly=off,socket=t,id=a,share=on");
}

static void test_share(void **state)
{
	struct serve_options o;
	struct error err;

	if (LINE(&o, &err, "--disk", "path=a,socket=s,id=a,serial=x,readonly=on", "--disk",
		 "id=a,share=on,socket=t,queues=2", "--disk",
		 "id=a,share=on,socket=u,serial=y") < 0)
		fail_msg("%s", err.text);
	assert_int_equal(o.disk_count, 3);
	assert_true(o.disks[1].readonly);
	assert_string_equal(o.disks[1].serial, "x");
	assert_int_equal(o.disks[1].queues, 2);
	assert_string_equal(o.disks[2].serial, "y");
	serve_options_fini(&o);
}

static int parse_blk(struct serve_options *o, struct error *err, char **words)
{
	int argc = 0;

	while (words[argc])
		argc++;
	serve_options_init(o);
	return vhost_user_blk_options_parse(o, argc, words, err);
}

#define BLK(o, err, ...)                                                                           \
	parse_blk(o, err, (char **)(const char *[]){"vhost-user-blk", ##__VA_ARGS__, NULL})

static void test_vhost_user_blk(void **state)
{
	struct serve_options o;
	struct error err;

	assert_int_equal(BLK(&o, &err, "--socket-path=s", "--blk-file=a,b", "--read-only"), 0);
	assert_int_equal(o.disk_count, 1);
	assert_string_equal(o.disks[0].path, "a,b");
	assert_string_equal(o.disks[0].socket, "s");
	assert_true(o.disks[0].readonly);
	serve_options_fini(&o);
	assert_int_equal(BLK(&o, &err, "--nonsense", "--print-capabilities", "x"), 2);
	serve_options_fini(&o);
	assert_true(BLK(&o, &err, "--socket-path=s") < 0);
	serve_options_fini(&o);
	assert_true(BLK(&o, &err, "--blk-file=f") < 0);
	serve_options_fini(&o);
	assert_true(BLK(&o, &err, "--blk-file=f", "--fd=99") < 0);
	assert_non_null(strstr(err.text, "99"));
	serve_options_fini(&o);
	assert_true(BLK(&o, &err, "--blk-file=f", "--socket-path=s", "--socket-path=t") < 0);
	serve_options_fini(&o);
	assert_true(BLK(&o, &err, "--blk-file=f", "--socket-path=s", "--read-only=on") < 0);
	serve_options_fini(&o);
}

/* Every prefix and every single-byte change of a good list is taken or refused, never worse. */
static void test_mutations(void **state)
{
	static const char *const seeds[] = {
		"path=a,,b,socket=s,queues=4,size=1M,readonly,poll=50us,engine=null",
		"{\"path\": \"p\", \"queues\": 4, \"readonly\": true, \"size\": \"1K\"}"};
	static const char changes[] = ",={}\"\\ \x01\xff"
				      "0K";

	for (size_t s = 0; s < ARRAY_SIZE(seeds); s++) {
		size_t len = strlen(seeds[s]);

		for (size_t at = 0; at < len; at++) {
			for (size_t c = 0; c < sizeof(changes); c++) {
				char *text = strdup(seeds[s]);
				struct disk_options o;
				struct error err = {""};

				text[at] = changes[c]; /* the last change is an early end */
				assert_true(parse(&o, text, &err) == 0 || *err.text);
				disk_options_fini(&o);
				free(text);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_long_path),
		cmocka_unit_test(test_defaults_and_all_keys),
		cmocka_unit_test(test_engine_names),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_command_line),
		cmocka_unit_test(test_command_line_refused),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_vhost_user_blk),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
