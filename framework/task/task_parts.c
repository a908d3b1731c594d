/* Several middleware as one step. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task_core.h"

struct parts {
    struct pipeline pipeline;
    struct group group; /* of ls_parallel() */
    atomic_bool busy;
    char *name;
    char *needs;
    char *gives;
};

static int parts_begin(struct parts *parts, const ls_step *step)
{
    if (!atomic_exchange(&parts->busy, true))
        return LS_OK;
    return ls_error(LS_ESTATE,
                    "%s is under way already: a middleware with parts is used "
                    "in one place only",
                    step->name);
}

static int run_serial(ls_step *step, void *self)
{
    struct parts *parts = self;
    struct pipeline *pipeline = &parts->pipeline;
    const int status = parts_begin(parts, step);
    if (status < 0)
        return status;
    ls_pipeline_forward(pipeline, step->lane, step);
    if (pipeline->outcome.status == LS_OK && ls_pipeline_suspended(pipeline))
        ls_outcome_catch(&pipeline->outcome, ls_yield(step));
    ls_pipeline_back(pipeline);
    atomic_store(&parts->busy, false);
    return ls_failure_return(&pipeline->outcome);
}

static int run_parallel(ls_step *step, void *self)
{
    struct parts *parts = self;
    struct pipeline *pipeline = &parts->pipeline;
    struct group *group = &parts->group;
    int status = parts_begin(parts, step);
    if (status < 0)
        return status;
    group->outcome.status = LS_OK;
    status = ls_pool_start(step->task);
    if (status == LS_OK) {
        ls_group_forward(group, step->lane, step, pipeline->parts, pipeline->n,
                         true);
        pipeline->begun = pipeline->n;
        if (group->outcome.status == LS_OK && ls_pipeline_suspended(pipeline))
            status = ls_yield(step);
        ls_outcome_catch(&group->outcome, status);
        ls_group_back(group, step->lane, pipeline->parts, pipeline->n, false);
    }
    ls_outcome_catch(&group->outcome, status);
    atomic_store(&parts->busy, false);
    return ls_failure_return(&group->outcome);
}

static int finish_parts(void *self, ls_task *task, int status)
{
    const struct pipeline *pipeline = &((struct parts *)self)->pipeline;
    return ls_pipeline_finish(pipeline, task, status);
}

static void release_parts(void *self)
{
    struct parts *parts = self;
    for (size_t i = parts->pipeline.n; i-- > 0;)
        ls_part_destroy(&parts->pipeline.parts[i]);
    free(parts->pipeline.parts);
    free(parts->name);
    free(parts->needs);
    free(parts->gives);
    free(parts);
}

/* "a,b", of the active parts; offset: of a text in struct ls_middleware. */
static char *joined(const struct pipeline *pipeline, size_t offset,
                    const char *before, const char *after)
{
    size_t size = strlen(before) + strlen(after) + 1;
    for (size_t i = 0; i < pipeline->n; i++) {
        const char *text;
        memcpy(&text, (char *)&pipeline->parts[i]->what + offset, sizeof text);
        size += text != NULL ? strlen(text) + 1 : 0;
    }
    char *out = malloc(size);
    if (out == NULL)
        return NULL;
    size_t used = (size_t)snprintf(out, size, "%s", before);
    bool first = true;
    for (size_t i = 0; i < pipeline->n; i++) {
        const char *text;
        memcpy(&text, (char *)&pipeline->parts[i]->what + offset, sizeof text);
        if (text == NULL || !pipeline->parts[i]->active)
            continue;
        used += (size_t)snprintf(out + used, size - used, "%s%s",
                                 first ? "" : ",", text);
        first = false;
    }
    (void)snprintf(out + used, size - used, "%s", after);
    return out;
}

static bool name_parts(struct parts *parts, const char *kind)
{
    const struct pipeline *pipeline = &parts->pipeline;
    parts->name =
        joined(pipeline, offsetof(struct ls_middleware, name), kind, ">");
    parts->needs =
        joined(pipeline, offsetof(struct ls_middleware, needs), "", "");
    parts->gives =
        joined(pipeline, offsetof(struct ls_middleware, gives), "", "");
    return parts->name != NULL && parts->needs != NULL && parts->gives != NULL;
}

/* Every part is moved, also on failure. */
static int parts_create(struct parts **out, ls_task *task,
                        const struct ls_middleware *from, size_t n,
                        const char *kind)
{
    struct parts *parts = calloc(1, sizeof *parts);
    struct part **list = calloc(n + 1, sizeof(struct part *));
    int status = LS_OK;
    if (parts == NULL || list == NULL) {
        free(parts);
        free(list);
        parts = NULL;
        list = NULL;
        status = ls_error(LS_ENOMEM, "task: no memory for %s", kind);
    } else {
        parts->pipeline.parts = list;
    }
    for (size_t i = 0; i < n; i++) {
        if (status == LS_OK)
            status = ls_part_create(&list[parts->pipeline.n], task, from[i]);
        else if (from[i].release != NULL)
            from[i].release(from[i].self);
        if (status == LS_OK)
            parts->pipeline.n++;
    }
    if (status == LS_OK && !name_parts(parts, kind))
        status = ls_error(LS_ENOMEM, "task: no memory for %s", kind);
    if (status < 0 && parts != NULL)
        release_parts(parts);
    else
        *out = parts;
    return status;
}

static struct ls_middleware parts_of(ls_task *task,
                                     const struct ls_middleware *from, size_t n,
                                     const char *kind, ls_step_fn *fn)
{
    struct ls_middleware what = {0};
    struct parts *parts = NULL;
    what.status = parts_create(&parts, task, from, n, kind);
    if (what.status < 0) {
        (void)snprintf(what.error, sizeof what.error, "%s", ls_error_text());
        return what;
    }
    what.name = parts->name;
    what.needs = parts->needs;
    what.gives = parts->gives;
    what.self = parts;
    what.release = release_parts;
    what.finish = finish_parts;
    for (size_t i = 0; i < parts->pipeline.n; i++)
        if (parts->pipeline.parts[i]->active)
            what.fn = fn;
    return what;
}

struct ls_middleware ls_serial(ls_task *task, const struct ls_middleware *parts,
                               size_t n)
{
    return parts_of(task, parts, n, "serial<", run_serial);
}

struct ls_middleware ls_parallel(ls_task *task,
                                 const struct ls_middleware *parts, size_t n)
{
    return parts_of(task, parts, n, "parallel<", run_parallel);
}
