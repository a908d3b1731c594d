#include "ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- answering --------------------------------------------------------- */

int64_t question_int(const struct question *question, const char *key,
                     int64_t otherwise)
{
    int64_t value;
    return ls_value_int(ls_value_get(question->said, key), &value) == LS_OK
               ? value
               : otherwise;
}

const char *question_text(const struct question *question, const char *key)
{
    const char *text;
    return ls_value_string(ls_value_get(question->said, key), &text) == LS_OK
               ? text
               : "";
}

bool question_is_cancelled(const struct question *question)
{
    return question->request != NULL &&
           ls_request_is_cancelled(question->request);
}

/* With this thread's error; the map of the answer is ended. */
static void end_answer(ls_writer *writer, int status)
{
    ls_write_string(writer, "status");
    ls_write_int(writer, status);
    if (status != LS_OK) {
        ls_write_string(writer, "text");
        ls_write_string(writer, ls_error_text());
    }
    ls_write_map_end(writer);
}

static void send_answer(ls_request **request, ls_writer *writer,
                        struct ls_body *body)
{
    const void *data;
    size_t size;
    if (ls_writer_bytes(writer, &data, &size) != LS_OK) {
        ls_body_release(body);
        (void)ls_request_fail(request, ls_error_text());
    } else if (body->data == NULL)
        (void)ls_request_complete(request, data, size);
    else
        (void)ls_request_complete_with(request, data, size, body);
}

void question_refuse(ls_request *request, int status)
{
    ls_writer *writer;
    struct ls_body none = {.data = NULL};
    if (ls_writer_create(&writer) != LS_OK) {
        (void)ls_request_fail(&request, ls_error_text());
        return;
    }
    ls_write_map_begin(writer);
    end_answer(writer, status);
    send_answer(&request, writer, &none);
    ls_writer_destroy(&writer);
}

/* data: of the question. The answer's writer and body are left to the caller.
 */
static int work_on(struct question *question, const void *data, size_t size,
                   question_fn *fn, void *self)
{
    ls_document *document = NULL;
    ls_error_clear();
    int status = ls_document_read(&document, data, size, NULL);
    ls_write_map_begin(question->answer);
    if (status == LS_OK)
        status = ls_body_keep(&question->body); /* it is parsed */
    if (status == LS_OK && question_is_cancelled(question))
        status = ls_error(LS_ECANCELED, "nobody waits for it any more");
    if (status == LS_OK) {
        question->said = ls_document_root(document);
        status = fn(self, question);
    }
    end_answer(question->answer, status);
    ls_body_release(&question->body);
    ls_document_destroy(&document);
    return status;
}

void question_serve(ls_request *request, question_fn *fn, void *self)
{
    struct question question = {.request = request};
    size_t size;
    const void *data = ls_request_data(request, &size);
    const int status = ls_writer_create(&question.answer);
    if (status != LS_OK) {
        question_refuse(request, status);
        return;
    }
    ls_request_take_body(request, &question.body);
    (void)work_on(&question, data, size, fn, self);
    send_answer(&request, question.answer, &question.out);
    ls_writer_destroy(&question.answer);
}

/* ---- asking ------------------------------------------------------------ */

int asker_init(struct asker *out, ls_runtime *runtime, ls_rpc *calls,
               const char *name, question_fn *alone, void *self)
{
    out->runtime = runtime;
    out->calls = calls;
    out->alone = alone;
    out->self = self;
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    const int status = ls_mutex_init(&out->mutex, runtime);
    return status == LS_OK ? ls_cond_init(&out->cond, runtime) : status;
}

void asker_fini(struct asker *asker)
{
    ls_cond_fini(&asker->cond);
    ls_mutex_fini(&asker->mutex);
}

/* For as long as it takes: what is waited for ends by itself. */
void asker_wait(struct asker *asker)
{
    const int status = ls_cond_wait(&asker->cond, &asker->mutex, LS_FOREVER);
    (void)status; /* who waits looks at what it waits for */
}

void asker_join(ls_thread **thread)
{
    const int status = ls_thread_join(thread, LS_FOREVER);
    (void)status; /* cannot be late */
}

static void on_ended(void *self, ls_call *call)
{
    struct ask *ask = self;
    (void)call;
    ls_mutex_lock(&ask->asker->mutex);
    ask->ended = true;
    ls_cond_broadcast(&ask->asker->cond);
    ls_mutex_unlock(&ask->asker->mutex);
}

/* The answer as of any other node. */
static void ask_self(struct ask *ask, const void *data, size_t size,
                     struct ls_body *body)
{
    struct question question = {.body = *body};
    const void *answer;
    size_t length;
    *body = (struct ls_body){.data = NULL};
    ask->status = ls_writer_create(&question.answer);
    if (ask->status != LS_OK) {
        ls_body_release(&question.body);
        return;
    }
    (void)work_on(&question, data, size, ask->asker->alone, ask->asker->self);
    ask->body = question.out;
    ask->status = ls_writer_bytes(question.answer, &answer, &length);
    if (ask->status == LS_OK)
        ask->status = ls_document_read(&ask->document, answer, length, NULL);
    ls_writer_destroy(&question.answer);
}

static void ask_other(struct ask *ask, const void *data, size_t size,
                      struct ls_body *body, int timeout_ms)
{
    ask->status =
        ls_call_start(&ask->call, ask->asker->calls,
                      &(struct ls_call_options){.to = ask->to,
                                                .name = ask->asker->name,
                                                .data = data,
                                                .size = size,
                                                .body = *body,
                                                .timeout_ms = timeout_ms,
                                                .ended = on_ended,
                                                .self = ask});
    *body = (struct ls_body){.data = NULL};
    if (ask->status == LS_ENOENT)
        ask->status = ls_error(LS_ELOST, "node %" PRIu32 " is gone", ask->to);
}

void ask_begin(struct ask *ask, struct asker *asker, uint32_t to,
               ls_writer *writer, const struct ls_body *body, int timeout_ms)
{
    const void *data;
    size_t size;
    struct ls_body given = {.data = NULL};
    if (body != NULL)
        given = *body;
    *ask = (struct ask){.asker = asker, .to = to};
    ask->status = ls_writer_bytes(writer, &data, &size);
    if (ask->status == LS_OK && asker->calls == NULL)
        ask_self(ask, data, size, &given);
    else if (ask->status == LS_OK)
        ask_other(ask, data, size, &given, timeout_ms);
    ls_body_release(&given);
    ls_writer_clear(writer);
    if (ask->call == NULL) {
        ls_mutex_lock(&asker->mutex);
        ask->ended = true;
        ls_mutex_unlock(&asker->mutex);
    }
}

bool ask_is_failure(int64_t said)
{
    return said < 0 && said > -1000;
}

/* What the map says. What a callback returned need be no status: then it has
 * failed. */
static int read_answer(const struct ask *ask)
{
    int64_t said = LS_OK;
    const char *text = "";
    const ls_value *root = ls_document_root(ask->document);
    int status = ls_value_int(ls_value_get(root, "status"), &said);
    if (status == LS_OK && said != LS_OK &&
        ls_value_string(ls_value_get(root, "text"), &text) != LS_OK)
        text = "?";
    if (status == LS_OK && said != LS_OK)
        status = ls_error(ask_is_failure(said) ? (int)said : LS_EHANDLER, "%s",
                          text);
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

static int read_result(struct ask *ask)
{
    const struct ls_call_result *result = ls_call_result(ask->call);
    if (result->state != LS_CALL_COMPLETED)
        return status_of(result);
    ls_call_take_body(ask->call, &ask->body);
    int status = ls_body_keep(&ask->body); /* it is parsed */
    if (status == LS_OK)
        status =
            ls_document_read(&ask->document, result->data, result->size, NULL);
    return status == LS_OK ? read_answer(ask) : status;
}

int ask_end(struct ask *ask)
{
    if (!ask->seen && (ask->call != NULL || ask->document != NULL)) {
        ask->status = ask->call != NULL ? read_result(ask) : read_answer(ask);
        if (ask->status != LS_OK && ask->asker->calls != NULL)
            (void)ls_error_at(ask->status, "node %" PRIu32, ask->to);
    }
    ask->seen = true;
    return ask->status;
}

void ask_destroy(struct ask *ask)
{
    ls_call_destroy(&ask->call);
    ls_document_destroy(&ask->document);
    ls_body_release(&ask->body);
}

static void cancel_all(struct ask *asks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (asks[i].call != NULL)
            ls_call_cancel(asks[i].call);
}

bool asker_is_over(const struct asker *asker)
{
    return asker->is_over != NULL && asker->is_over(asker->self);
}

/* Wait for one that has ended and was not seen; NULL: all were. Each call has
 * its own timeout, so this ends.
 * over: whether it was given up; set once. */
static struct ask *next_end(struct asker *asker, struct ask *asks, size_t n,
                            bool *over)
{
    struct ask *found = NULL;
    bool open = true;
    ls_mutex_lock(&asker->mutex);
    while (found == NULL && open) {
        if (!*over && asker_is_over(asker)) {
            *over = true;
            ls_mutex_unlock(&asker->mutex);
            cancel_all(asks, n);
            ls_mutex_lock(&asker->mutex);
        }
        open = false;
        for (size_t i = 0; i < n && found == NULL; i++) {
            if (asks[i].ended && !asks[i].seen)
                found = &asks[i];
            open = open || (asks[i].asker != NULL && !asks[i].seen);
        }
        if (found == NULL && open)
            asker_wait(asker);
    }
    ls_mutex_unlock(&asker->mutex);
    return found;
}

int ask_all(struct asker *asker, const uint32_t *nodes, size_t n, ask_fn *write,
            void *self, int timeout_ms, struct ask *asks)
{
    struct ls_failure failure = {.status = LS_OK};
    struct ask *ask;
    ls_writer *writer;
    bool over = false;
    int status = ls_writer_create(&writer);
    if (status != LS_OK)
        return status;
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        struct ls_body body = {.data = NULL};
        status = write(self, writer, &body, i);
        if (status != LS_OK) {
            ls_failure_keep(&failure, status);
            ls_body_release(&body);
            break;
        }
        ask_begin(&asks[i], asker, nodes[i], writer, &body, timeout_ms);
        if (asks[i].call == NULL && asks[i].document == NULL &&
            failure.status == LS_OK) /* its text is of now */
            ls_failure_keep(&failure, asks[i].status);
    }
    ls_writer_destroy(&writer);
    if (failure.status != LS_OK) /* one is gone already, or was not asked */
        cancel_all(asks, n);
    while ((ask = next_end(asker, asks, n, &over)) != NULL)
        if (ask_end(ask) != LS_OK && failure.status == LS_OK) {
            ls_failure_keep(&failure, ask->status);
            cancel_all(asks, n);
        }
    return ls_failure_return(&failure);
}

int ask_each(struct asker *asker, const uint32_t *nodes, size_t n,
             ask_fn *write, void *self, int timeout_ms)
{
    struct ask *asks = calloc(n + 1, sizeof *asks);
    if (asks == NULL)
        return ls_error(LS_ENOMEM, "%zu questions", n);
    const int status = ask_all(asker, nodes, n, write, self, timeout_ms, asks);
    struct ls_failure failure;
    ls_failure_keep(&failure, status);
    for (size_t i = 0; i < n; i++)
        ask_destroy(&asks[i]);
    free(asks);
    return ls_failure_return(&failure);
}
