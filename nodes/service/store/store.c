#include "store_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_WAIT_MS 10000

void store_data_name(char *out, uint32_t home, uint32_t maker, uint64_t life,
                     uint64_t n)
{
    (void)snprintf(out, SAFE_NAME_MAX + 1,
                   "d%" PRIu32 ".%" PRIu32 ".%" PRIx64 ".%" PRIu64, home, maker,
                   life, n);
}

bool store_data_home(const char *name, uint32_t *home)
{
    char *end;
    if (name[0] != 'd' || name[1] < '0' || name[1] > '9')
        return false;
    const unsigned long long id = strtoull(name + 1, &end, 10);
    *home = (uint32_t)id;
    return *end == '.' && id <= UINT32_MAX;
}

bool store_is_policy(const char *name)
{
    return strncmp(name, STORE_POLICY, sizeof STORE_POLICY - 1) == 0;
}

static int check_name(const char *name)
{
    return safe_name_is(name)
               ? LS_OK
               : ls_error(LS_EINVAL,
                          "a store: \"%.80s\" is not a name: 1 to %d of "
                          "[A-Za-z0-9._@-], without a dot at its beginning or "
                          "two in a row",
                          name != NULL ? name : "", SAFE_NAME_MAX);
}

static int check_wait(int *wait_ms)
{
    if (*wait_ms < 0)
        return ls_error(LS_EINVAL, "a store: wait_ms %d must not be negative",
                        *wait_ms);
    if (*wait_ms == 0)
        *wait_ms = DEFAULT_WAIT_MS;
    return LS_OK;
}

void store_free(void *data, void *hint)
{
    (void)hint;
    free(data);
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

int store_check_part(const char *name, uint64_t at, uint64_t *size,
                     uint64_t whole)
{
    const uint64_t wanted = *size > 0 || at > whole ? *size : whole - at;
    if (at > whole || wanted > whole - at)
        return ls_error(LS_EPROTO,
                        "a store: %s has %" PRIu64 " bytes, and not %" PRIu64
                        " from %" PRIu64 " on",
                        name, whole, wanted, at);
    *size = wanted;
    return LS_OK;
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
    return status;
}

static int check_get(const struct store_part *parts, size_t n, int *wait_ms)
{
    if (n == 0 || n > STORE_GET_MAX)
        return ls_error(LS_EINVAL, "a store: %zu names, expected 1 to %d", n,
                        STORE_GET_MAX);
    for (size_t i = 0; i < n; i++) {
        const int status = check_name(parts[i].name);
        if (status != LS_OK)
            return status;
    }
    return check_wait(wait_ms);
}

int store_get_parts(struct store *store, const struct store_part *parts,
                    size_t n, struct store_blob *out, int wait_ms)
{
    int status = check_get(parts, n, &wait_ms);
    if (status == LS_OK)
        status = store->ops->get(store, parts, n, out, wait_ms);
    return status;
}

int store_get(struct store *store, const char *const *names, size_t n,
              struct store_blob *out, int wait_ms)
{
    struct store_part parts[STORE_GET_MAX];
    for (size_t i = 0; i < n && n <= STORE_GET_MAX; i++)
        parts[i] = (struct store_part){.name = names[i]};
    return store_get_parts(store, parts, n, out, wait_ms);
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
    return status;
}

void store_forget(struct store *store, const char *const *names, size_t n)
{
    store->ops->forget(store, names, n);
}

void store_close(struct store **store)
{
    if (store == NULL || *store == NULL)
        return;
    (*store)->ops->close(*store);
    *store = NULL;
}
