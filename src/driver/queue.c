/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues: what a request must satisfy, the slots of those in flight, and how to wait for them.
 * Everything belongs to the queue's one thread; nothing here allocates after init.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "driver/driver_internal.h"
#include "loop/wake_cost.h"

/* Looks for nothing before the server's life is checked: some milliseconds. */
#define LOOKS_PER_CHECK 100000u

static int init_epoll(struct ringside_queue *q, struct error *err)
{
	q->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (q->epoll_fd < 0)
		return error_set(err, -errno, "epoll_create1: %s", strerror(errno));
	for (uint32_t i = 0; i < DRIVER_WAIT_FDS; i++) {
		struct epoll_event ev = {.events = q->wait_events[i], .data.u32 = i};

		if (q->wait_fds[i] >= 0 &&
		    epoll_ctl(q->epoll_fd, EPOLL_CTL_ADD, q->wait_fds[i], &ev) < 0)
			return error_set(err, -errno, "epoll_ctl: %s", strerror(errno));
	}
	return 0;
}

int driver_queue_init(struct ringside_queue *q, unsigned depth, struct error *err)
{
	const struct poll_policy_limits limits = {.mode = POLL_ADAPTIVE};
	int ret;

	q->epoll_fd = -1;
	q->free_slots = NULL;
	q->in_flight = 0;
	q->broken = 0;
	q->armed = false;
	q->slots = calloc(depth, sizeof(*q->slots));
	if (!q->slots)
		return error_set(err, -ENOMEM, "out of memory for a depth of %u", depth);
	for (unsigned i = depth; i-- > 0;) {
		q->slots[i].index = i;
		q->slots[i].next_free = q->free_slots;
		q->free_slots = &q->slots[i];
	}
	poll_policy_init(&q->policy, &limits, wake_cost_ns());
	ret = init_epoll(q, err);
	if (ret < 0)
		driver_queue_fini(q);
	return ret;
}

void driver_queue_fini(struct ringside_queue *q)
{
	fd_close(&q->epoll_fd);
	free(q->slots);
	q->slots = NULL;
}

/* ---- put ---- */

static int put(struct ringside_queue *q, const struct driver_request *req, void *cookie)
{
	struct driver_slot *s = q->free_slots;
	int ret;

	if (unlikely(q->broken))
		return q->broken;
	if (!s)
		return -EAGAIN;
	ret = q->ops->put(q, req, s);
	if (unlikely(ret < 0))
		return ret;
	q->free_slots = s->next_free;
	s->cookie = cookie;
	s->bytes = req->iov && req->op != DRIVER_GET_ID ? req->len_bytes : 0;
	s->in_flight = true;
	q->in_flight++;
	q->stats.requests++;
	return 0;
}

/* The range of blocks is the device's. */
static int check_range(const struct ringside_queue *q, const struct driver_request *req,
		       uint64_t most)
{
	const struct ringside_info *info = &q->dev->info;

	if ((req->offset_bytes | req->len_bytes) % info->block_bytes || !req->len_bytes)
		return -EINVAL;
	if (req->len_bytes > most || req->offset_bytes > info->capacity_bytes ||
	    req->len_bytes > info->capacity_bytes - req->offset_bytes)
		return -ERANGE;
	return 0;
}

static int put_data(struct ringside_queue *q, struct driver_request *req, void *cookie)
{
	const struct ringside_info *info = &q->dev->info;
	int ret;

	if (unlikely(!req->iovcnt || req->iovcnt > info->max_segments))
		return -EINVAL;
	for (unsigned i = 0; i < req->iovcnt; i++) {
		/* A descriptor of no bytes breaks the whole device at some servers. */
		if (unlikely(!req->iov[i].iov_len))
			return -EINVAL;
		if (unlikely(__builtin_add_overflow(req->len_bytes, req->iov[i].iov_len,
						    &req->len_bytes)))
			return -ERANGE;
	}
	ret = check_range(q, req, info->max_transfer_bytes);
	if (unlikely(ret < 0))
		return ret;
	if (req->op == DRIVER_WRITE && unlikely(info->read_only))
		return -EROFS;
	return put(q, req, cookie);
}

int ringside_readv(struct ringside_queue *q, uint64_t offset_bytes, const struct iovec *iov,
		   unsigned iovcnt, void *cookie)
{
	struct driver_request req = {
		.op = DRIVER_READ, .offset_bytes = offset_bytes, .iov = iov, .iovcnt = iovcnt};

	return put_data(q, &req, cookie);
}

int ringside_writev(struct ringside_queue *q, uint64_t offset_bytes, const struct iovec *iov,
		    unsigned iovcnt, void *cookie)
{
	struct driver_request req = {
		.op = DRIVER_WRITE, .offset_bytes = offset_bytes, .iov = iov, .iovcnt = iovcnt};

	return put_data(q, &req, cookie);
}

int ringside_read(struct ringside_queue *q, uint64_t offset_bytes, void *buf, size_t len_bytes,
		  void *cookie)
{
	struct iovec iov = {buf, len_bytes};

	return ringside_readv(q, offset_bytes, &iov, 1, cookie);
}

int ringside_write(struct ringside_queue *q, uint64_t offset_bytes, const void *buf,
		   size_t len_bytes, void *cookie)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len_bytes};

	return ringside_writev(q, offset_bytes, &iov, 1, cookie);
}

int ringside_flush(struct ringside_queue *q, void *cookie)
{
	struct driver_request req = {.op = DRIVER_FLUSH};

	return q->dev->info.flush ? put(q, &req, cookie) : -EOPNOTSUPP;
}

static int put_range(struct ringside_queue *q, const struct driver_request *req, bool supported,
		     uint64_t most, void *cookie)
{
	int ret;

	if (!supported)
		return -EOPNOTSUPP;
	if (q->dev->info.read_only)
		return -EROFS;
	ret = check_range(q, req, most);
	return ret < 0 ? ret : put(q, req, cookie);
}

int ringside_discard(struct ringside_queue *q, uint64_t offset_bytes, uint64_t len_bytes,
		     void *cookie)
{
	const struct ringside_info *info = &q->dev->info;
	struct driver_request req = {
		.op = DRIVER_DISCARD, .offset_bytes = offset_bytes, .len_bytes = len_bytes};

	return put_range(q, &req, info->discard, info->max_discard_bytes, cookie);
}

int ringside_write_zeroes(struct ringside_queue *q, uint64_t offset_bytes, uint64_t len_bytes,
			  bool may_unmap, void *cookie)
{
	const struct ringside_info *info = &q->dev->info;
	struct driver_request req = {.op = DRIVER_WRITE_ZEROES,
				     .may_unmap = may_unmap,
				     .offset_bytes = offset_bytes,
				     .len_bytes = len_bytes};

	return put_range(q, &req, info->write_zeroes, info->max_write_zeroes_bytes, cookie);
}

int ringside_get_id(struct ringside_queue *q, char *buf, void *cookie)
{
	struct iovec iov = {buf, RINGSIDE_ID_BYTES};
	struct driver_request req = {
		.op = DRIVER_GET_ID, .len_bytes = RINGSIDE_ID_BYTES, .iov = &iov, .iovcnt = 1};

	return put(q, &req, cookie);
}

void ringside_publish(struct ringside_queue *q)
{
	q->ops->publish(q);
}

bool ringside_tell(struct ringside_queue *q)
{
	return q->ops->tell(q);
}

void ringside_submit(struct ringside_queue *q)
{
	q->ops->publish(q);
	q->ops->tell(q);
}

unsigned ringside_in_flight(const struct ringside_queue *q)
{
	return q->in_flight;
}

/* ---- completions ---- */

static void give_back(struct ringside_queue *q, struct driver_slot *s, int result,
		      struct ringside_completion *out)
{
	out->cookie = s->cookie;
	out->result = result;
	s->in_flight = false;
	s->next_free = q->free_slots;
	q->free_slots = s;
	q->in_flight--;
	q->stats.completions++;
	if (likely(!result))
		q->stats.bytes += s->bytes;
	else
		q->stats.errors++;
}

/* What the transport has, as long as there is room.  What its last look gave. */
static inline int take_answered(struct ringside_queue *q, struct ringside_completion *out,
				unsigned max, unsigned *n)
{
	struct driver_slot *s;
	int result, ret = 0;

	while (*n < max) {
		ret = q->ops->take(q, &s, &result);
		if (ret <= 0)
			break;
		give_back(q, s, result, &out[(*n)++]);
	}
	return ret;
}

/* The queue is broken: what is in flight will not complete any more. */
static noinline_cold int give_all_back(struct ringside_queue *q, struct ringside_completion *out,
				       unsigned max, unsigned n)
{
	/* A server that has gone may have answered before; one that broke the rules is not believed
	 * any more. */
	if (q->broken == -ENOTCONN)
		(void)take_answered(q, out, max, &n);
	for (unsigned i = 0; i < q->dev->info.depth && n < max && q->in_flight; i++) {
		if (q->slots[i].in_flight)
			give_back(q, &q->slots[i], q->broken, &out[n++]);
	}
	return n || q->in_flight ? (int)n : q->broken;
}

static noinline_cold void check(struct ringside_queue *q)
{
	int ret = q->ops->check(q);

	q->stats.system_calls++;
	q->looks_for_nothing = 0;
	if (ret < 0)
		q->broken = ret;
}

static noinline_cold void disarm(struct ringside_queue *q)
{
	q->armed = false;
	q->ops->disarm(q);
}

static int wait_for_fds(struct ringside_queue *q, struct epoll_event *ev, int64_t timeout_ns)
{
	struct timespec ts = {.tv_sec = timeout_ns / 1000000000,
			      .tv_nsec = timeout_ns % 1000000000};
	int n = epoll_pwait2(q->epoll_fd, ev, DRIVER_WAIT_FDS, timeout_ns < 0 ? NULL : &ts, NULL);

	/* Before Linux 5.11, or where a system call filter does not know it: by the millisecond. */
	if (n < 0 && (errno == ENOSYS || errno == EPERM)) {
		int64_t ms = timeout_ns < 0 ? -1 : (timeout_ns + 999999) / 1000000;

		n = epoll_wait(q->epoll_fd, ev, DRIVER_WAIT_FDS, (int)MIN(ms, (int64_t)INT32_MAX));
	}
	return n;
}

/* What woke us: the sleeper, or the caller's loop. */
static int look_at_fds(struct ringside_queue *q, int64_t timeout_ns)
{
	struct epoll_event ev[DRIVER_WAIT_FDS];
	int n = wait_for_fds(q, ev, timeout_ns);

	q->stats.system_calls++;
	for (int i = 0; i < n; i++) {
		if (ev[i].data.u32)
			check(q);
		else if (q->ops->woken)
			q->ops->woken(q);
	}
	return n;
}

static int take(struct ringside_queue *q, struct ringside_completion *out, unsigned max)
{
	unsigned n = 0;
	int ret = likely(!q->broken) ? take_answered(q, out, max, &n) : 0;

	if (unlikely(ret < 0))
		q->broken = ret;
	if (n)
		q->looks_for_nothing = 0;
	else if (unlikely(++q->looks_for_nothing >= LOOKS_PER_CHECK) && !q->broken)
		check(q);
	if (unlikely(q->broken))
		return give_all_back(q, out, max, n);
	return (int)n;
}

int ringside_poll(struct ringside_queue *q, struct ringside_completion *out, unsigned max)
{
	if (unlikely(q->armed)) {
		/* Armed for the caller's loop: a wait of ours has disarmed already. */
		look_at_fds(q, 0);
		disarm(q);
	}
	return take(q, out, max);
}

/* Sleeps until `after` more have completed, the server has gone or the time is over. */
static void sleep_for(struct ringside_queue *q, unsigned after, int64_t timeout_ns)
{
	if (q->ops->arm(q, after)) {
		q->ops->disarm(q);
		return;
	}
	look_at_fds(q, timeout_ns);
	q->stats.sleeps++;
	q->ops->disarm(q);
}

/* Time left, or -1 for no limit. */
static int64_t left_ns(uint64_t start_ns, uint64_t now_ns, int64_t timeout_ns)
{
	if (timeout_ns < 0)
		return -1;
	return MAX(timeout_ns - (int64_t)(now_ns - start_ns), (int64_t)0);
}

int ringside_wait(struct ringside_queue *q, struct ringside_completion *out, unsigned max,
		  unsigned min, int64_t timeout_ns)
{
	uint64_t start_ns = timeout_ns > 0 ? clock_now_ns() : 0;
	unsigned n = 0;

	min = MIN(MAX(min, 1u), max);
	if (unlikely(q->armed))
		disarm(q);
	for (;;) {
		int ret = take(q, out + n, max - n);
		int64_t left = timeout_ns;

		if (ret < 0)
			return n ? (int)n : ret;
		n += (unsigned)ret;
		if (n >= min || !q->in_flight || q->broken)
			return (int)n;
		if (timeout_ns > 0)
			left = left_ns(start_ns, clock_now_ns(), timeout_ns);
		if (!left)
			return (int)n;
		sleep_for(q, min - n, left);
	}
}

/* Looks for as long as the policy says, and the caller allows.  What take() gave. */
static int spin(struct ringside_queue *q, struct ringside_completion *out, unsigned max,
		uint64_t begin_ns, int64_t timeout_ns)
{
	uint64_t spin_ns = poll_policy_spin_ns(&q->policy), now = begin_ns;
	int ret = 0;

	if (timeout_ns >= 0)
		spin_ns = MIN(spin_ns, (uint64_t)timeout_ns);

	while (ret == 0 && now - begin_ns < spin_ns) {
		cpu_relax();
		ret = take(q, out, max);
		now = clock_now_ns();
	}
	if (ret)
		q->stats.spins_hit++;
	else if (spin_ns)
		q->stats.spins_missed++;
	return ret;
}

int ringside_hybrid(struct ringside_queue *q, struct ringside_completion *out, unsigned max,
		    unsigned min, int64_t timeout_ns)
{
	uint64_t begin_ns;
	int ret, more;

	if (unlikely(q->armed))
		disarm(q);
	min = MIN(MAX(min, 1u), max);
	ret = take(q, out, max);
	if (ret < 0 || (unsigned)ret >= min || !q->in_flight)
		return ret;
	begin_ns = clock_now_ns();
	more = spin(q, out + ret, max - (unsigned)ret, begin_ns, timeout_ns);
	if (more < 0)
		return ret ? ret : more;
	ret += more;
	if ((unsigned)ret < min && q->in_flight) {
		more = ringside_wait(q, out + ret, max - (unsigned)ret, min - (unsigned)ret,
				     left_ns(begin_ns, clock_now_ns(), timeout_ns));
		if (more < 0)
			return ret ? ret : more;
		ret += more;
	}
	poll_policy_note_gap(&q->policy, clock_now_ns() - begin_ns);
	return ret;
}

int ringside_queue_fd(const struct ringside_queue *q)
{
	return q->epoll_fd;
}

bool ringside_arm(struct ringside_queue *q)
{
	if (unlikely(q->broken))
		return true;
	q->armed = true;
	return q->ops->arm(q, 1);
}

void ringside_queue_stats(const struct ringside_queue *q, struct ringside_stats *stats)
{
	struct ringside_queue *own = (struct ringside_queue *)(uintptr_t)q;
	size_t bytes = MIN(stats->struct_bytes, sizeof(q->stats));

	/* Reading the eventfd would take from the caller's loop what it waits for. */
	if (q->ops->calls && !q->armed)
		own->stats.calls_received += q->ops->calls(own);
	memcpy(stats, &q->stats, bytes);
	stats->struct_bytes = bytes;
}
