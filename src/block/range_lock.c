/* SPDX-License-Identifier: Apache-2.0 */
#include "block/range_lock.h"

#include "base/checked.h"

void range_lock_init(struct range_lock *l)
{
	pthread_mutex_init(&l->mutex, NULL);
	list_init(&l->held);
	list_init(&l->waiting);
}

void range_lock_fini(struct range_lock *l)
{
	ASSERT(list_empty(&l->held) && list_empty(&l->waiting));
	pthread_mutex_destroy(&l->mutex);
}

static bool conflict(const struct range_hold *a, const struct range_hold *b)
{
	return (a->exclusive || b->exclusive) &&
	       ranges_overlap(a->offset_bytes, a->len_bytes, b->offset_bytes, b->len_bytes);
}

/* Does anything on the list, up to but not including `end`, stand in h's way? */
static bool in_the_way(const struct list *head, const struct list *end, const struct range_hold *h)
{
	for (const struct list *n = head->next; n != end; n = n->next) {
		if (conflict(h, list_entry(n, struct range_hold, node)))
			return true;
	}
	return false;
}

bool range_lock_acquire(struct range_lock *l, struct range_hold *h)
{
	bool wait;

	pthread_mutex_lock(&l->mutex);
	wait = in_the_way(&l->held, &l->held, h) || in_the_way(&l->waiting, &l->waiting, h);
	list_push_back(wait ? &l->waiting : &l->held, &h->node);
	pthread_mutex_unlock(&l->mutex);
	return !wait;
}

void range_lock_release(struct range_lock *l, struct range_hold *h)
{
	struct list *n, *next;
	struct slist granted;
	struct slist_node *g;

	slist_init(&granted);
	pthread_mutex_lock(&l->mutex);
	list_remove(&h->node);
	list_for_each_safe (n, next, &l->waiting) {
		struct range_hold *w = list_entry(n, struct range_hold, node);

		/* Who did not wait for h waits for somebody who is still there. */
		if (!conflict(w, h) || in_the_way(&l->held, &l->held, w) ||
		    in_the_way(&l->waiting, n, w))
			continue;
		list_remove(n);
		list_push_back(&l->held, n);
		slist_push_back(&granted, &w->granted_node);
	}
	pthread_mutex_unlock(&l->mutex);
	/* Nobody releases what it was not told of: the nodes stay ours until then. */
	while ((g = slist_pop_front(&granted))) {
		struct range_hold *w = container_of(g, struct range_hold, granted_node);

		w->granted(w);
	}
}
