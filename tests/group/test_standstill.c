/* A whole job is stopped, as by Ctrl-Z, for longer than any wait takes, and
 * goes on: nobody had the time, so no wait ends by its deadline. */
#include "lockstep/barrier.h"
#include "lockstep/event.h"
#include "lockstep/group.h"
#include "lockstep/network.h"
#include "mesh_node.h"
#include "test.h"

enum { NODES = 3, LAST = NODES - 1, WAIT_MS = 5000 };

/* The last one comes to the wait only after all have stood still. In ms. */
enum { STOP_AT = 10000, STAND = 10 * WAIT_MS, LAST_AT = 10500 };

struct life {
    ls_simulation *simulation;
    uint32_t number;
    ls_host *host;
    ls_thread *thread;
    ls_node *node;
    int (*meet)(struct life *life);
};

static struct life lives[NODES];

#define MUST(condition)                                                        \
    do {                                                                       \
        if (!(condition))                                                      \
            ls_simulation_violation(                                           \
                life->simulation, "%s:%d: node %u: %s: %s", __FILE__,          \
                __LINE__, life->number, #condition, ls_error_text());          \
    } while (0)

static void start(struct life *life)
{
    MUST(mesh_node_create(&life->node, life->host, life->number, NODES,
                          WAIT_MS) == LS_OK);
}

static void rest_until_meeting(const struct life *life)
{
    const int64_t stands = life->number == LAST ? STAND + LAST_AT : STOP_AT - 1;
    ls_rest_until(ls_host_runtime(life->host), stands * LS_NS_PER_MS);
}

static int meet_at_barrier(struct life *life)
{
    ls_barrier *barrier;
    MUST(ls_barrier_create(&barrier, life->node, NULL) == LS_OK);
    MUST(ls_node_start(life->node) == LS_OK);
    rest_until_meeting(life);
    const int status = ls_barrier_wait(barrier, 0, WAIT_MS, NULL);
    MUST(ls_barrier_destroy(&barrier) == LS_OK);
    return status;
}

/* The last one is lost before all stand still, and comes back after that. */
static void leave_and_come_back(struct life *life, ls_barrier **barrier,
                                const struct ls_barrier_options *with)
{
    ls_rest_until(ls_host_runtime(life->host), (STOP_AT - 1000) * LS_NS_PER_MS);
    ls_node_stop(life->node, LS_ELOST);
    MUST(ls_barrier_destroy(barrier) == LS_OK);
    MUST(ls_node_destroy(&life->node) == LS_OK);
    rest_until_meeting(life);
    start(life);
    MUST(ls_barrier_create(barrier, life->node, with) == LS_OK);
    MUST(ls_node_start(life->node) == LS_OK);
}

static int meet_in_another_life(struct life *life)
{
    const struct ls_barrier_options with = {.grace_ms = WAIT_MS};
    ls_barrier *barrier;
    MUST(ls_barrier_create(&barrier, life->node, &with) == LS_OK);
    MUST(ls_node_start(life->node) == LS_OK);
    MUST(ls_barrier_wait(barrier, 0, WAIT_MS, NULL) == LS_OK);
    if (life->number == LAST)
        leave_and_come_back(life, &barrier, &with);
    else
        rest_until_meeting(life);
    const int status = ls_barrier_wait(barrier, 0, WAIT_MS, NULL);
    MUST(ls_barrier_destroy(&barrier) == LS_OK);
    return status;
}

static int meet_in_group(struct life *life, enum ls_group_room room)
{
    const struct ls_group_options with = {.room = room};
    ls_group *group;
    uint32_t sum = 1;
    MUST(ls_group_create(&group, life->node, &with) == LS_OK);
    MUST(ls_node_start(life->node) == LS_OK);
    MUST(ls_group_form(group, WAIT_MS) == LS_OK);
    rest_until_meeting(life);
    const int status = ls_group_all_reduce(group, &sum, 1, LS_GROUP_I32,
                                           LS_GROUP_SUM, WAIT_MS);
    MUST(status != LS_OK || sum == NODES);
    MUST(ls_group_destroy(&group) == LS_OK);
    return status;
}

static int meet_in_group_on_bus(struct life *life)
{
    return meet_in_group(life, LS_GROUP_ROOM_NEVER);
}

static int meet_in_shared_memory(struct life *life)
{
    return meet_in_group(life, LS_GROUP_ROOM_ALWAYS);
}

/* The last one says so once all go on. */
static int meet_at_event(struct life *life)
{
    ls_waiter *waiter;
    int status = LS_OK;
    MUST(ls_waiter_create(&waiter, life->node, "go", 0) == LS_OK);
    MUST(ls_node_start(life->node) == LS_OK);
    rest_until_meeting(life);
    if (life->number == LAST)
        MUST(ls_emit(life->node, "go", NULL, 0) == LS_OK);
    else if (life->number == 0)
        status = ls_wait_for(life->node, "go", WAIT_MS, NULL, NULL);
    else
        status = ls_waiter_wait(waiter, WAIT_MS, NULL, NULL);
    MUST(ls_waiter_destroy(&waiter) == LS_OK);
    return status;
}

/* The first one takes long; others come at once. */
static int take(void *self, const struct ls_event *event)
{
    const struct life *const life = self;
    (void)event;
    ls_rest_until(ls_host_runtime(life->host),
                  (STAND + LAST_AT) * LS_NS_PER_MS);
    return LS_OK;
}

/* More than there is room for, until `to` goes on. */
static int emit_much(struct life *life, uint32_t to)
{
    enum { N = 200, SIZE = 65536 };
    static char data[SIZE];
    const struct ls_emission much = {.event = "much",
                                     .data = data,
                                     .size = SIZE,
                                     .to_one = true,
                                     .to = to,
                                     .timeout_ms = WAIT_MS};
    int status = ls_on(life->node, "much", take, life);
    MUST(status == LS_OK);
    MUST(ls_node_start(life->node) == LS_OK);
    if (life->number == LAST && to == LAST)
        ls_rest_until(ls_host_runtime(life->host), 2 * STAND * LS_NS_PER_MS);
    if (life->number == LAST)
        return LS_OK;
    rest_until_meeting(life);
    for (int i = 0; i < N && status == LS_OK; i++)
        status = ls_emit_with(life->node, &much);
    return status;
}

static int meet_for_room(struct life *life)
{
    return emit_much(life, LAST);
}

static int meet_for_own_room(struct life *life)
{
    return emit_much(life, life->number);
}

static void live(void *arg)
{
    struct life *const life = arg;
    start(life);
    MUST(life->meet(life) == LS_OK);
    MUST(ls_node_destroy(&life->node) == LS_OK);
}

static void stop_all(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < NODES; i++)
        ls_host_pause(lives[i].host);
}

static void go_on(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < NODES; i++)
        ls_host_resume(lives[i].host);
}

static void whole_story(void *arg)
{
    ls_simulation *const simulation = arg;
    ls_network *network;
    assert_ok(ls_network_create(&network, simulation, NULL));
    for (size_t i = 0; i < NODES; i++) {
        struct life *const life = &lives[i];
        assert_ok(ls_host_create(&life->host, simulation, "host"));
        assert_ok(ls_network_join(network, life->host));
        assert_ok(ls_thread_spawn(ls_host_runtime(life->host), &life->thread,
                                  "main", live, life));
    }
    assert_ok(
        ls_simulation_at(simulation, STOP_AT * LS_NS_PER_MS, stop_all, NULL));
    assert_ok(ls_simulation_at(simulation, (STOP_AT + STAND) * LS_NS_PER_MS,
                               go_on, NULL));
    for (size_t i = 0; i < NODES; i++)
        assert_ok(ls_thread_join(&lives[i].thread, LS_FOREVER));
    ls_network_destroy(&network);
}

static void tell(int (*meet)(struct life *life))
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const struct ls_simulation_options options = {.seed = seed};
        ls_simulation *simulation;
        assert_ok(ls_simulation_create(&simulation, &options));
        for (uint32_t i = 0; i < NODES; i++)
            lives[i] = (struct life){
                .simulation = simulation, .number = i, .meet = meet};
        assert_ok(ls_simulation_run(simulation, whole_story, simulation));
        ls_simulation_destroy(&simulation);
    }
}

TEST(who_waits_in_a_barrier_does_so_when_all_go_on)
{
    tell(meet_at_barrier);
}

TEST(so_does_who_waits_for_another_life)
{
    tell(meet_in_another_life);
}

TEST(so_does_who_waits_for_an_event)
{
    tell(meet_at_event);
}

TEST(so_does_who_emits_where_there_is_no_room)
{
    tell(meet_for_room);
}

TEST(so_does_who_emits_to_itself)
{
    tell(meet_for_own_room);
}

TEST(so_do_the_ranks_of_a_group)
{
    tell(meet_in_group_on_bus);
}

TEST(so_do_those_that_share_memory)
{
    tell(meet_in_shared_memory);
}
