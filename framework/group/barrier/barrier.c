/* The state machine of barrier_epoch.c, with a lock, a channel and a waiting
 * thread.
 *
 * Messages are taken, and answered, on the bus thread. The waiting thread
 * sends its own first request, does the repeats, and is woken once: when the
 * epoch has ended. So an epoch costs it one sleep and no timer. Among members
 * of one host those that wait take messages themselves, out of shared memory:
 * the same ones, of the same machine, sooner.
 *
 * Messages are sent with the lock held: they are few and small, and what they
 * borrow is the machine's. The bus calls the ops with no lock of its own. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/barrier.h"
#include "lockstep/channel.h"
#include "lockstep/event.h"
#include "lockstep/log.h"

#include "barrier_epoch.h"
#include "barrier_filter.h"
#include "barrier_lives.h"
#include "fnv.h"
#include "forked.h"
#include "text_pieces.h"
#include "word_list.h"

#define CHANNEL "ls.barrier."

/* Where a member is that has no barrier of this name: for error texts. */
#define ELSEWHERE_MAX 8

struct elsewhere {
    uint32_t id;
    char text[64]; /* "waits in barrier \"x\"", cut; "": no more */
};

struct ls_barrier {
    ls_node *node;       /* borrow */
    ls_runtime *runtime; /* borrow */
    ls_channel *channel; /* own */
    ls_mutex mutex;
    ls_cond ended;
    atomic_bool woken; /* the waiter is to look */
    char name[LS_EVENT_MAX + 1];
    char group[sizeof((struct ls_member *)0)->labels]; /* "": everyone */
    uint32_t *ids;                                     /* own; NULL: any */
    size_t n_ids;
    void (*left)(void *self, const struct ls_barrier_epoch_info *info);
    void *self;
    uint32_t most;          /* members that there may be; 0: any number */
    unsigned forks;         /* ls_forks_now(), when it was made */
    struct ls_epoch *epoch; /* own; this and what follows under the mutex */
    ls_trace_mark *mark;    /* own; NULL: nothing is recorded */
    uint16_t trace_name;
    bool withdrawn; /* taken down: it said so, and says no more */
    bool waiting;
    bool borrows;         /* the waiter has the turn of the bus thread */
    bool repeated;        /* what is answered now had been asked before */
    int64_t sleeps_until; /* while waiting */
    int64_t stood_ns;     /* of ls_node_stood_ns(): excused so far */
    bool closed;          /* the node stops */
    const struct ls_barrier_filter
        *filter;  /* NULL: messages pass as they are */
    int filtered; /* for the filter */
    struct elsewhere elsewhere[ELSEWHERE_MAX];
    size_t n_elsewhere; /* told in all; the last ones are kept */
    struct ls_barrier_stats stats;
    struct ls_barrier_missing scratch[LS_BARRIER_MISSING_MAX];
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
};

/* --- what options mean to the state machine ----------------------------- */

static bool has_id(const uint32_t *ids, size_t n, uint32_t id)
{
    size_t i = 0;
    while (i < n && ids[i] != id)
        i++;
    return i < n;
}

/* Where the first one is that was there before; n: none is. */
static size_t find_again(const uint32_t *ids, size_t n)
{
    size_t at = 0;
    while (at < n && !has_id(ids, at, ids[at]))
        at++;
    return at;
}

/* Whether a member of the world is in the barrier's group. */
static bool has_member(const ls_barrier *barrier,
                       const struct ls_member *member)
{
    if (barrier->ids != NULL)
        return has_id(barrier->ids, barrier->n_ids, member->id);
    return barrier->group[0] == '\0' ||
           word_lists_have(member->role, member->labels, barrier->group);
}

/* Numbers as bytes in one order, so that machines agree. */
static uint32_t hash_number(uint32_t hash, uint32_t number)
{
    const unsigned char bytes[4] = {
        (unsigned char)(number >> 24), (unsigned char)(number >> 16),
        (unsigned char)(number >> 8), (unsigned char)number};
    return fnv_add(hash, bytes, sizeof bytes);
}

static struct ls_epoch_rules rules_of(const ls_node *node,
                                      const struct ls_barrier_options *options)
{
    const bool go_on = options->on_loss == LS_ON_LOSS_GO_ON;
    const bool any = options->expected == LS_BARRIER_ANY;
    const uint32_t expected = any ? 0 : options->expected;
    const uint32_t size = ls_node_world_size(node);
    const uint32_t max = ls_node_world_max(node);
    struct ls_epoch_rules rules = {
        .least = expected,
        .most = go_on ? 0 : expected,
        .room = max > size ? max : 0,
        .fanout = options->fanout,
        .go_on = go_on,
        .grace_ns = options->grace_ms * LS_NS_PER_MS,
    };
    if (expected == 0 && !any && options->ids != NULL) {
        rules.least = go_on ? 1 : (uint32_t)options->n_ids;
        rules.most = (uint32_t)options->n_ids;
    } else if (expected == 0 && !any && options->group == NULL) {
        rules.least = go_on ? 1 : size;
        rules.most = max > size ? max : size;
    }
    const char *group = options->group == NULL ? "" : options->group;
    uint32_t hash = fnv_add(FNV_BEGIN, group, strlen(group));
    hash = hash_number(hash, options->expected);
    hash = hash_number(hash, options->fanout);
    hash = hash_number(hash, go_on ? 1 : 0);
    for (size_t i = 0; options->ids != NULL && i < options->n_ids; i++)
        hash = hash_number(hash, options->ids[i]);
    rules.hash = hash;
    return rules;
}

/* Errors: LS_EINVAL. */
static int check_ids(const ls_node *node, const char *name,
                     const struct ls_barrier_options *options)
{
    if (options->ids == NULL)
        return LS_OK;
    if (options->group != NULL ||
        !has_id(options->ids, options->n_ids, ls_node_id(node)))
        return ls_error(LS_EINVAL,
                        "barrier \"%s\": node %" PRIu32 " is not among its "
                        "ids, or it has a group as well",
                        name, ls_node_id(node));
    const size_t again = find_again(options->ids, options->n_ids);
    if (again < options->n_ids)
        return ls_error(LS_EINVAL,
                        "barrier \"%s\": node %" PRIu32
                        " is twice among its ids",
                        name, options->ids[again]);
    return LS_OK;
}

/* Errors: LS_EINVAL. */
static int check_options(const ls_node *node, const char *name,
                         const struct ls_barrier_options *options)
{
    const size_t most = LS_EVENT_MAX + 1 - sizeof CHANNEL;
    if (name[0] == '\0' || strlen(name) > most)
        return ls_error(LS_EINVAL,
                        "barrier \"%.32s\": its name has not 1 to %zu bytes",
                        name, most);
    if (options->timeout_ms < 0)
        return ls_error(LS_EINVAL, "barrier \"%s\": timeout_ms is %d", name,
                        options->timeout_ms);
    if (options->grace_ms < 0)
        return ls_error(LS_EINVAL, "barrier \"%s\": grace_ms is %d", name,
                        options->grace_ms);
    if (options->group != NULL && !ls_node_is_in(node, options->group))
        return ls_error(LS_EINVAL,
                        "barrier \"%s\": node %" PRIu32
                        " is not in its group \"%.32s\": its role is \"%s\", "
                        "its labels are \"%s\"",
                        name, ls_node_id(node), options->group,
                        ls_node_role(node), ls_node_labels(node));
    return check_ids(node, name, options);
}

/* --- what errors say ---------------------------------------------------- */

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

static void append_heard(struct line *line, int64_t now, uint32_t id,
                         const struct ls_member *members, size_t n)
{
    const struct ls_member *member = NULL;
    for (size_t i = 0; i < n; i++) {
        if (members[i].id == id)
            member = &members[i];
    }
    if (member == NULL || member->heard_at == 0)
        line_add(line, "never heard");
    else
        line_add(line, "heard %.1f s ago",
                 (double)(now - member->heard_at) / (double)LS_NS_PER_S);
}

static void append_elsewhere(const ls_barrier *barrier, struct line *line,
                             uint32_t id)
{
    for (size_t i = 0; i < ELSEWHERE_MAX; i++) {
        const struct elsewhere *one = &barrier->elsewhere[i];
        if (one->id == id && one->text[0] != '\0')
            line_add(line, ", has no barrier of this name, %s", one->text);
    }
}

/* In which barrier this node is; returns the size of the text. */
static size_t say_where(const ls_barrier *barrier,
                        char text[static LS_BARRIER_REASON_MAX])
{
    /* Names may be longer than there is room for. */
    const int n =
        snprintf(text, LS_BARRIER_REASON_MAX, "%s barrier \"%.40s\"",
                 barrier->waiting ? "waits in" : "has", barrier->name);
    return n < 0 ? 0 : (size_t)n;
}

/* The place of what is known of a member; NULL: nothing is. */
static struct elsewhere *find_elsewhere(ls_barrier *barrier, uint32_t id)
{
    for (size_t i = 0; i < ELSEWHERE_MAX; i++) {
        struct elsewhere *one = &barrier->elsewhere[i];
        if (one->id == id && one->text[0] != '\0')
            return one;
    }
    return NULL;
}

/* Keep what UNKNOWN says of its sender, until anything else comes from it. */
static void note_elsewhere(ls_barrier *barrier, uint32_t from,
                           const struct ls_barrier_message *message)
{
    struct elsewhere *one = find_elsewhere(barrier, from);
    if (message->kind != LS_BARRIER_UNKNOWN) {
        if (one != NULL)
            one->text[0] = '\0';
        return;
    }
    /* Each of its barriers answers; the one it waits in says most. */
    if (one != NULL && message->reason[0] != 'w')
        return;
    if (one == NULL)
        one = &barrier->elsewhere[barrier->n_elsewhere++ % ELSEWHERE_MAX];
    one->id = from;
    snprintf(one->text, sizeof one->text, "%.*s", (int)message->reason_size,
             message->reason);
}

/* ": node 7 (last in epoch 3, heard 0.2 s ago), …" */
static void append_missing(ls_barrier *barrier, struct line *line,
                           const struct ls_epoch_reason *reason)
{
    size_t n;
    struct ls_member *members = copy_members(barrier, &n);
    const int64_t now = ls_now(barrier->runtime);
    for (size_t i = 0; i < reason->n_missing; i++) {
        const struct ls_barrier_missing *missing = &reason->missing[i];
        line_add(line, "%s node %" PRIu32 " (", i == 0 ? ":" : ",",
                 missing->id);
        if (missing->rounds == 0)
            line_add(line, "entered none");
        else
            line_add(line, "last in epoch %" PRIu64, missing->rounds - 1);
        if (missing->id != ls_node_id(barrier->node)) {
            line_add(line, ", ");
            append_heard(line, now, missing->id, members, n);
            append_elsewhere(barrier, line, missing->id);
        }
        line_add(line, ")");
    }
    if (reason->n_lacking > reason->n_missing)
        line_add(line, ", and %zu more", reason->n_lacking - reason->n_missing);
    free(members);
}

/* Set the error text for an epoch that failed; returns its status. */
static int explain(ls_barrier *barrier, const struct ls_epoch_end *end)
{
    const struct ls_epoch_reason *reason = &end->reason;
    struct line line = {.size = 0};
    line_add(&line, "barrier \"%s\", epoch %" PRIu64 ": ", barrier->name,
             end->epoch);
    if ((end->status == LS_EABORTED || reason->final) &&
        reason->origin != barrier->epoch->id)
        line_add(&line, "node %" PRIu32 " gave up with %s: ", reason->origin,
                 ls_status_name(reason->status));
    line_add(&line, "%s", reason->text);
    if (reason->n_lacking > 0 && end->status != LS_ELOST) {
        line_add(&line, "; missing");
        append_missing(barrier, &line, reason);
    }
    (void)ls_error(end->status, "%s", line.text);
    if (reason->status != end->status)
        ls_error_set_cause(reason->status);
    return end->status;
}

#define DEFAULT_NAME "step"

/* --- what all inputs end with ------------------------------------------- */

/* What is asked for the first time is for members that wait, or will; a repeat
 * finds those that do not, and its answer goes the same way. */
static int send_one(ls_barrier *barrier, const struct ls_epoch_out *out)
{
    const size_t size = ls_barrier_wire_encode(&out->message, barrier->bytes);
    return out->message.again || barrier->repeated ||
                   out->message.kind == LS_BARRIER_GONE
               ? ls_channel_send(barrier->channel, out->to, barrier->bytes,
                                 size)
               : ls_channel_send_near(barrier->channel, out->to, barrier->bytes,
                                      size);
}

static void send_out(ls_barrier *barrier)
{
    size_t n;
    const struct ls_epoch_out *out = ls_epoch_take(barrier->epoch, &n);
    const bool can = barrier->channel != NULL && !barrier->withdrawn;
    for (size_t i = 0; i < n && can; i++) {
        if (barrier->filter != NULL &&
            barrier->filter->swallows(barrier->filtered, &out[i].message))
            continue;
        const int status = send_one(barrier, &out[i]);
        /* One who is not there now is asked again, or lost. */
        if (status == LS_ECLOSED)
            barrier->closed = true;
        else if (status != LS_OK)
            ls_log_debug("barrier \"%s\": to node %" PRIu32 ": %s",
                         barrier->name, out[i].to, ls_error_text());
    }
    barrier->repeated = false;
}

/* Have the waiter look. There is one, so there is a channel. */
static void wake(ls_barrier *barrier)
{
    atomic_store(&barrier->woken, true);
    ls_cond_signal(&barrier->ended);
    ls_channel_ring(barrier->channel);
}

/* The mutex is held before, and not after. */
static void settle(ls_barrier *barrier)
{
    send_out(barrier);
    const bool news =
        barrier->waiting &&
        (ls_epoch_end(barrier->epoch) != NULL || barrier->closed ||
         ls_epoch_wake_at(barrier->epoch) < barrier->sleeps_until);
    ls_mutex_unlock(&barrier->mutex);
    if (news)
        wake(barrier);
}

/* It is not known before the node is open. */
static void learn_incarnation(ls_barrier *barrier)
{
    if (barrier->epoch->incarnation == 0)
        ls_epoch_set_self(barrier->epoch, ls_node_incarnation(barrier->node),
                          ls_node_host(barrier->node));
}

/* Ops tell who joins, but an op may come later than ls_node_start() returns:
 * look who is there when somebody seems to be missing. Whoever is not known
 * when an epoch ends is not counted in it, and told so. */
static void look_around(ls_barrier *barrier, int64_t now)
{
    struct ls_epoch *epoch = barrier->epoch;
    if (barrier->most != 0 && ls_epoch_n_joined(epoch) + 1 == barrier->most)
        return;
    size_t n;
    struct ls_member *members = copy_members(barrier, &n);
    for (size_t i = 0; i < n; i++) {
        if (members[i].state == LS_MEMBER_READY &&
            has_member(barrier, &members[i]) &&
            ls_epoch_joined(epoch, now, members[i].id, members[i].incarnation,
                            members[i].host) != LS_OK)
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
    note_elsewhere(barrier, from, &message);
    if (barrier->filter != NULL)
        barrier->filter->received(barrier->filtered, barrier->epoch, &from,
                                  &incarnation, &message);
    ls_epoch_receive(barrier->epoch, ls_now(barrier->runtime), from,
                     incarnation, &message);
    barrier->repeated = message.again;
    settle(barrier);
}

/* Somebody waits for this node in a barrier that it has not: tell it in which
 * one this node is. That is no error yet, it may come there still. */
static void on_stray(void *self, const char *name, uint32_t from,
                     uint64_t incarnation, const void *data, size_t size)
{
    ls_barrier *barrier = self;
    struct ls_barrier_message message;
    if (strncmp(name, CHANNEL, sizeof CHANNEL - 1) != 0)
        return;
    ls_mutex_lock(&barrier->mutex);
    if (ls_barrier_wire_decode(data, size, &message, barrier->scratch) ==
            LS_OK &&
        message.again && message.to == ls_node_incarnation(barrier->node)) {
        char text[LS_BARRIER_REASON_MAX];
        const struct ls_barrier_message answer = {.kind = LS_BARRIER_UNKNOWN,
                                                  .to = incarnation,
                                                  .epoch = message.epoch,
                                                  .reason = text,
                                                  .reason_size =
                                                      say_where(barrier, text)};
        size = ls_barrier_wire_encode(&answer, barrier->bytes);
        if (ls_channel_answer(barrier->channel, name, from, barrier->bytes,
                              size) != LS_OK)
            ls_log_debug("barrier \"%s\": to node %" PRIu32 ": %s",
                         barrier->name, from, ls_error_text());
    }
    ls_mutex_unlock(&barrier->mutex);
}

/* This node was declared lost, and goes on as a new life of itself. */
static void on_renewed(void *self, uint64_t incarnation)
{
    ls_barrier *barrier = self;
    ls_mutex_lock(&barrier->mutex);
    ls_epoch_set_self(barrier->epoch, incarnation, ls_node_host(barrier->node));
    settle(barrier);
}

static void on_member(void *self, const struct ls_member *member)
{
    ls_barrier *barrier = self;
    const int64_t now = ls_now(barrier->runtime);
    if (!has_member(barrier, member))
        return;
    ls_mutex_lock(&barrier->mutex);
    if (member->state == LS_MEMBER_READY) {
        if (ls_epoch_joined(barrier->epoch, now, member->id,
                            member->incarnation, member->host) != LS_OK)
            ls_log_error("barrier \"%s\": %s", barrier->name, ls_error_text());
    } else if (member->state != LS_MEMBER_SEEN) {
        ls_epoch_lost(barrier->epoch, now, member->id, member->incarnation);
    }
    /* What it has to repeat, and when, has changed. */
    const bool waits = barrier->waiting;
    settle(barrier);
    if (waits)
        wake(barrier);
}

static void on_closed(void *self)
{
    ls_barrier *barrier = self;
    ls_mutex_lock(&barrier->mutex);
    barrier->closed = true;
    settle(barrier);
}

/* The waiter looks why: it is interrupted, or is to listen from here on. */
static void on_news(void *self)
{
    ls_barrier *barrier = self;
    ls_mutex_lock(&barrier->mutex);
    const bool waits = barrier->waiting;
    ls_mutex_unlock(&barrier->mutex);
    if (waits)
        wake(barrier);
}

static const struct ls_channel_ops channel_ops = {
    .message = on_message,
    .member = on_member,
    .stray = on_stray,
    .renewed = on_renewed,
    .near = on_news,
    .closed = on_closed,
};

/* --- life --------------------------------------------------------------- */

static int open_channel(ls_barrier *barrier)
{
    char name[sizeof CHANNEL + LS_EVENT_MAX];
    snprintf(name, sizeof name, CHANNEL "%s", barrier->name);
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

static int init(ls_barrier *barrier, const struct ls_epoch_rules *rules)
{
    int status = ls_mutex_init(&barrier->mutex, barrier->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&barrier->ended, barrier->runtime);
    if (status == LS_OK)
        status =
            ls_epoch_create(&barrier->epoch, ls_node_id(barrier->node), rules);
    if (status == LS_OK)
        status = ls_node_on_interrupt(barrier->node, on_news, barrier);
    return status == LS_OK ? open_channel(barrier) : status;
}

/* Also one that was not made whole. */
static void free_barrier(ls_barrier *barrier)
{
    (void)ls_node_on_interrupt(barrier->node, NULL, barrier);
    ls_channel_close(&barrier->channel);
    ls_epoch_destroy(&barrier->epoch);
    ls_trace_mark_close(&barrier->mark);
    ls_cond_fini(&barrier->ended);
    ls_mutex_fini(&barrier->mutex);
    free(barrier->ids);
    free(barrier);
}

/* Errors: LS_ENOMEM. */
static int copy_ids(ls_barrier *barrier,
                    const struct ls_barrier_options *options)
{
    if (options->ids == NULL)
        return LS_OK;
    const size_t bytes = options->n_ids * sizeof *barrier->ids;
    barrier->ids = malloc(bytes);
    if (barrier->ids == NULL)
        return ls_error(LS_ENOMEM, "barrier \"%s\": no memory for its ids",
                        barrier->name);
    memcpy(barrier->ids, options->ids, bytes);
    barrier->n_ids = options->n_ids;
    return LS_OK;
}

int ls_barrier_create(ls_barrier **out, ls_node *node,
                      const struct ls_barrier_options *options)
{
    *out = NULL;
    const struct ls_barrier_options defaults = {0};
    if (options == NULL)
        options = &defaults;
    const char *name = options->name != NULL ? options->name : DEFAULT_NAME;
    const struct ls_epoch_rules rules = rules_of(node, options);
    int status = check_options(node, name, options);
    if (status < 0)
        return status;
    ls_barrier *barrier = calloc(1, sizeof *barrier);
    if (barrier == NULL)
        return ls_error(LS_ENOMEM, "barrier \"%s\": no memory", name);
    memcpy(barrier->name, name, strlen(name) + 1);
    if (options->group != NULL)
        memcpy(barrier->group, options->group, strlen(options->group) + 1);
    barrier->left = options->left;
    barrier->self = options->self;
    barrier->most = rules.most;
    barrier->node = node;
    barrier->runtime = ls_node_runtime(node);
    barrier->forks = ls_forks_now();
    barrier->mark = ls_trace_mark_open(ls_node_trace(node));
    if (barrier->mark != NULL)
        barrier->trace_name = ls_trace_name(ls_node_trace(node), name);
    status = copy_ids(barrier, options);
    if (status == LS_OK)
        status = init(barrier, &rules);
    if (status == LS_OK)
        *out = barrier;
    else
        free_barrier(barrier);
    return status;
}

int ls_barrier_destroy(ls_barrier **barrier)
{
    if (barrier == NULL || *barrier == NULL)
        return LS_OK;
    if (ls_forked_since((*barrier)->forks))
        return ls_forked_error("this barrier");
    ls_mutex_lock(&(*barrier)->mutex);
    if ((*barrier)->waiting) {
        ls_mutex_unlock(&(*barrier)->mutex);
        return ls_error(LS_ESTATE, "barrier \"%s\": somebody waits in it",
                        (*barrier)->name);
    }
    ls_epoch_withdraw((*barrier)->epoch);
    send_out(*barrier);
    (*barrier)->withdrawn = true;
    ls_mutex_unlock(&(*barrier)->mutex);
    free_barrier(*barrier);
    *barrier = NULL;
    return LS_OK;
}

/* --- waiting ------------------------------------------------------------ */

/* It may have stood still while others were to come, or to answer. */
static void excuse(ls_barrier *barrier)
{
    const int64_t stood_ns = ls_node_stood_ns(barrier->node);
    ls_epoch_excuse(barrier->epoch, stood_ns - barrier->stood_ns);
    barrier->stood_ns = stood_ns;
}

/* No signal came in time: ask again, or give up. The end may have come at the
 * same moment. */
static void on_quiet(ls_barrier *barrier, struct ls_due *due)
{
    if (ls_epoch_end(barrier->epoch) != NULL)
        return;
    excuse(barrier);
    if (ls_due_has_passed(barrier->node, due))
        ls_epoch_abort(barrier->epoch, LS_ETIMEDOUT, false,
                       "the deadline passed");
    else
        ls_epoch_tick(barrier->epoch, ls_now(barrier->runtime));
    send_out(barrier);
}

static bool is_woken(void *self)
{
    ls_barrier *barrier = self;
    return atomic_exchange(&barrier->woken, false);
}

static void borrow(ls_barrier *barrier)
{
    barrier->borrows = !ls_channel_is_near(barrier->channel) &&
                       ls_channel_borrow(barrier->channel);
}

static void give_back(ls_barrier *barrier)
{
    if (barrier->borrows)
        ls_channel_give_back(barrier->channel);
    barrier->borrows = false;
}

/* Until somebody wakes the waiter, or what it waits for comes. The mutex is let
 * go of meanwhile. */
static int sleep_until(ls_barrier *barrier, int64_t until)
{
    if (!ls_channel_is_near(barrier->channel))
        return ls_channel_attend(barrier->channel, &barrier->ended,
                                 &barrier->mutex, is_woken, until);
    give_back(barrier);
    ls_mutex_unlock(&barrier->mutex);
    const int status = ls_channel_listen(barrier->channel, until);
    ls_mutex_lock(&barrier->mutex);
    return status;
}

static const struct ls_epoch_end *wait_for_end(ls_barrier *barrier,
                                               int64_t deadline)
{
    const struct ls_epoch_end *end;
    struct ls_due due = ls_due_at(barrier->node, deadline);
    while ((end = ls_epoch_end(barrier->epoch)) == NULL) {
        const int64_t ask_at = ls_epoch_wake_at(barrier->epoch);
        barrier->sleeps_until = ask_at < due.at ? ask_at : due.at;
        const int interrupted = ls_node_interrupted(barrier->node);
        if (barrier->closed)
            ls_epoch_abort(barrier->epoch, LS_ECLOSED, true, "the node stops");
        else if (interrupted != LS_OK)
            ls_epoch_abort(barrier->epoch, interrupted, true,
                           ls_status_sentence(interrupted));
        else if (sleep_until(barrier, barrier->sleeps_until) == LS_ETIMEDOUT)
            on_quiet(barrier, &due);
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

static struct ls_trace_record wait_of(const ls_barrier *barrier, int64_t now)
{
    return (struct ls_trace_record){.kind = LS_TRACE_BARRIER,
                                    .name = barrier->trace_name,
                                    .begin_ns = now,
                                    .number = barrier->epoch->epoch,
                                    .peer = LS_TRACE_NOBODY};
}

static void trace_end(ls_barrier *barrier, int64_t entered_at, int64_t left_at,
                      const struct ls_epoch_end *end)
{
    ls_trace *const trace = ls_node_trace(barrier->node);
    struct ls_trace_record record = wait_of(barrier, entered_at);
    if (trace == NULL)
        return;
    ls_trace_mark_end(barrier->mark);
    record.end_ns = left_at;
    record.number = end->epoch;
    if (end->status == LS_OK)
        record.peer = end->last;
    else
        record.size = (uint64_t)-end->status;
    ls_trace_add(trace, &record);
}

static int run_epoch(ls_barrier *barrier, uint32_t flags, int64_t deadline,
                     struct ls_barrier_epoch_info *info)
{
    const int64_t now = ls_now(barrier->runtime);
    look_around(barrier, now);
    barrier->waiting = true;
    barrier->stood_ns = ls_node_stood_ns(barrier->node);
    borrow(barrier);
    ls_epoch_enter(barrier->epoch, now, deadline, flags);
    const struct ls_trace_record wait = wait_of(barrier, now);
    ls_trace_mark_begin(barrier->mark, &wait);
    send_out(barrier);
    const struct ls_epoch_end *end = wait_for_end(barrier, deadline);
    give_back(barrier);
    barrier->waiting = false;
    const int64_t left_at = ls_now(barrier->runtime);
    barrier->stats.waited_ns += left_at - now;
    trace_end(barrier, now, left_at, end);
    if (end->status != LS_OK) {
        barrier->stats.failed++;
        return explain(barrier, end);
    }
    barrier->stats.epochs++;
    *info = (struct ls_barrier_epoch_info){.epoch = end->epoch,
                                           .entered_at = now,
                                           .left_at = left_at,
                                           .last = end->last,
                                           .flags = end->flags,
                                           .view = end->since,
                                           .members = end->n_members,
                                           .lost = end->n_lost};
    return LS_OK;
}

int ls_barrier_wait(ls_barrier *barrier, uint32_t flags, int wait_ms,
                    struct ls_barrier_epoch_info *info)
{
    const int64_t deadline = ls_deadline(barrier->runtime, wait_ms);
    struct ls_barrier_epoch_info left;
    if (ls_forked_since(barrier->forks))
        return ls_forked_error("this barrier");
    ls_mutex_lock(&barrier->mutex);
    learn_incarnation(barrier);
    int status = can_wait(barrier);
    if (status == LS_OK)
        status = run_epoch(barrier, flags, deadline, &left);
    ls_mutex_unlock(&barrier->mutex);
    if (status == LS_OK && barrier->left != NULL)
        barrier->left(barrier->self, &left);
    if (status == LS_OK && info != NULL)
        *info = left;
    return status;
}

void ls_barrier_abort(ls_barrier *barrier, int status)
{
    if (status >= LS_OK)
        status = LS_ECANCELED;
    if (ls_forked_since(barrier->forks))
        return;
    ls_mutex_lock(&barrier->mutex);
    learn_incarnation(barrier);
    if (!barrier->waiting)
        look_around(barrier, ls_now(barrier->runtime));
    ls_epoch_abort(barrier->epoch, status, true, ls_status_sentence(status));
    settle(barrier);
}

void ls_barrier_discard(ls_barrier *barrier)
{
    if (ls_forked_since(barrier->forks))
        return;
    ls_mutex_lock(&barrier->mutex);
    barrier->epoch->why.given_up = false;
    ls_mutex_unlock(&barrier->mutex);
}

size_t ls_barrier_members(ls_barrier *barrier, uint32_t *ids, size_t capacity)
{
    if (ls_forked_since(barrier->forks))
        return 0;
    ls_mutex_lock(&barrier->mutex);
    const struct ls_epoch *epoch = barrier->epoch;
    const size_t n = epoch->left.n_ids;
    const size_t copied = n < capacity ? n : capacity;
    if (copied > 0)
        memcpy(ids, epoch->left.ids, copied * sizeof *ids);
    ls_mutex_unlock(&barrier->mutex);
    return n;
}

size_t ls_barrier_lives(ls_barrier *barrier, uint32_t *ids, uint64_t *lives,
                        size_t capacity)
{
    ls_mutex_lock(&barrier->mutex);
    const struct ls_epoch_left *left = &barrier->epoch->left;
    const size_t n = left->n_ids;
    for (size_t i = 0; i < n && i < capacity; i++) {
        ids[i] = left->ids[i];
        lives[i] = left->lives[i];
    }
    ls_mutex_unlock(&barrier->mutex);
    return n;
}

void ls_barrier_stats(ls_barrier *barrier, struct ls_barrier_stats *out)
{
    memset(out, 0, sizeof *out);
    if (ls_forked_since(barrier->forks))
        return;
    ls_mutex_lock(&barrier->mutex);
    *out = barrier->stats;
    out->sent = barrier->epoch->outbox.n_sent;
    out->repeated = barrier->epoch->outbox.n_repeated;
    ls_mutex_unlock(&barrier->mutex);
}

void ls_barrier_filter(ls_barrier *barrier,
                       const struct ls_barrier_filter *filter, int filtered)
{
    ls_mutex_lock(&barrier->mutex);
    barrier->filter = filter;
    barrier->filtered = filtered;
    ls_mutex_unlock(&barrier->mutex);
}
