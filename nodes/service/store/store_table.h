/* store_table.h - names, and the bytes that they stand for, in memory.
 *
 * Bytes are shared: a name may be dropped or get others while some are still
 * being sent.
 * Thread: serial; store_bytes_release(): any. */
#ifndef LOCKSTEP_STORE_TABLE_H
#define LOCKSTEP_STORE_TABLE_H

#include <stdatomic.h>

#include "lockstep/call.h"
#include "store.h"

/* Made with one user. */
struct store_bytes {
    _Atomic size_t users;
    const void *data; /* not NULL */
    size_t size;
    struct ls_body body; /* own */
};

/* body: moved; released when there is no memory, which is NULL. */
struct store_bytes *store_bytes_create(struct ls_body *body);
void store_bytes_release(struct store_bytes *bytes); /* NULL is fine */
/* Some of them, as a store gives them. */
struct store_blob store_bytes_blob(struct store_bytes *bytes, uint64_t at,
                                   size_t size);

struct store_entry;

struct store_table {
    struct store_entry **buckets; /* own */
    size_t n;                     /* names */
    uint64_t held;                /* bytes */
};

/* Errors: LS_ENOMEM. */
LS_MUST_USE int store_table_init(struct store_table *out);
void store_table_fini(struct store_table *table);

/* Let the name stand for these bytes, of which it becomes a user in the
 * caller's place, on success.
 * Errors: LS_ESTATE it stands for bytes of a higher rank; LS_ENOMEM. */
LS_MUST_USE int store_table_set(struct store_table *table, const char *name,
                                struct store_bytes *bytes, uint64_t rank,
                                bool keep);
/* Borrow; NULL: there is no such name. */
struct store_bytes *store_table_get(const struct store_table *table,
                                    const char *name);
/* Whether it was set with `keep`. */
bool store_table_keeps(const struct store_table *table, const char *name);
void store_table_drop(struct store_table *table, const char *name);
/* All data, as store_data_home() knows it. */
void store_table_drop_data(struct store_table *table);

#endif
