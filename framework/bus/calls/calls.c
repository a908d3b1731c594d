/* The calls of a node: opened, closed, and what comes over their channel.
 *
 * Messages are judged, and answered where no handler is needed, on the bus
 * thread. Handlers and `ended` run on the dispatch thread, whither errands go
 * in order with events. */
#include "call_parts.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_CALLS    1024
#define DEFAULT_REQUESTS 64
#define MOST             65536
#define AGAIN_NS         (10 * LS_NS_PER_MS) /* when memory was lacking */

/* ---- sending ----------------------------------------------------------- */

static int send_bytes(void *self, uint32_t to, const void *bytes, size_t size)
{
    const ls_rpc *calls = self;
    return ls_channel_send_reliable(calls->channel, to, bytes, size);
}

static int send_part(void *self, uint32_t to, struct call_body *body)
{
    const ls_rpc *calls = self;
    return channels_send_part(calls->node, CALL_CHANNEL, to, body->payload,
                              &body->at, body->id);
}

static void flush(ls_rpc *calls)
{
    if (calls->post.boxes != NULL &&
        call_post_flush(&calls->post, send_bytes, send_part, calls))
        calls->again_at = ls_now(calls->runtime) + AGAIN_NS;
}

/* gone: the member is not there, whose loss is told. */
static int send_or_post(ls_rpc *calls, uint32_t to, uint64_t life,
                        const struct call_message *message,
                        struct call_letter **owner, bool *gone)
{
    const size_t size = call_wire_encode(message, calls->bytes);
    if (!call_post_waits(&calls->post, to)) {
        const int status = send_bytes(calls, to, calls->bytes, size);
        if (status == LS_OK)
            return LS_OK;
        if (status != LS_EAGAIN && status != LS_ENOMEM) {
            calls->post.dropped++;
            *gone = true;
            return LS_OK;
        }
        if (status == LS_ENOMEM)
            calls->again_at = ls_now(calls->runtime) + AGAIN_NS;
    }
    /* Of the others there are no more than of open calls and requests. */
    const bool answer = message->kind == CALL_COMPLETED ||
                        message->kind == CALL_FAILED ||
                        message->kind == CALL_REFUSED;
    return call_post_add(&calls->post, to, life, answer, calls->bytes, size,
                         owner);
}

int calls_send(ls_rpc *calls, uint32_t to, uint64_t life,
               const struct call_message *message, struct call_letter **owner)
{
    if (to == calls->id) {
        calls_receive(calls, to, CALL_OWN_LIFE, CALL_OWN_LIFE, message);
        return LS_OK;
    }
    const bool answer = message->kind == CALL_COMPLETED;
    const uint64_t body = call_wire_body(message->number, answer);
    bool gone = false;
    int status = LS_OK;
    if (message->payload != NULL)
        status = call_post_add_body(&calls->post, to, life, body, answer,
                                    message->payload);
    if (status == LS_OK)
        status = send_or_post(calls, to, life, message, owner, &gone);
    if (message->payload == NULL)
        return status;
    if (status != LS_OK || gone)
        (void)call_post_drop_body(&calls->post, to, life, body);
    flush(calls);
    return status;
}

/* ---- settling ---------------------------------------------------------- */

/* Later times are not set: those of most calls never come. */
static void set_timer(ls_rpc *calls)
{
    int64_t at = open_calls_wake_at(&calls->table.open);
    const int64_t requests_at = open_calls_wake_at(&calls->requests.open);
    at = requests_at < at ? requests_at : at;
    at = calls->again_at < at ? calls->again_at : at;
    if (at >= calls->wake_at || calls->channel == NULL || calls->closing)
        return;
    calls->wake_at = at;
    ls_channel_wake_at(calls->channel, at);
}

/* Have ended calls told of, and handlers run. */
static void send_errands(ls_rpc *calls)
{
    int status = LS_OK;
    while (calls->errands_owed != 0 && status == LS_OK) {
        status = ls_channel_dispatch(calls->channel, CALLS_HANDLE);
        if (status == LS_OK)
            calls->errands_owed--;
    }
    if (calls->untold != NULL && !calls->tell_asked && status == LS_OK) {
        status = ls_channel_dispatch(calls->channel, CALLS_TELL);
        calls->tell_asked = status == LS_OK;
    }
    if (status == LS_ENOMEM) {
        calls->again_at = ls_now(calls->runtime) + AGAIN_NS;
        ls_cond_broadcast(&calls->changed); /* who closes tries it itself */
    }
    if (status == LS_ECLOSED) {
        calls->undispatched = true;
        calls_tell(calls);
    }
}

static void destroy(ls_rpc *calls)
{
    call_table_fini(&calls->table);
    request_table_fini(&calls->requests);
    call_post_clear(&calls->post);
    while (calls->requests.served != NULL) {
        struct served *served = calls->requests.served;
        calls->requests.served = served->next;
        free(served);
    }
    ls_cond_fini(&calls->work);
    ls_cond_fini(&calls->changed);
    ls_mutex_fini(&calls->mutex);
    free(calls);
}

static void settle(ls_rpc *calls)
{
    if (calls->channel != NULL)
        send_errands(calls);
    set_timer(calls);
    if (calls->alarms != NULL)
        calls_alarm(calls);
    calls_conclude(calls);
}

void calls_settle(ls_rpc *calls)
{
    settle(calls);
    const bool unused = calls->refs == 0;
    ls_mutex_unlock(&calls->mutex);
    if (unused)
        destroy(calls);
}

/* ---- the channel's ops ------------------------------------------------- */

static void end_one(void *self, struct open_call *entry)
{
    call_finish((struct ls_call *)entry, NULL, self);
}

void calls_receive(ls_rpc *calls, uint32_t from, uint64_t life, uint64_t own,
                   const struct call_message *message)
{
    if (message->kind == CALL_REQUEST) {
        calls_on_request(calls, from, life, own, message);
    } else if (message->kind == CALL_CANCEL) {
        struct open_call *cancelled = NULL;
        if (message->to == own &&
            call_post_drop_body(&calls->post, from, life,
                                call_wire_body(message->number, true)))
            return; /* it was answered, and that was on its way */
        if (message->to == own)
            cancelled = request_table_cancel(&calls->requests, from, life, own,
                                             message->number);
        else
            calls->requests.stale++;
        if (cancelled != NULL)
            calls_on_cancelled(calls, cancelled);
    } else {
        struct open_call *ended =
            call_table_receive(&calls->table, from, life, message);
        if (ended != NULL)
            call_heed((struct ls_call *)ended, message);
    }
}

static void on_message(void *self, uint32_t from, uint64_t incarnation,
                       const void *data, size_t size)
{
    ls_rpc *calls = self;
    struct call_message message;
    const bool right =
        from != calls->id && call_wire_decode(data, size, &message) == LS_OK;
    ls_mutex_lock(&calls->mutex);
    if (!right || message.broken) {
        calls->stats.malformed++;
        ls_log_debug("call: from node %u: %zu malformed bytes", from, size);
    }
    if (right)
        calls_receive(calls, from, incarnation,
                      ls_node_incarnation(calls->node), &message);
    calls_settle(calls);
}

static void on_part(void *self, uint32_t from, uint64_t incarnation,
                    struct ls_channel_part *part)
{
    ls_rpc *calls = self;
    ls_mutex_lock(&calls->mutex);
    calls_receive_part(calls, from, incarnation, part);
    calls_settle(calls);
}

static void on_member(void *self, const struct ls_member *member)
{
    ls_rpc *calls = self;
    if (member->state != LS_MEMBER_LEFT && member->state != LS_MEMBER_LOST)
        return;
    const char *why = member->state == LS_MEMBER_LEFT
                          ? "the node left before it answered"
                          : "the node was lost before it answered";
    ls_mutex_lock(&calls->mutex);
    call_post_lose(&calls->post, member->id, member->incarnation);
    call_table_lose(&calls->table, member->id, member->incarnation, end_one,
                    (void *)(uintptr_t)why);
    request_table_lose(&calls->requests, member->id, member->incarnation,
                       calls_on_cancelled, calls);
    calls_settle(calls);
}

static void on_renewed(void *self, uint64_t incarnation)
{
    ls_rpc *calls = self;
    static char why[] = "this node was declared lost by another";
    ls_mutex_lock(&calls->mutex);
    call_post_clear(&calls->post);
    call_table_renew(&calls->table, incarnation, end_one, why);
    request_table_lose_all(&calls->requests, false, calls_on_cancelled, calls);
    calls_settle(calls);
}

/* Others could not be heard then, and nor could they be answered. */
void calls_excuse(ls_rpc *calls)
{
    const int64_t stood = ls_node_stood_ns(calls->node);
    const int64_t late = stood - calls->stood_ns;
    calls->stood_ns = stood;
    if (late == 0)
        return;
    deadlines_delay(&calls->table.open.due, late);
    deadlines_delay(&calls->requests.open.due, late);
}

static void on_timer(void *self, int64_t now)
{
    ls_rpc *calls = self;
    struct open_call *call;
    struct open_call *request;
    ls_mutex_lock(&calls->mutex);
    calls->wake_at = LS_FOREVER;
    calls_excuse(calls);
    while ((call = call_table_expire(&calls->table, now)) != NULL)
        call_finish((struct ls_call *)call, NULL,
                    "it was not answered in time");
    while ((request = request_table_expire(&calls->requests, now)) != NULL)
        calls_on_cancelled(calls, request);
    if (calls->again_at <= now) {
        calls->again_at = LS_FOREVER;
        flush(calls);
    }
    calls_settle(calls);
}

static void on_room(void *self)
{
    ls_rpc *calls = self;
    ls_mutex_lock(&calls->mutex);
    flush(calls);
    calls_settle(calls);
}

static void on_dispatched(void *self, int errand)
{
    ls_rpc *calls = self;
    ls_mutex_lock(&calls->mutex);
    if (errand == CALLS_HANDLE)
        calls_handle_next(calls);
    else
        calls_tell(calls);
    calls_settle(calls);
}

static void on_closed(void *self)
{
    ls_rpc *calls = self;
    ls_mutex_lock(&calls->mutex);
    calls->stopped = true;
    calls->requests.closing = true;
    calls_cancel_all(calls, "the node stops");
    request_table_lose_all(&calls->requests, true, calls_on_cancelled, calls);
    call_post_clear(&calls->post);
    calls_settle(calls);
}

static const struct ls_channel_ops channel_ops = {
    .message = on_message,
    .part = on_part,
    .member = on_member,
    .renewed = on_renewed,
    .timer = on_timer,
    .room = on_room,
    .dispatched = on_dispatched,
    .closed = on_closed,
};

/* ---- life -------------------------------------------------------------- */

static int check(const struct ls_rpc_options *o)
{
    if (o->max_requests > MOST || o->max_calls > MOST)
        return ls_error(
            LS_EINVAL,
            "calls: max_requests is %zu, max_calls is %zu: at most %d",
            (size_t)o->max_requests, (size_t)o->max_calls, MOST);
    if (o->max_body_bytes > UINT32_MAX)
        return ls_error(LS_EINVAL,
                        "calls: max_body_bytes is %zu: less than 4 GiB",
                        (size_t)o->max_body_bytes);
    const size_t most = sizeof((ls_rpc *)NULL)->workers / sizeof(ls_thread *);
    if (o->n_workers > most)
        return ls_error(LS_EINVAL, "calls: n_workers is %zu: at most %zu",
                        (size_t)o->n_workers, most);
    return LS_OK;
}

static int init(ls_rpc *calls, const struct ls_rpc_options *o)
{
    const size_t most_bytes =
        o->max_body_bytes != 0 ? o->max_body_bytes : LS_CALL_BODY_BYTES;
    calls->untold_end = &calls->untold;
    calls->ready_end = &calls->ready;
    calls->wake_at = calls->again_at = LS_FOREVER;
    int status = ls_mutex_init(&calls->mutex, calls->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&calls->changed, calls->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&calls->work, calls->runtime);
    if (status == LS_OK)
        status = call_table_init(
            &calls->table, o->max_calls != 0 ? o->max_calls : DEFAULT_CALLS,
            most_bytes);
    if (status == LS_OK)
        status = request_table_init(&calls->requests, o->channel,
                                    o->max_requests != 0 ? o->max_requests
                                                         : DEFAULT_REQUESTS,
                                    most_bytes);
    return status;
}

/* Ops wait for the lock, and so see the channel. */
static int open_channel(ls_rpc *calls)
{
    ls_mutex_lock(&calls->mutex);
    const int status = ls_channel_open(&calls->channel, calls->node,
                                       CALL_CHANNEL, &channel_ops, calls);
    ls_mutex_unlock(&calls->mutex);
    if (status == LS_EEXIST)
        return ls_error(status, "node %u has its calls already", calls->id);
    return status;
}

static int start_workers(ls_rpc *calls, unsigned n)
{
    int status = LS_OK;
    ls_mutex_lock(&calls->mutex);
    for (; calls->n_workers < n && status == LS_OK; calls->n_workers++) {
        status =
            ls_thread_spawn(calls->runtime, &calls->workers[calls->n_workers],
                            "ls-call", calls_worker_main, calls);
        if (status != LS_OK)
            break;
    }
    ls_mutex_unlock(&calls->mutex);
    return status;
}

static void join_workers(ls_rpc *calls)
{
    for (unsigned i = 0; i < calls->n_workers; i++)
        if (ls_thread_join(&calls->workers[i], LS_FOREVER) != LS_OK)
            ls_log_error("call: a worker did not end");
}

/* Lock held. */
static bool is_at_work(const ls_rpc *calls)
{
    return calls->untold != NULL || calls->n_telling != 0 ||
           calls->n_running != 0 || calls->n_answering != 0 ||
           calls->n_alarming != 0;
}

static void close_calls(ls_rpc *calls)
{
    ls_mutex_lock(&calls->mutex);
    calls->closing = true;
    calls->requests.closing = true;
    calls_cancel_all(calls, "the calls of this node are closed");
    calls_refuse_all(calls);
    if (calls->channel != NULL)
        calls_drop_answers(calls);
    ls_cond_broadcast(&calls->work);
    settle(calls);
    while (is_at_work(calls))
        if (ls_cond_wait(&calls->changed, &calls->mutex, calls->again_at) !=
            LS_OK) {
            calls->again_at = LS_FOREVER;
            settle(calls);
        }
    ls_channel *channel = calls->channel;
    ls_mutex_unlock(&calls->mutex);
    join_workers(calls);
    (void)ls_node_on_interrupt(calls->node, NULL, calls);
    ls_channel_close(&channel); /* what comes meanwhile is refused */
    ls_mutex_lock(&calls->mutex);
    calls->channel = NULL;
    call_post_clear(&calls->post);
    calls->refs--;
    calls_settle(calls);
}

int ls_rpc_open(ls_rpc **out, ls_node *node,
                const struct ls_rpc_options *options)
{
    *out = NULL;
    static const struct ls_rpc_options defaults = {0};
    options = options != NULL ? options : &defaults;
    int status = check(options);
    if (status == LS_OK)
        status = node_check(node);
    if (status != LS_OK)
        return status;
    ls_rpc *calls = calloc(1, sizeof *calls);
    if (calls == NULL)
        return ls_error(LS_ENOMEM, "no memory for calls");
    calls->node = node;
    calls->forks = ls_forks_now();
    calls->runtime = ls_node_runtime(node);
    calls->id = ls_node_id(node);
    calls->refs = 1;
    status = init(calls, options);
    if (status != LS_OK) {
        destroy(calls);
        return status;
    }
    status = ls_node_on_interrupt(node, calls_on_interrupt, calls);
    if (status == LS_OK)
        status = start_workers(calls, options->n_workers);
    if (status == LS_OK)
        status = open_channel(calls);
    if (status != LS_OK)
        close_calls(calls);
    else
        *out = calls;
    return status;
}

/* Whether closing would wait for the caller itself. */
static bool is_awaited(const ls_rpc *calls)
{
    bool is_worker = false;
    for (unsigned i = 0; i < calls->n_workers && !is_worker; i++)
        is_worker = ls_thread_is_current(calls->workers[i]);
    return is_worker || calls_is_own_thread(calls);
}

int ls_rpc_close(ls_rpc **calls_p)
{
    if (calls_p == NULL || *calls_p == NULL)
        return LS_OK;
    ls_rpc *calls = *calls_p;
    if (ls_forked_since(calls->forks))
        return ls_forked_error("these calls");
    if (is_awaited(calls))
        return ls_error(LS_ESTATE,
                        "the calls of node %u cannot be closed by a handler",
                        calls->id);
    *calls_p = NULL;
    close_calls(calls);
    return LS_OK;
}

void ls_rpc_stats(ls_rpc *calls, struct ls_rpc_stats *out)
{
    memset(out, 0, sizeof *out);
    if (ls_forked_since(calls->forks))
        return;
    ls_mutex_lock(&calls->mutex);
    *out = calls->stats;
    out->started = calls->table.last_number;
    out->stale = calls->table.stale + calls->requests.stale;
    out->dropped = calls->post.dropped;
    out->open_calls = calls->table.open.n;
    out->open_requests = calls->requests.open.n;
    ls_mutex_unlock(&calls->mutex);
}

bool ls_rpc_master(ls_rpc *calls, uint32_t *id)
{
    if (ls_forked_since(calls->forks))
        return false;
    ls_mutex_lock(&calls->mutex);
    const bool has = calls->requests.has_master;
    if (has)
        *id = calls->requests.master;
    ls_mutex_unlock(&calls->mutex);
    return has;
}
