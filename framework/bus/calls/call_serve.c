/* Serving: a request from its coming to its answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call_parts.h"
#include "told.h"

#define UNKNOWN_NAME "task name error"

/* ---- answers ----------------------------------------------------------- */

/* The lock is held; the calls stay until they are settled. */
static void drop(struct ls_request *request)
{
    if (--request->refs != 0)
        return;
    request->calls->refs--;
    call_intake_drop(&request->intake);
    free(request);
}

static void reply(ls_rpc *calls, uint32_t to, uint64_t life, uint64_t number,
                  struct call_message *message)
{
    message->to = life;
    message->number = number;
    if (calls_send(calls, to, life, message, NULL) == LS_OK)
        return;
    const uint64_t n = ++calls->n_unanswered;
    if (is_told(n))
        ls_log_warn("call: node %u is not answered: %s; so far %llu answers "
                    "could not be kept",
                    (unsigned)to, ls_error_text(), (unsigned long long)n);
}

static void set_text(struct call_message *message, const char *text)
{
    message->text = text != NULL ? text : "";
    message->text_size = strlen(message->text);
    if (message->text_size > LS_CALL_TEXT_MAX)
        message->text_size = LS_CALL_TEXT_MAX;
}

/* What its caller sees, if it waits. */
static void say(struct ls_request *request, struct call_message *message)
{
    ls_rpc *calls = request->calls;
    if (request->entry.state == LS_CALL_CANCELLED)
        return;
    if (message->kind == CALL_REFUSED)
        calls->stats.refused++;
    else
        calls->stats.served++;
    reply(calls, request->entry.peer, request->entry.life,
          request->entry.number, message);
}

/* Out of the table: nothing is to be said of it any more. */
static void retire(struct ls_request *request)
{
    open_calls_remove(&request->calls->requests.open, &request->entry);
    request->open = request->arriving = false;
}

/* ---- what comes -------------------------------------------------------- */

static struct ls_request *create(ls_rpc *calls, uint32_t from, uint64_t life,
                                 uint64_t own,
                                 const struct call_message *message)
{
    struct ls_request *request = malloc(sizeof *request + message->size);
    if (request == NULL)
        return NULL;
    const struct served *served = request_table_served(
        &calls->requests, message->name, message->name_size);
    memset(request, 0, sizeof *request);
    request->entry.peer = from;
    request->entry.life = life;
    request->entry.own = own;
    request->entry.number = message->number;
    calls_excuse(calls);
    request->entry.due.at =
        ls_now(calls->runtime) + message->left_ms * LS_NS_PER_MS;
    request->entry.body_bytes = message->body_size;
    request->calls = calls;
    request->refs = 1;
    request->fn = served->fn;
    request->self = served->self;
    memcpy(request->name, message->name, message->name_size);
    request->size = message->size;
    if (message->size != 0)
        memcpy(request->data, message->data, message->size);
    if (open_calls_add(&calls->requests.open, &request->entry) != LS_OK) {
        free(request);
        return NULL;
    }
    request->open = true;
    calls->refs++;
    return request;
}

static void accept(ls_rpc *calls, struct ls_request *request)
{
    *calls->ready_end = request;
    calls->ready_end = &request->next_ready;
    if (calls->n_workers != 0)
        ls_cond_signal(&calls->work);
    else
        calls->errands_owed++;
}

void calls_on_request(ls_rpc *calls, uint32_t from, uint64_t life, uint64_t own,
                      const struct call_message *message)
{
    enum ls_call_code code;
    enum request_verdict verdict =
        request_table_judge(&calls->requests, from, life, own, message,
                            call_post_answers(&calls->post, from), &code,
                            calls_on_cancelled, calls);
    struct ls_request *request = NULL;
    if (verdict == REQUEST_STALE)
        return;
    if (verdict == REQUEST_ACCEPT)
        request = create(calls, from, life, own, message);
    if (request != NULL) {
        request->arriving = message->body_size != 0 && message->payload == NULL;
        if (message->payload != NULL)
            calls_keep_own(&request->intake, message->payload);
        if (!request->arriving)
            accept(calls, request);
        return;
    }
    struct call_message answer = {.kind = CALL_REFUSED, .code = LS_CALL_BUSY};
    set_text(&answer, "");
    if (verdict == REQUEST_REFUSE)
        answer.code = (uint32_t)code;
    if (verdict == REQUEST_DONE)
        answer = (struct call_message){.kind = CALL_COMPLETED};
    if (verdict == REQUEST_UNKNOWN) {
        answer = (struct call_message){.kind = CALL_FAILED};
        set_text(&answer, UNKNOWN_NAME);
    }
    if (answer.kind == CALL_REFUSED)
        calls->stats.refused++;
    else
        calls->stats.served++;
    reply(calls, from, life, message->number, &answer);
}

void calls_on_body(ls_rpc *calls, struct ls_request *request,
                   enum intake_verdict verdict)
{
    struct call_message refusal = {
        .kind = CALL_REFUSED,
        .code = verdict == INTAKE_WRONG ? LS_CALL_MALFORMED : LS_CALL_BUSY};
    request->arriving = false;
    if (verdict == INTAKE_WHOLE) {
        accept(calls, request);
        return;
    }
    set_text(&refusal, "");
    retire(request);
    say(request, &refusal);
    drop(request);
}

/* Whether it came here by fork(2): its answer is the parent's. */
static bool is_parents(const ls_request *request)
{
    return ls_forked_since(request->calls->forks);
}

/* ---- being told that nobody waits any more ----------------------------- */

void calls_on_cancelled(void *self, struct open_call *entry)
{
    ls_rpc *calls = self;
    struct ls_request *request = (struct ls_request *)entry;
    if (request->arriving) { /* it was never begun */
        retire(request);
        drop(request);
        return;
    }
    if (request->on_cancel == NULL || request->alarmed)
        return;
    request->alarmed = true;
    request->refs++;
    request->next_alarm = calls->alarms;
    calls->alarms = request;
}

/* The lock is held, and let go meanwhile. */
static void call_on_cancel(struct ls_request *request)
{
    ls_rpc *calls = request->calls;
    request->alarming = true;
    calls->n_alarming++;
    ls_mutex_unlock(&calls->mutex);
    request->on_cancel(request->on_cancel_self);
    ls_mutex_lock(&calls->mutex);
    request->alarming = false;
    calls->n_alarming--;
    ls_cond_broadcast(&calls->changed);
}

void calls_alarm(ls_rpc *calls)
{
    while (calls->alarms != NULL) {
        struct ls_request *request = calls->alarms;
        calls->alarms = request->next_alarm;
        request->alarmed = false;
        if (request->on_cancel != NULL)
            call_on_cancel(request);
        drop(request);
    }
}

/* Nothing is called for it any more. */
static void silence(struct ls_request *request)
{
    ls_rpc *calls = request->calls;
    int status = LS_OK;
    while (request->alarming && status == LS_OK)
        status = ls_cond_wait(&calls->changed, &calls->mutex, LS_FOREVER);
    request->on_cancel = NULL;
}

void ls_request_on_cancel(ls_request *request, void (*fn)(void *self),
                          void *self)
{
    ls_rpc *calls = request->calls;
    if (is_parents(request))
        return;
    ls_mutex_lock(&calls->mutex);
    silence(request);
    request->on_cancel = fn;
    request->on_cancel_self = self;
    if (fn != NULL && request->entry.state == LS_CALL_CANCELLED &&
        !request->alarmed)
        call_on_cancel(request);
    ls_mutex_unlock(&calls->mutex);
}

bool ls_request_is_cancelled(const ls_request *request)
{
    if (is_parents(request))
        return true;
    ls_mutex_lock(&request->calls->mutex);
    const bool cancelled = request->entry.state == LS_CALL_CANCELLED;
    ls_mutex_unlock(&request->calls->mutex);
    return cancelled;
}

/* ---- handlers ---------------------------------------------------------- */

static struct ls_request *take_ready(ls_rpc *calls)
{
    struct ls_request *request = calls->ready;
    if (request == NULL)
        return NULL;
    calls->ready = request->next_ready;
    if (calls->ready == NULL)
        calls->ready_end = &calls->ready;
    return request;
}

/* If its answer is still waited for, that is this. */
static void end_with(struct ls_request *request, struct call_message *message)
{
    if (request->open) {
        retire(request);
        say(request, message);
    }
    request->answered = true;
}

/* What its handler has left undone. */
static void after_handler(struct ls_request *request, int status,
                          const char *text)
{
    struct call_message message = {.kind = CALL_STARTED};
    if (request->answered || (status == LS_OK && !request->open))
        return;
    if (status == LS_OK) {
        if (request->entry.state == LS_CALL_CANCELLED)
            return;
        request->entry.state = LS_CALL_STARTED;
        reply(request->calls, request->entry.peer, request->entry.life,
              request->entry.number, &message);
        return;
    }
    message.kind = CALL_FAILED;
    set_text(&message, text[0] != '\0' ? text : ls_status_sentence(status));
    silence(request);
    end_with(request, &message);
    request->refs--; /* the user's; its handler's is still there */
}

void calls_handle_next(ls_rpc *calls)
{
    struct ls_request *request = take_ready(calls);
    if (request == NULL)
        return;
    if (request->entry.state == LS_CALL_CANCELLED) { /* it was never begun */
        retire(request);
        drop(request);
        return;
    }
    char text[LS_CALL_TEXT_MAX + 1] = "";
    request->refs++;
    request->entered = true;
    calls->n_running++;
    ls_mutex_unlock(&calls->mutex);
    ls_error_clear();
    const int status = request->fn(request->self, request);
    if (status != LS_OK)
        (void)snprintf(text, sizeof text, "%s", ls_error_text());
    ls_mutex_lock(&calls->mutex);
    after_handler(request, status, text);
    calls->n_running--;
    ls_cond_broadcast(&calls->changed);
    drop(request);
}

void calls_worker_main(void *self)
{
    ls_rpc *calls = self;
    ls_log_set_node(calls->id);
    ls_mutex_lock(&calls->mutex);
    while (!calls->closing) {
        if (calls->ready == NULL) {
            if (ls_cond_wait(&calls->work, &calls->mutex, LS_FOREVER) != LS_OK)
                break;
            continue;
        }
        calls_handle_next(calls);
        calls_settle(calls);
        ls_mutex_lock(&calls->mutex);
    }
    ls_mutex_unlock(&calls->mutex);
}

/* One that nobody has begun is freed; else its handler learns of it. */
static void turn_away(ls_rpc *calls, struct ls_request *request)
{
    struct call_message message = {.kind = CALL_REFUSED,
                                   .code = LS_CALL_SHUTTING_DOWN};
    set_text(&message, "");
    if (request->entered) {
        message.kind = CALL_FAILED;
        set_text(&message, ls_call_code_sentence(LS_CALL_SHUTTING_DOWN));
    }
    request->open = request->arriving = false;
    say(request, &message);
    if (request->entry.state != LS_CALL_CANCELLED) {
        request->entry.state = LS_CALL_CANCELLED;
        calls_on_cancelled(calls, &request->entry);
    }
    if (!request->entered)
        drop(request);
}

void calls_refuse_all(ls_rpc *calls)
{
    struct open_call *entry;
    while ((entry = calls->requests.open.oldest) != NULL) {
        open_calls_remove(&calls->requests.open, entry);
        turn_away(calls, (struct ls_request *)entry);
    }
    calls->ready = NULL;
    calls->ready_end = &calls->ready;
    calls->errands_owed = 0;
}

/* ---- what users call --------------------------------------------------- */

int ls_rpc_serve(ls_rpc *calls, const char *name, enum ls_call_who who,
                 ls_request_fn *fn, void *self)
{
    if (!wire_name_valid(name))
        return wire_name_refused(name, "a name of a call");
    if (fn == NULL)
        return ls_error(LS_EINVAL,
                        "call \"%s\": there is no function to serve it", name);
    if (who != LS_CALL_ANYONE && who != LS_CALL_MASTER_ONLY)
        return ls_error(LS_EINVAL,
                        "call \"%s\": who may call it: there is no %d", name,
                        (int)who);
    if (ls_forked_since(calls->forks))
        return ls_forked_error("this node");
    struct served *served = calloc(1, sizeof *served);
    if (served == NULL)
        return ls_error(LS_ENOMEM, "no memory to serve \"%s\"", name);
    served->who = who;
    served->fn = fn;
    served->self = self;
    memcpy(served->name, name, strlen(name) + 1);
    ls_mutex_lock(&calls->mutex);
    const bool taken =
        request_table_served(&calls->requests, name, strlen(name)) != NULL ||
        strcmp(name, CALL_CONNECT) == 0 || strcmp(name, CALL_DISCONNECT) == 0;
    if (!taken) {
        served->next = calls->requests.served;
        calls->requests.served = served;
    }
    ls_mutex_unlock(&calls->mutex);
    if (!taken)
        return LS_OK;
    free(served);
    return ls_error(LS_EEXIST, "\"%s\" is served already", name);
}

const char *ls_request_name(const ls_request *request)
{
    return request->name;
}

const void *ls_request_data(const ls_request *request, size_t *size)
{
    *size = request->size;
    return request->data;
}

const void *ls_request_body(const ls_request *request, size_t *size)
{
    *size = request->intake.body.size;
    return request->intake.body.data;
}

void ls_request_take_body(ls_request *request, struct ls_body *out)
{
    *out = call_intake_take(&request->intake);
}

uint32_t ls_request_from(const ls_request *request)
{
    return request->entry.peer;
}

int64_t ls_request_deadline(const ls_request *request)
{
    return request->entry.due.at;
}

/* The request is the user's no more. */
static int answer(ls_request **request_p, struct call_message *message)
{
    ls_request *request = *request_p;
    ls_rpc *calls = request->calls;
    *request_p = NULL;
    if (is_parents(request))
        return ls_forked_error("this request");
    ls_mutex_lock(&calls->mutex);
    silence(request);
    const bool waited_for =
        request->open && request->entry.state != LS_CALL_CANCELLED;
    if (request->entry.state == LS_CALL_STARTED &&
        message->kind == CALL_REFUSED)
        message->kind = CALL_FAILED; /* it was begun, and that was told */
    end_with(request, message);
    drop(request);
    calls_settle(calls);
    return waited_for
               ? LS_OK
               : ls_error(LS_ECANCELED, "nobody waits for the answer any more");
}

int ls_request_complete(ls_request **request, const void *data, size_t size)
{
    static const struct ls_body none = {NULL, 0, NULL, NULL};
    return ls_request_complete_with(request, data, size, &none);
}

static int check_answer(const void *data, size_t size)
{
    if (size > LS_CALL_DATA_MAX)
        return ls_error(
            LS_ELIMIT,
            "the answer has %zu bytes of data, over %d: send more as `body`",
            size, LS_CALL_DATA_MAX);
    return data != NULL || size == 0
               ? LS_OK
               : ls_error(LS_EINVAL, "the answer has %zu bytes without data",
                          size);
}

/* Whether the calls are open, and stay so until end_answer(). */
static bool begin_answer(ls_rpc *calls)
{
    ls_mutex_lock(&calls->mutex);
    const bool open = !calls->closing;
    if (open)
        calls->n_answering++;
    ls_mutex_unlock(&calls->mutex);
    return open;
}

static void end_answer(ls_rpc *calls)
{
    ls_mutex_lock(&calls->mutex);
    calls->n_answering--;
    ls_cond_broadcast(&calls->changed);
    ls_mutex_unlock(&calls->mutex);
}

int ls_request_complete_with(ls_request **request, const void *data,
                             size_t size, const struct ls_body *body)
{
    char text[LS_CALL_TEXT_MAX + 1];
    struct payload *payload = NULL;
    if (is_parents(*request)) { /* before its body takes a block */
        calls_release_given(body);
        return ls_request_fail(request, NULL);
    }
    ls_rpc *calls = (*request)->calls;
    const bool open = begin_answer(calls);
    int status =
        open ? calls_take_given(calls, &payload, (*request)->entry.peer, body)
             : calls_check_given(body);
    if (!open)
        calls_release_given(body); /* nobody gets it */
    if (status == LS_OK)
        status = check_answer(data, size);
    struct call_message message = {.kind = CALL_COMPLETED,
                                   .data = data,
                                   .size = size,
                                   .body_size = (uint32_t)body->size,
                                   .payload = payload};
    if (status == LS_OK) {
        status = answer(request, &message);
    } else {
        (void)snprintf(text, sizeof text, "%s", ls_error_text());
        message = (struct call_message){.kind = CALL_FAILED};
        set_text(&message, text);
        (void)answer(request, &message);
        (void)ls_error(status, "%s", text);
    }
    payload_drop(payload);
    if (open)
        end_answer(calls);
    return status;
}

int ls_request_fail(ls_request **request, const char *text)
{
    struct call_message message = {.kind = CALL_FAILED};
    set_text(&message, text);
    return answer(request, &message);
}

int ls_request_refuse(ls_request **request, int code, const char *text)
{
    struct call_message message = {.kind = CALL_REFUSED,
                                   .code = LS_CALL_REFUSED};
    if (code == LS_CALL_BUSY || code > 1000)
        message.code = (uint32_t)code;
    set_text(&message, text);
    return answer(request, &message);
}
