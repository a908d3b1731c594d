/* Two roles that exchange fields, and their memory runs out, at each place
 * where some is taken: a step that fails says so, the other is told, and
 * neither waits for what will not come. */
#include <stdio.h>
#include <string.h>

#include "allocations.h"
#include "lockstep/crew.h"
#include "lockstep/middleware.h"
#include "lockstep/node.h"
#include "lockstep/task.h"
#include "test.h"

#define LONG_MS 30000

struct role {
    uint32_t id;
    const char *name;
    int start_timeout_ms;
    bool began;
    int status;
    char text[LS_ERROR_TEXT_MAX];
};

static int collect(ls_step *step, void *self)
{
    struct ls_online_context *context = ls_step_context(step);
    (void)self;
    context->env_step++;
    return ls_items_append(&context->trajectories, "one", 3);
}

static int learn(ls_step *step, void *self)
{
    struct ls_online_context *context = ls_step_context(step);
    (void)self;
    context->train_iter++;
    return ls_bytes_set(&context->policy, "weights", 7);
}

static void build(ls_task *task)
{
    static const struct ls_exchange_options policy = {.name = "policy",
                                                      .from = "learner",
                                                      .to = "collector",
                                                      .fields =
                                                          "policy,train_iter",
                                                      .timeout_ms = LONG_MS,
                                                      .skip = 1};
    static const struct ls_exchange_options trajectories = {
        .name = "trajectories",
        .from = "collector",
        .to = "learner",
        .fields = "trajectories",
        .timeout_ms = LONG_MS,
        .increments = "env_step"};
    ls_task_use(task,
                ls_mw_stop(task, &(struct ls_stop_options){.train_iter = 3}));
    ls_task_use(task, ls_mw_exchange(task, &policy));
    ls_task_use(task, (struct ls_middleware){.name = "collect",
                                             .fn = collect,
                                             .roles = "collector"});
    ls_task_use(task, ls_mw_exchange(task, &trajectories));
    ls_task_use(task, (struct ls_middleware){
                          .name = "learn", .fn = learn, .roles = "learner"});
}

static void options_of(struct ls_node_options *out, const struct role *role)
{
    static const char *const addresses[] = {"inproc://out-of-memory-0",
                                            "inproc://out-of-memory-1"};
    ls_node_options_init(out);
    out->id = role->id;
    out->role = role->name;
    out->bind = addresses[role->id];
    out->attach = addresses;
    out->n_attach = 2;
    out->world_size = 2;
    out->start_timeout_ms = role->start_timeout_ms;
    out->heartbeat_ms = 20;
}

static void play(void *roles, size_t number)
{
    struct role *role = &((struct role *)roles)[number];
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_task *task = NULL;
    options_of(&options, role);
    int status = ls_node_create(&node, &options);
    if (status == LS_OK)
        status = ls_task_create(&task, &(struct ls_task_options){
                                           .node = node, .roles = role->name});
    if (status == LS_OK) {
        build(task);
        status = ls_node_start(node);
    }
    role->began = status == LS_OK;
    if (status == LS_OK)
        status = ls_task_run(task, UINT64_MAX);
    role->status = status;
    (void)snprintf(role->text, sizeof role->text, "%s", ls_error_text());
    if (node != NULL)
        (void)ls_node_stop(node, status);
    ls_task_destroy(&task);
    (void)ls_node_destroy(&node);
}

static bool went_well(const struct role *role)
{
    if (role->began && role->status != LS_OK &&
        (!allocation_failed() || strstr(role->text, "nothing came") != NULL))
        fail_msg("%s: %s", role->name, role->text);
    return role->status == LS_OK;
}

static struct role roles[2];
static ls_crew *crew; /* of threads that are there before memory runs out */

/* Returns whether they did what they were to. */
static bool play_both(int start_timeout_ms)
{
    static const char *const names[] = {"learner", "collector"};
    for (uint32_t i = 0; i < 2; i++)
        roles[i] = (struct role){
            .id = i, .name = names[i], .start_timeout_ms = start_timeout_ms};
    ls_crew_run(crew);
    return went_well(&roles[0]) && went_well(&roles[1]);
}

TEST(an_exchange_that_has_no_memory_for_what_came_fails)
{
    (void)state;
    assert_ok(
        ls_crew_create(&crew, ls_runtime_threads(), 2, "role", play, roles));
    for (long n = 0; allocations_fail_at(n); n++)
        (void)play_both(100);
    assert_true(play_both(LONG_MS));
    ls_crew_destroy(&crew);
}
