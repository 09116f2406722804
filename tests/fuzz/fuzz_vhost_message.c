/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vhost-user session under any client: the whole back-end (transport, ring, device, block layer,
 * memory engine, an iothread) behind a socket pair.  The input is a list of things that a client
 * does, most of them nearly right messages.  At the end the client goes, and everything must drain.
 *
 * The control loop is this thread's; the client is a message that posts itself again, so that it
 * acts between the passes of the loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/unix_socket.h"
#include "device/virtio_blk.h"
#include "fuzz_input.h"
#include "ring/virtq_driver.h"
#include "spec/vhost_user.h"
#include "spec/virtio.h"
#include "transport/vhost_user/server.h"

#define MEMORY_BYTES (1u << 20)
#define GPA          0x100000ull
#define USER         0x7e0000000000ull
#define RING_SIZE    16
#define META_OFFSET  0x10000u
#define DATA_OFFSET  0x20000u

#define PATIENCE_PASSES 1000

int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct loop *loop;
static struct iothread *iothreads[1];
static unsigned iothread_load[1];
static struct virtio_device *device;
static struct vhost_user_server *server;
static int memfd;
static char *memory;
static struct virtq_driver driver;

static struct {
	struct loop_msg step, stop;
	struct fuzz_input in;
	int socket;
	int kick;        /* one that the server has a copy of; -1 */
	unsigned waited; /* passes, for the server to read */
} client;

/* ---- the world ---- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct poll_policy_limits off = {.mode = POLL_OFF};
	struct disk_config disk = {.id = "fuzz",
				   .ops = &engine_memory,
				   .engine = {.fd = -1, .size_bytes = 1u << 20},
				   .block_bytes = 512,
				   .discard = true};
	struct virtio_blk_config_options options = {.name = "fuzz", .queues = 4, .discard = true};
	struct disk *d;
	struct error err;

	signal(SIGPIPE, SIG_IGN); /* as the daemon does */
	log_set_level(LOG_ERROR);
	loop = loop_create(&off);
	iothreads[0] = iothread_create("fuzz", &off, &err);
	d = disk_create(&disk, &err);
	ASSERT(loop && iothreads[0] && d);
	device = virtio_blk_create(&options, d, &err);
	memfd = memfd_create("fuzz", MFD_CLOEXEC);
	ASSERT(device && memfd >= 0 && ftruncate(memfd, MEMORY_BYTES) == 0);
	memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	ASSERT(memory != MAP_FAILED);
	return 0;
}

/* A ring with some requests in it. */
static void make_ring(void)
{
	struct virtq_driver_config config = {.size = RING_SIZE,
					     .event_idx = true,
					     .memory = memory,
					     .memory_iova = GPA,
					     .kick_fd = -1};
	struct error err;

	ASSERT(virtq_driver_init(&driver, &config, &err) == 0);
	for (unsigned i = 0; i < 4; i++) {
		struct virtio_blk_outhdr *h = (void *)(memory + META_OFFSET + 64 * i);
		struct virtq_buf bufs[3] = {{GPA + META_OFFSET + 64 * i, sizeof(*h)},
					    {GPA + DATA_OFFSET + 4096 * i, 512},
					    {GPA + META_OFFSET + 64 * i + 32, 1}};

		*h = (struct virtio_blk_outhdr){.sector = htole64(i)};
		ASSERT(virtq_driver_put(&driver, bufs, 1, 2, NULL) == 0);
	}
	virtq_driver_publish(&driver);
}

/* ---- what a client does ---- */

/* The payload that a good client would send; its size. */
static uint32_t good_payload(uint32_t request, uint8_t queue, union vhost_user_payload *p)
{
	struct vhost_user_memory_region region = {GPA, MEMORY_BYTES, USER, 0};
	struct virtq_driver_layout at;

	memset(p, 0, sizeof(*p));
	switch (request) {
	case VHOST_USER_SET_FEATURES:
		p->u64 = VIRTIO_BIT(VIRTIO_F_VERSION_1) | VIRTIO_BIT(VIRTIO_BLK_F_FLUSH) |
			 VIRTIO_BIT(VIRTIO_RING_F_EVENT_IDX) |
			 (queue & 1 ? VIRTIO_BIT(VHOST_USER_F_PROTOCOL_FEATURES) : 0);
		return 8;
	case VHOST_USER_SET_PROTOCOL_FEATURES:
		p->u64 = VIRTIO_BIT(VHOST_USER_PROTOCOL_F_MQ) |
			 VIRTIO_BIT(VHOST_USER_PROTOCOL_F_REPLY_ACK) |
			 VIRTIO_BIT(VHOST_USER_PROTOCOL_F_CONFIG) |
			 VIRTIO_BIT(VHOST_USER_PROTOCOL_F_BACKEND_REQ) |
			 VIRTIO_BIT(VHOST_USER_PROTOCOL_F_RESET_DEVICE) |
			 VIRTIO_BIT(VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS) |
			 VIRTIO_BIT(VHOST_USER_PROTOCOL_F_STATUS);
		return 8;
	case VHOST_USER_SET_MEM_TABLE:
		p->memory.nregions = 1;
		p->memory.regions[0] = region;
		return 8 + sizeof(region);
	case VHOST_USER_ADD_MEM_REG:
	case VHOST_USER_REM_MEM_REG:
		p->single.region = region;
		return sizeof(p->single);
	case VHOST_USER_SET_VRING_NUM:
		p->state = (struct vhost_user_vring_state){queue, RING_SIZE};
		return 8;
	case VHOST_USER_SET_VRING_ENABLE:
		p->state = (struct vhost_user_vring_state){queue, 1};
		return 8;
	case VHOST_USER_SET_VRING_BASE:
	case VHOST_USER_GET_VRING_BASE:
		p->state.index = queue;
		return 8;
	case VHOST_USER_SET_VRING_ADDR:
		virtq_driver_layout(RING_SIZE, 0, &at);
		p->addr.index = queue;
		p->addr.desc_user_addr = USER + at.desc_offset;
		p->addr.avail_user_addr = USER + at.avail_offset;
		p->addr.used_user_addr = USER + at.used_offset;
		return sizeof(p->addr);
	case VHOST_USER_SET_VRING_KICK:
	case VHOST_USER_SET_VRING_CALL:
	case VHOST_USER_SET_VRING_ERR:
		p->u64 = queue;
		return 8;
	case VHOST_USER_SET_STATUS:
		p->u64 = queue;
		return 8;
	case VHOST_USER_GET_CONFIG:
	case VHOST_USER_SET_CONFIG:
		p->config.offset = queue;
		p->config.size = 60;
		p->config.data[32] = 1;
		return VHOST_USER_CONFIG_HEADER_BYTES + 60;
	default:
		return 0;
	}
}

static unsigned good_fds(uint32_t request)
{
	switch (request) {
	case VHOST_USER_SET_MEM_TABLE:
	case VHOST_USER_ADD_MEM_REG:
	case VHOST_USER_SET_VRING_KICK:
	case VHOST_USER_SET_VRING_CALL:
	case VHOST_USER_SET_VRING_ERR:
	case VHOST_USER_SET_BACKEND_REQ_FD:
		return 1;
	default:
		return 0;
	}
}

static int make_fd(uint32_t request, uint8_t kind)
{
	switch (kind & 7) {
	case 1:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 2:
		return dup(client.socket);
	case 3:
		return memfd_create("empty", MFD_CLOEXEC);
	case 4:
		return dup(memfd);
	default:
		if (request == VHOST_USER_SET_MEM_TABLE || request == VHOST_USER_ADD_MEM_REG)
			return dup(memfd);
		return eventfd_create();
	}
}

/* The server may have hung up, or not have read: no matter. */
static void send_bytes(const void *buf, size_t len, const int *fds, unsigned nfds)
{
	if (unix_socket_send(client.socket, buf, len, fds, nfds) < 0)
		return;
}

/* One message: a good one, with some of it replaced. */
static void send_message(void)
{
	struct fuzz_input *in = &client.in;
	struct { /* as on the wire: no gap between the two */
		struct vhost_user_header h;
		union vhost_user_payload p;
	} __attribute__((packed)) m;
	union vhost_user_payload good;
	uint32_t request = fuzz_u8(in) % (VHOST_USER_REQUEST_MAX + 2), len;
	uint8_t how = fuzz_u8(in), queue = how >> 6;
	unsigned nfds = good_fds(request), patches = how & 1 ? fuzz_u8(in) & 7 : 0;
	int fds[8];

	m.h = (struct vhost_user_header){.request = request, .flags = VHOST_USER_VERSION};
	len = m.h.size = good_payload(request, queue, &good);
	m.p = good;
	if (how & 2)
		m.h.flags |= VHOST_USER_FLAG_NEED_REPLY;
	while (patches--) {
		uint16_t at = fuzz_u16(in) % sizeof(m);

		((uint8_t *)&m)[at] = fuzz_u8(in);
	}
	if (how & 4)
		m.h.size = len = fuzz_u16(in) % 400;
	if (how & 8)
		len = fuzz_u8(in); /* not what the header says */
	if (how & 16)
		nfds = fuzz_u8(in) % 9;
	len = MIN(len, (uint32_t)sizeof(m.p));
	for (unsigned i = 0; i < nfds; i++) {
		fds[i] = make_fd(request, how & 32 ? fuzz_u8(in) : 0);
		ASSERT(fds[i] >= 0);
	}
	send_bytes(&m, sizeof(m.h) + len, fds, nfds);
	for (unsigned i = 0; i < nfds; i++) {
		if (request == VHOST_USER_SET_VRING_KICK && i == 0) {
			fd_close(&client.kick);
			client.kick = fds[0];
		} else {
			fd_close(&fds[i]);
		}
	}
}

static void read_replies(void)
{
	char buf[1024];

	while (recv(client.socket, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
}

static void stopped(void *arg)
{
	loop_stop(loop);
}

static void stop_server(struct loop_msg *m)
{
	vhost_user_server_stop(server, stopped, NULL);
}

static void client_left(void *arg)
{
	loop_post(loop, &client.stop);
}

/* Has it read what was sent?  It need not: it may wait for a ring to drain, or have hung up. */
static bool server_has_read(void)
{
	int unread;

	if (client.waited++ < PATIENCE_PASSES && ioctl(client.socket, SIOCOUTQ, &unread) == 0 &&
	    unread)
		return false;
	client.waited = 0;
	return true;
}

static void client_step(struct loop_msg *msg)
{
	struct fuzz_input *in = &client.in;
	uint8_t what;

	if (!server_has_read()) {
		loop_post(loop, &client.step);
		return;
	}
	if (!in->left) {
		/* The server may hold a copy of this very socket: closing would not be enough. */
		shutdown(client.socket, SHUT_RDWR);
		fd_close(&client.socket);
		return;
	}
	what = fuzz_u8(in);
	switch (what & 7) {
	default:
		send_message();
		break;
	case 4: /* raw bytes */
		send_bytes(in->at, MIN(in->left, (size_t)(what >> 3)), NULL, 0);
		break;
	case 5:
		read_replies();
		break;
	case 6:
		if (client.kick >= 0)
			eventfd_signal(client.kick);
		break;
	case 7: /* scribble into the rings */
		memory[fuzz_u16(in) % 0x800] = (char)fuzz_u8(in);
		break;
	}
	loop_post(loop, &client.step);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vhost_user_server_config config = {.name = "fuzz",
						  .loop = loop,
						  .device = device,
						  .iothreads = iothreads,
						  .iothread_load = iothread_load,
						  .niothreads = 1,
						  .listen_fd = -1,
						  .client_left = client_left};
	struct error err;
	int pair[2];

	make_ring();
	ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	config.client_fd = pair[0];
	client.socket = pair[1];
	client.kick = -1;
	client.in = (struct fuzz_input){data, size};
	client.step.run = client_step;
	client.stop.run = stop_server;
	server = vhost_user_server_create(&config, &err);
	ASSERT(server);
	loop_post(loop, &client.step);
	loop_run(loop);
	ASSERT(iothread_load[0] == 0);
	fd_close(&client.socket);
	fd_close(&client.kick);
	virtq_driver_fini(&driver);
	return 0;
}
