/* Nodes that go in step: the pipeline of a role, and a run that outlives the
 * loss of others as the plan says. */
#include <stdio.h>
#include <stdlib.h>

#include "elastic_run.h"
#include "role.h"
#include "work_in_step.h"

struct in_step {
    struct role role;
    ls_task *task;       /* borrow */
    elastic_run *others; /* own */
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

static int use(void *work, ls_task *task, ls_rpc *calls)
{
    struct in_step *self = work;
    (void)calls;
    self->task = task;
    role_use(&self->role, task);
    const int status = role_start(&self->role, ls_task_runtime(task));
    if (status != LS_OK)
        return status;
    return elastic_run_create(&self->others, self->role.plan, self->role.index,
                              task);
}

static int run(void *work)
{
    struct in_step *self = work;
    return elastic_run_go(self->others);
}

static void end(void *work, int status, const char *text)
{
    struct in_step *self = work;
    elastic_run_end(self->others, status, text);
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
                                       .report = report,
                                       .leave = leave,
                                       .destroy = destroy};
