/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * depot.pml - a model of the depot's stacks for spin: whole magazines that change hands between contexts of any kind,
 * on one CPU or several, after every access to memory.  Each step says which function of src/core/magazine.h or
 * heap.h it is; what stands in an atomic block is one instruction there.
 *
 * Shown: a magazine is in one stack, in one hand or parked, never in two places and never lost; what was written to it
 * before its push is what its next owner finds; nobody waits.
 *
 * A head is {index, tag}.  The tag is so wide there that it never wraps within an operation; here it does not at all.
 * Memory is sequentially consistent: the swaps are full ones, the link's load depends on the head's.
 *
 * tests/model/check.sh runs these:
 *   holds: -DTAG                                a depot, whose tag counts every swap
 *   fails: -DNO_TAG                             a head without a tag (ABA)
 *   holds: -DPUSH_ONLY_TAG                      near a thread's slot: a reclaimer's pop leaves the tag alone
 *   fails: -DLINK_LATE                          the link written after the swap
 *   fails: -DCOUNT_LATE                         the count written after the swap
 */
#define MAGS  3
#define TRIES 2
#define NONE  0

byte head_idx, head_tag;
byte next[MAGS + 1], count[MAGS + 1];
bool hand[MAGS + 1], parked[MAGS + 1];
byte should[MAGS + 1]; /* the count that its last owner left */
byte spilled[MAGS + 1]; /* given to another stack, by a reclaimer */
byte running;

/* arn_stack_pop: m, or NONE: empty, or TRIES races lost. */
inline pop(owner)
{
	m = NONE;
	tries = 0;
	do
	:: tries == TRIES -> break
	:: else ->
		tries++;
		atomic { idx = head_idx; tag = head_tag };
		if :: idx == NONE -> break :: else fi;
		link = next[idx];
		atomic {
#ifdef NO_TAG
			swapped = (head_idx == idx);
#else
			swapped = (head_idx == idx && head_tag == tag);
#endif
			if
			:: swapped ->
				head_idx = link;
#ifdef PUSH_ONLY_TAG
				head_tag = head_tag + (owner -> 1 : 0);
#else
				head_tag++;
#endif
				m = idx;
				assert(!hand[m] && !parked[m] && !spilled[m]);
				hand[m] = true
			:: else
			fi
		};
		if :: swapped -> break :: else fi
	od
}

/* arn_depot_push: m, of which n are used; swapped: it was done. */
inline push(n)
{
	swapped = false;
	tries = 0;
	should[m] = n;
#ifndef COUNT_LATE
	count[m] = n;
#endif
	do
	:: tries == TRIES || swapped -> break
	:: else ->
		tries++;
		atomic { idx = head_idx; tag = head_tag };
#ifndef LINK_LATE
		next[m] = idx;
#endif
		atomic {
#ifdef NO_TAG
			swapped = (head_idx == idx);
#else
			swapped = (head_idx == idx && head_tag == tag);
#endif
			if
			:: swapped -> head_idx = m; head_tag++; hand[m] = false
			:: else
			fi
		};
#ifdef LINK_LATE
		if :: swapped -> next[m] = idx :: else fi;
#endif
#ifdef COUNT_LATE
		if :: swapped -> count[m] = n :: else fi;
#endif
	od
}

/* arn_mag_count: what the last owner left, for whoever has the magazine now. */
#define look(m) assert(count[m] == should[m])

/* arn_cache_load, arn_cache_unload under the claim: one comes, the one before goes, and parks if it cannot. */
proctype exchanger(byte mine; byte times)
{
	byte m, idx, tag, link, tries, kept, waits;
	bool swapped;

	kept = mine;
	do
	:: times == 0 -> break
	:: else ->
		times--;
		/* arn_unpark */
		if
		:: waits ->
			m = waits;
			atomic { parked[m] = false; hand[m] = true };
			push(2);
			if
			:: swapped -> waits = NONE
			:: else -> atomic { parked[m] = true; hand[m] = false }; goto done
			fi
		:: else
		fi;
		pop(true);
		if
		:: m == NONE -> goto done
		:: else
		fi;
		look(m);
		if
		:: kept == NONE -> kept = m; goto done
		:: else
		fi;
		idx = kept;
		kept = m;
		m = idx;
		push(3);
		if
		:: swapped
		:: else -> atomic { parked[m] = true; hand[m] = false }; waits = m
		fi;
done:		skip
	od;
	running--
}

/* arn_depot_one: past a cache that is in use, then back; arn_depot_give insists. */
proctype passer(byte times)
{
	byte m, idx, tag, link, tries;
	bool swapped;

	do
	:: times == 0 -> break
	:: else ->
		times--;
		pop(false);
		if
		:: m == NONE
		:: else ->
			look(m);
#ifdef PUSH_ONLY_TAG
			/* a reclaimer: arn_depot_take, then arn_depot_give to the class's own stack */
			atomic { hand[m] = false; spilled[m] = 1 }
#else
			push(1);
			do
			:: swapped -> break
			:: else -> push(1)
			od
#endif
		fi
	od;
	running--
}

init
{
	byte m, n, places;

	atomic {
		/* 2 above 1; 3 is in the exchanger's hands */
		head_idx = 2;
		next[2] = 1;
		hand[3] = true;
		running = 3;
		run exchanger(3, 2);
		run passer(1);
		run passer(1)
	};
	running == 0;
	atomic {
		m = 1;
		do
		:: m > MAGS -> break
		:: else -> places = places + (hand[m] -> 1 : 0) + (parked[m] -> 1 : 0) + (spilled[m] -> 1 : 0); m++
		od;
		m = head_idx;
		do
		:: m == NONE || n > MAGS -> break
		:: else -> assert(!hand[m] && !parked[m] && !spilled[m]); n++; m = next[m]
		od;
		assert(places + n == MAGS)
	}
}
