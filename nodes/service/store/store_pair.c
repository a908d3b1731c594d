#include "store_pair.h"

#include <stdlib.h>
#include <string.h>

#include "store_parts.h"

struct pair {
    struct store base;
    struct store *policies, *data; /* own */
};

static bool is_policy(const char *name)
{
    return strncmp(name, STORE_PAIR_POLICY, sizeof STORE_PAIR_POLICY - 1) == 0;
}

static struct store *store_of(struct store *store, const char *name)
{
    const struct pair *pair = (struct pair *)store;
    return is_policy(name) ? pair->policies : pair->data;
}

static int pair_put(struct store *store, const struct store_put *put)
{
    return store_put(store_of(store, put->name), put);
}

static int pair_get(struct store *store, const char *const *names, size_t n,
                    struct store_blob *out, int wait_ms)
{
    for (size_t i = 1; i < n; i++) {
        if (is_policy(names[i]) != is_policy(names[0]))
            return ls_error(LS_EINVAL,
                            "a store: %s and %s are not kept at one place",
                            names[0], names[i]);
    }
    return store_get(store_of(store, names[0]), names, n, out, wait_ms);
}

static int pair_drop(struct store *store, const char *name, int wait_ms)
{
    return store_drop(store_of(store, name), name, wait_ms);
}

static void pair_close(struct store *store)
{
    struct pair *pair = (struct pair *)store;
    store_close(&pair->policies);
    store_close(&pair->data);
    free(pair);
}

int store_pair_open(struct store **out, struct store **policies,
                    struct store **data)
{
    static const struct store_ops ops = {.put = pair_put,
                                         .get = pair_get,
                                         .drop = pair_drop,
                                         .close = pair_close};
    struct pair *pair = calloc(1, sizeof *pair);
    if (pair == NULL)
        return ls_error(LS_ENOMEM, "a store");
    pair->base.ops = &ops;
    pair->policies = *policies;
    pair->data = *data;
    *policies = *data = NULL;
    *out = &pair->base;
    return LS_OK;
}
