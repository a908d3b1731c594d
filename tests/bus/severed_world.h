/* severed_world.h - nodes that are reached through links that can be severed,
 * and what each is told of the others. */
#ifndef SEVERED_WORLD_H
#define SEVERED_WORLD_H

#include <inttypes.h>

#include "lockstep/channel.h"

#include "severed_link.h"

#define SEVERED_NODES 4

/* One node, ids from 1. Its channel tries each few milliseconds to reach each
 * other node, and counts when that has failed and works again. */
struct severed_node {
    struct severed_link link;
    ls_node *node;
    ls_channel *channel;
    struct counter told, ready, lost, left, heard, back;
    struct ls_member last;
    bool away[SEVERED_NODES + 1];
    struct counter away_n;
    size_t n;
};

struct severed_world {
    char directory[64];
    size_t n;
    struct severed_node at[SEVERED_NODES];
};

struct severed_plan {
    size_t n;
    enum ls_topology topology;
    int heartbeat_ms, silence_ms;
    bool parted; /* at its end some do not hear each other, and nobody waits for
                  * their farewells */
};

static inline void severed_told(void *self, const struct ls_member *member)
{
    struct severed_node *at = self;
    at->last = *member;
    counter_add(member->state == LS_MEMBER_READY  ? &at->ready
                : member->state == LS_MEMBER_LOST ? &at->lost
                                                  : &at->left,
                1);
    counter_add(&at->told, 1);
}

static inline void severed_ignore(void *self, uint32_t from, uint64_t life,
                                  const void *data, size_t size)
{
    (void)self, (void)from, (void)life, (void)data, (void)size;
}

static inline void severed_try(void *self, int64_t now)
{
    struct severed_node *at = self;
    for (uint32_t id = 1; id <= at->n; id++) {
        if (id == ls_node_id(at->node))
            continue;
        const bool away = ls_channel_send(at->channel, id, "", 1) == LS_ENOENT;
        if (at->away[id] && !away)
            counter_add(&at->back, 1);
        if (!at->away[id] && away)
            counter_add(&at->away_n, 1);
        at->away[id] = away;
    }
    ls_channel_wake_at(at->channel, now + 2 * LS_NS_PER_MS);
}

/* From now on it is counted who cannot be reached, and can again. */
static inline void severed_watch(struct severed_world *world)
{
    static const struct ls_channel_ops ops = {.message = severed_ignore,
                                              .timer = severed_try};
    for (size_t i = 0; i < world->n; i++) {
        struct severed_node *at = &world->at[i];
        assert_ok(ls_channel_open(&at->channel, at->node, "try", &ops, at));
        ls_channel_wake_at(at->channel, LS_NOW);
    }
}

static inline void severed_open(struct severed_world *world, size_t i,
                                const struct severed_plan *plan)
{
    struct severed_node *at = &world->at[i];
    struct ls_node_options options;
    const char *seed = world->at[0].link.endpoint;
    char path[96], bind[128];
    (void)snprintf(path, sizeof path, "%s/%zu", world->directory, i);
    (void)snprintf(bind, sizeof bind, "ipc://%s", path);
    severed_init(&at->link, path);
    ls_node_options_init(&options);
    options.id = (uint32_t)i + 1;
    options.bind = bind;
    options.advertise = at->link.endpoint;
    options.topology = plan->topology;
    options.world_size = (uint32_t)plan->n;
    options.attach = &seed;
    options.n_attach = i == 0 ? 0 : 1;
    options.heartbeat_ms = plan->heartbeat_ms;
    options.shared_bytes = 0; /* all is to go over the links */
    options.silence_ms = plan->silence_ms;
    options.start_timeout_ms = LONG_MS;
    options.linger_ms = plan->parted ? 0 : 2000;
    counter_init(&at->told);
    counter_init(&at->ready);
    counter_init(&at->lost);
    counter_init(&at->left);
    counter_init(&at->heard);
    counter_init(&at->back);
    counter_init(&at->away_n);
    at->n = plan->n;
    assert_ok(ls_node_create(&at->node, &options));
    assert_ok(ls_on(at->node, "x", count, &at->heard));
    assert_ok(ls_node_on_member(at->node, severed_told, at));
    assert_ok(ls_node_open(at->node));
}

static inline void severed_join(void *self)
{
    if (ls_node_join(((struct severed_node *)self)->node) != LS_OK) {
        (void)fprintf(stderr, "%s\n", ls_error_text());
        abort();
    }
}

static inline struct severed_world *
severed_start(const struct severed_plan *plan)
{
    struct severed_world *world = calloc(1, sizeof *world);
    ls_thread *threads[SEVERED_NODES];
    assert_non_null(world);
    strcpy(world->directory, "/tmp/lockstep-test-XXXXXX");
    assert_non_null(mkdtemp(world->directory));
    world->n = plan->n;
    for (size_t i = 0; i < plan->n; i++)
        severed_open(world, i, plan);
    for (size_t i = 0; i < plan->n; i++)
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &threads[i], "join",
                                  severed_join, &world->at[i]));
    for (size_t i = 0; i < plan->n; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
    for (size_t i = 0; i < plan->n; i++)
        assert_reaches(&world->at[i].ready, (int)plan->n - 1);
    return world;
}

static inline void severed_leave(void *self)
{
    struct severed_node *at = self;
    ls_channel_close(&at->channel);
    ls_node_destroy(&at->node);
}

static inline void severed_end(struct severed_world *world)
{
    ls_thread *threads[SEVERED_NODES];
    for (size_t i = 0; i < world->n; i++)
        assert_ok(ls_thread_spawn(ls_runtime_threads(), &threads[i], "leave",
                                  severed_leave, &world->at[i]));
    for (size_t i = 0; i < world->n; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
    for (size_t i = 0; i < world->n; i++) {
        struct severed_node *at = &world->at[i];
        severed_fini(&at->link);
        counter_fini(&at->told);
        counter_fini(&at->ready);
        counter_fini(&at->lost);
        counter_fini(&at->left);
        counter_fini(&at->heard);
        counter_fini(&at->back);
        counter_fini(&at->away_n);
    }
    assert_int_equal(rmdir(world->directory), 0);
    free(world);
}

/* Whether a node knows all others, as they are now, to be ready. */
static inline bool severed_agrees(struct severed_world *world, size_t i)
{
    struct ls_member members[SEVERED_NODES];
    const size_t n = ls_node_members(world->at[i].node, members, SEVERED_NODES);
    bool agrees = n == world->n - 1;
    for (size_t j = 0; j < n && agrees; j++)
        agrees = members[j].state == LS_MEMBER_READY &&
                 members[j].incarnation ==
                     ls_node_incarnation(world->at[members[j].id - 1].node);
    return agrees;
}

/* Wait until all do; each is told of every change that brings it nearer. */
static inline void severed_await_agreement(struct severed_world *world)
{
    for (size_t i = 0; i < world->n;) {
        const int told = counter_get(&world->at[i].told);
        if (severed_agrees(world, i)) {
            i++;
            continue;
        }
        assert_reaches(&world->at[i].told, told + 1);
        i = 0; /* others may have changed too */
    }
}

static inline struct ls_node_stats severed_stats(struct severed_node *at)
{
    struct ls_node_stats stats;
    ls_node_stats(at->node, &stats);
    return stats;
}

#endif
