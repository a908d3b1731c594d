/* The room of docs/shared-memory.md, for a proof by exhaustion with Spin.
 *
 * Each member writes its own words and reads those of the others, one at a
 * time: a step here is one load or one store. A member may stop between any two
 * of them, for good (a crash), or as long as it takes for others to declare it
 * lost (a false loss): then it goes on where it was, and may still make the
 * store that it was about to make.
 *
 *   -DN=3|4 -DE=1|2  members; epochs
 *   -DCRASH=n        up to n members crash, and are declared lost after that
 *   -DFALSE_LOSS     one member declares one other lost that lives
 *   -DQUIT           a member's deadline may pass in any epoch
 * broken on purpose, each of which must fail:
 *   -DNO_COLLECT     the leader decides from its own words alone
 *   -DNO_FREEZE      who has answered still leaves by itself
 *   -DNO_ALARM       who sees that all have entered looks at nothing else
 *   -DEARLY_ALARM    it has looked for alarms before, not after that
 *   -DNO_FENCE       what a lost member says still counts
 *   -DLOST_ENTERED   who is lost counts as entered
 *   -DDEAF           who waits for a member hears nothing but that member
 *   -DDEAF_LEADER    a leader that sees that all are there looks at nothing else
 *   -DPASS_QUIETLY   who passes over a leader that is not there tells nobody */
#ifndef N
#define N 3
#endif
#ifndef E
#define E 1
#endif
#define HAS(set, q) (((set) >> (q)) & 1)
#define BIT(q) (1 << (q))

/* The words: each is written by the member that it belongs to. */
byte entered[N];        /* the last epoch that it has entered, from 1 */
byte ended[N], good[N]; /* the last that ended for it, and the last that
                         * succeeded: one word */
byte frozen[N];         /* the last that it does not leave by itself */
byte fenced[N];         /* set: whom it has declared lost */
byte gave_up[N];        /* the last whose deadline has passed for it */
byte out_set[N];        /* set: who is not counted after the last failure */
byte heeds_in[N], heeds[N]; /* in that epoch, the first that may lead for it,
                             * counted around: one word */

/* What only the member, or only the proof, knows. */
byte lost[N];    /* set: what the bus told it */
bool crashed[N], out[N];
byte excluded[N];
byte result[N * (E + 1)]; /* 0 none, 1 success, 2 failure */
byte n_crashed, n_false;

#define RESULT(q, e) result[(q) * (E + 1) + (e)]
#define ALL_OF_THEM ((1 << N) - 1)
#define LIVE(q) (!crashed[q])
#define STAYS(q) (!crashed[q] && !out[q] && !HAS(fences_of_all, q))
#define LOWEST(set) (HAS(set, 0) -> 0 : (HAS(set, 1) -> 1 : (HAS(set, 2) -> 2 : 3)))
#define TRUSTED(me) (ALL_OF_THEM & ~fenced[me])
#define FIRST_OF(j) (heeds_in[j] == k -> heeds[j] : 0)
/* The first that is trusted from `first` on; there is one: me. */
inline find_leader(me) {
  at = first;
  do
  :: HAS(fenced[me], at % N) -> at++
  :: else -> break
  od;
  leader = at % N
}
/* It is there; I am. */
#define CAME(q) (q == me || entered[q] >= k || frozen[q] >= k || ended[q] >= k)
#define COUNTS(q) (!HAS(excluded[me], q))

byte fences_of_all; /* for the proof: whom any member has declared lost */

/* What makes a waiting member look up. */
#ifdef DEAF
#define ALARM(j) false
#define TOLD false
#else
#define ALARM(j) (!HAS(fenced[me], j) && ((fenced[j] & ~fenced[me]) != 0 || FIRST_OF(j) > first))
#define TOLD ((lost[me] & ~fenced[me]) != 0)
#endif
#define FROZE(j) (!HAS(fenced[me], j) && frozen[j] >= k)
#if N == 3
#define ANY(P) (P(0) || P(1) || P(2))
#else
#define ANY(P) (P(0) || P(1) || P(2) || P(3))
#endif
#define TROUBLE (TOLD || ANY(ALARM) || ANY(FROZE))
#define QUITS(j) (!HAS(fenced[me], j) && gave_up[j] >= k)
#define NEWS (TOLD || ANY(ALARM))

#define LEFT(q) (q != me && COUNTS(q) && good[q] >= k)
/* Nobody leaves before all that it counts have entered. Of those that stay,
 * none succeeds where another fails. */
inline settle(me, k, how) {
  d_step {
    byte q = 0;
    do
    :: q < N ->
         if
         :: how == 1 -> assert(HAS(excluded[me], q) || entered[q] >= k)
         :: else
         fi;
         if
         :: q != me && STAYS(q) && STAYS(me) && RESULT(q, k) != 0 ->
              assert(RESULT(q, k) == how)
         :: else
         fi;
         q++
    :: else -> break
    od;
    q = 0;
    RESULT(me, k) = how;
    printf("%d ends %d as %d\n", me, k, how)
  }
}

#define CRASHES crashed[me]

proctype member(byte me) {
  byte k = 0, j = 0, seen = 0, verdict = 0, leader = 0, missing = 0;
  byte first = 0, at = 0;
  bool lacking = false, quits = false;
  do
  :: k < E && LIVE(me) && !out[me] ->
       k++; j = 0; seen = 0; verdict = 0; quits = false; first = 0;
       if
       :: atomic { LIVE(me) -> entered[me] = k; printf("%d enters %d\n", me, k) }
#ifdef QUIT
       /* It gives up before it has entered. */
       :: atomic { LIVE(me) -> quits = true; goto trouble }
#endif
       :: CRASHES -> goto end
       fi;
       if
       :: atomic { LIVE(me) && (fenced[me] & ~excluded[me]) != 0 -> goto trouble }
       :: else
       fi;
       /* One look at each, in order; who is not there is waited for. Then one at
        * the alarms of each. If another has left, all of that was seen. */
       do
       :: j < N ->
            if
            :: atomic { LIVE(me) && (!COUNTS(j) || j == me || entered[j] >= k) -> j++ }
            :: atomic { LIVE(me) && ANY(LEFT) -> goto leave }
#ifdef EARLY_ALARM
            :: atomic { LIVE(me) && COUNTS(j) && j != me && (ALARM(j) || FROZE(j)) -> goto trouble }
#endif
            :: atomic { LIVE(me) && COUNTS(j) && j != me && entered[j] < k && TROUBLE -> goto trouble }
#ifdef QUIT
            :: atomic { LIVE(me) && COUNTS(j) && j != me && entered[j] < k -> quits = true; goto trouble }
#endif
            :: CRASHES -> goto end
            fi
       :: else -> break
       od;
#if !defined(NO_ALARM) && !defined(EARLY_ALARM)
       j = 0;
       do
       :: j < N ->
            if
            :: atomic { LIVE(me) && (!COUNTS(j) || j == me || (!ALARM(j) && !FROZE(j))) -> j++ }
            :: atomic { LIVE(me) && COUNTS(j) && j != me && (ALARM(j) || FROZE(j)) -> goto trouble }
            :: CRASHES -> goto end
            fi
       :: else -> break
       od;
#endif
leave:
       if
       :: atomic { LIVE(me) -> ended[me] = k; good[me] = k; settle(me, k, 1) }
       :: CRASHES -> goto end
       fi;
       goto next;

trouble:
       /* Whom others have declared lost is lost for me too, unless it is me. */
       atomic { j = 0; seen = fenced[me] | lost[me]; verdict = 0; missing = 0; lacking = false }
       do
       :: j < N ->
            if
            :: atomic { LIVE(me) && j != me && !HAS(fenced[me], j) && HAS(fenced[j], me) -> out[me] = true; printf("%d is out\n", me); goto end }
            :: atomic { LIVE(me) && (j == me || HAS(fenced[me], j) || !HAS(fenced[j], me)) ->
                 if :: !HAS(fenced[me], j) && j != me -> seen = seen | fenced[j];
                    if :: FIRST_OF(j) > first -> first = FIRST_OF(j) :: else fi
                 :: else fi;
                 j++ }
            :: CRASHES -> goto end
            fi
       :: else -> break
       od;
       if
       :: atomic { LIVE(me) -> fenced[me] = fenced[me] | seen; fences_of_all = fences_of_all | seen; j = 0 }
       :: CRASHES -> goto end
       fi;
       if
       :: atomic { LIVE(me) && first != 0 -> heeds[me] = first; heeds_in[me] = k }
       :: atomic { LIVE(me) && first == 0 -> skip }
       :: CRASHES -> goto end
       fi;
       if
       :: atomic { LIVE(me) -> frozen[me] = k; if :: quits -> gave_up[me] = k :: else fi; find_leader(me) }
       :: CRASHES -> goto end
       fi;
       /* Nobody waits for a leader that is not there. */
       do
       :: atomic { LIVE(me) && CAME(leader) -> break }
       :: atomic { LIVE(me) && !CAME(leader) -> first = at + 1; find_leader(me) }
       :: CRASHES -> goto end
       od;
#ifndef PASS_QUIETLY
       if
       :: atomic { LIVE(me) && first != FIRST_OF(me) -> heeds[me] = first; heeds_in[me] = k }
       :: atomic { LIVE(me) && first == FIRST_OF(me) -> skip }
       :: CRASHES -> goto end
       fi;
#endif
#ifdef NO_FREEZE
       /* It looks once more, and goes its own way if all are there. */
       j = 0;
       do
       :: atomic { LIVE(me) && j < N && (!COUNTS(j) || entered[j] >= k) -> j++ }
       :: atomic { LIVE(me) && j == N -> ended[me] = k; good[me] = k; settle(me, k, 1); goto next }
       :: atomic { LIVE(me) && j < N && COUNTS(j) && entered[j] < k -> j = 0; break }
       :: CRASHES -> goto end
       od;
#endif
       if
       :: leader != me ->
            if
#ifdef NO_FENCE
            :: atomic { LIVE(me) && ended[0] >= k && leader != 0 -> ended[me] = k; out_set[me] = out_set[0];
                 if :: good[0] >= k -> good[me] = k; settle(me, k, 1)
                    :: else -> excluded[me] = excluded[me] | out_set[0]; fenced[me] = fenced[me] | excluded[me]; settle(me, k, 2) fi; goto next }
#endif
            :: atomic { LIVE(me) && ANY(LEFT) -> goto leave }
            :: atomic { LIVE(me) && ended[leader] >= k -> ended[me] = k;
                 if :: good[leader] >= k -> good[me] = k; settle(me, k, 1)
                    :: else -> out_set[me] = out_set[leader]; excluded[me] = (excluded[me] | out_set[leader]) & ~BIT(me); fenced[me] = fenced[me] | excluded[me]; settle(me, k, 2) fi; goto next }
            :: atomic { LIVE(me) && NEWS -> goto trouble }
#ifdef QUIT
            :: atomic { LIVE(me) && !quits && ended[leader] < k -> quits = true; goto trouble }
#endif
            :: CRASHES -> goto end
            fi
       :: else ->
            /* I lead: what have those that I trust come to? */
            j = 0;
            do
            :: j < N ->
                 if
                 :: atomic { LIVE(me) && (j == me || HAS(fenced[me], j)) ->
                      if :: COUNTS(j) && entered[j] < k -> lacking = true; missing = missing | BIT(j) :: else fi; j++ }
                 :: atomic { LIVE(me) && COUNTS(j) && good[j] >= k -> verdict = 1; j++ }
                 :: atomic { LIVE(me) && j != me && !HAS(fenced[me], j) && ended[j] >= k ->
                      verdict = (good[j] >= k -> 1 : 2); if :: verdict == 2 -> seen = out_set[j] :: else fi; j++ }
                 :: atomic { LIVE(me) && j != me && !HAS(fenced[me], j) && ended[j] < k && entered[j] < k ->
                      missing = missing | BIT(j); if :: gave_up[j] >= k -> quits = true :: else fi; j++ }
                 :: atomic { LIVE(me) && j != me && !HAS(fenced[me], j) && ended[j] < k && entered[j] >= k &&
                      frozen[j] >= k && (fenced[me] & ~fenced[j]) == 0 &&
                      FIRST_OF(j) == FIRST_OF(me) ->
                      if :: gave_up[j] >= k -> quits = true :: else fi; j++ }
#ifdef NO_COLLECT
                 :: atomic { LIVE(me) && j != me && !HAS(fenced[me], j) && ended[j] < k && entered[j] >= k -> j++ }
#endif
                 :: atomic { LIVE(me) && NEWS -> goto trouble }
                 :: CRASHES -> goto end
                 fi
            :: else -> break
            od;
#ifndef DEAF_LEADER
            /* If all are there, nobody has declared me lost before that. */
            j = 0;
            do
            :: j < N && verdict == 0 && missing == 0 ->
                 if
                 :: atomic { LIVE(me) && (j == me || !ALARM(j)) -> j++ }
                 :: atomic { LIVE(me) && j != me && ALARM(j) -> goto trouble }
                 :: CRASHES -> goto end
                 fi
            :: else -> break
            od;
#endif
#ifdef LOST_ENTERED
            missing = missing & ~fenced[me]; lacking = false;
#endif
            if
            :: atomic { LIVE(me) && (verdict == 1 || (verdict == 0 && missing == 0)) ->
                 ended[me] = k; good[me] = k; settle(me, k, 1) }
            :: atomic { LIVE(me) && (verdict == 2 || (verdict == 0 && missing != 0 && (lacking || quits))) ->
                 if :: verdict == 2 -> out_set[me] = seen | excluded[me] :: else -> out_set[me] = fenced[me] | excluded[me] fi;
                 excluded[me] = out_set[me] & ~BIT(me); fenced[me] = fenced[me] | excluded[me]; ended[me] = k; settle(me, k, 2) }
            /* All that are lost had entered: the living are waited for. */
            :: atomic { LIVE(me) && verdict == 0 && missing != 0 && !lacking && !quits &&
                 (TOLD || ANY(ALARM) || ANY(QUITS) || entered[LOWEST(missing)] >= k || ended[LOWEST(missing)] >= k) -> goto trouble }
#ifdef QUIT
            :: atomic { LIVE(me) && verdict == 0 && missing != 0 && !quits -> quits = true; goto trouble }
#endif
            :: CRASHES -> goto end
            fi
       fi;
next: skip
  :: else -> break
  od;
end: skip
}

#ifdef CRASH
proctype killer() {
  byte q;
endk:
  do
  :: atomic { n_crashed < CRASH ->
       if :: q = 0 :: q = 1 :: q = 2
#if N == 4
          :: q = 3
#endif
       fi;
       if :: LIVE(q) -> n_crashed++; crashed[q] = true; printf("%d crashes\n", q) :: else fi; q = 0 }
  od
}
#endif

/* The bus of `me`. */
proctype detector(byte q, me) {
endd:
  do
  :: atomic { crashed[q] && LIVE(me) && !HAS(lost[me], q) -> lost[me] = lost[me] | BIT(q) }
  /* Who left because it was declared lost says so on the bus. */
  :: atomic { out[q] && LIVE(me) && !HAS(lost[me], q) -> lost[me] = lost[me] | BIT(q) }
#ifdef FALSE_LOSS
  :: atomic { n_false == 0 && LIVE(me) && !HAS(lost[me], q) -> n_false = 1; lost[me] = lost[me] | BIT(q); printf("%d loses %d wrongly\n", me, q) }
#endif
  od
}

init {
  byte i, j;
  atomic {
    do
    :: i < N ->
         run member(i);
         j = 0;
         do
         :: j < N -> if :: i != j -> run detector(i, j) :: else fi; j++
         :: else -> break
         od;
         i++
    :: else -> break
    od;
#ifdef CRASH
    run killer();
#endif
    i = 0; j = 0
  }
}

#define DONE(q) (crashed[q] || out[q] || ended[q] >= E)
#if N == 3
#define ALL_DONE (DONE(0) && DONE(1) && DONE(2))
#else
#define ALL_DONE (DONE(0) && DONE(1) && DONE(2) && DONE(3))
#endif
#ifdef LIVE_CHECK
ltl everyone_ends { <> ALL_DONE }
#endif
