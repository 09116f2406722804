/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the vhost-user transport share.
 *
 * server.c   listening, the one client, stop
 * session.c  a connection: bytes in, checked messages, replies out, waiting, closing
 * messages.c what each message does
 * vring.c    a ring: its configuration (control thread) and its life on an iothread
 * memory.c   the client's memory tables
 */
#ifndef TRANSPORT_VHOST_USER_INTERNAL_H
#define TRANSPORT_VHOST_USER_INTERNAL_H

#include "proto/vhost_message.h"
#include "transport/queue_poller.h"
#include "transport/vhost_user/server.h"

#define VHOST_USER_MAX_MEM_SLOTS 509

struct session;

struct vhost_vring {
	struct vhost_user_server *server;
	unsigned index;

	/* Control thread: what the client said. */
	uint32_t num;
	struct vhost_user_vring_addr addr;
	bool have_addr;
	uint16_t base;
	bool kicked; /* SET_VRING_KICK came: started, in the words of the specification */
	int enable;  /* SET_VRING_ENABLE: 0 or 1; -1: not said */
	int kick_fd, call_fd, err_fd;

	/* Control thread: what the ring does. */
	bool running;    /* an iothread has it */
	bool stopping;   /* and lets its requests end */
	bool complained; /* a failed start was logged; until the next message about the ring */
	int iothread;    /* index; -1: never ran */

	/* The iothread's while running. */
	struct virtq vq;
	struct queue_poller poller;

	/* From the iothread to the control thread. */
	struct loop_msg drained_msg;
	struct loop_msg broken_msg;
};

/* What a session waits for before it goes on; the number of things that must still happen. */
struct session_wait {
	unsigned pending;
	void (*then)(struct session *s);
};

struct session {
	struct vhost_user_server *server;
	struct loop_fd socket;
	bool closing;

	/* The message that is being received or handled. */
	struct vhost_user_header header;
	union vhost_user_payload payload;
	size_t received_bytes; /* of header and payload together */
	int fds[VHOST_MESSAGE_MAX_FDS];
	unsigned nfds;

	/* The reply that is being sent. */
	char reply[sizeof(struct vhost_user_header) + sizeof(union vhost_user_payload)];
	size_t reply_bytes, reply_sent;

	struct session_wait wait;

	bool have_features;
	uint64_t features;
	uint64_t protocol_features;
	uint8_t status;

	struct guest_memory *memory;
	struct guest_memory
		*released_memory;     /* the table whose end the current message waits for */
	struct loop_fd broken_memory; /* eventfd: a file shrank under us */
	int backend_req_fd;
	struct loop_msg destroy_msg;
};

struct vhost_user_server {
	struct vhost_user_server_config config;
	struct poll_policy_limits poll;
	char *name;
	struct loop_fd listener;
	struct session *session;        /* the live or closing client, or NULL */
	int next_client_fd;             /* came while the last one was closing; -1 */
	struct loop_timer accept_again; /* after descriptors ran out */
	struct vhost_vring *
		*vrings; /* queue_count; made when first named, kept for their statistics */
	unsigned nvrings;
	bool stopping;
	void (*stopped)(void *arg);
	void *stopped_arg;
};

/* ---- session.c ---- */

/* Takes over fd.  NULL (fd closed) when out of memory or descriptors. */
struct session *session_create(struct vhost_user_server *server, int fd);

/* Ends the connection: one log line with why (none when why is NULL), rings stop, and when all has
 * drained the session is freed and the server told. */
void session_close(struct session *s, const char *why);

/* Sends a reply to the current message: header as specified, size bytes of payload. */
void session_reply(struct session *s, const void *payload, uint32_t size);

/* Handling of the current message goes on in `then` when `pending` things have happened, each told
 * by session_wait_done().  Until then nothing is read.  pending may be 0. */
void session_wait(struct session *s, unsigned pending, void (*then)(struct session *s));
void session_wait_done(struct session *s);

/* The current message is done: acknowledge it if asked; ret < 0 says it was refused. */
void session_finish(struct session *s, int ret, const struct error *err);

bool session_has_protocol(const struct session *s, enum vhost_user_protocol_feature f);

/* Takes descriptor i of the current message out of it; the caller's from then on. */
int session_take_fd(struct session *s, unsigned i);

/* ---- messages.c ---- */

/* Runs the handler of the current, checked message. */
void message_dispatch(struct session *s);

/* ---- vring.c ---- */

struct vhost_vring *vring_get(struct vhost_user_server *server, unsigned index);
void vring_free(struct vhost_vring *v);

/* Starts the ring if all that it needs has been said.  A start that fails is logged. */
void vring_update(struct vhost_vring *v);
void vring_update_all(struct vhost_user_server *server);

/* Asks a running ring to stop.  Returns 1 if session_wait_done() will be called when it has, 0 if
 * it was not running.  Its index is then in v->base. */
unsigned vring_stop(struct vhost_vring *v);
unsigned vring_stop_all(struct vhost_user_server *server);

/* Back to what a new client finds; not running. */
void vring_reset(struct vhost_vring *v);

/* New descriptors, taken over; a running ring gets them without stopping.  0 or -errno. */
int vring_set_kick(struct vhost_vring *v, int fd);
void vring_set_call(struct vhost_vring *v, int fd);
void vring_set_err(struct vhost_vring *v, int fd);

bool vring_any_broken(const struct vhost_user_server *server);

/* Gives every running ring the session's memory table. */
void vring_memory_changed(struct vhost_user_server *server);

/* ---- memory.c ---- */

/* Handlers; they finish the message themselves. */
void memory_set_table(struct session *s);
void memory_add_region(struct session *s);
void memory_remove_region(struct session *s);
/* The rings have stopped: drops the table. */
void memory_drop(struct session *s);
/* A table as one ring holds it; NULL when out of memory. */
struct virtq_mem *memory_for_ring(struct session *s);

/* ---- server.c ---- */

/* The session is gone (freed by the caller afterwards). */
void server_session_ended(struct vhost_user_server *server);

#endif
