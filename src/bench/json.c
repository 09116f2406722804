/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "base/compiler.h"

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static int add_figures(json_t *o, const struct bench_figures *f)
{
	const struct {
		const char *key;
		double value;
	} table[] = {
		{"iops", f->iops},
		{"bytes_per_s", f->bytes_per_s},
		{"mean_ns", f->mean_ns},
		{"p50_ns", f->p50_ns},
		{"p99_ns", f->p99_ns},
		{"p999_ns", f->p999_ns},
		{"max_ns", f->max_ns},
		{"kicks_per_request", f->kicks_per_request},
		{"calls_per_request", f->calls_per_request},
		{"system_calls_per_request", f->system_calls_per_request},
		{"client_cpu_ns_per_request", f->client_cpu_ns},
	};
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		ret |= json_object_set_new(o, table[i].key, number(table[i].value));
	ret |= json_object_set_new(o, "server_cpu_ns_per_request",
				   f->server_known ? number(f->server_cpu_ns) : json_null());
	ret |= json_object_set_new(o, "errors", json_integer((json_int_t)f->errors));
	return ret;
}

static int add_params(json_t *o, const struct bench_point *p)
{
	const struct bench_params *params = &p->params;
	int ret = 0;

	ret |= json_object_set_new(o, "target", json_string(p->target));
	ret |= json_object_set_new(o, "rw", json_string(params->rw));
	ret |= json_object_set_new(o, "bs", json_integer(params->block_bytes));
	ret |= json_object_set_new(o, "iodepth", json_integer(params->iodepth));
	ret |= json_object_set_new(o, "jobs", json_integer(params->jobs));
	ret |= json_object_set_new(o, "completion", json_string(params->completion));
	ret |= json_object_set_new(o, "rate",
				   params->rate > 0 ? number(params->rate) : json_null());
	ret |= json_object_set_new(o, "repeats", json_integer(p->repeats));
	return ret;
}

static json_t *floor_object(const struct bench_floor *f)
{
	return json_pack("{s:o, s:o, s:o}", "cache_line_ns", number(f->cache_line_ns), "eventfd_ns",
			 number(f->eventfd_ns), "system_call_ns", number(f->system_call_ns));
}

static json_t *point_object(const struct bench_point *p, const struct bench_floor *floor)
{
	json_t *o = json_object();
	int ret = add_params(o, p) | add_figures(o, &p->figures);

	if (p->has_ratio) {
		ret |= json_object_set_new(o, "ratio", number(p->ratio));
		ret |= json_object_set_new(o, "ratio_min", number(p->ratio_min));
		ret |= json_object_set_new(o, "ratio_max", number(p->ratio_max));
	}
	if (floor)
		ret |= json_object_set_new(o, "floor", floor_object(floor));
	if (ret == 0)
		return o;
	json_decref(o);
	return NULL;
}

int bench_json_print(const struct bench_point *points, size_t n, const struct bench_floor *floor,
		     FILE *out)
{
	json_t *array = json_array();
	int ret = 0;

	for (size_t i = 0; i < n; i++)
		ret |= json_array_append_new(array, point_object(&points[i], floor));
	/* The floor alone was asked for. */
	if (!n && floor)
		ret |= json_array_append_new(array,
					     json_pack("{s:o}", "floor", floor_object(floor)));
	if (ret == 0) {
		json_dumpf(array, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
		fputc('\n', out);
	}
	json_decref(array);
	return ret ? -ENOMEM : 0;
}
