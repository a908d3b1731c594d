/* Which checkpoint a job goes on from, and loading it, as the node that leads
 * sees it. It is the newest that all nodes have whole; if it was saved by other
 * nodes than this job has, theirs is divided among these. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job_parts.h"
#include "lockstep/log.h"

struct resume {
    ls_job *job;
    int64_t load;             /* ls_job_load(): this one, and nothing else */
    int64_t epoch;            /* what was found; LS_CHECKPOINT_NONE: nothing */
    const char *const *names; /* NULL: all blobs */
    struct saves_found found; /* own: of that epoch */
};

/* ---- which one --------------------------------------------------------- */

static int from_scratch(struct resume *resume)
{
    resume->epoch = LS_CHECKPOINT_NONE;
    return saves_check_none(&resume->job->saves);
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
    status = saves_newest(&job->saves, before, true, &resume->found);
    resume->epoch =
        status == LS_OK ? resume->found.manifest.epoch : LS_CHECKPOINT_NONE;
    return status == LS_ENOENT ? LS_OK : status;
}

/* ---- loading ----------------------------------------------------------- */

static void name_missing(const struct resume *resume)
{
    const ls_job *job = resume->job;
    const struct ls_checkpoint_manifest *manifest = &resume->found.manifest;
    for (size_t i = 0; i < manifest->n_entries; i++) {
        bool here = false;
        for (size_t j = 0; j < job->n_keepers && !here; j++)
            here = saves_entry(&resume->found, job->keepers[j]) ==
                   &manifest->entries[i];
        if (!here)
            ls_log_warn("job %s: epoch %" PRId64 " goes on without %s: of its "
                        "blobs, those neither shared nor spread are left out",
                        job->options.name, manifest->epoch,
                        manifest->entries[i].node);
    }
}

static int write_init(void *self, ls_writer *writer, struct ls_body *body,
                      size_t i)
{
    (void)self;
    (void)body;
    (void)i;
    ls_write_map(writer, 3);
    ls_write_string(writer, "do");
    ls_write_string(writer, "run");
    ls_write_string(writer, "epoch");
    ls_write_int(writer, 0);
    ls_write_string(writer, "phase");
    ls_write_int(writer, LS_JOB_INIT);
    return LS_OK;
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
        if (saves_entry(&resume->found, job->keepers[i]) == NULL)
            new[n++] = job->keepers[i];
    const int status = ask_each(&job->asker, new, n, write_init, NULL,
                                job->options.group_timeout_ms);
    free(new);
    return status;
}

static int load(struct resume *resume)
{
    ls_job *job = resume->job;
    const int64_t begin = ls_now(job->runtime);
    int status = LS_OK;
    if (resume->found.others)
        name_missing(resume);
    if (resume->found.others && resume->load == LS_CHECKPOINT_NONE)
        status = init_new(resume);
    if (status == LS_OK)
        status = saves_load(&job->saves, &resume->found, resume->names);
    job_took(job, LS_JOB_OP_LOAD, begin);
    return status;
}

static int find(struct resume *resume)
{
    const struct ls_job_options *options = &resume->job->options;
    if (resume->load != LS_CHECKPOINT_NONE || options->resume == LS_JOB_AT) {
        resume->epoch =
            resume->load != LS_CHECKPOINT_NONE ? resume->load : options->epoch;
        return saves_look_at(&resume->job->saves, resume->epoch,
                             &resume->found);
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
    *stopped =
        resume.epoch != LS_CHECKPOINT_NONE && resume.found.manifest.stopped;
    saves_found_clear(&resume.found);
    return status;
}
