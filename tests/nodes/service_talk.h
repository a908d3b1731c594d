/* service_talk.h - a coordinator in a simulation that talks with one member
 * after the other about one work, and closes it at any time. */
#ifndef SERVICE_TALK_H
#define SERVICE_TALK_H

#include "service_sweep.h"

static inline bool is_dead(const struct life *life)
{
    return ls_host_is_dead(life->host);
}

/* NULL: it could not be begun: this life is over, as a rule. */
static inline ls_call *begin(struct life *life, uint32_t to, const char *name,
                             ls_writer *writer)
{
    struct ls_call_options options = {
        .to = to, .name = name, .timeout_ms = WAIT_MS};
    ls_call *call = NULL;
    ok(ls_writer_bytes(writer, &options.data, &options.size));
    if (ls_call_start(&call, life->calls, &options) != LS_OK)
        must(life->sweep, is_dead(life) || life->sweep->pauses_long,
             "a call that could not begin");
    ls_writer_clear(writer);
    return call;
}

static inline bool is_answered(const struct ls_call_result *result)
{
    return result->state == LS_CALL_COMPLETED ||
           result->state == LS_CALL_FAILED ||
           result->state == LS_CALL_START_FAILED;
}

/* NULL: there is none to look at, since the coordinator is dead. */
static inline const struct ls_call_result *end_of(struct life *life,
                                                  ls_call *call)
{
    if (call == NULL || ls_call_wait(call, LS_WAIT_DEFAULT) != LS_OK)
        return NULL;
    const struct ls_call_result *result = ls_call_result(call);
    if (is_dead(life))
        return NULL;
    must(life->sweep, is_answered(result) || life->sweep->pauses_long,
         "a call that got no answer");
    return result;
}

static inline bool completed(const struct ls_call_result *result)
{
    return result != NULL && result->state == LS_CALL_COMPLETED;
}

/* One of this coordinator's talks with a member about a work. */
struct talk {
    struct life *life;
    uint32_t to;
    ls_writer *writer;
    size_t work; /* index */
    struct fate *fate;
    struct work_key key;
    bool adopted, failed;
    ls_call *learns[2]; /* the older one first */
    char data[2][2][SAFE_NAME_MAX + 1];
    size_t n_learns;
};

static inline bool chance(struct talk *talk, uint64_t n)
{
    return ls_rng_below(&talk->life->random, n) == 0;
}

static inline void note_step(struct talk *talk, int64_t step)
{
    struct fate *fate = talk->fate;
    must(talk->life->sweep,
         talk->adopted ? step > fate->step : step == fate->step + 1,
         "a step that is not the next one");
    must(talk->life->sweep, step <= fate->iterations, "a step too far");
    fate->step = step;
    talk->life->sweep->iterations++;
}

/* The older batch. Returns whether the work goes on. */
static inline bool take_result(struct talk *talk)
{
    struct learner_result out;
    ls_call *call = talk->learns[0];
    const struct ls_call_result *result = end_of(talk->life, call);
    const bool goes_on = completed(result);
    if (goes_on) {
        ok(learner_result_read(&out, result->data, result->size));
        must(talk->life->sweep,
             strcmp(out.key.task_id, talk->key.task_id) == 0 &&
                 out.key.attempt == talk->key.attempt,
             "the result of another work");
        must(talk->life->sweep, out.n == 2, "priorities");
        note_step(talk, out.info.learner_step);
    }
    for (size_t i = 0; i < 2; i++)
        (void)drop(&talk->life->sweep->store, talk->data[0][i], 0);
    ls_call_destroy(&call);
    talk->learns[0] = talk->learns[1];
    memcpy(talk->data[0], talk->data[1], sizeof talk->data[0]);
    talk->n_learns--;
    talk->failed = talk->failed || !goes_on;
    return goes_on;
}

static inline void give_batch(struct talk *talk)
{
    struct drawn_sample items[2];
    struct sweep *sweep = talk->life->sweep;
    struct learner_batch batch = {.key = talk->key, .n = 2, .items = items};
    memset(items, 0, sizeof items);
    for (size_t i = 0; i < 2; i++) {
        struct sample *sample = &items[i].sample;
        (void)snprintf(sample->data_id, sizeof sample->data_id, "b.%llu",
                       (unsigned long long)sweep->n_data++);
        strcpy(sample->task_id, "c");
        strcpy(sample->buffer_id, "b");
        strcpy(sample->compressor, "none");
        sample->unroll_len = 1;
        sample->parts = 1;
        strcpy(items[i].unique_id, "b_1");
        strcpy(talk->data[talk->n_learns][i], sample->data_id);
        const struct store_put data = {
            .name = sample->data_id, .data = "t", .size = 1};
        ok(put(&sweep->store, &data));
    }
    learner_batch_write(&batch, talk->writer);
    talk->learns[talk->n_learns++] =
        begin(talk->life, talk->to, CALL_LEARNER_LEARN, talk->writer);
}

/* Returns whether the work goes on. */
static inline bool answer_demand(struct talk *talk,
                                 const struct ls_call_result *result)
{
    struct learner_demand demand;
    struct sweep *sweep = talk->life->sweep;
    if (!completed(result)) {
        talk->failed = true;
        return false;
    }
    ok(learner_demand_read(&demand, result->data, result->size));
    must(sweep,
         strcmp(demand.key.task_id, talk->key.task_id) == 0 &&
             demand.key.attempt == talk->key.attempt,
         "the demand of another work");
    must(sweep, demand.cur_learner_iter <= talk->fate->iterations,
         "a demand too many");
    if (!demand.done) {
        give_batch(talk);
        return true;
    }
    while (talk->n_learns > 0)
        (void)take_result(talk);
    must(sweep, demand.info.learner_done, "a last info that is none");
    must(sweep, demand.info.learner_step == talk->fate->iterations,
         "not all iterations");
    must(sweep, talk->fate->version == talk->fate->iterations,
         "not all policies");
    return false;
}

static inline bool iterate(struct talk *talk)
{
    work_key_write(&talk->key, talk->writer);
    ls_call *call =
        begin(talk->life, talk->to, CALL_LEARNER_DEMAND, talk->writer);
    if (chance(talk, 12)) {
        /* Closed while it waits: not before the close is it answered. */
        talk->failed = true;
        ls_call_destroy(&call);
        return false;
    }
    const bool goes_on = answer_demand(talk, end_of(talk->life, call));
    ls_call_destroy(&call);
    return goes_on && !is_dead(talk->life) &&
           (talk->n_learns < 2 || take_result(talk));
}

static inline bool ask(struct talk *talk)
{
    struct collector_data data;
    struct sweep *sweep = talk->life->sweep;
    const struct collector_ask what = {
        .key = talk->key, .policy_version = 0, .want = 2};
    collector_ask_write(&what, talk->writer);
    ls_call *call =
        begin(talk->life, talk->to, CALL_COLLECTOR_DATA, talk->writer);
    if (chance(talk, 12)) {
        ls_call_destroy(&call);
        return false;
    }
    const struct ls_call_result *result = end_of(talk->life, call);
    bool goes_on = completed(result);
    if (goes_on) {
        ok(collector_data_read(&data, result->data, result->size));
        goes_on = !data.is_info;
        must(sweep, strcmp(data.key.task_id, talk->key.task_id) == 0,
             "data of another work");
    }
    if (goes_on) {
        for (size_t i = 0; i < data.n; i++) {
            const struct sample *sample = &data.samples[i];
            must(sweep, strcmp(sample->task_id, talk->key.task_id) == 0,
                 "a sample of another work");
            must(sweep, find(sweep, sample->data_id) != NULL, "no data");
            (void)drop(&sweep->store, sample->data_id, 0);
        }
        collector_data_fini(&data);
    }
    ls_call_destroy(&call);
    return goes_on;
}

static inline void close_work(struct talk *talk)
{
    work_key_write(&talk->key, talk->writer);
    ls_call *call =
        begin(talk->life, talk->to,
              talk->to == LEARNER ? CALL_LEARNER_CLOSE : CALL_COLLECTOR_CLOSE,
              talk->writer);
    const struct ls_call_result *result = end_of(talk->life, call);
    /* One that was taken for dead refuses others before it lets go. */
    if (talk->life->sweep->pauses_long ? completed(result) : result != NULL) {
        talk->fate->closed = true;
        talk->life->sweep->held[talk->to] = 0;
    }
    ls_call_destroy(&call);
    while (talk->n_learns > 0)
        (void)take_result(talk);
}

static inline bool start_work(struct talk *talk)
{
    struct ls_rng *random = &talk->life->random;
    if (talk->to == LEARNER) {
        struct learner_work work = {.key = talk->key,
                                    .buffer_id = "b",
                                    .learner_id = "l",
                                    .batch_size = 2,
                                    .iterations = talk->fate->iterations,
                                    .send_policy_freq = 1,
                                    .send_info_freq = 1};
        (void)snprintf(work.policy_id, sizeof work.policy_id, "p.%zu",
                       talk->work);
        learner_work_write(&work, talk->writer);
    } else {
        const struct collector_work work = {
            .key = talk->key,
            .policy_id = "policy",
            .buffer_id = "b",
            .collector_id = "c",
            .samples = 1 + (int64_t)ls_rng_below(random, 6),
            .unroll_len = 4,
            .split = 1};
        collector_work_write(&work, talk->writer);
    }
    ls_call *call =
        begin(talk->life, talk->to,
              talk->to == LEARNER ? CALL_LEARNER_START : CALL_COLLECTOR_START,
              talk->writer);
    const bool begun = completed(end_of(talk->life, call));
    ls_call_destroy(&call);
    must(talk->life->sweep,
         begun || is_dead(talk->life) || talk->life->sweep->pauses_long,
         "a start failed");
    return begun;
}

/* A member that holds a work of an earlier coordinator goes on with it. */
static inline void choose_work(struct talk *talk,
                               const struct service_resource *has)
{
    struct sweep *sweep = talk->life->sweep;
    talk->adopted = has->task_id[0] != '\0';
    if (talk->adopted) {
        talk->work = strtoul(has->task_id + 2, NULL, 10);
        talk->fate = &sweep->works[talk->work];
        must(sweep, !talk->fate->closed, "a work that was closed is held");
        sweep->adopted++;
    } else {
        if (sweep->held[talk->to] > 0)
            sweep->works[sweep->held[talk->to] - 1].closed = true;
        talk->work = sweep->n_works++;
        talk->fate = &sweep->works[talk->work];
        *talk->fate = (struct fate){.version = -1};
        if (talk->to == LEARNER)
            talk->fate->iterations =
                1 + (int64_t)ls_rng_below(&talk->life->random, 8);
    }
    (void)snprintf(talk->key.task_id, sizeof talk->key.task_id, "w.%zu",
                   talk->work);
    talk->key.attempt = talk->adopted ? has->attempt : 1;
    sweep->held[talk->to] = talk->work + 1;
}

static inline bool look_at(struct talk *talk, struct service_resource *out)
{
    service_nothing_write(talk->writer);
    ls_call *call = begin(talk->life, talk->to, CALL_RESOURCE, talk->writer);
    const struct ls_call_result *result = end_of(talk->life, call);
    const bool got = completed(result);
    if (got)
        ok(service_resource_read(out, result->data, result->size));
    ls_call_destroy(&call);
    return got;
}

static inline void connect_to(struct life *life, uint32_t to)
{
    while (!is_dead(life) &&
           ls_rpc_connect(life->calls, to, 0, WAIT_MS) != LS_OK)
        take_time(&life->random, 200);
}

static inline void do_work(struct life *life, uint32_t to)
{
    struct talk talk = {.life = life, .to = to};
    struct service_resource resource;
    ok(ls_writer_create(&talk.writer));
    connect_to(life, to);
    if (look_at(&talk, &resource)) {
        choose_work(&talk, &resource);
        bool goes_on = talk.adopted || start_work(&talk);
        while (goes_on && !is_dead(life))
            goes_on = to == LEARNER ? iterate(&talk) : ask(&talk);
        close_work(&talk);
        life->sweep->failed += talk.failed;
    }
    ls_writer_destroy(&talk.writer);
}

static inline void finish_all(struct life *life)
{
    ls_task *task = NULL;
    ok(ls_task_create(&task, &(struct ls_task_options){.node = life->node}));
    life->sweep->finished = true;
    ls_task_finish(task);
    ls_task_destroy(&task);
}

static inline void life_main(void *arg)
{
    struct life *life = arg;
    struct sweep *sweep = life->sweep;
    ok(make_node(&life->node, COORDINATOR, life->host));
    ok(ls_rpc_open(&life->calls, life->node, NULL));
    if (ls_node_start(life->node) != LS_OK)
        must(sweep, is_dead(life), "a coordinator that did not start");
    while (sweep->n_works < WORKS && !is_dead(life))
        do_work(life,
                ls_rng_below(&life->random, 2) == 0 ? LEARNER : COLLECTOR);
    for (uint32_t to = LEARNER; to <= COLLECTOR && !is_dead(life); to += 2)
        if (sweep->held[to] > 0)
            do_work(life, to);
    life->over = !is_dead(life);
    if (life->over)
        finish_all(life);
    /* Whoever stands still sees it go. */
    if (life->over && sweep->pauses_long)
        ls_rest_until(ls_runtime_current(),
                      ls_now(ls_runtime_current()) + 15 * LS_NS_PER_S);
    ls_rpc_close(&life->calls);
    ls_node_destroy(&life->node);
}

#endif
