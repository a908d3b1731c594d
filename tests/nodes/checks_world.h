/* checks_world.h - nodes that tell stories to the checks. */
#ifndef CHECKS_WORLD_H
#define CHECKS_WORLD_H

#include "checks.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_NODES_MAX 5

/* A simulation with hosts, and nobody on them: the nodes' words are put into
 * their mouths. */
struct world {
    struct plan plan;
    ls_simulation *simulation;
    ls_network *network;
    checks *checks;
    ls_host *hosts[WORLD_NODES_MAX];
    struct check_life *lives[WORLD_NODES_MAX];
};

static inline void open_world(struct world *world, const char *job)
{
    ls_config *config = NULL;
    memset(world, 0, sizeof *world);
    assert_int_equal(ls_config_parse(&config, "job.yaml", job), LS_OK);
    assert_int_equal(plan_read(&world->plan, &config, "job.yaml"), LS_OK);
    assert_int_equal(ls_simulation_create(&world->simulation, NULL), LS_OK);
    assert_int_equal(
        ls_network_create(&world->network, world->simulation, NULL), LS_OK);
    assert_int_equal(checks_create(&world->checks, world->simulation,
                                   world->network, &world->plan),
                     LS_OK);
    for (size_t i = 0; i < world->plan.n_nodes; i++) {
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

static inline void passes(struct world *world, int64_t seconds)
{
    ls_runtime *runtime = ls_simulation_runtime(world->simulation);
    for (int64_t i = 0; i < seconds; i++)
        ls_rest_until(runtime, ls_now(runtime) + LS_NS_PER_S);
}

static inline void finish_world(void *arg)
{
    struct world *world = arg;
    checks_finish(world->checks);
}

/* Tell a story of a job; says: what the violation begins with, NULL: there is
 * none. */
static inline void judge_job(const char *job, void (*story)(void *world),
                             const char *says)
{
    struct world world;
    open_world(&world, job);
    int status = ls_simulation_run(world.simulation, story, &world);
    if (status == LS_OK)
        status = ls_simulation_run(world.simulation, finish_world, &world);
    if (says == NULL) {
        if (status != LS_OK)
            fail_msg("%s", ls_error_text());
    } else {
        assert_int_equal(status, LS_EINVARIANT);
        if (strstr(ls_error_text(), says) == NULL)
            fail_msg("expected %s: %s", says, ls_error_text());
    }
    close_world(&world);
}

#endif
