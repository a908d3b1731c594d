/* Memory of a group whose ranks are declared lost although they live: nothing
 * of it is gone, and what is lent of it never changes under who reads it. */
#include "lockstep/group.h"
#include "lockstep/network.h"
#include "mesh_node.h"
#include "test.h"

enum { RANKS = 3, PAUSED = 2, COUNT = 20000, WAIT_MS = 60000 };

/* When ranks come to the operation in which one is missing, when that one stops
 * and goes on, in seconds of the simulation. If it is not in the operation
 * then, it comes to it when it knows that it is lost. */
enum {
    COMES_FIRST_S = 10,
    STOPS_S = 15,
    COME_S = 20,
    GOES_ON_S = 60,
    COMES_LAST_S = 65
};

struct life {
    ls_simulation *simulation;
    bool in_operation; /* the paused one stands still in it, not before it */
    uint32_t number;
    ls_host *host;
    ls_thread *thread;
    ls_node *node;
    ls_group *group;
    float *kept;
};

static struct life lives[RANKS];

#define MUST(condition)                                                        \
    do {                                                                       \
        if (!(condition))                                                      \
            ls_simulation_violation(                                           \
                life->simulation, "%s:%d: rank %u: %s: %s", __FILE__,          \
                __LINE__, life->number, #condition, ls_error_text());          \
    } while (0)

static float brings(const struct life *life, size_t i)
{
    return (float)((life->number + 1) * (i % 50));
}

static float *get(struct life *life)
{
    void *memory = NULL;
    MUST(ls_group_alloc(life->group, &memory, COUNT * sizeof(float)) == LS_OK);
    return memory;
}

static int add(struct life *life, float *numbers)
{
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = brings(life, i);
    return ls_group_all_reduce(life->group, numbers, COUNT, LS_GROUP_F32,
                               LS_GROUP_SUM, WAIT_MS);
}

static bool is_sum(const float *numbers)
{
    for (size_t i = 0; i < COUNT; i++)
        if (numbers[i] != (float)(6 * (i % 50)))
            return false;
    return true;
}

static uint64_t n_lent(struct life *life)
{
    struct ls_group_stats stats;
    ls_group_stats(life->group, &stats);
    return stats.lent;
}

static void begin(struct life *life)
{
    const struct ls_group_options with = {.on_loss = LS_ON_LOSS_GO_ON,
                                          .expected = RANKS,
                                          .grace_ms = 10 * WAIT_MS,
                                          .room = LS_GROUP_ROOM_ALWAYS,
                                          .alloc_bytes = 1 << 20};
    MUST(mesh_node_create(&life->node, life->host, life->number, RANKS,
                          WAIT_MS) == LS_OK);
    MUST(ls_group_create(&life->group, life->node, &with) == LS_OK);
    MUST(ls_node_start(life->node) == LS_OK);
}

static void rest_until(const struct life *life, int64_t seconds)
{
    ls_runtime *const runtime = ls_host_runtime(life->host);
    ls_rest_until(runtime, ls_now(runtime) + seconds * LS_NS_PER_S -
                               ls_simulation_now(life->simulation));
}

/* The others find it missing, and it finds that it is lost to them. */
static void part(struct life *life)
{
    rest_until(life, life->number != PAUSED ? COME_S
                     : life->in_operation   ? COMES_FIRST_S
                                            : COMES_LAST_S);
    MUST(add(life, life->kept) == LS_ELOST);
    /* It would spoil what the others read there. */
    for (size_t i = 0; i < COUNT; i++)
        life->kept[i] = -1.0f;
}

static void live(void *arg)
{
    struct life *const life = arg;
    begin(life);
    MUST(ls_group_form(life->group, WAIT_MS) == LS_OK);
    life->kept = get(life);
    MUST(add(life, life->kept) == LS_OK && is_sum(life->kept));
    MUST(n_lent(life) == 1);
    part(life);
    MUST(ls_group_form(life->group, 10 * WAIT_MS) == LS_OK);
    MUST(ls_group_size(life->group) == RANKS);
    for (size_t i = 0; i < COUNT; i++)
        MUST(life->kept[i] == -1.0f);
    MUST(add(life, life->kept) == LS_OK && is_sum(life->kept));
    MUST(n_lent(life) == (life->in_operation ? 1 : 2));
    float *const after = get(life);
    MUST(add(life, after) == LS_OK && is_sum(after));
    MUST(n_lent(life) == (life->in_operation ? 2 : 3));
    MUST(ls_group_free(life->group, after) == LS_OK);
    MUST(ls_group_free(life->group, life->kept) == LS_OK);
    MUST(ls_group_barrier(life->group, WAIT_MS) == LS_OK);
    ls_group_destroy(&life->group);
    ls_node_destroy(&life->node);
}

static void stop(void *host)
{
    ls_host_pause(host);
}

static void go_on(void *host)
{
    ls_host_resume(host);
}

static void whole_story(void *arg)
{
    ls_simulation *const simulation = lives[0].simulation;
    ls_network *network;
    (void)arg;
    assert_ok(ls_network_create(&network, simulation, NULL));
    for (uint32_t i = 0; i < RANKS; i++) {
        struct life *const life = &lives[i];
        assert_ok(ls_host_create(&life->host, simulation, "host"));
        assert_ok(ls_network_join(network, life->host));
        assert_ok(ls_thread_spawn(ls_host_runtime(life->host), &life->thread,
                                  "main", live, life));
    }
    assert_ok(ls_simulation_at(simulation, STOPS_S * LS_NS_PER_S, stop,
                               lives[PAUSED].host));
    assert_ok(ls_simulation_at(simulation, GOES_ON_S * LS_NS_PER_S, go_on,
                               lives[PAUSED].host));
    for (uint32_t i = 0; i < RANKS; i++)
        assert_ok(ls_thread_join(&lives[i].thread, LS_FOREVER));
    ls_network_destroy(&network);
}

static void tell(bool in_operation)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        const struct ls_simulation_options options = {.seed = seed};
        ls_simulation *simulation;
        assert_ok(ls_simulation_create(&simulation, &options));
        for (uint32_t i = 0; i < RANKS; i++)
            lives[i] = (struct life){.simulation = simulation,
                                     .in_operation = in_operation,
                                     .number = i};
        assert_ok(ls_simulation_run(simulation, whole_story, NULL));
        ls_simulation_destroy(&simulation);
    }
}

TEST(who_was_declared_lost_between_operations_lends_what_it_had)
{
    tell(false);
}

TEST(who_was_declared_lost_in_an_operation_keeps_what_it_had_for_itself)
{
    tell(true);
}
