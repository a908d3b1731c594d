/* The machine as a whole: made, told the time, ended. */
#include "fsm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsm_state.h"
#include "lockstep/place.h"

/* A buffer with these options is tried, so that later ones cannot fail. */
static int check_replay(const fsm *self)
{
    struct replay_options options = self->options.replay;
    options.name = "buffer_1";
    options.max_batch = (size_t)self->options.batch_size;
    struct replay *buffer;
    const int status = replay_create(&buffer, &options);
    if (status == LS_OK)
        replay_destroy(&buffer);
    return status;
}

static void fill_in(fsm *self, const struct fsm_options *options)
{
    self->options = *options;
    const struct {
        int64_t *value, by_default;
    } defaults[] = {
        {&self->options.learner_expiry, 600 * LS_NS_PER_S},
        {&self->options.collector_expiry, 30 * LS_NS_PER_S},
        {&self->options.retry, 3 * LS_NS_PER_S},
        {&self->options.call_timeout, 10 * LS_NS_PER_S},
        {&self->options.work_timeout, 60 * LS_NS_PER_S},
        {&self->options.max_failures, 10},
        {&self->options.ahead, 1},
        {&self->options.learner_batches, 2},
    };
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (*defaults[i].value == 0)
            *defaults[i].value = defaults[i].by_default;
    self->works.same_attempt =
        options->sabotage == SERVICE_SABOTAGE_SAME_ATTEMPT;
    self->scheduler = (struct scheduler){
        .eval_interval = options->eval_interval,
        .eval_episodes = options->eval_episodes,
        .max_env_steps = options->max_env_steps,
        .retry = self->options.retry,
        .stop_value = options->stop_value,
        .collector_works = options->collector_works,
        .spares_one =
            options->samples_per_work == 0 && options->eval_episodes > 0,
    };
    scheduler_init(&self->scheduler);
    ls_rng_seed(&self->pool.rng, options->seed, 0);
}

static int take_kinds(fsm *self, const struct fsm_kind *const *kinds)
{
    struct scheduler *scheduler = &self->scheduler;
    size_t n = 0;
    while (kinds[n] != NULL)
        n++;
    scheduler->uses = calloc(n + 1, sizeof *scheduler->uses);
    if (scheduler->uses == NULL)
        return ls_error(LS_ENOMEM, "the kinds of work of a coordinator");
    scheduler->n_uses = n;
    for (size_t i = 0; i < n; i++) {
        scheduler->uses[i] = (struct kind_use){
            .kind = kinds[i],
            .expiry = kinds[i]->expiry(&self->options),
            .ranks = fsm_kind_ranks(kinds[i], &self->options)};
        const int status = ls_place_check(kinds[i]->where);
        if (status != LS_OK)
            return ls_error_at(status, "%s works", kinds[i]->name);
    }
    return LS_OK;
}

int fsm_create(fsm **out, const struct fsm_options *options,
               const struct fsm_kind *const *kinds)
{
    int status = coordinator_settings_check(options);
    if (status != LS_OK)
        return status;
    fsm *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "a coordinator");
    fill_in(self, options);
    status = take_kinds(self, kinds);
    if (status == LS_OK)
        status = check_replay(self);
    if (status == LS_OK)
        status = ls_writer_create(&self->writer);
    if (status == LS_OK)
        *out = self;
    else
        fsm_destroy(&self);
    return status;
}

void fsm_destroy(fsm **machine)
{
    fsm *self = machine == NULL ? NULL : *machine;
    if (self == NULL)
        return;
    *machine = NULL;
    fsm_calls_fini(self);
    fsm_actions_fini(self);
    works_fini(&self->works);
    free(self->scheduler.uses);
    pool_fini(&self->pool);
    ls_writer_destroy(&self->writer);
    free(self);
}

void fsm_no_memory(fsm *self)
{
    if (self->status == LS_OK)
        self->status = ls_error(LS_ENOMEM, "the coordinator's state");
}

void fsm_end(fsm *self, int64_t now, int status, const char *text)
{
    if (self->end.begun)
        return;
    self->end.begun = true;
    self->end.status = status;
    if (text != self->end.text)
        (void)snprintf(self->end.text, sizeof self->end.text, "%s", text);
    if (status == LS_OK && !self->end.recorded) {
        self->end.recorded = true; /* a later life has nothing to add to it */
        fsm_record_end(self);
    }
    fsm_say(self, LS_LOG_INFO, "the job ends: %s", text);
    struct work *work = self->works.first;
    while (work != NULL) {
        const bool ends = work->doomed;
        if (!ends)
            fsm_work_close(self, work, now, WORK_GIVEN_UP);
        else if (work->until > now + self->options.call_timeout)
            work->until = now + self->options.call_timeout;
        work = ends ? work->next : self->works.first;
    }
    fsm_cancel_questions(self);
}

int fsm_stop(fsm *self, int64_t now, int status, const char *text)
{
    fsm_end(self, now, status, text);
    fsm_settle(self, now);
    return self->status;
}

static bool turn(fsm *self, struct work *work, int64_t now)
{
    return work->state == WORK_RUNNING && work->again_at <= now &&
           kind_of(work)->turn(self, work, now);
}

/* What is inserted may be sampled, and what is sampled makes room. */
static void pump(fsm *self, int64_t now)
{
    bool more = true;
    while (more && self->status == LS_OK && !self->end.begun) {
        struct work *owner = fsm_buffer_owner(self);
        more = owner != NULL && turn(self, owner, now);
        for (struct work *w = self->works.first; w != NULL; w = w->next)
            if (w->buffer == NULL && turn(self, w, now))
                more = true;
    }
}

void fsm_policies(const fsm *self, const char **best, const char **other)
{
    const bool enough = self->scheduler.value >= self->scheduler.stop_value &&
                        self->evaluated[0] != '\0';
    *best = enough ? self->evaluated : self->policy_id;
    *other = enough ? self->policy_id : self->evaluated;
}

static void finish(fsm *self)
{
    if (self->end.told || self->works.first != NULL ||
        self->calls.first != NULL || self->snapshot.number != 0)
        return;
    self->end.told = true;
    fsm_record_figures(self);
    fsm_act(self, &(struct fsm_action){.kind = FSM_DONE,
                                       .status = self->end.status,
                                       .text = self->end.text,
                                       .name = self->evaluated,
                                       .from = self->policy_id,
                                       .value = self->scheduler.value});
}

void fsm_settle(fsm *self, int64_t now)
{
    if (self->status != LS_OK || self->end.told)
        return;
    if (!self->begun)
        fsm_begin(self, now);
    self->begun = true;
    if (now >= self->end.at)
        fsm_end(self, now, LS_OK, "the time is up");
    fsm_drive_works(self, now);
    if (!self->end.begun)
        fsm_drive_scheduler(self, now);
    if (!self->end.begun)
        fsm_drive_queue(self, now);
    pump(self, now);
    fsm_drive_works(self, now); /* closes what ended just now */
    fsm_drive_members(self, now);
    if (self->end.begun)
        finish(self);
}

int fsm_time(fsm *self, int64_t now)
{
    fsm_settle(self, now);
    return self->status;
}

int64_t fsm_wake_at(const fsm *self, int64_t now)
{
    if (self->end.told || self->status != LS_OK)
        return LS_FOREVER;
    if (!self->begun)
        return now;
    int64_t at = pool_wake_at(&self->pool, now);
    const int64_t others[] = {
        works_wake_at(&self->works, now),
        self->end.begun ? LS_FOREVER : scheduler_wake_at(&self->scheduler, now),
        self->end.begun ? LS_FOREVER : self->end.at};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i] < at)
            at = others[i];
    return at;
}

void fsm_figures(const fsm *self, struct fsm_figures *out)
{
    const struct scheduler *scheduler = &self->scheduler;
    *out = self->counted;
    out->env_steps = scheduler->env_steps;
    out->learner_step = scheduler->learner_step;
    out->infos = scheduler->infos;
    out->done_infos = scheduler->done_infos;
    out->evaluations = scheduler->evaluations;
    out->eval_value = scheduler->value;
    out->policy_version = scheduler->policy_version;
    const struct work *owner = fsm_buffer_owner(self);
    if (owner != NULL)
        replay_figures(owner->buffer, &out->replay);
}
