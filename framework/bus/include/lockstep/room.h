/* room.h - a room of memory for the members of a world on one host: barriers
 * and collectives without a message.
 *
 * Every member has memory of its own there, which it alone can write and the
 * others read. Each calls the same operations in the same order. Operations are
 * all or none: one succeeds for all members that are not lost, or fails for all
 * of them, with the same error, that names nodes. A member that the bus
 * declares lost, or that does not answer, is shut out: what it writes after
 * that is read by nobody, and its own calls return LS_ELOST. After an operation
 * that failed because of it, the others go on without it.
 *
 * Members have places, 0 to size-1, in the order of their ids; a place that was
 * lost stays empty, and its id is brought back by a new room only.
 *
 * Errors of every operation:
 *   LS_ELOST      a member is lost: the text names it; or this one is, for the
 *                 others: then it is in no room any more
 *   LS_ETIMEDOUT  the time of one member was up; those that had not come are
 *                 named. It ends within a second beyond wait_ms, unless members
 *                 are stopped
 *   LS_EMISMATCH  members have called different things: both are named
 *   LS_EABORTED   a member has failed before others could: it is named, and its
 *                 status is ls_error_cause()
 *   LS_ECLOSED    this node has stopped
 *   LS_ESTATE     this member has resigned
 *   the status that ls_node_interrupt() or ls_room_give_up() was called with
 * After an error, what the operation writes to is undefined; the next one is
 * tried afresh.
 *
 * fork(2): a room is the parent's. In the child its operations return
 * LS_ESTATE, and the functions without a status do nothing, ls_room_destroy()
 * included.
 *
 * Thread: serial; a room has one operation at a time.
 * Source: docs/shared-memory.md. */
#ifndef LOCKSTEP_ROOM_H
#define LOCKSTEP_ROOM_H

#include "lockstep/node.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_room ls_room;
typedef struct ls_room_buffer ls_room_buffer;
typedef struct ls_room_store ls_room_store;

#define LS_ROOM_MEMBERS_MAX 64
/* The longest name of a room, and of an operation, without the NUL. A longer
 * one of an operation is cut. */
#define LS_ROOM_NAME_MAX 47

struct ls_room_options {
    const char *name;        /* 1 … 47 of [A-Za-z0-9._-]: rooms of one name
                              * meet; default "room" */
    const uint32_t *members; /* the ids, with this node's own; in any order;
                              * NULL: all that are ready now, so the world must
                              * be formed and complete */
    size_t n_members;
    /* Where the members meet: a folder that all of them see, and that nobody
     * else can write to. Those who do not see the same one are not on one host.
     * NULL: lockstep in $XDG_RUNTIME_DIR, if that is this user's own, or else
     * a folder of this user's in /tmp.
     * It is empty again once the room is made. */
    const char *folder;
    int timeout_ms; /* how long create waits for the others; default 10000 */
    int grace_ms;   /* how long a member that has entered an operation may
                     * owe the others an answer beyond their deadlines,
                     * before they shut it out; default 5000 */
    size_t alloc_bytes; /* for ls_room_alloc(), of this member: address space,
                         * taken as it is used; the same in all; default
                         * 256 MiB */
    /* Memory of this member that the others read where it lies, see below;
     * NULL: none. Any in each. Borrow: it may be destroyed before the room. */
    ls_room_store *store;
};
LS_API void ls_room_options_init(struct ls_room_options *options);

/* Meet the other members, each of which calls this too. The node has started.
 * out:    own; NULL after an error; give it to ls_room_destroy().
 * Errors: LS_EUNREACHABLE there can be no such room: a member is on another
 *         host or in another container, or the system has no such memory; all
 *         members are told, and none has one, nor where one of them has no
 *         memory, or no such folder; LS_ETIMEDOUT members did not
 *         come: the text names them; LS_ELOST a member is lost; LS_EINVAL an
 *         option; LS_ESTATE no members are listed, and the world is not
 *         complete; LS_EMISMATCH the others have another list of members;
 *         LS_EEXIST this node has a room of this name; LS_ESTATE the store is
 *         in another room; LS_ENOENT there is no such folder; the status given
 *         to ls_node_interrupt(); LS_ENOMEM; LS_EIO; LS_ECLOSED. */
LS_MUST_USE LS_API int ls_room_create(ls_room **out, ls_node *node,
                                      const struct ls_room_options *options);
/* To the others, this member is lost from here on, unless it has resigned. NULL
 * and a pointer to NULL are fine. Before ls_node_destroy(). */
LS_API void ls_room_destroy(ls_room **room);

/* Take part in no operation any more: the next one fails in all others, with
 * LS_EABORTED and `status` (LS_OK: LS_ECANCELED) as the cause, and in this
 * member with LS_ESTATE. Unlike one that is lost it still counts, and how
 * operations have ended for it stays known. Waits for nobody. */
LS_API void ls_room_resign(ls_room *room, int status);
/* The operation that this member is in ends, and so does each that it comes to
 * later: what has not ended well by then fails with `status` (as above), in the
 * others with LS_EABORTED and that as the cause. Thread: any. */
LS_API void ls_room_give_up(ls_room *room, int status);

LS_API unsigned ls_room_size(const ls_room *room);
LS_API unsigned ls_room_place(const ls_room *room); /* of this member */
LS_API uint32_t ls_room_id(const ls_room *room, unsigned place);
/* Whether it is counted, as of the last operation. */
LS_API bool ls_room_counts(const ls_room *room, unsigned place);

/* Why the last operation failed that did: for programs. */
struct ls_room_fault {
    int status;
    bool out;          /* the others hold this member for lost */
    unsigned place;    /* who is lost, or gave up, or whose time was up; of a
                        * mismatch one of the two */
    unsigned other;    /* of a mismatch the other one */
    uint64_t missing;  /* set of places: who had not come; of a loss the lost */
    char calls[2][64]; /* of a mismatch: what the two have called */
};
LS_API void ls_room_fault(const ls_room *room, struct ls_room_fault *out);

/* ---- operations: name: what this is, for errors; the same in all; NULL: none;
 * copied; wait_ms: how long this member waits for the others
 * ---------------------- */

/* Nobody returns before all have called. */
LS_MUST_USE LS_API int ls_room_barrier(ls_room *room, const char *name,
                                       int wait_ms);

/* The bytes of the member at `root` become those of all.
 * data:   borrow.
 * Errors: also LS_EINVAL there is no such place; LS_ELOST nobody is there. */
LS_MUST_USE LS_API int ls_room_broadcast(ls_room *room, const char *name,
                                         unsigned root, void *data, size_t size,
                                         int wait_ms);

/* What each brings, by place, one after the other.
 * data:   borrow; size: any in each.
 * out:    `capacity` bytes, the same in all.
 * sizes:  of each place; NULL: not wanted. 0 where nobody is.
 * Errors: LS_ELIMIT they are more than `capacity`; in all alike. */
LS_MUST_USE LS_API int ls_room_all_gather(ls_room *room, const char *name,
                                          const void *data, size_t size,
                                          void *out, size_t capacity,
                                          size_t *sizes, int wait_ms);

/* What each brings, by place, in the member at `root`; and what that one has,
 * a part for each place.
 * size: of each part, the same in all.
 * out, in: size for each place; only used at `root`.
 * Errors: LS_EINVAL, LS_ELOST the root: as of ls_room_broadcast(). */
LS_MUST_USE LS_API int ls_room_gather(ls_room *room, const char *name,
                                      unsigned root, const void *data,
                                      size_t size, void *out, int wait_ms);
LS_MUST_USE LS_API int ls_room_scatter(ls_room *room, const char *name,
                                       unsigned root, const void *in,
                                       size_t size, void *out, int wait_ms);

/* How numbers become one. All members must use the same. */
struct ls_room_fold {
    size_t width; /* of a number: 1, 2, 4, 8 or 16 bytes */
    /* to[i] = left[i] and right[i]; `to` may be `left`. */
    void (*two)(const void *self, void *to, const void *left, const void *right,
                size_t count);
    /* What is left to do with the fold of n members. NULL: nothing. */
    void (*end)(const void *self, void *numbers, size_t count, unsigned n);
    const void *self;
    uint64_t sign; /* for LS_EMISMATCH: another number for another fold */
};

/* The folds of all, in the order of places: ((0 and 1) and 2) …, so the same
 * bits in all.
 * in, out: borrow; count numbers; they may be the same.
 * Errors:  also, here and below, LS_EINVAL fold has no such width. */
LS_MUST_USE LS_API int ls_room_all_reduce(ls_room *room, const char *name,
                                          const struct ls_room_fold *fold,
                                          const void *in, void *out,
                                          size_t count, int wait_ms);
/* The same, but each has only its share. in: count numbers for each place; out:
 * count. They do not overlap. */
LS_MUST_USE LS_API int ls_room_reduce_scatter(ls_room *room, const char *name,
                                              const struct ls_room_fold *fold,
                                              const void *in, void *out,
                                              size_t count, int wait_ms);

/* ---- buffers in the room: nothing is copied ---------------------------- */

/* Each member gets `size` bytes that the others can read; zeroed, aligned to a
 * page. An operation, too. Buffers last as long as their room.
 * out:    borrow; NULL after an error.
 * Errors: also LS_ELIMIT this member's alloc_bytes are used up, of which a
 *         buffer takes twice its size, or LS_ENOMEM; LS_EABORTED with either as
 *         the cause: another member's. */
LS_MUST_USE LS_API int ls_room_alloc(ls_room *room, ls_room_buffer **out,
                                     size_t size, int wait_ms);
LS_API void *ls_room_buffer_own(const ls_room_buffer *buffer);
/* What another member has there. It is written by that one, at any time: only
 * operations say when it is whole. Borrow: until the next operation in the
 * room, which lets go of those that are lost. NULL: the place is empty. */
LS_API const void *ls_room_buffer_at(const ls_room_buffer *buffer,
                                     unsigned place);

/* As ls_room_all_reduce(), of what lies in the members' buffers, which stays.
 * result: count numbers, to be read; borrow, until the next operation with this
 *         buffer. If the others shut this member out meanwhile, they may
 *         change: its next operation says so.
 * Errors: also LS_EINVAL the buffer has no `count` numbers. */
LS_MUST_USE LS_API int ls_room_fold_buffer(ls_room *room, const char *name,
                                           const struct ls_room_fold *fold,
                                           ls_room_buffer *buffer, size_t count,
                                           const void **result, int wait_ms);

/* ---- memory that outlives rooms ---------------------------------------- */

/* A store is memory of one member, in which it allocates by itself. In a room
 * that was given it, the others read there, instead of a copy, what the member
 * brings to these operations, if it is more than 8 KiB:
 *   ls_room_broadcast(), ls_room_scatter(), ls_room_gather(),
 *   ls_room_all_gather(): each that has it in its store, by itself;
 *   ls_room_reduce_scatter(): if all have theirs there;
 *   ls_room_all_reduce(): if all have both `in` and `out` there, and it is
 *   more than 32 KiB.
 * Results are the same. A store is in one room at a time, and can be given to
 * the next one when that is destroyed; what lies in it stays. Thread: serial,
 * with making and destroying its rooms.
 *
 * bytes:  address space; pages are taken as they are allocated, and kept.
 * out:    own; NULL after an error; give it to ls_room_store_destroy().
 * Errors: LS_EINVAL bytes is 0, or over half of the address space; LS_ENOMEM;
 *         LS_EIO, LS_EUNREACHABLE the system has no such memory. */
LS_MUST_USE LS_API int ls_room_store_create(ls_room_store **out,
                                            ls_runtime *runtime, size_t bytes);
/* What is allocated there stays until it is freed, and the room that has it
 * keeps it. NULL and a pointer to NULL are fine. */
LS_API void ls_room_store_destroy(ls_room_store **store);
/* Memory of this member: aligned to 64 bytes, zeroed. In a copy of this process
 * that fork(2) has made it is the same memory, and may only be read.
 * out:    own; NULL after an error; give it to ls_room_store_free().
 * Errors: LS_ELIMIT the store's bytes are used up; LS_ENOMEM; LS_ESTATE it is
 *         closed, or came here by fork(2). */
LS_MUST_USE LS_API int ls_room_store_alloc(ls_room_store *store, void **out,
                                           size_t size);
/* memory: from ls_room_store_alloc(); NULL is fine. In any order, also when
 * room and store are destroyed; no operation of this member is under way with
 * it. */
LS_API void ls_room_store_free(void *memory);
/* Whether the others have shut this member out of a room with this store: they
 * may still read there, so they no longer see what is written. What lies there
 * stays, and is copied from now on, in any room. */
LS_API bool ls_room_store_is_closed(const ls_room_store *store);
/* Whether what this member brought to the last operation was read where it
 * lies, and not copied. */
LS_API bool ls_room_has_lent(const ls_room *room);

#ifdef __cplusplus
}
#endif

#endif
