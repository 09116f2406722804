/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"

static void signal_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGUSR1);
}

void signals_block(void)
{
	sigset_t set;

	/* A shell starts background jobs with SIGINT ignored, and what is ignored never arrives. */
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGUSR1, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void ready(struct loop_fd *lf, uint32_t events)
{
	struct signals *s = container_of(lf, struct signals, source);
	struct signalfd_siginfo info;

	/* One a pass: terminate may take the source away. */
	if (read(lf->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR1)
		s->report(s->arg);
	else
		s->terminate(s->arg);
}

int signals_start(struct signals *s, struct loop *loop, struct error *err)
{
	sigset_t set;
	int ret;

	signal_set(&set);
	s->loop = loop;
	s->source = (struct loop_fd){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
				     .ready = ready};
	if (s->source.fd < 0)
		return error_set(err, -errno, "signalfd: %s", strerror(errno));
	ret = loop_add_fd(loop, &s->source, EPOLLIN);
	if (ret < 0) {
		fd_close(&s->source.fd);
		return error_set(err, ret, "epoll: %s", strerror(-ret));
	}
	return 0;
}

void signals_stop(struct signals *s)
{
	if (s->source.fd < 0)
		return;
	loop_remove_fd(s->loop, &s->source);
	fd_close(&s->source.fd);
}
