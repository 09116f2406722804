/* SPDX-License-Identifier: Apache-2.0 */
#include "base/defer.h"

static __thread struct {
	unsigned depth;
	struct slist noted;
} section;

void defer_begin(void)
{
	section.depth++;
}

void defer_end(void)
{
	struct slist_node *n;

	ASSERT(section.depth > 0);
	if (section.depth == 1) {
		/* Still inside the section while running: what is noted now joins this list. */
		while ((n = slist_pop_front(&section.noted))) {
			struct defer *d = container_of(n, struct defer, node);

			d->noted = false;
			d->run(d);
		}
	}
	section.depth--;
}

void defer_call(struct defer *d)
{
	if (!section.depth) {
		d->run(d);
		return;
	}
	if (d->noted)
		return;
	d->noted = true;
	slist_push_back(&section.noted, &d->node);
}

void defer_cancel(struct defer *d)
{
	struct slist keep;
	struct slist_node *n;

	if (!d->noted)
		return;
	d->noted = false;
	slist_init(&keep);
	while ((n = slist_pop_front(&section.noted))) {
		if (n != &d->node)
			slist_push_back(&keep, n);
	}
	section.noted = keep;
}
