/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that say no: limits reached, interfaces forbidden, a full queue.  Each case is a child
 * process whose system calls a seccomp filter answers in the kernel's place.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "block/engine.h"
#include "test_places.h"

struct refusal {
	const struct engine_ops *ops;
	long syscall_number;
	int err;
	const char *word; /* in the message of open; NULL: open works, submission does not */
};

static bool answer_for_kernel(long number, int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static unsigned count_done;
static int64_t last_result;

static void note_done(struct blk_request *req, int64_t result)
{
	count_done++;
	last_result = result;
}

/* The exit status of the child: 0 is good, anything else the number of the check that failed. */
static int open_is_refused(const struct refusal *r, const struct engine_config *config)
{
	struct engine_info info;
	struct error err = {""};
	struct engine *e;

	if (!answer_for_kernel(r->syscall_number, r->err))
		return 1;
	if (r->ops->open(config, &e, &info, &err) != -r->err)
		return 2;
	fprintf(stderr, "%s\n", err.text);
	return strstr(err.text, r->word) ? 0 : 3;
}

static int submission_is_refused(const struct refusal *r, const struct engine_config *config)
{
	struct engine_queue_config depth = {.depth = 8};
	static struct blk_request reqs[4];
	struct blk_request *list[4];
	static char buf[4096] __attribute__((aligned(4096)));
	struct iovec iov = {buf, sizeof(buf)};
	struct engine_queue *q;
	struct engine_info info;
	struct error err;
	struct engine *e;
	bool for_good = r->err != EAGAIN && r->err != EBUSY && r->err != EINTR;
	unsigned accepted;

	if (r->ops->open(config, &e, &info, &err) < 0 ||
	    r->ops->queue_create(e, &depth, &q, &err) < 0)
		return 4;
	for (unsigned i = 0; i < 4; i++) {
		reqs[i] = (struct blk_request){.op = BLK_READ,
					       .len_bytes = sizeof(buf),
					       .iov = &iov,
					       .iovcnt = 1,
					       .engine_done = note_done};
		list[i] = &reqs[i];
	}
	if (!answer_for_kernel(r->syscall_number, r->err))
		return 1;
	/* Not accepted, however often; or accepted and ended with the error. */
	for (unsigned i = 0; i < 10; i++) {
		accepted = r->ops->submit_batch(q, list, 4);
		if (accepted != (for_good ? 4 : 0) || count_done != accepted * (i + 1))
			return 5;
		if (for_good && last_result != -r->err)
			return 6;
	}
	r->ops->queue_destroy(q); /* asserts that nothing is in flight */
	r->ops->close(e);
	return 0;
}

static void test_refusal(void **state)
{
	const struct refusal *r = *state;
	struct engine_config config = {.path = "an image", .direct = true};
	struct place p;
	int status;
	pid_t pid;

	if (!place_open(&p, PLACE_FILE, 1048576))
		skip();
	config.fd = place_image(&p, true, false);
	assert_true(config.fd >= 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(r->word ? open_is_refused(r, &config) : submission_is_refused(r, &config));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(config.fd);
	place_close(&p);
}

int main(void)
{
	static struct refusal refusals[] = {
		{&engine_io_uring, SYS_io_uring_setup, EPERM, "kernel.io_uring_disabled"},
		{&engine_io_uring, SYS_io_uring_setup, ENOSYS, "does not have it"},
		{&engine_io_uring, SYS_io_uring_setup, ENOMEM, "RLIMIT_MEMLOCK"},
		{&engine_io_uring, SYS_io_uring_setup, EINVAL, "Invalid argument"},
		{&engine_io_uring, SYS_io_uring_enter, EAGAIN, NULL},
		{&engine_io_uring, SYS_io_uring_enter, EBUSY, NULL},
		{&engine_io_uring, SYS_io_uring_enter, EINTR, NULL},
		{&engine_io_uring, SYS_io_uring_enter, EPERM, NULL},
		{&engine_linux_aio, SYS_io_setup, EAGAIN, "fs.aio-max-nr"},
		{&engine_linux_aio, SYS_io_setup, ENOSYS, "not available"},
		{&engine_linux_aio, SYS_io_submit, EAGAIN, NULL},
		{&engine_linux_aio, SYS_io_submit, EINTR, NULL},
		{&engine_linux_aio, SYS_io_submit, EPERM, NULL},
	};
	static struct CMUnitTest tests[ARRAY_SIZE(refusals)];
	static char names[ARRAY_SIZE(refusals)][64];

	for (unsigned i = 0; i < ARRAY_SIZE(refusals); i++) {
		snprintf(names[i], sizeof(names[i]), "%s, call %ld: %s", refusals[i].ops->name,
			 refusals[i].syscall_number, strerrorname_np(refusals[i].err));
		tests[i] = (struct CMUnitTest){
			.name = names[i], .test_func = test_refusal, .initial_state = &refusals[i]};
	}
	return _cmocka_run_group_tests("kernel refuses", tests, ARRAY_SIZE(tests), NULL, NULL);
}
