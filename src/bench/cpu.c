/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cpu.h"

#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static bool process_ns(int pid, uint64_t *out)
{
	struct timespec ts;
	clockid_t id;

	if (clock_getcpuclockid(pid, &id) || clock_gettime(id, &ts) < 0)
		return false;
	*out = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	return true;
}

void bench_cpu_read(int server_pid, struct bench_cpu *out)
{
	out->client_ns = 0;
	out->server_ns = 0;
	if (process_ns(0, &out->client_ns))
		out->client_ns -= clock_thread_cpu_ns();
	/* A server in this very process cannot be told from its client. */
	out->server_known = server_pid > 0 && server_pid != getpid() &&
			    process_ns(server_pid, &out->server_ns);
}
