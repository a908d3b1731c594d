/* service_bench.h - a service at work at one node, and a coordinator made by
 * hand at another; a third may take its place. */
#ifndef SERVICE_BENCH_H
#define SERVICE_BENCH_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/call.h"
#include "lockstep/task.h"
#include "messages.h"
#include "service_options.h"

#define BENCH_MS 30000 /* longer than anything here takes */

static inline int64_t bench_deadline(void)
{
    return ls_deadline(ls_runtime_threads(), BENCH_MS);
}

#include "test.h"
#include "toy_store.h"

enum { MEMBER = 1, COORDINATOR = 2, SUCCESSOR = 3 };

struct bench_node {
    ls_node *node;
    ls_rpc *calls;
    ls_thread *starter;
    int status;
};

struct bench {
    struct bench_node member, coordinator, successor;
    struct toy_store *store;
    ls_task *task;
    ls_thread *runner;
    int run_status;
    char run_text[LS_ERROR_TEXT_MAX];
    ls_writer *writer;
};

/* A gate that a worker waits at, and the test can see it waiting. */
struct gate {
    ls_mutex mutex;
    ls_cond changed;
    bool shut;
    int may_pass; /* while it is shut */
    int waiting, passed;
};

static inline void gate_init(struct gate *gate)
{
    memset(gate, 0, sizeof *gate);
    assert_int_equal(ls_mutex_init(&gate->mutex, ls_runtime_threads()), LS_OK);
    assert_int_equal(ls_cond_init(&gate->changed, ls_runtime_threads()), LS_OK);
}

static inline void gate_fini(struct gate *gate)
{
    ls_cond_fini(&gate->changed);
    ls_mutex_fini(&gate->mutex);
}

static inline void gate_pass(struct gate *gate)
{
    ls_mutex_lock(&gate->mutex);
    gate->waiting++;
    ls_cond_broadcast(&gate->changed);
    while (gate->shut && gate->may_pass == 0)
        (void)!ls_cond_wait(&gate->changed, &gate->mutex, LS_FOREVER);
    gate->may_pass -= gate->may_pass > 0;
    gate->waiting--;
    gate->passed++;
    ls_cond_broadcast(&gate->changed);
    ls_mutex_unlock(&gate->mutex);
}

static inline void gate_turn(struct gate *gate, bool shut)
{
    ls_mutex_lock(&gate->mutex);
    gate->shut = shut;
    ls_cond_broadcast(&gate->changed);
    ls_mutex_unlock(&gate->mutex);
}

/* Let one through that is shut. */
static inline void gate_pass_one(struct gate *gate)
{
    ls_mutex_lock(&gate->mutex);
    gate->may_pass++;
    ls_cond_broadcast(&gate->changed);
    ls_mutex_unlock(&gate->mutex);
}

static inline void gate_await(struct gate *gate, int waiting, int passed)
{
    ls_mutex_lock(&gate->mutex);
    while (gate->waiting < waiting || gate->passed < passed)
        assert_int_equal(
            ls_cond_wait(&gate->changed, &gate->mutex, bench_deadline()),
            LS_OK);
    ls_mutex_unlock(&gate->mutex);
}

static inline void bench_create_node(struct bench_node *at, uint32_t id,
                                     unsigned round)
{
    struct ls_node_options options;
    char bind[64], attach[64];
    const char *to = attach;
    ls_node_options_init(&options);
    (void)snprintf(bind, sizeof bind, "inproc://service-%u-%u", round,
                   (unsigned)id);
    (void)snprintf(attach, sizeof attach, "inproc://service-%u-%u", round,
                   (unsigned)MEMBER);
    options.bind = bind;
    options.attach = &to;
    options.n_attach = 1;
    options.id = id;
    options.world_size = 3;
    options.world_max = 3;
    options.start_timeout_ms = BENCH_MS;
    assert_int_equal(ls_node_create(&at->node, &options), LS_OK);
    assert_int_equal(ls_rpc_open(&at->calls, at->node, NULL), LS_OK);
}

static inline void bench_start_node(void *arg)
{
    struct bench_node *at = arg;
    at->status = ls_node_start(at->node);
}

/* Make the nodes; a service is created at the member, then the world starts. */
static inline struct bench *bench_create(void)
{
    static unsigned round;
    struct bench *bench = calloc(1, sizeof *bench);
    round++;
    bench_create_node(&bench->member, MEMBER, round);
    bench_create_node(&bench->coordinator, COORDINATOR, round);
    bench_create_node(&bench->successor, SUCCESSOR, round);
    bench->store = toy_open(ls_runtime_threads());
    assert_int_equal(ls_writer_create(&bench->writer), LS_OK);
    assert_int_equal(
        ls_task_create(&bench->task,
                       &(struct ls_task_options){.node = bench->member.node}),
        LS_OK);
    return bench;
}

/* What a service at the member is made of. */
static inline struct service_options bench_options(struct bench *bench,
                                                   int patience_ms)
{
    return (struct service_options){.node = bench->member.node,
                                    .calls = bench->member.calls,
                                    .store = &bench->store->base,
                                    .coordinator = COORDINATOR,
                                    .gpu = 1.0,
                                    .cpu = 2.0,
                                    .patience_ms = patience_ms};
}

static inline void bench_task_runs(void *arg)
{
    struct bench *bench = arg;
    bench->run_status = ls_task_run(bench->task, UINT64_MAX);
    (void)snprintf(bench->run_text, sizeof bench->run_text, "%s",
                   ls_error_text());
}

static inline void bench_begin_run(struct bench *bench)
{
    assert_int_equal(ls_thread_spawn(ls_runtime_threads(), &bench->runner,
                                     "runner", bench_task_runs, bench),
                     LS_OK);
}

/* The world, without a run. */
static inline void bench_start_idle(struct bench *bench)
{
    struct bench_node *nodes[] = {&bench->member, &bench->coordinator,
                                  &bench->successor};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(ls_thread_spawn(ls_runtime_threads(),
                                         &nodes[i]->starter, "start",
                                         bench_start_node, nodes[i]),
                         LS_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ls_thread_join(&nodes[i]->starter, bench_deadline()),
                         LS_OK);
        assert_int_equal(nodes[i]->status, LS_OK);
    }
    assert_int_equal(
        ls_rpc_connect(bench->coordinator.calls, MEMBER, 0, BENCH_MS), LS_OK);
}

static inline void bench_start(struct bench *bench)
{
    bench_start_idle(bench);
    bench_begin_run(bench);
}

/* The run has ended, or is ended, with this status. */
static inline void bench_ends(struct bench *bench, int status)
{
    assert_int_equal(ls_thread_join(&bench->runner, bench_deadline()), LS_OK);
    if (bench->run_status != status)
        fail_msg("the run ended with %s: %s", ls_status_name(bench->run_status),
                 bench->run_text);
}

static inline void bench_kill(struct bench_node *at, int reason)
{
    ls_rpc_close(&at->calls);
    ls_node_stop(at->node, reason);
    ls_node_destroy(&at->node);
}

/* In two halves: the service is destroyed in between. */
static inline void bench_stop(struct bench *bench)
{
    if (bench->runner != NULL) {
        ls_task_cancel(bench->task, LS_ECANCELED, "the test is over");
        bench_ends(bench, LS_ECANCELED);
    }
    ls_task_destroy(&bench->task);
    ls_rpc_close(&bench->member.calls);
}

static inline void bench_destroy(struct bench *bench)
{
    struct store *store = &bench->store->base;
    if (bench->coordinator.node != NULL)
        bench_kill(&bench->coordinator, LS_OK);
    if (bench->successor.node != NULL)
        bench_kill(&bench->successor, LS_OK);
    bench_kill(&bench->member, LS_OK);
    ls_writer_destroy(&bench->writer);
    store_close(&store);
    free(bench);
}

/* Calls -------------------------------------------------------------------- */

/* Begin a call with what is in bench->writer. */
static inline ls_call *begin_call(struct bench *bench, ls_rpc *calls,
                                  const char *name)
{
    struct ls_call_options options = {
        .to = MEMBER, .name = name, .timeout_ms = BENCH_MS};
    ls_call *call = NULL;
    assert_int_equal(
        ls_writer_bytes(bench->writer, &options.data, &options.size), LS_OK);
    if (ls_call_start(&call, calls, &options) != LS_OK)
        fail_msg("%s: %s", name, ls_error_text());
    ls_writer_clear(bench->writer);
    return call;
}

/* Its end. Borrow. */
static inline const struct ls_call_result *end_of(ls_call *call)
{
    assert_int_equal(ls_call_wait(call, BENCH_MS), LS_OK);
    return ls_call_result(call);
}

static inline void fails_with(ls_call *call, const char *text)
{
    const struct ls_call_result *result = end_of(call);
    if (result->state != LS_CALL_FAILED || strstr(result->text, text) == NULL)
        fail_msg("it is %s, \"%s\", not failed with \"%s\"",
                 ls_call_state_name(result->state), result->text, text);
    ls_call_destroy(&call);
}

static inline void is_refused(ls_call *call, int code, const char *text)
{
    const struct ls_call_result *result = end_of(call);
    if (result->state != LS_CALL_START_FAILED || result->code != code ||
        strstr(result->text, text) == NULL)
        fail_msg("it is %s (%d), \"%s\", not refused with %d, \"%s\"",
                 ls_call_state_name(result->state), result->code, result->text,
                 code, text);
    ls_call_destroy(&call);
}

static inline const struct ls_call_result *completes(ls_call *call)
{
    const struct ls_call_result *result = end_of(call);
    if (result->state != LS_CALL_COMPLETED)
        fail_msg("it is %s, %d: %s", ls_call_state_name(result->state),
                 result->code, result->text);
    return result;
}

static inline struct service_resource resource_of(struct bench *bench,
                                                  ls_rpc *calls)
{
    struct service_resource resource;
    service_nothing_write(bench->writer);
    ls_call *call = begin_call(bench, calls, CALL_RESOURCE);
    const struct ls_call_result *result = completes(call);
    assert_int_equal(
        service_resource_read(&resource, result->data, result->size), LS_OK);
    ls_call_destroy(&call);
    return resource;
}

static inline struct work_key key_of(const char *task_id, int64_t attempt)
{
    struct work_key key = {.attempt = attempt};
    (void)snprintf(key.task_id, sizeof key.task_id, "%s", task_id);
    return key;
}

#endif
