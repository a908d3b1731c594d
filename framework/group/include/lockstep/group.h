/* group.h - collectives: what all ranks of a group do together.
 *
 * A group is an ordered set of ranks, 0 to size-1: nodes of a world, threads of
 * one process, or one alone. A program is the same on all three. Every rank
 * calls the same operations in the same order; an operation ends alike in all
 * of them: each has its right result, or each has the same named error,
 * whatever is lost, late or killed on the way. What is computed is computed in
 * the order of ranks, so results are equal to the bit in all ranks, from run to
 * run, and on nodes as on threads.
 *
 * A generation is the group with certain members. ls_group_form() begins one.
 * An operation fails in one of two ways:
 * - LS_EMISMATCH ranks called different operations, and both are named;
 *   LS_ETIMEDOUT the time of one was up, and the missing are named. The next
 *   operation is tried afresh.
 * - LS_ELOST a rank is lost; LS_EABORTED a rank has left, or was interrupted;
 *   in the rank that has: its own status. The generation is over: every later
 *   operation fails with the same error until ls_group_form() begins another.
 * After an error, what an operation writes to is undefined.
 *
 * How: docs/collectives.md.
 * Thread: serial per handle, but ls_group_leave(): any; waiting and destroying
 * operations: any. */
#ifndef LOCKSTEP_GROUP_H
#define LOCKSTEP_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/barrier.h"
#include "lockstep/codec.h"
#include "lockstep/node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One rank's handle. */
typedef struct ls_group ls_group;
/* An operation that was started. */
typedef struct ls_collective ls_collective;

/* The longest name of an operation, in bytes without the NUL. */
#define LS_GROUP_NAME_MAX 31
/* The most ranks. */
#define LS_GROUP_RANKS_MAX 4096
/* Operations of one handle that may be started and not destroyed. */
#define LS_GROUP_STARTED_MAX 64

/* Made and formed --------------------------------------------------------- */

/* Make a handle for each of n threads of this process, rank i in out[i]. n may
 * be 1: a group of one, whose operations end at once. Formed: they can be used.
 * out:     own; n handles, all NULL after an error; destroy each.
 * runtime: borrow; of the threads.
 * Errors:  LS_EINVAL n is 0 or over LS_GROUP_RANKS_MAX; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_group_threads(ls_group **out, ls_runtime *runtime,
                                        uint32_t n);

/* Whether operations go through memory that all ranks share, where they can:
 * ranks of one host, at most 64 (docs/shared-memory.md). It changes no result,
 * only what operations cost. */
enum ls_group_room {
    LS_GROUP_ROOM_AUTO, /* if all can have it; else on the bus */
    LS_GROUP_ROOM_NEVER,
    LS_GROUP_ROOM_ALWAYS /* forming fails without it */
};

struct ls_group_options {
    const char *name; /* the same in all members; at most 64 bytes, as an
                       * event's; default "world" */
    /* Who is a member: of the nodes of the world all; or those with this word
     * in their role or labels ("learner" in "learner,evaluator"); or these,
     * this one among them. At most one of the two is given. */
    const char *word;
    const uint32_t *ids;
    size_t n_ids;

    /* As in struct ls_barrier_options: how many members there must be, and
     * under LS_ON_LOSS_GO_ON the least. 0: the world_size of the node; with ids
     * as many as those; with a word, and under LS_ON_LOSS_GO_ON, any number. */
    uint32_t expected;
    /* LS_ON_LOSS_FAIL: once a rank was lost, ls_group_form() fails too, with
     * the same error. LS_ON_LOSS_GO_ON: it begins a generation without the
     * lost, and with those that have come back or are new. */
    enum ls_on_loss on_loss;
    int grace_ms; /* LS_ON_LOSS_GO_ON: how long ls_group_form() waits for the
                   * next lives of the lost; default 0 */

    /* End an operation in one round of messages instead of two: faster, but
     * when a rank is lost, survivors may disagree about the last operation. */
    bool exit_ready;

    /* Of each generation. If one member says NEVER, there is none. */
    enum ls_group_room room;
    size_t alloc_bytes; /* for ls_group_alloc(), of this member: address space,
                         * taken as it is used; any in each; 0: 256 MiB */
};

/* Make a handle for a group of nodes, one on each. Create it before
 * ls_node_start(), so that nobody waits for it in vain; then ls_group_form().
 * out:     own; NULL after an error; destroy it before the node.
 * options: NULL: all defaults. Copied.
 * Errors:  LS_EINVAL the name; this node is not a member; word and ids are both
 *          given; an id is there twice; grace_ms is negative; room is none of
 *          these; LS_EEXIST the node has a group of this name; LS_ENOMEM;
 *          LS_ECLOSED. */
LS_MUST_USE LS_API int ls_group_create(ls_group **out, ls_node *node,
                                       const struct ls_group_options *options);

/* Begin the next generation, with all members that are here. Every member calls
 * it: once at first, and again when a generation is over, or when newcomers
 * should be let in. Ranks follow the ids of the members, and may change.
 * Operations that were started must have been destroyed.
 * wait_ms: how long to wait for the others.
 * Errors:  in all alike, as those of operations: LS_ETIMEDOUT, LS_ELOST,
 *          LS_EABORTED; LS_EMISMATCH also: a rank has destroyed its handle;
 *          LS_EUNREACHABLE a member wants
 *          LS_GROUP_ROOM_ALWAYS, and they share no memory: the text says why;
 *          LS_ECLOSED; LS_ESTATE an operation is not destroyed, or the node
 *          was not started; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_group_form(ls_group *group, int wait_ms);

/* Make a group of those ranks that give the same colour, in the order of their
 * ranks here. Every rank calls it. The new group is formed.
 * out:     own; NULL after an error, and when colour is LS_GROUP_NO_COLOUR;
 *          destroy it before `group`.
 * Errors:  those of an operation; LS_ELIMIT between nodes: it is split off one
 *          that was split off, and so on, too often (a group with a short name
 *          more often); LS_ENOMEM this rank may call it again: if the others
 *          have begun it, the generation is over. */
#define LS_GROUP_NO_COLOUR UINT32_MAX
LS_MUST_USE LS_API int ls_group_split(ls_group **out, ls_group *group,
                                      uint32_t colour, int wait_ms);

/* Take no further part in this generation: what the others do in it, or will,
 * fails with LS_EABORTED, names this rank, and has `status` as its cause
 * (ls_error_cause()). Operations of this rank fail with `status`, or for LS_OK
 * with LS_ECANCELED. For a rank that has failed, so that nobody waits for it.
 * Thread: any. */
LS_API void ls_group_leave(ls_group *group, int status);

/* Leaves, and frees. NULL and a pointer to NULL are fine.
 * Errors: LS_ESTATE operations are not destroyed, sub-groups exist, or a thread
 *         waits in it; or it came here by fork(2): nothing was done. */
LS_API int ls_group_destroy(ls_group **group);

/* Of the generation; 0 before one is formed. */
LS_API uint32_t ls_group_rank(const ls_group *group);
LS_API uint32_t ls_group_size(const ls_group *group);
LS_API uint64_t ls_group_generation(const ls_group *group); /* from 1, grows */
/* The id of the node of a rank; of a thread its rank. Errors: LS_EINVAL. */
LS_MUST_USE LS_API int ls_group_id(const ls_group *group, uint32_t rank,
                                   uint32_t *id);

/* Memory for what operations read and write, aligned to 64 bytes, zeroed. Any
 * other memory that is aligned as what lies in it does as well: results are the
 * same, to the bit.
 *
 * What it saves: when operations go through memory that all ranks share (enum
 * ls_group_room), a rank copies what it brings to where the others read it. Out
 * of this memory they read it where it lies, wherever in there it begins, if it
 * is more than 8 KiB:
 * - BROADCAST, SCATTER, GATHER, ALL_GATHER: for each rank by itself;
 * - REDUCE_SCATTER: if `in` lies there in all ranks;
 * - ALL_REDUCE: if `in` and `out` do, in all ranks, and it is more than 32 KiB.
 * It is copied as any other memory: in SEND and RECEIVE; in sub-groups, but
 * those that were formed anew; when it was allocated beyond alloc_bytes, or the
 * system had no memory to share; and from then on, when this rank learns in an
 * operation that the others have declared it lost, although it lives. What is
 * allocated after that is lent again. ls_group_stats() counts what was lent.
 *
 * Before or after ls_group_form(), and for all generations. It stays as it is
 * until it is freed, whatever becomes of the generation, of other ranks and of
 * the group. In a copy of this process that fork(2) has made it may be the same
 * memory: it must not be written there.
 * out:    own; NULL after an error; give it to ls_group_free().
 * Errors: LS_ENOMEM; LS_ESTATE the group came here by fork(2). */
LS_MUST_USE LS_API int ls_group_alloc(ls_group *group, void **out, size_t size);
/* In any order; also between generations, and after ls_group_destroy().
 * group:  that it was allocated of; NULL: that is destroyed.
 * memory: from ls_group_alloc(); NULL is fine.
 * Errors: nothing was freed: LS_ESTATE an operation with it, of this group or
 *         of one that was split off it, is not destroyed, or it came here by
 *         fork(2); LS_EINVAL it is another group's. */
LS_API int ls_group_free(ls_group *group, void *memory);

/* Operations -------------------------------------------------------------- */

enum ls_group_kind {
    LS_GROUP_BARRIER,        /* nobody ends it before all have begun it */
    LS_GROUP_BROADCAST,      /* root's `count` bytes are in all */
    LS_GROUP_ALL_GATHER,     /* the `count` bytes of each, by rank, in all */
    LS_GROUP_ALL_REDUCE,     /* the folds of all ranks' numbers, in all */
    LS_GROUP_REDUCE_SCATTER, /* the same, but each rank has only its share:
                              * `in` has `count` numbers for each rank */
    LS_GROUP_GATHER,         /* as ALL_GATHER, only in the root */
    LS_GROUP_SCATTER,        /* root's `in` has `count` bytes for each rank */
    LS_GROUP_SEND,           /* to one rank, which calls RECEIVE; others do not
                              * take part */
    LS_GROUP_RECEIVE
};

enum ls_group_type { LS_GROUP_F32, LS_GROUP_F64, LS_GROUP_I32, LS_GROUP_I64 };

/* How numbers are folded into one. Sums of integers wrap around, means of them
 * are cut towards 0; MIN and MAX pass over NaN unless all are. */
enum ls_group_fold { LS_GROUP_SUM, LS_GROUP_MEAN, LS_GROUP_MIN, LS_GROUP_MAX };

/* What each rank brought, in the order of ranks; of a broadcast one. Own:
 * ls_group_parts_free(). */
struct ls_group_parts {
    size_t n;
    struct ls_group_part {
        const void *data; /* aligned to 8 bytes; NULL when size is 0 */
        size_t size;
    } * items;
};
LS_API void ls_group_parts_free(struct ls_group_parts *parts);

/* One operation, as one rank calls it. All but in, out, parts and timeout_ms
 * must be the same in all ranks. */
struct ls_group_operation {
    enum ls_group_kind kind;
    const char *name; /* at most LS_GROUP_NAME_MAX bytes, for errors and
                       * mismatches; copied; NULL: "" */
    uint32_t root;    /* BROADCAST, GATHER, SCATTER: that rank; SEND, RECEIVE:
                       * the other rank */
    size_t count;     /* ALL_REDUCE, REDUCE_SCATTER: numbers; else bytes */
    enum ls_group_type type; /* ALL_REDUCE, REDUCE_SCATTER */
    enum ls_group_fold fold; /* the same */
    /* Borrow: until the operation has ended. `in` is what this rank brings,
     * `out` what it gets; the same memory where they are equally long, but no
     * other overlap. BROADCAST: the root reads `in`, the others write `out`. */
    const void *in;
    void *out;
    /* BROADCAST, ALL_GATHER: any sizes. `count` is what this rank brings, the
     * ranks need not know of each other's, `out` is not used, and this receives
     * the result when the operation has ended well. NULL: equal sizes. */
    struct ls_group_parts *parts;
    int timeout_ms; /* 0: 60000. For SEND and RECEIVE too */
};

/* Start an operation; it goes on while this rank does other things. Operations
 * of a rank end in the order in which they were started; those of SEND and
 * RECEIVE are matched in order for each other rank.
 * out:    own; NULL after an error; give it to ls_collective_destroy().
 * Errors: LS_EINVAL the operation; LS_ESTATE not formed; LS_EAGAIN
 *         LS_GROUP_STARTED_MAX are not destroyed, or no room for a thread;
 *         LS_ENOMEM. That the generation is over, or the node has stopped, is
 *         said by the wait. */
LS_MUST_USE LS_API int
ls_group_start(ls_collective **out, ls_group *group,
               const struct ls_group_operation *operation);

/* Wait until it has ended; its status. Waiting again returns it again.
 * wait_ms: LS_WAIT_DEFAULT: as long as it takes, which its timeout bounds.
 * Errors:  those of the operation, see above; LS_ETIMEDOUT also when it has not
 *          ended within wait_ms: ls_collective_has_ended(). */
LS_MUST_USE LS_API int ls_collective_wait(ls_collective *collective,
                                          int wait_ms);
LS_API bool ls_collective_has_ended(ls_collective *collective);

/* Waits until it has ended, if it has not. NULL and a pointer to NULL are
 * fine. */
LS_API void ls_collective_destroy(ls_collective **collective);

/* Start, wait, destroy: the same status and text. */
LS_MUST_USE LS_API int ls_group_do(ls_group *group,
                                   const struct ls_group_operation *operation);

/* Since the handle was made. */
struct ls_group_stats {
    uint64_t ended; /* operations of this rank that ended well */
    uint64_t failed;
    /* Between nodes; between threads 0. */
    uint64_t shared; /* of those that ended well: through shared memory */
    uint64_t lent;   /* of these: what this rank brought was read where it
                      * lies, in memory of ls_group_alloc() */
    uint64_t sent;   /* messages */
    uint64_t sent_bytes;
    uint64_t repeated; /* of these, sent again for lack of an answer */
    uint64_t dropped;  /* that came, and could not be used: malformed, of no
                        * rank, of another generation, or too many too early */
};
LS_API void ls_group_stats(ls_group *group, struct ls_group_stats *out);

/* The usual ones in a line each. wait_ms is their timeout_ms; LS_WAIT_DEFAULT:
 * a minute. Errors: those of an operation. */
LS_MUST_USE LS_API int ls_group_barrier(ls_group *group, int wait_ms);
/* data: read in the root, written elsewhere. */
LS_MUST_USE LS_API int ls_group_broadcast(ls_group *group, void *data,
                                          size_t size, uint32_t root,
                                          int wait_ms);
/* out: size × ranks bytes. */
LS_MUST_USE LS_API int ls_group_all_gather(ls_group *group, const void *data,
                                           size_t size, void *out, int wait_ms);
/* numbers: replaced by the folds. */
LS_MUST_USE LS_API int ls_group_all_reduce(ls_group *group, void *numbers,
                                           size_t count,
                                           enum ls_group_type type,
                                           enum ls_group_fold fold,
                                           int wait_ms);
/* numbers: count × ranks; out: count. */
LS_MUST_USE LS_API int
ls_group_reduce_scatter(ls_group *group, const void *numbers, size_t count,
                        enum ls_group_type type, enum ls_group_fold fold,
                        void *out, int wait_ms);
/* out: size × ranks bytes in the root; elsewhere not used. */
LS_MUST_USE LS_API int ls_group_gather(ls_group *group, const void *data,
                                       size_t size, void *out, uint32_t root,
                                       int wait_ms);
/* data: size × ranks bytes in the root; elsewhere not used. */
LS_MUST_USE LS_API int ls_group_scatter(ls_group *group, const void *data,
                                        size_t size, void *out, uint32_t root,
                                        int wait_ms);
LS_MUST_USE LS_API int ls_group_send(ls_group *group, const void *data,
                                     size_t size, uint32_t to, int wait_ms);
LS_MUST_USE LS_API int ls_group_receive(ls_group *group, void *data,
                                        size_t size, uint32_t from,
                                        int wait_ms);

/* Values of lockstep/codec.h.
 * value:  what this rank brings: exactly one value; of a broadcast only in the
 *         root, NULL elsewhere. Borrow.
 * out:    own; documents as read from the bytes, in the root as well; of
 *         all_gather one for each rank. NULL after an error.
 * limits: NULL: LS_CODEC_LIMITS.
 * Errors: those of an operation and of ls_document_read(); where no value, or
 *         more or less than one, is brought LS_EINVAL, or that of
 *         ls_writer_bytes(), and LS_EPROTO in the other ranks. */
LS_MUST_USE LS_API int
ls_group_broadcast_object(ls_group *group, ls_writer *value, uint32_t root,
                          ls_document **out,
                          const struct ls_codec_limits *limits, int wait_ms);
LS_MUST_USE LS_API int
ls_group_all_gather_object(ls_group *group, ls_writer *value, ls_document **out,
                           const struct ls_codec_limits *limits, int wait_ms);

#ifdef __cplusplus
}
#endif

#endif
