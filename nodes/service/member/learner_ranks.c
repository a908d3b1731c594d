/* Learners that do a work together. Design notes:
 *
 * - The first rank holds the work, and speaks with the coordinator as if it
 *   were alone. It asks the others to join (learner_assist.c), and sends them
 *   what it goes on from; so all begin with the same bytes, wherever those came
 *   from.
 * - There are two groups. In the one the first rank says what is learned from
 *   next, as soon as it knows: each fetches and loads its share while the batch
 *   before is trained. The other is the learner threads': whether all have
 *   their shares, the gradients, and whether all weights are equal.
 * - A rank that is lost, that fails, or that is called away ends both groups
 * for all. Then the first one gives the work back, and the next attempt makes
 * new groups, which have names of their own: nothing of the old ones counts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "learner_parts.h"
#include "lockstep/log.h"
#include "policy_value.h"

/* How long another one is waited for: a connection may be cut for a moment. All
 * of them are asked in turn; then they meet. And what they do together is over
 * when one has not come by then. */
#define RECRUIT_MS 10000
#define MEET_MS    30000
#define STEP_MS    60000

/* The groups ---------------------------------------------------------------
 */

/* As long, unless a debugger is waited for. */
static int patience_ms(const struct learner_service *service, int by_default)
{
    const int patience = service->options.common.store_wait_ms;
    return patience > by_default ? patience : by_default;
}

bool ranks_are_several(const struct learner_service *service)
{
    return service->ranks.n > 1;
}

void ranks_leave(struct learner_service *service, int status)
{
    struct ranks *ranks = &service->ranks;
    ranks->left = true;
    if (ranks->steps != NULL)
        ls_group_leave(ranks->steps, status);
    if (ranks->commands != NULL)
        ls_group_leave(ranks->commands, status);
}

int ranks_open(struct learner_service *service)
{
    const struct learner_work *told = &service->told;
    struct ranks *ranks = &service->ranks;
    ls_node *node = service->options.common.node;
    uint32_t ids[SERVICE_RANKS_MAX];
    char name[64];
    ls_group *group;
    size_t own = 0;
    for (size_t i = 0; i < told->n_ranks; i++) {
        ids[i] = (uint32_t)told->ranks[i];
        if (ids[i] == ls_node_id(node))
            own = i;
    }
    ls_mutex_lock(&service->work.mutex);
    ranks->n = told->n_ranks;
    ranks->own = own;
    ls_mutex_unlock(&service->work.mutex);
    (void)snprintf(name, sizeof name, "learners.%" PRId64, told->key.attempt);
    const int status = ls_group_create(
        &group, node,
        &(struct ls_group_options){.name = name,
                                   .ids = ids,
                                   .n_ids = told->n_ranks,
                                   .on_loss = LS_ON_LOSS_FAIL,
                                   /* A simulation has none, and a group is but
                                    * for one attempt. */
                                   .room = LS_GROUP_ROOM_NEVER});
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&service->work.mutex);
    ranks->commands = group;
    ls_mutex_unlock(&service->work.mutex);
    return LS_OK;
}

/* Whoever called it away meanwhile has found no group to leave. */
static int check_left(struct learner_service *service)
{
    ls_mutex_lock(&service->work.mutex);
    const bool left = service->ranks.left;
    ls_mutex_unlock(&service->work.mutex);
    return left ? ls_error(LS_ECANCELED, "the work is over") : LS_OK;
}

int ranks_meet(struct learner_service *service)
{
    struct ranks *ranks = &service->ranks;
    const int wait_ms = patience_ms(service, MEET_MS);
    ls_group *steps = NULL;
    int status = check_left(service);
    if (status == LS_OK)
        status = ls_group_form(ranks->commands, wait_ms);
    if (status == LS_OK)
        status = check_left(service);
    if (status == LS_OK)
        status = ls_group_split(&steps, ranks->commands, 0, wait_ms);
    ls_mutex_lock(&service->work.mutex);
    ranks->steps = steps;
    ls_mutex_unlock(&service->work.mutex);
    if (status == LS_OK && service->options.ops->set_group != NULL)
        service->options.ops->set_group(service->options.self, steps);
    return status == LS_OK ? check_left(service) : status;
}

void ranks_close(struct learner_service *service)
{
    struct ranks *ranks = &service->ranks;
    ls_mutex_lock(&service->work.mutex);
    ls_group *steps = ranks->steps, *commands = ranks->commands;
    ranks->steps = ranks->commands = NULL;
    ranks->left = false;
    ranks->n = 1;
    ranks->own = 0;
    ls_mutex_unlock(&service->work.mutex);
    if (steps != NULL && service->options.ops->set_group != NULL)
        service->options.ops->set_group(service->options.self, NULL);
    if (ls_group_destroy(&steps) != LS_OK ||
        ls_group_destroy(&commands) != LS_OK)
        ls_log_error("learner: %s", ls_error_text());
}

/* What all begin with ------------------------------------------------------
 */

static int broadcast(struct learner_service *service, const char *name,
                     const void *data, size_t size,
                     struct ls_group_parts *parts)
{
    return ls_group_do(service->ranks.commands,
                       &(struct ls_group_operation){
                           .kind = LS_GROUP_BROADCAST,
                           .name = name,
                           .count = size,
                           .in = data,
                           .parts = parts,
                           .timeout_ms = patience_ms(service, STEP_MS)});
}

static int send_state(struct learner_service *service)
{
    struct snapshot now = {.weights.size = 0};
    struct ls_group_parts parts = {.n = 0};
    const void *data;
    size_t size;
    int status = snapshot_take(service, &now);
    ls_writer_clear(service->writer);
    policy_value_write(
        &(struct policy_value){.iter = service->iter, .weights = now.weights},
        service->writer);
    if (status == LS_OK)
        status = ls_writer_bytes(service->writer, &data, &size);
    if (status == LS_OK)
        status = broadcast(service, "weights", data, size, &parts);
    ls_group_parts_free(&parts);
    if (status == LS_OK)
        status = broadcast(service, "training", now.training.data,
                           now.training.size, &parts);
    ls_group_parts_free(&parts);
    snapshot_fini(&now);
    return status;
}

static int load_training(const struct learner_service *service,
                         const struct ls_group_part *part)
{
    const struct learner_ops *ops = service->options.ops;
    struct ls_bytes training = {.size = 0};
    if (part->size == 0 || ops->load_training == NULL)
        return LS_OK;
    int status = ls_bytes_set(&training, part->data, part->size);
    if (status == LS_OK)
        status = ops->load_training(service->options.self, &training);
    ls_bytes_clear(&training);
    return status;
}

int ranks_take_state(struct learner_service *service)
{
    const struct learner_ops *ops = service->options.ops;
    struct ls_group_parts weights = {.n = 0}, training = {.n = 0};
    struct policy_value value;
    int status = broadcast(service, "weights", NULL, 0, &weights);
    if (status == LS_OK)
        status = broadcast(service, "training", NULL, 0, &training);
    if (status == LS_OK)
        status = ops->reset(service->options.self);
    if (status == LS_OK)
        status = load_training(service, &training.items[0]);
    if (status == LS_OK)
        status = policy_value_load(&value, weights.items[0].data,
                                   weights.items[0].size, ops->load,
                                   service->options.self);
    if (status == LS_OK)
        service->iter = value.iter;
    if (status == LS_OK &&
        service->options.common.sabotage == SERVICE_SABOTAGE_OWN_WEIGHTS)
        status = ops->reset(service->options.self);
    ls_group_parts_free(&weights);
    ls_group_parts_free(&training);
    return status;
}

/* The first one asks the others ---------------------------------------------
 */

struct recruit {
    struct learner_service *service;
    ls_call *call;
    uint64_t news; /* that there were when it was made */
};

static void recruit_ended(void *self, ls_call *call)
{
    struct learner_service *service = self;
    (void)call;
    ls_mutex_lock(&service->work.mutex);
    service_work_changed(&service->work);
    ls_mutex_unlock(&service->work.mutex);
}

static bool has_ended(void *arg)
{
    const struct recruit *recruit = arg;
    return recruit->service->work.closing ||
           ls_call_state_is_end(ls_call_state(recruit->call));
}

static bool has_news(void *arg)
{
    const struct recruit *recruit = arg;
    return recruit->service->work.closing ||
           recruit->service->work.news != recruit->news;
}

/* Errors: those that end the run; LS_ECANCELED the work, or the task, ends;
 * LS_ETIMEDOUT. */
static int wait_for(struct recruit *recruit, bool (*ready)(void *arg),
                    int64_t until)
{
    struct learner_service *service = recruit->service;
    const int status =
        service_work_wait_until(&service->work, ready, recruit, until);
    if (status != LS_OK && status != LS_ETIMEDOUT)
        service->run_status = status;
    if (status != LS_OK)
        return status;
    return service_work_is_closing(&service->work) ||
                   ls_task_finishing(service->work.task)
               ? ls_error(LS_ECANCELED, "the work is over")
               : LS_OK;
}

static int end_of(const struct ls_call_result *result)
{
    if (result->state == LS_CALL_COMPLETED)
        return LS_OK;
    return ls_error(result->state == LS_CALL_LOST      ? LS_ELOST
                    : result->state == LS_CALL_TIMEOUT ? LS_ETIMEDOUT
                                                       : LS_EABORTED,
                    "%s", result->text);
}

/* Errors: LS_ENOENT, LS_ELOST it is not there now. */
static int ask_once(struct recruit *recruit, uint32_t id, int64_t until)
{
    struct learner_service *service = recruit->service;
    const struct service_options *common = &service->options.common;
    struct ls_call_options options = {.to = id,
                                      .channel = common->channel,
                                      .name = CALL_RANK_START,
                                      .timeout_ms =
                                          patience_ms(service, RECRUIT_MS),
                                      .ended = recruit_ended,
                                      .self = service};
    ls_writer_clear(service->writer);
    learner_work_write(&service->told, service->writer);
    int status = ls_writer_bytes(service->writer, &options.data, &options.size);
    if (status == LS_OK)
        status = ls_call_start(&recruit->call, common->calls, &options);
    if (status == LS_OK)
        status = wait_for(recruit, has_ended, until);
    if (status == LS_OK)
        status = end_of(ls_call_result(recruit->call));
    ls_call_destroy(&recruit->call);
    return status;
}

static int ask(struct learner_service *service, uint32_t id)
{
    struct recruit recruit = {.service = service};
    const int wait_ms = patience_ms(service, RECRUIT_MS);
    const int64_t until = ls_deadline(service->work.runtime, wait_ms);
    int status;
    for (;;) {
        ls_mutex_lock(&service->work.mutex);
        recruit.news = service->work.news;
        ls_mutex_unlock(&service->work.mutex);
        status = ask_once(&recruit, id, until);
        if (status != LS_ENOENT && status != LS_ELOST)
            return status;
        if (service->run_status != LS_OK)
            return status;
        status = wait_for(&recruit, has_news, until);
        if (status == LS_ETIMEDOUT)
            return ls_error(status, "it was not there within %d ms", wait_ms);
        if (status != LS_OK)
            return status;
    }
}

int ranks_begin(struct learner_service *service)
{
    const struct learner_work *told = &service->told;
    if (told->n_ranks == 0)
        return LS_OK;
    ls_mutex_lock(&service->work.mutex);
    service->ranks.left = service->work.closing;
    ls_mutex_unlock(&service->work.mutex);
    int status = ranks_open(service);
    for (size_t i = 1; i < told->n_ranks && status == LS_OK; i++) {
        status = ask(service, (uint32_t)told->ranks[i]);
        if (status != LS_OK)
            (void)ls_error_at(status, "rank %zu, node %" PRId64, i,
                              told->ranks[i]);
    }
    if (status == LS_OK)
        status = ranks_meet(service);
    if (status == LS_OK)
        status = send_state(service);
    if (status == LS_OK)
        ls_log_info("learner: work %s, attempt %" PRId64
                    ", is done by %zu ranks",
                    told->key.task_id, told->key.attempt, told->n_ranks);
    return status;
}

/* A batch of all ------------------------------------------------------------
 */

/* The batch, as it came. */
void ranks_tell(struct learner_service *service, struct batch *batch,
                const void *data, size_t size)
{
    int status = ls_bytes_set(&batch->words, data, size);
    if (status == LS_OK)
        status = ls_group_start(
            &batch->telling, service->ranks.commands,
            &(struct ls_group_operation){.kind = LS_GROUP_BROADCAST,
                                         .name = "batch",
                                         .count = size,
                                         .in = batch->words.data,
                                         .parts = &batch->told_parts,
                                         .timeout_ms = RANKS_IDLE_MS});
    if (status != LS_OK)
        ranks_leave(service, status); /* which its learner thread finds */
}

static int gather(struct learner_service *service, const char *name,
                  const void *own, size_t size, void *all)
{
    return ls_group_do(service->ranks.steps,
                       &(struct ls_group_operation){.kind = LS_GROUP_ALL_GATHER,
                                                    .name = name,
                                                    .count = size,
                                                    .in = own,
                                                    .out = all});
}

int ranks_agree(struct learner_service *service, int own, size_t *who,
                int *status)
{
    int32_t all[SERVICE_RANKS_MAX];
    const int32_t mine = own;
    const int gathered = gather(service, "shares", &mine, sizeof mine, all);
    *status = LS_OK;
    for (size_t i = 0; i < service->ranks.n && gathered == LS_OK; i++)
        if (all[i] != LS_OK && *status == LS_OK) {
            *status = all[i];
            *who = i;
        }
    return gathered;
}

static int check_equal(const struct learner_service *service, uint64_t first,
                       uint64_t other, size_t rank)
{
    const struct learner_work *told = &service->told;
    return first == other || service->options.common.sabotage ==
                                 SERVICE_SABOTAGE_OWN_WEIGHTS
               ? LS_OK
               : ls_error(LS_EMISMATCH,
                          "rank %zu, node %" PRId64 ", has other weights than "
                          "rank 0, node %" PRId64 ": the plugin's learn() "
                          "changes them by more than what all ranks share, or "
                          "their machines round differently",
                          rank, told->ranks[rank], told->ranks[0]);
}

static void watch_weights(const struct learner_service *service,
                          const struct batch *batch, uint64_t hash)
{
    const struct service_watch *watch = service->options.common.watch;
    if (watch != NULL && batch->has_weights)
        watch->stepped(watch->self, &service->told.key, batch->iter, hash);
}

/* What each rank brings: a hash, and the priorities of its share. */
int ranks_compare(struct learner_service *service, struct batch *batch)
{
    const struct ls_bytes *weights = &batch->after.weights;
    const size_t share = batch->n_own;
    const size_t size = sizeof(uint64_t) + share * sizeof(double);
    unsigned char *own = malloc(size), *all = malloc(size * service->ranks.n);
    uint64_t hash =
        batch->has_weights ? XXH3_64bits(weights->data, weights->size) : 0;
    int status = own == NULL || all == NULL
                     ? ls_error(LS_ENOMEM, "the results of all ranks")
                     : LS_OK;
    watch_weights(service, batch, hash);
    if (status == LS_OK) {
        memcpy(own, &hash, sizeof hash);
        memcpy(own + sizeof hash, batch->priorities + batch->first,
               share * sizeof(double));
        status = gather(service, "weights", own, size, all);
    }
    for (size_t i = 0; i < service->ranks.n && status == LS_OK; i++) {
        const unsigned char *at = all + i * size;
        uint64_t first, other;
        memcpy(&first, all, sizeof first);
        memcpy(&other, at, sizeof other);
        memcpy(batch->priorities + i * share, at + sizeof other,
               share * sizeof(double));
        status = check_equal(service, first, other, i);
    }
    free(own);
    free(all);
    return status;
}
