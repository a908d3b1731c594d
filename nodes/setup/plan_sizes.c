#include "plan_sizes.h"

#include <inttypes.h>
#include <math.h>

#include "lockstep/call.h"

#define MIB ((uint64_t)1 << 20)

/* In the store at a time: that of the learner, the one that takes its place,
 * the one that was evaluated and the one that is being. */
#define POLICIES 4
/* And of what training goes on from: that of the last two versions, and the one
 * that takes the place of one. */
#define TRAININGS 3
/* Of a collector, beside those that it has made ahead: the one that it puts
 * into the store, the one that waits for its turn, and the last, of which
 * another part may come. */
#define UNDER_WAY 3
/* Beside the trajectories and the policy in a message. */
#define MESSAGE_OVERHEAD 4096

/* The largest message between nodes. */
static uint64_t most_of_message(const struct plan *plan)
{
    struct ls_node_options options;
    plan_node_options(plan, &options);
    return options.max_payload_bytes - MESSAGE_OVERHEAD;
}

static ls_config_section *section_of(const struct plan *plan, const char *name)
{
    return ls_config_section_at(ls_config_root(plan->config), name);
}

static void check_policy(const struct plan *plan, const char *what,
                         uint64_t size, uint64_t most)
{
    if (size > most)
        ls_config_problem(ls_config_root(plan->config), "policy",
                          "%s has %" PRIu64 " bytes, and is sent in one "
                          "message of at most %" PRIu64 ": make it smaller%s",
                          what, size, most,
                          plan_is_service(plan)
                              ? ", or say coordinator.data: {store: files}"
                              : "");
}

/* A collector sends what it has collected in an iteration as one message. */
static void check_iteration(const struct plan *plan, uint64_t most)
{
    const uint64_t all = plan->envs * plan->sizes.sample;
    if (all > most)
        ls_config_problem(section_of(plan, "collector"), "steps",
                          "a collector sends %zu steps of each of %zu "
                          "environments in one message: %" PRIu64
                          " bytes, and it takes %" PRIu64
                          ": lower collector.steps or collector.envs",
                          plan->steps, plan->envs, all, most);
}

static void check_sample(const struct plan *plan, uint64_t most)
{
    ls_config_section *section = section_of(plan, "coordinator");
    const bool has_unroll = ls_config_has(section, "unroll");
    if (plan->sizes.sample > most)
        ls_config_problem(
            has_unroll ? section : section_of(plan, "collector"),
            has_unroll ? "unroll" : "steps",
            "a sample of %" PRId64 " steps has %" PRIu64
            " bytes, and the store takes %" PRIu64 " at most: lower %s%s",
            plan->service.fsm.unroll_len, plan->sizes.sample, most,
            has_unroll ? "coordinator.unroll" : "collector.steps",
            plan->service.store == PLAN_STORE_BUS
                ? ", or say coordinator.data: {store: files}"
                : "");
}

/* Data that so many samples refer to. */
static uint64_t data_of(const struct plan_service *service, double samples)
{
    return (uint64_t)ceil(samples / (double)service->fsm.split);
}

/* What the store holds beside the samples of the replay buffer, and the fewest
 * of them with which the job goes on. */
static void check_store(struct plan *plan)
{
    const struct plan_service *service = &plan->service;
    const struct fsm_options *fsm = &service->fsm;
    const uint64_t sample = plan->sizes.sample;
    const uint64_t room = (uint64_t)service->max_mib * MIB;
    const uint64_t made =
        plan_count(plan, PLAN_COLLECTOR) * (uint64_t)(fsm->ahead + UNDER_WAY);
    const uint64_t policies =
        POLICIES * plan->sizes.policy + TRAININGS * plan->sizes.training;
    const uint64_t beside = policies + made * sample;
    const double least =
        fmax(fsm->replay.min_valid_ratio * (double)fsm->batch_size,
             (double)fsm->replay.min_size_to_sample);
    /* And one whose data is being dropped. */
    const int64_t batches = plan_learner_batches(plan) + 1;
    const uint64_t kept = data_of(service, least) +
                          data_of(service, (double)(batches * fsm->batch_size));
    const uint64_t needed = beside + kept * sample;
    if (needed <= room) {
        plan->sizes.replay = room - beside;
        return;
    }
    ls_config_problem(
        ls_config_section_at(section_of(plan, "coordinator"), "data"),
        "max_mib",
        "the store has room for %" PRId64 " MiB, and %" PRIu64
        " are needed: %" PRIu64
        " for what a learner has and waits for (%" PRIu64 " of %" PRIu64
        " bytes), %" PRIu64 " for what collectors have ready, %" PRIu64
        " for policies: raise coordinator.data.max_mib, or lower "
        "coordinator.batch, coordinator.replay.min_size or the steps of a "
        "sample",
        service->max_mib, (needed + MIB - 1) / MIB,
        (kept * sample + MIB - 1) / MIB, kept, sample,
        (made * sample + MIB - 1) / MIB, (policies + MIB - 1) / MIB);
}

static void check_service(struct plan *plan)
{
    const uint64_t most = LS_CALL_BODY_BYTES;
    if (plan->service.store == PLAN_STORE_FILES) {
        check_sample(plan, TRAJECTORY_VALUE_MAX);
        return;
    }
    check_policy(plan, "the policy", plan->sizes.policy, most);
    check_policy(plan, "its training state", plan->sizes.training, most);
    check_sample(plan, most);
    if (plan->sizes.policy <= most && plan->sizes.training <= most &&
        plan->sizes.sample <= most)
        check_store(plan);
}

int plan_read_sizes(struct plan *plan, struct agent *agent)
{
    struct ls_bytes policy = {.data = NULL}, training = {.data = NULL};
    const uint64_t most = most_of_message(plan);
    const bool serves = plan_is_service(plan);
    int status = agent_save(agent, &policy);
    if (status == LS_OK && serves && agent->plugin->policy->n_parts > 0)
        status = agent_save_training(agent, &training);
    const uint64_t sizes[] = {policy.size, training.size};
    ls_bytes_clear(&policy);
    ls_bytes_clear(&training);
    if (status != LS_OK)
        return status;
    const size_t parts = serves ? (size_t)plan->service.fsm.split : 1;
    const struct trajectory_shape shape = agent_shape(
        agent,
        (serves ? (size_t)plan->service.fsm.unroll_len : plan->steps) / parts);
    plan->sizes =
        (struct plan_sizes){.sample = parts * trajectory_value_bytes(&shape),
                            .policy = sizes[0],
                            .training = sizes[1]};
    if (serves) {
        check_service(plan);
        return LS_OK;
    }
    check_policy(plan, "the policy", plan->sizes.policy, most);
    check_iteration(plan, most);
    return LS_OK;
}
