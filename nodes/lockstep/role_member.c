#include "role_member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"
#include "lockstep/random.h"
#include "lockstep/stats.h"

#include "barrier_sabotage.h"

/* After a failed epoch: what it failed by, such as a world that is not whole,
 * may take a while to pass. */
#define RETRY_MS 100

/* Median and maximum are of so many epochs. */
#define TIMES_KEPT 4096

/* In the flags of an epoch: somebody has epochs to go after it. */
#define FLAG_MORE 1u

struct member {
    const struct plan_barrier *plan;  /* borrow */
    const struct member_watch *watch; /* borrow; may be NULL */
    ls_task *task;                    /* borrow */
    uint32_t id;          /* of the node; for a debugger: docs/debugging.md */
    ls_barrier *barrier;  /* own, until the task releases it */
    ls_window *times;     /* own; ns */
    struct ls_rng chance; /* of the pauses */
    int64_t epochs, failures;
    uint64_t emitted; /* events */
};

int member_create(struct member **out, const struct plan_barrier *plan,
                  const struct member_watch *watch)
{
    struct member *made = calloc(1, sizeof *made);
    if (made == NULL)
        return ls_error(LS_ENOMEM, "a member");
    made->plan = plan;
    made->watch = watch;
    const int status = ls_window_create(&made->times, TIMES_KEPT);
    if (status != LS_OK) {
        free(made);
        return status;
    }
    *out = made;
    return LS_OK;
}

void member_destroy(struct member **member)
{
    if (member == NULL || *member == NULL)
        return;
    ls_window_destroy(&(*member)->times);
    free(*member);
    *member = NULL;
}

static void rest(const struct member *self, int64_t ns)
{
    ls_runtime *runtime = ls_task_runtime(self->task);
    if (ns > 0)
        ls_rest_until(runtime, ls_now(runtime) + ns);
}

static int hear(void *state, const struct ls_event *event)
{
    struct member *self = state;
    uint64_t number;
    if (event->size != sizeof number)
        return ls_error(LS_EPROTO, "%zu bytes are not a count", event->size);
    memcpy(&number, event->data, sizeof number);
    if (self->watch != NULL)
        self->watch->heard(self->watch->self, event, number);
    return LS_OK;
}

static int emit_all(struct member *self)
{
    int status = LS_OK;
    for (int64_t i = 0; i < self->plan->events && status == LS_OK; i++) {
        self->emitted++;
        if (self->watch != NULL)
            self->watch->emitting(self->watch->self,
                                  ls_node_incarnation(ls_task_node(self->task)),
                                  self->emitted);
        status = ls_emit_with(
            ls_task_node(self->task),
            &(struct ls_emission){.event = MEMBER_EVENT,
                                  .data = &self->emitted,
                                  .size = sizeof self->emitted,
                                  .scope = LS_SCOPE_REMOTE,
                                  .delivery = LS_DELIVERY_RELIABLE});
        if (self->watch != NULL && status == LS_OK)
            self->watch->emitted(self->watch->self, self->emitted);
    }
    return status;
}

static int emit_blocking(const struct member *self)
{
    int status = LS_OK;
    for (int64_t i = 0; i < self->plan->blocking && status == LS_OK; i++)
        status =
            ls_emit_with(ls_task_node(self->task),
                         &(struct ls_emission){.event = MEMBER_BLOCKING,
                                               .scope = LS_SCOPE_REMOTE,
                                               .delivery = LS_DELIVERY_BLOCK});
    if (status == LS_EAGAIN && self->watch != NULL)
        self->watch->blocked(self->watch->self);
    return status;
}

static int hear_blocking(void *state, const struct ls_event *event)
{
    (void)state;
    (void)event;
    return LS_OK;
}

static int wait_once(struct member *self, struct ls_barrier_epoch_info *info)
{
    const uint32_t flags =
        self->epochs + 1 < self->plan->epochs ? FLAG_MORE : 0;
    if (self->watch != NULL)
        self->watch->entering(self->watch->self,
                              ls_node_incarnation(ls_task_node(self->task)));
    const int status =
        ls_barrier_wait(self->barrier, flags, self->plan->timeout_ms, info);
    if (self->watch != NULL)
        self->watch->ended(self->watch->self, status,
                           status == LS_OK ? info : NULL);
    return status;
}

/* docs/debugging.md stops here. */
static int keep_step(ls_step *step, void *state)
{
    struct member *self = state;
    struct ls_barrier_epoch_info info;
    (void)step;
    rest(self,
         (int64_t)ls_rng_below(&self->chance, (uint64_t)self->plan->pace_ms *
                                                  (uint64_t)LS_NS_PER_MS));
    int status = ls_task_cancelled(self->task);
    if (status == LS_OK)
        status = emit_all(self);
    if (status == LS_OK)
        status = emit_blocking(self);
    if (status == LS_OK)
        status = wait_once(self, &info);
    if (status == LS_OK) {
        self->epochs++;
        ls_window_push(self->times, (double)(info.left_at - info.entered_at));
        if ((info.flags & FLAG_MORE) == 0)
            ls_task_finish_here(self->task);
        return LS_OK;
    }
    if (ls_task_cancelled(self->task) != LS_OK || status == LS_ECLOSED ||
        ++self->failures > self->plan->failures)
        return status;
    ls_log_info("an epoch failed, %lld of at most %lld: %s",
                (long long)self->failures, (long long)self->plan->failures,
                ls_error_text());
    rest(self, RETRY_MS * LS_NS_PER_MS);
    return LS_OK;
}

/* Wakes a wait; one that begins later finds the epoch given up. */
static void on_cancel(void *state, int status)
{
    struct member *self = state;
    ls_barrier_abort(self->barrier, status);
}

static void tell_losses(const struct member *self, ls_node *node)
{
    size_t n = ls_node_losses(node, NULL, 0);
    struct ls_node_loss *losses = calloc(n + 1, sizeof *losses);
    if (losses == NULL)
        return;
    const size_t now = ls_node_losses(node, losses, n);
    self->watch->quitting(self->watch->self, losses, now < n ? now : n);
    free(losses);
}

static void release(void *state)
{
    struct member *self = state;
    ls_node *node = ls_task_node(self->task);
    if (self->watch != NULL)
        tell_losses(self, node);
    if (ls_task_on_cancel(self->task, NULL, self) < 0 ||
        (self->plan->events > 0 &&
         ls_off(node, MEMBER_EVENT, hear, self) < 0) ||
        (self->plan->blocking > 0 &&
         ls_off(node, MEMBER_BLOCKING, hear_blocking, self) < 0) ||
        (self->watch != NULL &&
         ls_node_on_member(node, NULL, self->watch->self) < 0))
        ls_log_debug("a member: %s", ls_error_text());
    ls_barrier_destroy(&self->barrier);
}

struct ls_middleware member_step(struct member *self, ls_task *task)
{
    struct ls_middleware made = {
        .name = "keep step", .fn = keep_step, .self = self, .release = release};
    self->task = task;
    self->id = ls_node_id(ls_task_node(task));
    ls_rng_seed(&self->chance, ls_entropy(ls_task_runtime(task)), 0);
    made.status = ls_barrier_create(
        &self->barrier, ls_task_node(task),
        &(struct ls_barrier_options){
            .group = PLAN_LABEL,
            .expected = ls_node_world_size(ls_task_node(task))});
    if (made.status == LS_OK && self->plan->sabotage != LS_SABOTAGE_NONE)
        ls_barrier_sabotage(self->barrier,
                            (enum ls_sabotage)self->plan->sabotage);
    if (made.status == LS_OK)
        made.status = ls_task_on_cancel(task, on_cancel, self);
    if (made.status == LS_OK && self->plan->events > 0)
        made.status = ls_node_allow(ls_task_node(task), MEMBER_EVENT,
                                    "label:" PLAN_LABEL);
    if (made.status == LS_OK && self->plan->events > 0)
        made.status = ls_on(ls_task_node(task), MEMBER_EVENT, hear, self);
    if (made.status == LS_OK && self->plan->blocking > 0)
        made.status =
            ls_on(ls_task_node(task), MEMBER_BLOCKING, hear_blocking, self);
    if (made.status == LS_OK && self->watch != NULL)
        made.status = ls_node_on_member(ls_task_node(task), self->watch->member,
                                        self->watch->self);
    if (made.status != LS_OK)
        (void)snprintf(made.error, sizeof made.error, "%s", ls_error_text());
    return made;
}

void member_report(struct member *self, struct report *report)
{
    struct ls_window_summary times;
    struct ls_barrier_stats sent = {0};
    if (self->barrier != NULL)
        ls_barrier_stats(self->barrier, &sent);
    report->barrier_sent = (int64_t)sent.sent;
    report->barrier_repeated = (int64_t)sent.repeated;
    report->epochs = self->epochs;
    report->failures = self->failures;
    ls_window_summary(self->times, &times);
    if (times.held == 0)
        return;
    report->median_ns = (int64_t)times.quantiles[2];
    report->max_ns = (int64_t)times.quantiles[4];
}
