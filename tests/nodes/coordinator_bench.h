/* coordinator_bench.h - a coordinator with learners and collectors, each a node
 * of its own in this process, on a store in memory. Weights are the number of
 * iterations that have gone into them, and an evaluation brings that number. */
#ifndef COORDINATOR_BENCH_H
#define COORDINATOR_BENCH_H

#include <math.h>

#include "collected_set.h"
#include "coordinator.h"
#include "learner_service.h"
#include "service_bench.h"

enum { PARTS = 6, PART_COORDINATOR = 0, PART_LEARNER = 1, PART_COLLECTOR = 3 };

struct part {
    struct job *job;
    size_t index;
    struct bench_node at;
    ls_task *task;
    ls_thread *runner;
    int status;
    char text[LS_ERROR_TEXT_MAX];
    learner_service *learner;
    collector_service *collector;
    struct gate gate; /* learn() passes it */
    int64_t weights;
};

struct job {
    unsigned round;
    const char *folder; /* of sockets; NULL: none, and no node comes back */
    struct part parts[PARTS];
    struct toy_store *store;
    struct coordinator_options options;
    coordinator *coordinator;

    /* What the coordinator told. */
    int64_t infos, done_infos, evaluations, last_step;
    int ends, end_status;
    char end_text[256];
    int64_t end_weights; /* -1: no policy */
    double end_value;
};

/* What they work with --------------------------------------------------- */

static int part_reset(void *self)
{
    ((struct part *)self)->weights = 0;
    return LS_OK;
}

static int part_load(void *self, const struct ls_bytes *weights)
{
    struct part *part = self;
    if (weights->size != sizeof part->weights)
        return ls_error(LS_EMISMATCH, "weights of another shape");
    memcpy(&part->weights, weights->data, sizeof part->weights);
    return LS_OK;
}

static int part_save(void *self, struct ls_bytes *out)
{
    struct part *part = self;
    return ls_bytes_set(out, &part->weights, sizeof part->weights);
}

static int part_learn(void *self, const struct learner_lesson *lesson)
{
    struct part *part = self;
    const struct learner_sample *samples = lesson->samples;
    gate_pass(&part->gate);
    for (size_t i = 0; i < lesson->n; i++) {
        if (samples[i].size != 4 || memcmp(samples[i].data, "data", 4) != 0)
            return ls_error(LS_EPROTO, "other data than was collected");
        lesson->priorities[i] = 1.0;
    }
    part->weights++;
    return LS_OK;
}

static int part_collect(void *self, int64_t unroll_len, int64_t parts,
                        int64_t more, struct collected_data *out,
                        struct collected *what)
{
    (void)more;
    (void)self;
    *what = (struct collected){.steps = unroll_len, .episodes = 1};
    const int status = collected_room(out, (size_t)parts * 4);
    for (int64_t i = 0; i < parts && status == LS_OK; i++)
        memcpy((char *)out->bytes + 4 * i, "data", 4);
    return status;
}

static int part_evaluate(void *self, double *episode_return, int64_t *steps)
{
    const struct part *part = self;
    *episode_return = (double)part->weights;
    *steps = 5;
    return LS_OK;
}

/* What the coordinator tells --------------------------------------------- */

static void job_evaluated(void *self, double value, int64_t version)
{
    struct job *job = self;
    (void)value;
    (void)version;
    job->evaluations++;
}

static void job_info(void *self, const struct learner_info *info)
{
    struct job *job = self;
    job->infos++;
    job->done_infos += info->learner_done ? 1 : 0;
    job->last_step = info->learner_step;
}

static int job_ended(void *self, const struct coordinator_end *end)
{
    struct job *job = self;
    job->ends++;
    job->end_status = end->status;
    job->end_value = end->eval_value;
    job->end_weights = -1;
    (void)snprintf(job->end_text, sizeof job->end_text, "%s", end->text);
    struct policy_value value;
    if (end->policy != NULL &&
        policy_value_read(&value, end->policy, end->policy_size) == LS_OK) {
        memcpy(&job->end_weights, value.weights.data, sizeof job->end_weights);
        ls_bytes_clear(&value.weights);
    }
    return LS_OK;
}

/* Nodes ------------------------------------------------------------------ */

static void part_create_node(struct part *part, uint32_t world_size)
{
    struct ls_node_options options;
    char binds[PARTS][96];
    const char *attach[PARTS];
    ls_node_options_init(&options);
    for (size_t i = 0; i < PARTS; i++) {
        if (part->job->folder != NULL)
            (void)snprintf(binds[i], sizeof binds[i], "ipc://%s/%zu",
                           part->job->folder, i);
        else
            (void)snprintf(binds[i], sizeof binds[i], "inproc://job-%u-%zu",
                           part->job->round, i);
        attach[i] = binds[i];
    }
    options.bind = binds[part->index];
    options.attach = attach;
    options.n_attach = PARTS;
    options.id = (uint32_t)part->index;
    options.role = part->index == PART_COORDINATOR ? "coordinator"
                   : part->index < PART_COLLECTOR  ? "learner"
                                                   : "collector";
    options.world_size = world_size;
    options.world_max = PARTS;
    options.start_timeout_ms = BENCH_MS;
    assert_int_equal(ls_node_create(&part->at.node, &options), LS_OK);
    assert_int_equal(ls_rpc_open(&part->at.calls, part->at.node, NULL), LS_OK);
    assert_int_equal(
        ls_task_create(&part->task,
                       &(struct ls_task_options){.node = part->at.node}),
        LS_OK);
}

static struct service_options part_options(const struct part *part)
{
    return (struct service_options){.node = part->at.node,
                                    .calls = part->at.calls,
                                    .store = &part->job->store->base,
                                    .patience_ms = BENCH_MS};
}

static void part_use_learner(struct part *part)
{
    static const struct learner_ops ops = {.reset = part_reset,
                                           .load = part_load,
                                           .save = part_save,
                                           .learn = part_learn};
    const struct learner_service_options options = {.common =
                                                        part_options(part),
                                                    .ops = &ops,
                                                    .self = part,
                                                    .stacks = 2,
                                                    .loaders = 1};
    assert_int_equal(learner_service_create(&part->learner, &options), LS_OK);
    learner_service_use(part->learner, part->task);
}

static void part_use_collector(struct part *part)
{
    static const struct collector_ops ops = {.reset = part_reset,
                                             .load = part_load,
                                             .collect = part_collect,
                                             .evaluate = part_evaluate};
    const struct collector_service_options options = {
        .common = part_options(part), .ops = &ops, .self = part};
    assert_int_equal(collector_service_create(&part->collector, &options),
                     LS_OK);
    collector_service_use(part->collector, part->task);
}

static void job_use_coordinator(struct job *job)
{
    struct part *part = &job->parts[PART_COORDINATOR];
    job->options.calls = part->at.calls;
    job->options.store = &job->store->base;
    if (coordinator_create(&job->coordinator, &job->options) != LS_OK)
        fail_msg("%s", ls_error_text());
    assert_int_equal(coordinator_use(job->coordinator, part->task), LS_OK);
}

static void part_run(void *arg)
{
    struct part *part = arg;
    part->status = ls_task_run(part->task, UINT64_MAX);
    (void)snprintf(part->text, sizeof part->text, "%s", ls_error_text());
}

static void part_begin_run(struct part *part)
{
    assert_int_equal(ls_thread_spawn(ls_runtime_threads(), &part->runner, "run",
                                     part_run, part),
                     LS_OK);
}

static void part_ends(struct part *part, int status)
{
    if (ls_thread_join(&part->runner, bench_deadline()) != LS_OK)
        fail_msg("node %zu does not end", part->index);
    if (part->status != status)
        fail_msg("node %zu ended with %s: %s", part->index,
                 ls_status_name(part->status), part->text);
}

static void part_destroy(struct part *part, int reason)
{
    if (part->at.node == NULL)
        return;
    ls_task_destroy(&part->task);
    if (part->index == PART_COORDINATOR)
        coordinator_destroy(&part->job->coordinator);
    ls_rpc_close(&part->at.calls);
    learner_service_destroy(&part->learner);
    collector_service_destroy(&part->collector);
    bench_kill(&part->at, reason);
}

/* What can be killed within a process: it takes its leave in a hurry. */
static void part_kill(struct part *part)
{
    ls_task_cancel(part->task, LS_ECANCELED, "killed");
    gate_turn(&part->gate, false);
    part_ends(part, LS_ECANCELED);
    part_destroy(part, LS_ECANCELED);
}

/* The job ---------------------------------------------------------------- */

static struct job *job_create_in(const char *folder)
{
    static unsigned round;
    struct job *job = calloc(1, sizeof *job);
    assert_non_null(job);
    job->round = ++round;
    job->folder = folder;
    job->store = toy_open(ls_runtime_threads());
    job->options = (struct coordinator_options){
        .fsm = {.iterations = 100,
                .stop_value = NAN,
                .samples_per_work = 8,
                .unroll_len = 4,
                .split = 1,
                .batch_size = 4,
                .send_policy_freq = 1,
                .send_info_freq = 1,
                .replay = {.capacity = 64, .samples_per_insert = 4},
                .call_timeout = BENCH_MS * LS_NS_PER_MS,
                .work_timeout = BENCH_MS * LS_NS_PER_MS,
                .retry = LS_NS_PER_MS,
                .seed = 7},
        .kinds = fsm_kinds,
        .evaluated = job_evaluated,
        .info = job_info,
        .ended = job_ended,
        .self = job};
    for (size_t i = 0; i < PARTS; i++) {
        struct part *part = &job->parts[i];
        part->job = job;
        part->index = i;
        gate_init(&part->gate);
        part_create_node(part, PARTS);
        if (i >= PART_COLLECTOR)
            part_use_collector(part);
        else if (i >= PART_LEARNER)
            part_use_learner(part);
    }
    return job;
}

static struct job *job_create(void)
{
    return job_create_in(NULL);
}

static void job_start(struct job *job)
{
    job_use_coordinator(job);
    for (size_t i = 0; i < PARTS; i++)
        assert_int_equal(ls_thread_spawn(ls_runtime_threads(),
                                         &job->parts[i].at.starter, "start",
                                         bench_start_node, &job->parts[i].at),
                         LS_OK);
    for (size_t i = 0; i < PARTS; i++) {
        struct bench_node *at = &job->parts[i].at;
        assert_int_equal(ls_thread_join(&at->starter, bench_deadline()), LS_OK);
        assert_int_equal(at->status, LS_OK);
    }
    for (size_t i = 0; i < PARTS; i++)
        part_begin_run(&job->parts[i]);
}

/* All that are left end well. */
static void job_ends(struct job *job)
{
    for (size_t i = 0; i < PARTS; i++)
        if (job->parts[i].at.node != NULL)
            part_ends(&job->parts[i], LS_OK);
    assert_int_equal(job->ends, 1);
}

/* Nobody was killed who had just told of data, or been told. */
static void job_leaves_no_data(struct job *job)
{
    for (size_t i = 0; i < job->store->n; i++)
        if (strncmp(job->store->items[i].name, "policy", 6) != 0)
            fail_msg("%s is left in the store", job->store->items[i].name);
}

static void job_destroy(struct job *job)
{
    struct store *store = &job->store->base;
    for (size_t i = 0; i < PARTS; i++) {
        part_destroy(&job->parts[i], LS_OK);
        gate_fini(&job->parts[i].gate);
    }
    store_close(&store);
    free(job);
}

#endif
