/* The barrier of docs/barrier.md, for a proof by exhaustion with Spin.
 *
 * The network loses, doubles, delays and reorders without bound. Since facts
 * about an epoch only grow, and receiving is the maximum, an old or a doubled
 * message changes nothing. So a link is described completely by: the receiver
 * may at any moment learn what the sender has said of the receiver's epoch, up
 * to now; also before it enters that epoch itself. Who has crashed is not heard
 * any more: what was under way then might as well have come before.
 *
 * Who is told what: through the leader (the lowest id in the view) until the
 * leader is lost, then everyone tells everyone; a first ABORT goes to everyone;
 * whoever is asked about an epoch that is behind it answers.
 *
 *   -DN=3|4 -DE=1|2  nodes; epochs
 *   -DCRASH=n        up to n nodes crash, and are declared lost after that
 *   -DWHO=set        of these (bits): those who do not lead are alike
 *   -DFALSE_LOSS     one node holds one other for lost that lives
 *   -DQUIT           a node may give up by itself before it is READY
 *   -DEXIT           who has its epochs behind it may be gone at once
 *   -DDIRECT         everyone talks to everyone from the start
 * broken on purpose, each of which must fail:
 *   -DHASTY          a stuck node gives up alone
 *   -DONE_PHASE      READY suffices to leave
 *   -DIGNORE_EPOCH   facts of one epoch count in the next
 *   -DCOUNT          a doubled request counts for somebody else
 *   -DNO_EPOCH       ABORT does not say which epoch it is about
 *   -DNO_REPEAT      what is lost is not said again */
#ifndef N
#define N 3
#endif
#ifndef E
#define E 1
#endif
#ifndef WHO
#define WHO 15
#endif
#define AT(a, b) ((a) * N + (b))    /* what a knows of b */
#define IN(q, e) ((q) * E + (e))    /* what q did in epoch e */
#define ALL_OF_THEM ((1 << N) - 1)
#define HAS(set, q) (((set) >> (q)) & 1)

#define NONE 0
#define ENTERED 1
#define READY 2
#define LEFT 3

byte epoch[N], phase[N], view[N];
byte lost[N];            /* sets: whom a node holds for lost, for good */
bool direct[N], told_of[N]; /* told_of: someone gave up, the leader will say */
byte know[N * N];        /* phase of the other in my epoch */
byte stuck_without[N * N]; /* what the other said, in my epoch */
byte top[N * E];         /* as far as it came: NONE .. LEFT */
bool failed[N * E], first[N * E]; /* gave up; and was the first to */
byte seen[N * E];        /* its view then */
bool crashed[N], gone[N], stuck[N];
byte n_crashed, n_false;
#ifdef NO_REPEAT
bool said[N * N];
#endif

#define E_ epoch[me]
#define LIVE(q) (!crashed[q])
#define SPEAKS(q) (!crashed[q] && !gone[q])
#define RUNS(q) (!crashed[q] && epoch[q] < E)
#define ENDED(q) (crashed[q] || epoch[q] >= E)
#define LEADER(set) (HAS(set, 0) -> 0 : (HAS(set, 1) -> 1 : (HAS(set, 2) -> 2 : 3)))
#define GONE(q) HAS(lost[me], q)
#define MINE(q) HAS(view[me], q)
#define COUNTS (direct[me] || LEADER(view[me]) == me)
#define LOST_IN_VIEW (lost[me] & view[me])

#define HAS_ENTERED(q) (!MINE(q) || q == me || know[AT(me, q)] >= ENTERED)
#define IS_READY(q) (!MINE(q) || q == me || GONE(q) || know[AT(me, q)] >= READY)
#define CLAIMS(q) (MINE(q) && q != me && know[AT(me, q)] >= READY)
#define LETS_GO(q) (MINE(q) && q != me && know[AT(me, q)] >= LEFT)
#define LACKED(q) (MINE(q) && q != me && GONE(q) && know[AT(me, q)] < ENTERED)
#define SAME_LOSS(q) (!MINE(q) || q == me || GONE(q) || stuck_without[AT(me, q)] == LOST_IN_VIEW)
#define UNLIKE(q) (MINE(q) && q != me && know[AT(me, q)] != NONE && seen[IN(q, E_)] != view[me])
#define TRULY_IN(q) (!HAS(view[me], q) || top[IN(q, E_)] >= ENTERED)
#define GAVE_UP(q) (LIVE(q) && HAS(view[me], q) && failed[IN(q, E_)])
#define WENT_ON(q) (LIVE(q) && HAS(view[me], q) && top[IN(q, E_)] == LEFT)
#if N == 3
#define ALL(P) (P(0) && P(1) && P(2))
#define ANY(P) (P(0) || P(1) || P(2))
#else
#define ALL(P) (P(0) && P(1) && P(2) && P(3))
#define ANY(P) (P(0) || P(1) || P(2) || P(3))
#endif

#ifdef FALSE_LOSS
#define AGREE(P) true
#else
#define AGREE(P) !ANY(P)
#endif

inline forget(me) {
  byte f = 0;
  do :: f < N -> know[AT(me, f)] = NONE; stuck_without[AT(me, f)] = 0;
#ifdef NO_REPEAT
        said[AT(me, f)] = false;
#endif
        f++
     :: else -> break od;
  f = 0; told_of[me] = false; stuck[me] = false
}

inline give_up(me, is_first) {
  assert(AGREE(WENT_ON));
  printf("%d gives up %d, first %d\n", me, epoch[me], is_first);
  failed[IN(me, epoch[me])] = true;
  first[IN(me, epoch[me])] = is_first;
  phase[me] = NONE; view[me] = 0; epoch[me]++;
  forget(me)
}

inline leave(me) {
  assert(ALL(TRULY_IN));
  assert(AGREE(GAVE_UP));
  printf("%d leaves %d\n", me, epoch[me]);
  top[IN(me, epoch[me])] = LEFT;
  phase[me] = NONE; view[me] = 0; epoch[me]++;
#ifdef IGNORE_EPOCH
  told_of[me] = false
#else
  forget(me)
#endif
}

#ifdef HASTY
#define NOBODY_CAN_BE_READY true
#else
#define NOBODY_CAN_BE_READY ALL(SAME_LOSS)
#endif
#ifdef ONE_PHASE
#define MAY_LEAVE true
#else
#define MAY_LEAVE (ANY(LETS_GO) || (COUNTS && ALL(IS_READY)))
#endif
#define ENTERS (phase[me] == NONE && RUNS(me))
#define WAITS(p) (phase[me] == p && RUNS(me))

/* As far as what is known allows, at once. The leader alone says READY, so
 * while it has not, it alone decides what a loss means. */
inline advance(me) {
  stuck[me] = false;
  if
  :: WAITS(ENTERED) && (ALL(HAS_ENTERED) || ANY(CLAIMS)) ->
       printf("%d is ready in %d\n", me, E_);
       phase[me] = READY; top[IN(me, E_)] = READY
  :: else
  fi;
  if
  :: WAITS(READY) && MAY_LEAVE -> leave(me)
  :: WAITS(ENTERED) && ANY(LACKED) ->
       if
       :: (direct[me] && NOBODY_CAN_BE_READY) || (!direct[me] && LEADER(view[me]) == me) ->
            give_up(me, true)
       :: else -> stuck[me] = direct[me]
       fi
  :: else
  fi
}

proctype node(byte me) {
end:
  do
  :: atomic { ENTERS ->
       phase[me] = ENTERED; view[me] = ALL_OF_THEM & ~lost[me];
       printf("%d enters %d\n", me, E_);
       seen[IN(me, E_)] = view[me]; top[IN(me, E_)] = ENTERED;
#ifdef DIRECT
       direct[me] = true;
#else
       direct[me] = (view[me] & (view[me] - 1) & ((view[me] & (view[me] - 1)) - 1)) == 0;
#endif
       if :: ANY(UNLIKE) -> give_up(me, true) :: else -> advance(me) fi
     }
#ifdef QUIT
  :: atomic { WAITS(ENTERED) -> give_up(me, true) }
#endif
#ifdef CRASH
  :: atomic { LIVE(me) && n_crashed < CRASH && HAS(WHO, me) -> n_crashed++; crashed[me] = true; printf("%d crashes\n", me) }
#endif
#ifdef EXIT
  :: atomic { LIVE(me) && epoch[me] >= E && !gone[me] -> gone[me] = true; printf("%d exits\n", me) }
#endif
  od
}

/* Whether q says something to me in my epoch without being asked, or me asks
 * it: through the leader, or past it. */
#define ASKS(q) (direct[me] || LEADER(view[me]) == q || LEADER(view[me]) == me)
#define TELLS (direct[q] || LEADER(seen[IN(q, E_)]) == q || LEADER(seen[IN(q, E_)]) == me)
#define HEARS (SPEAKS(q) && RUNS(me) && !GONE(q) && phase[me] != NONE)
#define HEARS_EARLY (SPEAKS(q) && RUNS(me) && !GONE(q) && phase[me] == NONE && epoch[q] == E_)
#define SAYS top[IN(q, E_)]
#define OTHER_VIEW (seen[IN(q, E_)] != view[me])

/* q to me. */
proctype link(byte q, me) {
end:
  do
  /* How far q is in my epoch. */
#ifdef NO_REPEAT
  :: atomic { HEARS && (ASKS(q) || TELLS) && SAYS > know[AT(me, q)] && !said[AT(me, q)] ->
       said[AT(me, q)] = true; know[AT(me, q)] = SAYS; advance(me) }
  :: atomic { HEARS && SAYS > know[AT(me, q)] && !said[AT(me, q)] -> said[AT(me, q)] = true }
#else
  :: atomic { HEARS && (ASKS(q) || TELLS) && SAYS > know[AT(me, q)] && SAYS != NONE ->
       if
       :: OTHER_VIEW -> give_up(me, true)
       :: else -> know[AT(me, q)]++; printf("%d hears that %d is at %d\n", me, q, know[AT(me, q)])
#ifdef COUNT
                  ; if :: know[AT(me, (q + 1) % N)] < know[AT(me, q)] && (q + 1) % N != me ->
                            know[AT(me, (q + 1) % N)] = know[AT(me, q)]
                       :: true fi
#endif
                  ; advance(me)
       fi }
  /* What it says of an epoch that I will enter next is kept. */
  :: atomic { HEARS_EARLY && TELLS && SAYS > know[AT(me, q)] ->
       know[AT(me, q)]++; printf("%d hears early that %d is at %d\n", me, q, know[AT(me, q)]) }
#endif
  /* Without whom it is stuck: only the latest counts. */
  :: atomic { HEARS && (ASKS(q) || TELLS) && epoch[q] == E_ && stuck[q] && !OTHER_VIEW && stuck_without[AT(me, q)] != (lost[q] & view[q]) && know[AT(me, q)] >= ENTERED ->
       stuck_without[AT(me, q)] = lost[q] & view[q];
       printf("%d hears that %d is stuck without %d\n", me, q, lost[q] & view[q]);
       advance(me) }
  /* It gave up. Once I am READY under a leader, only the leader's word counts. */
#ifdef NO_EPOCH
  :: atomic { HEARS && E_ > 0 && failed[IN(q, E_ - 1)] && failed[IN(me, E_ - 1)] && !failed[IN(q, E_)] ->
       give_up(me, false) }
#endif
  :: atomic { HEARS && failed[IN(q, E_)] && (first[IN(q, E_)] || ASKS(q) || TELLS) &&
       !(phase[me] == READY && !direct[me] && LEADER(view[me]) != me && LEADER(view[me]) != q) ->
       give_up(me, false) }
  :: atomic { HEARS && failed[IN(q, E_)] && first[IN(q, E_)] && !told_of[me] &&
       phase[me] == READY && !direct[me] && LEADER(view[me]) != me && LEADER(view[me]) != q ->
       told_of[me] = true; printf("%d is told that %d gave up\n", me, q) }
  /* I have not entered, and it has lost somebody there: I stay out. */
  :: atomic { HEARS_EARLY && phase[q] == ENTERED &&
       (lost[q] & view[q]) != 0 -> view[me] = view[q]; give_up(me, true) }
  /* I have not entered, and it has given up: I will follow when I do. */
  :: atomic { SPEAKS(q) && RUNS(me) && !GONE(q) && phase[me] == NONE && failed[IN(q, E_)] ->
       view[me] = seen[IN(q, E_)]; give_up(me, false) }
  od
}

inline lose(me, q) {
  printf("%d loses %d\n", me, q);
  lost[me] = lost[me] | (1 << q);
  if
  :: phase[me] != NONE ->
       if
       :: !direct[me] && LEADER(view[me]) == q -> direct[me] = true
       :: else
       fi;
       if
       :: direct[me] && told_of[me] -> give_up(me, false)
       :: else -> advance(me)
       fi
  :: else
  fi
}

proctype detector(byte q, me) {
end:
  do
  :: atomic { !SPEAKS(q) && LIVE(me) && !GONE(q) -> lose(me, q) }
#ifdef FALSE_LOSS
  :: atomic { n_false == 0 && LIVE(me) && !GONE(q) -> n_false = 1; lose(me, q) }
#endif
  od
}

init {
  byte i, j;
  atomic {
    do
    :: i < N ->
         run node(i);
         j = 0;
         do
         :: j < N -> if :: i != j -> run link(i, j); run detector(i, j) :: else fi; j++
         :: else -> break
         od;
         i++
    :: else -> break
    od; i = 0; j = 0
  }
}

#if N == 3
#define ALL_ENDED (ENDED(0) && ENDED(1) && ENDED(2))
#else
#define ALL_ENDED (ENDED(0) && ENDED(1) && ENDED(2) && ENDED(3))
#endif
#ifdef LIVE_CHECK
ltl everyone_ends { <> ALL_ENDED }
#endif
