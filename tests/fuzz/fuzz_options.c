/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the parser of --disk, in both forms: any text is taken or refused with one reason, and
 * what was taken obeys the table.
 */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "daemon/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {""};
	struct disk_options o;
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	disk_options_init(&o, 1);
	if (disk_options_parse(&o, text, &err) == 0 && disk_options_check(&o, NULL, 0, &err) == 0) {
		ASSERT(o.queues >= 1 && o.queues <= DISK_QUEUES_MAX);
		ASSERT(o.block_bytes == 512 || o.block_bytes == 4096);
		ASSERT(o.size_bytes <= INT64_MAX);
		ASSERT(o.socket && o.id && o.serial && strlen(o.serial) <= DISK_SERIAL_MAX);
		ASSERT(!o.path == !engine_kind_has_file(o.engine));
	} else {
		ASSERT(*err.text);
	}
	disk_options_fini(&o);
	free(text);
	return 0;
}
