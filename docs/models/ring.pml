/* The rings of docs/shared-memory.md, for a proof by exhaustion with Spin.
 *
 * One bus thread sends numbered events to another, each through the ring or
 * over the connection, which takes as long as it likes; and claims, over the
 * connection, of how many it has sent. A step is one load or one store of a word
 * that both see. The receiver sleeps when it has nothing to do: until its bell
 * is rung, or something comes over the connection.
 *
 *   -DEVENTS=n -DSLOTS=n -DCLAIMS=n
 *   -DLOSS           the connection may lose an event
 *   -DQUIET          nothing comes after the last event, which would wake who
 *                    has missed it
 * broken on purpose, each of which must fail:
 *   -DNO_CLEAR       the ring is taken although something is under way
 *   -DNO_DRAIN       the connection is read before the ring
 *   -DNO_LOOK        who goes to rest does not look once more
 *   -DLOOK_FIRST     it looks, and then says that it rests
 *   -DEARLY_RING     the sender looks whether the other rests before it writes
 *   -DONE_REST       all rests have the same number, so it is rung for in one
 *   -DNO_AHEAD       a claim is believed to the number
 *   -DNO_ROOM        nobody looks whether there is room */
#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef CLAIMS
#define CLAIMS 1
#endif
#ifdef ONE_REST
#define REST 1
#else
#define REST n_rests
#endif

mtype = { EVENT, CLAIM };

/* The words: each is written by one of the two. */
byte slots[SLOTS];
byte written;       /* by the sender */
byte taken;         /* by the receiver */
byte rests;         /* by the receiver: the number of its rest, or 0 */
bool bell;          /* rung by the sender, and heard by the receiver */

chan connection = [EVENTS + CLAIMS + 1] of { mtype, byte };
chan account = [EVENTS + CLAIMS + 1] of { byte }; /* how many have come */

/* What only the sender, the receiver, or the proof, knows. */
byte sent, carried, arrived, claims, rung;
byte got, ahead, last, counted, n_rests;
byte n_lost;
bool over;

inline hear_accounts() {
  byte n;
  do
  :: account?n -> if :: n > arrived -> arrived = n :: else fi
  :: empty(account) -> break
  od
}

active proctype sender() {
  byte rest, room;
  do
  :: sent < EVENTS ->
     d_step { hear_accounts() }
     room = taken; /* a load */
     sent++;
     if
#ifdef NO_CLEAR
     :: (
#else
     :: (arrived >= carried &&
#endif
#ifdef NO_ROOM
         true) ->
#else
         written - room < SLOTS) ->
#endif
#ifdef EARLY_RING
        rest = rests;
        slots[written % SLOTS] = sent;
        written++;
#else
        slots[written % SLOTS] = sent;
        written++;
        rest = rests;
#endif
        if
        :: rest != 0 && rest != rung -> rung = rest; bell = true
        :: else
        fi
     :: true -> /* too long, or one of many */
        carried = sent;
        if
        :: connection!EVENT, sent
#ifdef LOSS
        :: n_lost++
#endif
        fi
     fi
  :: claims < CLAIMS -> claims++; connection!CLAIM, sent
  :: sent == EVENTS -> break
  od;
#ifndef QUIET
  connection!CLAIM, sent;
#endif
  over = true
}

inline take(number) {
  assert(number > last); /* in order, each once */
#ifndef LOSS
  assert(number == last + 1);
#endif
  last = number;
  got++
}

inline read_ring() {
  until = written;
  do
  :: taken != until ->
     d_step { take(slots[taken % SLOTS]); ahead++ }
     taken++
  :: else -> break
  od
}

inline settle(claim) {
  d_step {
    if
    :: claim > got -> counted = counted + claim - got; got = claim
    :: else
    fi;
#ifdef NO_AHEAD
    got = claim;
    ahead = 0
#else
    if
    :: got > claim + ahead -> got = claim + ahead
    :: else
    fi;
    ahead = got - claim
#endif
  }
}

active proctype receiver() {
  mtype what;
  byte value, until;
  bool looks;
  do
  :: /* it goes to rest, unless there is something to read */
     d_step { n_rests++ }
#ifdef LOOK_FIRST
     looks = written != taken;
     rests = REST;
#else
     rests = REST;
#ifdef NO_LOOK
     looks = false;
#else
     looks = written != taken;
#endif
#endif
     if
     :: looks
     :: else ->
end_rest: (bell || nempty(connection))
     fi;
     rests = 0;
     bell = false;
#ifndef NO_DRAIN
     read_ring();
#endif
     do
     :: connection?what, value ->
#ifndef NO_DRAIN
        read_ring();
#endif
        if
        :: what == EVENT -> d_step { take(value) }
        :: else -> settle(value)
        fi
     :: empty(connection) -> break
     od;
#ifdef NO_DRAIN
     read_ring();
#endif
     if
     :: nfull(account) -> account!got
     :: true
     fi;
  od
}

/* When nobody can do anything any more. */
active proctype end() {
  timeout -> assert(over && written == taken && empty(connection));
#ifndef QUIET
  assert(got == EVENTS && counted == n_lost) /* no more, and no fewer */
#endif
}
