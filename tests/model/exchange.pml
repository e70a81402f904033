/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * exchange.pml - a model, for spin, of a thread's exchanges of magazines on a shared heap: every interleaving of
 * the thread, a reclaimer that takes from its stacks, a kill between any two of the thread's accesses to shared
 * memory, and the reaper of its slot.  Each step says which function of src/user/exchange.h, src/core/magazine.h or
 * src/core/intent.h it is; what stands in an atomic block is one instruction there.
 *
 * Shown: when all have ended, and each time one is given to the depot, a magazine is in one place only; in the
 * end all of them are in the depot, none is lost; nobody waits for anybody (the reaper waits for the thread's
 * end, which the kernel tells).
 *
 * Memory is sequentially consistent here: the thread's stores are seen in order after its death, because the
 * kernel says that it is dead after its last one, and the swaps are full.  Objects are not modelled, so which
 * magazine is full does not matter: the thread exchanges them as it likes.  Not modelled either: signal handlers, which leave a busy cache and its stacks alone.
 *
 * tests/model/check.sh runs these:
 *   holds: -DOPS=3                   everything
 *   fails: -DOPS=2 -DNO_INTENT       nothing says what the thread had in its hands
 *   fails: -DOPS=2 -DINTENT_LATE     the slot stops naming a magazine before the intent does
 *   fails: -DOPS=2 -DNAMED           the slot names a magazine until after it was pushed
 *   fails: -DOPS=2 -DTWO_STORES      the two magazines exchanged by two stores
 *   fails: -DOPS=2 -DTAG_KEPT        the owner's swap leaves the tag as it is
 *   fails: -DOPS=2 -DRECLAIM_TAGS    a reclaimer's swap changes it as well
 */
#define MAGS 5 /* magazines are 1 to MAGS - 1 */
#define FULL 0
#define EMPTY 1
#define NONE 0
#define PUSH 1
#define POP 2

/* the slot's cache */
byte top, prev;
byte head[2], tag[2]; /* one word each: read and swapped at once */
byte intent_op, intent_stack, intent_tag, intent_mag; /* one word */
/* the magazines */
byte link[MAGS];
bool in_depot[MAGS];
bool thread_ended;
byte running;

/* SIGKILL may strike here. */
#define may_die if :: true :: goto dead fi

#ifdef TAG_KEPT
#define OWNER_STEP 0
#else
#define OWNER_STEP 1
#endif
#ifdef RECLAIM_TAGS
#define RECLAIM_STEP 1
#else
#define RECLAIM_STEP 0
#endif

/* arn_depot_give */
inline give(m)
{
	atomic {
		assert(m != NONE && !in_depot[m]);
		in_depot[m] = true
	}
}

/* Of arn_thread_load and arn_thread_unload: arn_both(prev, top). */
inline exchange()
{
#ifdef TWO_STORES
	b = top;
	top = prev;
	may_die;
	prev = b;
#else
	atomic { b = top; top = prev; prev = b };
#endif
	may_die
}

proctype thread()
{
	byte ops, b, s, i, m, old, oldtag, nx, t, p;
	bool ok;

again:
	if
	:: ops == OPS -> goto dead /* its exit: the reaper does the same then */
	:: ops < OPS -> ops++
	fi;
	if
	:: prev != NONE -> exchange(); goto again
	:: s = FULL /* arn_thread_load: a full one is wanted, and the loaded one goes to the empty ones */
	:: s = EMPTY /* arn_thread_unload */
	fi;
	if
	:: head[s] == NONE -> goto again
	:: else
	fi;

	/* arn_thread_retire */
	if
	:: top == NONE -> goto pop
	:: top != NONE && prev == NONE -> atomic { prev = top; top = NONE }; may_die; goto pop
	:: else
	fi;
	/* arn_thread_push: prev's magazine onto the other stack */
	t = top;
	p = prev;
	m = p;
	oldtag = tag[1 - s];
	may_die;
#if !defined(NO_INTENT) && !defined(INTENT_LATE)
	atomic { intent_op = PUSH; intent_stack = 1 - s; intent_tag = oldtag; intent_mag = m };
	may_die;
#endif
#ifndef NAMED
	atomic { top = NONE; prev = t };
	may_die;
#endif
#ifdef INTENT_LATE
	atomic { intent_op = PUSH; intent_stack = 1 - s; intent_tag = oldtag; intent_mag = m };
	may_die;
#endif
	i = 0;
	ok = false;
	do
	:: ok || i == 2 -> break
	:: else ->
		i++;
		atomic { old = head[1 - s]; oldtag = tag[1 - s] };
		link[m] = old;
		may_die;
		atomic {
			ok = (head[1 - s] == old && tag[1 - s] == oldtag);
			if
			:: ok -> head[1 - s] = m; tag[1 - s] = oldtag + OWNER_STEP
			:: else
			fi
		};
		may_die
	od;
#ifdef NAMED
	if :: ok -> atomic { top = NONE; prev = t } :: else fi;
#else
	if :: !ok -> atomic { top = t; prev = p } :: else fi;
#endif
	may_die;
	atomic { intent_op = NONE; intent_mag = NONE };
	may_die;
	if :: !ok -> goto again :: else fi;

pop:	/* arn_thread_pop */
	i = 0;
	do
	:: i == 2 -> break
	:: i < 2 ->
		i++;
		atomic { old = head[s]; oldtag = tag[s] };
		if :: old == NONE -> break :: else fi;
		nx = link[old];
#ifndef NO_INTENT
		atomic { intent_op = POP; intent_stack = s; intent_tag = oldtag; intent_mag = old };
		may_die;
#endif
		atomic {
			ok = (head[s] == old && tag[s] == oldtag);
			if
			:: ok -> head[s] = nx; tag[s] = oldtag + OWNER_STEP
			:: else
			fi
		};
		may_die;
		if
		:: ok ->
			top = old;
			may_die;
			break
		:: else
		fi
	od;
	atomic { intent_op = NONE; intent_mag = NONE };
	may_die;
	goto again;

dead:	thread_ended = true;
	running--
}

/* arn_stack_pop by somebody who is not the owner: the tag stays. */
inline take(s)
{
	atomic { old = head[s]; oldtag = tag[s] };
	if
	:: old == NONE -> ok = false
	:: else ->
		nx = link[old];
		atomic {
			ok = (head[s] == old && tag[s] == oldtag);
			if
			:: ok -> head[s] = nx; tag[s] = oldtag + RECLAIM_STEP
			:: else
			fi
		}
	fi
}

/* arn_near_release, at any time */
proctype reclaimer()
{
	byte i, old, oldtag, nx;
	bool ok;

	for (i : 0 .. 1) {
		if
		:: take(FULL)
		:: take(EMPTY)
		fi;
		if :: ok -> give(old) :: else fi
	}
	running--
}

/* arn_slot_settle; the reclaimer may be at work meanwhile. */
proctype reaper()
{
	byte old, oldtag, nx, s, m, op, t;
	bool ok, swapped;

	thread_ended;
	/* arn_intent_settle */
	atomic { op = intent_op; s = intent_stack; t = intent_tag; m = intent_mag };
	if
	:: op != NONE ->
		swapped = (tag[s] != t);
		atomic { intent_op = NONE; intent_mag = NONE };
		if
		:: (op == PUSH) == swapped || top == m || prev == m
		:: else -> give(m)
		fi
	:: else
	fi;
	/* arn_cache_drain */
	if :: top != NONE -> give(top); top = NONE :: else fi;
	if :: prev != NONE -> give(prev); prev = NONE :: else fi;
	/* arn_near_release */
	for (s : 0 .. 1) {
		do
		:: head[s] == NONE -> break
		:: else ->
			take(s);
			if :: ok -> give(old) :: else fi
		od
	}
	running--
}

init
{
	byte i;

	atomic {
		top = 1;
		prev = 2;
		head[FULL] = 3;
		head[EMPTY] = 4;
		running = 3;
		run thread();
		run reclaimer();
		run reaper()
	};
	running == 0;
	for (i : 1 .. MAGS - 1) {
		assert(in_depot[i])
	}
}
