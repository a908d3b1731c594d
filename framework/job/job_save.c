/* A save, as the node that leads sees it: the state machine of commit.h, on
 * calls. It runs on the thread of ls_job_run(), or behind it on one of its own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job_parts.h"

struct save {
    ls_job *job;
    int64_t epoch;
    bool stopped, behind;
    struct commit commit;
    struct commit_node *nodes;           /* own, all n_keepers */
    struct job_ask *writes, *tells;      /* own */
    struct ls_checkpoint_entry *entries; /* own */
    int64_t *kept;                       /* own; what the retention keeps */
    size_t n_kept;
    struct ls_failure told; /* metadata->saved() */
    ls_writer *writer;
};

static void ask_write(void *self, size_t node)
{
    struct save *save = self;
    ls_job *job = save->job;
    ls_write_map(save->writer, 4);
    ls_write_string(save->writer, "do");
    ls_write_string(save->writer, "write");
    ls_write_string(save->writer, "epoch");
    ls_write_int(save->writer, save->epoch);
    ls_write_string(save->writer, "round");
    ls_write_int(save->writer, job->round);
    ls_write_string(save->writer, "behind");
    ls_write_int(save->writer, save->behind);
    job_ask_begin(&save->writes[node], job, job->keepers[node], save->writer,
                  job->options.save_timeout_ms);
}

static void ask_tell(void *self, size_t node, enum commit_verdict verdict)
{
    struct save *save = self;
    ls_job *job = save->job;
    ls_write_map(save->writer, 4);
    ls_write_string(save->writer, "do");
    ls_write_string(save->writer, "verdict");
    ls_write_string(save->writer, "round");
    ls_write_int(save->writer, job->round);
    ls_write_string(save->writer, "verdict");
    ls_write_int(save->writer, verdict);
    ls_write_string(save->writer, "keep");
    ls_write_array(save->writer, (uint32_t)save->n_kept);
    for (size_t i = 0; i < save->n_kept; i++)
        ls_write_int(save->writer, save->kept[i]);
    job_ask_begin(&save->tells[node], job, job->keepers[node], save->writer,
                  job->options.save_timeout_ms);
}

static int write_manifest(struct save *save, bool *gone)
{
    ls_job *job = save->job;
    struct ls_checkpoint_manifest manifest = {.epoch = save->epoch,
                                              .stopped = save->stopped,
                                              .entries = save->entries,
                                              .n_entries = job->n_keepers};
    (void)snprintf(manifest.run, sizeof manifest.run, "%s", job->options.name);
    int status = ls_checkpoints_commit(job->store, &manifest);
    if (status != LS_OK) {
        struct ls_failure failure;
        ls_failure_keep(&failure, status);
        const int removed = ls_checkpoints_drop(job->store, save->epoch);
        *gone = removed == LS_OK || removed == LS_ENOENT;
        return ls_failure_return(&failure);
    }
    if (job->options.retention.last != 0 || job->options.retention.every != 0 ||
        job->options.retention.best != 0)
        if (ls_checkpoints_list(job->store, &save->kept, &save->n_kept) !=
            LS_OK)
            save->n_kept = 0; /* they are removed after the next save */
    if (job->options.metadata != NULL && job->options.metadata->saved != NULL)
        ls_failure_keep(&save->told,
                        job->options.metadata->saved(job->options.metadata_self,
                                                     &manifest));
    return LS_OK;
}

static void name_all(void *self)
{
    struct save *save = self;
    bool gone = false;
    ls_mutex_lock(&save->job->store_mutex);
    const int status = write_manifest(save, &gone);
    ls_mutex_unlock(&save->job->store_mutex);
    commit_named(&save->commit, status, gone);
}

static const struct commit_ops ops = {ask_write, name_all, ask_tell};

static void note_written(struct save *save, size_t node)
{
    struct job_ask *ask = &save->writes[node];
    int status = job_ask_end(ask);
    if (status == LS_OK)
        status = ls_record_read(
            &ls_checkpoint_entry_record, &save->entries[node],
            ls_value_get(ls_document_root(ask->document), "entry"));
    if (status == LS_ELOST)
        commit_lost(&save->commit, node);
    else if (status == LS_ETIMEDOUT) {
        if (save->commit.phase == COMMIT_WRITING)
            commit_late(&save->commit);
    } else
        commit_written(&save->commit, node, status);
}

static void note_told(struct save *save, size_t node)
{
    const int status = job_ask_end(&save->tells[node]);
    if (status == LS_ETIMEDOUT)
        commit_late(&save->commit);
    else if (status == LS_ELOST)
        commit_lost(&save->commit, node);
    else /* an entry that could not be removed is removed later */
        commit_told(&save->commit, node);
}

/* Take in what has ended; returns whether there was something. */
static bool take_ends(struct save *save)
{
    ls_job *job = save->job;
    bool some = false;
    for (size_t i = 0; i < job->n_keepers; i++) {
        struct job_ask *const asks[] = {&save->writes[i], &save->tells[i]};
        for (size_t j = 0; j < 2; j++) {
            ls_mutex_lock(&job->mutex);
            const bool ended = asks[j]->ended && !asks[j]->seen;
            ls_mutex_unlock(&job->mutex);
            if (!ended)
                continue;
            some = true;
            if (j == 0)
                note_written(save, i);
            else
                note_told(save, i);
        }
    }
    return some;
}

/* Each call has its own timeout, so this ends. */
static void wait_for_end(struct save *save)
{
    ls_job *job = save->job;
    bool some = false;
    ls_mutex_lock(&job->mutex);
    while (!some) {
        for (size_t i = 0; i < job->n_keepers && !some; i++)
            some = (save->writes[i].ended && !save->writes[i].seen) ||
                   (save->tells[i].ended && !save->tells[i].seen);
        if (!some)
            job_wait(job);
    }
    ls_mutex_unlock(&job->mutex);
}

static int run(struct save *save)
{
    const size_t n = save->job->n_keepers;
    int status = ls_writer_create(&save->writer);
    save->nodes = calloc(n, sizeof *save->nodes);
    save->writes = calloc(n, sizeof *save->writes);
    save->tells = calloc(n, sizeof *save->tells);
    save->entries = calloc(n, sizeof *save->entries);
    if (save->nodes == NULL || save->writes == NULL || save->tells == NULL ||
        save->entries == NULL)
        status = ls_error(LS_ENOMEM, "a save");
    if (status != LS_OK)
        return status;
    save->job->round = (int64_t)(ls_entropy(save->job->runtime) >> 1);
    commit_begin(&save->commit, &ops, save, save->nodes, n);
    while (save->commit.phase != COMMIT_ENDED)
        if (!take_ends(save))
            wait_for_end(save);
    return save->commit.saved ? LS_OK
                              : ls_failure_return(&save->commit.failure);
}

int job_save(ls_job *job, int64_t epoch, bool stopped, bool behind)
{
    struct save save = {
        .job = job, .epoch = epoch, .stopped = stopped, .behind = behind};
    int status = run(&save);
    if (status != LS_OK)
        (void)ls_error_at(status, "job %s: epoch %" PRId64 " was not saved",
                          job->options.name, epoch);
    else
        status = ls_failure_return(&save.told);
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    for (size_t i = 0;
         save.writes != NULL && save.tells != NULL && i < job->n_keepers; i++) {
        job_ask_destroy(&save.writes[i]);
        job_ask_destroy(&save.tells[i]);
    }
    ls_writer_destroy(&save.writer);
    free(save.nodes);
    free(save.writes);
    free(save.tells);
    free(save.entries);
    free(save.kept);
    return ls_failure_return(&failure);
}
