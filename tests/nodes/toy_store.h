/* toy_store.h - a store in memory, whose operations can be made to fail, or to
 * wait, and which remembers what was put. */
#ifndef TOY_STORE_H
#define TOY_STORE_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/runtime.h"
#include "policy_value.h"
#include "store_parts.h"

#define TOY_ITEMS 1024

struct toy_item {
    char name[SAFE_NAME_MAX + 1];
    void *data;
    size_t size;
};

struct toy_store {
    struct store base;
    ls_mutex mutex;
    ls_cond changed;
    struct toy_item items[TOY_ITEMS];
    size_t n;
    /* LS_OK, or what the next puts, or gets, fail with. */
    int put_status, get_status;
    bool get_waits;         /* gets wait until it is false */
    int64_t get_takes_ns;   /* each; several at the same time. Set before any */
    int64_t n_gets, n_puts; /* that have begun */
    int64_t iters[512];     /* of the policies that were put */
    size_t n_policies;
    int64_t last_version;
};

static inline struct toy_item *toy_find(struct toy_store *toy, const char *name)
{
    for (size_t i = 0; i < toy->n; i++)
        if (strcmp(toy->items[i].name, name) == 0)
            return &toy->items[i];
    return NULL;
}

static inline void toy_note(struct toy_store *toy, const struct store_put *put)
{
    struct policy_value value;
    if (strstr(put->name, ".training") != NULL ||
        policy_value_read(&value, put->data, put->size) != LS_OK)
        return;
    toy->iters[toy->n_policies++] = value.iter;
    toy->last_version = value.version;
    ls_bytes_clear(&value.weights);
}

static inline int toy_put(struct store *store, const struct store_put *put)
{
    struct toy_store *toy = (struct toy_store *)store;
    ls_mutex_lock(&toy->mutex);
    const int status = toy->put_status;
    toy->n_puts++;
    if (status == LS_OK) {
        struct toy_item *item = toy_find(toy, put->name);
        if (item == NULL)
            item = &toy->items[toy->n++];
        strcpy(item->name, put->name);
        free(item->data);
        item->data = malloc(put->size + 1);
        memcpy(item->data, put->data, put->size);
        item->size = put->size;
        if (put->keep)
            toy_note(toy, put);
    }
    ls_cond_broadcast(&toy->changed);
    ls_mutex_unlock(&toy->mutex);
    store_put_release(put);
    return status == LS_OK ? LS_OK : ls_error(status, "the toy is broken");
}

static inline int toy_get(struct store *store, const struct store_part *parts,
                          size_t n, struct store_blob *out, int wait_ms)
{
    struct toy_store *toy = (struct toy_store *)store;
    (void)wait_ms;
    if (toy->get_takes_ns > 0)
        ls_rest_until(ls_runtime_threads(),
                      ls_now(ls_runtime_threads()) + toy->get_takes_ns);
    ls_mutex_lock(&toy->mutex);
    toy->n_gets++;
    ls_cond_broadcast(&toy->changed);
    while (toy->get_waits)
        (void)!ls_cond_wait(&toy->changed, &toy->mutex, LS_FOREVER);
    int status = toy->get_status;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        if (toy_find(toy, parts[i].name) == NULL)
            status = LS_ENOENT;
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        const struct toy_item *item = toy_find(toy, parts[i].name);
        const size_t size =
            parts[i].size > 0 ? (size_t)parts[i].size : item->size;
        assert(parts[i].at + size <= item->size);
        out[i] = (struct store_blob){.data = malloc(size + 1), .size = size};
        memcpy(out[i].data, (char *)item->data + parts[i].at, size);
    }
    ls_mutex_unlock(&toy->mutex);
    return status == LS_OK
               ? LS_OK
               : ls_error(status, "the toy has no %s", parts[0].name);
}

static inline int toy_drop(struct store *store, const char *name, int wait_ms)
{
    struct toy_store *toy = (struct toy_store *)store;
    (void)wait_ms;
    ls_mutex_lock(&toy->mutex);
    struct toy_item *item = toy_find(toy, name);
    if (item != NULL) {
        free(item->data);
        *item = toy->items[--toy->n];
        memset(&toy->items[toy->n], 0, sizeof toy->items[0]);
    }
    ls_cond_broadcast(&toy->changed);
    ls_mutex_unlock(&toy->mutex);
    return LS_OK;
}

static inline void toy_forget(struct store *store, const char *const *names,
                              size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)toy_drop(store, names[i], 0);
}

static inline void toy_close(struct store *store)
{
    struct toy_store *toy = (struct toy_store *)store;
    for (size_t i = 0; i < toy->n; i++)
        free(toy->items[i].data);
    ls_cond_fini(&toy->changed);
    ls_mutex_fini(&toy->mutex);
    free(toy);
}

static inline struct toy_store *toy_open(ls_runtime *runtime)
{
    static const struct store_ops ops = {.put = toy_put,
                                         .get = toy_get,
                                         .drop = toy_drop,
                                         .forget = toy_forget,
                                         .close = toy_close};
    struct toy_store *toy = calloc(1, sizeof *toy);
    toy->base.ops = &ops;
    if (ls_mutex_init(&toy->mutex, runtime) != LS_OK ||
        ls_cond_init(&toy->changed, runtime) != LS_OK)
        abort();
    return toy;
}

/* What the test turns, under the lock. */
#define toy_set(toy, field, value)                                             \
    do {                                                                       \
        ls_mutex_lock(&(toy)->mutex);                                          \
        (toy)->field = (value);                                                \
        ls_cond_broadcast(&(toy)->changed);                                    \
        ls_mutex_unlock(&(toy)->mutex);                                        \
    } while (0)

/* Wait until a counter of it is at least so large. */
#define toy_await(toy, field, value)                                           \
    do {                                                                       \
        ls_mutex_lock(&(toy)->mutex);                                          \
        while ((toy)->field < (value))                                         \
            assert_int_equal(ls_cond_wait(&(toy)->changed, &(toy)->mutex,      \
                                          bench_deadline()),                   \
                             LS_OK);                                           \
        ls_mutex_unlock(&(toy)->mutex);                                        \
    } while (0)

#endif
