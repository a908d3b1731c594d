/* A collector work: it is asked for data while the replay buffer takes some,
 * and what it brings goes there. It ends when it has brought as much as it was
 * asked for, or when nobody learns any more. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fsm_state.h"

enum { START, DATA, CLOSE, TASKS };
static const struct fsm_task tasks[TASKS];

/* When one is wanted ------------------------------------------------------- */

static int64_t expiry(const struct fsm_options *options)
{
    return options->collector_expiry;
}

static void describe(const struct fsm_options *options, char *text, size_t size)
{
    char some[64] = "as long as somebody learns, trajectories";
    if (options->samples_per_work > 0)
        (void)snprintf(some, sizeof some, "%" PRId64 " trajectories",
                       options->samples_per_work);
    (void)snprintf(text, size, "%s of %" PRId64 " steps", some,
                   options->unroll_len);
}

/* One for each that is there, but for those that others need. */
static size_t most(const struct scheduler *scheduler,
                   const struct kind_use *own, const struct pool *pool)
{
    size_t others = scheduler_others(scheduler, own);
    if (scheduler->collector_works > 0)
        return scheduler->collector_works;
    const size_t there = pool_count(pool, own->kind);
    if (others == 0 && scheduler->spares_one && there > 1)
        others = 1;
    return there > others ? there - others : 0;
}

/* Without a policy nobody can collect. */
static bool wanted(const struct scheduler *scheduler,
                   const struct kind_use *own, const struct pool *pool,
                   int64_t now)
{
    (void)now;
    return !scheduler_is_learned(scheduler) && scheduler->policy_version >= 0 &&
           own->out < most(scheduler, own, pool);
}

static void ask(fsm *self, struct kind_use *own, int64_t now)
{
    struct work *work = fsm_work_new(self, own, 0, now);
    const struct work *owner = fsm_buffer_owner(self);
    if (work == NULL)
        return;
    memcpy(work->policy_id, self->policy_id, sizeof work->policy_id);
    if (owner != NULL)
        memcpy(work->buffer_id, owner->buffer_id, sizeof work->buffer_id);
}

static void write_start(fsm *self, const struct work *work)
{
    fsm_collector_write_start(
        self, work,
        &(struct collector_work){.samples = self->options.samples_per_work});
}

/* Its turns ---------------------------------------------------------------- */

/* How many pieces of data may be asked for, of all collectors together: so many
 * that each sample that comes of them is drawn, and in time. What is lent
 * raises the version, and so does what is drawn before them. */
static int64_t room(const fsm *self, const struct work *owner)
{
    const struct fsm_options *options = &self->options;
    int64_t useful =
        1 + (options->replay.staleness_limit - 1) * options->send_policy_freq;
    int64_t lent = 0;
    for (size_t i = 0; i < owner->n_lent; i++)
        lent += owner->lent[i].n > 0 ? 1 : 0;
    useful = useful > lent ? useful - lent : 0;
    int64_t samples = replay_room(owner->buffer, useful, lent == 0);
    for (const struct work *w = self->works.first; w != NULL; w = w->next) {
        samples -= w->asked * options->split;
        for (const struct waiting_data *d = w->waiting; d != NULL; d = d->next)
            samples -= d->whole.parts - d->part;
    }
    return samples > 0 ? (samples + options->split - 1) / options->split : 0;
}

/* Its share of what there is room for, and what it has not brought yet. */
static int64_t share_of(const fsm *self, const struct work *owner,
                        const struct work *work)
{
    const struct fsm_options *options = &self->options;
    const int64_t all = (int64_t)works_count(&self->works, work->use);
    const int64_t share = (room(self, owner) + all - 1) / all;
    const int64_t most = 1 + options->ahead;
    const int64_t wants =
        work->asked + share < most ? work->asked + share : most;
    const int64_t left = options->samples_per_work - work->progress;
    if (options->samples_per_work == 0 || wants <= left)
        return wants;
    return left > 0 ? left : 1; /* then it tells that it is done */
}

/* Works that never end: one does when an evaluation waits for a member, and too
 * few are left for all of them and it. */
static bool gives_way(const fsm *self, const struct work *work)
{
    const struct kind_use *own = work->use;
    size_t n_out = 0;
    bool awaited = false;
    if (!self->scheduler.spares_one)
        return false;
    for (const struct work *w = self->works.first; w != NULL; w = w->next) {
        n_out += w->use == own && w->state != WORK_CLOSING && !w->doomed;
        awaited = awaited || (w->use != own && w->state == WORK_QUEUED &&
                              strcmp(kind_of(w)->where, own->kind->where) == 0);
    }
    return awaited && n_out > most(&self->scheduler, own, &self->pool);
}

static bool turn(fsm *self, struct work *work, int64_t now)
{
    struct work *owner = fsm_buffer_owner(self);
    if (owner == NULL)
        return false;
    if (gives_way(self, work)) {
        fsm_work_close(self, work, now, WORK_FINISHED);
        return false;
    }
    const bool inserted = fsm_waiting_insert(self, owner, work);
    if (self->status != LS_OK || fsm_has_call(self, work, &tasks[DATA]))
        return inserted;
    const int64_t want = share_of(self, owner, work);
    if (want > 0)
        fsm_data_ask(self, &tasks[DATA], work, self->scheduler.policy_version,
                     want);
    return inserted;
}

static void take_data(fsm *self, const struct open_call *call,
                      const struct collector_data *data)
{
    struct work *work = call->work;
    struct work *owner = fsm_buffer_owner(self);
    const uint32_t home = self->options.data_elsewhere ? self->options.data_home
                                                       : call->member->id;
    for (size_t i = 0; i < data->n; i++)
        fsm_waiting_add(self, work, &data->samples[i], home);
    work->progress += (int64_t)data->n;
    work->asked -= (int64_t)data->n;
    if (work->asked < 0)
        work->asked = 0;
    if (owner != NULL)
        (void)fsm_waiting_insert(self, owner, work);
    else
        fsm_waiting_drop(self, work);
}

static void data_ended(fsm *self, int64_t now, const struct open_call *call,
                       const struct ls_call_result *result)
{
    struct work *work = call->work;
    struct collector_data data;
    if (!fsm_data_read(self, now, call, result, true, &data))
        return;
    if (!data.is_info) {
        take_data(self, call, &data);
    } else {
        work->progress = data.info.cur_sample;
        if (data.info.collector_done)
            fsm_work_close(self, work, now, WORK_FINISHED);
    }
    collector_data_fini(&data);
}

/* Its end ------------------------------------------------------------------ */

static void unneeded(fsm *self, struct work *work, int64_t now)
{
    fsm_work_close(self, work, now, WORK_FINISHED);
}

static bool is_done(const struct work *work)
{
    return (work->state == WORK_CLOSING || work->doomed) &&
           work->end == WORK_FINISHED;
}

/* The kind ----------------------------------------------------------------- */

static const char *const brings[] = {"samples", NULL};

static const struct fsm_task tasks[TASKS] = {
    [START] = {.phase = LS_JOB_INIT, .name = CALL_COLLECTOR_START},
    [DATA] = {.phase = LS_JOB_EPOCH,
              .name = CALL_COLLECTOR_DATA,
              .outputs = brings,
              .ended = data_ended,
              .late = fsm_data_late},
    [CLOSE] = {.phase = LS_JOB_EXIT, .name = CALL_COLLECTOR_CLOSE},
};

const struct fsm_kind fsm_kind_collector = {.name = "collector",
                                            .verb = "collect",
                                            .number = 1,
                                            .where = "role:collector",
                                            .tasks = tasks,
                                            .n_tasks = TASKS,
                                            .expiry = expiry,
                                            .describe = describe,
                                            .wanted = wanted,
                                            .ask = ask,
                                            .compare = pool_compare_cpu,
                                            .write_start = write_start,
                                            .turn = turn,
                                            .unneeded = unneeded,
                                            .is_done = is_done,
                                            .read_exit =
                                                fsm_collector_read_exit};
