/* checks_world.h - members that tell stories to the checks. */
#ifndef CHECKS_WORLD_H
#define CHECKS_WORLD_H

#include "checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A simulation with three hosts, and nobody on them: the members' words are
 * put into their mouths. */
struct world {
    struct plan plan;
    ls_simulation *simulation;
    ls_network *network;
    checks *checks;
    ls_host *hosts[3];
    struct check_life *lives[3];
};

static inline void open_world(struct world *world)
{
    ls_config *config = NULL;
    memset(world, 0, sizeof *world);
    assert_int_equal(ls_config_parse(&config, "job.yaml",
                                     "nodes: [{role: member, count: 3}]\n"
                                     "barrier: {timeout_ms: 10000}\n"),
                     LS_OK);
    assert_int_equal(plan_read(&world->plan, &config, "job.yaml"), LS_OK);
    assert_int_equal(ls_simulation_create(&world->simulation, NULL), LS_OK);
    assert_int_equal(
        ls_network_create(&world->network, world->simulation, NULL), LS_OK);
    assert_int_equal(checks_create(&world->checks, world->simulation,
                                   world->network, &world->plan),
                     LS_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            ls_host_create(&world->hosts[i], world->simulation, "h"), LS_OK);
        assert_int_equal(
            checks_begin(world->checks, &world->lives[i], i, world->hosts[i]),
            LS_OK);
    }
}

static inline void close_world(struct world *world)
{
    checks_destroy(&world->checks);
    ls_network_destroy(&world->network);
    ls_simulation_destroy(&world->simulation);
    plan_fini(&world->plan);
}

static inline void enters(struct world *world, size_t i)
{
    const struct member_watch *watch = checks_watch(world->lives[i]);
    watch->entering(watch->self, 100 + i);
}

static inline void leaves(struct world *world, size_t i, uint64_t epoch)
{
    const struct member_watch *watch = checks_watch(world->lives[i]);
    const struct ls_barrier_epoch_info info = {.epoch = epoch};
    watch->ended(watch->self, LS_OK, &info);
}

static inline void fails(struct world *world, size_t i)
{
    const struct member_watch *watch = checks_watch(world->lives[i]);
    watch->ended(watch->self, ls_error(LS_ELOST, "node 1 was lost"), NULL);
}

static inline void sees(struct world *world, size_t i, size_t other,
                        enum ls_member_state state)
{
    const struct member_watch *watch = checks_watch(world->lives[i]);
    const struct ls_member member = {
        .id = (uint32_t)other, .incarnation = 100 + other, .state = state};
    watch->member(watch->self, &member);
}

static inline void emits(struct world *world, size_t i, uint64_t number)
{
    const struct member_watch *watch = checks_watch(world->lives[i]);
    watch->emitting(watch->self, number);
}

static inline void gets(struct world *world, size_t i, size_t from,
                        uint64_t number)
{
    const struct member_watch *watch = checks_watch(world->lives[i]);
    const struct ls_event event = {.origin = (uint32_t)from,
                                   .incarnation = 100 + from};
    watch->heard(watch->self, &event, number);
}

static inline void all_go_through(struct world *world, uint64_t epoch)
{
    for (size_t i = 0; i < 3; i++)
        enters(world, i);
    for (size_t i = 0; i < 3; i++)
        leaves(world, i, epoch);
}

/* Node 0 emits three events, and knows node 1 from the beginning. */
static inline void three_are_emitted(struct world *world)
{
    all_go_through(world, 0);
    sees(world, 0, 1, LS_MEMBER_READY);
    for (uint64_t number = 1; number <= 3; number++)
        emits(world, 0, number);
}

static inline void passes(struct world *world, int64_t seconds)
{
    ls_runtime *runtime = ls_simulation_runtime(world->simulation);
    for (int64_t i = 0; i < seconds; i++)
        ls_rest_until(runtime, ls_now(runtime) + LS_NS_PER_S);
}

/* Tell a story; says: what the violation begins with, NULL: there is none. */
static inline void judge(void (*story)(void *world), const char *says)
{
    struct world world;
    open_world(&world);
    const int status = ls_simulation_run(world.simulation, story, &world);
    if (status == LS_OK)
        checks_finish(world.checks);
    if (says == NULL) {
        if (status != LS_OK || ls_simulation_is_violated(world.simulation))
            fail_msg("%s", ls_error_text());
    } else {
        assert_int_equal(status, LS_EINVARIANT);
        if (strstr(ls_error_text(), says) == NULL)
            fail_msg("expected %s: %s", says, ls_error_text());
    }
    close_world(&world);
}

#endif
