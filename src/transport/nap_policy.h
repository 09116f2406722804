/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a queue naps, and for how long: pure numbers, no clock, no system call.
 *
 * A driver that keeps many requests going is busy, not waiting for the next completion.  Instead of
 * being armed for its very next request its queue then *naps*: unarmed, for the time in which a
 * quarter of them comes round, so that one look and one call do for many.  By Little's law that is
 * at most a quarter of what a request takes the driver anyway.
 *
 * How many it keeps going is what the ring tells.  But with a device that is quick a busy driver
 * has one request there at a time for ever, though the next is on its way already.  That is
 * *sounded*: now and then a nap is long enough to see how many come.  A driver that was held up by
 * kicks and calls gives more in it than it gave before in that time; one that gives as many as ever
 * (its requests come when they come) gains nothing by a nap and would only wait, and is left alone.
 *
 * A nap looks up now and then and ends when the driver has stopped giving: then the driver waits.
 */
#ifndef TRANSPORT_NAP_POLICY_H
#define TRANSPORT_NAP_POLICY_H

#include <stdbool.h>
#include <stdint.h>

struct nap_policy {
	/* Between requests, means. */
	uint64_t gap_ns;      /* lately */
	uint64_t base_gap_ns; /* while it was armed between them */
	uint32_t base_count;  /* samples in base_gap_ns, up to its weight */
	uint64_t work_ns;     /* when work was found last */
	bool armed;           /* since then */

	uint32_t taken; /* since it was last about to sleep */

	/* The nap that is on. */
	bool sounding;
	uint64_t begin_ns, end_ns, look_ns;
	uint32_t nap_taken; /* since it began */
	uint32_t given;     /* by the driver, taken or not, when it was looked at last */
	uint64_t given_ns;  /* when that had grown last */

	/* Whether what the ring tells is to be trusted: a driver that polls, or waits, gives
	 * little. */
	uint32_t expected; /* requests in this nap */
	uint32_t distrust; /* what nap_skip starts from */
	uint32_t nap_skip; /* so many armings without a nap */

	/* What soundings have found. */
	uint32_t depth;     /* 0: nothing that is hidden */
	uint32_t good;      /* one more for each that found something, half for one that did not */
	uint32_t naps_left; /* until the next one */
	uint32_t skip;      /* so many armings until the next one */
	uint32_t penalty;   /* what skip starts from */
};

void nap_policy_init(struct nap_policy *p, uint64_t now_ns);

/* Work was found and `taken` requests were taken. */
void nap_policy_note_work(struct nap_policy *p, uint64_t now_ns, uint32_t taken);

/*
 * The queue is about to be armed.  outstanding: what the driver has given and not seen the end of.
 * True: let it nap, and call nap_policy_look() at look_ns.
 */
bool nap_policy_begin(struct nap_policy *p, uint64_t now_ns, uint32_t outstanding);

/* In a nap: backlog is what the driver has given and nobody has taken.  True: nap on, until
 * look_ns; false: it is over. */
bool nap_policy_look(struct nap_policy *p, uint64_t now_ns, uint32_t backlog);

#endif
