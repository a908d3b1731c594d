/* collector_bench.h - a collector service with a toy collector, and a
 * coordinator made by hand. */
#ifndef COLLECTOR_BENCH_H
#define COLLECTOR_BENCH_H

#include <math.h>

#include "collected_set.h"
#include "service_bench.h"

/* Its trajectory number n is the text "n/version"; an episode ends in each. */
struct toy_collector {
    struct gate gate; /* collect() and evaluate() pass it */
    int64_t version;  /* that the weights say */
    int64_t resets, loads, n;
    int fails;
};

static inline int toy_reset(void *self)
{
    struct toy_collector *toy = self;
    toy->resets++;
    toy->version = -1;
    return LS_OK;
}

static inline int toy_load(void *self, const struct ls_bytes *weights)
{
    struct toy_collector *toy = self;
    if (weights->size != sizeof toy->version)
        return ls_error(LS_EMISMATCH, "weights of another shape");
    memcpy(&toy->version, weights->data, sizeof toy->version);
    toy->loads++;
    return LS_OK;
}

static inline int toy_fail(struct toy_collector *toy)
{
    gate_pass(&toy->gate);
    if (toy->fails == 0)
        return LS_OK;
    toy->fails--;
    return ls_error(LS_EHANDLER, "the pole broke");
}

static inline int toy_collect(void *self, int64_t unroll_len, int64_t parts,
                              int64_t more, struct collected_data *out,
                              struct collected *what)
{
    (void)more;
    struct toy_collector *toy = self;
    char text[512];
    size_t size = 0;
    const int status = toy_fail(toy);
    if (status != LS_OK)
        return status;
    what->steps = unroll_len;
    what->episodes = 1;
    what->return_sum = 100.0;
    what->env_id = 7;
    for (int64_t i = 0; i < parts; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%lld/%lld",
                                 (long long)toy->n, (long long)toy->version);
    toy->n++;
    return collected_set(out, text, size);
}

static inline int toy_evaluate(void *self, double *episode_return,
                               int64_t *steps)
{
    struct toy_collector *toy = self;
    const int status = toy_fail(toy);
    if (status != LS_OK)
        return status;
    *episode_return = 10.0 * (double)++toy->n;
    *steps = 5;
    return LS_OK;
}

struct collector_bench {
    struct bench *bench;
    struct toy_collector toy;
    collector_service *service;
};

/* A policy of this version lies in the store. */
static inline void commit(struct collector_bench *made, const char *policy_id,
                          int64_t version)
{
    ls_writer *writer;
    struct policy_value value = {.iter = version,
                                 .version = version,
                                 .weights = {&version, sizeof version}};
    struct store_put put = {.name = policy_id};
    assert_int_equal(ls_writer_create(&writer), LS_OK);
    policy_value_write(&value, writer);
    assert_int_equal(ls_writer_bytes(writer, &put.data, &put.size), LS_OK);
    assert_int_equal(store_put(&made->bench->store->base, &put), LS_OK);
    ls_writer_destroy(&writer);
}

/* A service at the member of this bench. */
static inline struct collector_bench *collector_make(struct bench *bench,
                                                     int patience_ms)
{
    static const struct collector_ops ops = {.reset = toy_reset,
                                             .load = toy_load,
                                             .collect = toy_collect,
                                             .evaluate = toy_evaluate};
    struct collector_bench *made = calloc(1, sizeof *made);
    made->bench = bench;
    gate_init(&made->toy.gate);
    const struct collector_service_options options = {
        .common = bench_options(made->bench, patience_ms),
        .ops = &ops,
        .self = &made->toy};
    assert_int_equal(collector_service_create(&made->service, &options), LS_OK);
    collector_service_use(made->service, made->bench->task);
    return made;
}

static inline struct collector_bench *collector_start(int patience_ms)
{
    struct collector_bench *made = collector_make(bench_create(), patience_ms);
    bench_start(made->bench);
    commit(made, "policy_1", 3);
    return made;
}

static inline void collector_stop(struct collector_bench *made)
{
    gate_turn(&made->toy.gate, false);
    bench_stop(made->bench);
    collector_service_destroy(&made->service);
    bench_destroy(made->bench);
    gate_fini(&made->toy.gate);
    free(made);
}

static inline struct collector_figures figures_of(struct collector_bench *made)
{
    struct collector_figures figures;
    collector_service_figures(made->service, &figures);
    return figures;
}

/* The coordinator's part -------------------------------------------------- */

static inline struct collector_work work_of(const char *task_id,
                                            int64_t samples)
{
    struct collector_work work = {.key = key_of(task_id, 1),
                                  .policy_id = "policy_1",
                                  .buffer_id = "buffer_1",
                                  .collector_id = "collector_1",
                                  .samples = samples,
                                  .unroll_len = 8,
                                  .split = 1};
    return work;
}

static inline struct collector_work evaluation_of(const char *task_id,
                                                  int64_t episodes)
{
    struct collector_work work = work_of(task_id, 0);
    work.eval_flag = true;
    work.episodes = episodes;
    return work;
}

static inline ls_call *begin_start(struct collector_bench *made,
                                   const struct collector_work *work)
{
    collector_work_write(work, made->bench->writer);
    return begin_call(made->bench, made->bench->coordinator.calls,
                      CALL_COLLECTOR_START);
}

static inline void start(struct collector_bench *made,
                         const struct collector_work *work)
{
    ls_call *call = begin_start(made, work);
    (void)completes(call);
    ls_call_destroy(&call);
}

static inline ls_call *begin_ask_of(struct collector_bench *made, ls_rpc *calls,
                                    struct work_key key, int64_t version)
{
    const struct collector_ask ask = {
        .key = key, .policy_version = version, .want = 2};
    collector_ask_write(&ask, made->bench->writer);
    return begin_call(made->bench, calls, CALL_COLLECTOR_DATA);
}

static inline ls_call *begin_ask_for(struct collector_bench *made,
                                     struct work_key key, int64_t version,
                                     int64_t want)
{
    const struct collector_ask ask = {
        .key = key, .policy_version = version, .want = want};
    collector_ask_write(&ask, made->bench->writer);
    return begin_call(made->bench, made->bench->coordinator.calls,
                      CALL_COLLECTOR_DATA);
}

static inline ls_call *begin_ask(struct collector_bench *made,
                                 struct work_key key, int64_t version)
{
    return begin_ask_of(made, made->bench->coordinator.calls, key, version);
}

static inline struct collector_data data_of(ls_call *call)
{
    struct collector_data data;
    const struct ls_call_result *result = completes(call);
    assert_int_equal(collector_data_read(&data, result->data, result->size),
                     LS_OK);
    ls_call_destroy(&call);
    return data;
}

static inline struct sample sample_of(ls_call *call)
{
    const struct collector_data data = data_of(call);
    assert_false(data.is_info);
    assert_string_equal(data.buffer_id, "buffer_1");
    assert_int_equal(data.n, 1);
    const struct sample sample = data.samples[0];
    free(data.samples);
    return sample;
}

static inline ls_call *begin_close(struct collector_bench *made,
                                   struct work_key key)
{
    work_key_write(&key, made->bench->writer);
    return begin_call(made->bench, made->bench->coordinator.calls,
                      CALL_COLLECTOR_CLOSE);
}

static inline struct collector_closed closed_by(ls_call *call)
{
    struct collector_closed closed;
    const struct ls_call_result *result = completes(call);
    assert_int_equal(collector_closed_read(&closed, result->data, result->size),
                     LS_OK);
    ls_call_destroy(&call);
    return closed;
}

static inline struct collector_closed closes(struct collector_bench *made,
                                             struct work_key key)
{
    return closed_by(begin_close(made, key));
}

static inline void has_data(struct collector_bench *made,
                            const struct sample *sample, const char *text)
{
    const char *name = sample->data_id;
    struct store_blob blob;
    assert_int_equal(store_get(&made->bench->store->base, &name, 1, &blob, 0),
                     LS_OK);
    assert_int_equal(blob.size, strlen(text));
    assert_memory_equal(blob.data, text, blob.size);
    store_blob_fini(&blob);
}

#endif
