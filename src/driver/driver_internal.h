/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the driver library know of each other: devices and queues whatever their
 * transport, and the table of functions that a transport fills in.
 *
 * The public functions (device.c, queue.c) check what the caller asks, keep the slots of requests
 * in flight, and call the transport.  A queue belongs to its one thread; a device's fields are
 * constant after open but for what its transport guards itself.
 */
#ifndef DRIVER_DRIVER_INTERNAL_H
#define DRIVER_DRIVER_INTERNAL_H

#include "base/compiler.h"
#include "base/error.h"
#include "driver/uri.h"
#include "loop/poll_policy.h"
#include "ringside/driver.h"

enum driver_op {
	DRIVER_READ,
	DRIVER_WRITE,
	DRIVER_FLUSH,
	DRIVER_DISCARD,
	DRIVER_WRITE_ZEROES,
	DRIVER_GET_ID,
};

/* A request in flight. */
struct driver_slot {
	void *cookie;
	uint64_t bytes;
	struct driver_slot *next_free;
	unsigned index;
	uint32_t in_bytes; /* the transport's: what the server may write */
	bool in_flight;
};

/* A request as the caller gave it; checked, on the stack. */
struct driver_request {
	enum driver_op op;
	bool may_unmap;
	uint64_t offset_bytes;
	uint64_t len_bytes;
	const struct iovec *iov; /* READ, WRITE, GET_ID */
	unsigned iovcnt;
};

struct driver_queue_ops {
	/* Writes it into the ring.  0; -EAGAIN: full; -EFAULT. */
	int (*put)(struct ringside_queue *q, const struct driver_request *req,
		   struct driver_slot *slot);
	void (*publish)(struct ringside_queue *q);
	bool (*tell)(struct ringside_queue *q);
	/* Takes one.  1: *slot and *result; 0: none; negative: the queue is broken. */
	int (*take)(struct ringside_queue *q, struct driver_slot **slot, int *result);
	/* Asks for a notification on wait_fds[0] after `after` more; true: there already. */
	bool (*arm)(struct ringside_queue *q, unsigned after);
	/* No notifications, please. */
	void (*disarm)(struct ringside_queue *q);
	/* wait_fds[0] was found readable; called before the next take().  NULL: nothing to do. */
	void (*woken)(struct ringside_queue *q);
	/* How many notifications came since this was called last.  NULL: not counted. */
	uint64_t (*calls)(struct ringside_queue *q);
	/* A system call: 0, or the error that broke it (the server has gone). */
	int (*check)(struct ringside_queue *q);
};

struct driver_transport {
	const char *scheme; /* "vhost-user-blk" */
	/* Opens everything, queues started.  0 and *out with ops, info, queues set; or an error. */
	int (*open)(const struct uri *uri, const struct ringside_options *options,
		    struct ringside_device **out, struct error *err);
	void (*close)(struct ringside_device *dev);
	int (*memory_alloc)(struct ringside_device *dev, size_t len_bytes, void **out,
			    struct error *err);
	int (*memory_map)(struct ringside_device *dev, void *addr, size_t len_bytes, int fd,
			  uint64_t offset_bytes, struct error *err);
	int (*memory_free)(struct ringside_device *dev, void *addr, struct error *err);
};

/* First member of the transport's own struct. */
struct ringside_device {
	const struct driver_transport *transport;
	struct ringside_info info;
	struct ringside_queue **queues; /* info.queues of them */
};

#define DRIVER_WAIT_FDS 2

/* First member of the transport's own struct. */
struct ringside_queue {
	const struct driver_queue_ops *ops;
	struct ringside_device *dev;
	struct driver_slot *slots; /* info.depth */
	struct driver_slot *free_slots;
	unsigned in_flight;
	unsigned looks_for_nothing; /* since something was found */
	bool armed;
	int broken; /* 0, or the error; sticky */
	/* What a sleeper waits for: the notification, and the end of the server; -1: none.  With
	 * EPOLLET an eventfd need not be read after each wake-up. */
	int wait_fds[DRIVER_WAIT_FDS];
	uint32_t wait_events[DRIVER_WAIT_FDS];
	int epoll_fd; /* both of them: slept on here, or in the caller's loop */
	struct poll_policy policy;
	uint64_t idle_since_ns;
	struct ringside_stats stats;
};

/* Slots, policy and epoll descriptor; the transport has set dev, ops, wait_fds and wait_events.
 * depth: the device's.  0 or -errno with *err. */
int driver_queue_init(struct ringside_queue *q, unsigned depth, struct error *err) must_check;
void driver_queue_fini(struct ringside_queue *q);

/* The transports.  inproc is a module of its own, so that the plain library needs no engine. */
extern const struct driver_transport driver_vhost_user_blk;
extern const struct driver_transport driver_inproc __attribute__((weak));

#endif
