#include "lane.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"
#include "task_core.h"

static void lane_fini(struct lane *lane)
{
    while (lane->spare != NULL) {
        ls_wrapped *wrapped = lane->spare;
        lane->spare = wrapped->next;
        free(wrapped);
    }
    ls_trace_mark_close(&lane->mark);
    ls_fiber_pool_destroy(&lane->fibers);
    ls_cond_fini(&lane->wake);
}

static int lane_init(struct lane *lane, ls_task *task, size_t stack_bytes)
{
    lane->task = task;
    lane->mark = ls_trace_mark_open(task->trace);
    const int status = ls_fiber_pool_create(&lane->fibers, stack_bytes, 1024);
    return status == LS_OK ? ls_cond_init(&lane->wake, task->runtime) : status;
}

int ls_pool_init(ls_task *task, unsigned n_workers, size_t stack_bytes)
{
    struct pool *pool = &task->pool;
    int status = ls_mutex_init(&pool->mutex, task->runtime);
    if (status != LS_OK)
        return status;
    pool->lanes = calloc(n_workers + 1u, sizeof *pool->lanes);
    if (pool->lanes == NULL)
        return ls_error(LS_ENOMEM, "task: no memory for %u workers", n_workers);
    pool->n_workers = n_workers;
    for (unsigned i = 0; i <= n_workers && status == LS_OK; i++)
        status = lane_init(&pool->lanes[i], task, stack_bytes);
    return status;
}

static void join(ls_thread **thread)
{
    if (*thread == NULL)
        return;
    const int status = ls_thread_join(thread, LS_FOREVER);
    assert(status == LS_OK);
    (void)status;
}

static void join_workers(struct pool *pool)
{
    ls_mutex_lock(&pool->mutex);
    pool->stopping = true;
    for (unsigned i = 1; i <= pool->n_workers; i++)
        ls_cond_signal(&pool->lanes[i].wake);
    ls_mutex_unlock(&pool->mutex);
    for (unsigned i = 1; i <= pool->n_workers; i++)
        join(&pool->lanes[i].thread);
    pool->stopping = false;
    pool->started = false;
}

void ls_pool_fini(ls_task *task)
{
    struct pool *pool = &task->pool;
    if (pool->started)
        join_workers(pool);
    for (unsigned i = 0; pool->lanes != NULL && i <= pool->n_workers; i++)
        lane_fini(&pool->lanes[i]);
    free(pool->lanes);
    ls_mutex_fini(&pool->mutex);
}

/* Another name may lie where one was that is gone: so the text is compared. */
uint16_t ls_lane_name(struct lane *lane, const char *name)
{
    ls_trace *const trace = lane->task->trace;
    struct lane_name *const kept = &lane->names[(uintptr_t)name / 16 % 16];
    if (kept->at != name || strncmp(ls_trace_text(trace, kept->number), name,
                                    LS_TRACE_NAME_MAX - 1) != 0) {
        kept->at = name;
        kept->number = ls_trace_name(trace, name);
    }
    return kept->number;
}

ls_wrapped *ls_lane_take_step(struct lane *lane)
{
    ls_wrapped *wrapped = lane->spare;
    if (wrapped == NULL)
        return malloc(sizeof *wrapped);
    lane->spare = wrapped->next;
    return wrapped;
}

void ls_lane_give_step(struct lane *lane, ls_wrapped *wrapped)
{
    wrapped->next = lane->spare;
    lane->spare = wrapped;
}

/* From here on: with the pool's mutex held. */

static void append(struct part **list, struct part *part)
{
    while (*list != NULL)
        list = &(*list)->next;
    part->next = NULL;
    *list = part;
}

static struct part *take_first(struct part **list)
{
    struct part *part = *list;
    if (part != NULL)
        *list = part->next;
    return part;
}

static struct part *take_of_group(struct part **list, const struct group *group)
{
    while (*list != NULL && (*list)->group != group)
        list = &(*list)->next;
    return take_first(list);
}

static void lane_sleep(struct lane *lane)
{
    const int status =
        ls_cond_wait(&lane->wake, &lane->task->pool.mutex, LS_FOREVER);
    assert(status == LS_OK);
    (void)status;
}

static void wake_one_idle(struct pool *pool)
{
    for (unsigned i = 1; i <= pool->n_workers; i++) {
        struct lane *lane = &pool->lanes[i];
        if (lane->idle) {
            lane->idle = false;
            ls_cond_signal(&lane->wake);
            return;
        }
    }
}

static void send_back(struct part *part, struct group *group)
{
    struct lane *lane = part->step.lane;
    part->group = group;
    part->back = true;
    part->outcome = group->outcome;
    append(&lane->sent, part);
    lane->idle = false;
    ls_cond_signal(&lane->wake);
}

/* Send the next part of a chain that has something to resume, or nothing. */
static void send_next(struct group *group)
{
    while (group->left > 0) {
        struct part *part = group->chain[--group->left];
        if (part->active && part->step.lane != NULL) {
            send_back(part, group);
            return;
        }
    }
}

/* Whoever fails first ends the run, so that the others' waits end too. */
static void part_run(struct pool *pool, struct lane *lane, struct part *part)
{
    struct group *group = part->group;
    ls_task *task = lane->task;
    const int given = part->outcome.status;
    ls_mutex_unlock(&pool->mutex);
    if (part->back)
        ls_turn_back(part, &part->outcome);
    else if (ls_task_cancelled(task) < 0)
        ls_outcome_catch(&part->outcome, ls_task_cancelled(task));
    else
        ls_outcome_catch(&part->outcome,
                         ls_turn_forward(part, lane, group->parent));
    if (part->outcome.status != given)
        ls_task_fail(task, ls_failure_return(&part->outcome));
    ls_mutex_lock(&pool->mutex);

    if (group->outcome.status == LS_OK)
        group->outcome = part->outcome;
    group->pending--;
    if (group->chain != NULL)
        send_next(group);
    if (group->pending == 0)
        ls_cond_signal(&group->waiter->wake);
}

static void worker_main(void *arg)
{
    struct lane *lane = arg;
    struct pool *pool = &lane->task->pool;
    if (lane->task->node != NULL)
        ls_log_set_node((int64_t)ls_node_id(lane->task->node));
    ls_mutex_lock(&pool->mutex);
    while (!pool->stopping) {
        struct part *part = take_first(&lane->sent);
        if (part == NULL)
            part = take_first(&pool->ready);
        if (part != NULL) {
            part_run(pool, lane, part);
            ls_log_set_step(NULL);
            continue;
        }
        lane->idle = true;
        lane_sleep(lane);
        lane->idle = false;
    }
    ls_mutex_unlock(&pool->mutex);
}

int ls_pool_start(ls_task *task)
{
    struct pool *pool = &task->pool;
    if (pool->started)
        return LS_OK;
    for (unsigned i = 1; i <= pool->n_workers; i++) {
        const int status =
            ls_thread_spawn(task->runtime, &pool->lanes[i].thread, "ls-worker",
                            worker_main, &pool->lanes[i]);
        if (status < 0) {
            join_workers(pool);
            return ls_error_at(status, "task: worker %u", i);
        }
    }
    pool->started = true;
    return LS_OK;
}

static void group_wait(struct pool *pool, struct group *group,
                       struct lane *lane, bool help)
{
    while (group->pending > 0) {
        struct part *part = take_first(&lane->sent);
        if (part == NULL && help)
            part = take_of_group(&pool->ready, group);
        if (part != NULL)
            part_run(pool, lane, part);
        else
            lane_sleep(lane);
    }
}

void ls_group_forward(struct group *group, struct lane *lane, ls_step *parent,
                      struct part **parts, size_t n, bool help)
{
    struct pool *pool = &lane->task->pool;
    group->waiter = lane;
    group->parent = parent;
    group->pending = 0;
    group->outcome.status = LS_OK;
    group->chain = NULL;

    ls_mutex_lock(&pool->mutex);
    for (size_t i = 0; i < n; i++) {
        struct part *part = parts[i];
        part->step.lane = NULL;
        if (!part->active)
            continue;
        part->group = group;
        part->back = false;
        part->outcome.status = LS_OK;
        append(&pool->ready, part);
        group->pending++;
        wake_one_idle(pool);
    }
    group_wait(pool, group, lane, help);
    ls_mutex_unlock(&pool->mutex);
}

void ls_group_back(struct group *group, struct lane *lane, struct part **parts,
                   size_t n, bool in_turn)
{
    struct pool *pool = &lane->task->pool;
    ls_mutex_lock(&pool->mutex);
    group->waiter = lane;
    group->chain = in_turn ? parts : NULL;
    group->left = n;
    for (size_t i = 0; i < n; i++) {
        if (!parts[i]->active || parts[i]->step.lane == NULL)
            continue;
        group->pending++;
        if (!in_turn)
            send_back(parts[i], group);
    }
    if (in_turn)
        send_next(group);
    group_wait(pool, group, lane, false);
    ls_mutex_unlock(&pool->mutex);
}
