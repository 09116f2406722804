/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/thread.h"

#include <signal.h>
#include <stdio.h>

int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, size_t stack_bytes,
		 bool detached)
{
	static const int synchronous[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t blocked, before;
	pthread_attr_t attr;
	int ret;

	ret = pthread_attr_init(&attr);
	if (ret)
		return -ret;
	if (stack_bytes)
		pthread_attr_setstacksize(&attr, stack_bytes);
	if (detached)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(synchronous); i++)
		sigdelset(&blocked, synchronous[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &before); /* the new thread inherits it */
	ret = pthread_create(thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -ret;
}

void thread_set_name(const char *name)
{
	char text[16];

	snprintf(text, sizeof(text), "%.15s", name);
	pthread_setname_np(pthread_self(), text);
}
