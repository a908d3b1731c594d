/* barrier_epoch.h - the barrier's protocol as a state machine.
 *
 * No I/O, no clock, no lock: it is told what happens and when, and says what
 * to send, when to be woken, and how an epoch ended. barrier.c gives it a
 * lock, a channel and a waiting thread; the tests give it a virtual network.
 * Why it is right: docs/barrier.md.
 * Thread: serial. */
#ifndef BARRIER_EPOCH_H
#define BARRIER_EPOCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "barrier_peers.h"
#include "barrier_wire.h"

/* Up to so many members everyone talks to everyone: one round trip less than
 * through the leader, and no more messages at 2. */
#define LS_EPOCH_DIRECT_MAX 2

/* Up to so many members talk to the leader; more make a tree. */
#define LS_EPOCH_LEADER_MAX 32
#define LS_EPOCH_FANOUT     16

#define LS_EPOCH_ASK_FIRST_NS (INT64_C(20) * 1000 * 1000)
#define LS_EPOCH_ASK_LAST_NS  (INT64_C(500) * 1000 * 1000)

/* All who live are told of a loss within so long of each other; a node that is
 * stuck for longer goes by what it knows alone. */
#define LS_EPOCH_STUCK_NS (INT64_C(1000) * 1000 * 1000)

/* Members that count each other differently try again after so long. */
#define LS_EPOCH_RETRY_FIRST_NS (INT64_C(1) * 1000 * 1000)
#define LS_EPOCH_RETRY_LAST_NS  (INT64_C(100) * 1000 * 1000)

/* How members talk to each other in an epoch. A node falls back to the next of
 * these when somebody is lost, and never returns in the same epoch. */
enum ls_epoch_way {
    LS_EPOCH_BY_TREE,   /* each to the one above and to those below it */
    LS_EPOCH_BY_LEADER, /* each to the leader */
    LS_EPOCH_DIRECT     /* each to everyone */
};

/* What is decided once, and must be the same in all members. */
struct ls_epoch_rules {
    uint32_t least;      /* members, this one included, that there must be */
    uint32_t most;       /* and may be; 0: any number */
    uint32_t room;       /* that the world may grow to; 0: it does not grow */
    uint32_t direct_max; /* up to so many talk directly; 0: the default */
    uint32_t fanout;     /* of the tree; 0: chosen, 1: through the leader */
    bool go_on;          /* without those who are lost, in the next epoch */
    int64_t grace_ns;    /* wait so long for who was lost to come back */
    uint32_t hash; /* of the options; those who differ refuse each other */
};

/* Why an epoch was given up, as others are told. */
struct ls_epoch_reason {
    int status;
    bool final;      /* the wait has failed, whatever the policy is */
    uint32_t origin; /* who gave up first */
    char text[LS_BARRIER_REASON_MAX + 1];
    uint32_t n_lacking; /* who was waited for */
    size_t n_missing;
    struct ls_barrier_missing missing[LS_BARRIER_MISSING_MAX];
};

/* Who counts too few, since one is lost, asks the others for so long whether
 * they have given the epoch up for another reason; then it does so itself. */
#define LS_EPOCH_INQUIRE_NS LS_EPOCH_STUCK_NS

/* A node that lags behind keeps the reasons of so many epochs ahead of it, and
 * of as many of the latest; and those of the last that it failed itself. */
#define LS_EPOCH_HEARD 8

struct ls_epoch_heard {
    uint64_t rounds; /* the epoch, plus 1; 0: none */
    bool joined;     /* who said so was */
    uint32_t by;     /* and is this member, in this life */
    uint64_t incarnation;
    struct ls_epoch_reason reason;
};

/* How an epoch ended. */
struct ls_epoch_end {
    int status;
    uint64_t epoch;
    uint32_t flags;     /* LS_OK: everyone's */
    uint32_t last;      /* LS_OK: who entered last */
    uint64_t since;     /* LS_OK: these are the members since then */
    uint32_t n_members; /* LS_OK */
    uint32_t n_lost;    /* LS_OK: since the epoch that ended before */
    struct ls_epoch_reason reason; /* else */
};

struct ls_epoch_out {
    uint32_t to;
    struct ls_barrier_message message;
};

/* Members are read by the tests; only the files of the state machine change
 * them. */
struct ls_epoch {
    uint32_t id;
    uint64_t incarnation;
    struct ls_epoch_rules rules;
    int64_t now; /* of the last input that had a time */

    struct ls_epoch_peers peers;
    enum ls_epoch_phase phase; /* NONE: no epoch is under way */
    uint64_t epoch;            /* under way, else the next */
    uint64_t base;             /* this node took part in none before it */
    uint64_t rounds;           /* the last epoch entered, plus 1 */
    uint64_t view;             /* hash of who is counted */
    uint64_t since; /* the epoch since which `view` holds, as far as known */
    uint32_t leader;
    uint32_t n_view; /* how many are counted, this one included */
    enum ls_epoch_way way;
    uint32_t fanout;  /* of the tree; 0: this epoch began without one */
    uint32_t place;   /* of this node in the view, by id */
    uint32_t *places; /* own; which item of the peers has that place */
    size_t n_places;  /* that there is room for */
    enum ls_epoch_phase told_branch; /* what the one above was told of all
                                      * below this node and itself */
    bool claimed;                    /* somebody said that all have entered */
    bool released;                   /* somebody has left */
    size_t lack_entered; /* counted, and not known to have entered */
    size_t lack_ready;   /* counted, not known to be ready, and not lost */
    size_t lack_lost;    /* counted, not known to have entered, and lost */
    uint32_t n_lost;     /* counted, and lost */
    uint64_t lost_hash;  /* of those */
    uint32_t lost_one;   /* the first of those, in time */
    int lost_status; /* LS_ELOST, or LS_EMISMATCH: only its barrier is gone */
    uint32_t own_flags;
    uint32_t flags;
    uint32_t last;
    int64_t deadline;
    int64_t ask_at; /* LS_FOREVER when there is nothing to ask */
    int64_t ask_every;
    int64_t stuck_until;

    bool inside;         /* somebody waits: from an entry to its end */
    bool pending;        /* the wait goes on in the next epoch, at ask_at */
    bool short_of;       /* pending, until rules.least members are here */
    bool inquires;       /* pending, until all have said what they know of it */
    uint64_t inquired;   /* about this epoch, plus 1; 0: about none */
    int64_t inquired_at; /* since when */
    int64_t retry_every; /* how long it pauses before that */
    int64_t grace_until; /* 0: nobody's return is waited for */
    uint32_t grace_n;    /* so many members are waited for */
    uint32_t n_gone;     /* members lost since the last epoch that ended well */
    bool has_gone;       /* one was lost, and is not back: */
    bool gone_withdrew;  /* only its barrier is gone */
    uint32_t gone_one;   /* its id */
    uint64_t gone_epoch; /* in which it was lost */

    bool has_left; /* the last epoch that ended well */
    uint64_t left_epoch;
    uint64_t left_view;
    uint64_t left_since;
    uint32_t left_flags;
    uint32_t left_last;
    uint32_t *left_ids; /* own; who took part, by id; left_view says whose */
    size_t n_left_ids;

    struct ls_epoch_reason failed; /* why the last one that failed did: */
    uint64_t failed_rounds;        /* that epoch, plus 1; 0: none */
    char past[40];                 /* what is said when a reason is not kept */
    bool given_up; /* the next wait has failed before it began, with: */
    struct ls_epoch_end early;
    bool refuse; /* give up the next epoch once asked */

    /* By epoch % LS_EPOCH_HEARD: why it was given up. Nearer epochs come first,
     * since this node enters them earlier; later ones in `beyond`, since the
     * others may send it there. Those behind it are for who asks about them. */
    struct ls_epoch_heard heard[LS_EPOCH_HEARD];
    struct ls_epoch_heard heard_beyond[LS_EPOCH_HEARD];
    uint64_t report_epoch;         /* of `report`, plus 1; 0: none */
    struct ls_epoch_reason report; /* whom the leader lacks */

    bool ended;
    struct ls_epoch_end end;

    struct ls_epoch_out *out; /* own; what is to be sent */
    size_t n_out;
    size_t out_capacity;
    struct ls_barrier_missing answer_missing[LS_BARRIER_MISSING_MAX];
    uint64_t n_sent;
    uint64_t n_repeated;
};

/* out:    own; written on success only.
 * rules:  copied.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int ls_epoch_create(struct ls_epoch **out, uint32_t id,
                                const struct ls_epoch_rules *rules);
void ls_epoch_destroy(struct ls_epoch **epoch);

/* Before anything else, as soon as it is known. */
void ls_epoch_set_incarnation(struct ls_epoch *epoch, uint64_t incarnation);

/* A member became ready. Errors: LS_ENOMEM; it is not counted then. */
LS_MUST_USE int ls_epoch_joined(struct ls_epoch *epoch, int64_t now,
                                uint32_t id, uint64_t incarnation);

/* A member left or was lost. */
void ls_epoch_lost(struct ls_epoch *epoch, int64_t now, uint32_t id,
                   uint64_t incarnation);

/* A member has taken its barrier down: to this barrier it is lost. message: its
 * GONE, which may name another loss as the cause. */
void ls_epoch_withdrawn(struct ls_epoch *epoch, int64_t now, uint32_t id,
                        uint64_t incarnation,
                        const struct ls_barrier_message *message);

/* Tell the others that this barrier is taken down. Nobody may be inside. */
void ls_epoch_withdraw(struct ls_epoch *epoch);

/* How many are joined, this one not among them. */
size_t ls_epoch_n_joined(const struct ls_epoch *epoch);

/* Enter the next epoch, with those who are joined. None may be under way. */
void ls_epoch_enter(struct ls_epoch *epoch, int64_t now, int64_t deadline,
                    uint32_t flags);

/* A message came. What it borrows is copied. */
void ls_epoch_receive(struct ls_epoch *epoch, int64_t now, uint32_t from,
                      uint64_t incarnation,
                      const struct ls_barrier_message *message);

/* The time of ls_epoch_wake_at() has come: ask again. */
void ls_epoch_tick(struct ls_epoch *epoch, int64_t now);
int64_t ls_epoch_wake_at(const struct ls_epoch *epoch);

/* Give up the epoch under way, or the next one, which the next entry will then
 * find failed. Again before that entry: nothing.
 * status:  negative.
 * for_good: if it was too late for this epoch, the next is given up too, once
 *          somebody asks for this node there.
 * text:    copied, cut at LS_BARRIER_REASON_MAX. */
void ls_epoch_abort(struct ls_epoch *epoch, int status, bool for_good,
                    const char *text);

/* NULL while an epoch is under way; how it ended once it has. Borrow: until
 * the next entry. */
const struct ls_epoch_end *ls_epoch_end(const struct ls_epoch *epoch);

/* Whom the epoch under way waits for: `reason` gets the names. */
void ls_epoch_missing(const struct ls_epoch *epoch,
                      struct ls_epoch_reason *reason);

/* What to send, oldest first. Borrow: until the next call on the machine;
 * each array is given once. */
const struct ls_epoch_out *ls_epoch_take(struct ls_epoch *epoch, size_t *n);

#endif
