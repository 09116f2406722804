/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work put off to the end of a pass, so that what is produced in one pass is published in one step.
 *
 * A thread opens a section with defer_begin(); inside it, defer_call() notes work once, however
 * often it is asked for; the outermost defer_end() runs it in the order noted.  Work noted by that
 * work (a submission that completes inline and now wants its used index published) runs in the same
 * defer_end().  State is one section a thread; nothing is allocated; the caller owns struct defer.
 */
#ifndef BASE_DEFER_H
#define BASE_DEFER_H

#include "base/list.h"

struct defer {
	struct slist_node node;
	void (*run)(struct defer *d);
	bool noted;
};

static inline void defer_init(struct defer *d, void (*run)(struct defer *d))
{
	d->node.next = NULL;
	d->run = run;
	d->noted = false;
}

void defer_begin(void);
void defer_end(void);

/* Inside a section: note it for the end.  Outside of any section: run it now. */
void defer_call(struct defer *d);

/* Forget it if it is noted (its owner goes away).  Control path: walks the list. */
void defer_cancel(struct defer *d);

#endif
