#include "node_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/file.h"
#include "lockstep/runtime.h"

#include "run_folder.h"

struct log {
    ls_file *file; /* own; NULL: there is none */
    uint64_t size;
};

struct node_output {
    bool shows;
    size_t n;
    struct log *logs; /* own; n; NULL: there is no folder. Under mutex: */
    ls_mutex mutex;
    uint64_t n_lost;
    char why[LS_ERROR_TEXT_MAX]; /* the first of these was */
};

/* ---- a file ------------------------------------------------------------ */

static int add(struct log *log, const char *text, size_t size)
{
    const int status = ls_file_write_at(log->file, text, size, log->size);
    if (status == LS_OK)
        log->size += size;
    return status;
}

/* A life of the run that was killed may have left part of a line. */
static int end_line(struct log *log)
{
    char last = '\n';
    int status = ls_file_size(log->file, &log->size);
    if (status == LS_OK && log->size > 0)
        status = ls_file_read_at(log->file, &last, 1, log->size - 1);
    return status == LS_OK && last != '\n' ? add(log, "\n", 1) : status;
}

static int too_long(const char *folder)
{
    return ls_error(LS_ELIMIT,
                    "--output: the folder %.80s… has too long a name", folder);
}

static int open_log(struct log *log, const char *folder, uint32_t id)
{
    char path[LS_PATH_MAX];
    const int n =
        snprintf(path, sizeof path, "%s/node-%" PRIu32 ".log", folder, id);
    if (n < 0 || (size_t)n >= sizeof path)
        return too_long(folder);
    const int status =
        ls_file_open(&log->file, path, LS_FILE_WRITE | LS_FILE_CREATE);
    return status == LS_OK ? end_line(log) : status;
}

/* ---- all of them ------------------------------------------------------- */

/* Where a run has no folder, its own is told apart by its process. */
static int make_folder(char path[LS_PATH_MAX], const char *in,
                       const struct plan *plan, const struct run_folder *run)
{
    char unique[LS_FILE_UNIQUE_MAX];
    ls_file_unique(unique);
    const bool named = run->name[0] != '\0';
    const int n = snprintf(path, LS_PATH_MAX, "%s/%s.%s%s%s", in, plan->job,
                           named ? run->name : unique, named ? "-" : "",
                           named ? run->token : "");
    return n >= 0 && n < LS_PATH_MAX ? ls_folder_make(path) : too_long(in);
}

static int open_logs(node_output *self, const char *in, const struct plan *plan,
                     const struct run_folder *run)
{
    char folder[LS_PATH_MAX];
    self->n = plan->n_nodes;
    self->logs = calloc(self->n, sizeof *self->logs);
    int status = self->logs != NULL ? make_folder(folder, in, plan, run)
                                    : ls_error(LS_ENOMEM, "--output");
    for (size_t i = 0; i < self->n && status == LS_OK; i++)
        status = open_log(&self->logs[i], folder, plan->nodes[i].id);
    return status;
}

int node_output_open(node_output **out, const char *what,
                     const struct plan *plan, const struct run_folder *run)
{
    node_output *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ls_error(LS_ENOMEM, "--output");
    int status = ls_mutex_init(&self->mutex, ls_runtime_threads());
    if (status != LS_OK) {
        free(self);
        return status;
    }
    self->shows = what == NULL || strcmp(what, "all") == 0;
    if (!self->shows && strcmp(what, "only_error") != 0)
        status = open_logs(self, what, plan, run);
    if (status == LS_OK)
        *out = self;
    else
        (void)!node_output_close(&self);
    return status;
}

bool node_output_shows(const node_output *self)
{
    return self == NULL || self->shows;
}

void node_output_line(node_output *self, size_t index, const char *line)
{
    if (self == NULL || self->logs == NULL)
        return;
    struct log *log = &self->logs[index];
    ls_mutex_lock(&self->mutex);
    const uint64_t before = log->size;
    int status = add(log, line, strlen(line));
    if (status == LS_OK)
        status = add(log, "\n", 1);
    if (status != LS_OK) {
        log->size = before; /* the next one writes over the part of it */
        if (self->n_lost++ == 0)
            (void)snprintf(self->why, sizeof self->why, "%s", ls_error_text());
    }
    ls_mutex_unlock(&self->mutex);
}

/* The part of a line that could not be written goes. */
static void close_log(node_output *self, struct log *log)
{
    int status = LS_OK;
    if (log->file != NULL && self->n_lost > 0)
        status = ls_file_cut(log->file, log->size);
    if (ls_file_close(&log->file) == LS_OK && status == LS_OK)
        return;
    if (self->n_lost++ == 0)
        (void)snprintf(self->why, sizeof self->why, "%s", ls_error_text());
}

int node_output_close(node_output **output)
{
    if (output == NULL || *output == NULL)
        return LS_OK;
    node_output *self = *output;
    *output = NULL;
    for (size_t i = 0; self->logs != NULL && i < self->n; i++)
        close_log(self, &self->logs[i]);
    const int status =
        self->n_lost == 0
            ? LS_OK
            : ls_error(LS_EIO,
                       "--output: %" PRIu64 " line%s of the nodes could not be "
                       "written: %.900s",
                       self->n_lost, self->n_lost == 1 ? "" : "s", self->why);
    free(self->logs);
    ls_mutex_fini(&self->mutex);
    free(self);
    return status;
}
