/* The state machine of barrier_epoch.c, with a lock, a channel and a waiting
 * thread.
 *
 * Messages are taken, and answered, on the bus thread. The waiting thread
 * sends its own first request, does the repeats, and is woken once: when the
 * epoch has ended. So an epoch costs it one sleep and no timer.
 *
 * Messages are sent with the lock held: they are few and small, and what they
 * borrow is the machine's. The bus calls the ops with no lock of its own. */
#include "lockstep/barrier.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barrier_discard.h"
#include "barrier_epoch.h"
#include "lockstep/channel.h"
#include "lockstep/log.h"

#define CHANNEL_PREFIX "ls.barrier."
#define DEFAULT_NAME   "step"

struct ls_barrier {
    ls_node *node;       /* borrow */
    ls_runtime *runtime; /* borrow */
    ls_channel *channel; /* own */
    ls_mutex mutex;
    ls_cond ended;
    char name[LS_EVENT_MAX + 1];
    struct ls_epoch *epoch; /* own; this and what follows under the mutex */
    bool waiting;
    bool closed; /* the node stops */
    struct ls_barrier_stats stats;
    struct ls_barrier_missing scratch[LS_BARRIER_MISSING_MAX];
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
};

/* --- what all inputs end with ------------------------------------------- */

static void send_out(ls_barrier *barrier)
{
    size_t n;
    const struct ls_epoch_out *out = ls_epoch_take(barrier->epoch, &n);
    if (barrier->channel == NULL)
        return;
    for (size_t i = 0; i < n; i++) {
        const size_t size =
            ls_barrier_wire_encode(&out[i].message, barrier->bytes);
        const int status =
            ls_channel_send(barrier->channel, out[i].to, barrier->bytes, size);
        /* One who is not there now is asked again, or lost. */
        if (status == LS_ECLOSED)
            barrier->closed = true;
        else if (status != LS_OK)
            ls_log_debug("barrier \"%s\": to node %" PRIu32 ": %s",
                         barrier->name, out[i].to, ls_error_text());
    }
}

/* The mutex is held before, and not after. */
static void settle(ls_barrier *barrier)
{
    send_out(barrier);
    const bool wake = barrier->waiting &&
                      (ls_epoch_end(barrier->epoch) != NULL || barrier->closed);
    ls_mutex_unlock(&barrier->mutex);
    if (wake)
        ls_cond_signal(&barrier->ended);
}

/* It is not known before the node is open. */
static void learn_incarnation(ls_barrier *barrier)
{
    if (barrier->epoch->incarnation == 0)
        ls_epoch_set_incarnation(barrier->epoch,
                                 ls_node_incarnation(barrier->node));
}

/* own; NULL when there are none, or no memory for them. */
static struct ls_member *copy_members(const ls_barrier *barrier, size_t *n)
{
    const size_t capacity = ls_node_members(barrier->node, NULL, 0);
    struct ls_member *members =
        capacity == 0 ? NULL : calloc(capacity, sizeof *members);
    *n = 0;
    if (members != NULL) {
        *n = ls_node_members(barrier->node, members, capacity);
        if (*n > capacity)
            *n = capacity;
    }
    return members;
}

/* Ops tell who joins, but an op may come later than ls_node_start() returns:
 * look who is there when somebody seems to be missing. Whoever is not known
 * when an epoch ends is not counted in it, and told so. */
static void look_around(ls_barrier *barrier, int64_t now)
{
    struct ls_epoch *epoch = barrier->epoch;
    if (epoch->expected == 0 || ls_epoch_n_joined(epoch) + 1 == epoch->expected)
        return;
    size_t n;
    struct ls_member *members = copy_members(barrier, &n);
    for (size_t i = 0; i < n; i++) {
        if (members[i].state == LS_MEMBER_READY &&
            ls_epoch_joined(epoch, now, members[i].id,
                            members[i].incarnation) != LS_OK)
            ls_log_error("barrier \"%s\": %s", barrier->name, ls_error_text());
    }
    free(members);
}

/* --- the channel's ops -------------------------------------------------- */

static void on_message(void *self, uint32_t from, uint64_t incarnation,
                       const void *data, size_t size)
{
    ls_barrier *barrier = self;
    struct ls_barrier_message message;
    ls_mutex_lock(&barrier->mutex);
    if (ls_barrier_wire_decode(data, size, &message, barrier->scratch) !=
        LS_OK) {
        ls_mutex_unlock(&barrier->mutex);
        ls_log_debug("barrier \"%s\": from node %" PRIu32 ": %s", barrier->name,
                     from, ls_error_text());
        return;
    }
    learn_incarnation(barrier);
    ls_epoch_receive(barrier->epoch, ls_now(barrier->runtime), from,
                     incarnation, &message);
    settle(barrier);
}

static void on_member(void *self, const struct ls_member *member)
{
    ls_barrier *barrier = self;
    const int64_t now = ls_now(barrier->runtime);
    ls_mutex_lock(&barrier->mutex);
    if (member->state == LS_MEMBER_READY) {
        if (ls_epoch_joined(barrier->epoch, now, member->id,
                            member->incarnation) != LS_OK)
            ls_log_error("barrier \"%s\": %s", barrier->name, ls_error_text());
    } else if (member->state != LS_MEMBER_SEEN) {
        ls_epoch_lost(barrier->epoch, now, member->id, member->incarnation);
    }
    /* What it has to repeat, and when, has changed. */
    const bool wake = barrier->waiting;
    settle(barrier);
    if (wake)
        ls_cond_signal(&barrier->ended);
}

static void on_closed(void *self)
{
    ls_barrier *barrier = self;
    ls_mutex_lock(&barrier->mutex);
    barrier->closed = true;
    settle(barrier);
}

static const struct ls_channel_ops channel_ops = {
    .message = on_message,
    .member = on_member,
    .closed = on_closed,
};

/* --- life --------------------------------------------------------------- */

static int open_channel(ls_barrier *barrier)
{
    char name[sizeof CHANNEL_PREFIX + LS_EVENT_MAX];
    const size_t size = strlen(barrier->name);
    memcpy(name, CHANNEL_PREFIX, sizeof CHANNEL_PREFIX - 1);
    memcpy(name + sizeof CHANNEL_PREFIX - 1, barrier->name, size + 1);
    ls_channel *channel;
    const int status =
        ls_channel_open(&channel, barrier->node, name, &channel_ops, barrier);
    if (status != LS_OK)
        return ls_error_at(status, "barrier \"%s\"", barrier->name);
    ls_mutex_lock(&barrier->mutex);
    barrier->channel = channel;
    ls_mutex_unlock(&barrier->mutex);
    return LS_OK;
}

static int init(ls_barrier *barrier, uint32_t expected)
{
    int status = ls_mutex_init(&barrier->mutex, barrier->runtime);
    if (status != LS_OK)
        return status;
    status = ls_cond_init(&barrier->ended, barrier->runtime);
    if (status == LS_OK) {
        status = ls_epoch_create(&barrier->epoch, ls_node_id(barrier->node),
                                 expected);
        if (status == LS_OK)
            status = open_channel(barrier);
        if (status == LS_OK)
            return LS_OK;
        ls_epoch_destroy(&barrier->epoch);
        ls_cond_fini(&barrier->ended);
    }
    ls_mutex_fini(&barrier->mutex);
    return status;
}

int ls_barrier_create(ls_barrier **out, ls_node *node,
                      const struct ls_barrier_options *options)
{
    const struct ls_barrier_options defaults = {0};
    if (options == NULL)
        options = &defaults;
    const char *name = options->name != NULL ? options->name : DEFAULT_NAME;
    const size_t most = LS_EVENT_MAX + 1 - sizeof CHANNEL_PREFIX;
    if (name[0] == '\0' || strlen(name) > most)
        return ls_error(LS_EINVAL,
                        "barrier \"%.32s\": its name has not 1 to %zu bytes",
                        name, most);
    ls_barrier *barrier = calloc(1, sizeof *barrier);
    if (barrier == NULL)
        return ls_error(LS_ENOMEM, "barrier \"%s\": no memory", name);
    memcpy(barrier->name, name, strlen(name) + 1);
    barrier->node = node;
    barrier->runtime = ls_node_runtime(node);
    const int status =
        init(barrier, options->expected != 0 ? options->expected
                                             : ls_node_world_size(node));
    if (status != LS_OK) {
        free(barrier);
        return status;
    }
    *out = barrier;
    return LS_OK;
}

void ls_barrier_destroy(ls_barrier **barrier)
{
    if (barrier == NULL || *barrier == NULL)
        return;
    ls_channel_close(&(*barrier)->channel);
    ls_epoch_destroy(&(*barrier)->epoch);
    ls_cond_fini(&(*barrier)->ended);
    ls_mutex_fini(&(*barrier)->mutex);
    free(*barrier);
    *barrier = NULL;
}

/* --- errors ------------------------------------------------------------- */

/* A sentence that grows, cut where it must. */
struct text {
    char bytes[LS_ERROR_TEXT_MAX];
    size_t size;
};

static void LS_PRINTF(2, 3) append(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(text->bytes + text->size,
                            sizeof text->bytes - text->size, format, arguments);
    va_end(arguments);
    text->size += n > 0 ? (size_t)n : 0;
    if (text->size >= sizeof text->bytes)
        text->size = sizeof text->bytes - 1;
}

static void append_heard(struct text *text, int64_t now, uint32_t id,
                         const struct ls_member *members, size_t n)
{
    const struct ls_member *member = NULL;
    for (size_t i = 0; i < n; i++) {
        if (members[i].id == id)
            member = &members[i];
    }
    if (member == NULL || member->heard_at == 0)
        append(text, "never heard");
    else
        append(text, "heard %.1f s ago",
               (double)(now - member->heard_at) / (double)LS_NS_PER_S);
}

/* ": node 7 (last in epoch 3, heard 0.2 s ago), …" */
static void append_missing(ls_barrier *barrier, struct text *text,
                           const struct ls_epoch_reason *reason)
{
    size_t n;
    struct ls_member *members = copy_members(barrier, &n);
    const int64_t now = ls_now(barrier->runtime);
    for (size_t i = 0; i < reason->n_missing; i++) {
        const struct ls_barrier_missing *missing = &reason->missing[i];
        append(text, "%s node %" PRIu32 " (", i == 0 ? ":" : ",", missing->id);
        if (missing->rounds == 0)
            append(text, "entered none");
        else
            append(text, "last in epoch %" PRIu64, missing->rounds - 1);
        if (missing->id != ls_node_id(barrier->node)) {
            append(text, ", ");
            append_heard(text, now, missing->id, members, n);
        }
        append(text, ")");
    }
    if (reason->n_lacking > reason->n_missing)
        append(text, ", and %zu more", reason->n_lacking - reason->n_missing);
    free(members);
}

static int explain(ls_barrier *barrier, const struct ls_epoch_end *end)
{
    const struct ls_epoch_reason *reason = &end->reason;
    struct text text = {.size = 0};
    append(&text, "barrier \"%s\", epoch %" PRIu64 ": ", barrier->name,
           end->epoch);
    if (end->status == LS_EABORTED && reason->origin != barrier->epoch->id)
        append(&text, "node %" PRIu32 " gave up with %s: ", reason->origin,
               ls_status_name(reason->status));
    append(&text, "%s", reason->text);
    if (reason->n_lacking > 0 && end->status != LS_ELOST) {
        append(&text, "; missing");
        append_missing(barrier, &text, reason);
    }
    return ls_error(end->status, "%s", text.bytes);
}

/* --- waiting ------------------------------------------------------------ */

/* No signal came in time: ask again, or give up. The end may have come at the
 * same moment. */
static void on_quiet(ls_barrier *barrier, int64_t deadline)
{
    const int64_t now = ls_now(barrier->runtime);
    if (ls_epoch_end(barrier->epoch) != NULL)
        return;
    if (now >= deadline)
        ls_epoch_abort(barrier->epoch, LS_ETIMEDOUT, false,
                       "the deadline passed");
    else
        ls_epoch_tick(barrier->epoch, now);
    send_out(barrier);
}

static const struct ls_epoch_end *wait_for_end(ls_barrier *barrier,
                                               int64_t deadline)
{
    const struct ls_epoch_end *end = ls_epoch_end(barrier->epoch);
    while (end == NULL) {
        const int64_t ask_at = ls_epoch_wake_at(barrier->epoch);
        if (barrier->closed)
            ls_epoch_abort(barrier->epoch, LS_ECLOSED, true, "the node stops");
        else if (ls_cond_wait(&barrier->ended, &barrier->mutex,
                              ask_at < deadline ? ask_at : deadline) ==
                 LS_ETIMEDOUT)
            on_quiet(barrier, deadline);
        end = ls_epoch_end(barrier->epoch);
    }
    return end;
}

static int can_wait(const ls_barrier *barrier)
{
    if (barrier->waiting)
        return ls_error(LS_ESTATE, "barrier \"%s\": somebody waits in it",
                        barrier->name);
    if (barrier->closed)
        return ls_error(LS_ECLOSED, "barrier \"%s\": the node stops",
                        barrier->name);
    if (barrier->epoch->incarnation == 0)
        return ls_error(LS_ESTATE,
                        "barrier \"%s\": start the node before waiting",
                        barrier->name);
    return LS_OK;
}

static int run_epoch(ls_barrier *barrier, uint32_t flags, int64_t deadline,
                     struct ls_barrier_epoch_info *info)
{
    const int64_t now = ls_now(barrier->runtime);
    look_around(barrier, now);
    barrier->waiting = true;
    ls_epoch_enter(barrier->epoch, now, deadline, flags);
    send_out(barrier);
    const struct ls_epoch_end *end = wait_for_end(barrier, deadline);
    barrier->waiting = false;
    const int64_t left_at = ls_now(barrier->runtime);
    barrier->stats.waited_ns += left_at - now;
    if (end->status != LS_OK) {
        barrier->stats.failed++;
        return explain(barrier, end);
    }
    barrier->stats.epochs++;
    if (info != NULL)
        *info = (struct ls_barrier_epoch_info){.epoch = end->epoch,
                                               .entered_at = now,
                                               .left_at = left_at,
                                               .last = end->last,
                                               .flags = end->flags};
    return LS_OK;
}

int ls_barrier_wait(ls_barrier *barrier, uint32_t flags, int wait_ms,
                    struct ls_barrier_epoch_info *info)
{
    const int64_t deadline = ls_deadline(barrier->runtime, wait_ms);
    ls_mutex_lock(&barrier->mutex);
    learn_incarnation(barrier);
    int status = can_wait(barrier);
    if (status == LS_OK)
        status = run_epoch(barrier, flags, deadline, info);
    ls_mutex_unlock(&barrier->mutex);
    return status;
}

void ls_barrier_abort(ls_barrier *barrier, int status)
{
    if (status >= LS_OK)
        status = LS_ECANCELED;
    ls_mutex_lock(&barrier->mutex);
    learn_incarnation(barrier);
    if (!barrier->waiting)
        look_around(barrier, ls_now(barrier->runtime));
    ls_epoch_abort(barrier->epoch, status, true, ls_status_sentence(status));
    settle(barrier);
}

void ls_barrier_discard(ls_barrier *barrier)
{
    ls_mutex_lock(&barrier->mutex);
    barrier->epoch->given_up = false;
    ls_mutex_unlock(&barrier->mutex);
}

void ls_barrier_stats(ls_barrier *barrier, struct ls_barrier_stats *out)
{
    ls_mutex_lock(&barrier->mutex);
    *out = barrier->stats;
    out->sent = barrier->epoch->n_sent;
    out->repeated = barrier->epoch->n_repeated;
    ls_mutex_unlock(&barrier->mutex);
}
