/* carrier.h - what carries the operations of a group: threads of one process,
 * the bus, and whatever comes to be added. group.c checks what callers ask
 * for, and hands it to the carrier by these ops.
 *
 * A carrier's handle begins with a struct ls_group, its operation with a struct
 * ls_collective, and both continue as it likes. */
#ifndef GROUP_CARRIER_H
#define GROUP_CARRIER_H

#include <stdatomic.h>

#include "buffer.h"
#include "call.h"

struct carrier_ops {
    /* As ls_group_form(); nothing is under way. */
    int (*form)(ls_group *group, int wait_ms);
    /* Where this handle stands: of the generation that is formed. */
    void (*place)(const ls_group *group, uint32_t *rank, uint32_t *size,
                  uint64_t *generation);
    uint32_t (*id)(const ls_group *group, uint32_t rank);
    void (*stats)(ls_group *group, struct ls_group_stats *out);
    void (*leave)(ls_group *group, int status);
    /* As group_is_over_by_another(). */
    bool (*is_over_by_another)(ls_group *group);
    /* Leave and free. Nobody waits, nothing is under way. */
    void (*destroy)(ls_group *group);

    /* Memory that the other ranks can read where it lies, as ls_group_alloc()
     * promises it; ls_room_store_free() frees it. NULL: there is none. Errors:
     * there is none for that. */
    int (*alloc)(ls_group *group, void **out, size_t size);

    /* Make this rank's part of a sub-group of the ranks[n], of which this is
     * number `own`; the number-th that is split off `group`. word: for the
     * other ranks, not 0. `out` may be NULL: then ops->meet gives it.
     * Errors: LS_ENOMEM, and what making a group may return. */
    int (*split)(ls_group **out, ls_group *group, const uint32_t *ranks,
                 uint32_t n, uint32_t own, uint64_t number, uint64_t *word);
    /* This rank's part of the sub-group whose first rank has said that word.
     * NULL: split gives it. */
    ls_group *(*meet)(uint64_t word, uint32_t own);
    /* Undo split: no other rank has met there. */
    void (*abandon)(ls_group *made);

    /* As ls_group_start(); the call was checked, and was told where this rank
     * stands. */
    int (*start)(ls_collective **out, ls_group *group,
                 const struct group_call *call);
    /* Wait until it has ended; collective->end says how.
     * Errors: LS_ETIMEDOUT it has not by the deadline, without a text. */
    int (*wait)(ls_collective *collective, int64_t deadline);
    bool (*has_ended)(ls_collective *collective);
    /* It has ended. */
    void (*free)(ls_collective *collective);
};

struct ls_group {
    const struct carrier_ops *ops;
    ls_runtime *runtime;    /* borrow */
    unsigned forks;         /* ls_forks_now(), when it was made */
    ls_group *parent;       /* borrow; NULL: it was not split off */
    atomic_uint n_children; /* each is destroyed on whatever thread has it */
    atomic_uint n_started;  /* operations that are not destroyed */
    atomic_bool forms;      /* a thread is in ls_group_form() */
    uint64_t n_splits;
    struct group_buffer *buffers; /* that are allocated of it */
    atomic_flag buffers_lock;     /* against sub-groups, which look there */
};

struct ls_collective {
    ls_group *group; /* borrow */
    struct group_call call;
    struct ls_failure end;        /* once it has ended */
    struct group_buffer *uses[2]; /* borrow; what it reads and writes; NULL: no
                                   * buffer of the group's */
};

#endif
