/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The poll set of a loop.
 *
 * A poller is in the active list (looked at in every pass) or in the idle list (armed, never
 * touched).  It joins by poller_wake() and leaves in one of three ways: the loop goes to sleep, it
 * found nothing for POLLER_STAY_NS while others kept the loop awake, or its mode is off.
 */
#include "base/defer.h"
#include "loop/loop_internal.h"

/* Rejoining costs a notification; staying costs some 10 ns a pass. */
#define POLLER_STAY_NS 1000000u

static const struct poll_policy_limits *limits_of(const struct loop *loop, const struct poller *p)
{
	return p->limits ? p->limits : &loop->limits;
}

static void detach(struct loop *loop, struct poller *p)
{
	if (loop->cursor == &p->node)
		loop->cursor = p->node.prev;
	list_remove(&p->node);
	if (p->active)
		loop->active_count--;
	p->active = p->begun = false;
	loop->spin_known = false;
}

static void join(struct loop *loop, struct poller *p)
{
	list_push_back(&loop->active, &p->node);
	p->active = true;
	p->begun = false;
	p->last_work_ns = loop->now_ns;
	loop->active_count++;
}

void loop_add_poller(struct loop *loop, struct poller *p)
{
	ASSERT(!p->loop);
	p->loop = loop;
	list_init(&p->node);
	p->active = false;
	poller_wake(p);
}

void loop_remove_poller(struct loop *loop, struct poller *p)
{
	if (!p->loop)
		return;
	ASSERT(p->loop == loop);
	detach(loop, p);
	p->loop = NULL;
}

void poller_wake(struct poller *p)
{
	struct loop *loop = p->loop;

	if (!loop)
		return;
	loop->spin_known = false; /* its limits may be others than before */
	if (p->active && p->begun)
		return;
	loop->woken = true;
	if (!p->active) {
		list_remove(&p->node);
		join(loop, p);
	}
}

/* True: it has work and stays. */
static bool try_leave(struct loop *loop, struct poller *p)
{
	if (p->ops->end(p)) {
		p->begun = false;
		return true;
	}
	detach(loop, p);
	list_push_back(&loop->idle, &p->node);
	return false;
}

bool loop_poll_all(struct loop *loop)
{
	bool found = false;

	/* Pollers come (at the end) and go (any of them) while this runs. */
	loop->woken = false;
	loop->polled_ns = loop->now_ns;
	loop->cursor = &loop->active;
	while (loop->cursor->next != &loop->active) {
		struct list *node = loop->cursor->next;
		struct poller *p = list_entry(node, struct poller, node);

		loop->cursor = node;
		if (unlikely(!p->begun)) {
			p->begun = true;
			p->ops->begin(p);
		}
		if (p->ops->poll(p)) {
			found = true;
			if (loop->cursor == node)
				p->last_work_ns = loop->now_ns;
		} else if (loop->cursor == node && limits_of(loop, p)->mode == POLL_OFF) {
			found |= try_leave(loop, p);
		}
	}
	loop->cursor = NULL;
	return found;
}

static uint64_t stay_ns(const struct loop *loop, const struct poller *p)
{
	const struct poll_policy_limits *limits = limits_of(loop, p);

	if (limits->mode == POLL_ALWAYS)
		return UINT64_MAX;
	if (limits->mode == POLL_FIXED)
		return MAX(limits->fixed_ns, (uint64_t)POLLER_STAY_NS);
	return POLLER_STAY_NS;
}

void loop_poll_retire(struct loop *loop)
{
	loop->cursor = &loop->active;
	while (loop->cursor->next != &loop->active) {
		struct poller *p = list_entry(loop->cursor->next, struct poller, node);

		loop->cursor = &p->node;
		/* By the time of the last look: it may be long ago, if the thread did not run. */
		if (p->begun && loop->polled_ns - p->last_work_ns > stay_ns(loop, p) &&
		    try_leave(loop, p))
			loop->woken = true; /* look at it before any sleep */
	}
	loop->cursor = NULL;
}

static uint64_t spin_of(const struct loop *loop, const struct poll_policy_limits *limits)
{
	uint64_t learned = poll_policy_spin_ns(&loop->policy);

	switch (limits->mode) {
	case POLL_OFF:
		return 0;
	case POLL_FIXED:
		return limits->fixed_ns;
	case POLL_ALWAYS:
		return POLL_SPIN_FOREVER;
	case POLL_ADAPTIVE:
		break;
	}
	return limits->max_ns ? MIN(learned, limits->max_ns) : learned;
}

uint64_t loop_poll_spin_ns(const struct loop *loop)
{
	uint64_t longest = 0;
	struct list *pos;

	list_for_each (pos, &loop->active) {
		const struct poller *p = list_entry(pos, struct poller, node);
		uint64_t spin = spin_of(loop, limits_of(loop, p));

		longest = MAX(longest, spin);
	}
	return longest;
}

bool loop_poll_arm(struct loop *loop)
{
	struct list *node;
	bool work = false;

	defer_begin(); /* what an engine has kept for the end of the pass must not wait for a kick
			*/
	loop->woken = false;
	loop->cursor = &loop->active;
	while (!work && loop->cursor->next != &loop->active) {
		struct poller *p = list_entry(loop->cursor->next, struct poller, node);

		loop->cursor = &p->node;
		p->begun = false;
		work = p->ops->end(p);
	}
	loop->cursor = NULL;
	defer_end();
	/* Those that are armed already stay in the set, too, and are begun in the next pass. */
	if (work || loop->woken)
		return false;
	while ((node = list_pop_front(&loop->active))) {
		list_entry(node, struct poller, node)->active = false;
		list_push_back(&loop->idle, node);
	}
	loop->active_count = 0;
	return true;
}

void loop_poll_disarm(struct loop *loop)
{
	while (!list_empty(&loop->idle))
		poller_wake(list_entry(loop->idle.next, struct poller, node));
}
