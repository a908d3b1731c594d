/* Nodes that go in step: the pipeline of a role, and a run that outlives the
 * loss of others as the plan says. */
#include <stdio.h>
#include <stdlib.h>

#include "elastic_run.h"
#include "role.h"
#include "work_in_step.h"

/* An iteration that is under way may take so long when the node is told to
 * end. */
#define END_MS 1000

struct in_step {
    struct role role;
    ls_task *task;       /* borrow */
    elastic_run *others; /* own */
    ls_mutex mutex;      /* of what follows */
    bool ends;           /* after the save that was asked for */
    char why[LS_ERROR_TEXT_MAX];
};

static int create(void **out, const struct work_options *options)
{
    struct in_step *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "the work of a node");
    const int status = role_init(&self->role, options->plan, options->index,
                                 options->generation, options->plugin,
                                 options->sink, options->watch);
    if (status != LS_OK) {
        free(self);
        return status;
    }
    *out = self;
    return LS_OK;
}

/* The save that was asked for is over: nothing is lost by ending now. */
static void on_granted(void *arg)
{
    struct in_step *self = arg;
    ls_mutex_lock(&self->mutex);
    const bool ends = self->ends;
    ls_mutex_unlock(&self->mutex);
    if (ends)
        elastic_run_end(self->others, LS_ECANCELED, self->why);
}

static int use(void *work, ls_task *task, ls_rpc *calls)
{
    struct in_step *self = work;
    self->task = task;
    role_use(&self->role, task, calls);
    self->role.state.granted = on_granted;
    self->role.state.granted_self = self;
    int status = ls_mutex_init(&self->mutex, ls_task_runtime(task));
    if (status == LS_OK)
        status = role_start(&self->role, ls_task_runtime(task));
    if (status != LS_OK)
        return status;
    return elastic_run_create(&self->others, self->role.plan, self->role.index,
                              task);
}

static int run(void *work)
{
    struct in_step *self = work;
    const int status = elastic_run_go(self->others);
    return status == LS_OK ? role_end_training(&self->role) : status;
}

/* Who is told to end saves what all have after this iteration, if it does not
 * take long. */
static void end(void *work, int status, const char *text)
{
    struct in_step *self = work;
    if (status != LS_ECANCELED || self->role.state.step == NULL) {
        elastic_run_end(self->others, status, text);
        return;
    }
    ls_mutex_lock(&self->mutex);
    self->ends = true;
    (void)snprintf(self->why, sizeof self->why, "%s", text);
    ls_mutex_unlock(&self->mutex);
    ls_checkpoint_request(self->role.state.step, true);
    elastic_run_end_soon(self->others, status, text, END_MS);
}

/* SIGUSR2: another checkpoint. */
static void save(void *work)
{
    struct in_step *self = work;
    if (self->role.state.step != NULL)
        ls_checkpoint_request(self->role.state.step, false);
}

static void report(void *work, struct report *out)
{
    struct in_step *self = work;
    role_fill(&self->role, self->task, out);
}

static void leave(void *work)
{
    struct in_step *self = work;
    elastic_run_destroy(&self->others);
    role_stop(&self->role);
    ls_mutex_fini(&self->mutex);
    self->task = NULL;
}

static void destroy(void *work)
{
    struct in_step *self = work;
    role_fini(&self->role);
    free(self);
}

const struct work_kind work_in_step = {.create = create,
                                       .use = use,
                                       .run = run,
                                       .end = end,
                                       .save = save,
                                       .report = report,
                                       .leave = leave,
                                       .destroy = destroy};
