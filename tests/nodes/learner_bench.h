/* learner_bench.h - a learner service with a toy learner, whose weights are the
 * number of times that it has learned, and whose training is what these were,
 * one after the other, and a coordinator made by hand. */
#ifndef LEARNER_BENCH_H
#define LEARNER_BENCH_H

#include "learner_service.h"
#include "service_bench.h"

struct toy_learner {
    struct gate gate; /* learn() passes it */
    int64_t weights;
    struct {
        int64_t n, was[128];
    } training;
    int64_t resets, loads, training_loads;
    int fails; /* so many of the next calls of learn() */
    int64_t learn_takes_ns;
};

static inline int toy_reset(void *self)
{
    struct toy_learner *toy = self;
    toy->weights = 0;
    toy->training.n = 0;
    toy->resets++;
    return LS_OK;
}

static inline int toy_load(void *self, const struct ls_bytes *weights)
{
    struct toy_learner *toy = self;
    assert_int_equal(weights->size, sizeof toy->weights);
    memcpy(&toy->weights, weights->data, sizeof toy->weights);
    toy->loads++;
    return LS_OK;
}

static inline int toy_save(void *self, struct ls_bytes *out)
{
    struct toy_learner *toy = self;
    return ls_bytes_set(out, &toy->weights, sizeof toy->weights);
}

/* One that fails half way has taken some of it. */
static inline int toy_load_training(void *self, const struct ls_bytes *training)
{
    struct toy_learner *toy = self;
    toy->training.n = -1;
    if (training->size != sizeof toy->training)
        return ls_error(LS_EPROTO, "no training state");
    memcpy(&toy->training, training->data, sizeof toy->training);
    toy->training_loads++;
    return LS_OK;
}

static inline int toy_save_training(void *self, struct ls_bytes *out)
{
    struct toy_learner *toy = self;
    return ls_bytes_set(out, &toy->training, sizeof toy->training);
}

/* The data of a sample is its name. */
static inline int toy_learn(void *self, const struct learner_lesson *lesson)
{
    struct toy_learner *toy = self;
    const struct learner_sample *samples = lesson->samples;
    gate_pass(&toy->gate);
    if (toy->learn_takes_ns > 0)
        ls_rest_until(ls_runtime_threads(),
                      ls_now(ls_runtime_threads()) + toy->learn_takes_ns);
    if (toy->fails > 0) {
        toy->fails--;
        return ls_error(LS_EHANDLER, "the weights are NaN");
    }
    for (size_t i = 0; i < lesson->n; i++) {
        assert_int_equal(samples[i].size, strlen(samples[i].sample->data_id));
        assert_memory_equal(samples[i].data, samples[i].sample->data_id,
                            samples[i].size);
        lesson->priorities[i] = 0.5 + (double)i;
    }
    if (toy->training.n < 128)
        toy->training.was[toy->training.n++] = toy->weights;
    toy->weights++;
    return ls_learner_info_add(lesson->info, "loss", (double)toy->weights);
}

struct learner_bench {
    struct bench *bench;
    struct toy_learner toy;
    learner_service *service;
    int64_t infos, dones, last_step; /* that have come */
    unsigned n_data;
};

/* Before the world starts: the service and its steps are there. */
static inline struct learner_bench *
learner_prepare_with(int patience_ms, size_t stacks, size_t loaders)
{
    static const struct learner_ops ops = {.reset = toy_reset,
                                           .load = toy_load,
                                           .save = toy_save,
                                           .load_training = toy_load_training,
                                           .save_training = toy_save_training,
                                           .learn = toy_learn};
    struct learner_bench *made = calloc(1, sizeof *made);
    made->bench = bench_create();
    gate_init(&made->toy.gate);
    const struct learner_service_options options = {
        .common = bench_options(made->bench, patience_ms),
        .ops = &ops,
        .self = &made->toy,
        .stacks = stacks,
        .loaders = loaders};
    assert_int_equal(learner_service_create(&made->service, &options), LS_OK);
    learner_service_use(made->service, made->bench->task);
    return made;
}

static inline struct learner_bench *learner_prepare(int patience_ms)
{
    return learner_prepare_with(patience_ms, 2, 1);
}

static inline struct learner_bench *learner_start(void)
{
    struct learner_bench *made = learner_prepare(0);
    bench_start(made->bench);
    return made;
}

static inline void learner_stop(struct learner_bench *made)
{
    gate_turn(&made->toy.gate, false);
    toy_set(made->bench->store, get_waits, false);
    bench_stop(made->bench);
    learner_service_destroy(&made->service);
    bench_destroy(made->bench);
    gate_fini(&made->toy.gate);
    free(made);
}

static inline struct learner_figures figures_of(struct learner_bench *made)
{
    struct learner_figures figures;
    learner_service_figures(made->service, &figures);
    return figures;
}

/* The coordinator's part -------------------------------------------------- */

static inline struct learner_work work_of(const char *task_id, int64_t attempt,
                                          int64_t iterations)
{
    struct learner_work work = {.key = key_of(task_id, attempt),
                                .policy_id = "policy_1",
                                .buffer_id = "buffer_1",
                                .learner_id = "learner_1",
                                .batch_size = 2,
                                .iterations = iterations,
                                .send_policy_freq = 1,
                                .send_info_freq = 1};
    return work;
}

static inline ls_call *begin_start(struct learner_bench *made,
                                   const struct learner_work *work)
{
    learner_work_write(work, made->bench->writer);
    return begin_call(made->bench, made->bench->coordinator.calls,
                      CALL_LEARNER_START);
}

static inline void start(struct learner_bench *made,
                         const struct learner_work *work)
{
    ls_call *call = begin_start(made, work);
    const struct ls_call_result *result = completes(call);
    assert_int_equal(service_started_read(result->data, result->size), LS_OK);
    ls_call_destroy(&call);
}

static inline ls_call *begin_keyed(struct learner_bench *made, ls_rpc *calls,
                                   const char *name, struct work_key key)
{
    work_key_write(&key, made->bench->writer);
    return begin_call(made->bench, calls, name);
}

static inline ls_call *begin_demand(struct learner_bench *made,
                                    struct work_key key)
{
    return begin_keyed(made, made->bench->coordinator.calls,
                       CALL_LEARNER_DEMAND, key);
}

static inline struct learner_demand demand_of(ls_call *call)
{
    struct learner_demand demand;
    const struct ls_call_result *result = completes(call);
    assert_int_equal(learner_demand_read(&demand, result->data, result->size),
                     LS_OK);
    ls_call_destroy(&call);
    return demand;
}

static inline void count_info(struct learner_bench *made,
                              const struct learner_info *info)
{
    made->infos++;
    made->dones += info->learner_done;
    made->last_step = info->learner_step;
}

/* One that is not an end. */
static inline struct learner_demand demanded(struct learner_bench *made,
                                             struct work_key key)
{
    const struct learner_demand demand = demand_of(begin_demand(made, key));
    assert_false(demand.done);
    return demand;
}

static inline void expect_done(struct learner_bench *made, struct work_key key)
{
    const struct learner_demand demand = demand_of(begin_demand(made, key));
    assert_true(demand.done);
    count_info(made, &demand.info);
}

/* A batch of n samples, whose data is in the store. */
static inline ls_call *begin_learn_of(struct learner_bench *made,
                                      struct work_key key, size_t n)
{
    struct drawn_sample *items = calloc(n, sizeof *items);
    struct learner_batch batch = {.key = key, .n = n, .items = items};
    assert_non_null(items);
    for (size_t i = 0; i < n; i++) {
        struct sample *sample = &items[i].sample;
        (void)snprintf(sample->data_id, sizeof sample->data_id, "d.%u",
                       made->n_data++);
        strcpy(sample->task_id, "collector_1");
        strcpy(sample->buffer_id, "buffer_1");
        strcpy(sample->compressor, "none");
        sample->unroll_len = 4;
        sample->parts = 1;
        sample->size = (int64_t)strlen(sample->data_id);
        sample->priority = 1.0;
        items[i].slot = (int64_t)i + 10;
        (void)snprintf(items[i].unique_id, sizeof items[i].unique_id,
                       "buffer_1_%zu", i);
        const struct store_put put = {.name = sample->data_id,
                                      .data = sample->data_id,
                                      .size = strlen(sample->data_id)};
        assert_int_equal(store_put(&made->bench->store->base, &put), LS_OK);
    }
    learner_batch_write(&batch, made->bench->writer);
    free(items);
    return begin_call(made->bench, made->bench->coordinator.calls,
                      CALL_LEARNER_LEARN);
}

static inline ls_call *begin_learn(struct learner_bench *made,
                                   struct work_key key)
{
    return begin_learn_of(made, key, 2);
}

static inline struct learner_result learned(struct learner_bench *made,
                                            ls_call *call)
{
    struct learner_result out;
    const struct ls_call_result *result = completes(call);
    assert_int_equal(learner_result_read(&out, result->data, result->size),
                     LS_OK);
    ls_call_destroy(&call);
    if (out.has_info)
        count_info(made, &out.info);
    return out;
}

/* One iteration: demand, batch, answer. */
static inline struct learner_result iterate(struct learner_bench *made,
                                            struct work_key key)
{
    (void)demanded(made, key);
    return learned(made, begin_learn(made, key));
}

static inline ls_call *begin_close(struct learner_bench *made,
                                   struct work_key key)
{
    return begin_keyed(made, made->bench->coordinator.calls, CALL_LEARNER_CLOSE,
                       key);
}

static inline void closes(struct learner_bench *made, struct work_key key)
{
    struct learner_closed closed;
    ls_call *call = begin_close(made, key);
    const struct ls_call_result *result = completes(call);
    assert_int_equal(learner_closed_read(&closed, result->data, result->size),
                     LS_OK);
    assert_string_equal(closed.key.task_id, key.task_id);
    assert_string_equal(closed.buffer_id, "buffer_1");
    ls_call_destroy(&call);
}

#endif
