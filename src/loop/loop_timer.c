/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: a list by deadline.  There are few, and they are seldom touched.
 */
#include "loop/loop_internal.h"

static void update_first(struct loop *loop)
{
	const struct list *first = loop->timers.next;

	loop->timer_ns = list_empty(&loop->timers)
				 ? UINT64_MAX
				 : list_entry(first, struct loop_timer, node)->deadline_ns;
}

void loop_timer_start(struct loop *loop, struct loop_timer *t, uint64_t deadline_ns)
{
	struct list *pos;

	loop_timer_stop(loop, t);
	t->deadline_ns = deadline_ns;
	t->armed = true;
	/* From the back: a new deadline is mostly the latest.  Equal ones stay in order. */
	for (pos = loop->timers.prev; pos != &loop->timers; pos = pos->prev) {
		if (list_entry(pos, struct loop_timer, node)->deadline_ns <= deadline_ns)
			break;
	}
	list_insert_between(&t->node, pos, pos->next);
	update_first(loop);
}

void loop_timer_stop(struct loop *loop, struct loop_timer *t)
{
	if (!t->armed)
		return;
	t->armed = false;
	list_remove(&t->node);
	update_first(loop);
}

void loop_timers_run(struct loop *loop)
{
	struct list due, *node;

	/* Off the list first: one that starts itself again in the past waits for the next pass. */
	list_init(&due);
	while ((node = loop->timers.next) != &loop->timers &&
	       list_entry(node, struct loop_timer, node)->deadline_ns <= loop->now_ns) {
		list_remove(node);
		list_push_back(&due, node);
	}
	update_first(loop);
	while ((node = list_pop_front(&due))) {
		struct loop_timer *t = list_entry(node, struct loop_timer, node);

		t->armed = false;
		t->expired(t);
	}
}
