#include "plan_service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

/* A batch is told of in one call: service/messages.h. */
#define BATCH_MAX   256
#define UNROLL_MAX  (1 << 20)
#define SECONDS_MAX 86400.0

const char *const plan_store_names[] = {"bus", "files", NULL};
static const char *const replay_names[] = {
    [REPLAY_PRIORITY] = "priority", [REPLAY_FIFO] = "fifo", NULL};

const char *plan_replay_name(const struct plan *plan)
{
    return replay_names[plan->service.fsm.replay.mode];
}

static int64_t read_seconds(ls_config_section *section, const char *key,
                            double by_default, double least)
{
    return (int64_t)(ls_config_double(section, key, by_default, least,
                                      SECONDS_MAX) *
                     (double)LS_NS_PER_S);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* As many samples as all environments together bring in one go, and as can be
 * shared evenly. */
static int64_t natural_batch(const struct plan *plan)
{
    const size_t all = plan_count(plan, PLAN_COLLECTOR) * plan->envs;
    const int64_t ranks = (int64_t)plan_ranks(plan);
    const int64_t most = smaller((int64_t)all, BATCH_MAX);
    return most < ranks ? ranks : most - most % ranks;
}

static void read_work(struct plan *plan, ls_config_section *section)
{
    struct fsm_options *fsm = &plan->service.fsm;
    fsm->iterations = ls_config_int(section, "iterations", 0, 0, INT32_MAX);
    fsm->eval_interval = read_seconds(section, "eval_interval_s", 60.0, 0.0);
    fsm->batch_size =
        ls_config_int(section, "batch", natural_batch(plan), 1, BATCH_MAX);
    if (fsm->batch_size % (int64_t)plan_ranks(plan) != 0)
        ls_config_problem(section, "batch",
                          "%lld samples cannot be shared evenly by %zu ranks",
                          (long long)fsm->batch_size, plan_ranks(plan));
    fsm->samples_per_work = ls_config_int(
        section, "samples_per_work", 4 * (int64_t)plan->envs, 0, INT32_MAX);
    fsm->unroll_len =
        ls_config_int(section, "unroll", (int64_t)plan->steps, 1, UNROLL_MAX);
    fsm->split = ls_config_int(section, "split", 1, 1, BATCH_MAX);
    if (fsm->samples_per_work == 0 && plan_count(plan, PLAN_COLLECTOR) < 2)
        ls_config_problem(section, "samples_per_work",
                          "0 has collectors keep their works, and one of them "
                          "evaluates: that takes two; say how many samples, "
                          "and a single one does both by turns");
    if (fsm->unroll_len % fsm->split != 0)
        ls_config_problem(section, "split",
                          "samples of %lld steps cannot be cut into %lld parts "
                          "of the same length",
                          (long long)fsm->unroll_len, (long long)fsm->split);
    fsm->ahead = ls_config_int(section, "ahead", 1, 1, 60);
    fsm->send_policy_freq =
        ls_config_int(section, "send_policy_freq", 1, 1, INT32_MAX);
    fsm->send_info_freq =
        ls_config_int(section, "send_info_freq", 100, 1, INT32_MAX);
}

static void read_assignment(struct plan *plan, ls_config_section *section)
{
    struct plan_service *service = &plan->service;
    if (plan->nodes[plan->first].on_loss != PLAN_RESTART &&
        ls_config_has(section, "patience_s"))
        ls_config_problem(section, "patience_s",
                          "patience_s goes with on_loss: restart of the "
                          "coordinator, for which members wait; here it is %s",
                          plan_on_loss_names[plan->nodes[plan->first].on_loss]);
    service->patience_s =
        ls_config_double(section, "patience_s", 60.0, 0.001, SECONDS_MAX);
    service->journal = ls_config_bool(section, "journal", true);
    struct fsm_options *fsm = &service->fsm;
    fsm->learner_expiry =
        read_seconds(section, "learner_expiry_s", 600.0, 0.001);
    fsm->collector_expiry =
        read_seconds(section, "collector_expiry_s", 30.0, 0.001);
    fsm->retry = read_seconds(section, "retry_s", 3.0, 0.001);
    service->channel = ls_config_int(section, "channel", 1, 1, UINT32_MAX);
}

static void read_replay(struct fsm_options *fsm, ls_config_section *section)
{
    struct replay_options *replay = &fsm->replay;
    replay->mode = (enum replay_mode)ls_config_choice(
        section, "mode", REPLAY_FIFO, replay_names);
    replay->capacity =
        (size_t)ls_config_int(section, "capacity", 4096, 1, 1 << 24);
    replay->min_size_to_sample =
        (size_t)ls_config_int(section, "min_size", 1, 1, 1 << 24);
    replay->samples_per_insert =
        ls_config_double(section, "samples_per_insert", 0.0, 0.0, 1e6);
    replay->error_buffer =
        ls_config_double(section, "error_buffer", 0.0, 0.0, 1e12);
    replay->staleness_limit =
        ls_config_int(section, "max_staleness", 0, 0, INT32_MAX);
    replay->max_times_sampled =
        (uint64_t)ls_config_int(section, "max_times_sampled", 0, 0, INT32_MAX);
    replay->min_valid_ratio =
        ls_config_double(section, "valid_ratio", 1.0, 1.0, 1e6);

    if (replay->samples_per_insert == 0.0 &&
        ls_config_has(section, "error_buffer"))
        ls_config_problem(section, "error_buffer",
                          "error_buffer goes with samples_per_insert, which "
                          "is 0 here: nothing limits how often is sampled");
    const double least =
        ((double)fsm->batch_size + replay->samples_per_insert) / 2.0;
    const long long capacity = (long long)replay->capacity;
    if (capacity < fsm->batch_size)
        ls_config_problem(section, "capacity",
                          "%lld is less than one batch of %lld samples",
                          capacity, (long long)fsm->batch_size);
    else if (replay->min_valid_ratio * (double)fsm->batch_size >
             (double)capacity)
        ls_config_problem(section, "valid_ratio",
                          "%g times a batch of %lld never are there: the "
                          "capacity is %lld",
                          replay->min_valid_ratio, (long long)fsm->batch_size,
                          capacity);
    if (replay->min_size_to_sample > replay->capacity)
        ls_config_problem(section, "min_size",
                          "%lld never are there: the capacity is %lld",
                          (long long)replay->min_size_to_sample, capacity);
    if (replay->error_buffer > 0.0 && replay->samples_per_insert > 0.0 &&
        replay->error_buffer < least)
        ls_config_problem(section, "error_buffer",
                          "under %g both collecting and learning could wait "
                          "for ever",
                          least);
}

/* NULL: no memory. */
static char *make_folder(const struct plan *plan, const char *at,
                         const char *name, const char *tag)
{
    const size_t size = strlen(plan->folder) + strlen(at) + strlen(plan->job) +
                        strlen(name) + strlen(tag) + 4;
    char *path = malloc(size);
    if (path == NULL)
        return NULL;
    if (at[0] != '\0') /* others may use it, too */
        (void)snprintf(path, size, "%s/%s.%s", at, plan->job, tag);
    else
        (void)snprintf(path, size, "%s/%s", plan->folder, name);
    return path;
}

int plan_set_service_folders(struct plan *plan, const char *tag)
{
    struct plan_service *service = &plan->service;
    char *data = make_folder(plan, service->data_at, "data", tag);
    char *policy = make_folder(plan, service->policy_at, "policy", tag);
    if (data == NULL || policy == NULL) {
        free(data);
        free(policy);
        return ls_error(LS_ENOMEM, "the folders of a run");
    }
    plan_fini_service(service);
    service->path_data = data;
    service->path_policy = policy;
    return LS_OK;
}

static void read_data(struct plan *plan, ls_config_section *section)
{
    struct plan_service *service = &plan->service;
    service->store = (enum plan_store)ls_config_choice(
        section, "store", PLAN_STORE_BUS, plan_store_names);
    static const char *const keys[] = {"path_data", "path_policy", "max_mib",
                                       "home"};
    for (size_t i = 0; i < 4; i++) {
        const bool of_files = i < 2;
        if (of_files != (service->store == PLAN_STORE_FILES) &&
            ls_config_has(section, keys[i]))
            ls_config_problem(
                section, keys[i], "%s goes with store: %s; here it is %s",
                keys[i],
                plan_store_names[of_files ? PLAN_STORE_FILES : PLAN_STORE_BUS],
                plan_store_names[service->store]);
    }
    service->fsm.data_stays = service->store == PLAN_STORE_FILES;
    service->max_mib = ls_config_int(section, "max_mib", 256, 1, 1 << 20);
    service->data_at = ls_config_string(section, "path_data", "");
    service->policy_at = ls_config_string(section, "path_policy", "");
    struct fsm_options *fsm = &service->fsm;
    fsm->data_elsewhere = ls_config_has(section, "home");
    if (!fsm->data_elsewhere)
        return;
    fsm->data_home = (uint32_t)ls_config_int(section, "home", 0, 0, UINT32_MAX);
    size_t index;
    if (plan_find(plan, fsm->data_home, &index) != LS_OK)
        ls_config_problem(section, "home", "there is no node %" PRIu32,
                          fsm->data_home);
    else if (index != plan->first && plan->nodes[index].on_loss == PLAN_RESTART)
        ls_config_problem(section, "home",
                          "node %" PRIu32 " may be started again, and has "
                          "forgotten all data then: say the coordinator, or a "
                          "node whose on_loss is not restart",
                          fsm->data_home);
}

/* Each life reads all that there is. */
#define REPLAY_KEPT_MAX 1000000

static void read_kept(struct plan *plan, ls_config_section *section)
{
    struct plan_service *service = &plan->service;
    service->fsm.keeps_samples = ls_config_bool(section, "replay", false);
    if (!service->fsm.keeps_samples)
        return;
    if (service->store != PLAN_STORE_FILES)
        ls_config_problem(section, "replay",
                          "with coordinator.data.store: bus the samples stay "
                          "with the collectors that made them, and end with "
                          "them; say coordinator.data.store: files");
    if (!service->journal)
        ls_config_problem(section, "replay",
                          "the buffer is kept in the journal, and "
                          "coordinator.journal is false");
    if (service->fsm.replay.capacity > REPLAY_KEPT_MAX)
        ls_config_problem(section, "replay",
                          "a buffer of up to %d samples is kept; "
                          "coordinator.replay.capacity is %zu",
                          REPLAY_KEPT_MAX, service->fsm.replay.capacity);
}

void plan_read_service(struct plan *plan, ls_config_section *root)
{
    ls_config_section *section = ls_config_section_at(root, "coordinator");
    if (!plan_is_service(plan))
        return;
    read_work(plan, section);
    read_assignment(plan, section);
    read_replay(&plan->service.fsm, ls_config_section_at(section, "replay"));
    read_data(plan, ls_config_section_at(section, "data"));
    read_kept(plan, ls_config_section_at(root, "checkpoint"));
}

void plan_fini_service(struct plan_service *service)
{
    free(service->path_data);
    free(service->path_policy);
}

int64_t plan_learner_batches(const struct plan *plan)
{
    const size_t n = plan->learner.stacks + plan->learner.queue;
    return n > 2 ? (int64_t)n : 2;
}

int64_t plan_samples_kept(const struct plan *plan)
{
    const struct fsm_options *fsm = &plan->service.fsm;
    const uint64_t capacity = fsm->replay.capacity;
    if (plan->sizes.replay == 0)
        return (int64_t)capacity;
    const uint64_t room =
        plan->sizes.replay / plan->sizes.sample * (uint64_t)fsm->split;
    return (int64_t)(room < capacity ? room : capacity);
}

void plan_coordinator_options(const struct plan *plan, struct fsm_options *out)
{
    *out = plan->service.fsm;
    out->stop_value = plan->solved;
    out->eval_episodes = (int64_t)plan->episodes;
    out->max_env_steps = plan->stop_env_step;
    out->max_time = (int64_t)(60.0 * plan->stop_minutes * (double)LS_NS_PER_S);
    out->learner_batches = plan_learner_batches(plan);
    out->ranks = (int64_t)plan_ranks(plan);
    out->call_timeout = plan->patience_ms * LS_NS_PER_MS;
    out->work_timeout = plan->world.step_timeout_ms * LS_NS_PER_MS;
    out->seed = plan->seed;
    out->replay.max_bytes = plan->sizes.replay;
}
