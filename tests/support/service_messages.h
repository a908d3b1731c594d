/* service_messages.h - one of each message between a coordinator and its
 * members, filled in: for tests of how they go both ways, and for seeds. */
#ifndef SUPPORT_SERVICE_MESSAGES_H
#define SUPPORT_SERVICE_MESSAGES_H

#include <stdio.h>

#include "messages.h"

#define KEY                                                                    \
    {                                                                          \
        .task_id = "learner_1", .attempt = 2                                   \
    }

static inline void name_it(char out[SAFE_NAME_MAX + 1], const char *name)
{
    (void)snprintf(out, SAFE_NAME_MAX + 1, "%s", name);
}

static inline struct sample sample_named(const char *data_id)
{
    struct sample sample = {.policy_iter = 7,
                            .policy_version = 8,
                            .env_id = 1,
                            .unroll_len = 32,
                            .parts = 4,
                            .priority = 1.5,
                            .cur_episode = 3,
                            .cur_sample = 4,
                            .cur_step = 5,
                            .size = 4096};
    name_it(sample.data_id, data_id);
    name_it(sample.task_id, "collector_1");
    name_it(sample.buffer_id, "buffer_1");
    name_it(sample.compressor, "none");
    return sample;
}

#define INFO                                                                   \
    {                                                                          \
        .learner_step = 9, .learner_done = true, .policy_version = 8,          \
        .n_values = 2, .values = {                                             \
            {.name = "loss", .value = 0.25},                                   \
            {.name = "kl", .value = -1.0}                                      \
        }                                                                      \
    }

static const struct service_resource resource = {
    .gpu = 1.0, .cpu = 20.0, .task_id = "a", .attempt = 3, .progress = 17};
static const struct work_key key = KEY;
static const struct learner_work learner = {.key = KEY,
                                            .policy_id = "policy_1",
                                            .buffer_id = "buffer_1",
                                            .learner_id = "learner_0",
                                            .batch_size = 4,
                                            .iterations = 100,
                                            .send_policy_freq = 1,
                                            .send_info_freq = 2,
                                            .done = 40,
                                            .gpu = 1.0,
                                            .cpu = 2.0,
                                            .n_ranks = 2,
                                            .ranks = {3, 7}};
static const struct collector_work collector = {.key = KEY,
                                                .policy_id = "policy_1@17",
                                                .buffer_id = "buffer_1",
                                                .collector_id = "c",
                                                .eval_flag = true,
                                                .samples = 5,
                                                .episodes = 6,
                                                .unroll_len = 128,
                                                .split = 4,
                                                .cpu = 0.5};
static const struct learner_demand demand = {.key = KEY,
                                             .buffer_id = "buffer_1",
                                             .batch_size = 4,
                                             .cur_learner_iter = 3,
                                             .policy_version = -1};
static const struct learner_demand last_demand = {.key = KEY,
                                                  .buffer_id = "buffer_1",
                                                  .done = true,
                                                  .cur_learner_iter = 9,
                                                  .policy_version = 8,
                                                  .info = INFO};
static const struct learner_result result = {.key = KEY,
                                             .buffer_id = "buffer_1",
                                             .has_info = true,
                                             .info = INFO,
                                             .policy_version = 8,
                                             .cur_learner_iter = 9,
                                             .n = 2,
                                             .priorities = {0.5, 2.0}};
static const struct learner_result bare_result = {.key = KEY,
                                                  .buffer_id = "buffer_1"};
static const struct collector_ask ask = {
    .key = KEY, .policy_version = -1, .want = 3};
static const struct collector_data done = {
    .key = KEY,
    .buffer_id = "buffer_1",
    .is_info = true,
    .info = {.collector_done = true, .cur_episode = 1, .cur_sample = 2}};
static const struct learner_closed learner_closed = {.key = KEY,
                                                     .buffer_id = "buffer_1"};
static const struct collector_closed collector_closed = {.key = KEY,
                                                         .eval_flag = true,
                                                         .reward_mean = 9.25,
                                                         .step_count = 4,
                                                         .episode_count = 5,
                                                         .sample_count = 6,
                                                         .policy_version = 8};

/* Filled in by make_service_messages(). */
static struct collector_data data_example;
static struct sample brought[2];
static struct drawn_sample drawn[2];
static struct learner_batch batch = {.key = KEY, .n = 2, .items = drawn};

static inline void make_service_messages(void)
{
    data_example = (struct collector_data){
        .key = KEY, .buffer_id = "buffer_1", .n = 2, .samples = brought};
    brought[0] = sample_named("d.1");
    brought[1] = sample_named("d.2");
    for (size_t i = 0; i < 2; i++) {
        drawn[i] = (struct drawn_sample){.slot = (int64_t)i, .staleness = 2};
        sample_part(&brought[1], (int64_t)i, &drawn[i].sample);
        (void)snprintf(drawn[i].unique_id, sizeof drawn[i].unique_id,
                       "buffer_1_%zu", i);
    }
}

#endif
