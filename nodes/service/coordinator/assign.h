/* assign.h - the works of the coordinator: who has which, and who waits.
 *
 *   queued → starting → running → closing → over
 *      ↑________|__________|__________|
 *      refused, or lost, or failed and closed: queued again
 *
 * A work that its member may have begun comes back with its next attempt, at
 * the front; one that was refused with the same, since nobody has begun it.
 * Which goes first the table of kinds says (fsm_kinds.h), then the order of
 * asking. A work that was queued for too long is given up.
 *
 * Several members may do a work of some kinds together, as ranks of it. It is
 * given to the first of them, when so many are free; that one sees to the
 * others, which hold nothing for the coordinator and stay free: of such works
 * there is one at a time. Pure. Thread: serial. */
#ifndef LOCKSTEP_SERVICE_ASSIGN_H
#define LOCKSTEP_SERVICE_ASSIGN_H

#include "messages.h"
#include "pool.h"
#include "replay.h"

enum work_state {
    WORK_QUEUED,
    WORK_AWAITED, /* its member is to tell whether it holds it */
    WORK_STARTING,
    WORK_RUNNING,
    WORK_CLOSING
};

/* What becomes of one that is being closed. */
enum work_end { WORK_FINISHED, WORK_REQUEUED, WORK_GIVEN_UP };

/* A kind of work in this job. */
struct kind_use {
    const struct fsm_kind *kind; /* borrow */
    int64_t expiry;              /* ns */
    size_t ranks;                /* members that do one; 1: one */
    size_t out;                  /* works asked for and not over */
    int64_t failures;            /* in a row, without anything done between */
};

/* What its member has told at its end. */
struct work_exit {
    struct work_key key;
    double value;    /* that it brings; NaN: none */
    int64_t version; /* of the policy that this is of; -1: it is not known */
};

/* What a learner was given, until it has done with it. */
struct lent_batch {
    size_t n;                   /* 0: none */
    bool robbed;                /* some of its data is gone with its keeper */
    struct drawn_sample *drawn; /* own; of the batch size */
};

/* Data that has come. */
struct waiting_data {
    struct waiting_data *next;
    struct sample whole;
    int64_t part;   /* whose turn it is */
    bool owes_drop; /* the buffer has no part of it */
};

struct work {
    struct work *next;
    struct kind_use *use; /* borrow */
    enum work_state state;
    enum work_end end; /* while closing */
    uint64_t number;   /* unique in the job, from 1 */
    struct work_key key;
    service_name policy_id, buffer_id;
    struct pool_member *member; /* unless queued. Borrow */
    uint64_t incarnation;       /* of it */
    int64_t queued_at;
    int64_t until;      /* awaited, closing: then it is over */
    int64_t again_at;   /* no call is made for it before */
    int64_t progress;   /* iterations, samples or episodes done */
    unsigned malformed; /* answers in a row that could not be read */
    bool doomed;        /* to be closed when it has started */

    /* Of one that several may do. */
    uint32_t ranks[SERVICE_RANKS_MAX]; /* ids of who does it, its member first;
                                        * what an earlier life has said of
                                        * them is not known */
    size_t n_ranks;                    /* 0: its member alone */
    size_t n_missing; /* members that it waits for, as was said */

    /* Of one that has a replay buffer. */
    struct replay *buffer; /* own; NULL: closed */
    int64_t demanded;      /* samples in the batch that it waits for; 0: none */
    bool done;             /* it has told that it is */
    bool is_small;         /* the buffer, as was said */
    struct lent_batch *lent; /* own; n_lent, which it may have at once */
    size_t n_lent;

    /* Of one that fills it: data that was asked for and has not come; and data
     * of which the buffer has not taken all parts, the oldest first. */
    int64_t asked;
    struct waiting_data *waiting; /* own */
};

struct works {
    struct work *first; /* own; those that wait in the order of their turn */
    uint64_t last_number;
    bool same_attempt; /* sabotage */
};

void works_fini(struct works *works);

/* One more, queued at the end, as attempt 1. Its task_id is made from kind and
 * number; 0: the next one. NULL: no memory. */
struct work *works_add(struct works *works, struct kind_use *use,
                       uint64_t number, int64_t now);
void works_remove(struct works *works, struct work **work);

/* Queued again, at the front, with the next attempt. */
void works_requeue(struct works *works, struct work *work, int64_t now);
/* Queued again, where it was and as if it had never been given out. */
void works_return(struct work *work);

/* A queued work of this kind and a free member for it, which are put together:
 * starting, and taken. NULL: none that is queued has a member now. */
struct work *works_assign(struct works *works, const struct kind_use *use,
                          struct pool *pool, int64_t now);

/* One that was queued for too long; NULL: none. */
struct work *works_expired(const struct works *works, int64_t now);

struct work *works_of(const struct works *works,
                      const struct pool_member *member);
size_t works_count(const struct works *works, const struct kind_use *use);

/* When a queued work expires, or one that is awaited or being closed has to be
 * looked at; LS_FOREVER: none. */
int64_t works_wake_at(const struct works *works, int64_t now);

static inline const struct fsm_kind *kind_of(const struct work *work)
{
    return work->use->kind;
}

#endif
