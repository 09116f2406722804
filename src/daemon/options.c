/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of --disk: one table, and the two forms that fill a struct from it.
 */
#include "daemon/options.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/values.h"

/* What JSON may say besides a string. */
enum json_form { JSON_FORM_STRING, JSON_FORM_NUMBER, JSON_FORM_SWITCH };

struct key_type {
	enum json_form json;
	int (*parse)(const char *value, void *field, struct error *err);
};

static int parse_string(const char *value, void *field, struct error *err)
{
	char **string = field;

	if (!*value)
		return error_set(err, -EINVAL, "is empty");
	*string = strdup(value);
	return *string ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int parse_path(const char *value, void *field, struct error *err)
{
	if (strlen(value) >= PATH_MAX)
		return error_set(err, -ENAMETOOLONG, "has %zu bytes, at most %d are possible",
				 strlen(value), PATH_MAX - 1);
	return parse_string(value, field, err);
}

static int parse_id(const char *value, void *field, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";
	size_t len = strlen(value);

	if (!len || len > 64 || strspn(value, allowed) != len)
		return error_set(err, -EINVAL,
				 "'%.100s' is no id: 1 to 64 letters, digits, '-', '_' or '.'",
				 value);
	return parse_string(value, field, err);
}

static int parse_serial(const char *value, void *field, struct error *err)
{
	size_t len = strlen(value);

	if (len > DISK_SERIAL_MAX)
		return error_set(err, -EINVAL, "'%.100s' has %zu bytes, a guest sees at most %d",
				 value, len, DISK_SERIAL_MAX);
	for (size_t i = 0; i < len; i++) {
		if (value[i] < 0x20 || value[i] > 0x7e)
			return error_set(err, -EINVAL, "must be printable ASCII");
	}
	return parse_string(value, field, err);
}

static int parse_engine(const char *value, void *field, struct error *err)
{
	return engine_kind_parse(value, field, err);
}

static int parse_switch(const char *value, void *field, struct error *err)
{
	return value_switch(value, field, err);
}

static int parse_queues(const char *value, void *field, struct error *err)
{
	uint64_t v;
	int ret = value_number(value, 1, DISK_QUEUES_MAX, &v, err);

	if (ret == 0)
		*(unsigned *)field = (unsigned)v;
	return ret;
}

static int parse_block_size(const char *value, void *field, struct error *err)
{
	if (strcmp(value, "512") && strcmp(value, "4096"))
		return error_set(err, -EINVAL, "'%.100s' is neither 512 nor 4096", value);
	*(uint32_t *)field = value[0] == '5' ? 512 : 4096;
	return 0;
}

static int parse_size(const char *value, void *field, struct error *err)
{
	return value_size(value, field, err);
}

static int parse_poll(const char *value, void *field, struct error *err)
{
	return poll_policy_parse(value, field, err);
}

static const struct key_type type_path = {JSON_FORM_STRING, parse_path};
static const struct key_type type_id = {JSON_FORM_STRING, parse_id};
static const struct key_type type_serial = {JSON_FORM_STRING, parse_serial};
static const struct key_type type_engine = {JSON_FORM_STRING, parse_engine};
static const struct key_type type_poll = {JSON_FORM_STRING, parse_poll};
static const struct key_type type_switch = {JSON_FORM_SWITCH, parse_switch};
static const struct key_type type_queues = {JSON_FORM_NUMBER, parse_queues};
static const struct key_type type_block_size = {JSON_FORM_NUMBER, parse_block_size};
static const struct key_type type_size = {JSON_FORM_NUMBER, parse_size};

struct key_info {
	const char *name;
	const struct key_type *type;
	size_t offset; /* of the field in struct disk_options */
	const char *values;
	const char *help;
};

#define FIELD(name) offsetof(struct disk_options, name)

static const struct key_info keys[DISK_KEY_COUNT] = {
	[DISK_KEY_PATH] = {"path", &type_path, FIELD(path), "FILE",
			   "the image: a file or a block device"},
	[DISK_KEY_SOCKET] = {"socket", &type_path, FIELD(socket), "PATH",
			     "where the hypervisor connects; made with mode 0600"},
	[DISK_KEY_ID] = {"id", &type_id, FIELD(id), "NAME",
			 "the disk's name in messages and statistics (disk1, disk2, ...)"},
	[DISK_KEY_ENGINE] = {"engine", &type_engine, FIELD(engine), ENGINE_KIND_VALUES,
			     "what does the I/O (auto)"},
	[DISK_KEY_DIRECT] = {"direct", &type_switch, FIELD(direct), "on|off",
			     "go past the page cache (on where the file system can)"},
	[DISK_KEY_READONLY] = {"readonly", &type_switch, FIELD(readonly), "on|off",
			       "refuse writes (off)"},
	[DISK_KEY_QUEUES] = {"queues", &type_queues, FIELD(queues), "1..1024",
			     "the most queues that a client may start (128)"},
	[DISK_KEY_BLOCK_SIZE] = {"block-size", &type_block_size, FIELD(block_bytes), "512|4096",
				 "the guest's logical block (512)"},
	[DISK_KEY_SERIAL] = {"serial", &type_serial, FIELD(serial), "TEXT",
			     "at most 20 bytes that the guest sees (the id)"},
	[DISK_KEY_DISCARD] = {"discard", &type_switch, FIELD(discard), "on|off",
			      "offer discards and pass them down (on)"},
	[DISK_KEY_POLL] = {"poll", &type_poll, FIELD(poll), "adaptive|off|always|TIME",
			   "how long to look before sleeping (that of --poll)"},
	[DISK_KEY_FIXED_BUFFERS] = {"fixed-buffers", &type_switch, FIELD(fixed_buffers), "on|off",
				    "io_uring: register (and pin) the guest's memory (off)"},
	[DISK_KEY_LOCK] = {"lock", &type_switch, FIELD(lock), "on|off",
			   "lock the image as QEMU does (on)"},
	[DISK_KEY_SHARE] = {"share", &type_switch, FIELD(share), "on|off",
			    "serve the disk of an earlier id= on one more socket (off)"},
	[DISK_KEY_SIZE] = {"size", &type_size, FIELD(size_bytes), "SIZE",
			   "engines null and memory: bytes, or with K, M, G, T"},
};

void disk_options_init(struct disk_options *o, unsigned number)
{
	memset(o, 0, sizeof(*o));
	o->number = number;
	o->engine = ENGINE_AUTO;
	o->direct = true;
	o->discard = true;
	o->lock = true;
	o->queues = DISK_QUEUES_DEFAULT;
	o->block_bytes = 512;
	o->listen_fd = o->conn_fd = -1;
}

void disk_options_fini(struct disk_options *o)
{
	free(o->path);
	free(o->socket);
	free(o->id);
	free(o->serial);
	o->path = o->socket = o->id = o->serial = NULL;
}

const char *disk_key_name(enum disk_key key)
{
	return keys[key].name;
}

int disk_options_set(struct disk_options *o, enum disk_key key, const char *value,
		     struct error *err)
{
	const struct key_info *k = &keys[key];
	struct error why;
	int ret;

	if (disk_options_given(o, key))
		return error_set(err, -EINVAL, "key '%s' is given twice", k->name);
	ret = k->type->parse(value, (char *)o + k->offset, &why);
	if (ret < 0)
		return error_set(err, ret, "key '%s': %.400s", k->name, why.text);
	o->given |= 1u << key;
	return 0;
}

static int find_key(const char *name, enum disk_key *key, struct error *err)
{
	char known[256] = "";
	size_t used = 0;

	for (int i = 0; i < DISK_KEY_COUNT; i++) {
		if (!strcmp(keys[i].name, name)) {
			*key = (enum disk_key)i;
			return 0;
		}
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 keys[i].name);
		ASSERT(used < sizeof(known));
	}
	return error_set(err, -EINVAL,
			 "unknown key '%.100s' (there are %s; a comma in a value is written twice)",
			 name, known);
}

static int parse_list(struct disk_options *o, const char *text, struct error *err)
{
	char *name, *value;
	int ret;

	while ((ret = keyval_next(&text, &name, &value, err)) > 0) {
		enum disk_key key;

		ret = find_key(name, &key, err);
		/* A switch by its name alone is on. */
		if (ret == 0 && !value && keys[key].type->json != JSON_FORM_SWITCH)
			ret = error_set(err, -EINVAL, "key '%s' needs a value: %s=%s", name, name,
					keys[key].values);
		if (ret == 0)
			ret = disk_options_set(o, key, value ? value : "on", err);
		free(name);
		free(value);
		if (ret < 0)
			return ret;
	}
	return ret;
}

/* The JSON value as the text that the command line would have. */
static int json_text(const struct key_info *k, const json_t *v, char *buf, size_t size,
		     const char **text, struct error *err)
{
	if (json_is_string(v)) {
		*text = json_string_value(v);
		if (strlen(*text) != json_string_length(v))
			return error_set(err, -EINVAL, "key '%s': a zero byte in a string",
					 k->name);
		return 0;
	}
	*text = buf;
	if (json_is_boolean(v) && k->type->json == JSON_FORM_SWITCH) {
		snprintf(buf, size, "%s", json_is_true(v) ? "on" : "off");
		return 0;
	}
	if (json_is_integer(v) && k->type->json == JSON_FORM_NUMBER) {
		snprintf(buf, size, "%lld", (long long)json_integer_value(v));
		return 0;
	}
	return error_set(err, -EINVAL, "key '%s' must be a string%s in JSON", k->name,
			 k->type->json == JSON_FORM_SWITCH   ? ", true or false"
			 : k->type->json == JSON_FORM_NUMBER ? " or a whole number"
							     : "");
}

static int parse_json(struct disk_options *o, const char *text, struct error *err)
{
	json_error_t why;
	json_t *root, *v;
	const char *name;
	int ret = 0;

	root = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	if (!json_is_object(root)) {
		ret = error_set(err, -EINVAL, "not a JSON object: %s (column %d)",
				root ? "something else" : why.text, why.column);
		json_decref(root);
		return ret;
	}
	json_object_foreach(root, name, v)
	{
		const char *value;
		enum disk_key key;
		char buf[32];

		ret = find_key(name, &key, err);
		if (ret == 0)
			ret = json_text(&keys[key], v, buf, sizeof(buf), &value, err);
		if (ret == 0)
			ret = disk_options_set(o, key, value, err);
		if (ret < 0)
			break;
	}
	json_decref(root);
	return ret;
}

int disk_options_parse(struct disk_options *o, const char *text, struct error *err)
{
	/* No key starts with a brace, so the forms cannot be mixed up. */
	return text[strspn(text, " \t\r\n")] == '{' ? parse_json(o, text, err)
						    : parse_list(o, text, err);
}

void disk_options_print_help(FILE *out)
{
	for (int i = 0; i < DISK_KEY_COUNT; i++) {
		char left[80];

		snprintf(left, sizeof(left), "%s=%s", keys[i].name, keys[i].values);
		if (strlen(left) > 30)
			fprintf(out, "  %s\n  %-30s %s\n", left, "", keys[i].help);
		else
			fprintf(out, "  %-30s %s\n", left, keys[i].help);
	}
}
