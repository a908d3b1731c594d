/* checks_services_story.h - what the nodes of a service cluster say to the
 * checks, word by word. */
#ifndef CHECKS_SERVICES_STORY_H
#define CHECKS_SERVICES_STORY_H

#include "checks_world.h"

#include "fsm.h"
#include "service_watch.h"

#define JOB                                                                    \
    "plugin: none\n"                                                           \
    "nodes:\n"                                                                 \
    "  - role: coordinator\n"                                                  \
    "  - {role: learner, count: 2}\n"                                          \
    "  - {role: collector, count: 2}\n"

enum { COORDINATOR, LEARNER, RESERVE, COLLECTOR, OTHER };

static inline const struct service_watch *watch_of(struct world *world,
                                                   size_t i)
{
    return checks_watch(world->lives[i]).service;
}

static inline struct work_key key_of(const char *task_id, int64_t attempt)
{
    struct work_key key = {.attempt = attempt};
    (void)snprintf(key.task_id, sizeof key.task_id, "%s", task_id);
    return key;
}

/* ---- what the coordinator says ----------------------------------------- */

static inline void opens(struct world *world)
{
    const struct service_watch *watch = watch_of(world, COORDINATOR);
    watch->opened(watch->self);
}

static inline void loses(struct world *world, size_t i)
{
    const struct service_watch *watch = watch_of(world, COORDINATOR);
    watch->member(watch->self, (uint32_t)i, 100 + i, false);
}

static inline void calls(struct world *world, uint64_t number, size_t to,
                         const char *name, ls_writer *data)
{
    const struct service_watch *watch = watch_of(world, COORDINATOR);
    struct fsm_action action = {.kind = FSM_CALL,
                                .number = number,
                                .to = (uint32_t)to,
                                .name = name,
                                .wait_ns = 10 * LS_NS_PER_S};
    assert_int_equal(ls_writer_bytes(data, &action.data, &action.size), LS_OK);
    watch->action(watch->self, &action);
    ls_writer_destroy(&data);
}

static inline ls_writer *writer(void)
{
    ls_writer *made = NULL;
    assert_int_equal(ls_writer_create(&made), LS_OK);
    return made;
}

static inline void starts_learner(struct world *world, uint64_t number,
                                  size_t to, int64_t attempt)
{
    const struct learner_work work = {.key = key_of("learn", attempt),
                                      .policy_id = "policy",
                                      .buffer_id = "buffer",
                                      .learner_id = "learner",
                                      .batch_size = 1,
                                      .iterations = 2,
                                      .send_policy_freq = 1,
                                      .send_info_freq = 1};
    ls_writer *data = writer();
    learner_work_write(&work, data);
    calls(world, number, to, CALL_LEARNER_START, data);
}

static inline void starts_collector(struct world *world, uint64_t number,
                                    size_t to, const char *task_id,
                                    int64_t attempt)
{
    const struct collector_work work = {.key = key_of(task_id, attempt),
                                        .policy_id = "policy",
                                        .buffer_id = "buffer",
                                        .collector_id = "collector",
                                        .samples = 4,
                                        .unroll_len = 8,
                                        .split = 1};
    ls_writer *data = writer();
    collector_work_write(&work, data);
    calls(world, number, to, CALL_COLLECTOR_START, data);
}

static inline void asks_what_it_holds(struct world *world, uint64_t number,
                                      size_t to)
{
    ls_writer *data = writer();
    service_nothing_write(data);
    calls(world, number, to, CALL_RESOURCE, data);
}

/* Demands and closes. */
static inline void asks(struct world *world, uint64_t number, size_t to,
                        const char *name, const char *task_id, int64_t attempt)
{
    const struct work_key key = key_of(task_id, attempt);
    ls_writer *data = writer();
    work_key_write(&key, data);
    calls(world, number, to, name, data);
}

static inline void asks_for_data(struct world *world, uint64_t number,
                                 size_t to, const char *task_id,
                                 int64_t attempt)
{
    const struct collector_ask ask = {.key = key_of(task_id, attempt),
                                      .policy_version = 0};
    ls_writer *data = writer();
    collector_ask_write(&ask, data);
    calls(world, number, to, CALL_COLLECTOR_DATA, data);
}

static inline struct sample sample_of(const char *data_id, const char *task_id)
{
    struct sample sample = {.buffer_id = "buffer",
                            .compressor = "none",
                            .unroll_len = 8,
                            .parts = 1};
    (void)snprintf(sample.data_id, sizeof sample.data_id, "%s", data_id);
    (void)snprintf(sample.task_id, sizeof sample.task_id, "%s", task_id);
    return sample;
}

static inline void gives_batch(struct world *world, uint64_t number, size_t to,
                               int64_t attempt, const char *data_id)
{
    struct drawn_sample item = {.sample = sample_of(data_id, "collect"),
                                .unique_id = "buffer_0"};
    const struct learner_batch batch = {
        .key = key_of("learn", attempt), .n = 1, .items = &item};
    ls_writer *data = writer();
    learner_batch_write(&batch, data);
    calls(world, number, to, CALL_LEARNER_LEARN, data);
}

static inline void drops(struct world *world, const char *data_id)
{
    const struct service_watch *watch = watch_of(world, COORDINATOR);
    const struct fsm_action action = {.kind = FSM_DROP, .name = data_id};
    watch->action(watch->self, &action);
}

static inline void informs(struct world *world, int64_t step, bool done)
{
    const struct service_watch *watch = watch_of(world, COORDINATOR);
    const struct learner_info info = {.learner_step = step,
                                      .learner_done = done};
    const struct fsm_action action = {.kind = FSM_INFO, .info = &info};
    watch->action(watch->self, &action);
}

static inline void is_over(struct world *world, int64_t accepted)
{
    const struct service_watch *watch = watch_of(world, COORDINATOR);
    const struct fsm_action action = {
        .kind = FSM_DONE, .status = LS_OK, .text = "all is learned"};
    const struct fsm_figures figures = {.samples = accepted};
    watch->action(watch->self, &action);
    watch->closed(watch->self, &figures);
}

/* It ends before the job does. */
static inline void breaks_off(struct world *world)
{
    const struct service_watch *watch = watch_of(world, COORDINATOR);
    const struct fsm_figures figures = {.samples = 0};
    watch->closed(watch->self, &figures);
}

/* ---- how its calls end ------------------------------------------------- */

static inline void ends(struct world *world, uint64_t number,
                        enum ls_call_state state)
{
    const struct service_watch *watch = watch_of(world, COORDINATOR);
    const struct ls_call_result result = {.state = state, .text = "so"};
    watch->call_ended(watch->self, number, &result);
}

static inline void ends_with(struct world *world, uint64_t number,
                             ls_writer *data)
{
    const struct service_watch *watch = watch_of(world, COORDINATOR);
    struct ls_call_result result = {.state = LS_CALL_COMPLETED};
    assert_int_equal(ls_writer_bytes(data, &result.data, &result.size), LS_OK);
    watch->call_ended(watch->self, number, &result);
    ls_writer_destroy(&data);
}

static inline void ends_started(struct world *world, uint64_t number)
{
    ls_writer *data = writer();
    service_started_write("it has begun", data);
    ends_with(world, number, data);
}

static inline void ends_with_sample(struct world *world, uint64_t number,
                                    const char *task_id, int64_t attempt,
                                    const char *data_id)
{
    struct sample sample = sample_of(data_id, task_id);
    const struct collector_data brought = {.key = key_of(task_id, attempt),
                                           .buffer_id = "buffer",
                                           .n = 1,
                                           .samples = &sample};
    ls_writer *data = writer();
    collector_data_write(&brought, data);
    ends_with(world, number, data);
}

static inline void ends_learned(struct world *world, uint64_t number,
                                int64_t attempt)
{
    const struct learner_result learned = {.key = key_of("learn", attempt),
                                           .buffer_id = "buffer"};
    ls_writer *data = writer();
    learner_result_write(&learned, data);
    ends_with(world, number, data);
}

static inline void ends_holding(struct world *world, uint64_t number,
                                const char *task_id, int64_t attempt)
{
    const struct work_key key = key_of(task_id, attempt);
    struct service_resource resource = {.gpu = 1.0, .attempt = attempt};
    memcpy(resource.task_id, key.task_id, sizeof resource.task_id);
    ls_writer *data = writer();
    service_resource_write(&resource, data);
    ends_with(world, number, data);
}

static inline void ends_closed(struct world *world, uint64_t number,
                               const char *task_id, int64_t attempt)
{
    ls_writer *data = writer();
    if (strcmp(task_id, "learn") == 0) {
        const struct learner_closed closed = {.key = key_of(task_id, attempt),
                                              .buffer_id = "buffer"};
        learner_closed_write(&closed, data);
    } else {
        const struct collector_closed closed = {.key = key_of(task_id, attempt),
                                                .reward_mean = 1.0};
        collector_closed_write(&closed, data);
    }
    ends_with(world, number, data);
}

/* ---- what members say -------------------------------------------------- */

static inline void begins(struct world *world, size_t i, const char *task_id,
                          int64_t attempt)
{
    const struct service_watch *watch = watch_of(world, i);
    const struct work_key key = key_of(task_id, attempt);
    watch->began(watch->self, &key);
}

static inline void lets_go(struct world *world, size_t i, const char *task_id,
                           int64_t attempt)
{
    const struct service_watch *watch = watch_of(world, i);
    const struct work_key key = key_of(task_id, attempt);
    watch->ended(watch->self, &key);
}

static inline struct policy_value value_of(int64_t attempt, int64_t version)
{
    return (struct policy_value){
        .attempt = attempt, .version = version, .iter = version};
}

static inline void commits(struct world *world, size_t i, int64_t attempt,
                           int64_t version)
{
    const struct policy_value value = value_of(attempt, version);
    const struct service_watch *watch = watch_of(world, i);
    const struct work_key key = key_of("learn", attempt);
    watch->committed(watch->self, &key, "policy", &value,
                     &(struct ls_bytes){(void *)"the training", 12});
}

/* written: the attempt of who wrote it, and the training beside it. */
static inline void loads_with(struct world *world, size_t i,
                              const char *task_id, int64_t attempt,
                              int64_t version, int64_t written,
                              const char *training)
{
    const struct policy_value value = value_of(written, version);
    const struct service_watch *watch = watch_of(world, i);
    const struct work_key key = key_of(task_id, attempt);
    watch->loading(watch->self);
    passes(world, 1);
    watch->loaded(watch->self, &key, "policy", &value,
                  &(struct ls_bytes){(void *)training, strlen(training)});
}

static inline void loads(struct world *world, size_t i, const char *task_id,
                         int64_t attempt, int64_t version)
{
    loads_with(world, i, task_id, attempt, version, attempt, "");
}

/* ---- scenes ------------------------------------------------------------ */

/* Learner and collector have their first works. */
static inline void all_begin(struct world *world)
{
    opens(world);
    starts_learner(world, 1, LEARNER, 1);
    begins(world, LEARNER, "learn", 1);
    ends_started(world, 1);
    starts_collector(world, 2, COLLECTOR, "collect", 1);
    begins(world, COLLECTOR, "collect", 1);
    ends_started(world, 2);
    commits(world, LEARNER, 1, 0);
}

static inline void a_sample_comes(struct world *world, const char *data_id)
{
    asks_for_data(world, 3, COLLECTOR, "collect", 1);
    ends_with_sample(world, 3, "collect", 1, data_id);
}

static inline void collecting_ends(struct world *world)
{
    asks(world, 8, COLLECTOR, CALL_COLLECTOR_CLOSE, "collect", 1);
    lets_go(world, COLLECTOR, "collect", 1);
    ends_closed(world, 8, "collect", 1);
}

static inline void learning_ends(struct world *world, size_t who,
                                 int64_t attempt)
{
    asks(world, 9, who, CALL_LEARNER_CLOSE, "learn", attempt);
    lets_go(world, who, "learn", attempt);
    ends_closed(world, 9, "learn", attempt);
}

static inline void judge(void (*story)(void *world), const char *says)
{
    judge_job(JOB, story, says);
}

#endif
