/* probe.h - a kind of work that the tree does not have, as one is added: a
 * description at the coordinator, and one at a member. It looks three times, is
 * placed where a test says, and brings a value. */
#ifndef LOCKSTEP_TESTS_PROBE_H
#define LOCKSTEP_TESTS_PROBE_H

#include <string.h>

#include "fsm_state.h"
#include "service_work.h"
#include "test.h"

#define PROBE_START "probe_start_task"
#define PROBE_LOOK  "probe_look_task"
#define PROBE_CLOSE "probe_close_task"
enum { PROBE_LOOKS = 3, PROBE_NUMBER = 17, PROBE_VALUE = 7 };

/* At the coordinator ------------------------------------------------------- */

static const struct fsm_task probe_tasks[3];

static inline int64_t probe_expiry(const struct fsm_options *options)
{
    return options->collector_expiry;
}

static inline void probe_describe(const struct fsm_options *options, char *text,
                                  size_t size)
{
    (void)options;
    (void)snprintf(text, size, "%d looks", PROBE_LOOKS);
}

static inline bool probe_wanted(const struct scheduler *scheduler,
                                const struct kind_use *own,
                                const struct pool *pool, int64_t now)
{
    (void)pool;
    (void)now;
    return own->out == 0 && scheduler->evaluations == 0;
}

static inline void probe_write_start(fsm *self, const struct work *work)
{
    work_key_write(&work->key, self->writer);
}

static inline bool probe_turn(fsm *self, struct work *work, int64_t now)
{
    (void)now;
    if (fsm_has_call(self, work, &probe_tasks[1]))
        return false;
    ls_writer_clear(self->writer);
    work_key_write(&work->key, self->writer);
    fsm_ask(self, &probe_tasks[1], work, NULL);
    return false;
}

static inline void probe_looked(fsm *self, int64_t now,
                                const struct open_call *call,
                                const struct ls_call_result *result)
{
    struct work *work = call->work;
    struct service_resource looked;
    if (fsm_work_call_failed(self, now, call, result))
        return;
    if (service_resource_read(&looked, result->data, result->size) != LS_OK) {
        fsm_work_malformed(self, now, call);
        return;
    }
    work->progress = looked.progress;
    if (work->progress >= PROBE_LOOKS)
        fsm_work_close(self, work, now, WORK_FINISHED);
}

static inline bool probe_brings(fsm *self, struct work *work, int64_t now,
                                const struct work_exit *exit)
{
    if (exit == NULL)
        return false;
    scheduler_evaluated(&self->scheduler, exit->value, exit->version);
    fsm_work_over(self, work, now, false);
    fsm_record_figures(self);
    return true;
}

static const char *const probe_outputs[] = {"value", NULL};
static const struct fsm_task probe_tasks[3] = {
    {.phase = LS_JOB_INIT, .name = PROBE_START},
    {.phase = LS_JOB_EPOCH, .name = PROBE_LOOK, .ended = probe_looked},
    {.phase = LS_JOB_EXIT, .name = PROBE_CLOSE, .outputs = probe_outputs}};

static inline struct fsm_kind probe_kind(const char *where)
{
    return (struct fsm_kind){.name = "probe",
                             .verb = "probe",
                             .number = PROBE_NUMBER,
                             .where = where,
                             .tasks = probe_tasks,
                             .n_tasks = 3,
                             .expiry = probe_expiry,
                             .describe = probe_describe,
                             .wanted = probe_wanted,
                             .compare = pool_compare_cpu,
                             .write_start = probe_write_start,
                             .turn = probe_turn,
                             .read_exit = fsm_collector_read_exit,
                             .brings = probe_brings};
}

/* At a member -------------------------------------------------------------- */

struct prober {
    struct service_work work;
    ls_request *ask; /* own */
    int64_t looks;
};

static const struct service_kind prober_kind;

static inline int prober_start(void *self, ls_request *request)
{
    struct prober *prober = self;
    struct work_key key;
    const int status = service_work_read_key(&prober->work, request, &key);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&prober->work.mutex);
    if (service_work_start(&prober->work, &request, &prober_kind, &key))
        prober->looks = 0;
    ls_mutex_unlock(&prober->work.mutex);
    return LS_OK;
}

static inline int prober_look(void *self, ls_request *request)
{
    struct prober *prober = self;
    struct work_key key;
    const int status = service_work_read_key(&prober->work, request, &key);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&prober->work.mutex);
    if (service_work_admits(&prober->work, &request, &key)) {
        prober->ask = request;
        service_work_changed(&prober->work);
    }
    ls_mutex_unlock(&prober->work.mutex);
    return LS_OK;
}

static inline bool prober_is_asked(void *self)
{
    const struct prober *prober = self;
    return prober->ask != NULL || prober->work.closing;
}

/* A turn. */
static inline int prober_step(ls_step *step, void *self)
{
    struct prober *prober = self;
    struct service_work *work = &prober->work;
    (void)step;
    if (!service_work_is_used(work))
        return LS_OK;
    const int status = service_work_wait(work, prober_is_asked, prober);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&work->mutex);
    struct service_resource looked = {.attempt = work->key.attempt,
                                      .progress = prober->looks + 1};
    if (prober->ask != NULL) {
        prober->looks++;
        memcpy(looked.task_id, work->key.task_id, sizeof looked.task_id);
        ls_writer_clear(work->writer);
        service_resource_write(&looked, work->writer);
        (void)service_work_answer(work, &prober->ask);
    }
    ls_mutex_unlock(&work->mutex);
    if (service_work_is_closing(work))
        service_work_let_go(work, NULL);
    return LS_OK;
}

static inline int64_t prober_progress(void *self)
{
    const struct prober *prober = self;
    return prober->looks;
}

static inline void prober_drop(void *self, const char *text)
{
    struct prober *prober = self;
    service_work_fail_call(&prober->ask, text);
}

static inline void prober_closed(void *self, ls_writer *out)
{
    const struct prober *prober = self;
    collector_closed_write(
        &(struct collector_closed){.key = prober->work.key,
                                   .reward_mean = PROBE_VALUE,
                                   .policy_version = -1},
        out);
}

static const struct service_task prober_tasks[] = {
    {LS_JOB_INIT, PROBE_START, prober_start},
    {LS_JOB_EPOCH, PROBE_LOOK, prober_look},
    {LS_JOB_EXIT, PROBE_CLOSE, NULL}};
static const struct service_work_step prober_steps[] = {{"look", prober_step}};
static const struct service_kind prober_kind = {.tasks = prober_tasks,
                                                .n_tasks = 3,
                                                .steps = prober_steps,
                                                .n_steps = 1,
                                                .progress = prober_progress,
                                                .drop = prober_drop,
                                                .closed = prober_closed};

#endif
