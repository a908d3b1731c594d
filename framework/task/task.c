#include "lockstep/task.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task_core.h"
#include "word_list.h"

#define N_WORKERS_DEFAULT 3u
#define N_WORKERS_MAX     1024u

static char *labels_of(const ls_task *task, const char *given)
{
    char world[48] = "standalone";
    if (task->node != NULL)
        (void)snprintf(world, sizeof world, "distributed,node.%" PRIu32,
                       ls_node_id(task->node));
    if (given == NULL)
        given = "";
    const size_t size = strlen(given) + sizeof world + sizeof ",async,";
    char *labels = malloc(size);
    if (labels != NULL)
        (void)snprintf(labels, size, "%s,%s%s", given, world,
                       task->async ? ",async" : "");
    return labels;
}

static int copy_options(ls_task *task, const struct ls_task_options *options)
{
    task->node = options->node;
    if (task->node != NULL)
        ls_node_hold(task->node);
    task->trace = options->trace;
    if (task->trace == NULL && task->node != NULL)
        task->trace = ls_node_trace(task->node);
    task->async = options->async;
    task->runtime = options->runtime;
    if (task->runtime == NULL)
        task->runtime = task->node != NULL ? ls_node_runtime(task->node)
                                           : ls_runtime_threads();
    int status = ls_text_set(&task->roles, options->roles);
    if (status < 0)
        return status;
    task->labels = labels_of(task, options->labels);
    if (task->labels == NULL)
        return ls_error(LS_ENOMEM, "task: no memory for its labels");
    return ls_context_create(&task->context, options->context != NULL
                                                 ? options->context
                                                 : &ls_online_context_type);
}

static int init_threads(ls_task *task, const struct ls_task_options *options)
{
    const unsigned n_workers =
        options->n_workers == 0 ? N_WORKERS_DEFAULT : options->n_workers;
    int status = ls_mutex_init(&task->lock.mutex, task->runtime);
    if (status == LS_OK)
        status = ls_ending_init(task);
    if (status == LS_OK)
        status = ls_pool_init(task, n_workers, options->stack_bytes);
    return status == LS_OK ? ls_finish_listen(task) : status;
}

/* Also one that was not made whole. */
static void free_task(ls_task *gone)
{
    ls_pool_fini(gone);
    for (size_t i = gone->pipeline.n; i-- > 0;)
        ls_part_destroy(&gone->pipeline.parts[i]);
    for (unsigned i = gone->n_arounds; i-- > 0;)
        if (gone->arounds[i].release != NULL)
            gone->arounds[i].release(gone->arounds[i].self);
    free(gone->pipeline.parts);
    free(gone->arounds);
    ls_agreement_fini(gone);
    ls_ending_fini(gone);
    ls_mutex_fini(&gone->lock.mutex);
    if (gone->node != NULL)
        ls_node_let_go(gone->node);
    ls_context_destroy(&gone->context);
    free(gone->labels);
    free(gone->roles);
    free(gone);
}

int ls_task_create(ls_task **out, const struct ls_task_options *options)
{
    *out = NULL;
    if (options == NULL)
        return ls_error(LS_EINVAL, "task: its options are NULL");
    if (options->n_workers > N_WORKERS_MAX)
        return ls_error(LS_EINVAL, "task: n_workers is %u; at most %u",
                        options->n_workers, N_WORKERS_MAX);
    ls_task *task = calloc(1, sizeof *task);
    if (task == NULL)
        return ls_error(LS_ENOMEM, "task: no memory");
    atomic_store(&task->run, 1);
    task->forks = ls_forks_now();
    int status = copy_options(task, options);
    if (status == LS_OK)
        status = init_threads(task, options);
    if (status == LS_OK)
        *out = task;
    else
        free_task(task);
    return status;
}

int ls_task_destroy(ls_task **task)
{
    if (task == NULL || *task == NULL)
        return LS_OK;
    ls_task *gone = *task;
    if (ls_task_check_forks(gone) != LS_OK)
        return LS_ESTATE;
    if (atomic_load(&gone->running))
        return ls_error(LS_ESTATE, "task: it cannot be destroyed while it "
                                   "runs");
    *task = NULL;
    ls_finish_unlisten(gone);
    free_task(gone);
    return LS_OK;
}

int ls_step_lock_create(ls_step_lock **out, ls_task *task)
{
    *out = NULL;
    ls_step_lock *lock = calloc(1, sizeof *lock);
    if (lock == NULL)
        return ls_error(LS_ENOMEM, "task: no memory for a lock");
    const int status = ls_mutex_init(&lock->mutex, task->runtime);
    if (status < 0) {
        free(lock);
        return status;
    }
    *out = lock;
    return LS_OK;
}

int ls_step_lock_destroy(ls_step_lock **lock)
{
    if (lock == NULL || *lock == NULL)
        return LS_OK;
    if (atomic_load(&(*lock)->users) != 0)
        return ls_error(LS_ESTATE, "task: a lock cannot be destroyed before "
                                   "the task whose steps take it");
    ls_mutex_fini(&(*lock)->mutex);
    free(*lock);
    *lock = NULL;
    return LS_OK;
}

ls_node *ls_task_node(ls_task *task)
{
    return task->node;
}

ls_runtime *ls_task_runtime(ls_task *task)
{
    return task->runtime;
}

ls_context *ls_task_context(ls_task *task)
{
    return task->context;
}

size_t ls_task_steps_now(const ls_task *task, char *text, size_t size)
{
    size_t used = 0;
    if (size == 0)
        return 0;
    text[0] = '\0';
    for (unsigned i = 0; i <= task->pool.n_workers; i++) {
        const char *doing = atomic_load(&task->pool.lanes[i].doing);
        if (doing == NULL)
            continue;
        const int n = snprintf(text + used, size - used, "%s%s",
                               used > 0 ? ", " : "", doing);
        used += n > 0 ? (size_t)n : 0;
        if (used >= size)
            return size - 1;
    }
    return used;
}

uint64_t ls_task_iterations(const ls_task *task)
{
    return atomic_load(&task->iterations);
}

uint64_t ls_task_round(const ls_task *task)
{
    return atomic_load(&task->round);
}

void ls_task_set_round(ls_task *task, uint64_t round)
{
    atomic_store(&task->round, round);
}

bool ls_task_has_role(const ls_task *task, const char *role)
{
    return ls_task_takes_part(task, role);
}

static bool matches_any(const char *words, const char *glob)
{
    const char *word;
    size_t length;
    while ((word = word_list_next(&words, &length)) != NULL) {
        char label[256];
        (void)snprintf(label, sizeof label, "%.*s", (int)length, word);
        if (fnmatch(glob, label, 0) == 0)
            return true;
    }
    return false;
}

bool ls_task_match_labels(const ls_task *task, const char *globs)
{
    const char *word;
    size_t length;
    while ((word = word_list_next(&globs, &length)) != NULL) {
        char glob[256];
        (void)snprintf(glob, sizeof glob, "%.*s", (int)length, word);
        if (matches_any(task->labels, glob))
            return true;
    }
    return false;
}
