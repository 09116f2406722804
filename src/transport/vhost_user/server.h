/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vhost-user back-end: one socket, one device, one client at a time.
 *
 * Everything here runs on the control thread.  The server goes on listening when a client leaves;
 * a second client beside a live one is refused.
 */
#ifndef TRANSPORT_VHOST_USER_SERVER_H
#define TRANSPORT_VHOST_USER_SERVER_H

#include "device/virtio_device.h"
#include "loop/iothread.h"

struct vhost_user_server;

struct vhost_user_server_config {
	const char *name;  /* for messages; copied */
	struct loop *loop; /* the control thread's */
	struct virtio_device *device;
	/* Where queues run: a started queue goes to the thread with the least load.  The arrays are
	 * the caller's, shared by all servers, and outlive them; load counts started queues. */
	struct iothread *const *iothreads;
	unsigned *iothread_load;
	unsigned niothreads;
	const struct poll_policy_limits
		*poll; /* of this device's queues; NULL = the loop's; copied */
	/* One of the two; both become the server's, and are closed on failure, too. */
	int listen_fd; /* a listening socket, or -1 */
	int client_fd; /* a connected socket, or -1: then the server serves this one client */
	/* The client left and its queues have drained; may be NULL. */
	void (*client_left)(void *arg);
	void *arg;
};

/* NULL with *err set on failure. */
struct vhost_user_server *vhost_user_server_create(const struct vhost_user_server_config *config,
						   struct error *err);

/* Stops listening, stops the rings, waits for their requests (the loop goes on running), then
 * frees the server and calls stopped. */
void vhost_user_server_stop(struct vhost_user_server *s, void (*stopped)(void *arg), void *arg);

bool vhost_user_server_connected(const struct vhost_user_server *s);

struct vhost_user_queue_info {
	unsigned index;
	int iothread; /* where it runs, or ran last; -1: never started */
	bool running;
	const struct queue_stats *stats; /* cumulative over clients; whole words, may move on */
};

/* Calls fn for every queue that was ever started. */
void vhost_user_server_queues(const struct vhost_user_server *s,
			      void (*fn)(const struct vhost_user_queue_info *info, void *arg),
			      void *arg);

#endif
