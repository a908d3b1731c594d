/* fsm_hand.h - the coordinator's machine driven by hand: the test says what
 * happens, and looks at what is wanted. Members answer as they are told to. */
#ifndef LOCKSTEP_TESTS_FSM_HAND_H
#define LOCKSTEP_TESTS_FSM_HAND_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsm.h"
#include "lockstep/log.h"
#include "lockstep/runtime.h"

#include "support/fsm_options.h"
#include "test.h"

enum { HAND_CALLS = 64, LEARNER = 1, RESERVE = 2, COLLECTOR = 3, OTHER = 4 };

struct hand_call {
    uint64_t number; /* 0: none */
    uint32_t to;
    char name[32];
    char *data; /* own */
    size_t size;
    int64_t wait_ns;
    bool cancelled;
};

struct hand {
    fsm *fsm;
    int64_t now;
    ls_writer *writer;
    struct hand_call calls[HAND_CALLS];
    int n_done, n_drops, n_infos;
    int done_status;
    int keeps; /* how keeping a policy ends */
    char done_text[512], done_name[64], warning[1024];
    double evaluated;
    char dropped[1024]; /* names, each with a space before and after */
    struct {
        void *data;
        size_t size;
    } records[256];
    size_t n_records;
};

static inline struct fsm_options hand_options(void)
{
    return small_core_options();
}

static inline struct hand *hand_open_with(const struct fsm_options *options,
                                          const struct fsm_kind *const *kinds)
{
    struct hand *hand = calloc(1, sizeof *hand);
    assert_non_null(hand);
    hand->evaluated = NAN;
    hand->now = LS_NS_PER_S;
    assert_int_equal(ls_writer_create(&hand->writer), LS_OK);
    if (fsm_create(&hand->fsm, options, kinds) != LS_OK)
        fail_msg("%s", ls_error_text());
    return hand;
}

static inline struct hand *hand_open(const struct fsm_options *options)
{
    return hand_open_with(options, fsm_kinds);
}

static inline void hand_close(struct hand *hand)
{
    fsm_destroy(&hand->fsm);
    ls_writer_destroy(&hand->writer);
    for (size_t i = 0; i < HAND_CALLS; i++)
        free(hand->calls[i].data);
    for (size_t i = 0; i < hand->n_records; i++)
        free(hand->records[i].data);
    free(hand);
}

static inline struct hand_call *hand_numbered(struct hand *hand,
                                              uint64_t number)
{
    for (size_t i = 0; i < HAND_CALLS; i++)
        if (hand->calls[i].number == number)
            return &hand->calls[i];
    fail_msg("there is no call %llu", (unsigned long long)number);
    return NULL;
}

static inline void hand_call_made(struct hand *hand,
                                  const struct fsm_action *action)
{
    struct hand_call *call = hand_numbered(hand, 0);
    *call = (struct hand_call){.number = action->number,
                               .to = action->to,
                               .size = action->size,
                               .wait_ns = action->wait_ns,
                               .data = malloc(action->size + 1)};
    (void)snprintf(call->name, sizeof call->name, "%s", action->name);
    if (action->size > 0)
        memcpy(call->data, action->data, action->size);
}

static inline void hand_record(struct hand *hand, const void *data, size_t size)
{
    void *kept = malloc(size);
    memcpy(kept, data, size);
    hand->records[hand->n_records].data = kept;
    hand->records[hand->n_records++].size = size;
}

static inline void hand_dropped(struct hand *hand, const char *name)
{
    const size_t used = strlen(hand->dropped);
    const int n = snprintf(hand->dropped + used, sizeof hand->dropped - used,
                           " %s ", name);
    assert_true(n > 0 && (size_t)n < sizeof hand->dropped - used);
}

/* Take what is wanted. Policies are kept at once. */
static inline void hand_take(struct hand *hand)
{
    struct fsm_action action;
    while (fsm_next(hand->fsm, &action)) {
        char name[64] = "";
        if (action.name != NULL)
            (void)snprintf(name, sizeof name, "%s", action.name);
        if (action.kind == FSM_CALL || action.kind == FSM_CONNECT)
            hand_call_made(hand, &action);
        else if (action.kind == FSM_CANCEL)
            hand_numbered(hand, action.number)->cancelled = true;
        else if (action.kind == FSM_RECORD)
            hand_record(hand, action.data, action.size);
        else if (action.kind == FSM_SAY && action.level <= LS_LOG_WARN)
            (void)snprintf(hand->warning, sizeof hand->warning, "%s",
                           action.text);
        else if (action.kind == FSM_EVALUATED)
            hand->evaluated = action.value;
        hand->n_drops += action.kind == FSM_DROP;
        if (action.kind == FSM_DROP)
            hand_dropped(hand, name);
        hand->n_infos += action.kind == FSM_INFO;
        if (action.kind == FSM_DONE) {
            hand->n_done++;
            hand->done_status = action.status;
            (void)snprintf(hand->done_text, sizeof hand->done_text, "%s",
                           action.text);
            (void)snprintf(hand->done_name, sizeof hand->done_name, "%s", name);
        }
        if (action.kind == FSM_SNAPSHOT)
            assert_int_equal(
                fsm_snapshot_done(hand->fsm, hand->now, name, hand->keeps),
                LS_OK);
    }
}

/* The only open call of this name to this member; NULL: there is none. */
static inline struct hand_call *hand_find(struct hand *hand, uint32_t to,
                                          const char *name)
{
    struct hand_call *found = NULL;
    for (size_t i = 0; i < HAND_CALLS; i++) {
        struct hand_call *call = &hand->calls[i];
        if (call->number == 0 || call->to != to ||
            strcmp(call->name, name) != 0)
            continue;
        assert_null(found);
        found = call;
    }
    return found;
}

static inline void hand_expect_none(struct hand *hand, uint32_t to,
                                    const char *name)
{
    if (hand_find(hand, to, name) != NULL)
        fail_msg("%s is asked of node %u", name, (unsigned)to);
}

static inline struct hand_call *hand_expect(struct hand *hand, uint32_t to,
                                            const char *name)
{
    struct hand_call *call = hand_find(hand, to, name);
    if (call == NULL)
        fail_msg("%s is not asked of node %u", name, (unsigned)to);
    return call;
}

static inline void hand_end(struct hand *hand, struct hand_call *call,
                            const struct ls_call_result *result)
{
    const uint64_t number = call->number;
    free(call->data);
    *call = (struct hand_call){.number = 0};
    assert_int_equal(fsm_call_ended(hand->fsm, hand->now, number, result),
                     LS_OK);
    hand_take(hand);
}

/* It ends otherwise than with an answer. */
static inline void hand_fail(struct hand *hand, uint32_t to, const char *name,
                             enum ls_call_state state, int code)
{
    const struct ls_call_result result = {
        .state = state, .code = code, .text = "it could not be"};
    hand_end(hand, hand_expect(hand, to, name), &result);
}

/* The answer is what the writer holds. */
static inline void hand_answer(struct hand *hand, uint32_t to, const char *name)
{
    struct ls_call_result result = {.state = LS_CALL_COMPLETED};
    assert_int_equal(ls_writer_bytes(hand->writer, &result.data, &result.size),
                     LS_OK);
    hand_end(hand, hand_expect(hand, to, name), &result);
    ls_writer_clear(hand->writer);
}

static inline void hand_garbage(struct hand *hand, uint32_t to,
                                const char *name)
{
    ls_write_string(hand->writer, "nonsense");
    hand_answer(hand, to, name);
}

static inline void hand_wait(struct hand *hand, int64_t ns)
{
    hand->now += ns;
    assert_int_equal(fsm_time(hand->fsm, hand->now), LS_OK);
    hand_take(hand);
}

static inline void hand_member(struct hand *hand, uint32_t id,
                               uint64_t incarnation, bool ready)
{
    const struct ls_member member = core_member(
        id, incarnation, id < COLLECTOR ? "learner" : "collector", ready);
    assert_int_equal(fsm_member(hand->fsm, hand->now, &member), LS_OK);
    hand_take(hand);
}

static inline void hand_offers(struct hand *hand, uint32_t id,
                               const struct service_resource *resource)
{
    service_resource_write(resource, hand->writer);
    hand_answer(hand, id, CALL_RESOURCE);
}

static inline void hand_resource(struct hand *hand, uint32_t id,
                                 const char *task_id, int64_t attempt)
{
    struct service_resource resource = {
        .cpu = 4, .gpu = 0.5, .attempt = attempt};
    (void)snprintf(resource.task_id, sizeof resource.task_id, "%s", task_id);
    hand_offers(hand, id, &resource);
}

static inline void hand_connected(struct hand *hand, uint32_t id)
{
    service_nothing_write(hand->writer);
    hand_answer(hand, id, "ls.connect");
}

/* Ready, connected, and asked: free. */
static inline void hand_join(struct hand *hand, uint32_t id)
{
    hand_member(hand, id, 1, true);
    hand_connected(hand, id);
    hand_resource(hand, id, "", 0);
}

static inline void hand_started(struct hand *hand, uint32_t id)
{
    service_started_write("begun", hand->writer);
    hand_answer(hand, id,
                id < COLLECTOR ? CALL_LEARNER_START : CALL_COLLECTOR_START);
}

static inline struct work_key hand_key(const char *task_id, int64_t attempt)
{
    struct work_key key = {.attempt = attempt};
    (void)snprintf(key.task_id, sizeof key.task_id, "%s", task_id);
    return key;
}

/* Of learn_1. done: 0: a batch is wanted. */
static inline void hand_demand(struct hand *hand, uint32_t id, int64_t attempt,
                               int64_t version, bool done)
{
    const struct learner_demand demand = {.key = hand_key("learn_1", attempt),
                                          .buffer_id = "buffer_1",
                                          .done = done,
                                          .batch_size = 1,
                                          .policy_version = version,
                                          .info = {.learner_step = version,
                                                   .learner_done = true,
                                                   .policy_version = version}};
    learner_demand_write(&demand, hand->writer);
    hand_answer(hand, id, CALL_LEARNER_DEMAND);
}

static inline void hand_learned(struct hand *hand, uint32_t id, int64_t attempt,
                                int64_t step)
{
    const struct learner_result result = {
        .key = hand_key("learn_1", attempt),
        .buffer_id = "buffer_1",
        .has_info = true,
        .info = {.learner_step = step, .policy_version = step}};
    learner_result_write(&result, hand->writer);
    hand_answer(hand, id, CALL_LEARNER_LEARN);
}

static inline void hand_compressed(struct hand *hand, uint32_t id,
                                   const char *task_id, const char *data_id,
                                   const char *compressor)
{
    struct sample sample = {
        .buffer_id = "buffer_1", .unroll_len = 4, .parts = 1, .size = 100};
    struct collector_data data = {.key = hand_key(task_id, 1),
                                  .buffer_id = "buffer_1",
                                  .n = 1,
                                  .samples = &sample};
    (void)snprintf(sample.compressor, sizeof sample.compressor, "%s",
                   compressor);
    (void)snprintf(sample.data_id, sizeof sample.data_id, "%s", data_id);
    (void)snprintf(sample.task_id, sizeof sample.task_id, "%s", task_id);
    collector_data_write(&data, hand->writer);
    hand_answer(hand, id, CALL_COLLECTOR_DATA);
}

static inline void hand_sample(struct hand *hand, uint32_t id,
                               const char *task_id, const char *data_id)
{
    hand_compressed(hand, id, task_id, data_id, SAMPLE_PLAIN);
}

static inline void hand_closed(struct hand *hand, uint32_t id,
                               const char *task_id, int64_t attempt,
                               double value)
{
    if (id < COLLECTOR) {
        const struct learner_closed closed = {.key = hand_key(task_id, attempt),
                                              .buffer_id = "buffer_1"};
        learner_closed_write(&closed, hand->writer);
        hand_answer(hand, id, CALL_LEARNER_CLOSE);
        return;
    }
    const struct collector_closed closed = {.key = hand_key(task_id, attempt),
                                            .reward_mean = value,
                                            .policy_version = 1};
    collector_closed_write(&closed, hand->writer);
    hand_answer(hand, id, CALL_COLLECTOR_CLOSE);
}

static inline struct fsm_figures hand_figures(struct hand *hand)
{
    struct fsm_figures figures;
    fsm_figures(hand->fsm, &figures);
    return figures;
}

/* learn_1 runs at LEARNER, and has demanded; collect_2 runs at COLLECTOR. */
static inline struct hand *hand_running(const struct fsm_options *options)
{
    struct hand *hand = hand_open(options);
    hand_join(hand, LEARNER);
    hand_started(hand, LEARNER);
    hand_demand(hand, LEARNER, 1, 0, false);
    hand_join(hand, COLLECTOR);
    hand_started(hand, COLLECTOR);
    return hand;
}

#endif
