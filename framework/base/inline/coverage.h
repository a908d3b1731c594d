/* coverage.h - which transitions of the protocols' state machines were taken.
 *
 * A sweep that never takes a transition says nothing about it. So each that is
 * worth a look has a name here, and is counted while the thread that takes it
 * has a table: a simulation has one, and is one thread. Anywhere else it is a
 * look at a pointer. What a name is for is in the file that counts it.
 * Thread: any; each for itself. */
#ifndef LOCKSTEP_COVERAGE_H
#define LOCKSTEP_COVERAGE_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

/* X(its number, the machine, the transition); those of a machine together. */
#define LS_TRANSITIONS(X)                                                      \
    X(MEMBER_SEEN, "member", "a life begins: seen")                            \
    X(MEMBER_READY, "member", "seen -> ready")                                 \
    X(MEMBER_UNSEEN, "member", "seen -> nothing: its presence went")           \
    X(MEMBER_AWAY, "member", "ready -> away")                                  \
    X(MEMBER_BACK, "member", "away -> ready")                                  \
    X(MEMBER_SEEN_LEFT, "member", "seen -> left")                              \
    X(MEMBER_READY_LEFT, "member", "ready -> left")                            \
    X(MEMBER_AWAY_LEFT, "member", "away -> left")                              \
    X(MEMBER_SEEN_LOST, "member", "seen -> lost")                              \
    X(MEMBER_READY_LOST, "member", "ready -> lost")                            \
    X(MEMBER_AWAY_LOST, "member", "away -> lost")                              \
    X(MEMBER_SILENT, "member", "lost by silence")                              \
    X(MEMBER_PROBE_REFUSED, "member", "lost by a probe: nobody listens")       \
    X(MEMBER_PROBE_ANSWERED, "member", "probed: somebody listens")             \
    X(MEMBER_PROBE_LATE, "member", "probed: back meanwhile, or over")          \
    X(MEMBER_BARRED, "member", "seen -> barred: the world is full")            \
    X(MEMBER_LATE, "member", "seen, not ready for too long")                   \
    X(MEMBER_REPLACED, "member", "another life takes over")                    \
    X(MEMBER_RIVAL, "member", "another wants its id: waits")                   \
    X(MEMBER_RIVAL_IN, "member", "that one gets the id")                       \
    X(MEMBER_REMINDED, "member", "an ended life appears: told so")             \
    X(MEMBER_EXCUSED, "member", "all are excused after a stall of one's own")  \
    X(MEMBER_YIELDS, "member", "told that it is lost: rejoins")                \
    X(MEMBER_DISPUTES, "member", "told that it is lost: disputes that")        \
    X(MEMBER_ACCUSES, "member", "told that it is lost: the hub accuses")       \
    X(STREAM_FIRST, "stream", "transmitted")                                   \
    X(STREAM_AGAIN, "stream", "transmitted again")                             \
    X(STREAM_FULL, "stream", "no room in the window")                          \
    X(STREAM_ACKED, "stream", "acknowledged")                                  \
    X(STREAM_ACK_SAME, "stream", "acknowledged: nothing new")                  \
    X(STREAM_ACK_STALE, "stream", "an overtaken acknowledgement: dropped")     \
    X(STREAM_ACK_OTHER_LIFE, "stream",                                         \
      "an acknowledgement of an earlier life: dropped")                        \
    X(STREAM_REPAIR, "stream", "a gap is filled at once")                      \
    X(STREAM_PATIENCE, "stream", "it came twice: more patience")               \
    X(STREAM_CLOCK, "stream", "rewound by the clock")                          \
    X(STREAM_REWOUND, "stream", "rewound by a new connection")                 \
    X(STREAM_DELIVER, "stream", "received: deliver")                           \
    X(STREAM_HOLD, "stream", "received: hold")                                 \
    X(STREAM_TAKEN, "stream", "held -> delivered")                             \
    X(STREAM_REPEATED, "stream", "received: repeated")                         \
    X(STREAM_REPEATED_HELD, "stream", "received: repeated, while held")        \
    X(STREAM_BEYOND, "stream", "received: beyond")                             \
    X(STREAM_OTHER_LIFE, "stream", "received: of an earlier life")             \
    X(BARRIER_ENTERED, "barrier", "none -> entered")                           \
    X(BARRIER_READY, "barrier", "entered -> ready")                            \
    X(BARRIER_LEFT, "barrier", "ready -> left")                                \
    X(BARRIER_NONE_FAILED, "barrier", "none -> given up")                      \
    X(BARRIER_ENTERED_FAILED, "barrier", "entered -> given up")                \
    X(BARRIER_READY_FAILED, "barrier", "ready -> given up")                    \
    X(BARRIER_FOLLOWED, "barrier", "given up as another says")                 \
    X(BARRIER_OWN, "barrier", "given up for a reason of its own")              \
    X(BARRIER_DIFFERS, "barrier", "given up: they see different members")      \
    X(BARRIER_LOST, "barrier", "given up: all who are left are stuck")         \
    X(BARRIER_STAYS_OUT, "barrier", "given up before it was entered")          \
    X(BARRIER_REFUSED, "barrier", "given up late: the next is refused too")    \
    X(BARRIER_AGAIN, "barrier", "given up: the wait goes on")                  \
    X(BARRIER_ABSENT, "barrier", "the grace is over: not all are back")        \
    X(BARRIER_SHORT, "barrier", "waits: too few are here")                     \
    X(BARRIER_INQUIRES, "barrier", "waits: asks whether it was given up")      \
    X(BARRIER_MOVED, "barrier", "entered -> a later epoch, as expected")       \
    X(BARRIER_AHEAD, "barrier", "what was said before it entered is used")     \
    X(BARRIER_ASKED, "barrier", "asks again")                                  \
    X(BARRIER_DEFERS, "barrier", "ready, and hears of an abort: waits")        \
    X(BARRIER_LEADERLESS, "barrier", "the leader is lost: all talk to all")    \
    X(BARRIER_BY_DIRECT, "barrier", "entered: all talk to all")                \
    X(BARRIER_BY_LEADER, "barrier", "entered: through a leader")               \
    X(BARRIER_BY_TREE, "barrier", "entered: through a tree")                   \
    X(BARRIER_TREE_QUIT, "barrier", "the tree is given up for a leader")       \
    X(BARRIER_WITHDRAWN, "barrier", "a member withdraws its barrier")          \
    X(CALL_STARTED, "call", "starting -> started")                             \
    X(CALL_STARTING_COMPLETED, "call", "starting -> completed")                \
    X(CALL_STARTING_FAILED, "call", "starting -> failed")                      \
    X(CALL_START_FAILED, "call", "starting -> refused")                        \
    X(CALL_STARTING_LOST, "call", "starting -> lost")                          \
    X(CALL_STARTING_TIMEOUT, "call", "starting -> timed out")                  \
    X(CALL_STARTING_CANCELLED, "call", "starting -> cancelled")                \
    X(CALL_STARTED_COMPLETED, "call", "started -> completed")                  \
    X(CALL_STARTED_FAILED, "call", "started -> failed")                        \
    X(CALL_STARTED_LOST, "call", "started -> lost")                            \
    X(CALL_STARTED_TIMEOUT, "call", "started -> timed out")                    \
    X(CALL_STARTED_CANCELLED, "call", "started -> cancelled")                  \
    X(CALL_STALE, "call", "an answer comes too late: dropped")                 \
    X(CALL_RENEWED, "call", "lost with a life of one's own")                   \
    X(REQUEST_ACCEPTED, "request", "accepted")                                 \
    X(REQUEST_DONE, "request", "done at once: connect, disconnect")            \
    X(REQUEST_REFUSED, "request", "refused")                                   \
    X(REQUEST_UNKNOWN, "request", "unknown")                                   \
    X(REQUEST_STALE, "request", "stale: it came before")                       \
    X(REQUEST_OTHER_LIFE, "request", "for an earlier life: dropped")           \
    X(REQUEST_CANCELLED, "request", "cancelled by its caller")                 \
    X(REQUEST_CANCEL_STALE, "request", "a cancel comes too late")              \
    X(REQUEST_CALLER_LOST, "request", "cancelled: its caller is lost")         \
    X(REQUEST_CALLER_NEW, "request", "its caller speaks in another life")      \
    X(REQUEST_EXPIRED, "request", "cancelled by its deadline")                 \
    X(WORK_STARTS, "work", "queued -> starting")                               \
    X(WORK_RUNS, "work", "starting -> running")                                \
    X(WORK_REFUSED, "work", "starting -> queued: refused")                     \
    X(WORK_AWAITED, "work", "its member has parted: awaited")                  \
    X(WORK_RECALLED, "work", "read from the journal: awaited")                 \
    X(WORK_FOUND, "work", "awaited -> running: still held")                    \
    X(WORK_CLOSES, "work", "running -> closing")                               \
    X(WORK_AWAITED_CLOSES, "work", "awaited -> closing")                       \
    X(WORK_CLOSES_AGAIN, "work", "closing -> closing, for another end")        \
    X(WORK_DOOMED, "work", "to be closed once it has started")                 \
    X(WORK_RANK_LOST, "work", "a rank is lost: to be closed")                  \
    X(WORK_AGAIN, "work", "queued again")                                      \
    X(WORK_OVER, "work", "over")                                               \
    X(WORK_TAKEN_AWAY, "work", "awaited or closing for too long")              \
    X(WORK_EXPIRED, "work", "queued for too long")                             \
    X(WORK_HELD, "work", "a member: none -> held")                             \
    X(WORK_SUPERSEDED, "work", "a member: a later attempt takes its place")    \
    X(WORK_BUSY, "work", "a member: held, another is refused")                 \
    X(WORK_ENDED, "work", "a member: its task has ended, it is refused")       \
    X(WORK_NOT_HELD, "work", "a member: a call for another work: refused")     \
    X(WORK_CLOSING, "work", "a member: held -> closing")                       \
    X(WORK_CLOSED_TWICE, "work", "a member: closing, asked once more")         \
    X(WORK_CLOSED, "work", "a member: closed, and answered")                   \
    X(WORK_GIVEN_BACK, "work", "a member: given back")                         \
    X(WORK_RUN_ENDED, "work", "a member: its run ends while it is held")       \
    X(WORK_JOINED, "work", "a member: none -> a rank of another's")            \
    X(WORK_LEFT, "work", "a member: a rank of another's -> none")              \
    X(WORK_CALLED_AWAY, "work", "a member: a rank, called away")               \
    X(WORK_MASTER_LOST, "work", "a member: its coordinator is lost")           \
    X(WORK_MASTER_BACK, "work", "a member: its coordinator is back")

#define LS_TRANSITION_NUMBER(number, machine, name) LS_TAKES_##number,
enum ls_transition { LS_TRANSITIONS(LS_TRANSITION_NUMBER) LS_N_TRANSITIONS };
#undef LS_TRANSITION_NUMBER

struct ls_transition_name {
    const char *machine, *name;
};
LS_API extern const struct ls_transition_name
    ls_transition_names[LS_N_TRANSITIONS];

/* Of this thread; how often each was taken. Borrow; NULL: not counted.
 * initial-exec: the general model is a function call on each use. */
LS_API extern _Thread_local uint64_t *ls_coverage_now
    __attribute__((tls_model("initial-exec")));

static inline void ls_take(enum ls_transition transition)
{
    uint64_t *const taken = ls_coverage_now;
    if (taken != NULL)
        taken[transition]++;
}

#endif
