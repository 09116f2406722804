/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person may type: disks in both forms, whole command lines (words end with a newline),
 * polling modes.  Refused with one line of text, or taken; never a crash or a leak.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/options.h"
#include "daemon/values.h"
#include "fuzz_input.h"
#include "loop/poll_policy.h"

#define MAX_WORDS 64

static void parse_disk(const char *text)
{
	struct disk_options o;
	struct error err = {{0}};

	disk_options_init(&o, 1);
	if (disk_options_parse(&o, text, &err) == 0 && disk_options_check(&o, NULL, 0, &err) == 0) {
		ASSERT(o.queues >= 1 && o.queues <= DISK_QUEUES_MAX);
		ASSERT(o.block_bytes == 512 || o.block_bytes == 4096);
		ASSERT(o.size_bytes <= INT64_MAX);
		ASSERT(o.socket && o.id && o.serial && strlen(o.serial) <= DISK_SERIAL_MAX);
		ASSERT(!o.path == !engine_kind_has_file(o.engine));
	} else {
		ASSERT(err.text[0] && !strchr(err.text, '\n'));
	}
	disk_options_fini(&o);
}

static void parse_values(const char *text)
{
	struct poll_policy_limits limits;
	struct error err = {{0}};
	uint64_t v;

	if (value_size(text, &v, &err) == 0)
		ASSERT(v <= INT64_MAX);
	if (value_number(text, 3, 1000, &v, &err) == 0)
		ASSERT(v >= 3 && v <= 1000);
	if (poll_policy_parse(text, &limits, &err) < 0)
		ASSERT(err.text[0]);
}

static void parse_command(char *text, bool backend_program)
{
	char *argv[MAX_WORDS + 1], *save = NULL;
	struct serve_options o;
	struct error err = {{0}};
	int argc = 0, ret;

	argv[argc++] = (char[]){"serve"};
	for (char *w = strtok_r(text, "\n", &save); w && argc < MAX_WORDS;
	     w = strtok_r(NULL, "\n", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	serve_options_init(&o);
	ret = backend_program ? vhost_user_blk_options_parse(&o, argc, argv, &err)
			      : serve_options_parse(&o, argc, argv, &err);
	if (ret == 0)
		ret = serve_options_check(&o, &err);
	ASSERT(ret >= 0 || err.text[0]);
	serve_options_fini(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;
	uint8_t kind;

	if (!size)
		return 0;
	kind = data[0];
	text = malloc(size);
	ASSERT(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if ((kind & 3) == 0)
		parse_disk(text);
	else if ((kind & 3) == 1)
		parse_values(text);
	else
		parse_command(text, kind & 1);
	free(text);
	return 0;
}
