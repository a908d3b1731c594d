/* Asking: a call from its start to its end, as its user sees it. */
#include "lockstep/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call_parts.h"

#define DEFAULT_TIMEOUT_MS 10000

/* ---- ends -------------------------------------------------------------- */

/* The user's, and the one until it has been told, in any order. */
static void drop(struct ls_call *call)
{
    if (--call->refs != 0)
        return;
    ls_cond_fini(&call->changed);
    free(call->answer);
    call_intake_drop(&call->intake);
    call->calls->refs--;
    free(call);
}

/* A peer's text, which may be any bytes. */
static void copy_text(char *out, size_t size, const char *text, size_t length)
{
    const size_t n = length < size - 1 ? length : size - 1;
    for (size_t i = 0; i < n; i++)
        out[i] =
            (unsigned char)text[i] < ' ' || text[i] == '\x7f' ? '?' : text[i];
    out[n] = '\0';
}

/* Put a text behind what is there, as far as there is room. */
static void append(struct ls_call *call, const char *text)
{
    const size_t used = strlen(call->result.text);
    copy_text(call->result.text + used, sizeof call->result.text - used, text,
              strlen(text));
}

static void explain(struct ls_call *call, const char *why)
{
    (void)snprintf(call->result.text, sizeof call->result.text,
                   "call %llu \"%s\" to node %u, %d ms: ",
                   (unsigned long long)call->entry.number, call->name,
                   (unsigned)call->entry.peer, call->timeout_ms);
    append(call, why);
}

static void explain_refusal(struct ls_call *call,
                            const struct call_message *message)
{
    char text[LS_CALL_TEXT_MAX + 1] = "", code[32];
    copy_text(text, sizeof text, message->text, message->text_size);
    call->result.code = (int)message->code;
    (void)snprintf(code, sizeof code, "refused with %d", call->result.code);
    explain(call, code);
    if (call->result.code <= 1000) {
        append(call, ", ");
        append(call, ls_call_code_sentence(call->result.code));
    }
    if (text[0] == '\0')
        return;
    append(call, ": ");
    append(call, text);
}

/* Keep the answer; false: no memory. */
static bool keep_answer(struct ls_call *call,
                        const struct call_message *message)
{
    call->answer = malloc(message->size != 0 ? message->size : 1);
    if (call->answer == NULL)
        return false;
    if (message->size != 0)
        memcpy(call->answer, message->data, message->size);
    call->result.data = call->answer;
    call->result.size = message->size;
    return true;
}

/* Nothing is left of an answer of which not all has come. */
static void forget_answer(struct ls_call *call)
{
    free(call->answer);
    call->answer = NULL;
    call->result.data = NULL;
    call->result.size = 0;
    call_intake_drop(&call->intake);
}

static void count_end(ls_rpc *calls, enum ls_call_state state)
{
    static const enum ls_call_state order[] = {
        LS_CALL_COMPLETED, LS_CALL_FAILED,  LS_CALL_START_FAILED,
        LS_CALL_LOST,      LS_CALL_TIMEOUT, LS_CALL_CANCELLED};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (order[i] == state)
            calls->stats.ended[i]++;
}

/* Nobody waits for the answer any more: the one that is asked should know. */
static void tell_cancelled(struct ls_call *call)
{
    ls_rpc *calls = call->calls;
    const struct call_message message = {.kind = CALL_CANCEL,
                                         .to = call->entry.life,
                                         .number = call->entry.number};
    if (calls_send(calls, call->entry.peer, call->entry.life, &message, NULL) !=
        LS_OK)
        ls_log_debug("call: %s", ls_error_text());
}

/* What its result says. */
static void fill_result(struct ls_call *call,
                        const struct call_message *message, const char *why)
{
    if (call->entry.state != LS_CALL_COMPLETED)
        forget_answer(call);
    else if (message != NULL && !keep_answer(call, message)) {
        call->entry.state = LS_CALL_FAILED;
        (void)snprintf(call->result.text, sizeof call->result.text,
                       "no memory for an answer of %zu bytes", message->size);
    }
    call->result.body = call->intake.body.data;
    call->result.body_size = call->intake.body.size;
    call->result.state = call->entry.state;
    if (why != NULL)
        explain(call, why);
    else if (message != NULL && message->kind == CALL_FAILED)
        copy_text(call->result.text, sizeof call->result.text, message->text,
                  message->text_size);
    else if (message != NULL && message->kind == CALL_REFUSED)
        explain_refusal(call, message);
}

void call_finish(struct ls_call *call, const struct call_message *message,
                 const char *why)
{
    ls_rpc *calls = call->calls;
    fill_result(call, message, why);
    count_end(calls, call->entry.state);
    (void)call_post_drop_body(&calls->post, call->entry.peer, call->entry.life,
                              call_wire_body(call->entry.number, false));
    /* What was not sent is not sent any more, whoever has answered it. */
    if (call->letter != NULL)
        call_post_withdraw(&calls->post, call->letter);
    else if (call->entry.state == LS_CALL_TIMEOUT ||
             call->entry.state == LS_CALL_CANCELLED ||
             (call->entry.state == LS_CALL_FAILED && why != NULL))
        tell_cancelled(call);
    if (call->ended != NULL) {
        *calls->untold_end = call;
        calls->untold_end = &call->next_untold;
    } else {
        call->next_untold = calls->silent;
        calls->silent = call;
    }
}

/* Its answer has come, but for the body. */
static void begin_body(struct ls_call *call, const struct call_message *message)
{
    ls_rpc *calls = call->calls;
    const bool kept = keep_answer(call, message);
    if (kept && message->payload == NULL)
        return;
    if (kept)
        calls_keep_own(&call->intake, message->payload);
    call_table_end(&calls->table, &call->entry,
                   kept ? LS_CALL_COMPLETED : LS_CALL_FAILED);
    call_finish(call, NULL, kept ? NULL : "there is no memory for its answer");
}

void call_heed(struct ls_call *call, const struct call_message *message)
{
    char why[96];
    const bool ended = ls_call_state_is_end(call->entry.state);
    if (!ended) {
        begin_body(call, message);
    } else if (message->body_size != 0) {
        (void)snprintf(why, sizeof why,
                       "the %u bytes of its answer's body are over "
                       "max_body_bytes",
                       (unsigned)message->body_size);
        call_finish(call, NULL, why);
    } else {
        call_finish(call, message, NULL);
    }
}

/* Who waits for it is woken. */
static void conclude(struct ls_call *call)
{
    call->told = true;
    ls_cond_broadcast(&call->changed);
    turns_ring(call->calls->node);
    drop(call);
}

/* Most have one that waits, and would meet the lock if it were held: so they
 * are kept until all of them have been woken. */
void calls_conclude(ls_rpc *calls)
{
    struct ls_call *first = calls->silent, *call;
    calls->silent = NULL;
    for (call = first; call != NULL; call = call->next_untold)
        call->told = true;
    if (first == NULL)
        return;
    ls_mutex_unlock(&calls->mutex);
    for (call = first; call != NULL; call = call->next_untold)
        ls_cond_broadcast(&call->changed);
    turns_ring(calls->node);
    ls_mutex_lock(&calls->mutex);
    while ((call = first) != NULL) {
        first = call->next_untold;
        drop(call);
    }
}

void calls_cancel_all(ls_rpc *calls, const char *why)
{
    while (calls->table.open.oldest != NULL) {
        struct ls_call *call = (struct ls_call *)calls->table.open.oldest;
        call_table_end(&calls->table, &call->entry, LS_CALL_CANCELLED);
        call_finish(call, NULL, why);
    }
}

static struct ls_call *take_untold(ls_rpc *calls)
{
    struct ls_call *call = calls->untold;
    if (call == NULL)
        return NULL;
    calls->untold = call->next_untold;
    if (calls->untold == NULL)
        calls->untold_end = &calls->untold;
    return call;
}

/* Those that end meanwhile have their turn in another errand. */
void calls_tell(ls_rpc *calls)
{
    struct ls_call *call;
    calls->tell_asked = false;
    calls->n_telling++;
    while ((call = take_untold(calls)) != NULL) {
        call->telling = true;
        ls_mutex_unlock(&calls->mutex);
        call->ended(call->self, call);
        ls_mutex_lock(&calls->mutex);
        call->telling = false;
        conclude(call);
    }
    calls->n_telling--;
    ls_cond_broadcast(&calls->changed);
}

/* ---- starting ---------------------------------------------------------- */

static int check(const struct ls_call_options *o)
{
    if (!wire_name_valid(o->name))
        return wire_name_refused(o->name, "a name of a call");
    if (o->timeout_ms < 0)
        return ls_error(LS_EINVAL, "call \"%s\": timeout_ms is %d, under 0",
                        o->name, o->timeout_ms);
    if (o->data == NULL && o->size != 0)
        return ls_error(LS_EINVAL, "call \"%s\": %zu bytes, and data is NULL",
                        o->name, o->size);
    if (o->size > LS_CALL_DATA_MAX)
        return ls_error(
            LS_ELIMIT,
            "call \"%s\": %zu bytes of data, over %d: send more as `body`",
            o->name, o->size, LS_CALL_DATA_MAX);
    return LS_OK;
}

/* Whom it is for, in which life. What happens to that member from here on is
 * told to the table, which has the call by then: the lock is held. */
static int find_member(struct ls_call *call, uint32_t to)
{
    ls_node *node = call->calls->node;
    call->entry.peer = to;
    call->entry.life = call->entry.own = CALL_OWN_LIFE;
    if (node->phase != NODE_OPEN && node->phase != NODE_JOINED)
        return ls_error(LS_ECLOSED, "node %u is not on the network",
                        node->options.id);
    if (to == call->calls->id)
        return LS_OK;
    transport_lock(node->transport);
    const struct peer *peer = world_find(node, to);
    const bool ready = peer != NULL && peer->member.state == LS_MEMBER_READY;
    if (ready) {
        call->entry.life = peer->member.incarnation;
        call->entry.own = node->me.incarnation;
    }
    transport_unlock(node->transport);
    return ready ? LS_OK
                 : ls_error(LS_ENOENT,
                            "call \"%s\": node %u is not a ready member",
                            call->name, (unsigned)to);
}

static struct ls_call *create(ls_rpc *calls, const struct ls_call_options *o)
{
    struct ls_call *call = calloc(1, sizeof *call);
    if (call == NULL || ls_cond_init(&call->changed, calls->runtime) != LS_OK) {
        free(call);
        (void)ls_error(LS_ENOMEM, "no memory for call \"%s\"", o->name);
        return NULL;
    }
    call->calls = calls;
    call->refs = 1;
    call->timeout_ms = o->timeout_ms != 0 ? o->timeout_ms : DEFAULT_TIMEOUT_MS;
    call->ended = o->ended;
    call->self = o->self;
    call->result.state = LS_CALL_STARTING;
    memcpy(call->name, o->name, strlen(o->name) + 1);
    return call;
}

/* It may have ended when this returns. */
static int send_request(struct ls_call *call, const struct ls_call_options *o,
                        struct payload *body)
{
    ls_rpc *calls = call->calls;
    const struct call_message message = {.kind = CALL_REQUEST,
                                         .to = call->entry.life,
                                         .number = call->entry.number,
                                         .left_ms = (uint32_t)call->timeout_ms,
                                         .channel = o->channel,
                                         .name = o->name,
                                         .name_size = strlen(o->name),
                                         .data = o->data,
                                         .size = o->size,
                                         .body_size = (uint32_t)o->body.size,
                                         .payload = body};
    const int status =
        calls_send(calls, o->to, call->entry.life, &message, &call->letter);
    if (status == LS_OK)
        return LS_OK;
    call_table_end(&calls->table, &call->entry, LS_CALL_IDLE);
    call->refs--;
    return status;
}

static int start(struct ls_call **out, struct ls_call *call,
                 const struct ls_call_options *o, struct payload *body)
{
    ls_rpc *calls = call->calls;
    if (calls->closing || calls->stopped)
        return ls_error(LS_ECLOSED, "call \"%s\": no calls are made any more",
                        o->name);
    int status = find_member(call, o->to);
    calls_excuse(calls);
    call->entry.due.at = ls_deadline(calls->runtime, call->timeout_ms);
    if (status == LS_OK)
        status = call_table_add(&calls->table, &call->entry);
    if (status != LS_OK)
        return status;
    call->refs++; /* until it has been told */
    status = send_request(call, o, body);
    if (status == LS_OK)
        *out = call; /* before the lock is let go, and so before `ended` */
    return status;
}

int ls_call_start(ls_call **out, ls_rpc *calls,
                  const struct ls_call_options *options)
{
    *out = NULL;
    struct payload *body;
    int status = calls_check_given(&options->body);
    if (status == LS_OK)
        status = check(options);
    if (status == LS_OK && ls_forked_since(calls->forks))
        status = ls_forked_error("this node");
    if (status != LS_OK) {
        calls_release_given(&options->body);
        return status;
    }
    status = calls_take_given(calls, &body, options->to, &options->body);
    if (status != LS_OK)
        return status;
    struct ls_call *call = create(calls, options);
    if (call == NULL) {
        payload_drop(body);
        return LS_ENOMEM;
    }
    ls_mutex_lock(&calls->mutex);
    calls->refs++;
    status = start(out, call, options, body);
    if (status != LS_OK)
        drop(call);
    calls_settle(calls);
    payload_drop(body);
    return status;
}

/* ---- looking and waiting ----------------------------------------------- */

enum ls_call_state ls_call_state(ls_call *call)
{
    if (ls_forked_since(call->calls->forks))
        return LS_CALL_LOST;
    ls_mutex_lock(&call->calls->mutex);
    const enum ls_call_state state = call->entry.state;
    ls_mutex_unlock(&call->calls->mutex);
    return state;
}

uint64_t ls_call_id(const ls_call *call)
{
    return call->entry.number;
}

bool calls_is_own_thread(const ls_rpc *calls)
{
    return dispatch_is_current(calls->node) || bus_is_current(calls->node);
}

void calls_on_interrupt(void *self)
{
    ls_rpc *calls = self;
    ls_mutex_lock(&calls->mutex);
    for (struct call_wait *wait = calls->waits; wait != NULL; wait = wait->next)
        ls_cond_broadcast(wait->changed);
    turns_ring(calls->node);
    ls_mutex_unlock(&calls->mutex);
}

static bool is_over(void *self)
{
    const struct ls_call *call = self;
    return call->told || ls_node_interrupted(call->calls->node) != LS_OK;
}

/* The lock is held. */
static int wait_for_end(ls_call *call, int64_t deadline)
{
    ls_rpc *calls = call->calls;
    struct ls_due due = ls_due_at(calls->node, deadline);
    struct call_wait wait = {calls->waits, &call->changed}, **at;
    int status = LS_OK;
    calls->waits = &wait;
    while (!call->told && status == LS_OK) {
        status = ls_node_interrupted(calls->node);
        if (status == LS_OK &&
            turns_wait(calls->node, &call->changed, &calls->mutex, is_over,
                       call, due.at) != LS_OK &&
            !call->told && ls_due_has_passed(calls->node, &due))
            status = ls_error(LS_ETIMEDOUT,
                              "call \"%s\" to node %u is still running",
                              call->name, (unsigned)call->entry.peer);
    }
    for (at = &calls->waits; *at != &wait; at = &(*at)->next)
        ;
    *at = wait.next;
    return status;
}

static int wait_until(ls_call *call, int64_t deadline)
{
    ls_rpc *calls = call->calls;
    int status = LS_OK;
    if (ls_forked_since(calls->forks))
        return ls_forked_error("this call");
    ls_mutex_lock(&calls->mutex);
    if (!call->told && calls_is_own_thread(calls))
        status = ls_error(LS_ESTATE,
                          "call \"%s\": the thread that would end this wait "
                          "cannot wait itself",
                          call->name);
    if (status == LS_OK && !call->told) /* else its node may be gone */
        status = wait_for_end(call, deadline);
    ls_mutex_unlock(&calls->mutex);
    return status;
}

int ls_call_wait(ls_call *call, int wait_ms)
{
    return ls_call_wait_all(&call, 1, wait_ms);
}

int ls_call_wait_all(ls_call *const *calls, size_t n, int wait_ms)
{
    int64_t deadline = LS_FOREVER; /* each has a deadline of its own */
    int status = LS_OK;
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        if (calls[i] == NULL)
            continue;
        if (wait_ms >= 0 && deadline == LS_FOREVER)
            deadline = ls_deadline(calls[i]->calls->runtime, wait_ms);
        status = wait_until(calls[i], deadline);
    }
    return status;
}

/* The lock is held. */
static void cancel(ls_call *call)
{
    if (ls_call_state_is_end(call->entry.state))
        return;
    call_table_end(&call->calls->table, &call->entry, LS_CALL_CANCELLED);
    call_finish(call, NULL, "it was cancelled");
}

void ls_call_cancel(ls_call *call)
{
    ls_rpc *calls = call->calls;
    if (ls_forked_since(calls->forks))
        return;
    ls_mutex_lock(&calls->mutex);
    cancel(call);
    calls_settle(calls);
}

const struct ls_call_result *ls_call_result(const ls_call *call)
{
    return &call->result;
}

void ls_call_take_body(ls_call *call, struct ls_body *out)
{
    *out = call_intake_take(&call->intake);
    call->result.body = NULL;
    call->result.body_size = 0;
}

/* It is not to be told of any more; wait, if that is just done. */
static void silence(ls_call *call)
{
    ls_rpc *calls = call->calls;
    struct ls_call **at = &calls->untold;
    while (*at != NULL && *at != call)
        at = &(*at)->next_untold;
    if (*at == call) {
        *at = call->next_untold;
        if (calls->untold_end == &call->next_untold)
            calls->untold_end = at;
        call->told = true;
        ls_cond_broadcast(&call->changed);
        call->refs--; /* the user's is still there */
        return;
    }
    int status = LS_OK;
    while (call->telling && !calls->undispatched &&
           !calls_is_own_thread(calls) && status == LS_OK)
        status = ls_cond_wait(&call->changed, &calls->mutex, LS_FOREVER);
}

void ls_call_destroy(ls_call **call_p)
{
    if (call_p == NULL || *call_p == NULL ||
        ls_forked_since((*call_p)->calls->forks))
        return;
    ls_call *call = *call_p;
    ls_rpc *calls = call->calls;
    *call_p = NULL;
    ls_mutex_lock(&calls->mutex);
    cancel(call);
    silence(call);
    drop(call);
    calls_settle(calls);
}

/* ---- asking in one go ---------------------------------------------------- */

static int status_of(const struct ls_call_result *result)
{
    switch (result->state) {
    case LS_CALL_COMPLETED:
        return LS_OK;
    case LS_CALL_FAILED:
        return LS_EHANDLER;
    case LS_CALL_START_FAILED:
        return result->code == LS_CALL_TOO_LONG ? LS_ELIMIT : LS_EABORTED;
    case LS_CALL_LOST:
        return LS_ELOST;
    case LS_CALL_TIMEOUT:
        return LS_ETIMEDOUT;
    default:
        return LS_ECANCELED;
    }
}

static int take_result(ls_call *call, void **answer, size_t *size)
{
    const int status = status_of(&call->result);
    if (status != LS_OK)
        return ls_error(status, "%s", call->result.text);
    if (answer == NULL)
        return LS_OK;
    *answer = call->answer;
    *size = call->result.size;
    call->answer = NULL;
    return LS_OK;
}

/* *call: NULL: it was not started. While a body is copied nobody reads. */
static int start_and_wait(ls_call **call, ls_rpc *calls,
                          const struct ls_call_options *options)
{
    const bool reads = options->body.size == 0 && turns_borrow(calls->node);
    int status = ls_call_start(call, calls, options);
    if (status == LS_OK) {
        ls_mutex_lock(&calls->mutex);
        status = wait_for_end(*call, LS_FOREVER);
        ls_mutex_unlock(&calls->mutex);
    }
    if (reads)
        turns_give_back(calls->node);
    return status;
}

int ls_call_ask(ls_rpc *calls, const struct ls_call_options *options,
                void **answer, size_t *size)
{
    return ls_call_ask_body(calls, options, answer, size, NULL);
}

int ls_call_ask_body(ls_rpc *calls, const struct ls_call_options *options,
                     void **answer, size_t *size, struct ls_body *body)
{
    ls_call *call;
    if (calls_is_own_thread(calls)) {
        struct ls_body given = options->body;
        ls_body_release(&given);
        return ls_error(LS_ESTATE, "do not wait for a call on the bus or "
                                   "dispatch thread");
    }
    int status = start_and_wait(&call, calls, options);
    if (call == NULL)
        return status;
    if (status == LS_OK)
        status = take_result(call, answer, size);
    if (status == LS_OK && body != NULL)
        ls_call_take_body(call, body);
    ls_call_destroy(&call);
    return status;
}

int ls_rpc_connect(ls_rpc *calls, uint32_t to, uint32_t channel, int wait_ms)
{
    return ls_call_ask(
        calls,
        &(struct ls_call_options){.to = to,
                                  .channel = channel,
                                  .name = CALL_CONNECT,
                                  .timeout_ms = wait_ms > 0 ? wait_ms : 0},
        NULL, NULL);
}

int ls_rpc_disconnect(ls_rpc *calls, uint32_t to, int wait_ms)
{
    return ls_call_ask(
        calls,
        &(struct ls_call_options){.to = to,
                                  .name = CALL_DISCONNECT,
                                  .timeout_ms = wait_ms > 0 ? wait_ms : 0},
        NULL, NULL);
}
