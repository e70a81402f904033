/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * claim.pml - a model of the guard of a slot's cache for spin: contexts of one CPU that allocate and free through one
 * magazine.  Two tasks that preempt each other after any access to memory, so they do not nest; a hardirq on top of
 * any of them, and an NMI on top of that, which do: while one runs nothing below it goes on.  Each step says which
 * function it is; what stands in an atomic block is one instruction there.
 *
 * Shown: no object is handed out that somebody holds, none gets lost, nobody waits for anybody, and in the end the
 * cache is nobody's.  That a context finds it busy again and again costs it the slower way, nothing else.
 * Slabs are one step here (arn_slab_put and arn_slab_take are lock-free, or under the lock); magazines change hands in
 * depot.pml.
 *
 * tests/model/check.sh runs these:
 *   holds: -DPREEMPT -DHARDIRQ -DNMI            arn_claim in BPF: an exchange
 *   fails: -DPLAIN -DPREEMPT                    check, then store
 *   fails: -DPLAIN -DHARDIRQ                    an interrupt that is done between the two is enough
 *   fails: -DNO_CLAIM -DHARDIRQ                 no guard at all
 *   fails: -DUNCLAIM_EARLY -DHARDIRQ            top moved before the object stands in the magazine
 *   holds: -DHOST -DHARDIRQ -DNMI               the host: a flag, where only signal handlers come on top
 *   fails: -DHOST -DPREEMPT                     the same where tasks preempt each other: BPF cannot do with it
 */
#define BUSY	9
#define CAP	2
#define OBJECTS 6 /* 1 to 6: as many as contexts hold and the magazine has room for */

#ifdef NMI
#define IRQS 1
#else
#define IRQS 2
#endif

byte top = 1, obj[CAP];
bool busy;               /* host */
byte cur;                /* level that has the CPU: 0 tasks, 1 hardirq, 2 NMI */
bool held[OBJECTS + 1];  /* by a context */
bool slab[OBJECTS + 1];  /* lies in a slab */
byte running;

/* arn_claim: the cache is the caller's if t is not BUSY. */
inline claim()
{
#if defined(HOST)
	atomic { cur == l; t = (busy -> BUSY : 0) };
	if
	:: t == BUSY
	:: else ->
		atomic { cur == l; busy = true };
		atomic { cur == l; t = top }
	fi
#elif defined(PLAIN)
	atomic { cur == l; t = top };
	if
	:: t == BUSY
	:: else -> atomic { cur == l; top = BUSY }
	fi
#elif defined(NO_CLAIM)
	atomic { cur == l; t = top }
#else
	atomic { cur == l; t = top; top = BUSY }
#endif
}

/* arn_unclaim */
inline unclaim(v)
{
	atomic { cur == l; top = v };
#ifdef HOST
	atomic { cur == l; busy = false }
#endif
}

/* arn_hit_malloc, arn_cache_pop; past the cache arn_slab_take. */
inline allocate()
{
	claim();
	o = 0;
	if
	:: t == BUSY
	:: t == 0 -> unclaim(0)
	:: t != BUSY && t != 0 ->
		atomic { cur == l; o = obj[t - 1] };
		unclaim(t - 1)
	fi;
	atomic {
		cur == l;
		if
		:: o != 0
		:: else ->
			o = 1;
			do :: o > OBJECTS || slab[o] -> break :: else -> o++ od;
			assert(o <= OBJECTS);
			slab[o] = false
		fi;
		assert(!held[o] && !slab[o]);
		held[o] = true
	}
}

/* arn_hit_free, arn_cache_push; past the cache arn_slab_put. */
inline release()
{
	atomic { cur == l; assert(held[o]); held[o] = false };
	claim();
	if
	:: t == BUSY -> atomic { cur == l; slab[o] = true }
	:: t == CAP ->
		unclaim(t);
		atomic { cur == l; slab[o] = true }
	:: t != BUSY && t != CAP ->
#ifdef UNCLAIM_EARLY
		unclaim(t + 1);
		atomic { cur == l; obj[t] = o }
#else
		atomic { cur == l; obj[t] = o };
		unclaim(t + 1)
#endif
	fi;
	atomic { cur == l; o = 0 }
}

/* A context of level l: so many times an object is taken and given back, or given back after another was taken. */
proctype context(byte l; byte times)
{
	byte t, o, saved;

	do
	:: times == 0 -> break
	:: else ->
		times--;
		if
		:: l > 0 -> atomic { cur < l; saved = cur; cur = l }
		:: else
		fi;
		allocate();
		release();
		if
		:: l > 0 -> atomic { cur == l; cur = saved }
		:: else
		fi
	od;
	running--
}

init
{
	byte o, i, n;

	atomic {
		obj[0] = 1;
		slab[2] = true;
		slab[3] = true;
		slab[4] = true;
		slab[5] = true;
		slab[6] = true;
		running = 1;
		run context(0, 2);
#ifdef PREEMPT
		running++;
		run context(0, 1);
#endif
#ifdef HARDIRQ
		running++;
		run context(1, IRQS);
#endif
#ifdef NMI
		running++;
		run context(2, 1);
#endif
	};
	running == 0;
	atomic {
		assert(top <= CAP && !busy);
		o = 1;
		do
		:: o > OBJECTS -> break
		:: else ->
			/* in one place */
			n = 0;
			i = 0;
			do
			:: i == top -> break
			:: else -> n = n + (obj[i] == o -> 1 : 0); i++
			od;
			assert(n + slab[o] == 1 && !held[o]);
			o++
		od
	}
}
