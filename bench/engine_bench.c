/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine costs over the kernel interface below it: 4 KiB random reads of one file, through
 * the engine and by a bare loop around io_submit or io_uring, in turns in the same run.
 *
 *     engine_bench FILE [depth [rounds [milliseconds a turn]]]
 *
 * Two ways to wait: looking at the completion ring all the time, and sleeping for it.  The bare
 * loops sleep in the kernel's own call, which can submit and wait at once (io_uring); an engine
 * sleeps on its eventfd, because its thread waits for other things, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "block/engine.h"

#define BLOCK     4096u
#define DEPTH_MAX 1024u
#define TURNS_MAX 64u

struct bench {
	const char *path;
	int fd;
	uint64_t blocks;
	unsigned depth;
	uint64_t turn_ns;
	bool sleep;
	uint64_t random;
	char *memory; /* depth blocks */

	uint64_t start_ns, start_cpu_ns; /* of a turn, when everything is set up */
	double took_ns, took_cpu_ns;
};

struct turn {
	double iops;
	double cpu_ns; /* of the submitting thread, a request */
};

static void die(const char *what, int err)
{
	fprintf(stderr, "engine_bench: %s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(1);
}

static uint64_t next_offset(struct bench *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return b->random % b->blocks * BLOCK;
}

static void check(int64_t result)
{
	if (result != BLOCK)
		die("read", result < 0 ? (int)result : EIO);
}

/* Returns when the turn ends. */
static uint64_t turn_start(struct bench *b)
{
	b->start_cpu_ns = clock_thread_cpu_ns();
	b->start_ns = clock_now_ns();
	return b->start_ns + b->turn_ns;
}

static void turn_end(struct bench *b)
{
	b->took_ns = (double)(clock_now_ns() - b->start_ns);
	b->took_cpu_ns = (double)(clock_thread_cpu_ns() - b->start_cpu_ns);
}

/* ---- the engine ---- */

struct slot {
	struct blk_request req;
	struct iovec iov;
};

static struct {
	struct blk_request *ready[DEPTH_MAX];
	unsigned nready;
	uint64_t done;
} engine_run;

static void slot_done(struct blk_request *req, int64_t result)
{
	check(result);
	engine_run.ready[engine_run.nready++] = req;
	engine_run.done++;
}

static void engine_loop(struct bench *b, const struct engine_ops *ops, struct engine_queue *q)
{
	uint64_t end = turn_start(b);
	struct pollfd pfd = {.fd = ops->event_fd(q), .events = POLLIN};
	unsigned in_flight = 0, passes = 0;
	bool stop = false;

	while (!stop || in_flight) {
		unsigned n;

		if (!stop && engine_run.nready) {
			for (unsigned i = 0; i < engine_run.nready; i++)
				engine_run.ready[i]->offset_bytes = next_offset(b);
			n = ops->submit_batch(q, engine_run.ready, engine_run.nready);
			engine_run.nready -= n;
			memmove(engine_run.ready, engine_run.ready + n,
				engine_run.nready * sizeof(engine_run.ready[0]));
			in_flight += n;
		}
		n = ops->poll(q);
		in_flight -= n;
		if (!n && b->sleep) {
			if (!ops->arm(q)) {
				poll(&pfd, 1, -1);
				eventfd_clear(pfd.fd);
			}
			ops->disarm(q);
		}
		if (++passes % 64 == 0 || b->sleep)
			stop = clock_now_ns() >= end;
	}
	turn_end(b);
}

static uint64_t run_engine(struct bench *b, const struct engine_ops *ops)
{
	struct engine_config config = {
		.path = b->path, .fd = b->fd, .direct = true, .read_only = true};
	struct engine_queue_config queue_config = {.depth = b->depth};
	static struct slot slots[DEPTH_MAX];
	struct engine_queue *q;
	struct engine_info info;
	struct engine *e;
	struct error err;

	if (ops->open(&config, &e, &info, &err) < 0 ||
	    ops->queue_create(e, &queue_config, &q, &err) < 0) {
		fprintf(stderr, "engine_bench: %s\n", err.text);
		exit(1);
	}
	engine_run.nready = b->depth;
	engine_run.done = 0;
	for (unsigned i = 0; i < b->depth; i++) {
		struct slot *s = &slots[i];

		s->iov = (struct iovec){b->memory + i * BLOCK, BLOCK};
		s->req = (struct blk_request){.op = BLK_READ,
					      .len_bytes = BLOCK,
					      .iov = &s->iov,
					      .iovcnt = 1,
					      .engine_done = slot_done};
		engine_run.ready[i] = &s->req;
	}
	engine_loop(b, ops, q);
	ops->queue_destroy(q);
	ops->close(e);
	return engine_run.done;
}

static uint64_t run_engine_aio(struct bench *b)
{
	return run_engine(b, &engine_linux_aio);
}

static uint64_t run_engine_uring(struct bench *b)
{
	return run_engine(b, &engine_io_uring);
}

/* ---- bare loops ---- */

struct bare_ring { /* the kernel's, as in fs/aio.c */
	unsigned id, nr, head, tail, magic, compat, incompat, header_len;
	struct io_event events[];
};

static uint64_t run_bare_aio(struct bench *b)
{
	struct io_event events[DEPTH_MAX];
	struct iocb iocbs[DEPTH_MAX], *list[DEPTH_MAX];
	unsigned ready = b->depth, in_flight = 0, passes = 0;
	aio_context_t context = 0;
	uint64_t done = 0, end;
	bool stop = false;
	int n;

	if (syscall(SYS_io_setup, b->depth, &context) < 0)
		die("io_setup", errno);
	for (unsigned i = 0; i < b->depth; i++) {
		iocbs[i] = (struct iocb){.aio_lio_opcode = IOCB_CMD_PREAD,
					 .aio_fildes = (uint32_t)b->fd,
					 .aio_buf = (uintptr_t)(b->memory + i * BLOCK),
					 .aio_nbytes = BLOCK,
					 .aio_data = (uintptr_t)&iocbs[i]};
		list[i] = &iocbs[i];
	}
	end = turn_start(b);
	while (!stop || in_flight) {
		struct bare_ring *ring = (struct bare_ring *)context;

		if (!stop && ready) {
			for (unsigned i = 0; i < ready; i++)
				list[i]->aio_offset = (int64_t)next_offset(b);
			if (syscall(SYS_io_submit, context, (long)ready, list) != (long)ready)
				die("io_submit", errno);
			in_flight += ready;
			ready = 0;
		}
		if (b->sleep) {
			n = (int)syscall(SYS_io_getevents, context, 1L, (long)DEPTH_MAX, events,
					 NULL);
			if (n < 0 && errno != EINTR)
				die("io_getevents", errno);
			n = MAX(n, 0);
		} else {
			for (n = 0; ring->head != __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
			     n++) {
				events[n] = ring->events[ring->head];
				__atomic_store_n(&ring->head, (ring->head + 1) % ring->nr,
						 __ATOMIC_RELEASE);
			}
		}
		for (int i = 0; i < n; i++) {
			check(events[i].res);
			list[ready++] = (struct iocb *)(uintptr_t)events[i].data;
		}
		in_flight -= (unsigned)n;
		done += (unsigned)n;
		if (++passes % 64 == 0 || b->sleep)
			stop = clock_now_ns() >= end;
	}
	turn_end(b);
	syscall(SYS_io_destroy, context);
	return done;
}

static void bare_uring_setup(struct bench *b, struct io_uring *ring)
{
	unsigned flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			 IORING_SETUP_TASKRUN_FLAG;
	int ret = io_uring_queue_init(b->depth, ring, flags);

	if (ret == -EINVAL)
		ret = io_uring_queue_init(b->depth, ring, 0);
	if (ret == 0)
		ret = io_uring_register_files(ring, &b->fd, 1);
	if (ret < 0)
		die("io_uring", ret);
	io_uring_register_ring_fd(ring);
}

static uint64_t run_bare_uring(struct bench *b)
{
	unsigned slots[DEPTH_MAX], ready = b->depth, in_flight = 0, passes = 0;
	struct io_uring ring;
	uint64_t done = 0, end;
	bool stop = false;

	bare_uring_setup(b, &ring);
	for (unsigned i = 0; i < b->depth; i++)
		slots[i] = i;
	end = turn_start(b);
	while (!stop || in_flight) {
		struct io_uring_cqe *cqe;
		unsigned head, n = 0;

		for (unsigned i = 0; !stop && i < ready; i++) {
			struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

			io_uring_prep_read(sqe, 0, b->memory + slots[i] * BLOCK, BLOCK,
					   next_offset(b));
			sqe->flags |= IOSQE_FIXED_FILE;
			sqe->user_data = slots[i];
			in_flight++;
		}
		if (!stop)
			ready = 0;
		if (b->sleep)
			io_uring_submit_and_wait(&ring, 1);
		else if (io_uring_sq_ready(&ring))
			io_uring_submit(&ring);
		if (!b->sleep && (*ring.sq.kflags & IORING_SQ_TASKRUN))
			io_uring_get_events(&ring);
		io_uring_for_each_cqe(&ring, head, cqe)
		{
			check(cqe->res);
			slots[ready++] = (unsigned)cqe->user_data;
			n++;
		}
		io_uring_cq_advance(&ring, n);
		in_flight -= n;
		done += n;
		if (++passes % 64 == 0 || b->sleep)
			stop = clock_now_ns() >= end;
	}
	turn_end(b);
	io_uring_queue_exit(&ring);
	return done;
}

/* ---- comparison ---- */

static const struct {
	const char *name;
	uint64_t (*run)(struct bench *b);
} runners[] = {
	{"bare io_submit", run_bare_aio},
	{"engine linux-aio", run_engine_aio},
	{"bare io_uring", run_bare_uring},
	{"engine io_uring", run_engine_uring},
};

static int compare_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	return (x->iops > y->iops) - (x->iops < y->iops);
}

static struct turn take_turn(struct bench *b, unsigned runner)
{
	double done = (double)runners[runner].run(b);

	return (struct turn){.iops = done * 1e9 / b->took_ns, .cpu_ns = b->took_cpu_ns / done};
}

static void compare(struct bench *b, unsigned rounds)
{
	static struct turn turns[ARRAY_SIZE(runners)][TURNS_MAX];
	double bare = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(runners); i++)
		take_turn(b, i); /* warm up */
	for (unsigned r = 0; r < rounds; r++)
		for (unsigned i = 0; i < ARRAY_SIZE(runners); i++)
			turns[i][r] = take_turn(b, i);

	printf("%s, depth %u, 4 KiB random reads, %u turns of %.1f s\n",
	       b->sleep ? "sleeping" : "polling", b->depth, rounds, (double)b->turn_ns / 1e9);
	printf("  %-18s %10s %10s %10s %8s %10s\n", "", "median", "min", "max", "ratio",
	       "CPU ns/IO");
	for (unsigned i = 0; i < ARRAY_SIZE(runners); i++) {
		struct turn *t = turns[i], *mid = &t[rounds / 2];

		qsort(t, rounds, sizeof(*t), compare_turns);
		if (i % 2 == 0)
			bare = mid->iops;
		printf("  %-18s %10.0f %10.0f %10.0f %8.3f %10.0f\n", runners[i].name, mid->iops,
		       t[0].iops, t[rounds - 1].iops, mid->iops / bare, mid->cpu_ns);
	}
}

int main(int argc, char **argv)
{
	struct bench b = {.fd = -1, .random = 88172645463325252u};
	unsigned rounds;
	off_t size;

	if (argc < 2) {
		fprintf(stderr, "usage: engine_bench FILE [depth [rounds [milliseconds]]]\n");
		return 2;
	}
	b.path = argv[1];
	b.depth = argc > 2 ? (unsigned)atoi(argv[2]) : 64;
	rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 7;
	b.turn_ns = (argc > 4 ? (uint64_t)atoi(argv[4]) : 1000) * 1000000u;
	if (!b.depth || b.depth > DEPTH_MAX || !rounds || rounds > TURNS_MAX)
		die("depth and rounds", EINVAL);
	b.fd = open(b.path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	size = lseek(b.fd, 0, SEEK_END);
	if (b.fd < 0 || size < (off_t)BLOCK)
		die(b.path, b.fd < 0 ? errno : EINVAL);
	b.blocks = (uint64_t)size / BLOCK;
	if (posix_memalign((void **)&b.memory, BLOCK, b.depth * BLOCK))
		die("memory", ENOMEM);
	for (int s = 0; s < 2; s++) {
		b.sleep = s;
		compare(&b, rounds);
	}
	free(b.memory);
	close(b.fd);
	return 0;
}
