/*
 * The notification protocol of a virtqueue, with store buffers.
 *
 * Two threads share a ring: the driver publishes requests (avail), the device
 * publishes completions (used). Each may sleep, and each tells the other by a
 * word in memory whether it wants to be woken. The rule on both sides is
 * "arm, full fence, look again" for the one who is about to sleep and
 * "publish, full fence, look at the other's word" for the one who may have to
 * wake it. This model is searched exhaustively by spin (tests/model/run.sh);
 * docs/memory-ordering.md explains the tags.
 *
 * Memory: every thread has a FIFO store buffer which drains whenever it likes
 * (x86-TSO). A full fence waits until it is empty, and so does a system call on
 * an eventfd. A thread never loads a word that it stores itself (it keeps a
 * shadow), so forwarding from the buffer is not needed. With -DPSO the buffer
 * keeps order only for each word and at release stores, as on a weaker machine.
 * Loads are executed in program order: acquire is not in the model.
 *
 * Neither thread ever ends, so any state in which nothing can happen is a lost
 * wake-up; `watchdog` turns it into an assertion. `owner` is a ghost: each
 * request must go driver -> avail -> device -> used -> driver, so none is lost,
 * seen twice or completed twice. A faulty variant is made with one of
 *
 *   NO_FENCE_DRIVER_KICK    [VQ3] driver: no fence between avail index and avail_event
 *   NO_FENCE_DEVICE_ARM     [VQ3] device: no fence between avail_event and avail index
 *   NO_FENCE_DEVICE_CALL    [VQ4] device: no fence between used index and used_event
 *   NO_FENCE_DRIVER_ARM     [VQ4] driver: no fence between used_event and used index
 *   NO_FENCE_DRIVER, NO_FENCE_DEVICE   both fences of that side
 *   NO_LOOK_AGAIN_DEVICE, NO_LOOK_AGAIN_DRIVER   arm, fence, sleep
 *   NO_LOOK_ONCE            a restarted ring waits for a kick
 *   GUESS_SIGNALLED         a restarted ring takes the used index for signalled
 *   LAZY_SIGNAL             signalled invalid, but nothing is sent before the next completion
 *   FORGET_BLOCKED          no room for a request, and the completion does not look again
 *   NAIVE_COMPARE           need_event without modular arithmetic
 *   FULL_IS_EMPTY           positions compared modulo the queue size
 *   NO_RELEASE_DRIVER, NO_RELEASE_DEVICE   [VQ1] [VQ2] index stored relaxed (with PSO)
 *
 * and a right one with any of FLAGS (NO_NOTIFY and NO_INTERRUPT instead of the
 * event indexes), QSIZE=n, SLOTS=n (requests that the device can hold),
 * DRIVER_BATCH (used_event ahead of the next completion), RESTART, PSO.
 */

#ifndef QSIZE
#define QSIZE 2
#endif
#ifndef SLOTS
#define SLOTS QSIZE
#endif

/* Free-running indexes wrap at twice the queue size, the worst that virtio has
 * (32768 entries, 16 bits). */
#define IDX_MOD (2 * QSIZE)
#define next(i) (((i) + 1) % IDX_MOD)
#define distance(to, from) (((to) + IDX_MOD - (from)) % IDX_MOD)

/* The words that one thread stores and the other loads. */
#define IDX 0	/* driver: avail index; device: used index */
#define CTL 1	/* driver: used_event or NO_INTERRUPT; device: avail_event or NO_NOTIFY */
#define RING 2	/* entries: the id of a request */
#define WORDS (2 + QSIZE)

/* Who reads an entry wipes it. No real ring does; here it turns every read of a
 * stale entry into an error and keeps the number of states small. */
#define NOTHING QSIZE

byte drv_mem[WORDS];
byte dev_mem[WORDS];

#define STORE_BUFFER 4
chan drv_sb = [STORE_BUFFER] of { byte, byte };
chan dev_sb = [STORE_BUFFER] of { byte, byte };
#define full_fence(sb) empty(sb)

/* The four fences. Each guards the load that follows it: a fence may take as
 * long as it likes, so one step for both loses nothing. */
#if defined(NO_FENCE_DRIVER) || defined(NO_FENCE_DRIVER_KICK)
#define drv_kick_fence true
#else
#define drv_kick_fence full_fence(drv_sb)	/* [VQ3] */
#endif
#if defined(NO_FENCE_DEVICE) || defined(NO_FENCE_DEVICE_ARM)
#define dev_arm_fence true
#else
#define dev_arm_fence full_fence(dev_sb)	/* [VQ3] */
#endif
#if defined(NO_FENCE_DEVICE) || defined(NO_FENCE_DEVICE_CALL)
#define dev_call_fence true
#else
#define dev_call_fence full_fence(dev_sb)	/* [VQ4] */
#endif
#if defined(NO_FENCE_DRIVER) || defined(NO_FENCE_DRIVER_ARM)
#define drv_arm_fence true
#else
#define drv_arm_fence full_fence(drv_sb)	/* [VQ4] */
#endif

/* Eventfds: only "was written" matters. */
bool kick_fd, call_fd;

/* Ghost: who has the request. The driver reads only "mine or not", the device
 * only "held or not": both know that without the ghost. */
#define DRIVER 0
#define AVAIL 1
#define DEVICE 2
#define USED 3
byte owner[QSIZE];

#ifdef RESTART
bool settled;	/* no restart from here on */
#define may_restart :: !settled -> goto start
#else
#define may_restart
#endif

#ifdef FLAGS
#define ctl_wants(ctl, new, old) (!(ctl))
#elif defined(NAIVE_COMPARE)
#define ctl_wants(ctl, new, old) ((new) > (ctl) && (ctl) >= (old))
#else
#define ctl_wants(ctl, new, old) (distance(new, (ctl) + 1) < distance(new, old))
#endif

#ifdef FULL_IS_EMPTY
#define something_new(idx, last) ((idx) % QSIZE != (last) % QSIZE)
#else
#define something_new(idx, last) ((idx) != (last))
#endif

inline drv_add(id) {
	assert(owner[id] == DRIVER);
	owner[id] = AVAIL;
	drv_sb!RING + avail_idx % QSIZE, id;
	avail_idx = next(avail_idx);
	outstanding++
}

proctype driver() {
	byte avail_idx, last_used, outstanding;
	byte idx, id, old, ahead;
	bool added, armed, need;

submit:	/* One index store for as many requests as we like. [VQ1] */
	atomic {
		do	/* The lowest free id first: the device mixes them anyway. */
		:: owner[0] == DRIVER -> drv_add(0); added = true
#if QSIZE > 1
		:: owner[0] != DRIVER && owner[1] == DRIVER -> drv_add(1); added = true
#endif
		:: added -> break
		od;
		added = false;
		drv_sb!IDX, avail_idx
	}
	atomic {
		drv_kick_fence ->	/* [VQ3] */
		need = ctl_wants(dev_mem[CTL], avail_idx, old);
		old = avail_idx
	}
	if
	:: need -> atomic { empty(drv_sb) -> kick_fd = true; need = false }
	:: else
	fi;
	if
	:: armed -> goto asleep
	:: !armed -> goto awake
	fi;

awake:
	if
	:: outstanding < QSIZE -> goto submit
	:: outstanding > 0 -> goto reap		/* looks for as long as it likes */
	:: outstanding > 0 -> goto arm
	fi;

reap:
	atomic {
		idx = dev_mem[IDX];	/* [VQ2] */
		assert(distance(idx, last_used) <= outstanding);
		do
		:: last_used != idx ->
			id = dev_mem[RING + last_used % QSIZE];
			dev_mem[RING + last_used % QSIZE] = NOTHING;
			assert(id != NOTHING && owner[id] == USED);	/* completed, once */
			owner[id] = DRIVER;
			last_used = next(last_used);
			outstanding--
		:: else -> break
		od
	}
	goto awake;

arm:
#ifdef FLAGS
	drv_sb!CTL, 0;
#else
#ifdef DRIVER_BATCH
	/* "Tell me when so many are done." */
	atomic {
		ahead = 0;
		do
		:: ahead + 1 < outstanding -> ahead++
		:: break
		od
	}
#endif
	drv_sb!CTL, (last_used + ahead) % IDX_MOD;
#endif
	atomic {
		drv_arm_fence ->	/* [VQ4] */
#ifndef NO_LOOK_AGAIN_DRIVER
		if
		:: distance(dev_mem[IDX], last_used) > ahead -> goto disarm
		:: else
		fi;
#endif
		armed = true
	}
	if	/* Another thread of the guest may submit while this one waits. */
	:: outstanding < QSIZE -> goto submit
	:: goto asleep
	fi;

asleep:
	atomic {
		call_fd && empty(drv_sb) ->
		call_fd = false;
		armed = false
	}

disarm:	/* With event indexes a stale used_event is good enough. */
	ahead = 0;
#ifdef FLAGS
	drv_sb!CTL, 1;
#endif
	goto reap
}

inline dev_push(id) {
	assert(owner[id] == DEVICE);
	owner[id] = USED;
	dev_sb!RING + used_idx % QSIZE, id;
	used_idx = next(used_idx);
	inflight--
}

proctype device() {
	byte used_idx, last_avail, inflight;
	byte idx, id, signalled;
	bool signalled_valid, pushed, armed, blocked, need;

start:	/* A ring that is (re)started or resumed. The eventfds are new: what was
	 * pending in the old ones is gone. What was taken from the ring before is
	 * known (inflight region or a true GET_VRING_BASE). */
	atomic {
		empty(dev_sb) ->
		kick_fd = false;
		call_fd = false;
		armed = false;
		blocked = false;
		need = false;
#ifdef GUESS_SIGNALLED
		signalled = used_idx;
		signalled_valid = true
#else
		signalled = 0;
		signalled_valid = false
#endif
	}
#ifdef NO_LOOK_ONCE
	armed = true;
#endif
#ifndef LAZY_SIGNAL
	goto flush;
#endif

work:	/* Notifications off: NO_NOTIFY, or an avail_event as far away as there is. */
	armed = false;
	blocked = false;
#ifdef FLAGS
	dev_sb!CTL, 1;
#else
	dev_sb!CTL, distance(last_avail, 1);
#endif

pass:
	atomic {
		idx = drv_mem[IDX];	/* [VQ1] */
		assert(distance(idx, last_avail) <= QSIZE);
		do
		:: something_new(idx, last_avail) && inflight < SLOTS ->
			id = drv_mem[RING + last_avail % QSIZE];
			drv_mem[RING + last_avail % QSIZE] = NOTHING;
			assert(id != NOTHING && owner[id] == AVAIL);
			owner[id] = DEVICE;
			last_avail = next(last_avail);
			inflight++
		:: else -> break
		od;
		blocked = something_new(idx, last_avail)
	}

	if
	:: inflight > 0 -> goto complete
	:: goto pass				/* spins for as long as it likes */
	:: !blocked -> goto arm
	:: blocked -> goto asleep		/* notifications stay off */
	may_restart
	fi;

complete:	/* Any of those in flight, in any order; one index store. [VQ2] */
	atomic {
		do
		:: owner[0] == DEVICE -> dev_push(0); pushed = true
#if QSIZE > 1
		:: owner[1] == DEVICE -> dev_push(1); pushed = true
#endif
		:: pushed -> break
		od;
		pushed = false;
		dev_sb!IDX, used_idx
	}
	if
	:: true
	may_restart		/* it died before it could call */
	fi;

flush:
	atomic {
		dev_call_fence ->	/* [VQ4] */
		need = !signalled_valid || ctl_wants(drv_mem[CTL], used_idx, signalled);
		signalled = used_idx;
		signalled_valid = true
	}
	if
	:: true
	may_restart
	fi;
	if
	:: need -> atomic { empty(dev_sb) -> call_fd = true; need = false }
	:: else
	fi;
	if	/* Still armed and nothing taken since: it may sleep on. */
	:: armed -> goto asleep
#ifdef FORGET_BLOCKED
	:: blocked -> goto asleep
	:: !armed && !blocked -> goto work
#else
	:: goto work
#endif
	fi;

arm:
#ifdef FLAGS
	dev_sb!CTL, 0;
#else
	dev_sb!CTL, last_avail;
#endif
	atomic {
		dev_arm_fence ->	/* [VQ3] */
#ifndef NO_LOOK_AGAIN_DEVICE
		if
		:: something_new(drv_mem[IDX], last_avail) -> goto work
		:: else
		fi;
#endif
		armed = true
	}

asleep:
	if
	:: atomic { kick_fd && empty(dev_sb) -> kick_fd = false }; goto work
	:: inflight > 0 -> goto complete	/* the engine's eventfd */
	may_restart
	fi
}

#ifdef RESTART
/* A sleep that a restart could end is not for ever: at some time there are no
 * more of them. */
proctype control() {
	settled = true
}
#endif

/* The store buffers drain, one store at a time. */
proctype memory() {
	byte word, val;
end:
	do
	:: d_step { drv_sb?word, val -> drv_mem[word] = val; word = 0; val = 0 }
	:: d_step { dev_sb?word, val -> dev_mem[word] = val; word = 0; val = 0 }
#ifdef PSO
	/* Any word but the index may overtake; the index store is a release. */
	:: d_step { drv_sb??CTL, val -> drv_mem[CTL] = val; val = 0 }
	:: d_step { dev_sb??CTL, val -> dev_mem[CTL] = val; val = 0 }
	:: d_step { drv_sb??eval(RING), val -> drv_mem[RING] = val; val = 0 }
	:: d_step { dev_sb??eval(RING), val -> dev_mem[RING] = val; val = 0 }
#if QSIZE > 1
	:: d_step { drv_sb??eval(RING + 1), val -> drv_mem[RING + 1] = val; val = 0 }
	:: d_step { dev_sb??eval(RING + 1), val -> dev_mem[RING + 1] = val; val = 0 }
#endif
#ifdef NO_RELEASE_DRIVER
	:: d_step { drv_sb??IDX, val -> drv_mem[IDX] = val; val = 0 }
#endif
#ifdef NO_RELEASE_DEVICE
	:: d_step { dev_sb??IDX, val -> dev_mem[IDX] = val; val = 0 }
#endif
#endif
	od
}

/* Nothing can happen any more: both sleep, with nothing in the eventfds and
 * the store buffers empty. */
#if QSIZE > 1
#define lost_wakeup (owner[0] != DRIVER || owner[1] != DRIVER)
#else
#define lost_wakeup (owner[0] != DRIVER)
#endif

proctype watchdog() {
	timeout -> assert(!lost_wakeup); assert(false)
}

init {
	atomic {
		drv_mem[RING] = NOTHING;
		dev_mem[RING] = NOTHING;
#if QSIZE > 1
		drv_mem[RING + 1] = NOTHING;
		dev_mem[RING + 1] = NOTHING;
#endif
#ifdef RESTART
		run control();
#endif
		run memory();
		run driver();
		run device();
		run watchdog()
	}
}
