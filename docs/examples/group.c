/* A mean over three nodes, as a data-parallel trainer takes it of gradients;
 * then one of them fails, and the others hear of it. */
#include <lockstep/lockstep.h>
#include <stdio.h>

struct rank {
    ls_node *node;
    ls_group *group;
    int status;
};

static int work(ls_group *group)
{
    int status = ls_group_form(group, LS_WAIT_DEFAULT);
    const unsigned rank = ls_group_rank(group);
    float gradient[2] = {(float)rank, 10.0f};
    if (status == LS_OK)
        status = ls_group_all_reduce(group, gradient, 2, LS_GROUP_F32,
                                     LS_GROUP_MEAN, LS_WAIT_DEFAULT);
    if (status != LS_OK)
        return status;
    if (rank == 0)
        printf("the mean is %.1f %.1f\n", (double)gradient[0],
               (double)gradient[1]);
    if (rank == 2) /* it has failed at something of its own */
        ls_group_leave(group, LS_EHANDLER);
    const int end = ls_group_barrier(group, LS_WAIT_DEFAULT);
    if (rank == 0)
        printf("%s: %s\n", ls_status_name(end), ls_error_text());
    return LS_OK;
}

static void be_rank(void *arg)
{
    struct rank *rank = arg;
    rank->status = ls_node_start(rank->node);
    if (rank->status == LS_OK)
        rank->status = work(rank->group);
    if (rank->status != LS_OK)
        fprintf(stderr, "group: %s\n", ls_error_text());
}

/* Nodes 0, 10 and 20: ids need not be ranks. */
static int create(struct rank *rank, unsigned i)
{
    struct ls_node_options options;
    const char *attach = "inproc://0";
    char bind[16];
    snprintf(bind, sizeof bind, "inproc://%u", i);
    ls_node_options_init(&options);
    options.id = 10 * i;
    options.bind = bind;
    options.attach = &attach;
    options.n_attach = 1;
    options.world_size = 3;
    const int status = ls_node_create(&rank->node, &options);
    return status == LS_OK ? ls_group_create(&rank->group, rank->node, NULL)
                           : status;
}

int main(void)
{
    struct rank ranks[3] = {{NULL, NULL, LS_OK}};
    ls_thread *threads[3] = {NULL};
    int status = LS_OK;
    for (unsigned i = 0; i < 3 && status == LS_OK; i++)
        status = create(&ranks[i], i);
    for (unsigned i = 0; i < 3 && status == LS_OK; i++)
        status = ls_thread_spawn(ls_runtime_threads(), &threads[i], "rank",
                                 be_rank, &ranks[i]);
    if (status != LS_OK)
        fprintf(stderr, "group: %s\n", ls_error_text());
    for (unsigned i = 0; i < 3; i++) {
        const int joined = ls_thread_join(&threads[i], LS_FOREVER);
        if (status == LS_OK)
            status = joined == LS_OK ? ranks[i].status : joined;
    }
    for (unsigned i = 0; i < 3; i++) {
        ls_group_destroy(&ranks[i].group);
        ls_node_destroy(&ranks[i].node);
    }
    return ls_status_exit_code(status);
}
