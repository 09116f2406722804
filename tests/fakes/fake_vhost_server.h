/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vhost-user-blk server that does what it is told, right or wrong: a thread (or a process, that
 * can be killed) which speaks just enough for one client at a time, over a disk in memory.
 *
 * The script is in the configuration: which message is answered badly, and which request.
 */
#ifndef FAKES_FAKE_VHOST_SERVER_H
#define FAKES_FAKE_VHOST_SERVER_H

#include <pthread.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "spec/vhost_user.h"
#include "spec/virtio.h"

/* How the answer to one kind of message is spoiled.  ACK: of messages without an answer of their
 * own, when the client asks for one. */
enum fake_spoil {
	FAKE_FINE,
	FAKE_SILENT,   /* no answer */
	FAKE_DRIP,     /* a byte at a time, for ever */
	FAKE_CUT,      /* half of it, and then the end of the connection */
	FAKE_HANG_UP,  /* the end of the connection */
	FAKE_HALVES,   /* all of it, in two parts: nothing is wrong with that */
	FAKE_OTHER,    /* as the answer to another request */
	FAKE_SHORT,    /* a size that is smaller */
	FAKE_LONG,     /* ... larger */
	FAKE_HUGE,     /* ... 0xffffffff */
	FAKE_NO_FLAG,  /* not marked as an answer */
	FAKE_REFUSE,   /* a non-zero acknowledgement */
	FAKE_FDS,      /* with three descriptors; all else is right */
	FAKE_MANY_FDS, /* with more descriptors than anybody takes */
};

/* What happens to one request. */
enum fake_fault {
	FAKE_ANSWER,
	FAKE_NEVER,      /* neither it nor what follows is answered */
	FAKE_DIE,        /* the connection ends */
	FAKE_KILLED,     /* the process ends; fake_vhost_fork() only */
	FAKE_TWICE,      /* its used element is written twice */
	FAKE_ID_BEYOND,  /* the element names a descriptor that the ring does not have */
	FAKE_ID_IDLE,    /* ... a request that is not in flight */
	FAKE_JUMP,       /* the index moves on by a thousand */
	FAKE_BACK,       /* the index moves back to before the first, and stays there */
	FAKE_TOO_MUCH,   /* more bytes written than there was room for */
	FAKE_NO_STATUS,  /* no status is written */
	FAKE_BAD_STATUS, /* one that nobody knows */
	FAKE_IOERR,
	FAKE_UNSUPP,
};

struct fake_vhost_config {
	uint64_t features, protocol_features, queue_num, mem_slots;
	struct virtio_blk_config blk; /* little-endian, as on the wire */
	uint32_t spoil_request;       /* VHOST_USER_…; 0: none */
	enum fake_spoil spoil;
	unsigned spoil_at; /* which of its kind, counted from 0, and all that follow */
	enum fake_fault fault;
	unsigned fault_at; /* which request, counted from 0 */
	unsigned delay_ms; /* before that */
};

#define FAKE_RINGS   4
#define FAKE_REGIONS 16

struct fake_region {
	struct vhost_user_memory_region at;
	char *host;
};

struct fake_ring {
	struct vhost_user_vring_addr addr;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t size, last_avail_idx, used_idx;
	int kick_fd, call_fd;
	bool enabled;
};

struct fake_vhost {
	struct fake_vhost_config config;
	char folder[32];
	char socket[64];
	char target[96];

	pthread_t thread;
	pid_t pid; /* of the process; 0: a thread */
	int listen_fd, stop_fd;

	/* The server's own. */
	int sock;
	uint64_t features, protocol_features;
	struct fake_region regions[FAKE_REGIONS];
	unsigned nregions;
	struct fake_ring rings[FAKE_RINGS];
	unsigned nrequests; /* that came on any ring, this client's */
	bool dead;          /* hangs up after this message or request */
	char *disk;
	uint64_t disk_bytes;

	unsigned known_regions; /* nregions, for the test at any time, atomically */
	/* For the test, when the server has been stopped. */
	unsigned clients;
	unsigned messages[VHOST_USER_REQUEST_MAX];
	unsigned most_regions;
	uint64_t kicks;
};

/* A good server: 1 MiB, two queues, everything that our client asks for. */
void fake_vhost_config_init(struct fake_vhost_config *c);

void fake_vhost_start(struct fake_vhost *f, const struct fake_vhost_config *c);
/* The same in a child; before any thread is started. */
void fake_vhost_fork(struct fake_vhost *f, const struct fake_vhost_config *c);
void fake_vhost_stop(struct fake_vhost *f);

#endif
