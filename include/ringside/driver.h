/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver half: talk to a disk server as a virtual machine's driver would, from a program.
 *
 *     vhost-user-blk:/run/vm.sock          a virtio-blk server over vhost-user
 *     file:/path/disk.img?engine=io_uring  Ringside's own engines, in this process
 *
 * A target is opened as a *device* with one or more *queues*.  A request is submitted in three
 * steps, so that a batch costs one index store and at most one notification:
 *
 *     put       ringside_read() and its like write requests into the ring; nobody sees them yet
 *     publish   ringside_publish() shows the server all that were put
 *     tell      ringside_tell() notifies the server, if it sleeps
 *
 * and its completion is found by looking (ringside_poll(), no system call), by sleeping
 * (ringside_wait()), or by looking for as long as that pays and then sleeping (ringside_hybrid()).
 *
 * Threads: functions on one queue are called by one thread at a time; different queues by different
 * threads at once.  Functions on a device may be called by any thread, but ringside_close() only
 * when nobody uses the device or its queues any more.  No function starts a thread, but for
 * file: targets with engine=threads.
 *
 * Errors: a negative errno.  Functions that can fail for a reason that a number does not carry
 * take a struct ringside_error, which may be NULL; its text is one line for a person and is set
 * only on failure.  What a *request* came to is in its completion.
 *
 * Units are in the names: _bytes, _ns, _ms.  Offsets and lengths are multiples of the device's
 * block_bytes.
 */
#ifndef RINGSIDE_DRIVER_H
#define RINGSIDE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RINGSIDE_API __attribute__((visibility("default")))

struct ringside_device;
struct ringside_queue;

struct ringside_error {
	char text[512];
};

/* ---- devices ---- */

struct ringside_options {
	size_t struct_bytes;   /* sizeof(struct ringside_options); lets it grow */
	unsigned queues;       /* 1 .. what the server has; 0: 1 */
	unsigned depth;        /* requests that a queue can hold, 1 .. 1024; 0: 128 */
	unsigned max_segments; /* most parts of a readv or writev, 1 .. 1022; 0: 16 */
	unsigned timeout_ms;   /* for the server's answer to a message; 0: 5000 */
	bool hugepages;        /* memory in huge pages, if there are any; else ordinary pages */
};

/* Everything 0, which means the defaults above. */
#define RINGSIDE_OPTIONS_INIT                                                                      \
	{                                                                                          \
		.struct_bytes = sizeof(struct ringside_options)                                    \
	}

/* What the target is; constant for as long as it is open. */
struct ringside_info {
	size_t struct_bytes; /* the caller's sizeof(struct ringside_info) */
	uint64_t capacity_bytes;
	uint32_t block_bytes; /* logical block: 512 .. */
	uint32_t max_segments;
	uint64_t max_transfer_bytes; /* of a read or write */
	uint64_t max_discard_bytes;  /* of one discard; 0: not supported */
	uint64_t max_write_zeroes_bytes;
	bool read_only;
	bool flush; /* the server has a volatile cache, and a flush is a real one */
	bool discard;
	bool write_zeroes;
	bool hugepages; /* memory of ringside_memory_alloc() is in huge pages */
	bool event_idx; /* VIRTIO_RING_F_EVENT_IDX was negotiated (VIRTIO 1.2, 2.7.7.1) */
	bool indirect;  /* VIRTIO_RING_F_INDIRECT_DESC was negotiated (2.7.5.3) */
	unsigned queues;
	unsigned depth;
	int server_pid; /* 0: unknown, or no other process */
};

/*
 * Opens a target.  target: "SCHEME:PATH", and after a '?' options of the scheme as KEY=VALUE, with
 * '&' between them; %XX is a byte.  vhost-user-blk: no options.  file: engine=auto|io_uring|
 * linux-aio|threads|null|memory, direct=on|off, size=BYTES (null and memory), readonly=on|off,
 * discard=on|off, depth=N (of the engine's kernel queue),
 * block-size=512|4096.
 *
 * options may be NULL for the defaults.  The features are negotiated and the queues started.
 * 0 and *out (the caller's, until ringside_close()), or -EINVAL (bad target or option), -ENOENT,
 * -ECONNREFUSED, -EBUSY, -ETIMEDOUT, -ENOTCONN (the server closed the connection: it may have
 * another client), -EPROTO (it breaks the rules), -EIO (it refused a message), -EOPNOTSUPP (it
 * lacks what we need), -ENOMEM, or what the system said.
 */
RINGSIDE_API int ringside_open(const char *target, const struct ringside_options *options,
			       struct ringside_device **out, struct ringside_error *err);

/* Stops the queues (the server finishes what is in flight, within the timeout; what it does not
 * finish is given up), unmaps all memory and frees the device.  NULL is allowed. */
RINGSIDE_API void ringside_close(struct ringside_device *dev);

/* info->struct_bytes must be set by the caller. */
RINGSIDE_API void ringside_info(const struct ringside_device *dev, struct ringside_info *info);

/* ---- memory ---- */

/*
 * Data is moved straight between the server and the caller's buffers, so it must be in memory that
 * the server has: lent by ringside_memory_alloc(), or the caller's own, mapped from a file that can
 * be shared (memfd, tmpfs, hugetlbfs) and made known by ringside_memory_map().  (file: takes any
 * memory.)
 *
 * Up to 8 pieces with any server, as many as it says with
 * VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS, and one of them is the library's own; queues run on
 * meanwhile.
 */

/* Memory of at least len_bytes, zeroed, aligned to a page.  0; -ENOMEM, -ENOSPC (no slot left), or
 * what the server's connection gave. */
RINGSIDE_API int ringside_memory_alloc(struct ringside_device *dev, size_t len_bytes, void **out,
				       struct ringside_error *err);

/*
 * The caller's mapping [addr, addr + len_bytes) of fd at offset_bytes, MAP_SHARED; page aligned.
 * The descriptor is not kept; the mapping must stay until ringside_memory_free() or
 * ringside_close().  Errors as above, and -EINVAL, -EEXIST (overlaps with a known piece).
 */
RINGSIDE_API int ringside_memory_map(struct ringside_device *dev, void *addr, size_t len_bytes,
				     int fd, uint64_t offset_bytes, struct ringside_error *err);

/* Takes the piece that begins at addr from the server and, if it was lent, unmaps it.  No request
 * that uses it is in flight.  0, -ENOENT, or what the server's connection gave. */
RINGSIDE_API int ringside_memory_free(struct ringside_device *dev, void *addr,
				      struct ringside_error *err);

/* ---- requests: put, publish, tell ---- */

/* The device's queue, index 0 .. queues - 1; NULL beyond. */
RINGSIDE_API struct ringside_queue *ringside_queue(struct ringside_device *dev, unsigned index);

/*
 * Each of these puts one request.  cookie comes back with the completion; buffers and the iovec's
 * memory belong to the request until then (the iovec array itself does not).
 *
 * 0, or nothing was put: -EAGAIN (the ring is full: come again after a completion), -EINVAL (not a
 * multiple of the block, no, empty or too many segments), -ERANGE (beyond the end, or longer than
 * the device takes), -EFAULT (not in memory that the server has), -EROFS, -EOPNOTSUPP, or the error
 * that broke the queue (see ringside_poll()).
 */
RINGSIDE_API int ringside_read(struct ringside_queue *q, uint64_t offset_bytes, void *buf,
			       size_t len_bytes, void *cookie);
RINGSIDE_API int ringside_write(struct ringside_queue *q, uint64_t offset_bytes, const void *buf,
				size_t len_bytes, void *cookie);
RINGSIDE_API int ringside_readv(struct ringside_queue *q, uint64_t offset_bytes,
				const struct iovec *iov, unsigned iovcnt, void *cookie);
RINGSIDE_API int ringside_writev(struct ringside_queue *q, uint64_t offset_bytes,
				 const struct iovec *iov, unsigned iovcnt, void *cookie);
/* Writes that had completed before this was put are on stable storage when it completes. */
RINGSIDE_API int ringside_flush(struct ringside_queue *q, void *cookie);
RINGSIDE_API int ringside_discard(struct ringside_queue *q, uint64_t offset_bytes,
				  uint64_t len_bytes, void *cookie);
/* may_unmap: the server may give the blocks back (VIRTIO 1.2, 5.2.6: unmap). */
RINGSIDE_API int ringside_write_zeroes(struct ringside_queue *q, uint64_t offset_bytes,
				       uint64_t len_bytes, bool may_unmap, void *cookie);
/* The serial number: RINGSIDE_ID_BYTES bytes, ended by a NUL only if shorter. */
#define RINGSIDE_ID_BYTES 20
RINGSIDE_API int ringside_get_id(struct ringside_queue *q, char *buf, void *cookie);

/* Shows the server all that was put.  One index store; nothing if nothing was put. */
RINGSIDE_API void ringside_publish(struct ringside_queue *q);

/* Notifies the server of what was published since the last time, if it sleeps.  True: notified.
 * (file: the batch is handed to the engine here, in one system call where it has one.) */
RINGSIDE_API bool ringside_tell(struct ringside_queue *q);

/* Publish and tell. */
RINGSIDE_API void ringside_submit(struct ringside_queue *q);

/* Requests put and not yet given back. */
RINGSIDE_API unsigned ringside_in_flight(const struct ringside_queue *q);

/* ---- completions ---- */

struct ringside_completion {
	void *cookie;
	int result; /* 0; -EIO, -EOPNOTSUPP: what the server said; or what broke the queue */
};

/*
 * Takes up to max completions that are there; never sleeps and, on a ring, makes no system call
 * (now and then, when it finds nothing for long, it looks whether the server still lives).
 * Completion notifications are off from here until a wait or ringside_arm().
 *
 * Returns how many, 0 if there are none.  When the server has gone (-ENOTCONN) or broken the rules
 * of the ring (-EPROTO), every request in flight is given back with that error; after that the
 * error itself is returned, for ever.
 */
RINGSIDE_API int ringside_poll(struct ringside_queue *q, struct ringside_completion *out,
			       unsigned max);

/*
 * Sleeps until min completions are there (at least 1, at most what is in flight; a server without
 * EVENT_IDX wakes at the first), or timeout_ns has passed (negative: no limit), and takes up to
 * max. With nothing in flight it returns 0 at once.  Arms, looks once more, sleeps on an eventfd:
 * what was put must have been published and told.  Returns as ringside_poll().
 */
RINGSIDE_API int ringside_wait(struct ringside_queue *q, struct ringside_completion *out,
			       unsigned max, unsigned min, int64_t timeout_ns);

/* The same, but looks first, for as long as has paid lately; never longer than a wake-up costs. */
RINGSIDE_API int ringside_hybrid(struct ringside_queue *q, struct ringside_completion *out,
				 unsigned max, unsigned min, int64_t timeout_ns);

/*
 * For the caller's own event loop: a descriptor that is readable when the armed queue has a
 * completion, or its server has gone, or now and then for nothing.  Belongs to the queue.  Use:
 * ringside_arm(); if it answers true call ringside_poll() now, else wait for the descriptor and
 * then call ringside_poll(), which disarms; when that finds no more, arm again.
 */
RINGSIDE_API int ringside_queue_fd(const struct ringside_queue *q);
RINGSIDE_API bool ringside_arm(struct ringside_queue *q);

/* ---- counters ---- */

struct ringside_stats {
	size_t struct_bytes;       /* the caller's sizeof(struct ringside_stats) */
	uint64_t requests;         /* put */
	uint64_t completions;      /* given back, errors included */
	uint64_t errors;           /* of them */
	uint64_t bytes;            /* moved by those that succeeded */
	uint64_t kicks_sent;       /* notifications of the server */
	uint64_t kicks_suppressed; /* tells that found it awake */
	uint64_t calls_received;   /* notifications by the server */
	uint64_t sleeps;
	uint64_t spins_hit;    /* hybrid: looking found something */
	uint64_t spins_missed; /* it did not, and slept */
	uint64_t system_calls; /* made by this queue: kicks, sleeps, reads of the eventfd; file:
				* submissions to the kernel, too */
};

/* By the queue's thread. stats->struct_bytes must be set by the caller. */
RINGSIDE_API void ringside_queue_stats(const struct ringside_queue *q,
				       struct ringside_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
