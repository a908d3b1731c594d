/* A job that may be killed at any time: run it again, and it goes on where it
 * was. Two nodes, each on a thread of this process; each adds up the numbers
 * that it draws, 1000 an epoch, and their state is saved after each epoch. */
#include <lockstep/lockstep.h>
#include <stdio.h>

enum { N_NODES = 2, N_EPOCHS = 5 };

static const struct ls_blob_form number = {LS_BLOB_F64, 0, {0}};
static const struct ls_blob_form state = {LS_BLOB_I64, 1, {4}};

/* Runs when there is no checkpoint yet. */
static int begin(void *self, ls_turn *turn)
{
    void *random;
    const int status = ls_turn_blob(turn, "generator", &state, &random);
    (void)self;
    if (status == LS_OK)
        ls_rng_seed(random, 7, ls_turn_node(turn));
    return status;
}

/* All that an epoch changes is in blobs. */
static int draw(void *self, ls_turn *turn)
{
    void *random, *sum;
    int status = ls_turn_blob(turn, "generator", &state, &random);
    (void)self;
    if (status == LS_OK)
        status = ls_turn_blob(turn, "sum", &number, &sum);
    if (status != LS_OK)
        return status;
    for (int i = 0; i < 1000; i++)
        *(double *)sum += ls_rng_double(random);
    printf("epoch %d: node %u has %.3f\n", (int)ls_turn_epoch(turn),
           ls_turn_node(turn), *(double *)sum);
    return LS_OK;
}

static int describe(ls_job *job)
{
    static const char *const outputs[] = {"sum", NULL};
    const struct ls_job_task init = {.name = "begin", .fn = begin};
    const struct ls_job_task epoch = {
        .name = "draw", .fn = draw, .outputs = outputs};
    int status = ls_job_add(job, LS_JOB_INIT, &init);
    if (status == LS_OK)
        status = ls_job_add(job, LS_JOB_EPOCH, &epoch);
    return status == LS_OK ? ls_job_limit_epochs(job, N_EPOCHS) : status;
}

static int run(ls_job *job, ls_node *node)
{
    struct ls_job_result result;
    char text[1024];
    int status = ls_node_start(node);
    if (status == LS_OK)
        status = ls_job_compile(job);
    if (status != LS_OK)
        return status;
    (void)ls_job_print(job, false, text, sizeof text);
    if (ls_node_id(node) == 0)
        fputs(text, stdout);
    status = ls_job_run(job, &result);
    if (status == LS_OK && ls_node_id(node) == 0)
        printf("epoch %d is the last; %u of them were run now\n",
               (int)result.epoch, (unsigned)result.n_epochs);
    return status;
}

struct part {
    uint32_t id;
    int status;
    ls_thread *thread;
};

static void live(void *self)
{
    static const char *const addresses[N_NODES] = {"inproc://a", "inproc://b"};
    struct part *part = self;
    ls_node *node;
    ls_rpc *calls = NULL;
    ls_job *job = NULL;
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = part->id;
    options.bind = addresses[part->id];
    options.attach = addresses;
    options.n_attach = N_NODES;
    options.world_size = N_NODES;
    part->status = ls_node_create(&node, &options);
    if (part->status == LS_OK)
        part->status = ls_rpc_open(&calls, node, NULL);
    if (part->status == LS_OK)
        part->status =
            ls_job_create(&job, node, calls,
                          &(struct ls_job_options){.name = "sums",
                                                   .folder = "sums.checkpoints",
                                                   .resume = LS_JOB_NEWEST});
    if (part->status == LS_OK)
        part->status = describe(job);
    if (part->status == LS_OK)
        part->status = run(job, node);
    if (part->status != LS_OK)
        fprintf(stderr, "node %u: %s\n", part->id, ls_error_text());
    ls_rpc_close(&calls);
    if (ls_job_destroy(&job) != LS_OK) /* a task still runs */
        fprintf(stderr, "node %u: %s\n", part->id, ls_error_text());
    ls_node_destroy(&node);
}

int main(void)
{
    struct part parts[N_NODES];
    int status = LS_OK;
    for (uint32_t i = 0; i < N_NODES; i++) {
        parts[i] = (struct part){.id = i, .status = LS_ECANCELED};
        status = ls_thread_spawn(ls_runtime_threads(), &parts[i].thread, "node",
                                 live, &parts[i]);
    }
    for (uint32_t i = 0; i < N_NODES; i++)
        if (ls_thread_join(&parts[i].thread, LS_FOREVER) != LS_OK ||
            parts[i].status != LS_OK)
            status = LS_EABORTED;
    return ls_status_exit_code(status);
}
