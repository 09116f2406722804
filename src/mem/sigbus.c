/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/sigbus.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct sigbus_range {
	uintptr_t base; /* 0 = free; written last, cleared first */
	size_t len_bytes;
	size_t page_bytes;
	int eventfd;
	bool hit;
};

/* Fixed, because a signal handler can neither lock nor allocate.  64 disks x 509 slots is not a
 * set-up that anybody runs; what does not fit is merely not protected, and its user is told. */
static struct sigbus_range ranges[8192];
static unsigned ranges_used; /* one past the highest slot ever used */
static struct sigaction previous_action;

static struct sigbus_range *find_range(uintptr_t addr)
{
	unsigned n = atomic_load_acquire(&ranges_used); /* [SIG1] */

	for (unsigned i = 0; i < n; i++) {
		uintptr_t base = atomic_load_acquire(&ranges[i].base); /* [SIG1] */

		size_t len = atomic_load_acquire(&ranges[i].len_bytes); /* [SIG1] */

		/* The slot may have been given to another range between the two looks. */
		if (base && addr >= base && addr - base < len &&
		    atomic_load_acquire(&ranges[i].base) == base) /* [SIG1] */
			return &ranges[i];
	}
	return NULL;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr;
	struct sigbus_range *r = find_range(addr);
	int saved_errno = errno;
	uint64_t one = 1;
	uintptr_t page = r ? addr & ~(r->page_bytes - 1) : 0;

	/* Everything from the fault to the end of the range: the file is short there, too. */
	if (!r ||
	    mmap((void *)page, r->base + r->len_bytes - page, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED) {
		/* Not ours: return into the fault with the previous action in force. */
		sigaction(SIGBUS, &previous_action, NULL);
		errno = saved_errno;
		return;
	}
	atomic_store_release(&r->hit, true); /* [SIG1] */
	if (r->eventfd >= 0 && write(r->eventfd, &one, sizeof(one)) < 0) {
		/* The flag is set; the control thread looks at it with the next message. */
	}
	errno = saved_errno;
}

static void install(void)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, &previous_action);
}

struct sigbus_range *sigbus_watch(void *base, size_t len_bytes, size_t page_bytes, int eventfd)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
	for (unsigned i = 0; i < ARRAY_SIZE(ranges); i++) {
		struct sigbus_range *r = &ranges[i];

		if (r->base)
			continue;
		atomic_store_release(&r->len_bytes, len_bytes); /* [SIG1] */
		r->page_bytes = page_bytes;
		r->eventfd = eventfd;
		r->hit = false;
		atomic_store_release(&r->base, (uintptr_t)base); /* [SIG1] fields before base */
		if (i >= ranges_used)
			atomic_store_release(&ranges_used, i + 1); /* [SIG1] */
		return r;
	}
	return NULL;
}

void sigbus_unwatch(struct sigbus_range *r)
{
	if (r)
		atomic_store_release(&r->base, (uintptr_t)0); /* [SIG1] */
}

bool sigbus_hit(const struct sigbus_range *r)
{
	return r && atomic_load_acquire(&r->hit); /* [SIG1] */
}
