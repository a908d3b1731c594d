/* What a task is built of, and whether it can run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context_fields.h"
#include "task_core.h"
#include "word_list.h"

static bool copy_text(const char **text)
{
    if (*text == NULL)
        return true;
    const size_t size = strlen(*text) + 1;
    char *copy = malloc(size);
    if (copy != NULL)
        memcpy(copy, *text, size);
    *text = copy;
    return copy != NULL;
}

bool ls_task_takes_part(const ls_task *task, const char *roles)
{
    return task->roles == NULL || roles == NULL ||
           word_list_meets(roles, task->roles);
}

void ls_part_destroy(struct part **part)
{
    struct ls_middleware *what = &(*part)->what;
    if (what->release != NULL)
        what->release(what->self);
    if (what->lock != NULL)
        atomic_fetch_sub(&what->lock->users, 1);
    free((char *)what->name);
    free((char *)what->roles);
    free((char *)what->needs);
    free((char *)what->gives);
    free(*part);
    *part = NULL;
}

int ls_part_create(struct part **out, ls_task *task, struct ls_middleware what)
{
    if (what.wraps && what.status == LS_OK) {
        what.status = LS_EINVAL;
        (void)snprintf(what.error, sizeof what.error,
                       "task: a wrapper cannot be a part of another step");
    }
    const int failed = what.status;
    struct part *part = failed < 0 ? NULL : calloc(1, sizeof *part);
    if (part == NULL) {
        /* First, as it may fail at something and say so. */
        if (what.release != NULL)
            what.release(what.self);
        if (failed < 0)
            return ls_error(failed, "%s", what.error);
        return ls_error(LS_ENOMEM, "task: no memory for a step");
    }
    part->active = what.fn != NULL && ls_task_takes_part(task, what.roles);
    part->what = what;
    if (what.name == NULL)
        part->what.name = "step";
    if (what.lock == LS_TASK_LOCK)
        part->what.lock = &task->lock;
    if (part->what.lock != NULL)
        atomic_fetch_add(&part->what.lock->users, 1);

    /* All four are tried, so that each is own or NULL. */
    const bool copied[] = {
        copy_text(&part->what.name), copy_text(&part->what.roles),
        copy_text(&part->what.needs), copy_text(&part->what.gives)};
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
        if (!copied[i]) {
            ls_part_destroy(&part);
            return ls_error(LS_ENOMEM, "task: no memory for a step");
        }
    }
    part->step = (ls_step){.task = task,
                           .part = part,
                           .name = part->what.name,
                           .fn = part->what.fn,
                           .self = part->what.self,
                           .lock = part->what.lock};
    *out = part;
    return LS_OK;
}

static int append(ls_task *task, struct part *part)
{
    struct pipeline *pipeline = &task->pipeline;
    struct part **parts =
        realloc(pipeline->parts, (pipeline->n + 1) * sizeof(struct part *));
    if (parts == NULL) {
        ls_part_destroy(&part);
        return ls_error(LS_ENOMEM, "task: no memory for a step");
    }
    pipeline->parts = parts;
    parts[pipeline->n++] = part;
    return LS_OK;
}

static int use_step(ls_task *task, struct ls_middleware middleware)
{
    struct part *part;
    const int status = ls_part_create(&part, task, middleware);
    if (status != LS_OK)
        return status;
    if (!atomic_load(&task->running))
        return append(task, part);
    (void)ls_error(LS_ESTATE,
                   "task: step %s cannot be added while the task runs",
                   part->what.name);
    ls_part_destroy(&part);
    return LS_ESTATE;
}

void ls_task_decorate(ls_task *task)
{
    if (task->n_arounds == 0)
        return;
    const struct around *around = &task->arounds[task->n_arounds - 1];
    for (size_t i = 0; i < task->pipeline.n; i++) {
        ls_step *step = &task->pipeline.parts[i]->step;
        step->fn = around->fn;
        step->self = around->self;
        step->level = task->n_arounds;
    }
}

static int add_wrapper(ls_task *task, const struct ls_middleware *wrapper)
{
    if (wrapper->fn == NULL)
        return ls_error(LS_EINVAL, "task: a wrapper needs a function");
    if (wrapper->finish != NULL || wrapper->roles != NULL ||
        wrapper->lock != NULL)
        return ls_error(LS_EINVAL, "task: a wrapper has no finish, roles or "
                                   "lock: they are those of its steps");
    if (atomic_load(&task->running))
        return ls_error(LS_ESTATE,
                        "task: a wrapper cannot be added while the task runs");
    struct around *arounds =
        realloc(task->arounds, (task->n_arounds + 1u) * sizeof *arounds);
    if (arounds == NULL)
        return ls_error(LS_ENOMEM, "task: no memory for a wrapper");
    task->arounds = arounds;
    arounds[task->n_arounds++] =
        (struct around){wrapper->fn, wrapper->self, wrapper->release};
    return LS_OK;
}

int ls_task_use(ls_task *task, struct ls_middleware middleware)
{
    int status;
    if (!middleware.wraps || middleware.status < 0) {
        status = use_step(task, middleware);
    } else {
        status = add_wrapper(task, &middleware);
        if (status < 0 && middleware.release != NULL)
            middleware.release(middleware.self);
    }
    ls_outcome_catch(&task->built, status);
    return status;
}

int ls_task_use_step(ls_task *task, const char *name, ls_step_fn *fn,
                     void *self)
{
    return ls_task_use(
        task, (struct ls_middleware){.name = name, .fn = fn, .self = self});
}

static bool is_given(const ls_task *task, const char *field, size_t length)
{
    if (ls_context_keeps(task->context, field, length))
        return true;
    for (size_t i = 0; i < task->pipeline.n; i++) {
        const struct part *part = task->pipeline.parts[i];
        if (part->active && part->what.gives != NULL &&
            word_list_has(part->what.gives, field, length))
            return true;
    }
    return false;
}

static int check_needs(const ls_task *task, const struct part *part)
{
    const char *cursor = part->what.needs;
    const char *field;
    size_t length;
    while ((field = word_list_next(&cursor, &length)) != NULL)
        if (!is_given(task, field, length))
            return ls_error(
                LS_EINVAL,
                "task: step %s needs the field %.*s, which on role %s no step "
                "gives and the context does not keep",
                part->what.name, (int)length, field,
                task->roles != NULL ? task->roles : "\"\" (any)");
    return LS_OK;
}

int ls_task_check(ls_task *task)
{
    int status = ls_failure_return(&task->built);
    for (size_t i = 0; i < task->pipeline.n && status == LS_OK; i++)
        if (task->pipeline.parts[i]->active)
            status = check_needs(task, task->pipeline.parts[i]);
    return status;
}
