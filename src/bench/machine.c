/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* x86 has a name for a person; elsewhere uname's machine must do. */
static void cpu_name(char *buf, size_t buf_len)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(buf, buf_len, "unknown cpu");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (!strncmp(line, "model name", 10) && colon) {
			colon[strcspn(colon, "\n")] = '\0';
			snprintf(buf, buf_len, "%s", colon + strspn(colon, ": "));
			break;
		}
	}
	if (f)
		fclose(f);
}

void bench_machine_text(char *buf, size_t buf_len)
{
	struct utsname uts = {.sysname = "?"};
	char cpu[128];

	cpu_name(cpu, sizeof(cpu));
	uname(&uts);
	snprintf(buf, buf_len, "%s, %ld cpus, %s %s %s", cpu, sysconf(_SC_NPROCESSORS_ONLN),
		 uts.sysname, uts.release, uts.machine);
}
