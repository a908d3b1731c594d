#include "fsm_world.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/runtime.h"

#include "support/fsm_options.h"
#include "test.h"

bool world_chance(struct world *world, int thousandths)
{
    return thousandths > 0 &&
           ls_rng_below(&world->rng, 1000) < (uint64_t)thousandths;
}

int64_t world_delay(struct world *world, int64_t most_us)
{
    return (1 + (int64_t)ls_rng_below(&world->rng, (uint64_t)most_us)) *
           LS_NS_PER_US;
}

void world_at(struct world *world, struct world_event event)
{
    if (world->n_events == WORLD_EVENTS) {
        world_violate(world, "too many events");
        return;
    }
    event.order = ++world->last_order;
    world->events[world->n_events++] = event;
}

struct world_call *world_call(struct world *world, uint64_t number)
{
    for (size_t i = 0; i < WORLD_CALLS; i++)
        if (world->calls[i].number == number)
            return &world->calls[i];
    return NULL;
}

struct world_member *world_member_of(struct world *world, uint32_t id)
{
    return &world->members[id - 1];
}

static void forget_call(struct world_call *call)
{
    free(call->answer);
    call->answer = NULL;
    call->number = 0;
}

/* Answers of one member come in the order in which they were given. */
static int64_t in_order(struct world *world, int64_t *last)
{
    int64_t at = world->now + world_delay(world, 3000);
    if (at <= *last)
        at = *last + 1;
    *last = at;
    return at;
}

void world_answer(struct world *world, struct world_member *member,
                  uint64_t number, enum ls_call_state state, int code,
                  const char *text)
{
    struct world_call *call = world_call(world, number);
    if (call == NULL || call->answered ||
        world_chance(world, world->faults.mute)) {
        world->clean = world->clean && call == NULL;
        world->lossy = true;
        return;
    }
    call->answered = true;
    call->result = (struct ls_call_result){.state = state, .code = code};
    (void)snprintf(call->result.text, sizeof call->result.text, "%s", text);
    if (state == LS_CALL_COMPLETED) {
        const void *data;
        size_t size;
        if (ls_writer_bytes(world->writer, &data, &size) != LS_OK)
            world_violate(world, "%s: %s", call->name, ls_error_text());
        else if ((call->answer = malloc(size)) != NULL)
            memcpy(call->answer, data, size);
        call->result.data = call->answer;
        call->result.size = size;
        if (world_chance(world, world->faults.garble)) {
            world->lossy = true;
            call->result.size = 1;
            call->answer[0] = 0xc1; /* never used in msgpack */
        }
    }
    world_at(world, (struct world_event){.at = in_order(world, &member->out_at),
                                         .kind = WORLD_ENDS,
                                         .number = number,
                                         .life = world->life});
}

/* What the machine wants ------------------------------------------------- */

static void make_call(struct world *world, const struct fsm_action *action)
{
    struct world_call *call = world_call(world, 0);
    struct world_member *member = world_member_of(world, action->to);
    if (call == NULL) {
        world_violate(world, "too many calls");
        return;
    }
    *call = (struct world_call){.number = action->number,
                                .to = action->to,
                                .incarnation = member->incarnation,
                                .size = action->size};
    (void)snprintf(call->name, sizeof call->name, "%s", action->name);
    assert_true(action->size <= sizeof call->data);
    if (action->size > 0)
        memcpy(call->data, action->data, action->size);
    world_drawn(world, call);
    world_at(world, (struct world_event){.at = in_order(world, &member->in_at),
                                         .kind = WORLD_ARRIVES,
                                         .number = call->number,
                                         .life = world->life});
    world_at(world, (struct world_event){.at = world->now + action->wait_ns,
                                         .kind = WORLD_EXPIRES,
                                         .number = call->number,
                                         .life = world->life});
}

/* It ends at once; its member may be at it all the same. An answer that is on
 * its way will not be seen. */
static void end_call(struct world *world, uint64_t number,
                     enum ls_call_state state)
{
    struct world_call *call = world_call(world, number);
    if (call == NULL || (call->answered && state != LS_CALL_CANCELLED))
        return;
    const bool ends_already = call->answered;
    call->answered = true;
    call->result = (struct ls_call_result){.state = state};
    (void)snprintf(call->result.text, sizeof call->result.text, "%s: %s",
                   call->name, ls_call_state_name(state));
    if (!ends_already)
        world_at(world, (struct world_event){.at = world->now,
                                             .kind = WORLD_ENDS,
                                             .number = number,
                                             .life = world->life});
}

static int record(void *self, const void *data, size_t size)
{
    struct world *world = self;
    if (world->n_records == WORLD_RECORDS) {
        world_violate(world, "too many records");
        return LS_ELIMIT;
    }
    struct world_record *kept = &world->records[world->n_records++];
    *kept = (struct world_record){malloc(size), size};
    memcpy(kept->data, data, size);
    return LS_OK;
}

static void act(struct world *world, const struct fsm_action *action)
{
    switch (action->kind) {
    case FSM_CONNECT:
    case FSM_CALL:
        make_call(world, action);
        break;
    case FSM_CANCEL:
        end_call(world, action->number, LS_CALL_CANCELLED);
        break;
    case FSM_RECORD:
        (void)record(world, action->data, action->size);
        break;
    case FSM_DROP:
        world_drop(world, action->name);
        break;
    case FSM_SNAPSHOT: /* act_all() tells */
    case FSM_EVALUATED:
        break;
    case FSM_INFO:
        world->infos++;
        world->done_infos += action->info->learner_done ? 1 : 0;
        break;
    case FSM_SAY:
        if (getenv("LOCKSTEP_FSM_TRACE") != NULL)
            print_message("%10.3f %s\n", (double)world->now / 1e6,
                          action->text);
        if (action->level <= LS_LOG_WARN)
            (void)snprintf(world->last_warning, sizeof world->last_warning,
                           "%s", action->text);
        break;
    case FSM_DONE:
        world_finish(world, action);
        break;
    }
}

/* Do what it wants; killed in the middle of it, the rest is never done. */
static void act_all(struct world *world)
{
    struct fsm_action action;
    while (fsm_next(world->fsm, &action)) {
        if (!world->is_done && world_chance(world, world->faults.quit)) {
            world_restart(world);
            break;
        }
        service_name name;
        const bool snapshot = action.kind == FSM_SNAPSHOT;
        if (snapshot)
            (void)snprintf(name, sizeof name, "%s", action.name);
        act(world, &action);
        if (snapshot &&
            fsm_snapshot_done(world->fsm, world->now, name, LS_OK) != LS_OK)
            world_violate(world, "%s", ls_error_text());
    }
}

/* What happens ----------------------------------------------------------- */

static void tell(struct world *world, size_t index, bool ready)
{
    const struct world_member *member = &world->members[index];
    world_at(world,
             (struct world_event){.at = world->now + world_delay(world, 3000),
                                  .kind = WORLD_MEMBER,
                                  .member = index,
                                  .incarnation = member->incarnation,
                                  .ready = ready,
                                  .life = world->life});
}

static void come(struct world *world, size_t index)
{
    struct world_member *member = &world->members[index];
    *member = (struct world_member){.id = (uint32_t)index + 1,
                                    .learner = member->learner,
                                    .alive = true,
                                    .incarnation = ++world->last_incarnation};
    tell(world, index, true);
}

void world_lose(struct world *world, size_t index)
{
    struct world_member *member = &world->members[index];
    if (!member->alive)
        return;
    member->alive = false;
    world->lossy = true;
    tell(world, index, false);
    for (size_t i = 0; i < WORLD_CALLS; i++)
        if (world->calls[i].number != 0 && world->calls[i].to == member->id)
            end_call(world, world->calls[i].number, LS_CALL_LOST);
    world_at(world, (struct world_event){.at = world->now + 5 * LS_NS_PER_MS +
                                               world_delay(world, 400000),
                                         .kind = WORLD_RETURNS,
                                         .member = index});
}

static void open_core(struct world *world)
{
    if (fsm_create(&world->fsm, &world->options, fsm_kinds) != LS_OK)
        world_violate(world, "%s", ls_error_text());
}

static bool is_whole(void *self, const struct sample *sample)
{
    struct world *world = self;
    for (size_t i = 0; i < world->n_samples; i++) {
        struct world_sample *data = &world->samples[i];
        if (strcmp(data->data_id, sample->data_id) != 0)
            continue;
        world->kept++;
        data->delivered = true;
        return data->dropped == 0 && !world_chance(world, world->faults.decay);
    }
    world_violate(world, "%s was never there", sample->data_id);
    return false;
}

/* Who goes on with them drops the rest. */
static void go_on_with_samples(struct world *world)
{
    if (!world->options.keeps_samples)
        return;
    fsm_check_samples(world->fsm, is_whole, world);
    for (size_t i = 0; i < world->n_samples; i++)
        if (!fsm_needs(world->fsm, world->samples[i].data_id))
            world->samples[i].dropped++;
}

/* The journal is read, and begins anew. */
static void recall(struct world *world)
{
    for (size_t i = 0; i < world->n_records; i++) {
        if (fsm_recall(world->fsm, world->records[i].data,
                       world->records[i].size) != LS_OK)
            world_violate(world, "record %zu: %s", i, ls_error_text());
        free(world->records[i].data);
    }
    world->n_records = 0;
    go_on_with_samples(world);
    assert_ok(fsm_records(world->fsm, record, world));
}

void world_restart(struct world *world)
{
    /* What it was told of, nobody knows any more. */
    for (size_t i = 0; i < world->n_samples; i++)
        world->samples[i].delivered = world->samples[i].taken = false;
    fsm_destroy(&world->fsm);
    world->life++;
    open_core(world);
    recall(world);
    for (size_t i = 0; i < WORLD_CALLS; i++)
        forget_call(&world->calls[i]);
    for (size_t i = 0; i < world->n_members; i++) {
        struct world_member *member = &world->members[i];
        member->connected = false;
        world_member_alone(member);
        if (member->alive)
            tell(world, i, true);
    }
}

static void note_delivered(struct world *world, const char *data_id)
{
    for (size_t i = 0; i < world->n_samples; i++)
        if (strcmp(world->samples[i].data_id, data_id) == 0)
            world->samples[i].delivered = true;
}

static void deliver(struct world *world, struct world_call *call)
{
    struct collector_data data;
    if (call->result.state == LS_CALL_COMPLETED &&
        strcmp(call->name, CALL_COLLECTOR_DATA) == 0 &&
        collector_data_read(&data, call->result.data, call->result.size) ==
            LS_OK) {
        for (size_t k = 0; k < data.n; k++)
            note_delivered(world, data.samples[k].data_id);
        collector_data_fini(&data);
    }
    if (call->result.state != LS_CALL_COMPLETED &&
        strstr(call->name, "close") != NULL) {
        world->clean = false;
        world->lossy = true;
    }
    const struct ls_call_result result = call->result;
    unsigned char *answer = call->answer;
    const uint64_t number = call->number;
    call->answer = NULL;
    forget_call(call);
    if (fsm_call_ended(world->fsm, world->now, number, &result) != LS_OK)
        world_violate(world, "%s", ls_error_text());
    free(answer);
}

static void happen_to_call(struct world *world, const struct world_event *event)
{
    struct world_call *call = world_call(world, event->number);
    if (call == NULL)
        return;
    struct world_member *member = world_member_of(world, call->to);
    const bool there =
        member->alive && member->incarnation == call->incarnation;
    if (event->kind == WORLD_ENDS)
        deliver(world, call);
    else if (event->kind == WORLD_EXPIRES)
        end_call(world, call->number, LS_CALL_TIMEOUT);
    else if (there)
        world_member_serves(world, member, call);
    else
        end_call(world, call->number, LS_CALL_LOST);
}

static void happen(struct world *world, const struct world_event *event)
{
    struct world_member *member = &world->members[event->member];
    const bool same =
        member->alive && member->incarnation == event->incarnation;
    struct ls_member told;
    switch (event->kind) {
    case WORLD_ARRIVES:
    case WORLD_ENDS:
    case WORLD_EXPIRES:
        happen_to_call(world, event);
        break;
    case WORLD_TRAINED:
        if (same && member->holds && member->training > 0 &&
            (uint64_t)member->key.attempt == event->number)
            world_member_trained(world, member);
        break;
    case WORLD_COLLECTED:
        if (same && member->collect == event->number)
            world_member_collected(world, member);
        break;
    case WORLD_MEMBER:
        told = core_member(member->id, event->incarnation,
                           member->learner ? "learner" : "collector",
                           event->ready);
        if (fsm_member(world->fsm, world->now, &told) != LS_OK)
            world_violate(world, "%s", ls_error_text());
        break;
    case WORLD_RETURNS:
        come(world, event->member);
        break;
    }
}

static void inject(struct world *world)
{
    if (world_chance(world, world->faults.lose))
        world_lose(world, ls_rng_below(&world->rng, world->n_members));
    if (world_chance(world, world->faults.forget)) {
        world->lossy = true;
        world->members[ls_rng_below(&world->rng, world->n_members)].connected =
            false;
    }
}

bool world_step(struct world *world)
{
    size_t first = 0;
    for (size_t i = 1; i < world->n_events; i++)
        if (world->events[i].at < world->events[first].at ||
            (world->events[i].at == world->events[first].at &&
             world->events[i].order < world->events[first].order))
            first = i;
    const int64_t wake = fsm_wake_at(world->fsm, world->now);
    if (world->n_events == 0 && wake == LS_FOREVER) {
        world_violate(world, "nothing will ever happen");
        return false;
    }
    if (world->n_events == 0 || wake < world->events[first].at) {
        world->now = wake > world->now ? wake : world->now;
        if (fsm_time(world->fsm, world->now) != LS_OK)
            world_violate(world, "%s", ls_error_text());
    } else {
        const struct world_event event = world->events[first];
        world->events[first] = world->events[--world->n_events];
        world->now = event.at > world->now ? event.at : world->now;
        if (event.life == 0 || event.life == world->life)
            happen(world, &event);
        inject(world);
    }
    act_all(world);
    world_check(world);
    world->events_run++;
    return !world->is_done && world->violation[0] == '\0';
}

void world_run(struct world *world)
{
    while (world_step(world)) {
        if (world->events_run > 400000)
            world_violate(world, "it does not come to an end");
    }
}

void world_create(struct world *world, uint64_t seed, size_t learners,
                  size_t collectors)
{
    *world = (struct world){.version = -1,
                            .life = 1,
                            .clean = true,
                            .n_members = learners + collectors};
    ls_rng_seed(&world->rng, seed, 1);
    world->calls = calloc(WORLD_CALLS, sizeof *world->calls);
    world->samples = calloc(WORLD_SAMPLES, sizeof *world->samples);
    world->records = calloc(WORLD_RECORDS, sizeof *world->records);
    world->begun = calloc(WORLD_WORKS, sizeof *world->begun);
    if (world->calls == NULL || world->samples == NULL ||
        world->records == NULL || world->begun == NULL ||
        ls_writer_create(&world->writer) != LS_OK)
        abort();
    for (size_t i = 0; i < world->n_members; i++)
        world->members[i].learner = i < learners;
    world->options = (struct fsm_options){
        .iterations = 10,
        .stop_value = NAN,
        .samples_per_work = 5,
        .unroll_len = 4,
        .split = 1,
        .batch_size = 4,
        .send_policy_freq = 1,
        .send_info_freq = 1,
        .replay = {.capacity = 64, .min_size_to_sample = 4},
        .learner_expiry = 20 * LS_NS_PER_S,
        .collector_expiry = LS_NS_PER_S,
        .retry = 100 * LS_NS_PER_MS,
        .call_timeout = 500 * LS_NS_PER_MS,
        .work_timeout = 2 * LS_NS_PER_S,
        .max_failures = 1000000,
        .seed = seed};
}

void world_begin(struct world *world)
{
    open_core(world);
    for (size_t i = 0; i < world->n_members; i++)
        come(world, i);
}

void world_destroy(struct world *world)
{
    fsm_destroy(&world->fsm);
    for (size_t i = 0; i < WORLD_CALLS; i++)
        forget_call(&world->calls[i]);
    for (size_t i = 0; i < world->n_records; i++)
        free(world->records[i].data);
    free(world->calls);
    free(world->samples);
    free(world->records);
    free(world->begun);
    ls_writer_destroy(&world->writer);
}
