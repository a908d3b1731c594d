/* store_parts.h - what an implementation of store.h fills in.
 *
 * Names, numbers and defaults have been checked when an operation is called;
 * it need not count. */
#ifndef LOCKSTEP_STORE_PARTS_H
#define LOCKSTEP_STORE_PARTS_H

#include "store.h"

struct store_ops {
    /* Releases the data, whatever it returns: store_put_release(). */
    int (*put)(struct store *store, const struct store_put *put);
    int (*get)(struct store *store, const struct store_part *parts, size_t n,
               struct store_blob *out, int wait_ms);
    int (*drop)(struct store *store, const char *name, int wait_ms);
    void (*forget)(struct store *store, const char *const *names, size_t n);
    void (*close)(struct store *store); /* frees it */
};

/* The first member of every implementation. */
struct store {
    const struct store_ops *ops;
};

void store_put_release(const struct store_put *put);
/* free(), as what releases a value. */
void store_free(void *data, void *hint);

/* LS_ESTATE, in words. */
int store_outranked(const char *name, uint64_t rank, uint64_t by);
/* Whether a value of so many bytes has this part; how many it is of.
 * Errors: LS_EPROTO. */
LS_MUST_USE int store_check_part(const char *name, uint64_t at, uint64_t *size,
                                 uint64_t whole);

#endif
