/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics as JSON: from the counters' structs to objects of jansson.  Knows no disk, no export
 * and no thread; whoever has them hands their numbers in.  Control thread.
 *
 * Every function returns a new reference, or NULL when out of memory.
 */
#ifndef CONTROL_STATISTICS_H
#define CONTROL_STATISTICS_H

#include <jansson.h>

#include "block/channel.h"
#include "loop/loop.h"
#include "ring/queue.h"

/* Read while the queue's iothread goes on counting: whole words, not one moment. */
json_t *statistics_queue(unsigned index, unsigned iothread, const struct queue_stats *queue,
			 const struct blk_channel_stats *channel, const struct loop_stats *loop);

json_t *statistics_iothread(unsigned index, const struct loop_stats *loop);

struct statistics_export {
	const char *id;
	const char *path; /* NULL: the engine has no file */
	const char *engine;
	const char *socket; /* NULL: a descriptor was handed in */
	bool connected;
};

/* Takes over queues, an array. */
json_t *statistics_export(const struct statistics_export *e, json_t *queues);

/* Takes over both arrays. */
json_t *statistics_root(const char *version, json_t *exports, json_t *iothreads);

/* One line, with its line feed; the caller's (free).  NULL when out of memory.  Takes over root. */
char *statistics_line(json_t *root);

#endif
