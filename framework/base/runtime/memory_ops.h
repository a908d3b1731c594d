/* memory_ops.h - what an implementation of shared_memory.h fills in; contracts
 * are those there. */
#ifndef LOCKSTEP_MEMORY_OPS_H
#define LOCKSTEP_MEMORY_OPS_H

#include "shared_memory.h"

struct ls_memory {
    ls_runtime *runtime; /* borrow */
    int fd;              /* own */
    int lent;            /* own; what others get; -1: it was taken */
    bool is_own;
    unsigned char *base; /* own; mapped */
    size_t size;
    int bell; /* own; an eventfd(2), of the owner's; -1: it has none */
    int ear;  /* own; an epoll(7) of the bells that its owner hears; or -1 */
    void (*rung)(void *self); /* of the owner, in simulations */
    void *rung_self;          /* borrow */
    uint64_t hears_too;       /* the number of a memory; simulations only, as
                               * the next: */
    bool was_rung;            /* and not heard yet */
    struct sim_thread *hears; /* borrow */
    uint64_t number; /* of the memory, whoever maps it; simulations only */
    ls_memory *next; /* of a simulation */
};

struct ls_offer {
    ls_runtime *runtime; /* borrow */
};

struct ls_memory_ops {
    /* Errors: LS_EUNREACHABLE: not on this system. */
    int (*available)(void);
    /* A memory was mapped, and will be unmapped. NULL: not interested. */
    void (*mapped)(ls_memory *memory);
    void (*unmapped)(ls_memory *memory);
    int (*offer_begin)(ls_offer **out, ls_memory *memory, const char *path,
                       const uint8_t *key);
    void (*offer_end)(ls_offer *offer);
    int (*folder)(ls_runtime *runtime, char *out, size_t size, uint64_t *host);
    /* This host, since it was started, in 48 bits; 0: it is not known. NULL:
     * always so. */
    uint64_t (*host)(void);
    /* Writes descriptors and the number into a new memory; the caller looks at
     * what they are. */
    int (*take)(ls_memory *memory, const char *path, const uint8_t *key,
                int64_t deadline);
    /* NULL: its bell is written to. */
    void (*ring)(const ls_memory *memory);
    int (*add_bell)(ls_memory *memory);
    int (*hear_too)(ls_memory *memory, const ls_memory *other);
    int (*hear)(ls_memory *memory, int64_t deadline);
    /* NULL: the lock of the file tells. */
    bool (*is_orphan)(const ls_memory *memory);
    int (*words_wait)(ls_runtime *runtime, const struct ls_awaited *words,
                      size_t n, int64_t deadline);
    void (*word_wake)(ls_runtime *runtime, const ls_word *word);
    void (*yield)(ls_runtime *runtime);
    bool (*touch)(ls_runtime *runtime); /* NULL: need not be called */
};

extern const struct ls_memory_ops ls_memory_threads;

#endif
