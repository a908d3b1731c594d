/* The members of fsm_world.h: what a learner and a collector do. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fsm_world.h"

static size_t index_of(const struct world *world,
                       const struct world_member *member)
{
    return (size_t)(member - world->members);
}

static bool is_mine(const struct world_member *member,
                    const struct work_key *key)
{
    return member->holds && key->attempt == member->key.attempt &&
           strcmp(key->task_id, member->key.task_id) == 0;
}

static void complete(struct world *world, struct world_member *member,
                     uint64_t number)
{
    world_answer(world, member, number, LS_CALL_COMPLETED, 0, "");
}

static void resource(struct world *world, struct world_member *member,
                     const struct world_call *call)
{
    struct service_resource answer = {.gpu = member->learner ? 1 : 0, .cpu = 4};
    if (member->holds) {
        memcpy(answer.task_id, member->key.task_id, sizeof answer.task_id);
        answer.attempt = member->key.attempt;
        answer.progress = member->progress;
    }
    ls_writer_clear(world->writer);
    service_resource_write(&answer, world->writer);
    complete(world, member, call->number);
}

/* Each attempt is begun once, and they only grow. */
static void note_begun(struct world *world, const struct work_key *key)
{
    size_t i = 0;
    while (i < world->n_begun &&
           strcmp(world->begun[i].task_id, key->task_id) != 0)
        i++;
    if (i == WORLD_WORKS) {
        world_violate(world, "too many works");
        return;
    }
    if (i < world->n_begun && key->attempt <= world->begun[i].attempt)
        world_violate(world, "attempt %lld of %s is begun after attempt %lld",
                      (long long)key->attempt, key->task_id,
                      (long long)world->begun[i].attempt);
    world->begun[i] = *key;
    if (i == world->n_begun)
        world->n_begun++;
}

/* Those that do it are as many as were asked for, the one that it is given to
 * is the first, and the others have no work of their own that anybody knows of:
 * the machine has seen each of them free. */
static void check_ranks(struct world *world, const struct world_member *member,
                        const struct learner_work *work)
{
    const int64_t n = world->options.ranks > 1 ? world->options.ranks : 0;
    if ((int64_t)work->n_ranks != n)
        world_violate(world, "%zu ranks of %lld", work->n_ranks, (long long)n);
    if (n > 0 && work->ranks[0] != (int64_t)member->id)
        world_violate(world, "node %u is not the first rank",
                      (unsigned)member->id);
    for (size_t i = 0; i < work->n_ranks; i++)
        if (!world_member_of(world, (uint32_t)work->ranks[i])->learner)
            world_violate(world, "rank %zu is no learner", i);
}

static void take(struct world *world, struct world_member *member,
                 const struct world_call *call)
{
    struct learner_work learner;
    struct collector_work collector;
    const bool learns = member->learner;
    if ((learns ? learner_work_read(&learner, call->data, call->size)
                : collector_work_read(&collector, call->data, call->size)) !=
        LS_OK) {
        world_violate(world, "%s cannot be read: %s", call->name,
                      ls_error_text());
        return;
    }
    member->key = learns ? learner.key : collector.key;
    memcpy(member->buffer_id, learns ? learner.buffer_id : collector.buffer_id,
           sizeof member->buffer_id);
    memcpy(member->policy_id, learns ? learner.policy_id : collector.policy_id,
           sizeof member->policy_id);
    member->eval = !learns && collector.eval_flag;
    member->progress = 0;
    member->queued = member->training = 0;
    if (learns) {
        check_ranks(world, member, &learner);
        member->goal = learner.iterations;
        member->batch_size = learner.batch_size;
        if (world->version < 0)
            world->version = world->iter = 0;
        member->progress = world->iter;
    } else {
        member->goal = member->eval             ? 2
                       : collector.samples != 0 ? collector.samples
                                                : INT64_MAX; /* never */
    }
    member->holds = true;
    note_begun(world, &member->key);
}

static void start(struct world *world, struct world_member *member,
                  const struct world_call *call)
{
    if (member->holds || world_chance(world, world->faults.refuse)) {
        world_answer(world, member, call->number, LS_CALL_START_FAILED,
                     world_chance(world, 500) ? LS_CALL_BUSY : LS_CALL_REFUSED,
                     "no");
        return;
    }
    take(world, member, call);
    ls_writer_clear(world->writer);
    service_started_write("begun", world->writer);
    complete(world, member, call->number);
}

/* Demands as soon as no batch waits, and as long as one is needed. */
static void demand(struct world *world, struct world_member *member)
{
    if (member->demand == 0)
        return;
    const int64_t left =
        member->goal - member->progress - member->queued - member->training;
    const bool done = member->goal > 0 && member->goal <= member->progress;
    if (!done && (member->queued > 0 || (member->goal > 0 && left <= 0)))
        return;
    struct learner_demand answer = {.key = member->key,
                                    .done = done,
                                    .batch_size = member->batch_size,
                                    .cur_learner_iter = member->progress,
                                    .policy_version = world->version,
                                    .info = {.learner_step = member->progress,
                                             .learner_done = true,
                                             .policy_version = world->version}};
    memcpy(answer.buffer_id, member->buffer_id, sizeof answer.buffer_id);
    ls_writer_clear(world->writer);
    learner_demand_write(&answer, world->writer);
    complete(world, member, member->demand);
    member->demand = 0;
}

static void train(struct world *world, struct world_member *member)
{
    if (member->training > 0 || member->queued == 0)
        return;
    member->queued--;
    member->training++;
    world_at(world,
             (struct world_event){.at = world->now + world_delay(world, 30000),
                                  .kind = WORLD_TRAINED,
                                  .member = index_of(world, member),
                                  .incarnation = member->incarnation,
                                  .number = (uint64_t)member->key.attempt});
}

void world_member_trained(struct world *world, struct world_member *member)
{
    member->training--;
    member->progress++;
    if (member->progress > world->iter) {
        world->iter = member->progress;
        world->version++;
    }
    struct learner_result answer = {.key = member->key,
                                    .has_info = true,
                                    .info = {.learner_step = member->progress,
                                             .policy_version = world->version}};
    memcpy(answer.buffer_id, member->buffer_id, sizeof answer.buffer_id);
    ls_writer_clear(world->writer);
    learner_result_write(&answer, world->writer);
    if (member->learns[0] != 0)
        complete(world, member, member->learns[0]);
    member->learns[0] = member->learns[1];
    member->learns[1] = 0;
    train(world, member);
    demand(world, member);
}

static void learn(struct world *world, struct world_member *member,
                  const struct world_call *call)
{
    struct learner_batch batch;
    if (learner_batch_read(&batch, call->data, call->size) != LS_OK) {
        world_violate(world, "a batch cannot be read: %s", ls_error_text());
        return;
    }
    if ((int64_t)batch.n != member->batch_size)
        world_violate(world, "a batch of %zu", batch.n);
    learner_batch_fini(&batch);
    if (member->queued + member->training >= 2) {
        world_answer(world, member, call->number, LS_CALL_START_FAILED,
                     LS_CALL_BUSY, "two batches are here");
        return;
    }
    /* Batches of a coordinator that is gone come first, and nobody waits. */
    const int before = member->queued + member->training;
    member->learns[before > 0 ? 1 : 0] = call->number;
    member->queued++;
    train(world, member);
    demand(world, member);
}

static void collect(struct world *world, struct world_member *member,
                    const struct world_call *call)
{
    struct collector_ask ask = {.want = 1};
    if (collector_ask_read(&ask, call->data, call->size) != LS_OK)
        world_violate(world, "%s", ls_error_text());
    member->collect = call->number;
    member->want = ask.want;
    world_at(world,
             (struct world_event){.at = world->now + world_delay(world, 10000),
                                  .kind = WORLD_COLLECTED,
                                  .member = index_of(world, member),
                                  .incarnation = member->incarnation,
                                  .number = call->number});
}

static void make_sample(struct world *world, struct world_member *member,
                        struct sample *sample)
{
    if (world->n_samples == WORLD_SAMPLES) {
        world_violate(world, "too many samples");
        return;
    }
    struct world_sample *made = &world->samples[world->n_samples++];
    (void)snprintf(made->data_id, sizeof made->data_id, "data_%zu",
                   world->n_samples);
    const struct world_call *call = world_call(world, member->collect);
    made->taken = made->taken || (call != NULL && !call->answered);
    *sample = (struct sample){.policy_version = world->version,
                              .policy_iter = world->iter,
                              .unroll_len = 4 * world->options.split,
                              .parts = world->options.split,
                              .cur_sample = member->progress,
                              .size = 100 * world->options.split};
    memcpy(sample->data_id, made->data_id, sizeof sample->data_id);
    memcpy(sample->task_id, member->key.task_id, sizeof sample->task_id);
    memcpy(sample->buffer_id, member->buffer_id, sizeof sample->buffer_id);
    (void)snprintf(sample->compressor, sizeof sample->compressor, "none");
}

void world_member_collected(struct world *world, struct world_member *member)
{
    enum { SOME = 3 };
    struct sample samples[SOME];
    struct collector_data answer = {.key = member->key, .samples = samples};
    const int64_t most = member->want < SOME ? member->want : SOME;
    memcpy(answer.buffer_id, member->buffer_id, sizeof answer.buffer_id);
    if (member->eval || member->progress >= member->goal) {
        answer.is_info = true;
        if (member->progress < member->goal)
            member->progress++;
        answer.info.collector_done = member->progress >= member->goal;
        answer.info.cur_episode = answer.info.cur_sample = member->progress;
    } else {
        while (member->progress < member->goal && (int64_t)answer.n < most &&
               (answer.n == 0 || ls_rng_below(&world->rng, 2) == 0)) {
            member->progress++;
            make_sample(world, member, &samples[answer.n++]);
        }
    }
    ls_writer_clear(world->writer);
    collector_data_write(&answer, world->writer);
    complete(world, member, member->collect);
    member->collect = 0;
}

void world_member_alone(struct world_member *member)
{
    member->demand = member->collect = 0;
    member->learns[0] = member->learns[1] = 0;
}

static void fail(struct world *world, struct world_member *member,
                 uint64_t number)
{
    if (number != 0)
        world_answer(world, member, number, LS_CALL_FAILED, 0, "it is closed");
}

static void close_work(struct world *world, struct world_member *member,
                       const struct world_call *call)
{
    fail(world, member, member->demand);
    fail(world, member, member->collect);
    fail(world, member, member->learns[0]);
    fail(world, member, member->learns[1]);
    world_member_alone(member);
    member->holds = false;
    ls_writer_clear(world->writer);
    if (member->learner) {
        struct learner_closed answer = {.key = member->key};
        memcpy(answer.buffer_id, member->buffer_id, sizeof answer.buffer_id);
        learner_closed_write(&answer, world->writer);
    } else {
        const struct collector_closed answer = {
            .key = member->key,
            .eval_flag = member->eval,
            .reward_mean = world->value_per_version * (double)world->version,
            .policy_version = world->version};
        collector_closed_write(&answer, world->writer);
    }
    complete(world, member, call->number);
}

/* What is asked of the work that is held. */
static void serve_work(struct world *world, struct world_member *member,
                       struct world_call *call)
{
    if (strcmp(call->name, CALL_LEARNER_DEMAND) == 0) {
        member->demand = call->number;
        demand(world, member);
    } else if (strcmp(call->name, CALL_LEARNER_LEARN) == 0) {
        learn(world, member, call);
    } else if (strcmp(call->name, CALL_COLLECTOR_DATA) == 0) {
        collect(world, member, call);
    } else {
        close_work(world, member, call);
    }
}

static int read_key(const struct world_call *call, struct work_key *key)
{
    struct learner_batch batch;
    struct collector_ask ask;
    int status;
    if (strcmp(call->name, CALL_LEARNER_LEARN) == 0) {
        status = learner_batch_read(&batch, call->data, call->size);
        if (status == LS_OK) {
            *key = batch.key;
            learner_batch_fini(&batch);
        }
    } else if (strcmp(call->name, CALL_COLLECTOR_DATA) == 0) {
        status = collector_ask_read(&ask, call->data, call->size);
        *key = ask.key;
    } else {
        status = work_key_read(key, call->data, call->size);
    }
    return status;
}

void world_member_serves(struct world *world, struct world_member *member,
                         struct world_call *call)
{
    struct work_key key;
    call->seen = true;
    if (strcmp(call->name, "ls.connect") == 0) {
        member->connected = true;
        ls_writer_clear(world->writer);
        service_nothing_write(world->writer);
        complete(world, member, call->number);
    } else if (!member->connected) {
        world_answer(world, member, call->number, LS_CALL_START_FAILED,
                     LS_CALL_NOT_CONNECTED, "not connected");
    } else if (strcmp(call->name, CALL_RESOURCE) == 0) {
        resource(world, member, call);
    } else if (world_chance(world, world->faults.fail)) {
        world_answer(world, member, call->number, LS_CALL_FAILED, 0, "failed");
    } else if (strcmp(call->name, CALL_LEARNER_START) == 0 ||
               strcmp(call->name, CALL_COLLECTOR_START) == 0) {
        start(world, member, call);
    } else if (read_key(call, &key) != LS_OK) {
        world_violate(world, "%s cannot be read: %s", call->name,
                      ls_error_text());
    } else if (!is_mine(member, &key)) {
        world_answer(world, member, call->number, LS_CALL_START_FAILED,
                     LS_CALL_REFUSED, "another work");
    } else {
        serve_work(world, member, call);
    }
}
