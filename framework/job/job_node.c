/* What a node does for the one that leads: requests come in on the dispatch
 * thread, and are worked on by two threads, one for tasks and one for
 * checkpoints, in the order in which they came. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job_parts.h"
#include "lockstep/log.h"

enum { TASKS, CHECKPOINTS };

/* A request as it is worked on. */
struct work {
    ls_job *job;
    ls_request *request;
    const ls_value *said;
    ls_writer *answer; /* a map that was begun */
};

/* ---- what was said ----------------------------------------------------- */

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

static int64_t said_int(const struct work *work, const char *key)
{
    return int_of(work->said, key, -1);
}

static int said_entry(const struct work *work, size_t i,
                      struct ls_checkpoint_entry *out)
{
    return ls_record_read(&ls_checkpoint_entry_record, out,
                          ls_value_at(ls_value_get(work->said, "entries"), i));
}

/* ---- a group of tasks -------------------------------------------------- */

static int put_output(struct work *work, const char *name)
{
    uint64_t size;
    const struct ls_blob *blob = ls_blobs_find(work->job->global.blobs, name);
    if (blob == NULL || blob->memory == NULL)
        return ls_error(LS_ENOENT, "output %s: no blob with memory", name);
    int status = ls_blob_form_bytes(&blob->form, &size);
    if (status == LS_OK && size > LS_CALL_DATA_MAX / 2)
        status = ls_error(LS_ELIMIT, "output %s: %" PRIu64 " bytes, over %d",
                          name, size, LS_CALL_DATA_MAX / 2);
    if (status != LS_OK)
        return status;
    ls_write_string(work->answer, name);
    ls_write_binary(work->answer, blob->memory, (size_t)size);
    return LS_OK;
}

static int put_outputs(struct work *work, enum ls_job_phase phase)
{
    int status = LS_OK;
    ls_write_string(work->answer, "outputs");
    ls_write_map_begin(work->answer);
    for (const struct job_task *at = work->job->groups[phase]; at != NULL;
         at = at->next)
        for (size_t i = 0;
             job_runs_on(at, work->job->id) && status == LS_OK &&
             at->given.outputs != NULL && at->given.outputs[i] != NULL;
             i++) {
            status = put_output(work, at->given.outputs[i]);
            if (status != LS_OK)
                (void)ls_error_at(status, "%s group, task %s",
                                  job_phase_names[phase], at->given.name);
        }
    ls_write_map_end(work->answer);
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

static int do_run(struct work *work)
{
    ls_job *job = work->job;
    const int64_t said = said_int(work, "phase");
    const enum ls_job_phase phase = (enum ls_job_phase)said;
    if (said < 0 || said >= LS_JOB_N_PHASES)
        return ls_error(LS_EPROTO, "no such group");
    int status = turns_run(job, work->request, phase, said_int(work, "epoch"));
    if (status == LS_OK)
        status = put_outputs(work, phase);
    ls_write_string(work->answer, "stops");
    ls_write_bool(work->answer, phase == LS_JOB_EPOCH && stops(job));
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

static int do_hello(struct work *work)
{
    const char *text;
    const int status = ls_value_string(ls_value_get(work->said, "text"), &text);
    if (status != LS_OK)
        return status;
    return strcmp(text, work->job->text) == 0 ? LS_OK
                                              : differs(work->job, text);
}

/* ---- checkpoints ------------------------------------------------------- */

static int do_has(struct work *work)
{
    struct ls_checkpoint_entry entry;
    const size_t n = ls_value_size(ls_value_get(work->said, "entries"));
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        status = said_entry(work, i, &entry);
        if (status == LS_OK)
            status = ls_checkpoints_has(work->job->store,
                                        said_int(work, "epoch"), &entry);
    }
    return status;
}

/* Blobs that a task has made in the run before. */
static int make_missing(struct work *work, int64_t epoch,
                        const struct ls_checkpoint_entry *entry)
{
    struct workspace *global = &work->job->global;
    struct ls_checkpoint_blob *blobs;
    size_t n;
    void *memory;
    int status =
        ls_checkpoints_blob_names(work->job->store, epoch, entry, &blobs, &n);
    for (size_t i = 0; status == LS_OK && i < n; i++)
        if (ls_blobs_find(global->blobs, blobs[i].name) == NULL)
            status = workspace_blob(global, NULL, blobs[i].name, &blobs[i].form,
                                    &memory);
    if (n != 0)
        free(blobs);
    return status;
}

static int do_load(struct work *work)
{
    struct ls_checkpoint_entry entry;
    const char *names[LS_BLOBS_MAX + 1] = {NULL};
    const ls_value *wanted = ls_value_get(work->said, "names");
    const size_t n = ls_value_size(wanted);
    int status = said_entry(work, 0, &entry);
    for (size_t i = 0; status == LS_OK && i < n && i < LS_BLOBS_MAX; i++)
        status = ls_value_string(ls_value_at(wanted, i), &names[i]);
    if (status == LS_OK)
        status = make_missing(work, said_int(work, "epoch"), &entry);
    return status == LS_OK
               ? ls_checkpoints_load(work->job->store, said_int(work, "epoch"),
                                     &entry, work->job->global.blobs,
                                     n != 0 ? names : NULL)
               : status;
}

static int do_reshard(struct work *work)
{
    const ls_value *said = ls_value_get(work->said, "entries");
    const size_t n = ls_value_size(said);
    struct ls_checkpoint_entry *entries = calloc(n + 1, sizeof *entries);
    if (entries == NULL)
        return ls_error(LS_ENOMEM, "%zu entries", n);
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        status = said_entry(work, i, &entries[i]);
    if (status == LS_OK)
        status = reshard_load(work->job, said_int(work, "epoch"), entries, n,
                              ls_value_get(work->said, "names"));
    free(entries);
    return status;
}

static int do_rewind(struct work *work)
{
    return ls_checkpoints_rewind(work->job->store, said_int(work, "epoch"));
}

static int do_copy(struct work *work)
{
    return ls_checkpoints_write_behind(
        work->job->store, said_int(work, "epoch"), work->job->global.blobs,
        work->job->options.save_timeout_ms);
}

static int wait_behind(struct work *work, int64_t epoch,
                       struct ls_checkpoint_entry *entry)
{
    int64_t written = LS_CHECKPOINT_NONE;
    const int status = ls_checkpoints_wait(
        work->job->store, work->job->options.save_timeout_ms, &written, entry);
    if (status == LS_OK && written != epoch)
        return ls_error(LS_ESTATE,
                        "epoch %" PRId64 " was written, and not %" PRId64,
                        written, epoch);
    return status;
}

static int do_write(struct work *work)
{
    ls_job *job = work->job;
    struct ls_checkpoint_entry entry = {.size = 0};
    const int64_t epoch = said_int(work, "epoch");
    const int status = said_int(work, "behind") == 1
                           ? wait_behind(work, epoch, &entry)
                           : ls_checkpoints_write(job->store, epoch,
                                                  job->global.blobs, &entry);
    if (status != LS_OK)
        return status;
    keeper_wrote(&job->keeper, epoch, said_int(work, "round"));
    ls_write_string(work->answer, "entry");
    ls_record_write(&ls_checkpoint_entry_record, &entry, work->answer);
    return LS_OK;
}

static int do_verdict(struct work *work)
{
    ls_job *job = work->job;
    const ls_value *keep = ls_value_get(work->said, "keep");
    const size_t n = ls_value_size(keep);
    if (keeper_drops(&job->keeper, said_int(work, "round"),
                     said_int(work, "verdict") == COMMIT_DROP ? COMMIT_DROP
                                                              : COMMIT_KEEP))
        return ls_checkpoints_rewind(job->store, job->keeper.epoch - 1);
    int64_t *epochs = n != 0 ? calloc(n, sizeof *epochs) : NULL;
    int status = LS_OK;
    for (size_t i = 0; i < n && epochs != NULL && status == LS_OK; i++)
        status = ls_value_int(ls_value_at(keep, i), &epochs[i]);
    if (epochs != NULL && status == LS_OK)
        status = ls_checkpoints_keep(job->store, epochs, n);
    free(epochs);
    return status;
}

/* ---- requests ---------------------------------------------------------- */

static const struct {
    const char *name;
    int (*fn)(struct work *work);
    int lane;
} commands[] = {
    {"hello", do_hello, TASKS},           {"run", do_run, TASKS},
    {"has", do_has, CHECKPOINTS},         {"load", do_load, CHECKPOINTS},
    {"rewind", do_rewind, CHECKPOINTS},   {"copy", do_copy, CHECKPOINTS},
    {"reshard", do_reshard, CHECKPOINTS}, {"write", do_write, CHECKPOINTS},
    {"verdict", do_verdict, CHECKPOINTS},
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static size_t command_of(const ls_value *said)
{
    const char *name = text_of(said, "do");
    size_t i = 0;
    while (i < N_COMMANDS && strcmp(commands[i].name, name) != 0)
        i++;
    return i;
}

/* With this thread's error. */
static void answer(ls_request **request, ls_writer *writer, int status)
{
    const void *data;
    size_t size;
    ls_write_string(writer, "status");
    ls_write_int(writer, status);
    if (status != LS_OK) {
        ls_write_string(writer, "text");
        ls_write_string(writer, ls_error_text());
    }
    ls_write_map_end(writer);
    if (ls_writer_bytes(writer, &data, &size) == LS_OK)
        (void)ls_request_complete(request, data, size);
    else
        (void)ls_request_fail(request, ls_error_text());
}

/* Nothing but the status. */
static void reply(ls_request *request, int status)
{
    ls_writer *writer;
    if (ls_writer_create(&writer) != LS_OK) {
        (void)ls_request_fail(&request, ls_error_text());
        return;
    }
    ls_write_map_begin(writer);
    answer(&request, writer, status);
    ls_writer_destroy(&writer);
}

static int work_on(struct work *work, size_t command)
{
    ls_job *job = work->job;
    if (ls_request_is_cancelled(work->request))
        return ls_error(LS_ECANCELED, "nobody waits for it any more");
    if (commands[command].lane == TASKS)
        return commands[command].fn(work);
    ls_mutex_lock(&job->store_mutex);
    const int status = job->store != NULL
                           ? commands[command].fn(work)
                           : ls_error(LS_ESTATE, "nothing is saved here");
    ls_mutex_unlock(&job->store_mutex);
    return status;
}

static void serve_one(ls_job *job, ls_request *request)
{
    struct work work = {.job = job, .request = request};
    ls_document *document = NULL;
    size_t size;
    const void *data = ls_request_data(request, &size);
    ls_error_clear();
    int status = ls_document_read(&document, data, size, NULL);
    if (status == LS_OK)
        status = ls_writer_create(&work.answer);
    if (status != LS_OK) {
        reply(request, status);
        ls_document_destroy(&document);
        return;
    }
    work.said = ls_document_root(document);
    ls_write_map_begin(work.answer);
    status = work_on(&work, command_of(work.said));
    answer(&request, work.answer, status);
    ls_writer_destroy(&work.answer);
    ls_document_destroy(&document);
}

static void serve(ls_job *job, struct job_lane *lane)
{
    ls_log_set_node(job->id);
    for (;;) {
        ls_request *request = NULL;
        ls_mutex_lock(&job->mutex);
        while (lane->n == 0 && job->running && !job->ended)
            job_wait(job);
        if (lane->n != 0 && job->running && !job->ended) {
            request = lane->waiting[0];
            lane->n--;
            memmove(&lane->waiting[0], &lane->waiting[1],
                    lane->n * sizeof *lane->waiting);
        }
        ls_mutex_unlock(&job->mutex);
        if (request == NULL)
            return;
        serve_one(job, request);
    }
}

static void serve_tasks(void *self)
{
    serve(self, &((ls_job *)self)->lanes[TASKS]);
}

static void serve_checkpoints(void *self)
{
    serve(self, &((ls_job *)self)->lanes[CHECKPOINTS]);
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
    if (status < 0 && status > -1000)
        ls_failure_keep(&job->failure,
                        ls_error((int)status, "%s", text_of(said, "text")));
    job->ended = true;
    ls_cond_broadcast(&job->cond);
    return LS_OK;
}

/* Takes the request over, or answers it: returns its status. */
static int take(ls_job *job, ls_request *request, const ls_value *said,
                bool *taken)
{
    const size_t command = command_of(said);
    *taken = false;
    job->asked = true;
    job->asked_at = ls_now(job->runtime);
    ls_cond_broadcast(&job->cond);
    if (job->failure.status != LS_OK)
        return ls_failure_return(&job->failure);
    if (ls_value_get(said, "end") != NULL &&
        (!job->compiled || ls_request_from(request) == job->leader))
        return end(job, said);
    if (command == N_COMMANDS)
        return ls_error(LS_EPROTO, "no such question to job %s",
                        job->options.name);
    struct job_lane *lane = &job->lanes[commands[command].lane];
    if (lane->n == JOB_QUEUE)
        return ls_error(LS_EAGAIN, "too much is asked of job %s",
                        job->options.name);
    lane->waiting[lane->n++] = request;
    *taken = true;
    return LS_OK;
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
    ls_mutex_lock(&job->mutex);
    status = take(job, request, ls_document_root(document), &taken);
    ls_mutex_unlock(&job->mutex);
    ls_document_destroy(&document);
    if (!taken)
        reply(request, status);
    return LS_OK;
}

int job_node_begin(ls_job *job)
{
    ls_mutex_lock(&job->mutex);
    job->running = true;
    ls_mutex_unlock(&job->mutex);
    const int status = ls_thread_spawn(job->runtime, &job->lanes[TASKS].thread,
                                       "job", serve_tasks, job);
    return status == LS_OK
               ? ls_thread_spawn(job->runtime, &job->lanes[CHECKPOINTS].thread,
                                 "job-store", serve_checkpoints, job)
               : status;
}

void job_node_end(ls_job *job)
{
    ls_mutex_lock(&job->mutex);
    job->running = false;
    turns_cancel(job);
    ls_cond_broadcast(&job->cond);
    ls_mutex_unlock(&job->mutex);
    for (size_t i = 0; i < 2; i++)
        job_join(&job->lanes[i].thread);
    ls_mutex_lock(&job->mutex);
    const struct ls_failure failure = job->failure;
    ls_mutex_unlock(&job->mutex);
    if (failure.status != LS_OK) /* what came too late; else it may be for the
                                  * next run */
        job_node_refuse(job, &failure);
}

void job_node_refuse(ls_job *job, const struct ls_failure *why)
{
    for (size_t i = 0; i < 2; i++)
        for (;;) {
            struct job_lane *lane = &job->lanes[i];
            ls_mutex_lock(&job->mutex);
            ls_request *request =
                lane->n != 0 ? lane->waiting[--lane->n] : NULL;
            ls_mutex_unlock(&job->mutex);
            if (request == NULL)
                break;
            reply(request, ls_failure_return(why));
        }
}
