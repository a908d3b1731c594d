/* room_core.h - epochs of the members of a room: all that are counted succeed
 * in one, or all fail, for the same cause.
 *
 * It knows members by their place, and is told of losses; of other nodes,
 * sockets and values it knows nothing.
 * Thread: owner; core_lose(), core_quit(), core_expel(): any.
 * Source: docs/shared-memory.md; verified as docs/models/shared.pml. */
#ifndef LOCKSTEP_ROOM_CORE_H
#define LOCKSTEP_ROOM_CORE_H

#include "lockstep/channel.h"
#include "patience.h"
#include "room_words.h"

struct room_cause {
    int status;        /* LS_ELOST a member is lost; LS_ETIMEDOUT a deadline has
                        * passed; LS_ECLOSED a member has left */
    unsigned who;      /* the place of the first that was lost, or gave up */
    uint64_t missing;  /* set: who had not entered */
    uint64_t excluded; /* set: who is not counted from now on */
};

struct room_core {
    ls_runtime *runtime; /* borrow */
    const ls_node *node; /* borrow; NULL: nobody knows when it stood still */
    unsigned n, me;
    struct room_words *own;                           /* borrow */
    const struct room_words *words[ROOM_MEMBERS_MAX]; /* borrow; own too */
    /* The same, to ring; NULL: that member is out, and its memory gone. The
     * last one's stays: all hear its bell. */
    ls_memory *memories[ROOM_MEMBERS_MAX];
    bool touched;              /* a simulation */
    uint32_t epoch;            /* the last one begun */
    uint32_t good;             /* that succeeded */
    uint64_t fenced, excluded; /* sets */
    room_set told;             /* set: who is lost, for all that is known
                                * outside of the room */
    atomic_int quit; /* a status: this member's operation is to be given up */
    atomic_bool expelled;             /* it is to leave the room */
    uint32_t known[ROOM_MEMBERS_MAX]; /* alarms that were heard */
    uint32_t frozen, given_up;        /* the last epochs that anyone has */
    uint32_t own_frozen, own_gave_up;
    /* The first that may lead in an epoch, counted around: those before it had
     * not come. */
    uint32_t first, first_epoch;
    uint64_t own_heeds;
    unsigned straggler; /* who came last, as far as is known */
    int64_t grace_ns;
    int wait_ms;       /* of the operation */
    struct ls_due due; /* its own; at 0: it has not had to wait yet */
    /* What waits have found out: for others that come, and, apart from that,
     * for others that copy what is long. */
    struct patience patience[2];
    bool is_long;            /* the operation copies so */
    struct room_cause cause; /* of the last failure */
    bool same;      /* all have called the same in the last epoch, as far as
                     * this member has looked */
    bool unsettled; /* that failure may not be known to all */
    bool resigned;  /* it enters no epoch any more */
    bool out;       /* the others have declared this member lost */
};

/* Once own and words are set. cores: that the members share. */
void core_begin(struct room_core *core, double cores);
static inline uint64_t core_all(const struct room_core *core)
{
    return core->n == 64 ? UINT64_MAX : (UINT64_C(1) << core->n) - 1;
}
static inline uint64_t core_bit(unsigned place)
{
    return UINT64_C(1) << place;
}
/* Whose bell all of n hear, so that one system call wakes many: that of the
 * last, which is seldom the source of a stream, and rung for alone. */
static inline unsigned core_gong(unsigned n)
{
    return n - 1;
}
/* Whether the member is counted in the next epoch. */
static inline bool core_counts(const struct room_core *core, unsigned place)
{
    return (core->excluded & core_bit(place)) == 0;
}

/* An operation begins, of one or more epochs. Its time runs from when this
 * member first has to wait. */
void core_call(struct room_core *core, int wait_ms);

/* Enter the next epoch, and wait until all that are counted have entered.
 * Errors: that of the cause, the same for all that are counted and not lost;
 *         LS_ELOST also: this member is out of the room. No ls_error_text(). */
LS_MUST_USE int core_pass(struct room_core *core);

/* After an epoch that failed, before anything is written for the next one: wait
 * until it has failed for all that are counted. Until then some may still read
 * what was written for the one before. Does nothing after one that succeeded.
 * Errors: as core_await(). */
LS_MUST_USE int core_settle(struct room_core *core);

/* After what others wrote for the last epoch was read: whether it was still
 * theirs. Once they hold this member for lost, they wait for it no more.
 * Errors: LS_ELOST: it is out. */
LS_MUST_USE int core_confirm(struct room_core *core);

/* Before the next epoch: wait until a word of that member has reached `value`.
 * If it cannot, the next epoch is given up, and has ended.
 * Errors: as core_pass(). */
LS_MUST_USE int core_await(struct room_core *core, unsigned place,
                           const ls_word *word, uint32_t value);
/* The next epoch is given up by this member.
 * status: why; LS_EABORTED: another one has given up. */
LS_MUST_USE int core_give_up(struct room_core *core, int status);

/* The member is lost, for what is known outside of the room. */
void core_lose(struct room_core *core, unsigned place);
/* Give up what is under way, with this status. */
void core_quit(struct room_core *core, int status);
/* Between operations: this member gives up the next epoch and enters none any
 * more. What it has ended stays known, and it is not waited for. */
void core_resign(struct room_core *core, int status);
/* This member leaves: to the others it is lost. */
void core_leave(struct room_core *core);
/* The same, as soon as its thread looks up. */
void core_expel(struct room_core *core);

/* Write words and bytes of this member's own; and loads of others'. */
void core_store(struct room_core *core, ls_word *word, uint32_t value);
void core_write(struct room_core *core, void *to, const void *from,
                size_t size);
static inline uint32_t core_load(const struct room_core *core,
                                 const ls_word *word)
{
    if (core->touched)
        (void)ls_memory_touch(core->runtime);
    return atomic_load(word);
}
/* What a member sleeps for: an alarm, as all do; that all have entered; or,
 * with the place added, a stream of that member. */
enum { CORE_AWAKE, CORE_ASLEEP_ALARM, CORE_ASLEEP_ENTERED, CORE_ASLEEP_STREAM };

/* Wake those that sleep for it: for an alarm all, those too that are held for
 * lost, who are to learn it. */
void core_wake(struct room_core *core, uint32_t mark);

#endif
