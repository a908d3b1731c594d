/* service_sweep.h - a learner and a collector in a simulation, with a store,
 * and what is to hold of their works. */
#ifndef SERVICE_SWEEP_H
#define SERVICE_SWEEP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collected_set.h"
#include "learner_service.h"
#include "lockstep/call.h"
#include "lockstep/log.h"
#include "lockstep/network.h"
#include "lockstep/random.h"
#include "policy_value.h"
#include "store_parts.h"
#include "test.h"

#define WORKS   24
#define LIVES   6
#define ITEMS   512
#define WAIT_MS 20000

enum { LEARNER = 1, COORDINATOR = 2, COLLECTOR = 3 };

struct item {
    char name[SAFE_NAME_MAX + 1];
    struct ls_bytes value;
};

/* What became of a work. */
struct fate {
    int64_t iterations; /* 0: it is a collector's */
    int64_t version;    /* of the last policy; -1: none */
    int64_t step;       /* that was told last */
    bool closed;        /* and answered */
};

struct sweep;

struct member {
    struct sweep *sweep;
    uint32_t id;
    ls_host *host;
    ls_thread *thread;
    ls_node *node;
    ls_rpc *calls;
    ls_task *task;
    struct ls_rng random;
};

struct life {
    struct sweep *sweep;
    ls_host *host;
    ls_thread *thread;
    struct ls_rng random;
    ls_node *node;
    ls_rpc *calls;
    bool over; /* it did all, or gave up since it is dead */
};

struct sweep {
    ls_simulation *simulation;
    ls_network *network;
    uint64_t seed;
    struct store store;
    struct item items[ITEMS];
    size_t n_items;
    struct member learner, collector;
    struct life lives[LIVES];
    size_t n_lives;
    struct fate works[WORKS + 2 * LIVES];
    size_t n_works;
    size_t held[4]; /* by member: which work, + 1 */
    uint64_t n_data;
    bool pauses_long; /* so that members are taken for dead */
    bool finished;    /* the coordinator has said so */
    int64_t adopted, failed, iterations, rejoined;
    const char *wrong; /* the first */
};

static inline void ok(int status)
{
    if (status != LS_OK)
        fail_msg("%s: %s", ls_status_name(status), ls_error_text());
}

static inline void must(struct sweep *sweep, bool right, const char *what)
{
    if (!right && sweep->wrong == NULL)
        sweep->wrong = what;
}

/* Something takes up to so long. */
static inline void take_time(struct ls_rng *random, int64_t ms)
{
    ls_runtime *runtime = ls_runtime_current();
    ls_rest_until(runtime,
                  ls_now(runtime) + (int64_t)ls_rng_below(
                                        random, (uint64_t)(ms * LS_NS_PER_MS)));
}

/* The store: all in one thread, so it needs no lock -------------------------
 */

static inline struct sweep *sweep_of(struct store *store)
{
    return (struct sweep *)((char *)store - offsetof(struct sweep, store));
}

static inline struct item *find(struct sweep *sweep, const char *name)
{
    for (size_t i = 0; i < sweep->n_items; i++)
        if (strcmp(sweep->items[i].name, name) == 0)
            return &sweep->items[i];
    return NULL;
}

/* Policies are called p.WORK. */
static inline void check_policy(struct sweep *sweep,
                                const struct store_put *put)
{
    struct policy_value value;
    struct fate *fate = &sweep->works[strtoul(put->name + 2, NULL, 10)];
    ok(policy_value_read(&value, put->data, put->size));
    must(sweep, !fate->closed, "a policy of a work that is closed");
    must(sweep, value.version == fate->version + 1, "a version out of order");
    must(sweep, value.iter == (value.version == 0 ? 0 : value.version - 1),
         "an iteration out of order");
    fate->version = value.version;
    ls_bytes_clear(&value.weights);
}

static inline int put(struct store *store, const struct store_put *what)
{
    struct sweep *sweep = sweep_of(store);
    take_time(ls_simulation_random(sweep->simulation), 3);
    if (what->keep)
        check_policy(sweep, what);
    struct item *item = find(sweep, what->name);
    if (item == NULL) {
        assert_true(sweep->n_items < ITEMS);
        item = &sweep->items[sweep->n_items++];
        *item = (struct item){.value = {NULL, 0}};
        strcpy(item->name, what->name);
    }
    const int status = ls_bytes_set(&item->value, what->data, what->size);
    store_put_release(what);
    return status;
}

static inline int get(struct store *store, const struct store_part *parts,
                      size_t n, struct store_blob *out, int wait_ms)
{
    struct sweep *sweep = sweep_of(store);
    (void)wait_ms;
    take_time(ls_simulation_random(sweep->simulation), 3);
    for (size_t i = 0; i < n; i++)
        if (find(sweep, parts[i].name) == NULL)
            return ls_error(LS_ENOENT, "there is no %s", parts[i].name);
    for (size_t i = 0; i < n; i++) {
        const struct ls_bytes *value = &find(sweep, parts[i].name)->value;
        out[i] = (struct store_blob){.data = malloc(value->size + 1),
                                     .size = value->size};
        memcpy(out[i].data, value->data, value->size);
    }
    return LS_OK;
}

static inline int drop(struct store *store, const char *name, int wait_ms)
{
    struct sweep *sweep = sweep_of(store);
    struct item *item = find(sweep, name);
    (void)wait_ms;
    if (item == NULL)
        return LS_OK;
    ls_bytes_clear(&item->value);
    *item = sweep->items[--sweep->n_items];
    return LS_OK;
}

static inline void forget(struct store *store, const char *const *names,
                          size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)drop(store, names[i], 0);
}

static const struct store_ops store_ops = {
    .put = put, .get = get, .drop = drop, .forget = forget};

/* What the members do -------------------------------------------------------
 */

static inline int no_reset(void *self)
{
    (void)self;
    return LS_OK;
}

static inline int no_load(void *self, const struct ls_bytes *weights)
{
    (void)self;
    (void)weights;
    return LS_OK;
}

static inline int some_weights(void *self, struct ls_bytes *out)
{
    (void)self;
    return ls_bytes_set(out, "w", 1);
}

static inline int learn(void *self, const struct learner_lesson *lesson)
{
    struct member *member = self;
    take_time(&member->random, 30);
    for (size_t i = 0; i < lesson->n; i++)
        lesson->priorities[i] = 1.0;
    return ls_rng_below(&member->random, 40) == 0
               ? ls_error(LS_EHANDLER, "it fails now and then")
               : LS_OK;
}

static inline int collect(void *self, int64_t unroll_len, int64_t parts,
                          int64_t more, struct collected_data *out,
                          struct collected *what)
{
    (void)more;
    struct member *member = self;
    (void)parts;
    what->steps = unroll_len;
    take_time(&member->random, 30);
    return ls_rng_below(&member->random, 40) == 0
               ? ls_error(LS_EHANDLER, "it fails now and then")
               : collected_set(out, "t", 1);
}

static inline int evaluate(void *self, double *episode_return, int64_t *steps)
{
    struct member *member = self;
    take_time(&member->random, 30);
    *episode_return = 1.0;
    *steps = 1;
    return LS_OK;
}

static const struct learner_ops learner_ops = {
    .reset = no_reset, .load = no_load, .save = some_weights, .learn = learn};
static const struct collector_ops collector_ops = {.reset = no_reset,
                                                   .load = no_load,
                                                   .collect = collect,
                                                   .evaluate = evaluate};

/* Nodes ---------------------------------------------------------------------
 */

static inline int make_node(ls_node **node, uint32_t id, ls_host *host)
{
    static const char *const all[] = {"tcp://127.0.0.1:21500",
                                      "tcp://127.0.0.1:21501",
                                      "tcp://127.0.0.1:21502"};
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = id;
    options.bind = all[id - 1];
    options.attach = all;
    options.n_attach = 3;
    options.world_max = 3;
    options.start_timeout_ms = 60000;
    options.runtime = ls_host_runtime(host);
    return ls_node_create(node, &options);
}

static inline void run_member(struct member *member)
{
    int status;
    ok(ls_node_start(member->node));
    /* One that was taken for dead begins again, with nothing. */
    struct sweep *sweep = member->sweep;
    while ((status = ls_task_run(member->task, UINT64_MAX)) == LS_ELOST &&
           sweep->pauses_long && !sweep->finished)
        sweep->rejoined++;
    must(sweep, status == LS_OK || (sweep->pauses_long && sweep->finished),
         "a run that failed");
    ls_task_destroy(&member->task);
    struct ls_rpc_stats stats;
    ls_rpc_stats(member->calls, &stats);
    must(member->sweep, stats.open_requests == 0, "a request is open");
    ls_rpc_close(&member->calls);
}

static inline void make_member(struct member *member)
{
    ok(make_node(&member->node, member->id, member->host));
    ok(ls_rpc_open(&member->calls, member->node, NULL));
    ok(ls_task_create(&member->task,
                      &(struct ls_task_options){.node = member->node}));
}

static inline struct service_options member_options(struct member *member)
{
    return (struct service_options){.node = member->node,
                                    .calls = member->calls,
                                    .store = &member->sweep->store,
                                    .patience_ms = 100000};
}

static inline void learner_main(void *arg)
{
    struct member *member = arg;
    learner_service *service = NULL;
    make_member(member);
    const struct learner_service_options options = {
        .common = member_options(member),
        .ops = &learner_ops,
        .self = member,
        .stacks = 2,
        .loaders = 1}; /* with more, batches overtake each other */
    ok(learner_service_create(&service, &options));
    learner_service_use(service, member->task);
    run_member(member);
    learner_service_destroy(&service);
    ls_node_destroy(&member->node);
}

static inline void collector_main(void *arg)
{
    struct member *member = arg;
    collector_service *service = NULL;
    make_member(member);
    const struct collector_service_options options = {
        .common = member_options(member),
        .ops = &collector_ops,
        .self = member};
    ok(collector_service_create(&service, &options));
    collector_service_use(service, member->task);
    run_member(member);
    collector_service_destroy(&service);
    ls_node_destroy(&member->node);
}

#endif
