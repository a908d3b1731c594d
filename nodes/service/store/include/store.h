/* store.h - bytes by name: training data, and policies.
 *
 * Two implementations behind one interface: folders that all nodes share
 * (store_files.h), and the bus, where each node keeps some of the bytes
 * (store_bus.h). A name has one value; putting replaces it as a whole: who gets
 * sees an old or a new one, never a mixture, and who gets after a put returned
 * sees that one or a newer.
 *
 * Names are those of safe_name.h; any other is LS_EINVAL. That of data begins
 * with the node that keeps it: store_data_name(). A policy's begins with
 * STORE_POLICY; the core gives names that do.
 * Thread: any that may wait, so not a node's dispatch thread. Calls of
 * different threads run side by side. */
#ifndef LOCKSTEP_STORE_H
#define LOCKSTEP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"
#include "safe_name.h"

#define STORE_POLICY "policy_"

struct store;

/* Name data that node `home` keeps and node `maker` has made in this life, its
 * number n. out: SAFE_NAME_MAX + 1 bytes. */
void store_data_name(char *out, uint32_t home, uint32_t maker, uint64_t life,
                     uint64_t n);
/* Whether it is one, and who keeps it. */
bool store_data_home(const char *name, uint32_t *home);
bool store_is_policy(const char *name);

/* Bytes that a store gave. Own: store_blob_fini() frees them. */
struct store_blob {
    void *data; /* not NULL, even when size is 0 */
    size_t size;
    void (*release)(void *data, void *hint); /* NULL: free() */
    void *hint;
};

struct store_put {
    const char *name;
    const void *data; /* copied, unless `release` is given */
    size_t size;
    /* Data is moved, and released on any thread once nobody needs it; also
     * when the put fails. */
    void (*release)(void *data, void *hint);
    void *hint;
    bool keep; /* it must outlive the process that keeps it: for policies. Of
                * one name always or never */
    uint64_t rank; /* it takes the place of no value of a higher one, so who
                    * was replaced does no harm. Of one name always 0 or never
                    */
    int wait_ms;   /* 0: default 10000; for ever is not to be had */
};

/* Errors: LS_EINVAL the name, wait_ms; LS_ESTATE a value of a higher rank is
 *         there; LS_ELIMIT longer than the store takes;
 *         LS_EAGAIN the store is full, or has too much to do; LS_EIO, which
 *         names the file; LS_ELOST the node that keeps the bytes was lost
 *         meanwhile, or is not there: whether it has them is not known;
 *         LS_EPROTO it does not answer as it should; LS_ETIMEDOUT; LS_ECLOSED;
 *         LS_ENOMEM. */
LS_MUST_USE int store_put(struct store *store, const struct store_put *put);

/* What is wanted of a value: `size` bytes from `at` on; size 0: all of it. */
struct store_part {
    const char *name;
    uint64_t at, size;
};

/* Get `n` parts at once, 1 to STORE_GET_MAX: all or none. Those that lie one
 * behind the other in one value cost as much as one.
 * out:     n blobs, own; written on success only.
 * wait_ms: 0: default 10000.
 * Errors:  LS_ENOENT one is not there, which the text names; LS_EPROTO damaged,
 *          likewise, or shorter than the part says; LS_EINVAL also for n; else
 *          as for put. */
#define STORE_GET_MAX 512
LS_MUST_USE int store_get_parts(struct store *store,
                                const struct store_part *parts, size_t n,
                                struct store_blob *out, int wait_ms);
/* The same of whole values. */
LS_MUST_USE int store_get(struct store *store, const char *const *names,
                          size_t n, struct store_blob *out, int wait_ms);
void store_blob_fini(struct store_blob *blob);

/* Forget a name; one that is not there is fine.
 * Errors: as for put, but LS_ELIMIT. */
LS_MUST_USE int store_drop(struct store *store, const char *name, int wait_ms);

/* The same of several, soon, and without waiting for others: what comes of it
 * is not told. Names that are none are passed over. Thread: any. */
void store_forget(struct store *store, const char *const *names, size_t n);

/* No call may be under way. NULL and a pointer to NULL are fine. */
void store_close(struct store **store);

#endif
