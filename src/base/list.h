/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive lists.  `struct list` is doubly linked and circular (removal without the head);
 * `struct slist` is a singly linked FIFO whose split and join are one step.
 * The element owns its node; a list owns nothing.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/compiler.h"

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}
static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}
static inline void list_insert_between(struct list *node, struct list *prev, struct list *next)
{
	node->prev = prev;
	node->next = next;
	prev->next = node;
	next->prev = node;
}
static inline void list_push_back(struct list *head, struct list *node)
{
	list_insert_between(node, head->prev, head);
}
static inline void list_push_front(struct list *head, struct list *node)
{
	list_insert_between(node, head, head->next);
}
/* Afterwards the node is a list of its own: removing it again does nothing. */
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}
static inline struct list *list_pop_front(struct list *head)
{
	struct list *node = head->next;

	if (node == head)
		return NULL;
	list_remove(node);
	return node;
}

#define list_entry(node, type, member) container_of(node, type, member)
#define list_for_each(pos, head)       for (pos = (head)->next; pos != (head); pos = pos->next)
/* pos may be removed (and freed) in the body; tmp may not. */
#define list_for_each_safe(pos, tmp, head)                                                         \
	for (pos = (head)->next, tmp = pos->next; pos != (head); pos = tmp, tmp = pos->next)

struct slist_node {
	struct slist_node *next;
};
struct slist {
	struct slist_node *first, *last;
};

static inline void slist_init(struct slist *l)
{
	l->first = l->last = NULL;
}
static inline bool slist_empty(const struct slist *l)
{
	return !l->first;
}
static inline void slist_push_back(struct slist *l, struct slist_node *n)
{
	n->next = NULL;
	if (l->last)
		l->last->next = n;
	else
		l->first = n;
	l->last = n;
}
static inline void slist_push_front(struct slist *l, struct slist_node *n)
{
	n->next = l->first;
	l->first = n;
	if (!l->last)
		l->last = n;
}
static inline struct slist_node *slist_pop_front(struct slist *l)
{
	struct slist_node *n = l->first;

	if (n) {
		l->first = n->next;
		if (!l->first)
			l->last = NULL;
		n->next = NULL;
	}
	return n;
}
/* Everything on src goes behind dst, in order; src is empty afterwards. */
static inline void slist_append(struct slist *dst, struct slist *src)
{
	if (slist_empty(src))
		return;
	if (dst->last)
		dst->last->next = src->first;
	else
		dst->first = src->first;
	dst->last = src->last;
	slist_init(src);
}

#endif
