/* The barrier as a step.
 *
 * Each iteration is two epochs, also one that fails: an epoch that this node
 * does not reach is given up, so that the others do not wait for it, and all
 * count alike.
 *
 * Each wait says where in the pipeline it stands. A node whose run begins may
 * come to where the others end an iteration; it then waits once more, and is
 * in step with them. That iteration is the first of a round: whoever began, and
 * whoever goes on, knows the round by the same number. Nodes that meet at the
 * two ends of an iteration have counted differently, and all give it up.
 *
 * The last iteration is agreed upon in its second epoch: whoever finishes says
 * so in its flags. A run may end unagreed, when the finish becomes known, or
 * the iterations are done, behind that epoch; others may then be in the next
 * iteration already. So the node goes through that one's epochs too, in its
 * finish hook, and says there that it has finished. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"
#include "lockstep/middleware.h"

#define DEFAULT_TIMEOUT_MS 60000

/* Bits that all get to see or-ed. The last three say where the node is; the
 * highest four are the wishes of ls_task_on_wish(). */
#define FLAG_FINISHING 1u
#define FLAG_BEGINS    2u /* at the beginning of its run */
#define FLAG_AT_START  4u /* of a later iteration */
#define FLAG_AT_END    8u
#define FLAGS_OWN      15u /* with the wishes; the rest are the caller's */
#define WISHES_SHIFT   28

struct step_barrier {
    ls_barrier *barrier; /* own */
    ls_task *task;       /* borrow */
    int timeout_ms;
    uint32_t (*flags)(void *self); /* as in the options; may be NULL */
    void *flags_self;
    bool failed; /* an epoch of this run has failed, for everyone */
    bool agreed; /* all end with this iteration */
    bool ran;    /* this run had an iteration */
    bool begun;  /* it has begun in step with the others */
};

/* Tell the others that this node does not come to the next epoch. */
static void give_up(struct step_barrier *self, int status)
{
    ls_barrier_abort(self->barrier, status);
    ls_barrier_discard(self->barrier);
    self->failed = true;
}

static int wait_once(struct step_barrier *self, uint32_t flags,
                     struct ls_barrier_epoch_info *info)
{
    int status = ls_task_cancelled(self->task);
    if (status < 0) {
        give_up(self, status);
        return status;
    }
    status = ls_barrier_wait(self->barrier, flags, self->timeout_ms, info);
    if (status < 0)
        self->failed = true;
    return status;
}

/* All of the epoch see the same flags, so all give up. */
static int out_of_step(struct step_barrier *self, uint32_t all)
{
    self->failed = true;
    return (all & FLAG_FINISHING) != 0
               ? ls_error(LS_ELOST, "barrier: the others have finished their "
                                    "run, just before this node began")
               : ls_error(LS_EABORTED, "barrier: members met at the two ends "
                                       "of an iteration");
}

static int wait_at_start(struct step_barrier *self, uint32_t flags)
{
    const uint32_t place = self->begun ? FLAG_AT_START : FLAG_BEGINS;
    struct ls_barrier_epoch_info info = {.flags = 0};
    do {
        const int status = wait_once(self, place | flags, &info);
        if (status < 0)
            return status;
    } while ((info.flags & FLAG_AT_END) != 0 &&
             (info.flags & (FLAG_AT_START | FLAG_FINISHING)) == 0);
    if ((info.flags & FLAG_AT_END) != 0)
        return out_of_step(self, info.flags);
    self->begun = true;
    if ((info.flags & FLAG_BEGINS) != 0)
        ls_task_set_round(self->task, info.epoch + 1);
    return LS_OK;
}

static int wait_at_end(struct step_barrier *self, uint32_t flags, uint32_t *all)
{
    struct ls_barrier_epoch_info info;
    const int status = wait_once(self, FLAG_AT_END | flags, &info);
    if (status < 0)
        return status;
    if ((info.flags & FLAG_AT_START) != 0)
        return out_of_step(self, info.flags & ~FLAG_FINISHING);
    *all = info.flags;
    return LS_OK;
}

/* For the steps before this one. */
static int agree(struct step_barrier *self, uint32_t all)
{
    struct ls_agreement what = {.wishes = all >> WISHES_SHIFT & LS_WISHES_ALL,
                                .finishing = (all & FLAG_FINISHING) != 0};
    if (!ls_task_has_wishes(self->task))
        return LS_OK;
    const size_t n = ls_barrier_members(self->barrier, NULL, 0);
    uint32_t *ids = calloc(n + 1, sizeof *ids);
    if (ids == NULL)
        return ls_error(LS_ENOMEM, "barrier: %zu members", n);
    what.ids = ids;
    what.n = ls_barrier_members(self->barrier, ids, n);
    what.n = what.n < n ? what.n : n;
    const int status = ls_task_agree(self->task, &what);
    free(ids);
    return status;
}

static uint32_t added_flags(const struct step_barrier *self)
{
    const uint32_t own = FLAGS_OWN | LS_WISHES_ALL << WISHES_SHIFT;
    return self->flags != NULL ? self->flags(self->flags_self) & ~own : 0;
}

static uint32_t flags_at_end(const struct step_barrier *self)
{
    const uint32_t wishes = ls_task_has_wishes(self->task)
                                ? ls_task_wishes(self->task) << WISHES_SHIFT
                                : 0;
    return added_flags(self) | wishes |
           (ls_task_finishing(self->task) ? FLAG_FINISHING : 0);
}

static int run(ls_step *step, void *state)
{
    struct step_barrier *self = state;
    uint32_t all = 0;
    self->ran = true;
    int status = wait_at_start(self, added_flags(self));
    if (status < 0)
        return status;
    status = ls_yield(step);
    if (status < 0) {
        give_up(self, status);
        return status;
    }
    status = wait_at_end(self, flags_at_end(self), &all);
    if (status == LS_OK && (all & FLAG_FINISHING) != 0) {
        self->agreed = true;
        ls_task_finish_here(self->task);
    }
    return status == LS_OK ? agree(self, all) : status;
}

/* The others may be in the next iteration: end it with them. They may as well
 * have failed by now; this run has not. */
static void say_finished(struct step_barrier *self)
{
    uint32_t all;
    int status = wait_at_start(self, FLAG_FINISHING);
    if (status == LS_OK)
        status = wait_at_end(self, FLAG_FINISHING, &all);
    if (status < 0)
        ls_log_debug("barrier: after the end: %s", ls_error_text());
}

static int finish(void *state, ls_task *task, int status)
{
    struct step_barrier *self = state;
    /* A step before this one may have failed; the others wait. */
    if (status < 0 && !self->failed)
        give_up(self, status);
    if (status == LS_OK && !self->agreed &&
        (self->ran || ls_task_finishing(task)))
        say_finished(self);
    ls_barrier_discard(self->barrier);
    self->failed = false;
    self->agreed = false;
    self->ran = false;
    self->begun = false;
    return LS_OK;
}

/* Wakes a wait; one that begins later finds the epoch given up. */
static void on_cancel(void *state, int status)
{
    struct step_barrier *self = state;
    ls_barrier_abort(self->barrier, status);
}

static void release(void *state)
{
    struct step_barrier *self = state;
    if (ls_task_on_cancel(self->task, NULL, self) < 0)
        ls_log_debug("barrier: %s", ls_error_text());
    ls_barrier_destroy(&self->barrier);
    free(self);
}

static struct ls_middleware failed(int status)
{
    struct ls_middleware made = {.name = "barrier", .status = status};
    (void)snprintf(made.error, sizeof made.error, "%s", ls_error_text());
    return made;
}

struct ls_middleware ls_mw_barrier(ls_task *task,
                                   const struct ls_barrier_options *options)
{
    ls_node *node = ls_task_node(task);
    const char *group = options == NULL ? NULL : options->group;
    if (node == NULL || (group != NULL && !ls_node_is_in(node, group)))
        return (struct ls_middleware){.name = "barrier"};
    struct step_barrier *self = calloc(1, sizeof *self);
    if (self == NULL)
        return failed(ls_error(LS_ENOMEM, "barrier: no memory for its step"));
    self->task = task;
    self->timeout_ms = options != NULL && options->timeout_ms > 0
                           ? options->timeout_ms
                           : DEFAULT_TIMEOUT_MS;
    if (options != NULL) {
        self->flags = options->flags;
        self->flags_self = options->self;
    }
    int status = ls_barrier_create(&self->barrier, node, options);
    if (status == LS_OK)
        status = ls_task_on_cancel(task, on_cancel, self);
    if (status < 0) {
        ls_barrier_destroy(&self->barrier);
        free(self);
        return failed(status);
    }
    return (struct ls_middleware){.name = "barrier",
                                  .fn = run,
                                  .self = self,
                                  .release = release,
                                  .finish = finish};
}
