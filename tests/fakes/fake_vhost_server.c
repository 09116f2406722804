/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/fake_vhost_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "base/fd.h"
#include "base/unix_socket.h"
#include "ring/event_idx.h"

#define PF(name) (1ull << VHOST_USER_PROTOCOL_F_##name)
#define MANY_FDS 40

struct message {
	struct vhost_user_header h;
	union vhost_user_payload p;
};

/* ---- memory ---- */

static void *host(const struct fake_vhost *f, uint64_t addr, uint64_t len)
{
	for (unsigned i = 0; i < f->nregions; i++) {
		const struct vhost_user_memory_region *at = &f->regions[i].at;

		if (addr >= at->guest_addr && addr - at->guest_addr < at->len_bytes &&
		    len <= at->len_bytes - (addr - at->guest_addr))
			return f->regions[i].host + (addr - at->guest_addr);
	}
	return NULL;
}

static bool add_region(struct fake_vhost *f, const struct vhost_user_memory_region *at, int fd)
{
	struct fake_region *r = &f->regions[f->nregions];
	void *p = f->nregions < FAKE_REGIONS ? mmap(NULL, at->len_bytes, PROT_READ | PROT_WRITE,
						    MAP_SHARED, fd, (off_t)at->mmap_offset)
					     : MAP_FAILED;

	if (p == MAP_FAILED)
		return false;
	*r = (struct fake_region){.at = *at, .host = p};
	f->nregions++;
	if (f->nregions > f->most_regions)
		f->most_regions = f->nregions;
	return true;
}

static bool remove_region(struct fake_vhost *f, uint64_t guest_addr)
{
	for (unsigned i = 0; i < f->nregions; i++) {
		if (f->regions[i].at.guest_addr == guest_addr) {
			munmap(f->regions[i].host, f->regions[i].at.len_bytes);
			f->regions[i] = f->regions[--f->nregions];
			return true;
		}
	}
	return false;
}

/* Rings by address, again after a table was replaced. */
static void find_rings(struct fake_vhost *f)
{
	for (unsigned i = 0; i < FAKE_RINGS; i++) {
		struct fake_ring *r = &f->rings[i];

		r->desc = host(f, r->addr.desc_user_addr, 16u * r->size);
		r->avail = host(f, r->addr.avail_user_addr, 6u + 2u * r->size);
		r->used = host(f, r->addr.used_user_addr, 6u + 8u * r->size);
	}
}

/* ---- requests ---- */

struct part {
	char *host;
	uint32_t len;
	bool write;
};

struct request {
	struct part parts[1026];
	unsigned n;
	uint32_t in_bytes;
};

static bool walk(const struct fake_vhost *f, const struct fake_ring *ring, uint16_t head,
		 struct request *r)
{
	const struct vring_desc *table = ring->desc, *d = &table[head];

	*r = (struct request){.n = 0};
	if (d->flags & VRING_DESC_F_INDIRECT)
		d = table = host(f, d->addr, d->len);
	while (d && r->n < 1026) {
		struct part *p = &r->parts[r->n++];

		*p = (struct part){host(f, d->addr, d->len), d->len, d->flags & VRING_DESC_F_WRITE};
		if (!p->host || !p->len)
			return false;
		if (p->write)
			r->in_bytes += p->len;
		if (!(d->flags & VRING_DESC_F_NEXT))
			return r->n >= 2;
		d = &table[d->next];
	}
	return false;
}

static uint8_t do_data(struct fake_vhost *f, struct request *r, uint64_t at, bool write)
{
	for (unsigned i = 1; i + 1 < r->n; i++) {
		struct part *p = &r->parts[i];

		if (p->write == write || at > f->disk_bytes || p->len > f->disk_bytes - at)
			return VIRTIO_BLK_S_IOERR;
		memcpy(write ? f->disk + at : p->host, write ? p->host : f->disk + at, p->len);
		at += p->len;
	}
	return VIRTIO_BLK_S_OK;
}

static uint8_t do_request(struct fake_vhost *f, struct request *r)
{
	struct virtio_blk_outhdr header;

	memcpy(&header, r->parts[0].host, sizeof(header));
	switch (header.type) {
	case VIRTIO_BLK_T_IN:
		return do_data(f, r, header.sector * 512, false);
	case VIRTIO_BLK_T_OUT:
		return do_data(f, r, header.sector * 512, true);
	case VIRTIO_BLK_T_GET_ID:
		memcpy(r->parts[1].host, "fake\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
		return VIRTIO_BLK_S_OK;
	default:
		return VIRTIO_BLK_S_OK;
	}
}

static void push(struct fake_ring *ring, uint32_t id, uint32_t len)
{
	struct vring_used_elem *e = &ring->used->ring[ring->used_idx++ & (ring->size - 1)];

	atomic_store_relaxed(&e->id, id);
	atomic_store_relaxed(&e->len, len);
}

/* A descriptor of the ring that heads nothing now; the ring has room for more than is used. */
static uint32_t idle_id(const struct fake_ring *ring, uint16_t head)
{
	return (uint32_t)(head + ring->size / 2) & (ring->size - 1);
}

static void answer_badly(struct fake_vhost *f, struct fake_ring *ring, uint16_t head,
			 struct request *r)
{
	uint8_t *status = (uint8_t *)r->parts[r->n - 1].host;
	enum fake_fault fault = f->config.fault;

	if (f->config.delay_ms)
		usleep(f->config.delay_ms * 1000);
	if (fault == FAKE_KILLED)
		raise(SIGKILL);
	if (fault == FAKE_NEVER || fault == FAKE_DIE) {
		f->dead = fault == FAKE_DIE;
		return;
	}
	if (fault != FAKE_NO_STATUS)
		*status = fault == FAKE_BAD_STATUS ? 77
			  : fault == FAKE_IOERR    ? VIRTIO_BLK_S_IOERR
			  : fault == FAKE_UNSUPP   ? VIRTIO_BLK_S_UNSUPP
						   : do_request(f, r);
	push(ring,
	     fault == FAKE_ID_BEYOND ? ring->size
	     : fault == FAKE_ID_IDLE ? idle_id(ring, head)
				     : head,
	     fault == FAKE_TOO_MUCH ? r->in_bytes + 1 : r->in_bytes);
	if (fault == FAKE_TWICE)
		push(ring, head, r->in_bytes);
	if (fault == FAKE_JUMP)
		ring->used_idx = (uint16_t)(ring->used_idx + 1000);
	if (fault == FAKE_BACK)
		ring->used_idx = 0xffff;
}

static void call(const struct fake_vhost *f, struct fake_ring *ring, uint16_t old_idx)
{
	bool wanted;

	atomic_store_release(&ring->used->idx, ring->used_idx);
	atomic_fence_full();
	if (f->features & VIRTIO_BIT(VIRTIO_RING_F_EVENT_IDX))
		wanted = need_event(atomic_load_relaxed(&ring->avail->ring[ring->size]),
				    ring->used_idx, old_idx);
	else
		wanted = !(atomic_load_relaxed(&ring->avail->flags) & VRING_AVAIL_F_NO_INTERRUPT);
	if ((wanted || f->config.fault == FAKE_JUMP || f->config.fault == FAKE_BACK) &&
	    ring->call_fd >= 0)
		eventfd_signal(ring->call_fd);
}

static void one_request(struct fake_vhost *f, struct fake_ring *ring, uint16_t head)
{
	unsigned number = f->nrequests++;
	uint16_t old_idx = ring->used_idx;
	struct request r;

	if ((f->config.fault == FAKE_NEVER || f->config.fault == FAKE_BACK) &&
	    number > f->config.fault_at)
		return;
	if (!walk(f, ring, head, &r)) {
		f->dead = true; /* the client's fault, and the test sees it */
		return;
	}
	if (f->config.fault != FAKE_ANSWER && number == f->config.fault_at) {
		answer_badly(f, ring, head, &r);
	} else {
		*(uint8_t *)r.parts[r.n - 1].host = do_request(f, &r);
		push(ring, head, r.in_bytes);
	}
	if (ring->used_idx != old_idx)
		call(f, ring, old_idx);
}

static void run_ring(struct fake_vhost *f, struct fake_ring *ring)
{
	if (!ring->enabled || !ring->desc || !ring->avail || !ring->used || ring->kick_fd < 0)
		return;
	for (;;) {
		while (!f->dead && ring->last_avail_idx != atomic_load_acquire(&ring->avail->idx)) {
			uint16_t slot = ring->last_avail_idx++ & (ring->size - 1);

			one_request(f, ring, atomic_load_relaxed(&ring->avail->ring[slot]));
		}
		/* Kick us for the next; the flag is never set. */
		atomic_store_relaxed((uint16_t *)&ring->used->ring[ring->size],
				     ring->last_avail_idx);
		atomic_fence_full();
		if (f->dead || ring->last_avail_idx == atomic_load_acquire(&ring->avail->idx))
			return;
	}
}

/* ---- messages ---- */

static void send_all(struct fake_vhost *f, const void *data, size_t len, unsigned nfds)
{
	int fds[UNIX_SOCKET_MAX_FDS] = {0};

	for (unsigned i = 0; i < nfds; i++)
		fds[i] = f->listen_fd;
	if (unix_socket_send(f->sock, data, len, fds, nfds) != (ssize_t)len)
		f->dead = true;
}

/* More than unix_socket_send() would. */
static void send_many_fds(struct fake_vhost *f, void *data, size_t len)
{
	union {
		char buf[CMSG_SPACE(MANY_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = {.buf = ""};
	struct iovec iov = {data, len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(MANY_FDS * sizeof(int));
	for (unsigned i = 0; i < MANY_FDS; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &f->listen_fd, sizeof(int));
	if (sendmsg(f->sock, &msg, MSG_NOSIGNAL) < 0)
		f->dead = true;
}

static void drip(struct fake_vhost *f, const char *data)
{
	struct pollfd stop = {.fd = f->stop_fd, .events = POLLIN};

	/* The header is right, so that the client goes on; its payload never ends. */
	for (size_t i = 0; !f->dead && poll(&stop, 1, 20) == 0; i++)
		send_all(f, &data[i < 12 ? i : 12], 1, 0);
	f->dead = true;
}

static void send_answer(struct fake_vhost *f, struct message *m, enum fake_spoil spoil)
{
	size_t len = sizeof(m->h) + m->h.size;
	char data[sizeof(m->h) + sizeof(m->p)];

	m->h.flags = VHOST_USER_VERSION | (spoil == FAKE_NO_FLAG ? 0 : VHOST_USER_FLAG_REPLY);
	if (spoil == FAKE_OTHER)
		m->h.request++;
	else if (spoil == FAKE_SHORT)
		m->h.size /= 2;
	else if (spoil == FAKE_LONG)
		m->h.size += 8;
	else if (spoil == FAKE_HUGE)
		m->h.size = 0xffffffff;
	memcpy(data, &m->h, sizeof(m->h));
	memcpy(data + sizeof(m->h), &m->p, sizeof(m->p));
	switch (spoil) {
	case FAKE_SILENT:
		return;
	case FAKE_DRIP:
		drip(f, data);
		return;
	case FAKE_MANY_FDS:
		send_many_fds(f, data, len);
		return;
	case FAKE_HALVES:
		send_all(f, data, 7, 0);
		usleep(20000);
		send_all(f, data + 7, len - 7, 0);
		return;
	case FAKE_CUT:
		send_all(f, data, len / 2, 0);
		f->dead = true;
		return;
	case FAKE_HANG_UP:
		f->dead = true;
		return;
	default:
		send_all(f, data, len, spoil == FAKE_FDS ? 3 : 0);
	}
}

static struct fake_ring *ring_of(struct fake_vhost *f, uint64_t index)
{
	return &f->rings[index % FAKE_RINGS];
}

static void take_fd(int *to, int *fd)
{
	fd_close(to);
	*to = *fd;
	*fd = -1;
}

static uint64_t set_memory(struct fake_vhost *f, const struct message *m, const int *fds,
			   unsigned nfds)
{
	bool ok = true;

	if (m->h.request == VHOST_USER_ADD_MEM_REG) {
		ok = nfds == 1 && add_region(f, &m->p.single.region, fds[0]);
	} else if (m->h.request == VHOST_USER_REM_MEM_REG) {
		ok = remove_region(f, m->p.single.region.guest_addr);
	} else {
		while (f->nregions)
			remove_region(f, f->regions[0].at.guest_addr);
		ok = nfds == m->p.memory.nregions;
		for (unsigned i = 0; ok && i < nfds; i++)
			ok = add_region(f, &m->p.memory.regions[i], fds[i]);
	}
	find_rings(f);
	atomic_store_relaxed(&f->known_regions, f->nregions); /* relaxed: nothing goes with it */
	return !ok;
}

/* A message without an answer of its own.  What the acknowledgement is. */
static uint64_t set(struct fake_vhost *f, const struct message *m, int *fds, unsigned nfds)
{
	struct fake_ring *ring = ring_of(f, m->p.u64 & VHOST_USER_VRING_INDEX_MASK);

	switch (m->h.request) {
	case VHOST_USER_SET_FEATURES:
		f->features = m->p.u64;
		return 0;
	case VHOST_USER_SET_PROTOCOL_FEATURES:
		f->protocol_features = m->p.u64;
		return 0;
	case VHOST_USER_SET_MEM_TABLE:
	case VHOST_USER_ADD_MEM_REG:
	case VHOST_USER_REM_MEM_REG:
		return set_memory(f, m, fds, nfds);
	case VHOST_USER_SET_VRING_NUM:
		ring->size = (uint16_t)m->p.state.num;
		return 0;
	case VHOST_USER_SET_VRING_BASE:
		ring->last_avail_idx = ring->used_idx = (uint16_t)m->p.state.num;
		return 0;
	case VHOST_USER_SET_VRING_ADDR:
		ring_of(f, m->p.addr.index)->addr = m->p.addr;
		find_rings(f);
		return 0;
	case VHOST_USER_SET_VRING_KICK:
	case VHOST_USER_SET_VRING_CALL:
		if (nfds == 1)
			take_fd(m->h.request == VHOST_USER_SET_VRING_KICK ? &ring->kick_fd
									  : &ring->call_fd,
				&fds[0]);
		return nfds != 1;
	case VHOST_USER_SET_VRING_ENABLE:
		ring->enabled = m->p.state.num;
		return 0;
	default:
		return 0;
	}
}

/* True: *m is the answer, but for its flags. */
static bool get(struct fake_vhost *f, struct message *m)
{
	const struct fake_vhost_config *c = &f->config;

	switch (m->h.request) {
	case VHOST_USER_GET_FEATURES:
		m->p.u64 = c->features;
		break;
	case VHOST_USER_GET_PROTOCOL_FEATURES:
		m->p.u64 = c->protocol_features;
		break;
	case VHOST_USER_GET_QUEUE_NUM:
		m->p.u64 = c->queue_num;
		break;
	case VHOST_USER_GET_MAX_MEM_SLOTS:
		m->p.u64 = c->mem_slots;
		break;
	case VHOST_USER_GET_CONFIG:
		memset(m->p.config.data, 0, sizeof(m->p.config.data));
		memcpy(m->p.config.data, &c->blk, sizeof(c->blk));
		return true; /* as long as what was asked */
	case VHOST_USER_GET_VRING_BASE:
		m->p.state.num = ring_of(f, m->p.state.index)->last_avail_idx;
		ring_of(f, m->p.state.index)->enabled = false;
		break;
	default:
		return false;
	}
	m->h.size = 8;
	return true;
}

static bool receive(struct fake_vhost *f, void *buf, size_t len, int *fds, unsigned *nfds)
{
	size_t at = 0;

	while (at < len) {
		struct pollfd p[] = {{.fd = f->sock, .events = POLLIN},
				     {.fd = f->stop_fd, .events = POLLIN}};
		unsigned n;
		ssize_t got;

		poll(p, 2, -1);
		if (p[1].revents)
			return false;
		got = unix_socket_recv(f->sock, (char *)buf + at, len - at, fds + *nfds,
				       UNIX_SOCKET_MAX_FDS - *nfds, &n);
		if (got <= 0 && got != -EAGAIN)
			return false;
		at += got > 0 ? (size_t)got : 0;
		*nfds += n;
	}
	return true;
}

static void one_message(struct fake_vhost *f)
{
	const struct fake_vhost_config *c = &f->config;
	int fds[UNIX_SOCKET_MAX_FDS];
	enum fake_spoil spoil = FAKE_FINE;
	struct message m;
	unsigned nfds = 0;
	uint64_t ack;

	if (!receive(f, &m.h, sizeof(m.h), fds, &nfds) || m.h.size > sizeof(m.p) ||
	    !receive(f, &m.p, m.h.size, fds, &nfds) || m.h.request >= VHOST_USER_REQUEST_MAX) {
		f->dead = true;
	} else {
		if (m.h.request == c->spoil_request && f->messages[m.h.request] >= c->spoil_at)
			spoil = c->spoil;
		f->messages[m.h.request]++;
		if (get(f, &m)) {
			send_answer(f, &m, spoil);
		} else {
			ack = set(f, &m, fds, nfds);
			if (m.h.flags & VHOST_USER_FLAG_NEED_REPLY) {
				m.p.u64 = spoil == FAKE_REFUSE ? 1 : ack;
				m.h.size = 8;
				send_answer(f, &m, spoil);
			} else if (ack) {
				f->dead = true;
			}
		}
	}
	for (unsigned i = 0; i < nfds; i++)
		fd_close(&fds[i]);
}

/* ---- the life of a client, and ours ---- */

static void serve_client(struct fake_vhost *f)
{
	struct pollfd p[2 + FAKE_RINGS];

	while (!f->dead) {
		p[0] = (struct pollfd){.fd = f->stop_fd, .events = POLLIN};
		p[1] = (struct pollfd){.fd = f->sock, .events = POLLIN};
		for (unsigned i = 0; i < FAKE_RINGS; i++)
			p[2 + i] = (struct pollfd){.fd = f->rings[i].kick_fd, .events = POLLIN};
		poll(p, 2 + FAKE_RINGS, -1);
		if (p[0].revents)
			return;
		/* Messages first: memory that a request uses has been told of before. */
		if (p[1].revents)
			one_message(f);
		for (unsigned i = 0; i < FAKE_RINGS; i++) {
			if (p[2 + i].revents) {
				f->kicks++;
				eventfd_clear(f->rings[i].kick_fd);
			}
			run_ring(f, &f->rings[i]);
		}
	}
}

static void begin_client(struct fake_vhost *f)
{
	for (unsigned i = 0; i < FAKE_RINGS; i++)
		f->rings[i] = (struct fake_ring){.kick_fd = -1, .call_fd = -1};
	f->features = f->protocol_features = 0;
	f->nrequests = 0;
	f->dead = false;
	f->clients++;
}

static void end_client(struct fake_vhost *f)
{
	for (unsigned i = 0; i < FAKE_RINGS; i++) {
		fd_close(&f->rings[i].kick_fd);
		fd_close(&f->rings[i].call_fd);
	}
	while (f->nregions)
		remove_region(f, f->regions[0].at.guest_addr);
	fd_close(&f->sock);
}

static void *run(void *arg)
{
	struct fake_vhost *f = arg;

	for (;;) {
		struct pollfd p[] = {{.fd = f->stop_fd, .events = POLLIN},
				     {.fd = f->listen_fd, .events = POLLIN}};

		poll(p, 2, -1);
		if (p[0].revents)
			return NULL;
		f->sock = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (f->sock < 0)
			continue;
		begin_client(f);
		serve_client(f);
		end_client(f);
	}
}

void fake_vhost_config_init(struct fake_vhost_config *c)
{
	*c = (struct fake_vhost_config){
		.features = VIRTIO_BIT(VIRTIO_F_VERSION_1) |
			    VIRTIO_BIT(VIRTIO_RING_F_INDIRECT_DESC) |
			    VIRTIO_BIT(VIRTIO_RING_F_EVENT_IDX) | VIRTIO_BIT(VIRTIO_BLK_F_SEG_MAX) |
			    VIRTIO_BIT(VIRTIO_BLK_F_BLK_SIZE) | VIRTIO_BIT(VIRTIO_BLK_F_FLUSH) |
			    VIRTIO_BIT(VIRTIO_BLK_F_MQ) | VIRTIO_BIT(VIRTIO_BLK_F_DISCARD) |
			    VIRTIO_BIT(VIRTIO_BLK_F_WRITE_ZEROES) |
			    VIRTIO_BIT(VHOST_USER_F_PROTOCOL_FEATURES),
		.protocol_features = PF(MQ) | PF(REPLY_ACK) | PF(CONFIG) | PF(CONFIGURE_MEM_SLOTS),
		.queue_num = 2,
		.mem_slots = FAKE_REGIONS,
		.blk = {.capacity = 2048,
			.seg_max = 126,
			.blk_size = 512,
			.num_queues = 2,
			.max_discard_sectors = 2048,
			.max_discard_seg = 1,
			.max_write_zeroes_sectors = 2048,
			.max_write_zeroes_seg = 1},
	};
}

static void listen_on(struct fake_vhost *f, const struct fake_vhost_config *c)
{
	struct error err;

	memset(f, 0, sizeof(*f));
	f->config = *c;
	f->sock = -1;
	strcpy(f->folder, "/tmp/rs-drv-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->socket, sizeof(f->socket), "%s/s", f->folder);
	snprintf(f->target, sizeof(f->target), "vhost-user-blk:%s", f->socket);
	f->disk_bytes = 1 << 20;
	f->disk = calloc(1, f->disk_bytes);
	assert_non_null(f->disk);
	f->listen_fd = unix_socket_listen(f->socket, &err);
	f->stop_fd = eventfd_create();
	assert_true(f->listen_fd >= 0 && f->stop_fd >= 0);
}

void fake_vhost_start(struct fake_vhost *f, const struct fake_vhost_config *c)
{
	listen_on(f, c);
	assert_int_equal(pthread_create(&f->thread, NULL, run, f), 0);
}

void fake_vhost_fork(struct fake_vhost *f, const struct fake_vhost_config *c)
{
	listen_on(f, c);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (!f->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		run(f);
		_exit(0);
	}
	/* Else the socket would go on listening when the child is dead. */
	fd_close(&f->listen_fd);
}

void fake_vhost_stop(struct fake_vhost *f)
{
	if (f->pid) {
		kill(f->pid, SIGKILL);
		waitpid(f->pid, NULL, 0);
	} else {
		eventfd_signal(f->stop_fd);
		pthread_join(f->thread, NULL);
	}
	fd_close(&f->listen_fd);
	fd_close(&f->stop_fd);
	free(f->disk);
	unlink(f->socket);
	rmdir(f->folder);
}
