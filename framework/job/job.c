/* A job as an object: its options, its tasks, what it tells of itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job_parts.h"
#include "lockstep/place.h"
#include "plain_name.h"

static char *copy(const char *text)
{
    if (text == NULL)
        return NULL;
    const size_t size = strlen(text) + 1;
    char *copied = malloc(size);
    return copied == NULL ? NULL : memcpy(copied, text, size);
}

const char *ls_job_phase_name(enum ls_job_phase phase)
{
    static const char *const names[LS_JOB_N_PHASES] = {
        "init", "epoch", "upload", "download", "exit"};
    return (unsigned)phase < LS_JOB_N_PHASES ? names[phase] : "?";
}

const char *ls_job_operation_name(enum ls_job_operation operation)
{
    static const char *const names[LS_JOB_N_OPS] = {
        "init", "load", "epoch", "save", "upload", "download", "exit"};
    return (unsigned)operation < LS_JOB_N_OPS ? names[operation] : "?";
}

/* ---- its options ------------------------------------------------------- */

static void set_default(int *timeout_ms, int otherwise)
{
    if (*timeout_ms == 0)
        *timeout_ms = otherwise;
}

static int check_options(const struct ls_job_options *options)
{
    if (!plain_name_is(options->name, LS_JOB_MAX, "._-"))
        return ls_error(LS_EINVAL,
                        "a job needs a name of 1 to %d of [A-Za-z0-9._-]",
                        LS_JOB_MAX);
    if (options->start_timeout_ms < 0 || options->group_timeout_ms < 0 ||
        options->save_timeout_ms < 0 || options->cancel_timeout_ms < 0)
        return ls_error(LS_EINVAL, "job %s: a timeout is negative",
                        options->name);
    if (options->resume == LS_JOB_AT && options->epoch < 0)
        return ls_error(LS_EINVAL, "job %s: epoch %" PRId64 ": there is none",
                        options->name, options->epoch);
    if (options->resume != LS_JOB_SCRATCH && options->folder == NULL)
        return ls_error(LS_EINVAL, "job %s: to resume it needs a folder",
                        options->name);
    return ls_place_check(options->checkpoint);
}

static int copy_options(ls_job *job, const struct ls_job_options *given)
{
    struct ls_job_options *own = &job->options;
    *own = *given;
    own->name = copy(given->name);
    own->folder = copy(given->folder);
    own->checkpoint = copy(given->checkpoint);
    own->retention.metric = copy(given->retention.metric);
    set_default(&own->start_timeout_ms, 60000);
    set_default(&own->group_timeout_ms, 24 * 60 * 60 * 1000);
    set_default(&own->save_timeout_ms, 10 * 60 * 1000);
    set_default(&own->cancel_timeout_ms, 60000);
    const bool whole =
        own->name != NULL && (own->folder == NULL) == (given->folder == NULL) &&
        (own->checkpoint == NULL) == (given->checkpoint == NULL) &&
        (own->retention.metric == NULL) == (given->retention.metric == NULL);
    return whole ? LS_OK : ls_error(LS_ENOMEM, "a job");
}

int ls_job_create(ls_job **out, ls_node *node, ls_rpc *calls,
                  const struct ls_job_options *options)
{
    *out = NULL;
    char served[LS_EVENT_MAX + 1];
    int status = check_options(options);
    if (status != LS_OK)
        return status;
    ls_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return ls_error(LS_ENOMEM, "a job");
    job->node = node;
    job->runtime = ls_node_runtime(node);
    job->id = ls_node_id(node);
    status = copy_options(job, options);
    if (status == LS_OK)
        status = workspace_init(&job->global);
    (void)snprintf(served, sizeof served, "job.%s", options->name);
    (void)snprintf(job->what, sizeof job->what, "job %s", options->name);
    if (status == LS_OK)
        status =
            asker_init(&job->asker, job->runtime, calls, served, NULL, NULL);
    if (status == LS_OK)
        status = saves_init(&job->saves, job->runtime);
    job_node_init(job);
    if (status == LS_OK)
        status =
            ls_rpc_serve(calls, served, LS_CALL_ANYONE, job_on_request, job);
    if (status != LS_OK) {
        (void)ls_job_destroy(&job); /* nothing runs */
        return status;
    }
    *out = job;
    return LS_OK;
}

/* ---- its tasks --------------------------------------------------------- */

static void task_free(struct job_task *task)
{
    const char *const *outputs = task->given.outputs;
    for (size_t i = 0; outputs != NULL && outputs[i] != NULL; i++)
        free((char *)outputs[i]);
    free((void *)outputs);
    free((char *)task->given.name);
    free((char *)task->given.where);
    free(task->nodes);
    free(task);
}

static bool copy_outputs(struct job_task *task, const char *const *outputs)
{
    size_t n = 0;
    while (outputs != NULL && outputs[n] != NULL)
        n++;
    const char **own = n == 0 ? NULL : calloc(n + 1, sizeof *own);
    task->given.outputs = own;
    for (size_t i = 0; i < n && own != NULL; i++)
        if ((own[i] = copy(outputs[i])) == NULL)
            return false;
    return n == 0 || own != NULL;
}

static int append(ls_job *job, struct job_task **list,
                  const struct ls_job_task *given)
{
    struct job_task *task = calloc(1, sizeof *task);
    if (task != NULL) {
        task->given = *given;
        task->given.name = copy(given->name);
        task->given.where = copy(given->where != NULL ? given->where : "all");
    }
    if (task == NULL || !copy_outputs(task, given->outputs) ||
        task->given.name == NULL || task->given.where == NULL) {
        if (task != NULL)
            task_free(task);
        return ls_error(LS_ENOMEM, "job %s: %s", job->options.name,
                        given->name);
    }
    while (*list != NULL)
        list = &(*list)->next;
    *list = task;
    return LS_OK;
}

/* As the entries of a vault have them: vault.h. */
static bool name_is_none(const char *name)
{
    return !plain_name_is(name, LS_VAULT_NAME_MAX, "._@~-") || name[0] == '.';
}

static int check_open(const ls_job *job, const char *what)
{
    return !job->compiled
               ? LS_OK
               : ls_error(LS_ESTATE,
                          "job %s is compiled: add %s before it is compiled "
                          "or run",
                          job->options.name, what);
}

static int check_outputs(const char *const *outputs)
{
    for (; outputs != NULL && *outputs != NULL; outputs++)
        if (name_is_none(*outputs))
            return ls_error(LS_EINVAL, "\"%.80s\" is not a blob's name",
                            *outputs);
    return LS_OK;
}

static int check_task(const ls_job *job, enum ls_job_phase phase,
                      const struct ls_job_task *task)
{
    const char *group = ls_job_phase_name(phase);
    if (name_is_none(task->name) || task->fn == NULL || task->report_ms < 0)
        return ls_error(LS_EINVAL,
                        "job %s, %s group: a task needs a name, a function, "
                        "and an interval of at least 0 ms",
                        job->options.name, group);
    int status = ls_place_check(task->where);
    if (status == LS_OK)
        status = check_outputs(task->outputs);
    if (status != LS_OK)
        return ls_error_at(status, "job %s, %s group, task %s",
                           job->options.name, group, task->name);
    for (const struct job_task *at = job->groups[phase]; at != NULL;
         at = at->next) {
        if (strcmp(at->given.name, task->name) == 0)
            return ls_error(LS_EEXIST, "job %s, %s group: two tasks are %s",
                            job->options.name, group, task->name);
        if (at->given.workspace != task->workspace &&
            strcmp(at->given.where, JOB_LIMITER) != 0)
            return ls_error(
                LS_EMISMATCH,
                "job %s, %s group: task %s has another workspace than %s: "
                "those of a group are all global or all private",
                job->options.name, group, task->name, at->given.name);
    }
    return LS_OK;
}

int ls_job_add(ls_job *job, enum ls_job_phase phase,
               const struct ls_job_task *task)
{
    if ((unsigned)phase >= LS_JOB_N_PHASES)
        return ls_error(LS_EINVAL, "job %s: no such group", job->options.name);
    int status = check_open(job, "tasks");
    if (status == LS_OK)
        status = check_task(job, phase, task);
    return status == LS_OK ? append(job, &job->groups[phase], task) : status;
}

bool job_list_has(const struct job_task *list, const char *name)
{
    while (list != NULL && strcmp(list->given.name, name) != 0)
        list = list->next;
    return list != NULL;
}

int ls_job_stop_on(ls_job *job, const char *blob)
{
    const int status = check_open(job, "stop signals");
    if (status != LS_OK)
        return status;
    if (name_is_none(blob))
        return ls_error(LS_EINVAL,
                        "job %s: ls_job_stop_on() takes the name of a blob, "
                        "and this is none",
                        job->options.name);
    return append(job, &job->stops, &(struct ls_job_task){.name = blob});
}

int ls_job_share(ls_job *job, const char *blob, enum ls_job_share how)
{
    const int status = check_open(job, "shared blobs");
    if (status != LS_OK)
        return status;
    if (name_is_none(blob) || (unsigned)how >= LS_JOB_N_SHARES)
        return ls_error(LS_EINVAL,
                        "job %s: ls_job_share() takes the name of a blob and a "
                        "way to share it, and there is no way %d, or no name",
                        job->options.name, (int)how);
    for (size_t i = 0; i < LS_JOB_N_SHARES; i++)
        if (job_list_has(job->shares[i], blob))
            return ls_error(LS_EEXIST, "job %s: %s is shared already",
                            job->options.name, blob);
    return append(job, &job->shares[how], &(struct ls_job_task){.name = blob});
}

/* ---- the limiter ------------------------------------------------------- */

static const struct ls_blob_form pair = {LS_BLOB_I64, 1, {2}};

/* How many are left, and whether this was the last: one blob, so that both are
 * of one moment. The stop signal is the second. */
static int set_limit(void *self, ls_turn *turn)
{
    const ls_job *job = self;
    void *memory;
    const int status = ls_turn_blob(turn, LIMITER, &pair, &memory);
    if (status == LS_OK)
        ((int64_t *)memory)[0] = (int64_t)job->limit - 1;
    return status;
}

static int count_down(void *self, ls_turn *turn)
{
    void *memory;
    const int status = ls_turn_blob(turn, LIMITER, &pair, &memory);
    (void)self;
    if (status != LS_OK)
        return status;
    int64_t *left = memory;
    left[1] = left[0]-- <= 0;
    return LS_OK;
}

int ls_job_limit_epochs(ls_job *job, uint64_t n)
{
    if (n == 0 || n > INT64_MAX)
        return ls_error(LS_EINVAL, "job %s: a limit of 0 epochs: at least 1",
                        job->options.name);
    if (job->limit != 0)
        return ls_error(LS_EEXIST, "job %s has a limit of epochs",
                        job->options.name);
    struct ls_job_task task = {
        .name = LIMITER, .where = JOB_LIMITER, .fn = set_limit, .self = job};
    int status = check_open(job, "a limit");
    if (status == LS_OK)
        status = append(job, &job->groups[LS_JOB_INIT], &task);
    task.fn = count_down;
    if (status == LS_OK)
        status = append(job, &job->groups[LS_JOB_EPOCH], &task);
    if (status == LS_OK)
        job->limit = n;
    return status;
}

/* ---- what it tells ----------------------------------------------------- */

ls_blobs *ls_job_blobs(ls_job *job)
{
    return job->global.blobs;
}

static void output_free(struct job_output *output)
{
    free(output->name);
    free(output->data);
    free(output);
}

void job_outputs_clear(ls_job *job)
{
    while (job->outputs != NULL) {
        struct job_output *next = job->outputs->next;
        output_free(job->outputs);
        job->outputs = next;
    }
}

static struct job_output *find_output(const ls_job *job, uint32_t node,
                                      const char *name)
{
    struct job_output *at = job->outputs;
    while (at != NULL && (at->node != node || strcmp(at->name, name) != 0))
        at = at->next;
    return at;
}

int job_outputs_put(ls_job *job, uint32_t node, const char *name,
                    const void *data, size_t size)
{
    struct job_output *output = find_output(job, node, name);
    void *bytes = malloc(size + 1);
    if (output == NULL && bytes != NULL &&
        (output = calloc(1, sizeof *output)) != NULL) {
        output->node = node;
        output->name = copy(name);
        output->next = job->outputs;
        if (output->name != NULL)
            job->outputs = output;
    }
    if (bytes == NULL || output == NULL || output->name == NULL) {
        free(bytes);
        if (output != NULL && output->name == NULL)
            free(output);
        return ls_error(LS_ENOMEM, "output %s", name);
    }
    if (size != 0)
        memcpy(bytes, data, size);
    free(output->data);
    output->data = bytes;
    output->size = size;
    return LS_OK;
}

int ls_job_output(const ls_job *job, uint32_t node, const char *blob,
                  const void **data, size_t *size)
{
    const struct job_output *output = find_output(job, node, blob);
    if (output == NULL)
        return ls_error(LS_ENOENT, "job %s: no task on node %u has put out %s",
                        job->options.name, node, blob);
    *data = output->data;
    *size = output->size;
    return LS_OK;
}

static void tasks_free(struct job_task *list)
{
    while (list != NULL) {
        struct job_task *next = list->next;
        task_free(list);
        list = next;
    }
}

int ls_job_destroy(ls_job **job)
{
    if (job == NULL || *job == NULL)
        return LS_OK;
    ls_job *gone = *job;
    const int status = turns_end(gone, LS_EAGAIN);
    if (status != LS_OK)
        return status;
    if (gone->lanes[0].n + gone->lanes[1].n > 0)
        job_node_refuse(gone, &(struct ls_failure){.status = LS_ECLOSED,
                                                   .text = "the job is gone"});
    for (size_t i = 0; i < LS_JOB_N_PHASES; i++)
        tasks_free(gone->groups[i]);
    tasks_free(gone->stops);
    for (size_t i = 0; i < LS_JOB_N_SHARES; i++)
        tasks_free(gone->shares[i]);
    job_outputs_clear(gone);
    workspace_fini(&gone->global);
    saves_fini(&gone->saves);
    asker_fini(&gone->asker);
    free((char *)gone->options.name);
    free((char *)gone->options.folder);
    free((char *)gone->options.checkpoint);
    free((char *)gone->options.retention.metric);
    free(gone->nodes);
    free(gone->keepers);
    free(gone->text);
    free(gone);
    *job = NULL;
    return LS_OK;
}
