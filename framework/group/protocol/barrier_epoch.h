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

#include "barrier_layout.h"
#include "barrier_peers.h"
#include "barrier_why.h"
#include "barrier_wire.h"

/* Up to so many members everyone talks to everyone: one round trip less than
 * through the leader, and no more messages at 2. */
#define LS_EPOCH_DIRECT_MAX 2

/* Up to so many members of one host, or each of its own, talk to the leader;
 * more make a tree. */
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
    bool in_turn;        /* enter every epoch, also those that were given up */
    bool one_round;      /* leave once all have entered: survivors of a loss may
                          * then disagree about that epoch */
    int64_t grace_ns;    /* wait so long for who was lost to come back */
    uint32_t hash; /* of the options; those who differ refuse each other */
};

/* Who counts too few, since one is lost, asks the others for so long whether
 * they have given the epoch up for another reason; then it does so itself. */
#define LS_EPOCH_INQUIRE_NS LS_EPOCH_STUCK_NS

struct ls_epoch_out {
    uint32_t to;
    struct ls_barrier_message message;
};

/* The struct of a machine is made of small ones. Each is changed by the file
 * that it names, and read by the others, and by the tests. */

/* Who is counted in the epoch under way. Of barrier_view.c. */
struct ls_epoch_view {
    uint64_t hash;
    uint64_t since; /* the epoch since which it holds, as far as known */
    uint32_t leader;
    uint32_t n; /* how many are counted, this one included */
};

/* How they talk. Of barrier_tree.c. */
struct ls_epoch_tree {
    enum ls_epoch_way way;
    bool grown;        /* this epoch began by a tree, and the rest holds: */
    uint32_t own;      /* this node in the view, counted by id */
    uint32_t place;    /* of this node */
    uint32_t *members; /* own; by id: which item of the peers each is */
    uint64_t *hosts;   /* own; by id: on which host each is */
    size_t capacity;   /* members that there is room for */
    struct ls_layout layout;
    enum ls_epoch_phase told; /* what the one above was told of all below this
                               * node and itself */
};

/* What is known of the epoch under way. Of barrier_epoch.c. */
struct ls_epoch_facts {
    bool claimed;        /* somebody said that all have entered */
    bool released;       /* somebody has left */
    size_t lack_entered; /* counted, and not known to have entered */
    size_t lack_ready;   /* counted, not known to be ready, and not lost */
    size_t lack_lost;    /* counted, not known to have entered, and lost */
    uint32_t own_flags;
    uint32_t flags;
    uint32_t last;
};

/* Who was lost. Of barrier_members.c. */
struct ls_epoch_losses {
    uint32_t n;      /* counted in the epoch under way, and lost */
    uint64_t hash;   /* of those */
    uint32_t one;    /* the first of those, in time */
    int status;      /* LS_ELOST, or LS_EMISMATCH: only its barrier is gone */
    uint32_t n_gone; /* since the last epoch that ended well */
    bool has_gone;   /* one was lost, and is not back: */
    bool gone_withdrew;  /* only its barrier is gone */
    uint32_t gone_one;   /* its id */
    uint64_t gone_epoch; /* in which it was lost */
};

/* When to look again. Of barrier_epoch.c, but for ask_at, which who has a
 * reason to look moves. */
struct ls_epoch_clock {
    int64_t deadline;
    int64_t ask_at; /* LS_FOREVER when there is nothing to ask */
    int64_t ask_every;
    int64_t stuck_until;
};

/* A wait, which may take more than one epoch. Of barrier_policy.c. */
struct ls_epoch_wait {
    bool inside;         /* somebody waits: from an entry to its end */
    bool pending;        /* it goes on in the next epoch, at ask_at */
    bool short_of;       /* pending, until rules.least members are here */
    bool inquires;       /* pending, until all have said what they know of it */
    uint64_t inquired;   /* about this epoch, plus 1; 0: about none */
    int64_t inquired_at; /* since when */
    int64_t retry_every; /* how long it pauses before that */
    int64_t grace_until; /* 0: nobody's return is waited for */
    uint32_t grace_n;    /* so many members are waited for */
};

/* The last epoch that ended well. Of barrier_view.c. */
struct ls_epoch_left {
    bool any;
    uint64_t epoch;
    uint64_t view;
    uint64_t since;
    uint32_t flags;
    uint32_t last;
    uint32_t *ids;   /* own; who took part, by id; `view` says whose */
    uint64_t *lives; /* own; the incarnation of each */
    size_t n_ids;
};

/* What is to be sent. Of barrier_outbox.c. */
struct ls_epoch_outbox {
    struct ls_epoch_out *out; /* own */
    size_t n, capacity;
    struct ls_barrier_missing
        missing[LS_BARRIER_MISSING_MAX]; /* of an answer */
    uint64_t n_sent, n_repeated;
};

struct ls_epoch {
    uint32_t id;
    uint64_t incarnation;
    uint64_t host; /* 0: of its own */
    struct ls_epoch_rules rules;
    int64_t now; /* of the last input that had a time */
    struct ls_epoch_peers peers;
    enum ls_epoch_phase phase; /* NONE: no epoch is under way */
    uint64_t epoch;            /* under way, else the next */
    uint64_t base;             /* this node took part in none before it */
    uint64_t rounds;           /* the last epoch entered, plus 1 */
    struct ls_epoch_view view;
    struct ls_epoch_tree tree;
    struct ls_epoch_facts facts;
    struct ls_epoch_losses losses;
    struct ls_epoch_clock clock;
    struct ls_epoch_wait wait;
    struct ls_epoch_left left;
    struct ls_epoch_why why;
    struct ls_epoch_outbox outbox;
    bool ended;
    struct ls_epoch_end end;
};

/* out:    own; written on success only.
 * rules:  copied.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int ls_epoch_create(struct ls_epoch **out, uint32_t id,
                                const struct ls_epoch_rules *rules);
void ls_epoch_destroy(struct ls_epoch **epoch);

/* Before anything else, as soon as it is known. host: on which this node is, by
 * a number that only those on it have; 0: on one of its own. */
void ls_epoch_set_self(struct ls_epoch *epoch, uint64_t incarnation,
                       uint64_t host);

/* A member became ready. host: as that of this node. Errors: LS_ENOMEM; it is
 * not counted then. */
LS_MUST_USE int ls_epoch_joined(struct ls_epoch *epoch, int64_t now,
                                uint32_t id, uint64_t incarnation,
                                uint64_t host);

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

/* This node stood still for so long: nobody had that time. Before the tick
 * after it. */
void ls_epoch_excuse(struct ls_epoch *epoch, int64_t stood_ns);

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

/* Whether it is known that the next epoch was given up, so that entering it
 * fails. */
bool ls_epoch_was_given_up(const struct ls_epoch *epoch);

/* While none is under way: ask a member whether it knows of that. */
void ls_epoch_ask(struct ls_epoch *epoch, int64_t now, uint32_t id,
                  uint64_t incarnation);

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
