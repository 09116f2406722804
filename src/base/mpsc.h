/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue with many producers and one consumer, without locks: producers push onto a stack, the
 * consumer takes the whole stack and turns it round.  Nodes belong to whoever pushed them until
 * they are handed out.
 */
#ifndef BASE_MPSC_H
#define BASE_MPSC_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/list.h"

struct mpsc {
	struct slist_node *head;
};

static inline void mpsc_init(struct mpsc *q)
{
	q->head = NULL;
}

/* Any thread. */
static inline void mpsc_push(struct mpsc *q, struct slist_node *n)
{
	struct slist_node *old = atomic_load_relaxed(&q->head); /* relaxed: the exchange decides */

	do {
		n->next = old;
	} while (!atomic_cmpxchg(&q->head, &old, n)); /* [MPSC1] releases *n to the consumer */
}

/* Any thread; a hint unless ordered by the caller. */
static inline bool mpsc_maybe_nonempty(const struct mpsc *q)
{
	return atomic_load_relaxed(&q->head) != NULL; /* relaxed: the caller fences [LOOP1] */
}

/* The consumer: everything pushed so far, oldest first, appended to out. */
static inline void mpsc_take_all(struct mpsc *q, struct slist *out)
{
	struct slist taken;
	struct slist_node *n;

	if (!mpsc_maybe_nonempty(q))
		return;
	n = atomic_xchg(&q->head, NULL); /* [MPSC1] acquires what the producers wrote */
	slist_init(&taken);
	while (n) {
		struct slist_node *next = n->next;

		slist_push_front(&taken, n);
		n = next;
	}
	slist_append(out, &taken);
}

#endif
