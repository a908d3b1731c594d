/* A collector and a learner in one process: trajectories go one way, weights
 * come back, and the learner ends the run. */
#include <stdio.h>

#include <lockstep/lockstep.h>

struct program {
    uint32_t id;
    const char *role;
    int status;
};

static int collect(ls_step *step, void *self)
{
    (void)self;
    struct ls_online_context *context = ls_step_context(step);
    const int64_t n = context->total_step + 1;
    int status = LS_OK;
    for (int64_t i = 0; i < n && status == LS_OK; i++)
        status = ls_items_append(&context->trajectories, &i, sizeof i);
    context->env_step += n;
    return status;
}

static int learn(ls_step *step, void *self)
{
    (void)self;
    struct ls_online_context *context = ls_step_context(step);
    context->train_iter++;
    printf("%zu trajectories, %lld steps so far\n", context->trajectories.n,
           (long long)context->env_step);
    return ls_bytes_set(&context->policy, &context->train_iter,
                        sizeof context->train_iter);
}

static void build(ls_task *task)
{
    ls_task_use(task,
                ls_mw_stop(task, &(struct ls_stop_options){.train_iter = 3}));
    /* The first iteration has no weights to wait for. */
    ls_task_use(task, ls_mw_exchange(task, &(struct ls_exchange_options){
                                               .name = "policy",
                                               .from = "learner",
                                               .to = "collector",
                                               .fields = "policy,train_iter",
                                               .skip = 1}));
    ls_task_use(task, ls_mw_exchange(task, &(struct ls_exchange_options){
                                               .name = "trajectories",
                                               .from = "collector",
                                               .to = "learner",
                                               .fields = "trajectories",
                                               .increments = "env_step"}));
    ls_task_use(task, (struct ls_middleware){.name = "collect",
                                             .fn = collect,
                                             .roles = "collector"});
    ls_task_use(task, (struct ls_middleware){
                          .name = "learn", .fn = learn, .roles = "learner"});
}

static int run(const struct program *program)
{
    static const char *const addresses[] = {"inproc://learner",
                                            "inproc://collector"};
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = program->id;
    options.role = program->role;
    options.bind = addresses[program->id];
    options.attach = addresses;
    options.n_attach = 2;
    options.world_size = 2;
    ls_node *node = NULL;
    ls_task *task = NULL;
    int status = ls_node_create(&node, &options);
    if (status == LS_OK)
        status = ls_task_create(
            &task,
            &(struct ls_task_options){.node = node, .roles = program->role});
    if (status == LS_OK) {
        build(task); /* before the start, so that no message is missed */
        status = ls_node_start(node);
    }
    if (status == LS_OK)
        status = ls_task_run(task, UINT64_MAX);
    if (status != LS_OK)
        fprintf(stderr, "%s: %s\n", program->role, ls_error_text());
    if (node != NULL)
        ls_node_stop(node, status);
    ls_task_destroy(&task);
    ls_node_destroy(&node);
    return status;
}

static void on_thread(void *arg)
{
    struct program *program = arg;
    program->status = run(program);
}

int main(void)
{
    struct program learner = {.id = 0, .role = "learner"};
    struct program collector = {.id = 1, .role = "collector"};
    ls_thread *thread = NULL;
    if (ls_thread_spawn(ls_runtime_threads(), &thread, "collector", on_thread,
                        &collector) != LS_OK)
        return 1;
    learner.status = run(&learner);
    if (ls_thread_join(&thread, LS_FOREVER) != LS_OK)
        return 1;
    return learner.status != LS_OK || collector.status != LS_OK;
}
