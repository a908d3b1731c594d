/* A run of a job: what the node that leads does, and how the others wait. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job_parts.h"
#include "lockstep/log.h"

#define END_TIMEOUT_MS 10000

/* What the leader knows of a run. */
struct lead {
    ls_job *job;
    int64_t epoch; /* the last one that ended */
    bool stopped;
    bool resumed; /* later checkpoints are still to be removed */
};

/* ---- questions --------------------------------------------------------- */

struct group_question {
    const char *what;
    int64_t epoch;
    int64_t phase;
};

static int write_question(void *self, ls_writer *writer, struct ls_body *body,
                          size_t i)
{
    const struct group_question *q = self;
    (void)body;
    (void)i;
    ls_write_map(writer, 3);
    ls_write_string(writer, "do");
    ls_write_string(writer, q->what);
    ls_write_string(writer, "epoch");
    ls_write_int(writer, q->epoch);
    ls_write_string(writer, "phase");
    ls_write_int(writer, q->phase);
    return LS_OK;
}

static int write_hello(void *self, ls_writer *writer, struct ls_body *body,
                       size_t i)
{
    const ls_job *job = self;
    (void)body;
    (void)i;
    ls_write_map(writer, 2);
    ls_write_string(writer, "do");
    ls_write_string(writer, "hello");
    ls_write_string(writer, "text");
    ls_write_string(writer, job->text);
    return LS_OK;
}

void job_took(ls_job *job, enum ls_job_operation operation, int64_t since)
{
    struct ls_job_time *time = &job->result.times[operation];
    time->n++;
    time->last_ns = ls_now(job->runtime) - since;
    time->total_ns += time->last_ns;
}

/* ---- groups ------------------------------------------------------------ */

static int gather(struct lead *lead, struct ask *answered)
{
    ls_job *job = lead->job;
    const ls_value *root = ls_document_root(answered->document);
    const ls_value *outputs = ls_value_get(root, "outputs");
    bool stops = false;
    int status = ls_value_bool(ls_value_get(root, "stops"), &stops);
    lead->stopped = lead->stopped || stops;
    for (size_t i = 0; status == LS_OK && i < ls_value_size(outputs); i++) {
        const void *data;
        size_t size;
        status = ls_value_binary(ls_value_at(outputs, i), &data, &size);
        if (status == LS_OK)
            status = job_outputs_put(job, answered->to,
                                     ls_value_key(outputs, i), data, size);
    }
    size_t total = 0;
    for (const struct job_output *at = job->outputs; at != NULL; at = at->next)
        total += at->size + 128;
    if (status == LS_OK && total > LS_CALL_DATA_MAX - 4096)
        status =
            ls_error(LS_ELIMIT,
                     "job %s: all outputs together have %zu bytes, over %d: "
                     "put out less, or leave it in blobs that are saved",
                     job->options.name, total, LS_CALL_DATA_MAX - 4096);
    return status;
}

/* All nodes are asked, those without a task too: they know that the job goes
 * on. */
static int run_group(struct lead *lead, enum ls_job_phase phase, int64_t epoch,
                     enum ls_job_operation operation)
{
    ls_job *job = lead->job;
    struct group_question q = {.what = "run", .epoch = epoch, .phase = phase};
    if (job->groups[phase] == NULL)
        return LS_OK;
    const int64_t begin = ls_now(job->runtime);
    struct ask *asks = calloc(job->n_nodes, sizeof *asks);
    if (asks == NULL)
        return ls_error(LS_ENOMEM, "%zu questions", job->n_nodes);
    int status = ask_all(&job->asker, job->nodes, job->n_nodes, write_question,
                         &q, job->options.group_timeout_ms, asks);
    for (size_t i = 0; i < job->n_nodes && status == LS_OK; i++)
        status = gather(lead, &asks[i]);
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    for (size_t i = 0; i < job->n_nodes; i++)
        ask_destroy(&asks[i]);
    free(asks);
    job_took(job, operation, begin);
    return ls_failure_return(&failure);
}

/* ---- saving ------------------------------------------------------------ */

/* A failed save may end the job, or not. A lost node ends it. */
static int judge(struct lead *lead, int64_t epoch, int status)
{
    ls_job *job = lead->job;
    if (status == LS_OK)
        return run_group(lead, LS_JOB_UPLOAD, epoch, LS_JOB_OP_UPLOAD);
    if (!job->options.goes_on || status == LS_ELOST)
        return status;
    ls_log_warn("%s; it goes on", ls_error_text());
    job->result.failed_saves++;
    return LS_OK;
}

/* Wait for the save that goes on behind. */
static int finish_behind(struct lead *lead)
{
    int64_t epoch;
    const int status = saves_finish(&lead->job->saves, &epoch);
    return epoch == LS_CHECKPOINT_NONE ? LS_OK : judge(lead, epoch, status);
}

static int save_behind(struct lead *lead, const struct saves_point *point)
{
    int64_t epoch;
    int status = finish_behind(lead);
    if (status != LS_OK)
        return status;
    status = saves_save_behind(&lead->job->saves, point, &epoch);
    return status == LS_OK ? LS_OK : judge(lead, epoch, status);
}

/* Later checkpoints are of a run that this one has left. */
static int rewind_once(struct lead *lead, int64_t epoch)
{
    if (!lead->resumed)
        return LS_OK;
    const int status = saves_rewind(&lead->job->saves, epoch);
    lead->resumed = status != LS_OK;
    return status;
}

static int save(struct lead *lead, int64_t epoch)
{
    ls_job *job = lead->job;
    const struct saves_point point = {.epoch = epoch, .stopped = lead->stopped};
    if (job->saves.store == NULL)
        return LS_OK;
    const int64_t begin = ls_now(job->runtime);
    int status = rewind_once(lead, epoch - 1);
    if (status == LS_OK)
        status = job->options.saves_behind
                     ? save_behind(lead, &point)
                     : judge(lead, epoch, saves_save(&job->saves, &point));
    job_took(job, LS_JOB_OP_SAVE, begin);
    return status;
}

/* ---- leading ----------------------------------------------------------- */

static int run_epochs(struct lead *lead)
{
    int status = LS_OK;
    while (!lead->stopped && status == LS_OK) {
        status =
            run_group(lead, LS_JOB_EPOCH, lead->epoch + 1, LS_JOB_OP_EPOCH);
        if (status != LS_OK)
            break;
        lead->epoch++;
        lead->job->result.epoch = lead->epoch;
        lead->job->result.n_epochs++;
        status = save(lead, lead->epoch);
    }
    return status;
}

static int lead_run(struct lead *lead, int64_t load, const char *const *names)
{
    ls_job *job = lead->job;
    int status = ask_each(&job->asker, job->nodes, job->n_nodes, write_hello,
                          job, job->options.start_timeout_ms);
    if (status == LS_ETIMEDOUT)
        (void)ls_error_at(status,
                          "job %s: not all nodes began it within %d ms "
                          "(start_timeout_ms)",
                          job->options.name, job->options.start_timeout_ms);
    if (status == LS_OK)
        status = job_resume(job, load, names, &lead->epoch, &lead->stopped);
    if (status != LS_OK || load != LS_CHECKPOINT_NONE)
        return status;
    lead->resumed = lead->epoch != LS_CHECKPOINT_NONE;
    if (lead->epoch == LS_CHECKPOINT_NONE) {
        lead->epoch = 0;
        status = run_group(lead, LS_JOB_INIT, 0, LS_JOB_OP_INIT);
        if (status == LS_OK)
            status = save(lead, 0);
    }
    job->result.epoch = lead->epoch;
    if (status == LS_OK)
        status = run_epochs(lead);
    if (status == LS_OK)
        status = finish_behind(lead);
    if (status == LS_OK)
        status =
            run_group(lead, LS_JOB_DOWNLOAD, lead->epoch, LS_JOB_OP_DOWNLOAD);
    return status == LS_OK
               ? run_group(lead, LS_JOB_EXIT, lead->epoch, LS_JOB_OP_EXIT)
               : status;
}

static void write_end(const ls_job *job, const struct ls_failure *failure,
                      ls_writer *writer)
{
    uint32_t n = 0;
    for (const struct job_output *at = job->outputs; at != NULL; at = at->next)
        n++;
    if (failure->status != LS_OK)
        n = 0;
    ls_write_map(writer, 6);
    ls_write_string(writer, "end");
    ls_write_int(writer, failure->status);
    ls_write_string(writer, "text");
    ls_write_string(writer, failure->text);
    ls_write_string(writer, "epoch");
    ls_write_int(writer, job->result.epoch);
    ls_write_string(writer, "n_epochs");
    ls_write_uint(writer, job->result.n_epochs);
    ls_write_string(writer, "failed");
    ls_write_uint(writer, job->result.failed_saves);
    ls_write_string(writer, "outputs");
    ls_write_array(writer, n);
    for (const struct job_output *at = job->outputs; n != 0 && at != NULL;
         at = at->next) {
        ls_write_array(writer, 3);
        ls_write_uint(writer, at->node);
        ls_write_string(writer, at->name);
        ls_write_binary(writer, at->data, at->size);
    }
}

/* Tell the others how it ended; whom nobody can reach finds out. */
static void tell_end(ls_job *job, const struct ls_failure *failure)
{
    ls_writer *writer;
    int status = LS_OK;
    struct ask *asks = calloc(job->n_nodes, sizeof *asks);
    if (asks == NULL || ls_writer_create(&writer) != LS_OK) {
        free(asks);
        return;
    }
    for (size_t i = 0; i < job->n_nodes; i++) {
        if (job->nodes[i] == job->id)
            continue;
        write_end(job, failure, writer);
        ask_begin(&asks[i], &job->asker, job->nodes[i], writer, NULL,
                  END_TIMEOUT_MS);
    }
    for (size_t i = 0; i < job->n_nodes; i++) {
        if (asks[i].call != NULL)
            status = ls_call_wait(asks[i].call, LS_WAIT_DEFAULT);
        ask_destroy(&asks[i]);
    }
    (void)status; /* who has not heard it finds out */
    ls_writer_destroy(&writer);
    free(asks);
}

static int lead_all(ls_job *job, int64_t load_epoch, const char *const *names)
{
    struct lead lead = {.job = job};
    struct ls_failure failure;
    int64_t epoch;
    ls_failure_keep(&failure, lead_run(&lead, load_epoch, names));
    (void)saves_finish(&job->saves, &epoch); /* after an error */
    tell_end(job, &failure);
    return ls_failure_return(&failure);
}

/* ---- following --------------------------------------------------------- */

static void on_member(void *self, const struct ls_member *member)
{
    ls_job *job = self;
    if (member->id != job->leader ||
        (member->state != LS_MEMBER_LOST && member->state != LS_MEMBER_LEFT))
        return;
    ls_mutex_lock(&job->asker.mutex);
    if (!job->ended) {
        ls_failure_keep(&job->failure,
                        ls_error(LS_ELOST,
                                 "node %" PRIu32 ", which leads job %s, %s",
                                 member->id, job->options.name,
                                 member->state == LS_MEMBER_LEFT ? "has left"
                                                                 : "was lost"));
        job_set_ended(job);
    }
    ls_mutex_unlock(&job->asker.mutex);
}

static int leader_is_here(const ls_job *job)
{
    struct ls_member leader;
    const int status = ls_node_member(job->node, job->leader, &leader);
    return status == LS_OK && leader.state == LS_MEMBER_READY
               ? LS_OK
               : ls_error(LS_ELOST,
                          "node %" PRIu32 ", which leads job %s, is gone",
                          job->leader, job->options.name);
}

/* When the leader has asked nothing for longer than anything may take. */
static int64_t patience(const ls_job *job)
{
    const struct ls_job_options *options = &job->options;
    return job->asked_at +
           LS_NS_PER_MS * (job->asked
                               ? (int64_t)options->group_timeout_ms +
                                     4 * (int64_t)options->save_timeout_ms
                               : options->start_timeout_ms);
}

/* Until the leader says that it has ended, or is lost. */
static int follow(ls_job *job)
{
    int status = LS_OK;
    ls_mutex_lock(&job->asker.mutex);
    while (!job->ended && status == LS_OK)
        if (ls_cond_wait(&job->asker.cond, &job->asker.mutex, patience(job)) !=
                LS_OK &&
            ls_now(job->runtime) >= patience(job))
            status = ls_error(LS_ETIMEDOUT,
                              "job %s: node %" PRIu32
                              ", which leads it, asks nothing (%s)",
                              job->options.name, job->leader,
                              job->asked ? "group_timeout_ms and four times "
                                           "save_timeout_ms"
                                         : "start_timeout_ms");
    if (status == LS_OK)
        status = ls_failure_return(&job->failure);
    ls_mutex_unlock(&job->asker.mutex);
    return status;
}

/* ---- a run ------------------------------------------------------------- */

static int open_store(ls_job *job)
{
    struct saves *saves = &job->saves;
    saves->asker = &job->asker;
    saves->what = job->what;
    saves->run = job->options.name;
    saves->id = job->id;
    saves->leader = job->leader;
    saves->blobs = job_is_keeper(job) ? job->global.blobs : NULL;
    saves->folder = job->options.folder;
    saves->retention = job->options.retention;
    saves->timeout_ms = job->options.save_timeout_ms;
    saves->others = job->options.elastic ? SAVES_DIVIDE : SAVES_REFUSE;
    saves->ops = &job_saves_ops;
    saves->self = job;
    saves->nodes = job->keepers;
    saves->n_nodes = job->n_keepers;
    return saves_open(saves);
}

/* The job is over for who finds it gone: nobody will ask anything. */
static int meet_leader(ls_job *job)
{
    int status = ls_node_on_member(job->node, on_member, job);
    if (status != LS_OK)
        return status;
    status = leader_is_here(job);
    if (status != LS_OK) {
        ls_mutex_lock(&job->asker.mutex);
        job_set_ended(job);
        ls_mutex_unlock(&job->asker.mutex);
    }
    return status;
}

static int begin(ls_job *job)
{
    int status = ls_job_compile(job);
    if (status == LS_OK && job->id != job->leader)
        status = meet_leader(job);
    if (status == LS_OK)
        status = open_store(job);
    return status == LS_OK ? job_node_begin(job) : status;
}

/* Nobody has told this node: it waits until the one that leads asks something,
 * and so hears of it. */
static void say_failure(ls_job *job, const struct ls_failure *failure)
{
    ls_mutex_lock(&job->asker.mutex);
    int status = job->compiled && job->id != job->leader ? LS_OK : LS_ESTATE;
    if (!job->ended && job->failure.status == LS_OK)
        job->failure = *failure;
    while (!job->ended && !job->asked && status == LS_OK)
        status =
            ls_cond_wait(&job->asker.cond, &job->asker.mutex, patience(job));
    ls_mutex_unlock(&job->asker.mutex);
}

/* A failure that the others know from the leader is over; another one answers
 * what they ask. */
static int finish(ls_job *job, int status)
{
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    if (status != LS_OK)
        say_failure(job, &failure);
    const int removed = ls_node_on_member(job->node, NULL, job);
    (void)removed; /* cannot fail */
    job_node_end(job);
    const int closed = saves_close(&job->saves);
    if (closed != LS_OK && failure.status == LS_OK)
        ls_failure_keep(&failure, closed);
    return ls_failure_return(&failure);
}

/* A task that did not end when it was told to is what the owner of the job must
 * know first; `status` is why it was told. */
static int name_left(ls_job *job, int status)
{
    struct ls_failure why, left;
    ls_failure_keep(&why, status);
    ls_failure_keep(&left, turns_end(job, LS_ETIMEDOUT));
    return left.status == LS_OK
               ? ls_failure_return(&why)
               : ls_error(LS_ETIMEDOUT, "node %" PRIu32 ": %s, because: %s",
                          job->id, left.text,
                          status != LS_OK ? why.text : "the job is over");
}

static int run(ls_job *job, int64_t load_epoch, const char *const *names,
               struct ls_job_result *out)
{
    job_outputs_clear(job);
    ls_mutex_lock(&job->asker.mutex);
    const bool told = job->ended && job->failure.status != LS_OK;
    struct ls_failure failure = job->failure; /* before it began */
    job->failure.status = LS_OK;
    job->ended = job->met = false;
    job->asked = job->lanes[0].n != 0;
    job->asked_at = ls_now(job->runtime);
    job->result = (struct ls_job_result){.epoch = LS_CHECKPOINT_NONE};
    ls_mutex_unlock(&job->asker.mutex);
    if (told)
        return ls_failure_return(&failure);
    const int left = turns_end(job, LS_ESTATE); /* of the run before */
    int status = left == LS_OK ? begin(job) : left;
    if (job->compiled && job->id == job->leader) {
        if (status == LS_OK) {
            status = lead_all(job, load_epoch, names);
        } else {
            ls_failure_keep(&failure, status);
            tell_end(job, &failure);
            (void)ls_failure_return(&failure);
        }
    } else if (status == LS_OK) {
        status = follow(job);
    }
    status = finish(job, status);
    if (left == LS_OK)
        status = name_left(job, status);
    ls_mutex_lock(&job->asker.mutex);
    if (job->ended || job->id == job->leader) {
        job->ended = false;
        job->failure.status = LS_OK;
    }
    if (out != NULL)
        *out = job->result;
    ls_mutex_unlock(&job->asker.mutex);
    return status;
}

int ls_job_run(ls_job *job, struct ls_job_result *out)
{
    return run(job, LS_CHECKPOINT_NONE, NULL, out);
}

int ls_job_load(ls_job *job, int64_t epoch, const char *const *names)
{
    if (job->options.folder == NULL || epoch < 0)
        return ls_error(
            LS_EINVAL, "job %s: epoch %" PRId64 " of %s: there is none",
            job->options.name, epoch,
            job->options.folder != NULL ? job->options.folder : "no folder");
    return run(job, epoch, names, NULL);
}
