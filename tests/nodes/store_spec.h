/* store_spec.h - what every store does, whatever is behind it: tests over two
 * handles of one store, for the implementation that includes them to run. */
#ifndef STORE_SPEC_H
#define STORE_SPEC_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/world_fixture.h"
#include "lockstep/runtime.h"
#include "store.h"
#include "test.h"

#define SPEC_MAX_BYTES ((size_t)2 << 20) /* of a value, in the store opened */
#ifndef SPEC_TOO_LONG
#define SPEC_TOO_LONG (SPEC_MAX_BYTES + 1)
#endif

/* *state of each test points to one. */
struct store_pair {
    struct store *here, *there;
};

#define spec_ok(call)                                                          \
    do {                                                                       \
        const int status_ = (call);                                            \
        if (status_ != LS_OK)                                                  \
            fail_msg("%s: %s: %s", #call, ls_status_name(status_),             \
                     ls_error_text());                                         \
    } while (0)

static inline void spec_put(struct store *store, const char *name,
                            const void *data, size_t size)
{
    spec_ok(store_put(
        store, &(struct store_put){.name = name, .data = data, .size = size}));
}

static inline void spec_has(struct store *store, const char *name,
                            const void *data, size_t size)
{
    struct store_blob blob;
    spec_ok(store_get(store, &name, 1, &blob, 0));
    assert_int_equal(blob.size, size);
    assert_non_null(blob.data);
    assert_memory_equal(blob.data, data, size);
    store_blob_fini(&blob);
    assert_null(blob.data);
}

static inline void spec_has_text(struct store *store, const char *name,
                                 const char *text)
{
    spec_has(store, name, text, strlen(text));
}

static inline void spec_put_text(struct store *store, const char *name,
                                 const char *text)
{
    spec_put(store, name, text, strlen(text));
}

static inline void spec_lacks(struct store *store, const char *name)
{
    struct store_blob blob;
    assert_int_equal(store_get(store, &name, 1, &blob, 0), LS_ENOENT);
    assert_non_null(strstr(ls_error_text(), name));
}

static inline void spec_gives_what_was_put(void **state)
{
    struct store_pair *pair = *state;
    static const size_t sizes[] = {0, 1, 1000, 300000, SPEC_MAX_BYTES};
    unsigned char *data = malloc(SPEC_MAX_BYTES);
    assert_non_null(data);
    for (size_t i = 0; i < SPEC_MAX_BYTES; i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "data-%zu", sizes[i]);
        spec_lacks(pair->there, name);
        spec_put(pair->here, name, data, sizes[i]);
        spec_has(pair->there, name, data, sizes[i]);
        spec_has(pair->here, name, data, sizes[i]);
    }
    free(data);
}

static inline int spec_put_ranked(struct store *store, const char *name,
                                  const char *text, uint64_t rank)
{
    return store_put(store, &(struct store_put){.name = name,
                                                .data = text,
                                                .size = strlen(text),
                                                .keep = true,
                                                .rank = rank});
}

static inline void spec_drops_the_highest_rank(void **state)
{
    struct store_pair *pair = *state;
    spec_ok(spec_put_ranked(pair->here, "highest", "one", UINT64_MAX));
    spec_ok(spec_put_ranked(pair->there, "highest", "again", UINT64_MAX));
    spec_has_text(pair->here, "highest", "again");
    spec_ok(store_drop(pair->here, "highest", 0));
    spec_lacks(pair->there, "highest");
}

static inline void spec_keeps_the_higher_rank(void **state)
{
    struct store_pair *pair = *state;
    spec_ok(spec_put_ranked(pair->here, "ranked", "one", 1));
    spec_ok(spec_put_ranked(pair->here, "ranked", "one again", 1));
    spec_has_text(pair->there, "ranked", "one again");
    spec_ok(spec_put_ranked(pair->there, "ranked", "twelve", 12));
    assert_int_equal(spec_put_ranked(pair->here, "ranked", "two", 2),
                     LS_ESTATE);
    assert_non_null(strstr(ls_error_text(), "ranked of rank 2 comes too late"));
    spec_has_text(pair->here, "ranked", "twelve");
    spec_ok(store_drop(pair->there, "ranked", 0));
    spec_lacks(pair->here, "ranked");
    spec_ok(spec_put_ranked(pair->here, "ranked", "a new beginning", 1));
    spec_has_text(pair->there, "ranked", "a new beginning");
}

static inline void spec_replaces(void **state)
{
    struct store_pair *pair = *state;
    spec_put_text(pair->here, "policy", "the first");
    spec_has_text(pair->there, "policy", "the first");
    spec_put_text(pair->there, "policy", "and the second");
    spec_has_text(pair->here, "policy", "and the second");
    spec_put_text(pair->here, "policy", "");
    spec_has_text(pair->there, "policy", "");
}

static inline void spec_gives_several_or_none(void **state)
{
    struct store_pair *pair = *state;
    static const char *const there[] = {"a", "b", "same-as-a", "a"};
    static const char *const missing[] = {"a", "nowhere", "b"};
    spec_put_text(pair->here, "a", "one");
    spec_put_text(pair->here, "b", "two");
    spec_put_text(pair->here, "same-as-a", "one");
    struct store_blob blobs[4];
    spec_ok(store_get(pair->there, there, 4, blobs, 0));
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(blobs[i].size, 3);
        assert_memory_equal(blobs[i].data, i == 1 ? "two" : "one", 3);
        store_blob_fini(&blobs[i]);
    }
    assert_int_equal(store_get(pair->there, missing, 3, blobs, 0), LS_ENOENT);
    assert_non_null(strstr(ls_error_text(), "nowhere"));
    for (size_t i = 0; i < 3; i++)
        assert_null(blobs[i].data);
    assert_int_equal(store_get(pair->there, there, 0, blobs, 0), LS_EINVAL);
    assert_int_equal(store_get(pair->there, there, STORE_GET_MAX + 1, blobs, 0),
                     LS_EINVAL);
}

static inline void spec_gives_parts(void **state)
{
    struct store_pair *pair = *state;
    static const struct store_part parts[] = {
        {"a", 0, 2}, {"a", 2, 3}, {"b", 1, 1}, {"a", 0, 0}, {"a", 5, 0}};
    static const char *const texts[] = {"he", "llo", "o", "hello", ""};
    static const struct store_part beyond[] = {{"b", 0, 1}, {"a", 3, 3}};
    struct store_blob blobs[5];
    spec_put_text(pair->here, "a", "hello");
    spec_put_text(pair->here, "b", "you");
    spec_ok(store_get_parts(pair->there, parts, 5, blobs, 0));
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(blobs[i].size, strlen(texts[i]));
        assert_memory_equal(blobs[i].data, texts[i], blobs[i].size);
        store_blob_fini(&blobs[i]);
    }
    assert_int_equal(store_get_parts(pair->there, beyond, 2, blobs, 0),
                     LS_EPROTO);
    assert_non_null(strstr(ls_error_text(), "a has 5 bytes"));
}

static inline void spec_forgets_several_soon(void **state)
{
    struct store_pair *pair = *state;
    static const char *const names[] = {"a", "../b", "c"};
    struct store_blob blob;
    spec_put_text(pair->here, "a", "one");
    spec_put_text(pair->here, "c", "two");
    store_forget(pair->there, names, 3);
    /* What is asked for after it comes after it. */
    assert_int_equal(store_get(pair->there, &names[0], 1, &blob, 0), LS_ENOENT);
    assert_int_equal(store_get(pair->there, &names[2], 1, &blob, 0), LS_ENOENT);
}

static inline void spec_gives_as_many_as_may_be_asked_for(void **state)
{
    struct store_pair *pair = *state;
    static char text[STORE_GET_MAX][SAFE_NAME_MAX + 1];
    static const char *names[STORE_GET_MAX];
    static struct store_blob blobs[STORE_GET_MAX];
    for (size_t i = 0; i < STORE_GET_MAX; i++) {
        (void)snprintf(text[i], sizeof text[i], "%059zu.%zu", i, i % 3);
        names[i] = text[i];
        spec_put_text(pair->here, names[i], names[i]);
    }
    spec_ok(store_get(pair->there, names, STORE_GET_MAX, blobs, 0));
    for (size_t i = 0; i < STORE_GET_MAX; i++) {
        assert_memory_equal(blobs[i].data, names[i], blobs[i].size);
        store_blob_fini(&blobs[i]);
    }
}

static inline void spec_forgets_what_is_dropped(void **state)
{
    struct store_pair *pair = *state;
    spec_put_text(pair->here, "a", "one");
    spec_ok(store_drop(pair->there, "a", 0));
    spec_lacks(pair->here, "a");
    spec_lacks(pair->there, "a");
    spec_ok(store_drop(pair->here, "a", 0));
    spec_put_text(pair->there, "a", "again");
    spec_has_text(pair->here, "a", "again");
}

/* hint: how often. Data that was on its way to another node is released when
 * both are done with it, which may be after the put. */
static inline void spec_released(void *data, void *hint)
{
    free(data);
    counter_add(hint, 1);
}

static inline int spec_put_moved(struct store *store, const char *name,
                                 size_t size, struct counter *released)
{
    void *data = calloc(1, size);
    assert_non_null(data);
    return store_put(store, &(struct store_put){.name = name,
                                                .data = data,
                                                .size = size,
                                                .release = spec_released,
                                                .hint = released});
}

static inline void spec_refuses_what_is_no_name(void **state)
{
    struct store_pair *pair = *state;
    char longer[SAFE_NAME_MAX + 2] = {0};
    memset(longer, 'n', sizeof longer - 1);
    const char *const bad[] = {"",     ".",    ".hidden", "..",  "a/b",
                               "a..b", "../a", "a b",     longer};
    struct store_blob blob;
    struct counter released;
    counter_init(&released);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(spec_put_moved(pair->here, bad[i], 1, &released),
                         LS_EINVAL);
        assert_int_equal(counter_get(&released), i + 1);
        assert_int_equal(store_get(pair->here, &bad[i], 1, &blob, 0),
                         LS_EINVAL);
        assert_int_equal(store_drop(pair->here, bad[i], 0), LS_EINVAL);
    }
    counter_fini(&released);
}

static inline void spec_refuses_to_wait_for_ever(void **state)
{
    struct store_pair *pair = *state;
    const char *const name = "a";
    struct store_blob blob;
    const struct store_put put = {.name = "a", .data = "", .wait_ms = -1};
    assert_int_equal(store_put(pair->here, &put), LS_EINVAL);
    assert_int_equal(store_get(pair->here, &name, 1, &blob, -1), LS_EINVAL);
    assert_int_equal(store_drop(pair->here, "a", -1), LS_EINVAL);
}

static inline void spec_refuses_what_is_too_long(void **state)
{
    struct store_pair *pair = *state;
    struct counter released;
    counter_init(&released);
    spec_put_text(pair->here, "a", "one");
    assert_int_equal(spec_put_moved(pair->here, "a", SPEC_TOO_LONG, &released),
                     LS_ELIMIT);
    assert_reaches(&released, 1);
    counter_fini(&released);
    spec_has_text(pair->there, "a", "one");
}

/* Two write, two read ----------------------------------------------------- */

#define SPEC_ROUNDS 60
#define SPEC_VALUE  70000

struct spec_worker {
    struct store *store;
    unsigned char writer; /* 0: it reads */
    int status;
};

static inline void spec_work(void *self)
{
    struct spec_worker *worker = self;
    const char *const name = "shared";
    unsigned char *value = malloc(SPEC_VALUE);
    for (int i = 0; i < SPEC_ROUNDS && worker->status == LS_OK; i++) {
        struct store_blob blob = {.data = NULL};
        if (worker->writer != 0) {
            memset(value, worker->writer + 2 * i, SPEC_VALUE);
            worker->status =
                store_put(worker->store,
                          &(struct store_put){
                              .name = name, .data = value, .size = SPEC_VALUE});
            continue;
        }
        worker->status = store_get(worker->store, &name, 1, &blob, 0);
        const unsigned char *bytes = blob.data;
        if (worker->status == LS_OK &&
            (blob.size != SPEC_VALUE ||
             memcmp(bytes, bytes + 1, SPEC_VALUE - 1) != 0))
            worker->status = LS_EINVARIANT;
        store_blob_fini(&blob);
    }
    free(value);
}

static inline void spec_gives_no_mixture(void **state)
{
    struct store_pair *pair = *state;
    static const unsigned char first[SPEC_VALUE];
    struct spec_worker workers[] = {{.store = pair->here, .writer = 1},
                                    {.store = pair->there, .writer = 2},
                                    {.store = pair->here},
                                    {.store = pair->there}};
    ls_thread *threads[4];
    spec_put(pair->here, "shared", first, sizeof first);
    for (size_t i = 0; i < 4; i++)
        spec_ok(ls_thread_spawn(ls_runtime_threads(), &threads[i], "worker",
                                spec_work, &workers[i]));
    for (size_t i = 0; i < 4; i++) {
        spec_ok(ls_thread_join(&threads[i], LS_FOREVER));
        assert_int_equal(workers[i].status, LS_OK);
    }
}

#define STORE_SPEC(set_up, tear_down)                                          \
    TEST_OF(spec_gives_what_was_put, set_up, tear_down)                        \
    TEST_OF(spec_replaces, set_up, tear_down)                                  \
    TEST_OF(spec_drops_the_highest_rank, set_up, tear_down)                    \
    TEST_OF(spec_keeps_the_higher_rank, set_up, tear_down)                     \
    TEST_OF(spec_gives_several_or_none, set_up, tear_down)                     \
    TEST_OF(spec_gives_as_many_as_may_be_asked_for, set_up, tear_down)         \
    TEST_OF(spec_forgets_what_is_dropped, set_up, tear_down)                   \
    TEST_OF(spec_gives_parts, set_up, tear_down)                               \
    TEST_OF(spec_forgets_several_soon, set_up, tear_down)                      \
    TEST_OF(spec_refuses_what_is_no_name, set_up, tear_down)                   \
    TEST_OF(spec_refuses_to_wait_for_ever, set_up, tear_down)                  \
    TEST_OF(spec_refuses_what_is_too_long, set_up, tear_down)                  \
    TEST_OF(spec_gives_no_mixture, set_up, tear_down)

#endif
