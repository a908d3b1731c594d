/* Three nodes, each on a thread of its own, take five steps together. The same
 * code in three processes, or on three hosts, needs other endpoints only. */
#include <inttypes.h>
#include <stdio.h>

#include <lockstep/lockstep.h>

enum { N_NODES = 3, N_STEPS = 5 };

static const char *const first[] = {"inproc://hello-0"};

/* Forward half, the rest of the pipeline, backward half. */
static int count(ls_step *step, void *self)
{
    const struct ls_online_context *context = ls_step_context(step);
    const uint32_t id = ls_node_id(self);
    printf("node %" PRIu32 " enters step %" PRId64 "\n", id,
           context->total_step);
    const int status = ls_yield(step);
    printf("node %" PRIu32 " leaves step %" PRId64 "\n", id,
           context->total_step);
    return status;
}

static int run(ls_node *node)
{
    ls_task *task = NULL;
    int status = ls_task_create(&task, &(struct ls_task_options){.node = node});
    if (status != LS_OK)
        return status;
    ls_task_use(task, ls_mw_barrier(task, NULL));
    ls_task_use_fn(task, count, node);
    status = ls_node_start(node); /* all three are there, and hear all */
    if (status == LS_OK)
        status = ls_task_run(task, N_STEPS);
    ls_task_destroy(&task);
    return status;
}

struct member {
    uint32_t id;
    int status;
    ls_thread *thread;
};

static void live(void *arg)
{
    struct member *member = arg;
    char endpoint[32];
    (void)snprintf(endpoint, sizeof endpoint, "inproc://hello-%" PRIu32,
                   member->id);
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = member->id;
    options.world_size = N_NODES;
    options.bind = endpoint;
    options.attach = first; /* one member is enough to find all */
    options.n_attach = 1;

    ls_node *node = NULL;
    member->status = ls_node_create(&node, &options);
    if (member->status == LS_OK)
        member->status = run(node);
    if (member->status != LS_OK)
        fprintf(stderr, "node %" PRIu32 ": %s\n", member->id, ls_error_text());
    ls_node_destroy(&node);
}

int main(void)
{
    struct member members[N_NODES] = {{.id = 0}};
    int status = LS_OK;
    for (uint32_t i = 0; i < N_NODES && status == LS_OK; i++) {
        members[i].id = i;
        status = ls_thread_spawn(ls_runtime_threads(), &members[i].thread,
                                 "member", live, &members[i]);
    }
    for (uint32_t i = 0; i < N_NODES; i++) {
        const int joined = ls_thread_join(&members[i].thread, LS_FOREVER);
        if (status == LS_OK)
            status = joined != LS_OK ? joined : members[i].status;
    }
    return ls_status_exit_code(status);
}
