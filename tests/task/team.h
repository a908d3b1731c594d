/* team.h - a world of nodes in this process, and a task for each. */
#ifndef TEAM_H
#define TEAM_H

#include "bus/world_fixture.h"
#include "lockstep/task.h"

#define TASKS_MAX 3

/* A world, and a task for each of its nodes. */
struct team {
    struct world world;
    struct member {
        ls_task *task;
        uint64_t n_iterations;
        int status;
        char text[LS_ERROR_TEXT_MAX];
        ls_thread *thread;
    } members[TASKS_MAX];
    bool async;
};

static inline void make_task(ls_node *node, size_t index, void *self)
{
    struct team *team = self;
    assert_ok(ls_task_create(&team->members[index].task,
                             &(struct ls_task_options){.node = node,
                                                       .async = team->async,
                                                       .n_workers = 2}));
    team->members[index].n_iterations = UINT64_MAX;
}

static inline void team_create(struct team *team, size_t n,
                               const char *transport, enum ls_topology topology)
{
    const struct world_plan plan = {.n = n,
                                    .transport = transport,
                                    .topology = topology,
                                    .prepare = make_task,
                                    .self = team};
    const bool async = team->async;
    memset(team, 0, sizeof *team);
    team->async = async;
    world_create(&team->world, &plan);
}

static inline void run_member(void *self)
{
    struct member *member = self;
    member->status = ls_task_run(member->task, member->n_iterations);
    if (member->status < 0)
        (void)snprintf(member->text, sizeof member->text, "%s",
                       ls_error_text());
}

/* Run all tasks, each on a thread, until they have ended. */
static inline void team_run(struct team *team)
{
    for (size_t i = 0; i < team->world.n; i++)
        assert_ok(ls_thread_spawn(ls_runtime_threads(),
                                  &team->members[i].thread, "run", run_member,
                                  &team->members[i]));
    for (size_t i = 0; i < team->world.n; i++)
        assert_ok(ls_thread_join(&team->members[i].thread, LS_FOREVER));
}

static inline void team_destroy(struct team *team)
{
    for (size_t i = 0; i < team->world.n; i++)
        ls_task_destroy(&team->members[i].task);
    world_destroy(&team->world);
}

static inline void assert_all_ended_well(const struct team *team)
{
    for (size_t i = 0; i < team->world.n; i++)
        if (team->members[i].status != LS_OK)
            fail_msg("task %zu: %s", i, team->members[i].text);
}

static inline ls_node *node_at(struct team *team, size_t index)
{
    return team->world.at[index].node;
}

#endif
