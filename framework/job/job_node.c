/* What a node does for the one that leads: requests come in on the dispatch
 * thread, and are worked on by two threads, one for tasks and one for
 * checkpoints, in the order in which they came. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job_parts.h"

enum { TASKS, CHECKPOINTS };

/* ---- a group of tasks -------------------------------------------------- */

static int put_output(const ls_job *job, ls_writer *answer, const char *name)
{
    uint64_t size;
    const struct ls_blob *blob = ls_blobs_find(job->global.blobs, name);
    if (blob == NULL || blob->memory == NULL)
        return ls_error(LS_ENOENT,
                        "output %s: no blob of this node is called so, or it "
                        "has ops in place of memory",
                        name);
    int status = ls_blob_form_bytes(&blob->form, &size);
    if (status == LS_OK && size > LS_CALL_DATA_MAX / 2)
        status = ls_error(LS_ELIMIT, "output %s: %" PRIu64 " bytes, over %d",
                          name, size, LS_CALL_DATA_MAX / 2);
    if (status != LS_OK)
        return status;
    ls_write_string(answer, name);
    ls_write_binary(answer, blob->memory, (size_t)size);
    return LS_OK;
}

static int put_outputs(const ls_job *job, ls_writer *answer,
                       enum ls_job_phase phase)
{
    int status = LS_OK;
    ls_write_string(answer, "outputs");
    ls_write_map_begin(answer);
    for (const struct job_task *at = job->groups[phase]; at != NULL;
         at = at->next)
        for (size_t i = 0;
             job_runs_on(at, job->id) && status == LS_OK &&
             at->given.outputs != NULL && at->given.outputs[i] != NULL;
             i++) {
            status = put_output(job, answer, at->given.outputs[i]);
            if (status != LS_OK)
                (void)ls_error_at(status, "%s group, task %s",
                                  ls_job_phase_name(phase), at->given.name);
        }
    ls_write_map_end(answer);
    return status;
}

static bool is_set(const ls_job *job, const char *name, size_t skip)
{
    const struct ls_blob *blob = ls_blobs_find(job->global.blobs, name);
    uint64_t size;
    if (blob == NULL || blob->memory == NULL ||
        ls_blob_form_bytes(&blob->form, &size) != LS_OK)
        return false;
    const unsigned char *bytes = blob->memory;
    for (uint64_t i = skip; i < size; i++)
        if (bytes[i] != 0)
            return true;
    return false;
}

static bool stops(const ls_job *job)
{
    if (job->limit != 0 && is_set(job, LIMITER, sizeof(int64_t)))
        return true;
    for (const struct job_task *at = job->stops; at != NULL; at = at->next)
        if (is_set(job, at->given.name, 0))
            return true;
    return false;
}

static int do_run(ls_job *job, struct question *question)
{
    const int64_t said = question_int(question, "phase", -1);
    const enum ls_job_phase phase = (enum ls_job_phase)said;
    if (said < 0 || said >= LS_JOB_N_PHASES)
        return ls_error(LS_EPROTO, "no such group");
    int status = turns_run(job, question->request, phase,
                           question_int(question, "epoch", -1));
    if (status == LS_OK)
        status = put_outputs(job, question->answer, phase);
    ls_write_string(question->answer, "stops");
    ls_write_bool(question->answer, phase == LS_JOB_EPOCH && stops(job));
    return status;
}

/* ---- whether it is the same job ---------------------------------------- */

/* The first line that differs, as the error. */
static int differs(const ls_job *job, const char *theirs)
{
    const char *ours = job->text;
    for (;;) {
        const size_t a = strcspn(ours, "\n"), b = strcspn(theirs, "\n");
        if (a != b || memcmp(ours, theirs, a) != 0)
            return ls_error(LS_EMISMATCH,
                            "it describes job %s differently: \"%.*s\", where "
                            "node %" PRIu32 " has \"%.*s\"",
                            job->options.name, (int)a, ours, job->leader,
                            (int)b, theirs);
        ours += a + (ours[a] != '\0');
        theirs += b + (theirs[b] != '\0');
    }
}

static int do_hello(ls_job *job, struct question *question)
{
    const char *text;
    int status = ls_value_string(ls_value_get(question->said, "text"), &text);
    if (status == LS_OK && strcmp(text, job->text) != 0)
        status = differs(job, text);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&job->asker.mutex);
    job->met = job->met || ls_request_from(question->request) == job->leader;
    ls_mutex_unlock(&job->asker.mutex);
    return LS_OK;
}

/* The one that leads took it for its earlier life, and would not notice: this
 * one has nothing of what the others have. */
static int check_met(ls_job *job)
{
    ls_mutex_lock(&job->asker.mutex);
    const bool met = job->met;
    ls_mutex_unlock(&job->asker.mutex);
    return met ? LS_OK
               : ls_error(LS_ELOST,
                          "its earlier life was lost, and this one was not "
                          "there when the run of job %s began",
                          job->options.name);
}

/* ---- checkpoints ------------------------------------------------------- */

/* Blobs that a task has made in the run before. */
static int make_missing(void *self, int64_t epoch,
                        const struct ls_checkpoint_entry *entry)
{
    ls_job *job = self;
    struct workspace *global = &job->global;
    struct ls_checkpoint_blob *blobs;
    size_t n;
    void *memory;
    int status =
        ls_checkpoints_blob_names(job->saves.store, epoch, entry, &blobs, &n);
    for (size_t i = 0; status == LS_OK && i < n; i++)
        if (ls_blobs_find(global->blobs, blobs[i].name) == NULL)
            status = workspace_blob(global, NULL, blobs[i].name, &blobs[i].form,
                                    &memory);
    if (n != 0)
        free(blobs);
    return status;
}

static int divide(void *self, struct question *question)
{
    const ls_value *said = ls_value_get(question->said, "entries");
    const size_t n = ls_value_size(said);
    struct ls_checkpoint_entry *entries = calloc(n + 1, sizeof *entries);
    if (entries == NULL)
        return ls_error(LS_ENOMEM, "%zu entries", n);
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = ls_record_read(&ls_checkpoint_entry_record, &entries[i],
                                ls_value_at(said, i));
    if (status == LS_OK)
        status =
            reshard_load(self, question_int(question, "epoch", -1), entries, n,
                         ls_value_get(question->said, "names"));
    free(entries);
    return status;
}

static int saved(void *self, const struct ls_checkpoint_manifest *manifest)
{
    const ls_job *job = self;
    const struct ls_job_metadata *metadata = job->options.metadata;
    return metadata != NULL && metadata->saved != NULL
               ? metadata->saved(job->options.metadata_self, manifest)
               : LS_OK;
}

const struct saves_ops job_saves_ops = {
    .before_load = make_missing, .divide = divide, .saved = saved};

/* ---- requests ---------------------------------------------------------- */

/* Only the one that leads has something done; a caller from elsewhere, or
 * another member, could run a task or delete what was saved. */
static int check_leader(const ls_job *job, const ls_request *request)
{
    const uint32_t from = ls_request_from(request);
    return from == job->leader
               ? LS_OK
               : ls_error(LS_EPROTO, "node %" PRIu32 " does not lead job %s",
                          from, job->options.name);
}

static int answer_task(void *self, struct question *question)
{
    ls_job *job = self;
    if (strcmp(question_text(question, "do"), "hello") == 0)
        return do_hello(job, question);
    int status = check_leader(job, question->request);
    if (status == LS_OK)
        status = check_met(job);
    return status == LS_OK ? do_run(job, question) : status;
}

static int answer_checkpoint(void *self, struct question *question)
{
    ls_job *job = self;
    int status = check_leader(job, question->request);
    if (status == LS_OK)
        status = check_met(job);
    return status == LS_OK ? saves_answer(&job->saves, question) : status;
}

void job_set_ended(ls_job *job)
{
    job->ended = true;
    lane_stop(&job->lanes[TASKS]);
    lane_stop(&job->lanes[CHECKPOINTS]);
}

static int64_t int_of(const ls_value *map, const char *key, int64_t otherwise)
{
    int64_t value;
    return ls_value_int(ls_value_get(map, key), &value) == LS_OK ? value
                                                                 : otherwise;
}

static const char *text_of(const ls_value *map, const char *key)
{
    const char *text;
    return ls_value_string(ls_value_get(map, key), &text) == LS_OK ? text : "";
}

static int ended_with(const ls_job *job, int64_t status, const ls_value *said)
{
    if (ask_is_failure(status))
        return ls_error((int)status, "%s", text_of(said, "text"));
    return ls_error(LS_EPROTO,
                    "node %u, which leads, ended the job with %" PRId64
                    ", which is no status",
                    job->leader, status);
}

/* The leader says how it ended. Its results come before. */
static int end(ls_job *job, const ls_value *said)
{
    int64_t status = int_of(said, "end", LS_EPROTO);
    const ls_value *outputs = ls_value_get(said, "outputs");
    job->result.epoch = int_of(said, "epoch", LS_CHECKPOINT_NONE);
    job->result.n_epochs = (uint64_t)int_of(said, "n_epochs", 0);
    job->result.failed_saves = (uint64_t)int_of(said, "failed", 0);
    for (size_t i = 0; i < ls_value_size(outputs); i++) {
        const ls_value *at = ls_value_at(outputs, i);
        const char *name;
        const void *data;
        uint64_t node;
        size_t size;
        if (ls_value_uint(ls_value_at(at, 0), &node) == LS_OK &&
            ls_value_string(ls_value_at(at, 1), &name) == LS_OK &&
            ls_value_binary(ls_value_at(at, 2), &data, &size) == LS_OK &&
            job_outputs_put(job, (uint32_t)node, name, data, size) != LS_OK)
            status = LS_ENOMEM;
    }
    if (status != LS_OK)
        ls_failure_keep(&job->failure, ended_with(job, status, said));
    job_set_ended(job);
    return LS_OK;
}

/* Takes the request over, or answers it: returns its status. */
static int take(ls_job *job, ls_request *request, const ls_value *said,
                bool *taken)
{
    const char *what = text_of(said, "do");
    *taken = false;
    job->asked = true;
    job->asked_at = ls_now(job->runtime);
    ls_cond_broadcast(&job->asker.cond);
    if (job->failure.status != LS_OK)
        return ls_failure_return(&job->failure);
    if (ls_value_get(said, "end") != NULL &&
        (!job->compiled || ls_request_from(request) == job->leader))
        return end(job, said);
    const bool is_hello = strcmp(what, "hello") == 0;
    const bool is_task = is_hello || strcmp(what, "run") == 0;
    if (!is_task && !saves_knows(what))
        return ls_error(LS_EPROTO, "no such question to job %s",
                        job->options.name);
    /* Those of others must not take the places of its own. */
    if (job->compiled && !is_hello && check_leader(job, request) != LS_OK)
        return LS_EPROTO;
    *taken = lane_put(&job->lanes[is_task ? TASKS : CHECKPOINTS], request);
    return *taken ? LS_OK
                  : ls_error(LS_EAGAIN, "too much is asked of job %s",
                             job->options.name);
}

int job_on_request(void *self, ls_request *request)
{
    ls_job *job = self;
    ls_document *document;
    size_t size;
    bool taken;
    const void *data = ls_request_data(request, &size);
    int status = ls_document_read(&document, data, size, NULL);
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&job->asker.mutex);
    status = take(job, request, ls_document_root(document), &taken);
    ls_mutex_unlock(&job->asker.mutex);
    ls_document_destroy(&document);
    if (!taken)
        question_refuse(request, status);
    return LS_OK;
}

void job_node_init(ls_job *job)
{
    job->lanes[TASKS] = (struct lane){
        .asker = &job->asker, .fn = answer_task, .self = job, .id = job->id};
    job->lanes[CHECKPOINTS] = (struct lane){.asker = &job->asker,
                                            .fn = answer_checkpoint,
                                            .self = job,
                                            .id = job->id};
}

int job_node_begin(ls_job *job)
{
    int status = lane_begin(&job->lanes[TASKS], "job");
    if (status == LS_OK)
        status = lane_begin(&job->lanes[CHECKPOINTS], "job-store");
    ls_mutex_lock(&job->asker.mutex);
    if (job->ended) /* before they began */
        job_set_ended(job);
    ls_mutex_unlock(&job->asker.mutex);
    return status;
}

void job_node_end(ls_job *job)
{
    ls_mutex_lock(&job->asker.mutex);
    lane_stop(&job->lanes[TASKS]);
    lane_stop(&job->lanes[CHECKPOINTS]);
    turns_cancel(job);
    ls_mutex_unlock(&job->asker.mutex);
    for (size_t i = 0; i < 2; i++)
        lane_join(&job->lanes[i]);
    ls_mutex_lock(&job->asker.mutex);
    const struct ls_failure failure = job->failure;
    ls_mutex_unlock(&job->asker.mutex);
    if (failure.status != LS_OK) /* what came too late; else it may be for the
                                  * next run */
        job_node_refuse(job, &failure);
}

void job_node_refuse(ls_job *job, const struct ls_failure *why)
{
    for (size_t i = 0; i < 2; i++)
        for (;;) {
            ls_mutex_lock(&job->asker.mutex);
            ls_request *request = lane_pop(&job->lanes[i]);
            ls_mutex_unlock(&job->asker.mutex);
            if (request == NULL)
                break;
            question_refuse(request, ls_failure_return(why));
        }
}
