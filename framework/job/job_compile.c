/* A job before it runs: where each task is placed, who leads, and all of it as
 * text. Nodes compare that text when a run begins, so it has nothing in it that
 * may differ between them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job_parts.h"
#include "lockstep/place.h"
#include "text_pieces.h"

/* ---- nodes ------------------------------------------------------------- */

static bool has_id(const uint32_t *ids, size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

bool job_runs_on(const struct job_task *task, uint32_t id)
{
    return has_id(task->nodes, task->n_nodes, id);
}

bool job_is_keeper(const ls_job *job)
{
    return has_id(job->keepers, job->n_keepers, job->id);
}

/* All members there are; out: own, with room for one more. Errors: LS_ENOMEM.
 */
static int list_members(const ls_job *job, struct ls_member **out, size_t *n)
{
    size_t capacity;
    *n = ls_node_members(job->node, NULL, 0);
    do {
        capacity = *n;
        struct ls_member *more = realloc(*out, (capacity + 1) * sizeof *more);
        if (more == NULL)
            return ls_error(LS_ENOMEM, "job %s", job->options.name);
        *out = more;
        *n = ls_node_members(job->node, *out, capacity);
    } while (*n > capacity);
    return LS_OK;
}

/* Of n members, in place: the ready ones, by id, with this node. */
static size_t ready_nodes(const ls_job *job, struct ls_member *out, size_t n)
{
    size_t kept = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        if (out[i].state == LS_MEMBER_READY)
            out[kept++] = out[i];
    while (at < kept && out[at].id < job->id)
        at++;
    memmove(&out[at + 1], &out[at], (kept - at) * sizeof *out);
    out[at] = (struct ls_member){.id = job->id};
    (void)snprintf(out[at].role, sizeof out[at].role, "%s",
                   ls_node_role(job->node));
    (void)snprintf(out[at].labels, sizeof out[at].labels, "%s",
                   ls_node_labels(job->node));
    return kept + 1;
}

struct ids {
    uint32_t *at; /* own */
    size_t n;
};

static int ids_add(struct ids *ids, uint32_t id)
{
    size_t i = ids->n;
    if (has_id(ids->at, ids->n, id))
        return LS_OK;
    uint32_t *more = realloc(ids->at, (ids->n + 1) * sizeof *more);
    if (more == NULL)
        return ls_error(LS_ENOMEM, "the nodes of a job");
    ids->at = more;
    for (; i > 0 && more[i - 1] > id; i--)
        more[i] = more[i - 1];
    more[i] = id;
    ids->n++;
    return LS_OK;
}

static int place(const char *where, const struct ls_member *nodes, size_t n,
                 struct ids *out)
{
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++)
        if (ls_place_has(where, nodes[i].id, nodes[i].role, nodes[i].labels))
            status = ids_add(out, nodes[i].id);
    if (status == LS_OK && out->n == 0)
        status = ls_error(LS_ENOENT, "no ready node is at \"%s\"", where);
    return status;
}

/* ---- placing ----------------------------------------------------------- */

static bool is_limiter(const struct job_task *task)
{
    return strcmp(task->given.where, JOB_LIMITER) == 0;
}

static int place_group(ls_job *job, enum ls_job_phase phase,
                       const struct ls_member *nodes, size_t n)
{
    for (struct job_task *task = job->groups[phase]; task != NULL;
         task = task->next) {
        struct ids ids = {.n = 0};
        if (is_limiter(task))
            continue;
        const int status = place(task->given.where, nodes, n, &ids);
        free(task->nodes);
        task->nodes = ids.at;
        task->n_nodes = ids.n;
        if (status != LS_OK)
            return ls_error_at(status, "job %s, %s group, task %s",
                               job->options.name, ls_job_phase_name(phase),
                               task->given.name);
    }
    return LS_OK;
}

static int add_group(const ls_job *job, enum ls_job_phase phase,
                     struct ids *out)
{
    int status = LS_OK;
    for (const struct job_task *task = job->groups[phase]; task != NULL;
         task = task->next)
        for (size_t i = 0; i < task->n_nodes && status == LS_OK; i++)
            status = ids_add(out, task->nodes[i]);
    return status;
}

/* Whose blobs are saved. */
static int place_keepers(ls_job *job, const struct ls_member *nodes, size_t n)
{
    struct ids ids = {.n = 0};
    int status = LS_OK;
    if (job->options.checkpoint != NULL)
        status = place(job->options.checkpoint, nodes, n, &ids);
    else
        status = add_group(job, LS_JOB_INIT, &ids);
    if (status == LS_OK && ids.n == 0)
        status = add_group(job, LS_JOB_EPOCH, &ids);
    job->keepers = ids.at;
    job->n_keepers = ids.n;
    return status == LS_OK
               ? LS_OK
               : ls_error_at(status, "job %s: whose blobs are saved",
                             job->options.name);
}

static int place_limiter(ls_job *job, enum ls_job_phase phase)
{
    for (struct job_task *task = job->groups[phase]; task != NULL;
         task = task->next) {
        struct ids ids = {.n = 0};
        if (!is_limiter(task))
            continue;
        const int status = ids_add(&ids, job->keepers[0]);
        free(task->nodes);
        task->nodes = ids.at;
        task->n_nodes = ids.n;
        if (status != LS_OK)
            return status;
    }
    return LS_OK;
}

static int place_all(ls_job *job, const struct ls_member *nodes, size_t n)
{
    struct ids ids = {.n = 0};
    int status = LS_OK;
    for (size_t i = 0; i < LS_JOB_N_PHASES && status == LS_OK; i++)
        status = place_group(job, (enum ls_job_phase)i, nodes, n);
    if (status == LS_OK)
        status = place_keepers(job, nodes, n);
    /* Epochs of nothing would not end. */
    if (status == LS_OK &&
        (job->n_keepers == 0 || job->groups[LS_JOB_EPOCH] == NULL))
        return ls_error(LS_EINVAL, "job %s: its epoch group has no task",
                        job->options.name);
    for (size_t i = 0; i < LS_JOB_N_PHASES && status == LS_OK; i++)
        status = place_limiter(job, (enum ls_job_phase)i);
    for (size_t i = 0; i < job->n_keepers && status == LS_OK; i++)
        status = ids_add(&ids, job->keepers[i]);
    for (size_t i = 0; i < LS_JOB_N_PHASES && status == LS_OK; i++)
        status = add_group(job, (enum ls_job_phase)i, &ids);
    job->nodes = ids.at;
    job->n_nodes = ids.n;
    return status;
}

/* ---- as text ----------------------------------------------------------- */

static void put_ids(struct text *text, const uint32_t *ids, size_t n,
                    const char *between)
{
    for (size_t i = 0; i < n; i++)
        text_add(text, "%s%" PRIu32, i == 0 ? "" : between, ids[i]);
}

static void put_task(struct text *text, enum ls_job_phase phase,
                     const struct ls_job_task *task, const uint32_t *nodes,
                     size_t n_nodes)
{
    const char *const *outputs = task->outputs;
    text_add(text, "  %-8s  %s on node ", ls_job_phase_name(phase), task->name);
    put_ids(text, nodes, n_nodes, ", ");
    text_add(text, " (%s)%s", task->where != NULL ? task->where : "all",
             task->workspace == LS_WORKSPACE_PRIVATE ? ", private" : "");
    if (task->report_ms != 0)
        text_add(text, ", every %d ms", task->report_ms);
    for (size_t i = 0; outputs != NULL && outputs[i] != NULL; i++)
        text_add(text, "%s%s", i == 0 ? ", puts out " : ", ", outputs[i]);
    text_add(text, "\n");
}

size_t ls_job_task_print(enum ls_job_phase phase,
                         const struct ls_job_task *task, const uint32_t *nodes,
                         size_t n_nodes, char *text, size_t size)
{
    struct text out = {.at = text, .size = size};
    if (size != 0)
        text[0] = '\0';
    put_task(&out, phase, task, nodes, n_nodes);
    return out.used;
}

static void put_job(struct text *text, const ls_job *job)
{
    text_add(text, "job %s on node ", job->options.name);
    put_ids(text, job->nodes, job->n_nodes, ", ");
    text_add(text, ", led by node %" PRIu32 "\n", job->leader);
    for (size_t i = 0; i < LS_JOB_N_PHASES; i++)
        for (const struct job_task *task = job->groups[i]; task != NULL;
             task = task->next)
            put_task(text, (enum ls_job_phase)i, &task->given, task->nodes,
                     task->n_nodes);
    if (job->options.folder != NULL) {
        text_add(text, "  saves     the blobs of node ");
        put_ids(text, job->keepers, job->n_keepers, ", ");
        text_add(text, "%s; after a failed save it %s\n",
                 job->options.saves_behind ? ", behind" : "",
                 job->options.goes_on ? "goes on" : "ends");
    }
    if (job->limit != 0)
        text_add(text, "  stops     after %" PRIu64 " epochs\n", job->limit);
    for (const struct job_task *stop = job->stops; stop != NULL;
         stop = stop->next)
        text_add(text, "  stops     on %s\n", stop->given.name);
    for (size_t i = 0; i < LS_JOB_N_SHARES; i++)
        for (const struct job_task *at = job->shares[i]; at != NULL;
             at = at->next)
            text_add(text, "  %-8s  %s\n",
                     i == LS_JOB_SHARED ? "shares" : "spreads", at->given.name);
}

static void put_blobs(struct text *text, const ls_job *job)
{
    char form[LS_BLOB_FORM_TEXT_MAX];
    for (size_t i = 0; i < ls_blobs_n(job->global.blobs); i++) {
        const struct ls_blob *blob = ls_blobs_at(job->global.blobs, i);
        text_add(text, "  blob      %s %s%s\n", blob->name,
                 ls_blob_form_print(&blob->form, form),
                 blob->is_private ? ", private" : "");
    }
}

static void put_names(struct text *text, const char *what,
                      const struct job_task *list)
{
    text_add(text, ",\"%s\":[", what);
    for (const struct job_task *at = list; at != NULL; at = at->next)
        text_add(text, "%s\"%s\"", at == list ? "" : ",", at->given.name);
    text_add(text, "]");
}

/* Names and places have nothing in them that JSON would have to escape. */
static void put_json(struct text *text, const ls_job *job)
{
    char form[LS_BLOB_FORM_TEXT_MAX];
    const char *between = "";
    text_add(text, "{\"job\":\"%s\",\"nodes\":[", job->options.name);
    put_ids(text, job->nodes, job->n_nodes, ",");
    text_add(text, "],\"leader\":%" PRIu32 ",\"tasks\":[", job->leader);
    for (size_t i = 0; i < LS_JOB_N_PHASES; i++)
        for (const struct job_task *task = job->groups[i]; task != NULL;
             task = task->next, between = ",") {
            const char *const *outputs = task->given.outputs;
            text_add(text,
                     "%s{\"group\":\"%s\",\"task\":\"%s\",\"where\":\"%s\",",
                     between, ls_job_phase_name((enum ls_job_phase)i),
                     task->given.name, task->given.where);
            text_add(text, "\"private\":%s,\"report_ms\":%d,\"outputs\":[",
                     task->given.workspace == LS_WORKSPACE_PRIVATE ? "true"
                                                                   : "false",
                     task->given.report_ms);
            for (size_t j = 0; outputs != NULL && outputs[j] != NULL; j++)
                text_add(text, "%s\"%s\"", j == 0 ? "" : ",", outputs[j]);
            text_add(text, "],\"nodes\":[");
            put_ids(text, task->nodes, task->n_nodes, ",");
            text_add(text, "]}");
        }
    text_add(text, "],\"checkpoint\":[");
    if (job->options.folder != NULL)
        put_ids(text, job->keepers, job->n_keepers, ",");
    text_add(text, "],\"saves_behind\":%s,\"goes_on\":%s,\"limit\":%" PRIu64,
             job->options.saves_behind ? "true" : "false",
             job->options.goes_on ? "true" : "false", job->limit);
    put_names(text, "stops", job->stops);
    put_names(text, "shares", job->shares[LS_JOB_SHARED]);
    put_names(text, "spreads", job->shares[LS_JOB_SPREAD]);
    text_add(text, ",\"blobs\":[");
    for (size_t i = 0; i < ls_blobs_n(job->global.blobs); i++) {
        const struct ls_blob *blob = ls_blobs_at(job->global.blobs, i);
        text_add(text, "%s{\"name\":\"%s\",\"form\":\"%s\"}", i == 0 ? "" : ",",
                 blob->name, ls_blob_form_print(&blob->form, form));
    }
    text_add(text, "]}\n");
}

size_t ls_job_print(const ls_job *job, bool json, char *text, size_t size)
{
    struct text out = {.at = text, .size = size};
    if (size != 0)
        text[0] = '\0';
    if (!job->compiled)
        return 0;
    if (json) {
        put_json(&out, job);
    } else {
        put_job(&out, job);
        put_blobs(&out, job);
    }
    return out.used;
}

/* ---- all of it --------------------------------------------------------- */

static int keep_text(ls_job *job)
{
    struct text text = {.size = 0};
    put_job(&text, job);
    text.size = text.used + 1;
    text.used = 0;
    free(job->text);
    job->text = text.at = malloc(text.size);
    if (text.at == NULL)
        return ls_error(LS_ENOMEM, "job %s", job->options.name);
    put_job(&text, job);
    return LS_OK;
}

int ls_job_compile(ls_job *job)
{
    if (job->compiled)
        return LS_OK;
    if (ls_node_endpoint(job->node)[0] == '\0')
        return ls_error(LS_ESTATE, "job %s: start the node first",
                        job->options.name);
    struct ls_member *nodes = NULL;
    size_t n;
    free(job->nodes); /* of a try that failed */
    free(job->keepers);
    job->nodes = job->keepers = NULL;
    int status = list_members(job, &nodes, &n);
    if (status == LS_OK)
        status = place_all(job, nodes, ready_nodes(job, nodes, n));
    free(nodes);
    if (status == LS_OK && !has_id(job->nodes, job->n_nodes, job->id))
        status = ls_error(LS_EINVAL, "node %" PRIu32 " has no part in job %s",
                          job->id, job->options.name);
    if (status != LS_OK)
        return status;
    job->leader = job->nodes[0];
    status = keep_text(job);
    ls_mutex_lock(&job->asker.mutex); /* requests come in already */
    job->compiled = status == LS_OK;
    ls_mutex_unlock(&job->asker.mutex);
    return status;
}
