/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ring.pml - a model of the rings for spin: every interleaving of producers, a consumer and a skipper on a ring of
 * two slots; a producer and the consumer may be killed between any two of their accesses to shared memory.  Each
 * step says which function of src/core/ring.h or ring_mpsc.h it is; what stands in an atomic block is one
 * instruction there.
 *
 * Shown: no object comes twice, none without what its producer wrote to it, none that its producer was told is
 * still its own; what was enqueued comes, but for what a killed consumer had in its hands; in the producer's
 * order; indices stay within the ring; nobody waits for anybody (there is no blocking statement but in init).
 *
 * Memory is sequentially consistent here.  Where the code needs order for two accesses, a variant swaps them, and
 * the check must fail: so the order is needed, and it is what release, acquire and the full swaps provide.
 * Corrupt words are not modelled.  Positions do not wrap.
 *
 * tests/model/check.sh runs these:
 *   holds: -DMPSC                            everything
 *   holds: -DMPSC -DSINGLE                   without pairs
 *   holds: -DMPSC -DNO_SKIPPER               then no call fails but for want of room or of turns
 *   holds: -DSPSC
 *   fails: -DMPSC -DPAYLOAD_LATE             an object written to after its slot was published
 *   fails: -DMPSC -DPLAIN_PUBLISH            a plain store where a swap is
 *   fails: -DMPSC -DNO_POSITION              an empty slot that does not say for which position
 *   fails: -DMPSC -DNO_SKIPPER -DHEAD_FIRST  head moved before the slots behind it are empty
 *   fails: -DMPSC -DSKIP_FREE                skip beyond tail
 *   fails: -DSPSC -DPAYLOAD_LATE
 *   fails: -DSPSC -DTAIL_FIRST               tail moved before the slot is written
 *   fails: -DSPSC -DHEAD_FIRST               head moved before the slot is read
 */
#define SIZE 2
#define SKIP 99
#ifdef NO_POSITION
#define EMPTY(p) 100
#else
#define EMPTY(p) (100 + (p))
#endif
#define OBJECTS 8 /* objects are 1 to OBJECTS - 1; producer i has those from 1 + 2 * i on */

byte tail, head, head_seen, tail_seen, slot[SIZE];

bool written[OBJECTS];  /* the producer has written to it */
bool enqueued[OBJECTS]; /* its call said so */
bool refused[OBJECTS];  /* its call said that it is not */
bool taken[OBJECTS];    /* a consumer's call returned it */
bool inhand[OBJECTS];   /* a consumer was killed that had emptied its slot */
byte running;

#define is_object(w) ((w) > 0 && (w) < OBJECTS)

/* SIGKILL may strike here. */
#define may_die if :: true :: goto dead fi

/* What a call returns to the consumer. */
inline receive(o)
{
	assert(written[o] && !taken[o] && !refused[o] && !inhand[o]);
	assert(o % 2 == 1 || !enqueued[o - 1] || taken[o - 1] || inhand[o - 1]); /* in the order of its producer */
	taken[o] = true
}

#ifdef MPSC

proctype producer(byte first; byte count; bool mortal)
{
	byte t, h, room, n, i, o, tries;
	bool swapped;

#ifndef PAYLOAD_LATE
	for (i : 0 .. count - 1) { written[first + i] = true }
#endif
again:	/* arn_ring_reserve_once */
	if :: tries == 2 -> n = 0; i = 0; goto done :: else -> tries++ fi;
	t = tail;
	room = SIZE - (t - head_seen);
	if
	:: t - head_seen >= 0 && t - head_seen <= SIZE && room >= count
	:: else ->
		/* arn_ring_room */
		h = head;
		head_seen = h;
		if :: t - h < 0 || t - h > SIZE -> goto again :: else fi;
		room = SIZE - (t - h)
	fi;
	n = (count < room -> count : room);
	if :: n == 0 -> i = 0; goto done :: else fi;
	atomic { swapped = (tail == t); if :: swapped -> tail = t + n; assert(tail - head <= SIZE) :: else fi };
	if :: !swapped -> goto again :: else fi;
	if :: mortal -> may_die :: else fi;

	/* arn_ring_publish_all */
	i = 0;
	do
	:: i == n -> break
	:: i < n ->
#ifndef SINGLE
		if
		:: (t + i) % 2 == 0 && n - i >= 2 ->
			/* arn_ring_publish_pair */
			atomic {
				swapped = (slot[0] == EMPTY(t + i) && slot[1] == EMPTY(t + i + 1));
				if :: swapped -> slot[0] = first + i; slot[1] = first + i + 1 :: else fi
			};
			if :: mortal -> may_die :: else fi;
			if :: swapped -> i = i + 2; goto next :: else fi
		:: else
		fi;
#endif
		/* arn_ring_publish */
		atomic {
#ifdef PLAIN_PUBLISH
			swapped = true;
			slot[(t + i) % SIZE] = first + i
#else
			swapped = (slot[(t + i) % SIZE] == EMPTY(t + i));
			if :: swapped -> slot[(t + i) % SIZE] = first + i :: else fi
#endif
		};
		if :: mortal -> may_die :: else fi;
#ifdef NO_SKIPPER
		assert(swapped);
#endif
		if :: swapped -> i++ :: else -> break fi;
next:		skip
	od;
	o = i;
	/* arn_ring_abandon */
	do
	:: i == n -> break
	:: i < n ->
		atomic { if :: slot[(t + i) % SIZE] == EMPTY(t + i) -> slot[(t + i) % SIZE] = SKIP :: else fi };
		i++;
		if :: mortal -> may_die :: else fi
	od;
	i = o;
done:	/* the call returns i */
	n = i;
	i = 0;
	atomic {
		do
		:: i == count -> break
		:: i < n -> enqueued[first + i] = true; i++
		:: i >= n && i < count -> assert(!taken[first + i] && !inhand[first + i]); refused[first + i] = true; i++
		od
	};
dead:
#ifdef PAYLOAD_LATE
	for (i : 0 .. count - 1) { written[first + i] = true }
#endif
	running--
}

/* arn_ring_get_bulk_mpsc, without least, of at most two objects. */
inline get(mortal)
{
	pos = head;
	k = 0;
	do
	:: k == 2 || pos == h + SIZE -> break
	:: else ->
		w = slot[pos % SIZE];
		if :: w == EMPTY(pos) -> break :: else fi;
#ifdef HEAD_FIRST
		head = pos + 1;
#endif
		/* An object is in the caller's hands when its slot is empty. */
		atomic {
			slot[pos % SIZE] = EMPTY(pos + SIZE);
			if :: is_object(w) -> out[k] = w; k++ :: else fi
		};
		pos++;
		if :: mortal -> may_die :: else fi
	od;
	atomic {
#ifndef HEAD_FIRST
		head = pos;
#endif
		assert(head <= tail)
	};
	if :: mortal -> may_die :: else fi;
	/* the call returns k objects */
	atomic {
		w = 0;
		do :: w == k -> break :: else -> receive(out[w]); out[w] = 0; w++ od;
		k = 0
	}
}

proctype consumer(byte calls)
{
	byte pos, w, k, h, out[2];

	do
	:: calls == 0 -> break
	:: else -> h = head; get(true); calls--
	od;
dead:	atomic {
		w = 0;
		do :: w == k -> break :: else -> inhand[out[w]] = true; w++ od
	};
	running--
}

/* arn_ring_pass_over */
proctype skipper(byte calls)
{
	byte t, h, i, w;

	do
	:: calls == 0 -> break
	:: else ->
		t = tail;
		h = head;
		i = 0;
#ifdef SKIP_FREE
		t = h + SIZE;
#endif
		if
		:: t - h < 0 || t - h > SIZE
		:: else ->
			do
			:: i == t - h -> break
			:: else ->
				w = slot[(h + i) % SIZE];
				if
				:: w == EMPTY(h + i) ->
					atomic {
						if
						:: slot[(h + i) % SIZE] == w ->
							assert(h + i < tail); /* not the next producer's */
							slot[(h + i) % SIZE] = SKIP
						:: else
						fi
					}
				:: is_object(w) -> break
				:: else
				fi;
				i++
			od
		fi;
		calls--
	od;
	running--
}

init
{
	byte pos, w, k, h, i, out[2];

	atomic {
		slot[0] = EMPTY(0);
		slot[1] = EMPTY(1);
		run producer(1, 2, true);
		run producer(3, 1, false);
		run consumer(2);
#ifdef NO_SKIPPER
		running = 3
#else
		running = 4;
		run skipper(1)
#endif
	};
	running == 0;
	/* A new consumer, and a new producer, on what they left. */
	for (i : 0 .. 3) {
		h = head;
		get(false);
		if
		:: tail - head > 0 && slot[head % SIZE] == EMPTY(head) ->
			running = 1;
			run skipper(1);
			running == 0
		:: else
		fi
	}
	assert(head == tail);
	running = 1;
	run producer(5, 2, false);
	running == 0;
	h = head;
	get(false);
	assert(taken[5] && taken[6]);
	for (i : 1 .. OBJECTS - 1) {
		assert(!enqueued[i] || taken[i] || inhand[i])
	}
dead:	skip
}

#else /* SPSC */

/* arn_ring_put_bulk_spsc, of count objects: as many as fit. */
proctype producer(byte first; byte count; bool mortal)
{
	byte t, h, room, n, i, sent, tries;

	do
	:: sent == count || tries == 3 -> break
	:: else ->
		tries++;
#ifndef PAYLOAD_LATE
		for (i : sent .. count - 1) { written[first + i] = true }
#endif
		t = tail;
		/* arn_ring_room */
		room = SIZE - (t - head_seen);
		if
		:: room >= count - sent
		:: else -> h = head; head_seen = h; room = SIZE - (t - h)
		fi;
		assert(room <= SIZE);
		n = (count - sent < room -> count - sent : room);
#ifdef TAIL_FIRST
		tail = t + n;
#endif
		i = 0;
		do
		:: i == n -> break
		:: else ->
			slot[(t + i) % SIZE] = first + sent + i;
			i++;
			if :: mortal -> may_die :: else fi
		od;
#ifndef TAIL_FIRST
		tail = t + n;
#endif
		if :: mortal -> may_die :: else fi;
		atomic {
			i = 0;
			do :: i == n -> break :: else -> enqueued[first + sent + i] = true; i++ od
		};
#ifdef PAYLOAD_LATE
		for (i : sent .. count - 1) { written[first + i] = true }
#endif
		sent = sent + n
	od;
dead:	running--
}

/* arn_ring_get_bulk_spsc, of at most two objects. */
inline get(mortal)
{
	pos = head;
	/* arn_ring_stock */
	k = tail_seen - pos;
	if
	:: k >= 2
	:: else -> w = tail; tail_seen = w; k = w - pos
	fi;
	assert(k <= SIZE);
	k = (k < 2 -> k : 2);
#ifdef HEAD_FIRST
	head = pos + k;
#endif
	i = 0;
	do
	:: i == k -> break
	:: else ->
		out[i] = slot[(pos + i) % SIZE];
		i++;
		if :: mortal -> may_die :: else fi
	od;
#ifndef HEAD_FIRST
	/* In the caller's hands from here on. */
	atomic { head = pos + k; assert(head <= tail); held = k };
#endif
	if :: mortal -> may_die :: else fi;
	atomic {
		i = 0;
		do :: i == k -> break :: else -> receive(out[i]); i++ od;
		held = 0
	}
}

proctype consumer(byte calls)
{
	byte pos, w, k, i, held, out[2];

	do
	:: calls == 0 -> break
	:: else -> get(true); calls--
	od;
dead:	atomic {
		i = 0;
		do :: i == held -> break :: else -> inhand[out[i]] = true; i++ od
	};
	running--
}

init
{
	byte pos, w, k, i, j, held, out[2];

	atomic {
		running = 2;
		run producer(1, 4, true);
		run consumer(3)
	};
	running == 0;
	/* Their successors. */
	get(false);
	assert(head == tail);
	running = 1;
	run producer(5, 2, false);
	running == 0;
	get(false);
	assert(taken[5] && taken[6]);
	for (j : 1 .. OBJECTS - 1) {
		assert(!enqueued[j] || taken[j] || inhand[j])
	}
dead:	skip
}
#endif
