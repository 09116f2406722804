/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report_points.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/html.h"

double report_point_value(const struct bench_point *point, enum report_dim dim)
{
	switch (dim) {
	case REPORT_BLOCK:
		return point->params.block_bytes;
	case REPORT_DEPTH:
		return point->params.iodepth;
	case REPORT_JOBS:
		return point->params.jobs;
	case REPORT_RATE:
		return point->params.rate;
	default:
		return 0;
	}
}

static bool alike(const struct report_item *a, const struct report_item *b, enum report_dim dim)
{
	switch (dim) {
	case REPORT_TARGET:
		return a->target == b->target;
	case REPORT_RW:
		return !strcmp(a->point->params.rw, b->point->params.rw);
	case REPORT_COMPLETION:
		return !strcmp(a->point->params.completion, b->point->params.completion);
	default:
		return report_point_value(a->point, dim) == report_point_value(b->point, dim);
	}
}

/* In every dimension of the mask. */
static bool all_alike(const struct report_item *a, const struct report_item *b, unsigned mask)
{
	for (unsigned dim = 0; dim < REPORT_DIMS; dim++) {
		if (mask & (1u << dim) && !alike(a, b, dim))
			return false;
	}
	return true;
}

/* A point like an earlier one in all its parameters is of a target that was named twice. */
static unsigned find_target(struct report_points *p, size_t i)
{
	const struct report_item *item = &p->items[i];
	unsigned again = 0;

	for (size_t k = 0; k < i; k++) {
		if (!strcmp(p->items[k].point->target, item->point->target))
			again += all_alike(&p->items[k], item, REPORT_ALL & ~(1u << REPORT_TARGET));
	}
	for (unsigned t = 0; t < p->targets; t++) {
		if (!strcmp(p->target_points[t]->target, item->point->target) && !again--)
			return t;
	}
	p->target_points[p->targets] = item->point;
	return p->targets++;
}

int report_points_init(struct report_points *p, const struct bench_point *points, size_t count)
{
	*p = (struct report_points){.count = count};
	p->items = calloc(count + 1, sizeof(p->items[0]));
	p->target_points = calloc(count + 1, sizeof(p->target_points[0]));
	if (!p->items || !p->target_points) {
		report_points_fini(p);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		p->items[i] = (struct report_item){.point = &points[i], .order = i};
		p->items[i].target = find_target(p, i);
	}
	return 0;
}

void report_points_fini(struct report_points *p)
{
	free(p->items);
	free(p->target_points);
	*p = (struct report_points){0};
}

/* ---- order ---- */

static int by_order(const void *x, const void *y)
{
	const struct report_item *a = x, *b = y;

	return (a->order > b->order) - (a->order < b->order);
}

#define BY(field)                                                                                  \
	if (a->field != b->field)                                                                  \
	return a->field < b->field ? -1 : 1

static int by_group(const void *x, const void *y)
{
	const struct report_item *a = x, *b = y;

	BY(group);
	BY(target);
	return by_order(x, y);
}

static int by_group_and_depth(const void *x, const void *y)
{
	const struct report_item *a = x, *b = y;

	BY(group);
	BY(target);
	BY(point->params.iodepth);
	return by_order(x, y);
}

static int by_group_and_block(const void *x, const void *y)
{
	const struct report_item *a = x, *b = y;

	BY(group);
	BY(target);
	BY(point->params.block_bytes);
	return by_order(x, y);
}

static unsigned group_mask(enum report_dim x)
{
	return REPORT_ALL & ~(1u << REPORT_TARGET) & ~(1u << x);
}

void report_points_sort(struct report_points *p, enum report_dim x)
{
	qsort(p->items, p->count, sizeof(p->items[0]), by_order);
	for (size_t i = 0; i < p->count; i++) {
		size_t k = 0;

		while (k < i && !all_alike(&p->items[k], &p->items[i], group_mask(x)))
			k++;
		p->items[i].group = k; /* the first of its kind gives it the number */
	}
	qsort(p->items, p->count, sizeof(p->items[0]),
	      x == REPORT_DEPTH   ? by_group_and_depth
	      : x == REPORT_BLOCK ? by_group_and_block
				  : by_group);
}

size_t report_points_line(const struct report_item *items, size_t n, enum report_dim x)
{
	size_t len = 1;

	if (x == REPORT_NO_DIM)
		return 1;
	while (len < n && items[len].group == items[0].group &&
	       items[len].target == items[0].target)
		len++;
	return len;
}

/* The items of the first group, and how many lines they are. */
static size_t first_group(const struct report_item *items, size_t n, enum report_dim x,
			  unsigned *lines)
{
	size_t end = 0;

	while (end < n && items[end].group == items[0].group) {
		end += report_points_line(&items[end], n - end, x);
		++*lines;
	}
	return end;
}

size_t report_points_plot(const struct report_item *items, size_t n, enum report_dim x,
			  unsigned most)
{
	size_t end = 0, pattern = 0;
	unsigned lines = 0;

	while (end < n) {
		size_t len = first_group(&items[end], n - end, x, &lines);

		if (end && lines > most)
			break;
		end += len;
		if (alike(&items[0], &items[end - 1], REPORT_RW))
			pattern = end;
	}
	return end < n ? pattern : end;
}

unsigned report_points_varying(const struct report_item *items, size_t n)
{
	unsigned mask = 0;

	for (unsigned dim = 0; dim < REPORT_DIMS; dim++) {
		for (size_t i = 1; i < n; i++) {
			if (!alike(&items[0], &items[i], dim))
				mask |= 1u << dim;
		}
	}
	return mask;
}

size_t report_points_common(const struct report_item *items, size_t n)
{
	const char *first = items[0].point->target;
	size_t common = strlen(first);

	for (size_t i = 1; i < n; i++) {
		size_t len = 0;

		while (len < common && items[i].point->target[len] == first[len])
			len++;
		common = len;
	}
	while (common && first[common - 1] != '/' && first[common - 1] != ':')
		common--;
	return common;
}

/* ---- names ---- */

char report_target_letter(unsigned target)
{
	return (char)('A' + target % 26);
}

static void describe(char *buf, size_t len, const struct bench_params *params, enum report_dim dim)
{
	char number[HTML_NUMBER_LEN];

	switch (dim) {
	case REPORT_RW:
		snprintf(buf, len, "%s", params->rw);
		break;
	case REPORT_BLOCK:
		snprintf(buf, len, "%s", html_bytes(number, params->block_bytes));
		break;
	case REPORT_DEPTH:
		snprintf(buf, len, "depth %u", params->iodepth);
		break;
	case REPORT_JOBS:
		snprintf(buf, len, "%u job%s", params->jobs, params->jobs == 1 ? "" : "s");
		break;
	case REPORT_COMPLETION:
		snprintf(buf, len, "%s", params->completion);
		break;
	case REPORT_RATE:
		if (params->rate > 0)
			snprintf(buf, len, "%s/s", html_count(number, params->rate));
		else
			snprintf(buf, len, "closed loop");
		break;
	default:
		buf[0] = '\0';
	}
}

void report_label(char *buf, size_t len, const struct bench_point *point, unsigned mask, size_t max)
{
	char rest[160] = "", part[64];
	size_t used = 0, room;

	for (unsigned dim = REPORT_RW; dim < REPORT_DIMS; dim++) {
		if (!(mask & (1u << dim)))
			continue;
		describe(part, sizeof(part), &point->params, dim);
		used += (size_t)snprintf(rest + used, sizeof(rest) - used, "%s%s", used ? ", " : "",
					 part);
		if (used >= sizeof(rest))
			break;
	}
	if (!(mask & (1u << REPORT_TARGET))) {
		html_shorten(buf, len, rest, max);
		return;
	}
	used = html_length(rest) + 2;
	room = max > used + 10 ? max - used : 10;
	html_shorten(buf, len, point->target, rest[0] ? room : max);
	used = strlen(buf);
	if (rest[0] && used < len)
		snprintf(buf + used, len - used, ", %s", rest);
}
