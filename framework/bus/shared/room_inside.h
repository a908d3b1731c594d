/* room_inside.h - a room: its members, and where things lie in their memory. */
#ifndef LOCKSTEP_ROOM_INSIDE_H
#define LOCKSTEP_ROOM_INSIDE_H

#include <stdlib.h>

#include "lockstep/channel.h"
#include "lockstep/room.h"
#include "room_core.h"
#include "room_store.h"

/* After the words: chunks of long operations, then what is allocated. A chunk
 * is small enough to stay in a cache between who writes and who reads it. */
enum {
    ROOM_CHUNK_BYTES = 128 * 1024, /* unless a test has smaller ones */
    ROOM_CHUNKS = 8,
    ROOM_LENT_CHUNKS = 4, /* as many are read of a store between two epochs: the
                           * members stay together, and find in a cache what
                           * another one has just read */
};

struct room_member {
    uint32_t id;
    uint64_t incarnation;
    ls_memory *memory; /* own; NULL: not yet, or lost and excluded */
    ls_memory *store;  /* own, but this member's; NULL: it has none */
    bool lost;
};

/* What an operation is called, for those who call another one. */
struct room_calls {
    const char *kind; /* borrow, for good */
    uint64_t shape;   /* what must be the same in all */
    char name[LS_ROOM_NAME_MAX + 1];
};

struct ls_room_buffer {
    ls_room *room; /* borrow */
    ls_room_buffer *next;
    size_t size;       /* whole pages */
    size_t offset;     /* of what a member brings, in its memory */
    size_t folded;     /* of the share that it folds; there is room for all */
    uint64_t excluded; /* who is not in the shares */
    size_t share;      /* bytes of each: whole pages */
    const void *view; /* own; the shares, one after the other; NULL: none yet */
    size_t view_bytes;
};

struct ls_room {
    ls_runtime *runtime;          /* borrow */
    ls_node *node;                /* borrow */
    struct room_meeting *meeting; /* own; room_meet.c; NULL: in tests of what
                                   * is below it */
    char name[LS_ROOM_NAME_MAX + 1];
    unsigned forks; /* ls_forks_now(), when it was made */
    unsigned n, me;
    struct room_member members[ROOM_MEMBERS_MAX]; /* by place */
    struct room_core core;
    struct room_calls call, slots[2]; /* now; and as each slot has it */
    struct ls_room_fault fault;       /* of the last operation that failed */
    atomic_bool closed;               /* the node has stopped */
    atomic_int given_up; /* a status: this member wants no operation any more */
    bool severed;
    int grace_ms;
    size_t chunk_bytes;
    size_t chunks, arena, used, end; /* offsets in each memory; used: of the
                                      * arena */
    ls_room_buffer *buffers;         /* own */
    uint32_t streamed;               /* chunks that were broadcast so far */
    ls_room_store *store;            /* holds it; NULL: there is none */
    bool has_lent;                   /* in the last operation */
};

/* Where the parts of a member's memory lie. Returns its size. */
size_t room_lay_out(ls_room *room, size_t chunk_bytes, size_t alloc_bytes);

/* The memory of another member is there. Errors: LS_EPROTO, LS_ENOMEM. */
LS_MUST_USE int room_taken(ls_room *room, unsigned place);
/* That of all is: the core can begin. */
void room_open(ls_room *room);
/* Release what room_open() and operations have made; the memory too. */
void room_shut(ls_room *room);

/* room_call.c: an operation begins. kind, shape: see struct room_calls.
 * Errors: LS_ELOST, LS_ECLOSED this member is out. */
LS_MUST_USE int room_call(ls_room *room, const char *name, const char *kind,
                          uint64_t shape, int wait_ms);
/* An epoch of it: all come to here, or all fail, with an error text. */
LS_MUST_USE int room_pass(ls_room *room);
/* What was read after it is right. Errors: LS_ELOST: this member is out. */
LS_MUST_USE int room_confirm(ls_room *room);
/* What core_await() and core_give_up() have returned, in words. */
LS_MUST_USE int room_failed(ls_room *room, int status);

/* The shape of what has a size, below 2^56, and a root. */
static inline uint64_t room_shape(uint64_t size, unsigned root)
{
    return size << 8 | root;
}

/* room_lend.c: what an operation reads where it lies. Before its first epoch a
 * member says where it has what it brings, and what it gets: the places of
 * those bytes in its store, if they are in there.
 * in, out: NULL: nothing. */
void room_lend(ls_room *room, const void *in, size_t in_bytes, const void *out,
               size_t out_bytes);
/* After it, and before the next: where that is for this one. bytes: that there
 * must be. width: that it must be aligned to. NULL: it is not to be read there;
 * all members come to the same. */
const unsigned char *room_brings(const ls_room *room, unsigned place,
                                 size_t bytes, size_t width);
const unsigned char *room_gets(const ls_room *room, unsigned place,
                               size_t bytes, size_t width);

/* room_reduce.c: fold what all that are counted have at this offset of their
 * memory. */
void room_fold(const ls_room *room, const struct ls_room_fold *fold,
               size_t offset, unsigned char *to, size_t count);
LS_MUST_USE int room_check_fold(const ls_room *room,
                                const struct ls_room_fold *fold);

/* Each member copies so many bytes in this operation: more than a chunk keeps
 * the others waiting for long. */
static inline void room_is_to_copy(ls_room *room, size_t bytes)
{
    room->core.is_long = bytes > room->chunk_bytes;
}

/* The slot of the next epoch, and of the one that has just succeeded. */
static inline unsigned room_next_slot(const ls_room *room)
{
    return (room->core.epoch + 1) & 1;
}
static inline unsigned room_slot(const ls_room *room)
{
    return room->core.epoch & 1;
}
static inline bool room_has(const ls_room *room, unsigned place)
{
    return core_counts(&room->core, place);
}
static inline const unsigned char *room_at(const ls_room *room, unsigned place,
                                           size_t offset)
{
    return (const unsigned char *)ls_memory_data(room->members[place].memory) +
           offset;
}
static inline unsigned char *room_own(const ls_room *room, size_t offset)
{
    return (unsigned char *)ls_memory_own(room->members[room->me].memory) +
           offset;
}
static inline size_t room_chunk(const ls_room *room, unsigned number)
{
    return room->chunks + number * room->chunk_bytes;
}

#endif
