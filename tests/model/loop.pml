/*
 * How a thread posts a message to an event loop, with store buffers.
 *
 * Two posters push to a queue with many producers and write the loop's eventfd
 * only if the loop says that it sleeps. The loop says so, fences, looks at the
 * queue once more, and only then waits: the same rule as in notify.pml, [LOOP1].
 *
 * A push makes the message visible by an atomic exchange with release order
 * ([MPSC1]). Its store goes through the store buffer here, which is weaker than
 * x86 (where the exchange is a full fence) and what AArch64 may do: a later load
 * passes the store. -DPSO lets stores of different words overtake each other,
 * but a release store does not overtake what is before it.
 *
 * Each poster waits until its message was handled and posts the next, for ever;
 * a state in which nothing can happen is a lost wake-up. Faulty variants:
 *
 *   NO_FENCE_POSTER     between the push and reading `sleeping`
 *   NO_FENCE_LOOP       between storing `sleeping` and looking at the queue
 *   NO_LOOK_AGAIN       store `sleeping`, fence, wait
 *   NO_RELEASE          pushed with a relaxed store (with PSO)
 *
 * and one that only looks faulty: CLEAR_LATE reads the eventfd after the queue
 * and not before, but the loop looks again before it sleeps.
 */

#define POSTERS 2

/* Words of a poster; the loop wipes them when it takes the message. */
#define PAYLOAD 0
#define PUSHED 1
#define SLEEPING 2	/* the loop's word */

byte payload[POSTERS];
bool pushed[POSTERS];
bool sleeping;
bool event_fd;
bool handled[POSTERS];

#define STORE_BUFFER 2
chan sb[3] = [STORE_BUFFER] of { byte, byte };	/* posters, then the loop */
#define LOOP_SB sb[POSTERS]

#ifdef NO_FENCE_POSTER
#define poster_fence true
#else
#define poster_fence empty(sb[me])
#endif
#ifdef NO_FENCE_LOOP
#define loop_fence true
#else
#define loop_fence empty(LOOP_SB)
#endif

proctype poster(byte me) {
	bool wake;
again:
	sb[me]!PAYLOAD, 1;
	sb[me]!PUSHED, 1;		/* [MPSC1] */
	atomic { poster_fence -> wake = sleeping };	/* [LOOP1] */
	if
	:: wake -> atomic { empty(sb[me]) -> event_fd = true; wake = false }
	:: else
	fi;
	atomic { handled[me] -> handled[me] = false };
	goto again
}

#define message_ready (pushed[0] || pushed[1])

inline handle_all() {
	do
	:: atomic {
		message_ready ->
		id = (pushed[0] -> 0 : 1);
		pushed[id] = false;
		assert(payload[id] == 1);	/* [MPSC1] */
		payload[id] = 0;
		handled[id] = true;
		id = 0
	}
	:: !message_ready -> break
	od
}

proctype loop() {
	byte id;
awake:
	handle_all();
	if
	:: goto awake		/* spins for as long as it likes */
	:: true
	fi;
	LOOP_SB!SLEEPING, 1;
#ifdef NO_LOOK_AGAIN
	empty(LOOP_SB);
#else
	atomic {
		loop_fence ->	/* [LOOP1] */
		if
		:: message_ready -> goto woken
		:: else
		fi
	}
#endif
	event_fd;		/* epoll_wait */
woken:
	LOOP_SB!SLEEPING, 0;
#ifdef CLEAR_LATE
	handle_all();
#endif
	atomic { empty(LOOP_SB) -> event_fd = false };
	goto awake
}

proctype memory() {
	byte word, val;
end:
	do
	:: d_step { LOOP_SB?word, val -> sleeping = val; word = 0; val = 0 }
	:: d_step { sb[0]?PAYLOAD, val -> payload[0] = val; val = 0 }
	:: d_step { sb[1]?PAYLOAD, val -> payload[1] = val; val = 0 }
	:: d_step { sb[0]?PUSHED, val -> pushed[0] = val; val = 0 }
	:: d_step { sb[1]?PUSHED, val -> pushed[1] = val; val = 0 }
#ifdef PSO
	:: d_step { sb[0]??PAYLOAD, val -> payload[0] = val; val = 0 }
	:: d_step { sb[1]??PAYLOAD, val -> payload[1] = val; val = 0 }
#ifdef NO_RELEASE
	:: d_step { sb[0]??PUSHED, val -> pushed[0] = val; val = 0 }
	:: d_step { sb[1]??PUSHED, val -> pushed[1] = val; val = 0 }
#endif
#endif
	od
}

#define lost_wakeup (!handled[0] || !handled[1])

proctype watchdog() {
	timeout -> assert(!lost_wakeup); assert(false)
}

init {
	atomic {
		run memory();
		run poster(0);
		run poster(1);
		run loop();
		run watchdog()
	}
}
