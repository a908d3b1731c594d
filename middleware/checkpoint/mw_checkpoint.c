/* The step that saves the nodes that are in step.
 *
 * Whether an iteration ends with a save, all nodes learn from the barrier, with
 * the wishes of each (task.h). So each stands still at the end of that very
 * iteration until its blobs are copied or written; nobody has to be stopped. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_step_inside.h"
#include "lockstep/log.h"

#define DEFAULT_TIMEOUT_MS (10 * 60 * 1000)
#define PLACE_QUESTIONS    5 /* that the one that leads asks at one place */

int64_t *step_total(ls_checkpoint_step *self)
{
    ls_context *context = ls_task_context(self->task);
    return (int64_t *)((char *)ls_context_data(context) +
                       ls_context_type_of(context)->fields[0].offset);
}

int step_patience_ms(const ls_checkpoint_step *self)
{
    const int most = INT_MAX / PLACE_QUESTIONS;
    return self->options.timeout_ms < most
               ? PLACE_QUESTIONS * self->options.timeout_ms
               : INT_MAX;
}

/* ---- standing still ---------------------------------------------------- */

void step_stand(ls_checkpoint_step *self, int64_t epoch)
{
    ls_mutex_lock(&self->asker.mutex);
    self->stands = true;
    self->stands_at = epoch;
    if (epoch == LS_CHECKPOINT_NONE) {
        self->begun++;
        self->over_at = LS_CHECKPOINT_NONE; /* it may be of an earlier run */
    }
    /* One that was given up does not wait for those who come late. */
    self->released = epoch != LS_CHECKPOINT_NONE && epoch <= self->over_at;
    self->unready.status = LS_OK;
    ls_cond_broadcast(&self->asker.cond);
    ls_mutex_unlock(&self->asker.mutex);
}

void step_go_on(ls_checkpoint_step *self)
{
    ls_mutex_lock(&self->asker.mutex);
    self->stands = false;
    while (self->moving)
        asker_wait(&self->asker);
    ls_mutex_unlock(&self->asker.mutex);
}

int step_wait(ls_checkpoint_step *self, const bool *flag, const bool *other,
              struct ls_due *due)
{
    int status = LS_OK;
    do {
        if ((flag != NULL && *flag) || (other != NULL && *other))
            return LS_OK;
        status = ls_task_cancelled(self->task);
        if (status == LS_OK)
            status =
                ls_cond_wait(&self->asker.cond, &self->asker.mutex, due->at);
        if (status == LS_ETIMEDOUT && !ls_due_has_passed(self->node, due))
            status = LS_OK;
    } while (status == LS_OK && flag != NULL);
    return status;
}

static void wake(ls_checkpoint_step *self)
{
    ls_mutex_lock(&self->asker.mutex);
    ls_cond_broadcast(&self->asker.cond);
    ls_mutex_unlock(&self->asker.mutex);
}

static void on_cancel(void *self, int status)
{
    (void)status;
    wake(self);
}

static void on_member(void *arg, const struct ls_member *member)
{
    ls_checkpoint_step *self = arg;
    const bool gone =
        member->state == LS_MEMBER_LOST || member->state == LS_MEMBER_LEFT;
    ls_mutex_lock(&self->asker.mutex);
    /* That its next life is there is of no use to who is led by this one. */
    self->leader_lost =
        self->leader_lost || (gone && member->id == self->saves.leader);
    /* Another one, as a client, comes and goes. */
    if (gone && step_is_in_group(self, member->role, member->labels)) {
        self->losses++;
        self->last_lost = member->id;
    }
    ls_cond_broadcast(&self->asker.cond);
    ls_mutex_unlock(&self->asker.mutex);
}

/* ---- a save ------------------------------------------------------------ */

/* A run that is cancelled waits for no save: others have left the iteration. */
static bool is_over(void *arg)
{
    const ls_checkpoint_step *self = arg;
    return ls_task_cancelled(self->task) != LS_OK;
}

/* One that failed may end the run, or not. A lost node ends it. */
static int judge(ls_checkpoint_step *self, int status)
{
    if (status != LS_OK && is_over(self))
        return ls_task_cancelled(self->task);
    if (status == LS_OK || !self->options.goes_on || status == LS_ELOST)
        return status;
    ls_log_warn("%s; the run goes on", ls_error_text());
    ls_mutex_lock(&self->asker.mutex);
    self->failures++;
    ls_mutex_unlock(&self->asker.mutex);
    return LS_OK;
}

/* Of the one that went on behind. */
static int settle(ls_checkpoint_step *self)
{
    int64_t epoch;
    return judge(self, saves_finish(&self->saves, &epoch));
}

static int lead_save(ls_checkpoint_step *self, int64_t epoch, enum step_why why)
{
    static const char *const texts[] = {STEP_WHY_BEGIN, "iteration",
                                        "iteration", "end", "end"};
    /* That of the beginning is waited for: a folder that cannot be written is
     * known before the work, and all later saves stay behind. */
    const bool behind = self->options.behind && why == STEP_ITERATION;
    const struct saves_point point = {
        .epoch = epoch, .why = texts[why], .stopped = why == STEP_END};
    int64_t of;
    int status = settle(self);
    self->began_at = ls_now(self->asker.runtime);
    if (status == LS_OK && self->rewinds) {
        status = saves_rewind(&self->saves, epoch - 1);
        self->rewinds = status != LS_OK;
    }
    if (status != LS_OK)
        return status;
    return judge(self, behind ? saves_save_behind(&self->saves, &point, &of)
                              : saves_save(&self->saves, &point));
}

/* Until its blobs are copied, or written. */
static int follow_save(ls_checkpoint_step *self)
{
    struct ls_due due = ls_due_at(
        self->node, ls_deadline(self->asker.runtime, step_patience_ms(self)));
    ls_mutex_lock(&self->asker.mutex);
    int status = step_wait(self, &self->released, &self->leader_lost, &due);
    const bool released = self->released;
    ls_mutex_unlock(&self->asker.mutex);
    if (status == LS_OK && !released)
        status =
            ls_error(LS_ELOST, "%s: node %" PRIu32 ", which leads, is gone",
                     self->what, self->saves.leader);
    return status == LS_ETIMEDOUT
               ? ls_error(status,
                          "%s: node %" PRIu32 ", which leads, did not save",
                          self->what, self->saves.leader)
               : status;
}

void step_prepare(ls_checkpoint_step *self, int64_t epoch, int64_t stands_at)
{
    struct ls_failure failure;
    ls_failure_keep(&failure,
                    self->options.before_save != NULL
                        ? self->options.before_save(self->options.self, epoch)
                        : LS_OK);
    step_stand(self, stands_at);
    ls_mutex_lock(&self->asker.mutex);
    self->unready = failure;
    ls_mutex_unlock(&self->asker.mutex);
}

int step_save(ls_checkpoint_step *self, int64_t epoch, enum step_why why)
{
    struct ls_failure failure;
    self->saved_here = epoch;
    if (!step_leads(self) && self->options.blobs == NULL)
        return LS_OK;
    step_prepare(self, epoch, epoch);
    ls_failure_keep(&failure, step_leads(self) ? lead_save(self, epoch, why)
                                               : follow_save(self));
    step_go_on(self);
    return ls_failure_return(&failure);
}

/* ---- when -------------------------------------------------------------- */

static bool is_due(ls_checkpoint_step *self)
{
    const struct ls_checkpoint_step_options *options = &self->options;
    if (options->every > 0 &&
        ((uint64_t)*step_total(self) + 1) % options->every == 0)
        return true;
    return options->seconds > 0 &&
           (double)(ls_now(self->asker.runtime) - self->began_at) >=
               options->seconds * (double)LS_NS_PER_S &&
           !saves_is_busy(&self->saves);
}

static bool is_better(ls_checkpoint_step *self)
{
    const double value = self->options.metric(self->options.self);
    if (isnan(value))
        return false;
    const bool better = isnan(self->best) ||
                        (self->options.retention.least ? value < self->best
                                                       : value > self->best);
    if (better)
        self->best = value;
    return better;
}

static uint32_t wishes(void *arg)
{
    ls_checkpoint_step *self = arg;
    ls_mutex_lock(&self->asker.mutex);
    const bool now = self->wanted_now;
    self->wished = self->wanted;
    ls_mutex_unlock(&self->asker.mutex);
    bool save = self->wished || (step_leads(self) && is_due(self));
    if (self->options.on_best && self->options.metric != NULL)
        save = is_better(self) || save;
    return (save ? LS_WISH_SAVE : 0) | (now ? LS_WISH_SAVE_NOW : 0);
}

/* Without a barrier: alone, or by a rule that all follow. */
static uint32_t decide_alone(ls_checkpoint_step *self)
{
    const uint64_t every = self->options.every;
    if (self->node == NULL || ls_node_world_size(self->node) == 1)
        return wishes(self);
    return every > 0 && ((uint64_t)*step_total(self) + 1) % every == 0
               ? LS_WISH_SAVE
               : 0;
}

static void grant(ls_checkpoint_step *self)
{
    if (!self->wished)
        return;
    ls_mutex_lock(&self->asker.mutex);
    self->wanted = self->wanted_now = false;
    ls_mutex_unlock(&self->asker.mutex);
    if (self->options.granted != NULL)
        self->options.granted(self->options.self);
}

/* That of the last iteration is made when the run is over: what it has then may
 * be of the one before. */
static int save_if_agreed(ls_checkpoint_step *self)
{
    const struct ls_agreement *all = ls_task_agreement(self->task);
    const uint32_t decided = all != NULL ? all->wishes : decide_alone(self);
    self->ends = all != NULL && all->finishing;
    if (self->ends || (decided & LS_WISH_SAVE) == 0)
        return LS_OK;
    int status = step_choose(self, all != NULL ? all->ids : NULL,
                             all != NULL ? all->n : 0);
    if (status == LS_OK)
        status = step_save(self, *step_total(self) + 1,
                           (decided & LS_WISH_SAVE_NOW) != 0 ? STEP_AT_ONCE
                                                             : STEP_ITERATION);
    grant(self);
    return status;
}

/* The nodes of the last iteration are those of step_choose(). */
static int save_the_end(ls_checkpoint_step *self)
{
    const bool saved = self->saved_here == *step_total(self);
    const struct ls_agreement *all = ls_task_agreement(self->task);
    if (!self->ends || all == NULL)
        return judge(self, step_end(self, !saved));
    int status = saved ? LS_OK : step_choose(self, all->ids, all->n);
    if (status == LS_OK && !saved)
        status = step_save(self, *step_total(self), STEP_END);
    return status;
}

/* ---- the step ---------------------------------------------------------- */

static int run(ls_step *step, void *arg)
{
    ls_checkpoint_step *self = arg;
    int status = LS_OK;
    if (!self->in_run)
        status = step_begin(self);
    if (status != LS_OK)
        return status;
    self->in_run = true;
    status = ls_yield(step);
    return status == LS_OK ? save_if_agreed(self) : status;
}

/* A run that fails or is cancelled stops in the middle of an iteration: what it
 * has then is of no epoch, and the last checkpoint stays the newest. */
static int finish(void *arg, ls_task *task, int status)
{
    ls_checkpoint_step *self = arg;
    const bool ended_well = status == LS_OK && self->in_run;
    struct ls_failure failure = {.status = LS_OK};
    (void)task;
    if (ended_well)
        ls_failure_keep(&failure, save_the_end(self));
    const int settled = settle(self);
    if (failure.status == LS_OK)
        ls_failure_keep(&failure, settled);
    ls_mutex_lock(&self->asker.mutex);
    self->has_begun = false;
    ls_mutex_unlock(&self->asker.mutex);
    if (!ended_well)
        step_dismiss(self, true,
                     ls_error(LS_EABORTED,
                              "%s: the run of the "
                              "node that leads has "
                              "failed",
                              self->what));
    self->in_run = self->ends = false;
    return ls_failure_return(&failure);
}

/* ---- made and taken apart ---------------------------------------------- */

/* What those are told who come too late is no error of the caller, who may yet
 * look at that of its run. */
static void release(void *arg)
{
    ls_checkpoint_step *self = arg;
    struct ls_failure last;
    int64_t epoch;
    ls_failure_keep(&last, LS_ECLOSED);
    ls_signal_unwatch(&self->signals);
    if (ls_task_on_cancel(self->task, NULL, self) != LS_OK ||
        ls_task_on_wish(self->task, NULL, self) != LS_OK ||
        (self->node != NULL &&
         ls_node_on_member(self->node, NULL, self) != LS_OK))
        ls_log_debug("%s: %s", self->what, ls_error_text());
    ls_mutex_lock(&self->asker.mutex);
    lane_stop(&self->lane);
    ls_mutex_unlock(&self->asker.mutex);
    if (self->lane.thread != NULL)
        lane_join(&self->lane);
    (void)saves_finish(&self->saves, &epoch); /* none goes on after a run */
    for (size_t i = 0; i < 2; i++)
        step_dismiss(self, i == 1,
                     ls_error(LS_ECLOSED, "%s is over", self->what));
    for (ls_request *late; (late = lane_pop(&self->lane)) != NULL;)
        question_refuse(late, ls_error(LS_ECLOSED, "%s is over", self->what));
    if (saves_close(&self->saves) != LS_OK)
        ls_log_warn("%s", ls_error_text());
    saves_fini(&self->saves);
    asker_fini(&self->asker);
    free(self->nodes);
    free(self->guests);
    free(self->waiters);
    free(self->peers);
    free(self);
    (void)ls_failure_return(&last);
}

static int check(const ls_checkpoint_step *self)
{
    const struct ls_checkpoint_step_options *options = &self->options;
    if (step_leads(self) && options->folder == NULL)
        return ls_error(LS_EINVAL, "the node that leads needs a folder");
    if (!(options->seconds >= 0) || options->timeout_ms < 0)
        return ls_error(LS_EINVAL, "seconds or timeout_ms is negative");
    const bool at_best =
        options->resume == LS_JOB_AT && options->epoch == LS_CHECKPOINT_BEST;
    if ((options->on_best || at_best) && options->retention.metric == NULL)
        return ls_error(LS_EINVAL, "the best are of a metric: name it");
    if (self->node != NULL && options->calls == NULL)
        return ls_error(LS_EINVAL, "a task with a node needs its calls");
    return options->resume == LS_JOB_AT && options->epoch < 0 && !at_best
               ? ls_error(LS_EINVAL, "epoch %" PRId64 ": there is none",
                          options->epoch)
               : LS_OK;
}

/* One text of the options; NULL stays NULL. */
static int copy(const char **text, char *to, size_t size)
{
    if (*text == NULL)
        return LS_OK;
    const int n = snprintf(to, size, "%s", *text);
    *text = to;
    return n >= 0 && (size_t)n < size
               ? LS_OK
               : ls_error(LS_EINVAL, "%.60s… is too long", to);
}

static int copy_options(ls_checkpoint_step *self,
                        const struct ls_checkpoint_step_options *options)
{
    struct ls_checkpoint_step_options *own = &self->options;
    *own = *options;
    if (own->name == NULL)
        own->name = "checkpoint";
    if (own->timeout_ms == 0)
        own->timeout_ms = DEFAULT_TIMEOUT_MS;
    int status = copy(&own->name, self->name, sizeof self->name);
    if (status == LS_OK)
        status = copy(&own->group, self->group, sizeof self->group);
    if (status == LS_OK)
        status = copy(&own->run, self->run, sizeof self->run);
    if (status == LS_OK)
        status = copy(&own->folder, self->folder, sizeof self->folder);
    if (status == LS_OK)
        status =
            copy(&own->retention.metric, self->metric, sizeof self->metric);
    return status;
}

static void set_saves(ls_checkpoint_step *self)
{
    const struct ls_checkpoint_step_options *options = &self->options;
    struct saves *saves = &self->saves;
    saves->asker = &self->asker;
    saves->what = self->what;
    saves->run = self->run;
    saves->id = self->node != NULL ? ls_node_id(self->node) : 0;
    saves->leader = self->node != NULL ? options->leader : saves->id;
    saves->blobs = options->blobs;
    saves->folder = options->folder;
    saves->sends = options->blobs != NULL && options->folder == NULL;
    saves->retention = options->retention;
    if (saves->retention.best == 0) /* then it is only written down */
        saves->retention.metric = NULL;
    saves->timeout_ms = options->timeout_ms;
    saves->metric = options->retention.metric;
    saves->others = SAVES_SKIP;
    saves->ops = &step_saves_ops;
    saves->self = self;
}

static void on_signal(void *self, int number)
{
    (void)number;
    ls_checkpoint_request(self, false);
}

static int listen(ls_checkpoint_step *self)
{
    const bool real = ls_task_runtime(self->task) == ls_runtime_threads();
    int status = ls_task_on_cancel(self->task, on_cancel, self);
    if (status == LS_OK)
        status = ls_task_on_wish(self->task, wishes, self);
    if (status == LS_OK && self->node != NULL)
        status = ls_node_on_member(self->node, on_member, self);
    if (status == LS_OK && self->options.calls != NULL)
        status = lane_begin(&self->lane, "checkpoint");
    if (status == LS_OK && self->options.on_signal && real)
        status = ls_signal_watch_each(&self->signals, &(int){SIGUSR2}, 1,
                                      on_signal, self);
    /* Last: what is served once is served until the calls are closed. */
    if (status == LS_OK && self->options.calls != NULL)
        status = ls_rpc_serve(self->options.calls, self->asker.name,
                              LS_CALL_ANYONE, step_on_request, self);
    return status;
}

static int init(ls_checkpoint_step *self,
                const struct ls_checkpoint_step_options *options)
{
    int status = copy_options(self, options);
    (void)snprintf(self->what, sizeof self->what, "%s", self->name);
    (void)snprintf(self->asker.name, sizeof self->asker.name, "step.%.100s",
                   self->name);
    self->lane =
        (struct lane){.asker = &self->asker,
                      .fn = step_answer,
                      .self = self,
                      .id = self->node != NULL ? ls_node_id(self->node) : 0};
    set_saves(self);
    self->epoch = self->saved_here = self->over_at = LS_CHECKPOINT_NONE;
    self->best = NAN;
    self->began_at = ls_now(self->asker.runtime);
    if (status == LS_OK)
        status = check(self);
    return status == LS_OK ? listen(self) : status;
}

static int make(ls_checkpoint_step **out, ls_task *task,
                const struct ls_checkpoint_step_options *options)
{
    ls_runtime *runtime = ls_task_runtime(task);
    ls_checkpoint_step *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "no memory");
    self->task = task;
    self->node = ls_task_node(task);
    int status = asker_init(&self->asker, runtime, options->calls, "",
                            step_answer, self);
    self->asker.is_over = is_over;
    if (status == LS_OK)
        status = saves_init(&self->saves, runtime);
    if (status != LS_OK) {
        free(self);
        return status;
    }
    status = init(self, options);
    if (status == LS_OK) {
        *out = self;
        return LS_OK;
    }
    release(self);
    return status;
}

struct ls_middleware
ls_mw_checkpoint(ls_task *task,
                 const struct ls_checkpoint_step_options *options)
{
    struct ls_middleware made = {.name = "checkpoint"};
    ls_checkpoint_step *self = NULL;
    made.status = make(&self, task, options);
    if (made.status != LS_OK) {
        (void)snprintf(made.error, sizeof made.error, "checkpoint: %.200s",
                       ls_error_text());
        return made;
    }
    if (options->out != NULL)
        *options->out = self;
    made.name = self->name;
    made.fn = run;
    made.self = self;
    made.release = release;
    made.finish = finish;
    return made;
}

void ls_checkpoint_request(ls_checkpoint_step *step, bool at_once)
{
    ls_mutex_lock(&step->asker.mutex);
    step->wanted = true;
    step->wanted_now = step->wanted_now || at_once;
    ls_mutex_unlock(&step->asker.mutex);
}

int ls_checkpoint_judge(ls_checkpoint_step *step, int64_t epoch, double value)
{
    return isnan(value)
               ? LS_OK
               : saves_judge(&step->saves, step->saved_here, epoch, value);
}

int64_t ls_checkpoint_epoch(ls_checkpoint_step *step)
{
    ls_mutex_lock(&step->asker.mutex);
    const int64_t epoch = step->epoch;
    ls_mutex_unlock(&step->asker.mutex);
    return epoch;
}

uint64_t ls_checkpoint_failures(ls_checkpoint_step *step)
{
    ls_mutex_lock(&step->asker.mutex);
    const uint64_t failures = step->failures;
    ls_mutex_unlock(&step->asker.mutex);
    return failures;
}
