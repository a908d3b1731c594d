/* world_fixture.h - worlds of several nodes in one process, and things that
 * can be waited for. Every wait has a deadline; none of them sleeps. */
#ifndef WORLD_FIXTURE_H
#define WORLD_FIXTURE_H

#include <dirent.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/event.h"
#include "lockstep/log.h"
#include "lockstep/node.h"
#include "lockstep/runtime.h"
#include "loopback.h"
#include "test.h"

#define WORLD_MAX 128
#define LONG_MS   30000 /* longer than anything here takes */
static inline int64_t long_deadline(void)
{
    return ls_deadline(ls_runtime_threads(), LONG_MS);
}

/* ---- a number that can be waited for ----------------------------------- */

struct counter {
    ls_mutex mutex;
    ls_cond cond;
    int n;
};

static inline void counter_init(struct counter *counter)
{
    counter->n = 0;
    assert_ok(ls_mutex_init(&counter->mutex, ls_runtime_threads()));
    assert_ok(ls_cond_init(&counter->cond, ls_runtime_threads()));
}

static inline void counter_fini(struct counter *counter)
{
    ls_cond_fini(&counter->cond);
    ls_mutex_fini(&counter->mutex);
}

static inline void counter_add(struct counter *counter, int n)
{
    ls_mutex_lock(&counter->mutex);
    counter->n += n;
    ls_cond_broadcast(&counter->cond);
    ls_mutex_unlock(&counter->mutex);
}

static inline int counter_get(struct counter *counter)
{
    ls_mutex_lock(&counter->mutex);
    const int n = counter->n;
    ls_mutex_unlock(&counter->mutex);
    return n;
}

/* Until something is counted, or for a moment: for who looks at what nobody is
 * told of. */
static inline void counter_await_moment(struct counter *counter)
{
    ls_mutex_lock(&counter->mutex);
    (void)!ls_cond_wait(&counter->cond, &counter->mutex,
                        ls_deadline(ls_runtime_threads(), 2));
    ls_mutex_unlock(&counter->mutex);
}

/* Wait for at least n; returns whether they came. Any thread. */
static inline bool counter_reaches(struct counter *counter, int n)
{
    const int64_t deadline = long_deadline();
    int status = LS_OK;
    ls_mutex_lock(&counter->mutex);
    while (counter->n < n && status == LS_OK)
        status = ls_cond_wait(&counter->cond, &counter->mutex, deadline);
    const bool reached = counter->n >= n;
    ls_mutex_unlock(&counter->mutex);
    return reached;
}

#define assert_reaches(counter, wanted)                                        \
    do {                                                                       \
        if (!counter_reaches((counter), (wanted)))                             \
            fail_msg("%d came, not %d", counter_get(counter), (wanted));       \
    } while (0)

/* A handler for any event: counts in its self, a struct counter. */
static inline int count(void *self, const struct ls_event *event)
{
    (void)event;
    counter_add(self, 1);
    return LS_OK;
}

/* Emit until it is heard: the listener is younger than the world. */
static inline void emit_until_heard(ls_node *node, const char *event,
                                    struct counter *heard)
{
    ls_runtime *runtime = ls_runtime_threads();
    const int64_t deadline = long_deadline();
    const int before = counter_get(heard);
    int status = LS_OK;
    while (counter_get(heard) == before && ls_now(runtime) < deadline) {
        assert_ok(ls_emit(node, event, NULL, 0));
        const int64_t soon = ls_deadline(runtime, 2);
        ls_mutex_lock(&heard->mutex);
        for (status = LS_OK; heard->n == before && status == LS_OK;)
            status = ls_cond_wait(&heard->cond, &heard->mutex, soon);
        ls_mutex_unlock(&heard->mutex);
    }
    assert_true(counter_get(heard) > before);
}

/* ---- worlds ------------------------------------------------------------ */

struct world_node {
    ls_node *node;
    ls_thread *thread;
    int status;
    char text[LS_ERROR_TEXT_MAX];
};

struct world {
    size_t n;
    struct world_node at[WORLD_MAX];
    char directory[64]; /* of socket files; "" */
    char seed[LS_ENDPOINT_MAX + 1];
};

/* Zeroed fields have their usual meaning. */
struct world_plan {
    size_t n;
    const char *transport; /* inproc (default), ipc, tcp, port */
    enum ls_topology topology;
    const uint32_t *ids; /* NULL: 1, 2, 3 … */
    void (*tune)(struct ls_node_options *options, size_t index);
    /* Called with each node before it is opened: to listen from the start. */
    void (*prepare)(ls_node *node, size_t index, void *self);
    void *self;
};

/* A `tune` for who counts descriptors, or all that is sent. */
static inline void share_no_memory(struct ls_node_options *options,
                                   size_t index)
{
    (void)index;
    options->shared_bytes = 0;
}

/* An address that no other node of this process has. */
static inline void fresh_endpoint(char *out, size_t size)
{
    static atomic_uint number;
    (void)snprintf(out, size, "inproc://test-%u", atomic_fetch_add(&number, 1));
}

static inline void bind_for(struct world *world, const struct world_plan *plan,
                            size_t index, char *out, size_t size)
{
    const char *over = plan->transport != NULL ? plan->transport : "";
    if (strcmp(over, "tcp") == 0) {
        (void)snprintf(out, size, "tcp://%s:21500-21999", loopback());
    } else if (strcmp(over, "port") == 0) {
        /* One that no program takes which looks for the first free one. */
        (void)snprintf(out, size, "tcp://%s:*", loopback());
    } else if (strcmp(over, "ipc") == 0) {
        if (world->directory[0] == '\0') {
            strcpy(world->directory, "/tmp/lockstep-test-XXXXXX");
            assert_non_null(mkdtemp(world->directory));
        }
        (void)snprintf(out, size, "ipc://%s/%zu", world->directory, index);
    } else {
        fresh_endpoint(out, size);
    }
}

/* As all have them; seed: borrow. */
static inline struct ls_node_options
world_options(const struct world_plan *plan, uint32_t id, const char *bind,
              const char *const *seed)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = id;
    options.bind = bind;
    options.topology = plan->topology;
    options.world_size = (uint32_t)plan->n;
    options.start_timeout_ms = LONG_MS;
    options.linger_ms = 2000;
    options.attach = seed;
    options.n_attach = 1;
    return options;
}

/* One that comes later, to a world of such a plan, or comes back. */
static inline ls_node *world_late(const struct world *world,
                                  const struct world_plan *plan, uint32_t id,
                                  const char *bind)
{
    const char *const seed = world->seed;
    const struct ls_node_options options = world_options(plan, id, bind, &seed);
    ls_node *node = NULL;
    assert_ok(ls_node_create(&node, &options));
    return node;
}

/* Make the nodes, all but the first attached to the first. It is opened here
 * where its address would not be known otherwise. */
static inline void world_create(struct world *world,
                                const struct world_plan *plan)
{
    memset(world, 0, sizeof *world);
    assert_true(plan->n <= WORLD_MAX);
    const char *seed = world->seed;
    for (size_t i = 0; i < plan->n; i++) {
        char bind[LS_ENDPOINT_MAX + 1];
        bind_for(world, plan, i, bind, sizeof bind);
        struct ls_node_options options = world_options(
            plan, plan->ids != NULL ? plan->ids[i] : (uint32_t)i + 1, bind,
            &seed);
        if (i == 0)
            options.n_attach = 0;
        if (plan->tune != NULL)
            plan->tune(&options, i);
        assert_ok(ls_node_create(&world->at[i].node, &options));
        world->n++;
        if (plan->prepare != NULL)
            plan->prepare(world->at[i].node, i, plan->self);
        if (i == 0 && strncmp(bind, "tcp", 3) == 0) {
            assert_ok(ls_node_open(world->at[0].node));
            strcpy(world->seed, ls_node_endpoint(world->at[0].node));
        } else if (i == 0) {
            strcpy(world->seed, bind);
        }
    }
}

static inline void world_join_one(void *self)
{
    struct world_node *at = self;
    if (ls_node_endpoint(at->node)[0] == '\0')
        at->status = ls_node_open(at->node);
    if (at->status == LS_OK)
        at->status = ls_node_join(at->node);
    if (at->status != LS_OK)
        memcpy(at->text, ls_error_text(), strlen(ls_error_text()) + 1);
}

static inline void world_spawn(struct world *world, size_t index,
                               void (*fn)(void *self))
{
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &world->at[index].thread,
                              "join", fn, &world->at[index]));
}

static inline void world_joined(struct world *world)
{
    for (size_t i = 0; i < world->n; i++)
        assert_ok(ls_thread_join(&world->at[i].thread, LS_FOREVER));
    for (size_t i = 0; i < world->n; i++)
        if (world->at[i].status != LS_OK)
            fail_msg("node %u: %s", ls_node_id(world->at[i].node),
                     world->at[i].text);
}

/* Open and join all of them, and wait until the world is formed. */
static inline void world_join(struct world *world)
{
    for (size_t i = 0; i < world->n; i++)
        world_spawn(world, i, world_join_one);
    world_joined(world);
}

static inline void world_stop_one(void *self)
{
    struct world_node *at = self;
    ls_node_destroy(&at->node);
}

/* All leave at once, as they do when a run ends. */
static inline void world_destroy(struct world *world)
{
    for (size_t i = 0; i < world->n; i++)
        world_spawn(world, i, world_stop_one);
    for (size_t i = 0; i < world->n; i++)
        assert_ok(ls_thread_join(&world->at[i].thread, LS_FOREVER));
    if (world->directory[0] != '\0')
        assert_int_equal(rmdir(world->directory), 0); /* left as it was */
}

static inline void world_start(struct world *world,
                               const struct world_plan *plan)
{
    world_create(world, plan);
    world_join(world);
}

static inline size_t open_descriptors(void)
{
    DIR *const folder = opendir("/proc/self/fd");
    size_t n = 0;
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        n++;
    (void)closedir(folder);
    return n;
}

#endif
