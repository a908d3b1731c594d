/* The coordinator of a service job: coordinator.h with the settings of a plan,
 * telling how it goes, and keeping the weights that came of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/file.h"
#include "lockstep/log.h"
#include "lockstep/middleware.h"

#include "agent.h"
#include "coordinator.h"
#include "policy_value.h"
#include "service_node.h"
#include "store_files.h"
#include "weights.h"
#include "work_service.h"

struct work {
    struct service_node base;
    struct agent agent;       /* own; for the weights */
    coordinator *coordinator; /* own */
    bool listens;             /* to losses */
    bool done;                /* nobody will go on with this job */
    char weights[REPORT_PATH_MAX];
    char unsaved[REPORT_UNSAVED_MAX];
    struct learner_info info; /* the last one that came */
};

static void destroy(void *work)
{
    struct work *self = work;
    agent_fini(&self->agent);
    free(self);
}

/* Whether a life before this one has said what it left. */
static bool has_journal(const struct plan *plan)
{
    char journal[REPORT_PATH_MAX];
    return plan->service.journal &&
           service_node_journal(plan, journal, sizeof journal) == LS_OK &&
           ls_file_exists(journal);
}

static int create(void **out, const struct work_options *options)
{
    struct work *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "the work of a coordinator");
    service_node_init(&self->base, options);
    int status = agent_init(&self->agent, options->plugin, options->plan,
                            options->plan->nodes[options->index].id,
                            options->generation, 1);
    if (status != LS_OK) {
        free(self);
        return status;
    }
    const bool goes_on = has_journal(options->plan);
    if (!goes_on)
        status = service_node_clear(options->plan);
    else if (!options->plan->service.fsm.keeps_samples)
        status = service_node_clear_data(options->plan);
    if (status != LS_OK) {
        destroy(self);
        return status;
    }
    weights_tidy(options->plan->folder);
    *out = self;
    return LS_OK;
}

/* How it goes ------------------------------------------------------------ */

static void fill(struct work *self, struct report *out)
{
    struct fsm_figures figures;
    coordinator_figures(self->coordinator, &figures);
    out->iteration = figures.learner_step;
    out->train_iter = figures.learner_step;
    out->env_step = figures.env_steps;
    out->samples = figures.samples;
    out->infos = figures.infos;
    out->done_infos = figures.done_infos;
    out->batches = figures.batches;
    out->requeued = figures.requeued;
    out->refused_starts = figures.refused_starts;
    out->expired = figures.expired;
    out->refused_data = figures.refused_data;
    out->pushed_out = (int64_t)figures.replay.evicted_bytes;
    out->evicted_stale = (int64_t)figures.replay.evicted_stale;
    out->evicted_full = (int64_t)figures.replay.evicted_overflow;
    out->evicted_lost = (int64_t)figures.replay.evicted_lost;
    out->late_samples = figures.late_data;
    out->priorities = (int64_t)figures.replay.updates;
    out->priorities_refused = (int64_t)figures.replay.updates_refused;
    out->staleness_max = figures.replay.staleness_max;
    if (figures.replay.sampled > 0)
        out->staleness = figures.replay.staleness_mean;
    if (isfinite(figures.eval_value))
        out->eval_value = figures.eval_value;
}

static void on_info(void *work, const struct learner_info *info)
{
    struct work *self = work;
    self->info = *info;
}

static void tell(struct work *self, struct report *report)
{
    fill(self, report);
    self->base.sink.put(self->base.sink.self, report);
}

static struct report report_from(const struct work *self, enum report_kind kind)
{
    return report_of(self->base.plan->nodes[self->base.index].id, kind);
}

static void on_progress(void *work, const struct ls_progress_report *progress)
{
    struct work *self = work;
    struct report report = report_from(self, REPORT_PROGRESS);
    (void)progress;
    tell(self, &report);
}

static void on_evaluated(void *work, double value, int64_t version)
{
    struct work *self = work;
    struct report report = report_from(self, REPORT_EVALUATION);
    (void)version;
    report.episodes = (int64_t)self->base.plan->episodes;
    fill(self, &report);
    report.eval_value = value;
    self->base.sink.put(self->base.sink.self, &report);
}

/* What came of it -------------------------------------------------------- */

static int save_policy(struct work *self, const struct policy_value *value)
{
    const struct plan *plan = self->base.plan;
    struct fsm_figures figures;
    coordinator_figures(self->coordinator, &figures);
    const struct weights_note note = {
        .seed = plan->seed,
        .iteration = policy_value_iterations(value),
        .train_iter = policy_value_iterations(value),
        .env_step = figures.env_steps};
    const int status = agent_load(&self->agent, &value->weights);
    return status == LS_OK ? weights_save(&self->agent, &note, false,
                                          plan->folder, WEIGHTS_FINAL,
                                          self->weights, sizeof self->weights)
                           : status;
}

static int keep_policy(struct work *self, const struct coordinator_end *end)
{
    struct policy_value value;
    int status = policy_value_read(&value, end->policy, end->policy_size);
    if (status != LS_OK)
        return status;
    status = save_policy(self, &value);
    ls_bytes_clear(&value.weights);
    return status;
}

/* Nobody has learned any, or a life before this one has kept it. */
static int find_policy(struct work *self, const struct coordinator_end *end)
{
    weights_find(self->base.plan->folder, WEIGHTS_FINAL, self->weights,
                 sizeof self->weights);
    if (self->weights[0] != '\0' || end->policy_status == LS_OK)
        return LS_OK;
    if (end->status == LS_OK)
        return ls_error(end->policy_status, "there is no policy: %s",
                        end->policy_text);
    ls_log_warn("coordinator: there is no policy: %s", end->policy_text);
    return LS_OK;
}

/* Whatever ended the job, what was learned is worth having. */
static int on_ended(void *work, const struct coordinator_end *end)
{
    struct work *self = work;
    const int status =
        end->policy != NULL ? keep_policy(self, end) : find_policy(self, end);
    if (status != LS_OK)
        (void)snprintf(self->unsaved, sizeof self->unsaved, "%s",
                       ls_error_text());
    /* What was not saved the next life saves. */
    self->done = end->status == LS_OK && status == LS_OK;
    return status;
}

/* Ends ------------------------------------------------------------------- */

/* Losses are the coordinator's business, but for nodes that the plan does not
 * let anyone lose. */
static void on_member(void *work, const struct ls_member *member)
{
    struct work *self = work;
    size_t index;
    char text[128];
    const bool lost =
        member->state == LS_MEMBER_LOST ||
        (member->state == LS_MEMBER_LEFT && member->reason != LS_OK);
    if (!lost || plan_find(self->base.plan, member->id, &index) != LS_OK)
        return;
    const struct plan_node *node = &self->base.plan->nodes[index];
    if (node->on_loss != PLAN_FAIL || ls_task_finishing(self->base.task))
        return;
    (void)snprintf(text, sizeof text, "node %u (%s) was lost",
                   (unsigned)node->id, plan_role_names[node->role]);
    coordinator_stop(self->coordinator, LS_ELOST, text);
}

/* The node --------------------------------------------------------------- */

static int create_coordinator(struct work *self)
{
    const struct plan *plan = self->base.plan;
    char journal[REPORT_PATH_MAX];
    struct coordinator_options options = {
        .calls = self->base.calls,
        .store = self->base.store,
        .policies = plan->service.path_policy,
        .journal = plan->service.journal ? journal : NULL,
        .channel = plan_channel(plan),
        .kinds = fsm_kinds,
        .each_data = store_files_each,
        .watch = self->base.watch,
        .evaluated = on_evaluated,
        .info = on_info,
        .ended = on_ended,
        .self = self};
    const int status = service_node_journal(plan, journal, sizeof journal);
    if (status != LS_OK)
        return status;
    plan_coordinator_options(plan, &options.fsm);
    return coordinator_create(&self->coordinator, &options);
}

static int use(void *work, ls_task *task, ls_rpc *calls)
{
    struct work *self = work;
    int status = service_node_open(&self->base, task, calls);
    if (status == LS_OK)
        status = create_coordinator(self);
    if (status != LS_OK)
        return status;
    (void)ls_task_use(task, ls_mw_progress(task, &(struct ls_progress_options){
                                                     .interval_ms = 200,
                                                     .sink = on_progress,
                                                     .self = self}));
    status = coordinator_use(self->coordinator, task);
    if (status == LS_OK)
        status = ls_node_on_member(ls_task_node(task), on_member, self);
    self->listens = status == LS_OK;
    return status;
}

static int run(void *work)
{
    struct work *self = work;
    const int status = service_node_run(&self->base);
    /* Who took this node for dead at the very end takes nothing from what was
     * done; begun again, it would do all of it once more. */
    if (status != LS_ELOST || !self->done)
        return status;
    ls_log_info("coordinator: the job is done all the same: %s",
                ls_error_text());
    return LS_OK;
}

static void report(void *work, struct report *out)
{
    struct work *self = work;
    (void)snprintf(out->weights, sizeof out->weights, "%s", self->weights);
    (void)snprintf(out->unsaved, sizeof out->unsaved, "%s", self->unsaved);
    service_node_values(out, &self->info);
    if (self->coordinator == NULL)
        return;
    fill(self, out);
    service_node_count(&self->base, &(struct service_figures){.works = 0}, out);
}

static void leave(void *work)
{
    struct work *self = work;
    if (self->listens &&
        ls_node_on_member(ls_task_node(self->base.task), NULL, self) == LS_OK)
        self->listens = false;
}

static void close_coordinator(void *work)
{
    struct work *self = work;
    coordinator_destroy(&self->coordinator);
    service_node_close(&self->base);
    /* A life that was killed may have left what no other knows of. */
    if (self->done && service_node_clear(self->base.plan) != LS_OK)
        ls_log_warn("something stays: %s", ls_error_text());
}

const struct work_kind work_coordinator = {.create = create,
                                           .use = use,
                                           .run = run,
                                           .report = report,
                                           .leave = leave,
                                           .close = close_coordinator,
                                           .destroy = destroy,
                                           .idle_step = COORDINATOR_IDLE_STEP};
