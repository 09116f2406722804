/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of base: checked ranges, lists, mpsc, defer, iov, histogram, sockets. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/checked.h"
#include "base/defer.h"
#include "base/fd.h"
#include "base/histogram.h"
#include "base/iov.h"
#include "base/log.h"
#include "base/mpsc.h"
#include "base/unix_socket.h"

static void test_range_within(void **state)
{
	static const struct {
		uint64_t offset, len, size;
		bool inside;
	} table[] = {
		{0, 0, 0, true},
		{0, 1, 0, false},
		{0, 10, 10, true},
		{1, 10, 10, false},
		{10, 0, 10, true},
		{11, 0, 10, false},
		{UINT64_MAX, 1, 10, false},
		{1, UINT64_MAX, 10, false},
		{UINT64_MAX, UINT64_MAX, UINT64_MAX, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		assert_int_equal(range_within(table[i].offset, table[i].len, table[i].size),
				 table[i].inside);
	assert_true(ranges_overlap(0, 10, 9, 1));
	assert_false(ranges_overlap(0, 10, 10, 1));
	assert_false(ranges_overlap(5, 0, 0, 10));
	assert_true(ranges_overlap(UINT64_MAX - 1, 2, UINT64_MAX, 1));
}

struct counter {
	struct defer d;
	struct defer *then;
	int runs;
	int order;
};

static int order;

static void count_run(struct defer *d)
{
	struct counter *c = container_of(d, struct counter, d);

	c->runs++;
	c->order = ++order;
	if (c->then)
		defer_call(c->then);
}

static void test_defer(void **state)
{
	struct counter a = {0}, b = {0};

	order = 0;
	defer_init(&a.d, count_run);
	defer_init(&b.d, count_run);
	defer_call(&a.d); /* outside a section: at once */
	assert_int_equal(a.runs, 1);
	a.then = &b.d;
	defer_begin();
	defer_begin();
	defer_call(&a.d);
	defer_call(&a.d); /* noted once */
	defer_end();
	assert_int_equal(a.runs, 1);
	defer_end(); /* runs a, and b which a noted */
	assert_int_equal(a.runs, 2);
	assert_int_equal(b.runs, 1);
	assert_true(a.order < b.order);
	defer_begin();
	defer_call(&b.d);
	defer_call(&a.d);
	a.then = NULL;
	defer_cancel(&b.d);
	defer_end();
	assert_int_equal(a.runs, 3);
	assert_int_equal(b.runs, 1);
}

static void test_iov(void **state)
{
	char buf[10] = "0123456789", out[16] = {0};
	struct iovec iov[3] = {{buf, 3}, {buf + 3, 0}, {buf + 3, 7}}, cut[3];

	assert_int_equal(iov_length(iov, 3), 10);
	assert_int_equal(iov_to_buf(iov, 3, 2, out, 4), 4);
	assert_memory_equal(out, "2345", 4);
	assert_int_equal(iov_to_buf(iov, 3, 8, out, 16), 2);
	assert_int_equal(buf_to_iov(iov, 3, 1, "abcd", 4), 4);
	assert_memory_equal(buf, "0abcd56789", 10);
	assert_int_equal(iov_slice(iov, 3, 2, 5, cut, 3), 2);
	assert_ptr_equal(cut[0].iov_base, buf + 2);
	assert_int_equal(cut[0].iov_len, 1);
	assert_int_equal(cut[1].iov_len, 4);
	assert_int_equal(iov_slice(iov, 3, 2, 5, cut, 1), -ENOBUFS);
	assert_int_equal(iov_slice(iov, 3, 2, 9, cut, 3), -EINVAL);
	assert_int_equal(iov_fill(iov, 3, 9, 'z', 5), 1);
	assert_memory_equal(buf, "0abcd5678z", 10);
}

static void test_histogram(void **state)
{
	static struct histogram h, sum;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		assert_int_equal(histogram_bucket(histogram_bucket_ns(i)), i);
		assert_int_equal(histogram_bucket(histogram_bucket_ns(i + 1) - 1), i);
	}
	assert_true(histogram_bucket(UINT64_MAX) < HISTOGRAM_BUCKETS);
	for (uint64_t v = 1; v <= 1000; v++)
		histogram_add(&h, v * 1000);
	assert_int_equal(h.count, 1000);
	assert_int_equal(h.min_ns, 1000);
	assert_int_equal(h.max_ns, 1000000);
	assert_in_range(histogram_percentile_ns(&h, 50), 500000, 540000);
	assert_in_range(histogram_percentile_ns(&h, 99), 990000, 1000000);
	assert_int_equal(histogram_percentile_ns(&h, 100), 1000000);
	histogram_merge(&sum, &h);
	histogram_merge(&sum, &h);
	assert_int_equal(sum.count, 2000);
	assert_in_range(histogram_percentile_ns(&sum, 50), 500000, 540000);
}

struct item {
	struct slist_node node;
	unsigned producer, value;
};

enum { PRODUCERS = 3, ITEMS = 20000 };

static struct mpsc queue;

static void *produce(void *arg)
{
	unsigned id = (unsigned)(uintptr_t)arg;
	struct item *items = calloc(ITEMS, sizeof(*items));

	for (unsigned i = 0; i < ITEMS; i++) {
		items[i].producer = id;
		items[i].value = i;
		mpsc_push(&queue, &items[i].node);
	}
	return items;
}

static void test_mpsc_order(void **state)
{
	pthread_t threads[PRODUCERS];
	unsigned next[PRODUCERS] = {0}, total = 0;

	mpsc_init(&queue);
	for (uintptr_t i = 0; i < PRODUCERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
	while (total < PRODUCERS * ITEMS) {
		struct slist got;
		struct slist_node *n;

		slist_init(&got);
		mpsc_take_all(&queue, &got);
		while ((n = slist_pop_front(&got))) {
			struct item *it = container_of(n, struct item, node);

			assert_int_equal(it->value, next[it->producer]++);
			total++;
		}
	}
	for (unsigned i = 0; i < PRODUCERS; i++) {
		void *items;

		pthread_join(threads[i], &items);
		free(items);
	}
}

/* A line of the log stays one line, whatever a file name or a client put into it. */
static void test_log_is_printable(void **state)
{
	static const char expected[] = "ringside: error: path \"a?[31m?b\"\n";
	char line[128] = "";
	int pipe_fd[2], saved = dup(STDERR_FILENO);

	assert_int_equal(pipe(pipe_fd), 0);
	assert_true(dup2(pipe_fd[1], STDERR_FILENO) >= 0);
	log_error("path \"%s\"", "a\033[31m\nb");
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	assert_int_equal(read(pipe_fd[0], line, sizeof(line) - 1), (ssize_t)strlen(expected));
	assert_string_equal(line, expected);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	close(saved);
}

static void test_log_ratelimit(void **state)
{
	struct log_ratelimit rl = {.burst = 2};
	uint64_t dropped = 99;

	assert_true(log_ratelimit_pass(&rl, 5000000000u, &dropped));
	assert_int_equal(dropped, 0);
	assert_true(log_ratelimit_pass(&rl, 5000000001u, NULL));
	assert_false(log_ratelimit_pass(&rl, 5000000002u, NULL));
	assert_false(log_ratelimit_pass(&rl, 5999999999u, NULL));
	assert_true(log_ratelimit_pass(&rl, 6000000000u, &dropped));
	assert_int_equal(dropped, 2);
}

static void test_error_is_one_line(void **state)
{
	struct error err;

	assert_int_equal(error_set(&err, -22, "no '%s' here", "a\nb\x1b[2J\x7f\xc3\xa4"), -22);
	assert_string_equal(err.text, "no 'a?b?[2J?\xc3\xa4' here");
	assert_int_equal(error_set(NULL, -5, "nobody asks"), -5);
}

static void test_unix_socket(void **state)
{
	char dir[] = "/tmp/ringside-test-XXXXXX", path[64], buf[8];
	struct error err;
	struct stat st;
	int fd, client, server, fds[4], pipe_fds[2];
	unsigned nfds;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	fd = unix_socket_listen(path, &err);
	assert_true(fd >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(unix_socket_listen(path, &err), -EADDRINUSE); /* a live one is refused */
	client = unix_socket_connect(path, 0, &err);
	assert_true(client >= 0);
	server = accept(fd, NULL, NULL); /* the probe of the refused listen came first */
	fd_close(&server);
	server = accept(fd, NULL, NULL);
	assert_true(server >= 0);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(unix_socket_send(client, "abc", 3, pipe_fds, 2), 3);
	assert_int_equal(unix_socket_recv(server, buf, sizeof(buf), fds, 4, &nfds), 3);
	assert_int_equal(nfds, 2);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(unix_socket_send(client, "abc", 3, pipe_fds, 2), 3);
	assert_int_equal(unix_socket_recv(server, buf, sizeof(buf), fds, 1, &nfds), -EMSGSIZE);
	assert_int_equal(nfds, 0);
	fd_close(&client);
	fd_close(&server);
	fd_close(&fd);
	fd = unix_socket_listen(path, &err); /* a stale one is replaced */
	assert_true(fd >= 0);
	fd_close(&fd);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(unix_socket_listen(path, &err), -EEXIST);
	rmdir(path);
	rmdir(dir);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_range_within),
		cmocka_unit_test(test_defer),
		cmocka_unit_test(test_iov),
		cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_mpsc_order),
		cmocka_unit_test(test_log_ratelimit),
		cmocka_unit_test(test_log_is_printable),
		cmocka_unit_test(test_unix_socket),
		cmocka_unit_test(test_error_is_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
