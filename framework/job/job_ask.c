/* Questions of the node that leads, to some or all. Each is one call; its
 * answer is a map with the status and the error's text, and what was asked for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job_parts.h"

/* For as long as it takes: what is waited for ends by itself. */
void job_wait(ls_job *job)
{
    const int status = ls_cond_wait(&job->cond, &job->mutex, LS_FOREVER);
    (void)status; /* who waits looks at what it waits for */
}

void job_join(ls_thread **thread)
{
    const int status = ls_thread_join(thread, LS_FOREVER);
    (void)status; /* cannot be late */
}

static void on_ended(void *self, ls_call *call)
{
    struct job_ask *ask = self;
    (void)call;
    ls_mutex_lock(&ask->job->mutex);
    ask->ended = true;
    ls_cond_broadcast(&ask->job->cond);
    ls_mutex_unlock(&ask->job->mutex);
}

void job_ask_begin(struct job_ask *ask, ls_job *job, uint32_t to,
                   ls_writer *writer, int timeout_ms)
{
    char name[LS_EVENT_MAX + 1];
    const void *data;
    size_t size;
    *ask = (struct job_ask){.job = job, .to = to};
    (void)snprintf(name, sizeof name, "job.%s", job->options.name);
    ask->status = ls_writer_bytes(writer, &data, &size);
    if (ask->status == LS_OK)
        ask->status =
            ls_call_start(&ask->call, job->calls,
                          &(struct ls_call_options){.to = to,
                                                    .name = name,
                                                    .data = data,
                                                    .size = size,
                                                    .timeout_ms = timeout_ms,
                                                    .ended = on_ended,
                                                    .self = ask});
    ls_writer_clear(writer);
    if (ask->status == LS_ENOENT)
        ask->status = ls_error(LS_ELOST, "node %" PRIu32 " is gone", to);
    if (ask->call == NULL) {
        ls_mutex_lock(&job->mutex);
        ask->ended = true;
        ls_mutex_unlock(&job->mutex);
    }
}

static int read_answer(struct job_ask *ask, const struct ls_call_result *result)
{
    int64_t said = LS_OK;
    const char *text = "";
    int status =
        ls_document_read(&ask->document, result->data, result->size, NULL);
    const ls_value *root =
        status == LS_OK ? ls_document_root(ask->document) : NULL;
    if (status == LS_OK)
        status = ls_value_int(ls_value_get(root, "status"), &said);
    if (status == LS_OK && said != LS_OK &&
        ls_value_string(ls_value_get(root, "text"), &text) != LS_OK)
        text = "?";
    if (status == LS_OK && said < 0 && said > -1000)
        status = ls_error((int)said, "%s", text);
    return status;
}

static int status_of(const struct ls_call_result *result)
{
    switch (result->state) {
    case LS_CALL_LOST:
        return ls_error(LS_ELOST, "lost: %s", result->text);
    case LS_CALL_TIMEOUT:
        return ls_error(LS_ETIMEDOUT, "%s", result->text);
    case LS_CALL_CANCELLED:
        return ls_error(LS_ECANCELED, "%s", result->text);
    default:
        return ls_error(LS_EHANDLER, "%s", result->text);
    }
}

int job_ask_end(struct job_ask *ask)
{
    if (ask->call != NULL && !ask->seen) {
        const struct ls_call_result *result = ls_call_result(ask->call);
        ask->status = result->state == LS_CALL_COMPLETED
                          ? read_answer(ask, result)
                          : status_of(result);
        if (ask->status != LS_OK)
            (void)ls_error_at(ask->status, "node %" PRIu32, ask->to);
    }
    ask->seen = true;
    return ask->status;
}

void job_ask_destroy(struct job_ask *ask)
{
    ls_call_destroy(&ask->call);
    ls_document_destroy(&ask->document);
}

/* Wait for one that has ended and was not seen; NULL: all were. Each call has
 * its own timeout, so this ends. */
static struct job_ask *next_end(ls_job *job, struct job_ask *asks, size_t n)
{
    struct job_ask *found = NULL;
    bool open = true;
    ls_mutex_lock(&job->mutex);
    while (found == NULL && open) {
        open = false;
        for (size_t i = 0; i < n && found == NULL; i++) {
            if (asks[i].ended && !asks[i].seen)
                found = &asks[i];
            open = open || !asks[i].seen;
        }
        if (found == NULL && open)
            job_wait(job);
    }
    ls_mutex_unlock(&job->mutex);
    return found;
}

int job_ask_all(ls_job *job, const uint32_t *nodes, size_t n,
                void (*write)(void *self, ls_writer *writer, size_t i),
                void *self, int timeout_ms, struct job_ask *asks)
{
    struct ls_failure failure = {.status = LS_OK};
    struct job_ask *ask;
    ls_writer *writer;
    const int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    for (size_t i = 0; i < n; i++) {
        write(self, writer, i);
        job_ask_begin(&asks[i], job, nodes[i], writer, timeout_ms);
        if (asks[i].call == NULL) /* its text is of now */
            ls_failure_keep(&failure, asks[i].status);
    }
    ls_writer_destroy(&writer);
    while ((ask = next_end(job, asks, n)) != NULL)
        if (job_ask_end(ask) != LS_OK && failure.status == LS_OK) {
            ls_failure_keep(&failure, ask->status);
            for (size_t i = 0; i < n; i++)
                if (asks[i].call != NULL)
                    ls_call_cancel(asks[i].call);
        }
    return ls_failure_return(&failure);
}

int job_ask_each(ls_job *job, const uint32_t *nodes, size_t n,
                 void (*write)(void *self, ls_writer *writer, size_t i),
                 void *self, int timeout_ms)
{
    struct job_ask *asks = calloc(n + 1, sizeof *asks);
    if (asks == NULL)
        return ls_error(LS_ENOMEM, "%zu questions", n);
    const int status =
        job_ask_all(job, nodes, n, write, self, timeout_ms, asks);
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    for (size_t i = 0; i < n; i++)
        job_ask_destroy(&asks[i]);
    free(asks);
    return ls_failure_return(&failure);
}
