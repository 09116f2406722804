/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#include "base/atomic.h"

/* relaxed: a flag, nothing is ordered by it */
static int flag;

static void note(int signo)
{
	atomic_store_relaxed(&flag, 1); /* relaxed: see above */
}

static void signal_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
}

void interrupt_init(void)
{
	struct sigaction act = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};

	atomic_store_relaxed(&flag, 0); /* relaxed: see above */
	sigemptyset(&act.sa_mask);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	/* A server that has gone is an error of ours, not the end. */
	act = (struct sigaction){.sa_handler = SIG_IGN};
	sigaction(SIGPIPE, &act, NULL);
	interrupt_unblock();
}

void interrupt_block(void)
{
	sigset_t set;

	signal_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void interrupt_unblock(void)
{
	sigset_t set;

	signal_set(&set);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

bool interrupted(void)
{
	return atomic_load_relaxed(&flag); /* relaxed: see above */
}
