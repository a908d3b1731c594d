#include "store_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_WAIT_MS 10000

static void count(_Atomic uint64_t *counter, uint64_t n)
{
    (void)atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static int check_name(const char *name)
{
    return safe_name_is(name)
               ? LS_OK
               : ls_error(LS_EINVAL,
                          "a store: \"%.80s\" is no name: 1 to %d of "
                          "[A-Za-z0-9._@-], without a dot at its beginning or "
                          "two in a row",
                          name != NULL ? name : "", SAFE_NAME_MAX);
}

static int check_wait(int *wait_ms)
{
    if (*wait_ms < 0)
        return ls_error(LS_EINVAL,
                        "a store: wait_ms %d: for ever is not to be "
                        "had",
                        *wait_ms);
    if (*wait_ms == 0)
        *wait_ms = DEFAULT_WAIT_MS;
    return LS_OK;
}

void store_put_release(const struct store_put *put)
{
    if (put->release != NULL)
        put->release((void *)put->data, put->hint);
}

int store_outranked(const char *name, uint64_t rank, uint64_t by)
{
    return ls_error(LS_ESTATE,
                    "a store: %s of rank %" PRIu64 " comes too late: one of "
                    "rank %" PRIu64 " is there",
                    name, rank, by);
}

int store_put(struct store *store, const struct store_put *put)
{
    struct store_put checked = *put;
    int status = check_name(put->name);
    if (status == LS_OK)
        status = check_wait(&checked.wait_ms);
    if (status == LS_OK)
        status = store->ops->put(store, &checked);
    else
        store_put_release(put);
    if (status == LS_OK) {
        count(&store->puts, 1);
        count(&store->put_bytes, put->size);
    } else if (status == LS_ELIMIT || status == LS_EAGAIN) {
        count(&store->refused, 1);
    } else {
        count(&store->failed, 1);
    }
    return status;
}

static int check_get(const char *const *names, size_t n, int *wait_ms)
{
    if (n == 0 || n > STORE_GET_MAX)
        return ls_error(LS_EINVAL, "a store: %zu names, expected 1 to %d", n,
                        STORE_GET_MAX);
    for (size_t i = 0; i < n; i++) {
        const int status = check_name(names[i]);
        if (status != LS_OK)
            return status;
    }
    return check_wait(wait_ms);
}

int store_get(struct store *store, const char *const *names, size_t n,
              struct store_blob *out, int wait_ms)
{
    int status = check_get(names, n, &wait_ms);
    if (status == LS_OK)
        status = store->ops->get(store, names, n, out, wait_ms);
    if (status == LS_OK) {
        count(&store->gets, n);
        for (size_t i = 0; i < n; i++)
            count(&store->got_bytes, out[i].size);
    } else {
        count(status == LS_ENOENT ? &store->misses : &store->failed, 1);
    }
    return status;
}

void store_blob_fini(struct store_blob *blob)
{
    if (blob->release != NULL)
        blob->release(blob->data, blob->hint);
    else
        free(blob->data);
    *blob = (struct store_blob){.data = NULL};
}

int store_drop(struct store *store, const char *name, int wait_ms)
{
    int status = check_name(name);
    if (status == LS_OK)
        status = check_wait(&wait_ms);
    if (status == LS_OK)
        status = store->ops->drop(store, name, wait_ms);
    count(status == LS_OK ? &store->drops : &store->failed, 1);
    return status;
}

void store_stats(struct store *store, struct store_stats *out)
{
    *out = (struct store_stats){.puts = store->puts,
                                .gets = store->gets,
                                .misses = store->misses,
                                .drops = store->drops,
                                .refused = store->refused,
                                .failed = store->failed,
                                .put_bytes = store->put_bytes,
                                .got_bytes = store->got_bytes};
}

void store_close(struct store **store)
{
    if (store == NULL || *store == NULL)
        return;
    (*store)->ops->close(*store);
    *store = NULL;
}
