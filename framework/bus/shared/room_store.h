/* room_store.h - memory of a member that outlives rooms: see lockstep/room.h.
 * Thread: serial; room_store_close(): the thread of an operation. */
#ifndef LOCKSTEP_ROOM_STORE_H
#define LOCKSTEP_ROOM_STORE_H

#include "lockstep/room.h"
#include "shared_memory.h"

#define ROOM_STORE_MAGIC UINT64_C(0x3165726f74736c00) /* "\0lstore1" */

/* At its beginning: who takes it finds there what its owner has told. */
struct room_store_head {
    _Alignas(64) uint64_t magic;
    uint64_t proof[2];
};

struct room_store_piece;

struct ls_room_store {
    ls_memory *memory;              /* own */
    bool touched;                   /* a simulation */
    ls_runtime *runtime;            /* borrow */
    unsigned forks;                 /* ls_forks_now(), when it was made */
    struct room_store_piece *first; /* what is allocated, by address */
    size_t reserved;                /* so many bytes were ever */
    size_t held; /* by its pieces, by who has made it, and by a room */
    bool in_room;
    atomic_bool closed;
};

/* It is a room's from now on. Errors: LS_ESTATE it is another's. */
LS_MUST_USE int room_store_enter(ls_room_store *store);
void room_store_leave(ls_room_store *store);
/* What is written there from now on, nobody else sees. */
void room_store_close(ls_room_store *store);
/* Where those bytes are in it; 0: they are not, or it is closed. */
uint64_t room_store_place(const ls_room_store *store, const void *data,
                          size_t bytes);

#endif
