/* SPDX-License-Identifier: Apache-2.0 */
#include "control/statistics.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"

/* A counter as its writer left it a moment ago; relaxed: a statistic. */
#define COUNTER(p) ((json_int_t)atomic_load_relaxed(p))

static json_t *latency(const struct histogram *source)
{
	struct histogram h = {0};

	histogram_merge(&h, source);
	return json_pack("{sI sI sI sI sI sI}", "count", (json_int_t)h.count, "mean_ns",
			 (json_int_t)(h.count ? h.sum_ns / h.count : 0), "p50_ns",
			 (json_int_t)histogram_percentile_ns(&h, 50), "p99_ns",
			 (json_int_t)histogram_percentile_ns(&h, 99), "p999_ns",
			 (json_int_t)histogram_percentile_ns(&h, 99.9), "max_ns",
			 (json_int_t)(h.count ? h.max_ns : 0));
}

json_t *statistics_queue(unsigned index, unsigned iothread, const struct queue_stats *queue,
			 const struct blk_channel_stats *channel, const struct loop_stats *loop)
{
	return json_pack("{si si sI sI sI sI sI sI sI sI sI sI sI sI so}", "index", (int)index,
			 "iothread", (int)iothread, "requests", COUNTER(&queue->requests),
			 "batches", COUNTER(&queue->batches), "merged", (json_int_t)channel->merged,
			 "kicks_received", COUNTER(&queue->kicks_received), "calls_sent",
			 COUNTER(&queue->calls_sent), "calls_suppressed",
			 COUNTER(&queue->calls_suppressed), "spin_hits",
			 (json_int_t)loop->spin_hits, "spin_misses", (json_int_t)loop->spin_misses,
			 "time_spun_ns", (json_int_t)loop->time_spun_ns, "time_slept_ns",
			 (json_int_t)loop->time_slept_ns, "errors", COUNTER(&queue->errors),
			 "bytes", COUNTER(&queue->bytes), "latency", latency(&queue->latency));
}

json_t *statistics_iothread(unsigned index, const struct loop_stats *loop)
{
	return json_pack("{si sI sI sI sI sI sI}", "index", (int)index, "passes",
			 (json_int_t)loop->passes, "sleeps", (json_int_t)loop->sleeps, "spin_hits",
			 (json_int_t)loop->spin_hits, "spin_misses", (json_int_t)loop->spin_misses,
			 "time_spun_ns", (json_int_t)loop->time_spun_ns, "time_slept_ns",
			 (json_int_t)loop->time_slept_ns);
}

/* A path is any bytes, JSON is UTF-8: what is not becomes '?'. */
static json_t *text_or_null(const char *text)
{
	json_t *j;
	char *ascii;

	if (!text)
		return json_null();
	j = json_string(text);
	if (j)
		return j;
	ascii = strdup(text);
	if (!ascii)
		return NULL;
	for (char *p = ascii; *p; p++) {
		if (*p & 0x80)
			*p = '?';
	}
	j = json_string(ascii);
	free(ascii);
	return j;
}

json_t *statistics_export(const struct statistics_export *e, json_t *queues)
{
	return json_pack("{so so so so sb so}", "id", text_or_null(e->id), "path",
			 text_or_null(e->path), "engine", text_or_null(e->engine), "socket",
			 text_or_null(e->socket), "connected", (int)e->connected, "queues", queues);
}

json_t *statistics_root(const char *version, json_t *exports, json_t *iothreads)
{
	return json_pack("{ss so so}", "version", version, "exports", exports, "iothreads",
			 iothreads);
}

char *statistics_line(json_t *root)
{
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	char *line = NULL;
	size_t len;

	json_decref(root);
	if (!text)
		return NULL;
	len = strlen(text);
	line = realloc(text, len + 2);
	if (!line) {
		free(text);
		return NULL;
	}
	memcpy(line + len, "\n", 2);
	return line;
}
