/* SPDX-License-Identifier: Apache-2.0 */
/* The report's page as a file: what is on it, what is not, and what happens when it cannot be
 * written.  How it looks is for tests/report. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/html.h"
#include "bench/report.h"
#include "bench/report_points.h"

#define POINTS_MAX 64

struct fixture {
	char dir[64], path[128], err[256];
	struct bench_point points[POINTS_MAX];
	struct histogram latency;
	struct bench_floor floor;
	struct bench_report report;
	char *page;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/rs-report-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/out.html", f->dir);
	for (unsigned i = 0; i < 20000; i++)
		histogram_add(&f->latency, 1000 + i);
	f->floor = (struct bench_floor){100, 10000, 80, {2, 3}};
	f->report = (struct bench_report){
		.points = f->points, .command_line = "ringside bench", .machine = "a machine"};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	/* No temporary file was left. */
	assert_int_equal(rmdir(f->dir), 0);
	free(f->page);
	free(f);
	return 0;
}

static struct bench_point *add(struct fixture *f, const char *target, unsigned depth,
			       unsigned block)
{
	struct bench_point *p = &f->points[f->report.count++];

	*p = (struct bench_point){
		.target = target,
		.params = {"randread", "poll", block, depth, 1, 0},
		.figures = {.iops = 1e6,
			    .bytes_per_s = 4.096e9,
			    .mean_ns = 1100,
			    .p50_ns = 1000,
			    .p99_ns = 2000,
			    .p999_ns = 3000,
			    .max_ns = 4000,
			    .kicks_per_request = 0.25,
			    .calls_per_request = 0.5,
			    .client_cpu_ns = 900,
			    .server_cpu_ns = 700,
			    .server_known = true},
		.repeats = 3,
		.latency = &f->latency,
	};
	return p;
}

static char *read_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *text;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	assert_non_null(text);
	assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
	close(fd);
	return text;
}

static void write_page(struct fixture *f)
{
	f->err[0] = '\0';
	if (bench_report_write(f->path, &f->report, f->err, sizeof(f->err)))
		fail_msg("%s", f->err);
	free(f->page);
	f->page = read_file(f->path);
	/* It is whole, needs nothing from elsewhere, and each number is one. */
	assert_non_null(strstr(f->page, "</body>\n</html>\n"));
	assert_null(strstr(f->page, "http:"));
	assert_null(strstr(f->page, "https:"));
	assert_null(strstr(f->page, "src="));
	assert_null(strstr(f->page, "nan"));
	assert_null(strstr(f->page, "\"inf"));
}

static unsigned occurrences(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

#define PLOTS "<svg class=\"plot\""

static void test_no_point(void **state)
{
	struct fixture *f = *state;

	f->report.floor = &f->floor;
	write_page(f);
	assert_non_null(strstr(f->page, "Nothing was measured"));
	assert_int_equal(occurrences(f->page, PLOTS), 0);
	assert_non_null(strstr(f->page, "empty system call"));
}

static void test_one_point(void **state)
{
	struct fixture *f = *state;

	add(f, "vhost-user-blk:/run/a.sock", 1, 4096);
	write_page(f);
	assert_int_equal(occurrences(f->page, PLOTS), 4);
	assert_non_null(strstr(f->page, "<h2>Latency</h2>"));
	assert_non_null(strstr(f->page, "<h2>Throughput</h2>"));
	assert_non_null(strstr(f->page, "<h2>Notifications a request</h2>"));
	assert_non_null(strstr(f->page, "<h2>CPU a request</h2>"));
	assert_non_null(strstr(f->page, "0.25 + 0.5<"));
	assert_non_null(strstr(f->page, "900 ns + 700 ns<"));
	assert_null(strstr(f->page, "<h2>Targets</h2>"));
	assert_null(strstr(f->page, "What this machine can do"));
}

static void test_every_plot(void **state)
{
	struct fixture *f = *state;

	for (unsigned depth = 1; depth <= 4; depth *= 2) {
		for (unsigned block = 512; block <= 2048; block *= 2) {
			add(f, "vhost-user-blk:/run/a.sock", depth, block);
			add(f, "vhost-user-blk:/run/b.sock", depth, block)->figures.server_known =
				false;
		}
	}
	f->report.floor = &f->floor;
	write_page(f);
	assert_non_null(strstr(f->page, "<h2>Latency</h2>"));
	assert_non_null(strstr(f->page, "<h2>Throughput over queue depth</h2>"));
	assert_non_null(strstr(f->page, "<h2>Throughput over block size</h2>"));
	assert_non_null(strstr(f->page, "<h2>Notifications a request</h2>"));
	assert_non_null(strstr(f->page, "<h2>CPU a request</h2>"));
	assert_non_null(strstr(f->page, "<h2>Targets</h2>"));
	assert_non_null(strstr(f->page, "900 ns + ?<"));
	/* Rows are short: what all targets begin with is left out. */
	assert_non_null(strstr(f->page, ">A …a.sock, 512 B, depth 1<"));
	/* 18 lines: two combinations of two targets in a plot. */
	assert_int_equal(occurrences(f->page, "<h2>Latency</h2>"), 5);
	/* One for each block size, or depth, and target. */
	assert_int_equal(occurrences(f->page, "<h2>Throughput over queue depth</h2>"), 1);
	/* Each p50 as a multiple of a cache-line round trip. */
	assert_int_equal(occurrences(f->page, "<td>1 µs</td><td>× 10</td>"), 18);
}

static void test_escapes(void **state)
{
	struct fixture *f = *state;

	add(f, "x:</svg><script>alert(1)</script>\"'&\x01", 1, 4096);
	add(f, "y:' onload='alert(2)", 1, 4096);
	f->report.command_line = "ringside bench '<img>'";
	f->report.machine = "</p><b>m";
	write_page(f);
	assert_int_equal(occurrences(f->page, "<script>"), 1);
	assert_null(strstr(f->page, "' onload"));
	assert_null(strstr(f->page, "<img>"));
	assert_null(strstr(f->page, "<b>m"));
	assert_null(strchr(f->page, '\x01'));
	assert_non_null(strstr(f->page, "x:&lt;/svg&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;"
					"&#39;&amp;\xef\xbf\xbd"));
}

static void test_what_is_not_a_number(void **state)
{
	struct fixture *f = *state;
	struct bench_figures bad = {.iops = NAN, .p50_ns = INFINITY, .kicks_per_request = -NAN};

	add(f, "a", 1, 4096)->figures = bad;
	add(f, "a", 2, 4096)->figures = bad;
	add(f, "a", 4, 8192)->latency = NULL;
	f->points[0].latency = NULL;
	f->report.floor = &(struct bench_floor){0};
	write_page(f);
}

static void test_a_target_twice(void **state)
{
	struct fixture *f = *state;
	struct report_points p;

	add(f, "a", 1, 4096);
	add(f, "a", 1, 4096);
	add(f, "a", 2, 4096);
	add(f, "a", 2, 4096);
	assert_int_equal(report_points_init(&p, f->points, f->report.count), 0);
	assert_int_equal(p.targets, 2);
	report_points_sort(&p, REPORT_DEPTH);
	assert_int_equal(report_points_line(p.items, 4, REPORT_DEPTH), 2);
	assert_int_equal(report_points_plot(p.items, 4, REPORT_DEPTH, 8), 4);
	assert_int_equal(report_points_varying(p.items, 4),
			 1u << REPORT_TARGET | 1u << REPORT_DEPTH);
	report_points_fini(&p);
}

static void test_labels(void **state)
{
	struct fixture *f = *state;
	char buf[128];

	add(f, "vhost-user-blk:/run/vm.sock", 32, 4096);
	report_label(buf, sizeof(buf), f->points, REPORT_ALL, 100);
	assert_string_equal(buf, "vhost-user-blk:/run/vm.sock, randread, 4 KiB, depth 32, 1 job, "
				 "poll, closed loop");
	report_label(buf, sizeof(buf), f->points, 1u << REPORT_TARGET | 1u << REPORT_DEPTH, 30);
	assert_string_equal(buf, "vhost-…:/run/vm.sock, depth 32");
	assert_true(html_length(buf) <= 30);
	html_shorten(buf, sizeof(buf), "ééééééééé", 5);
	assert_string_equal(buf, "é…ééé");
}

static void test_numbers(void **state)
{
	char buf[HTML_NUMBER_LEN];

	assert_string_equal(html_count(buf, 0), "0");
	assert_string_equal(html_count(buf, 0.0521), "0.052");
	assert_string_equal(html_count(buf, 1), "1");
	assert_string_equal(html_count(buf, 10), "10");
	assert_string_equal(html_count(buf, 999.6), "1k");
	assert_string_equal(html_count(buf, 1254000), "1.25M");
	assert_string_equal(html_count(buf, NAN), "0");
	assert_string_equal(html_ns(buf, 116), "116 ns");
	assert_string_equal(html_ns(buf, 12345), "12.3 µs");
	assert_string_equal(html_bytes(buf, 1536), "1.5 KiB");
	assert_string_equal(html_bandwidth(buf, 4.096e9), "4.1 GB/s");
}

static void test_replaces(void **state)
{
	struct fixture *f = *state;
	char link[128];
	struct stat st;
	int fd = open(f->path, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
	snprintf(link, sizeof(link), "%s/link", f->dir);
	assert_int_equal(symlink("out.html", link), 0);
	add(f, "a", 1, 4096);
	assert_int_equal(bench_report_write(link, &f->report, f->err, sizeof(f->err)), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(link, &st), 0);
	assert_true(st.st_size > 3);
	assert_int_equal(st.st_mode & 07777, 0600);
	unlink(link);
}

static void expect_error(struct fixture *f, const char *path, int err)
{
	f->err[0] = '\0';
	assert_int_equal(bench_report_write(path, &f->report, f->err, sizeof(f->err)), err);
	assert_non_null(strstr(f->err, path));
	assert_non_null(strstr(f->err, strerror(-err)));
}

static void test_errors(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct stat st;

	add(f, "a", 1, 4096);
	expect_error(f, "/dev/full", -ENOSPC);
	assert_int_equal(stat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	expect_error(f, f->dir, -EISDIR);
	snprintf(path, sizeof(path), "%s/none/out.html", f->dir);
	expect_error(f, path, -ENOENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_no_point),
		TEST(test_one_point),
		TEST(test_every_plot),
		TEST(test_escapes),
		TEST(test_what_is_not_a_number),
		TEST(test_a_target_twice),
		TEST(test_labels),
		TEST(test_numbers),
		TEST(test_replaces),
		TEST(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
