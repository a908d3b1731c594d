/* Which checkpoint a job goes on from, and loading it, as the node that leads
 * sees it. It is the newest that all nodes have whole; if it was saved by other
 * nodes than this job has, theirs is divided among these. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job_parts.h"
#include "lockstep/log.h"

struct resume {
    ls_job *job;
    int64_t load;             /* ls_job_load(): this one, and nothing else */
    int64_t epoch;            /* what was found; LS_CHECKPOINT_NONE: nothing */
    bool others;              /* it was saved by other nodes */
    const char *const *names; /* NULL: all blobs */
    struct ls_checkpoint_manifest manifest; /* own: of that epoch */
};

void job_keeper_name(uint32_t id, char name[LS_CHECKPOINT_NODE_MAX + 1])
{
    (void)snprintf(name, LS_CHECKPOINT_NODE_MAX + 1, "node-%" PRIu32, id);
}

/* NULL: it has none. */
static const struct ls_checkpoint_entry *entry_of(const struct resume *resume,
                                                  uint32_t id)
{
    char name[LS_CHECKPOINT_NODE_MAX + 1];
    job_keeper_name(id, name);
    for (size_t i = 0; i < resume->manifest.n_entries; i++)
        if (strcmp(resume->manifest.entries[i].node, name) == 0)
            return &resume->manifest.entries[i];
    return NULL;
}

static void passed_over(void *self, int64_t epoch, const char *why)
{
    const ls_job *job = self;
    ls_log_warn("job %s: epoch %" PRId64 " is passed over: %s",
                job->options.name, epoch, why);
}

/* Who has saved it: by the nodes that this job has, or others. */
static int check_entries(struct resume *resume)
{
    const ls_job *job = resume->job;
    const struct ls_checkpoint_manifest *manifest = &resume->manifest;
    size_t n = 0;
    for (size_t i = 0; i < job->n_keepers; i++)
        n += entry_of(resume, job->keepers[i]) != NULL ? 1 : 0;
    resume->others = n != job->n_keepers || n != manifest->n_entries;
    if (!resume->others || job->options.elastic)
        return LS_OK;
    return ls_error(LS_EMISMATCH,
                    "epoch %" PRId64 " is of %zu nodes, of which %zu are among "
                    "the %zu whose blobs this job saves: `elastic` goes on "
                    "with others",
                    manifest->epoch, manifest->n_entries, n, job->n_keepers);
}

/* ---- questions --------------------------------------------------------- */

static void write_epoch(const struct resume *resume, ls_writer *writer,
                        const char *what)
{
    ls_write_string(writer, "do");
    ls_write_string(writer, what);
    ls_write_string(writer, "epoch");
    ls_write_int(writer, resume->manifest.epoch);
}

/* That of keeper i; if others have saved it, each step-th from `first` on. */
static void write_entries(const struct resume *resume, ls_writer *writer,
                          size_t i, size_t first, size_t step)
{
    const struct ls_checkpoint_manifest *manifest = &resume->manifest;
    const size_t n = manifest->n_entries;
    ls_write_string(writer, "entries");
    if (!resume->others) {
        ls_write_array(writer, 1);
        ls_record_write(&ls_checkpoint_entry_record,
                        entry_of(resume, resume->job->keepers[i]), writer);
        return;
    }
    ls_write_array(writer,
                   first < n ? (uint32_t)((n - first + step - 1) / step) : 0);
    for (size_t at = first; at < n; at += step)
        ls_record_write(&ls_checkpoint_entry_record, &manifest->entries[at],
                        writer);
}

/* All entries are looked at, each by one node. */
static void write_has(void *self, ls_writer *writer, size_t i)
{
    const struct resume *resume = self;
    ls_write_map(writer, 3);
    write_epoch(resume, writer, "has");
    write_entries(resume, writer, i, i, resume->job->n_keepers);
}

static void write_load(void *self, ls_writer *writer, size_t i)
{
    const struct resume *resume = self;
    uint32_t n = 0;
    while (resume->names != NULL && resume->names[n] != NULL)
        n++;
    ls_write_map(writer, 4);
    write_epoch(resume, writer, resume->others ? "reshard" : "load");
    write_entries(resume, writer, i, 0, 1);
    ls_write_string(writer, "names");
    ls_write_array(writer, n);
    for (uint32_t at = 0; at < n; at++)
        ls_write_string(writer, resume->names[at]);
}

static void write_init(void *self, ls_writer *writer, size_t i)
{
    (void)self;
    (void)i;
    ls_write_map(writer, 3);
    ls_write_string(writer, "do");
    ls_write_string(writer, "run");
    ls_write_string(writer, "epoch");
    ls_write_int(writer, 0);
    ls_write_string(writer, "phase");
    ls_write_int(writer, LS_JOB_INIT);
}

static int ask_keepers(struct resume *resume,
                       void (*write)(void *self, ls_writer *writer, size_t i))
{
    ls_job *job = resume->job;
    return job_ask_each(job, job->keepers, job->n_keepers, write, resume,
                        job->options.save_timeout_ms);
}

/* ---- which one --------------------------------------------------------- */

/* Whether all nodes have it whole. */
static int look_at(struct resume *resume, int64_t epoch)
{
    ls_checkpoint_manifest_clear(&resume->manifest);
    ls_mutex_lock(&resume->job->store_mutex);
    int status =
        ls_checkpoints_manifest(resume->job->store, epoch, &resume->manifest);
    ls_mutex_unlock(&resume->job->store_mutex);
    if (status == LS_OK)
        status = check_entries(resume);
    return status == LS_OK ? ask_keepers(resume, write_has) : status;
}

static int count_checkpoints(struct resume *resume, size_t *n)
{
    int64_t *epochs = NULL;
    *n = 0;
    if (resume->job->store == NULL)
        return LS_OK;
    ls_mutex_lock(&resume->job->store_mutex);
    const int status = ls_checkpoints_list(resume->job->store, &epochs, n);
    ls_mutex_unlock(&resume->job->store_mutex);
    if (status == LS_OK)
        free(epochs);
    return status;
}

static int from_scratch(struct resume *resume)
{
    size_t n;
    const int status = count_checkpoints(resume, &n);
    resume->epoch = LS_CHECKPOINT_NONE;
    if (status == LS_OK && n != 0)
        return ls_error(LS_EEXIST,
                        "job %s: %s has %zu checkpoints: resume, or choose "
                        "another folder",
                        resume->job->options.name, resume->job->options.folder,
                        n);
    return status;
}

static int find_newest(struct resume *resume)
{
    ls_job *job = resume->job;
    int64_t before = LS_CHECKPOINT_NONE, epoch = 0;
    const struct ls_job_metadata *metadata = job->options.metadata;
    int status = LS_OK;
    if (metadata != NULL && metadata->last_epoch != NULL) {
        status = metadata->last_epoch(job->options.metadata_self, &epoch);
        if (status != LS_OK || epoch == LS_CHECKPOINT_NONE)
            return status == LS_OK ? from_scratch(resume) : status;
        before = epoch + 1;
    }
    for (;;) {
        ls_mutex_lock(&job->store_mutex);
        status = ls_checkpoints_newest(job->store, before, true, passed_over,
                                       job, &epoch);
        ls_mutex_unlock(&job->store_mutex);
        if (status != LS_OK)
            break;
        status = look_at(resume, epoch);
        resume->epoch = epoch;
        if (status != LS_ENOENT && status != LS_EPROTO)
            return status;
        passed_over(job, epoch, ls_error_text());
        before = epoch;
    }
    size_t n = 0;
    if (status == LS_ENOENT)
        status = count_checkpoints(resume, &n);
    resume->epoch = LS_CHECKPOINT_NONE;
    return n == 0 ? status
                  : ls_error(LS_EPROTO,
                             "job %s: none of the %zu checkpoints in %s can be "
                             "used; the log says why",
                             job->options.name, n, job->options.folder);
}

/* ---- loading ----------------------------------------------------------- */

static void name_missing(const struct resume *resume)
{
    const ls_job *job = resume->job;
    for (size_t i = 0; i < resume->manifest.n_entries; i++) {
        bool here = false;
        for (size_t j = 0; j < job->n_keepers && !here; j++)
            here = entry_of(resume, job->keepers[j]) ==
                   &resume->manifest.entries[i];
        if (!here)
            ls_log_warn("job %s: epoch %" PRId64 " goes on without %s: of its "
                        "blobs, those neither shared nor spread are left out",
                        job->options.name, resume->manifest.epoch,
                        resume->manifest.entries[i].node);
    }
}

/* Nodes that were not there begin as all did. */
static int init_new(struct resume *resume)
{
    ls_job *job = resume->job;
    size_t n = 0;
    if (job->groups[LS_JOB_INIT] == NULL)
        return LS_OK;
    uint32_t *new = calloc(job->n_keepers, sizeof *new);
    if (new == NULL)
        return ls_error(LS_ENOMEM, "%zu nodes", job->n_keepers);
    for (size_t i = 0; i < job->n_keepers; i++)
        if (entry_of(resume, job->keepers[i]) == NULL)
            new[n++] = job->keepers[i];
    const int status = job_ask_each(job, new, n, write_init, NULL,
                                    job->options.group_timeout_ms);
    free(new);
    return status;
}

static int load(struct resume *resume)
{
    ls_job *job = resume->job;
    const int64_t begin = ls_now(job->runtime);
    int status = LS_OK;
    if (resume->others)
        name_missing(resume);
    if (resume->others && resume->load == LS_CHECKPOINT_NONE)
        status = init_new(resume);
    if (status == LS_OK)
        status = ask_keepers(resume, write_load);
    job_took(job, LS_JOB_OP_LOAD, begin);
    return status;
}

static int find(struct resume *resume)
{
    const struct ls_job_options *options = &resume->job->options;
    if (resume->load != LS_CHECKPOINT_NONE || options->resume == LS_JOB_AT) {
        resume->epoch =
            resume->load != LS_CHECKPOINT_NONE ? resume->load : options->epoch;
        return look_at(resume, resume->epoch);
    }
    return options->resume == LS_JOB_NEWEST ? find_newest(resume)
                                            : from_scratch(resume);
}

int job_resume(ls_job *job, int64_t load_epoch, const char *const *names,
               int64_t *epoch, bool *stopped)
{
    struct resume resume = {.job = job, .load = load_epoch, .names = names};
    int status = find(&resume);
    if (status == LS_OK && resume.epoch != LS_CHECKPOINT_NONE)
        status = load(&resume);
    *epoch = resume.epoch;
    *stopped = resume.epoch != LS_CHECKPOINT_NONE && resume.manifest.stopped;
    ls_checkpoint_manifest_clear(&resume.manifest);
    return status;
}
