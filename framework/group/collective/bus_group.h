/* bus_group.h - the carrier between nodes: what its files share.
 *
 * bus.c      the handle: made, formed, left; what the channel brings
 * turns.c    operations in turn: each moves its bytes, then is committed
 * commit.c   the commit: one epoch of the barrier's machine for each
 * pairs.c    SEND and RECEIVE
 * shared.c   operations in memory that all ranks share, while they do
 *
 * All but waiting happens where it is caused: on the bus thread, when messages
 * come, and on the caller's when it starts something. All under one lock, which
 * is let go while an operation is in the room. */
#ifndef BUS_GROUP_H
#define BUS_GROUP_H

#include "barrier_epoch.h"
#include "carrier.h"
#include "group_wire.h"
#include "haul.h"
#include "load.h"
#include "lockstep/channel.h"
#include "lockstep/room.h"
#include "text_pieces.h"

#define GROUP_CHANNEL "ls.group."

/* How the last pairs with a rank have ended, for who asks late. */
#define PAIR_ENDS 8

struct pair_end {
    uint64_t rounds; /* number of the operation, plus 1; 0: none */
    int status;
    char text[GROUP_WIRE_TEXT_MAX + 1];
};

struct pair_side {
    uint64_t next; /* number of the next operation with this rank */
    struct pair_end ends[PAIR_ENDS];
};

struct bus_member {
    uint32_t id;
    uint64_t life;
    bool lost;
    struct load loads[2]; /* what it brings, to even epochs and to odd ones */
    struct pair_side sends, receives; /* of this rank to and from it */
};

/* One operation of this rank. */
struct turn {
    ls_collective base;
    struct turn *next;
    bool ended;
    bool linked; /* in a queue, or in the list of pairs */
    bool shared; /* in the queue for the room */
    bool waited; /* who has started it does it there */
    bool broken; /* it has failed there, and is to fail here */
    /* Twice its place in the generation, plus its stage; a pair's own. */
    uint64_t number;
    struct plan_shape shape; /* of this stage */
    bool rides;
    struct haul haul;      /* unless it rides */
    unsigned char *result; /* own; if it rides */
    bool has_result;
    struct ls_failure doom; /* it is to fail, once it is first */
    /* Of any sizes: stage 0 moves the sizes, stage 1 the bytes. */
    unsigned stage;
    uint64_t own_size;
    uint64_t *told;      /* own; the sizes of all ranks */
    size_t *sizes, *ats; /* own */
};

/* A rank has asked for what this one has not begun to send. */
struct early_want {
    uint32_t rank;
    struct group_message message;
};
#define EARLY_WANTS_MAX 4096

/* What came before this node knew of its generation. */
struct early_message {
    uint32_t from;
    uint64_t life;
    unsigned char *bytes; /* own */
    size_t size;
};
#define EARLY_MESSAGES_MAX 64

struct bus_group {
    ls_group base;
    ls_node *node;       /* borrow */
    ls_barrier *former;  /* own; all members form at it */
    ls_channel *channel; /* own */
    char name[LS_EVENT_MAX + 1];
    enum ls_on_loss on_loss;
    int grace_ms;
    bool exit_ready;
    enum ls_group_room want;
    uint64_t first_generation; /* that of the former's epoch 0 */
    ls_mutex mutex;
    ls_cond changed;
    /* The rest under the mutex. */
    struct ls_group_stats stats;
    bool closed;      /* the node stops */
    int64_t timer_at; /* the channel's */
    int64_t stood_ns; /* the node, for which all deadlines have been put off */

    /* Of the generation; 0: none. */
    uint64_t generation;
    uint32_t rank, n;
    struct bus_member *members; /* own; by rank */
    struct ls_epoch *epoch;     /* own */
    bool is_over;
    struct ls_failure over;
    bool has_lost;      /* a member is lost: the next commit fails */
    bool has_left;      /* this rank: whatever its status says */
    uint64_t next_turn; /* twice */
    struct turn *first, **last;
    bool entered;     /* the first one's commit is under way: */
    uint64_t current; /* its epoch */
    struct load left; /* the result of the last epoch, for who asks late */
    struct turn *pairs;
    struct early_want *wants; /* own */
    size_t n_wants, wants_capacity;

    /* While all ranks share memory: */
    ls_room *room; /* own; NULL: there is none */
    bool in_room;  /* operations go through it */
    bool busy;     /* the first of these is in it, without the lock: */
    struct turn *shared, **shared_last;
    ls_room_store *store; /* own; for ls_group_alloc(), and lent to each room;
                           * NULL: not yet. Of the caller's thread */
    size_t alloc_bytes;
    ls_thread *helper; /* does those that were started; NULL: none were */
    bool helper_ends;

    struct early_message early[EARLY_MESSAGES_MAX];
    size_t n_early;

    struct ls_barrier_missing scratch[LS_BARRIER_MISSING_MAX];
    unsigned char commit[LS_BARRIER_WIRE_MAX];
    unsigned char head[GROUP_WIRE_HEAD_MAX];
};

/* All of these: with the lock held. */

/* --- bus.c --- */

void group_post(struct bus_group *group, uint32_t rank,
                const struct group_message *message);
/* Have the timer run by then at the latest. */
void group_arm(struct bus_group *group, int64_t at);
/* The generation is over: all that is under way ends so, and all that is
 * started. */
void group_end(struct bus_group *group, const struct ls_failure *why);
/* Give the generation up, with this status of this rank's own. */
void group_leave(struct bus_group *group, int status);
void group_leave_if_interrupted(struct bus_group *group);
/* The others hold this rank for lost: it has no part in the generation. */
void group_shut_out(struct bus_group *group);
/* "rank 2 (node 7)" */
void group_say_rank(const struct bus_group *group, uint32_t rank,
                    struct line *line);

/* --- turns.c --- */

int turn_start(struct turn **out, struct bus_group *group,
               const struct group_call *call);
/* The first one for the room goes on the bus: to fail there, or as one that
 * begins. */
void turn_to_bus(struct bus_group *group, struct turn *turn);
void turn_end(struct bus_group *group, struct turn *turn,
              const struct ls_failure *end);
void turn_free(struct turn *turn);
/* The first turn is committed in this stage: write what it gets. */
void turn_deliver(const struct turn *turn);
/* And go to its next stage, or end. */
void turn_committed(struct bus_group *group, struct turn *turn);
/* Whether it has all that it takes. */
bool turn_is_whole(const struct turn *turn);
void turns_want(struct bus_group *group, uint32_t rank,
                const struct group_message *message);
void turns_data(struct bus_group *group, uint32_t rank,
                const struct group_message *message);
/* What is due; returns when the next is. */
int64_t turns_tick(struct bus_group *group, int64_t now);
/* Rank and form of who calls something else than this turn. */
void turn_doom(struct bus_group *group, struct turn *turn, uint32_t rank,
               const struct group_form *form);
/* How a flow says what to send. */
struct turn_post {
    struct bus_group *group;
    const struct turn *turn;
};
struct haul_post turn_haul_post(struct turn_post *post);
/* Put aside a want for a turn that is yet to come. */
void turns_keep_want(struct bus_group *group, uint32_t rank,
                     const struct group_message *message);
/* Give a turn that begins what was asked of it before. */
void turns_use_wants(struct bus_group *group, struct turn *turn);

/* --- commit.c --- */

/* Go as far as possible: enter, end, go on with the next. Call it after each
 * input. */
void group_commit_go_on(struct bus_group *group);
void group_commit_receive(struct bus_group *group, uint32_t rank,
                          const struct group_message *message);
/* The time of the first turn is up. */
void group_commit_expire(struct bus_group *group, struct turn *turn,
                         int64_t now);
int64_t group_commit_tick(struct bus_group *group, int64_t now);
/* Begin with an empty machine among the members. Errors: LS_ENOMEM. */
LS_MUST_USE int group_commit_begin(struct bus_group *group, int64_t now);
/* Send what the machine says. */
void group_commit_send_out(struct bus_group *group);

/* --- pairs.c --- */

int pair_start(struct turn **out, struct bus_group *group,
               const struct group_call *call);
void pairs_want(struct bus_group *group, uint32_t rank,
                const struct group_message *message);
void pairs_data(struct bus_group *group, uint32_t rank,
                const struct group_message *message);
void pairs_end(struct bus_group *group, uint32_t rank,
               const struct group_message *message);
/* The generation is over here, and a rank asks for its half, or for this one.
 */
void pairs_refuse(struct bus_group *group, uint32_t rank,
                  const struct group_message *message);
int64_t pairs_tick(struct bus_group *group, int64_t now);
/* That rank is lost. */
void pairs_lose(struct bus_group *group, uint32_t rank);

/* --- shared.c --- */

/* What forming tells the others of this rank's wishes. */
uint32_t shared_flags(const struct bus_group *group);
/* Without the lock, as the next two: try to have a room for the generation that
 * was just formed. flags: of all. Errors: LS_EUNREACHABLE there is none, and
 * one was asked for. */
LS_MUST_USE int shared_open(struct bus_group *group, uint32_t flags,
                            int64_t deadline);
/* Memory that the room of this generation can lend, or that of the next.
 * Errors: there is none for that. */
LS_MUST_USE int shared_alloc(ls_group *group, void **out, size_t size);
/* Nobody needs the room any more. */
void shared_close(struct bus_group *group);
void shared_fini(struct bus_group *group);
/* There is a thread for what is started. Errors: those of spawning one. */
LS_MUST_USE int shared_need_helper(struct bus_group *group);
/* Whether the caller is to do this operation, that it waits for. */
bool shared_may_do(const struct bus_group *group, const struct turn *turn);
/* Do the first one, without the lock meanwhile. */
void shared_do_first(struct bus_group *group);
/* The generation is over: all end but the one that is in the room. */
void shared_end(struct bus_group *group, const struct ls_failure *why);

#endif
