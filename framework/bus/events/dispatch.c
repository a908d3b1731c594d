/* The dispatch thread: runs handlers, one at a time, in the order in which
 * messages came. It takes the whole queue at once and gives the messages back
 * in batches, so that a message costs a fraction of a lock. */
#include "bus.h"
#include "event_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between two releases: handled messages, or events; and bytes, since whoever
 * sends long ones waits for their room, and a block is used again while it is
 * in cache. */
#define RELEASE_EVERY 64
#define RELEASE_BYTES (128u << 10)

int dispatch_init(ls_node *node)
{
    struct dispatch *d = &node->dispatch;
    message_list_init(&d->queue);
    message_list_init(&d->held);
    d->mark = ls_trace_mark_open(node->options.trace);
    int status = ls_mutex_init(&d->lock, node->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&d->filled, node->runtime);
    if (status == LS_OK)
        status = ls_cond_init(&d->room, node->runtime);
    return status;
}

void dispatch_fini(ls_node *node)
{
    if (ls_thread_join(&node->dispatch.thread, LS_FOREVER) != LS_OK)
        ls_log_error("bus: the dispatch thread of node %u did not end",
                     node->options.id);
    ls_trace_mark_close(&node->dispatch.mark);
    message_give_back(node->pool, &node->dispatch.queue);
    ls_cond_fini(&node->dispatch.room);
    ls_cond_fini(&node->dispatch.filled);
    ls_mutex_fini(&node->dispatch.lock);
}

bool dispatch_is_current(const ls_node *node)
{
    return ls_thread_is_current(node->dispatch.thread);
}

void dispatch_keep_error(ls_node *node, int status)
{
    ls_mutex_lock(&node->router.lock);
    if (node->dispatch.failure.status == LS_OK)
        ls_failure_keep(&node->dispatch.failure, status);
    ls_cond_broadcast(&node->router.idle); /* wakes ls_wait_for() */
    ls_mutex_unlock(&node->router.lock);
}

void dispatch_lost(ls_node *node, const struct peer *peer, const char *event,
                   uint64_t n)
{
    (void)ls_error(LS_ELOST,
                   "node %u: event \"%s\": node %u%s was lost before it "
                   "acknowledged %llu reliable events, this the first of them",
                   node->options.id, event, peer->member.id,
                   peer->member.as_role, (unsigned long long)n);
    ls_log_error("bus: %s", ls_error_text());
    dispatch_keep_error(node, LS_ELOST);
}

static void handler_failed(ls_node *node, int status, const char *event,
                           const char *handler)
{
    if (status == LS_ECLOSED && node_is_stopping(node))
        return; /* it wanted to emit, say */
    (void)ls_error_at(status, "node %u: event \"%s\": handler %s: %s",
                      node->options.id, event, handler != NULL ? handler : "?",
                      ls_status_name(status));
    ls_log_error("bus: %s", ls_error_text());
    dispatch_keep_error(node, status);
}

int ls_node_take_error(ls_node *node)
{
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    ls_mutex_lock(&node->router.lock);
    const int status = ls_failure_return(&node->dispatch.failure);
    node->dispatch.failure.status = LS_OK;
    ls_mutex_unlock(&node->router.lock);
    return status;
}

void dispatch_interrupt(ls_node *node, int status)
{
    ls_mutex_lock(&node->router.lock);
    atomic_store(&node->dispatch.interrupted, status);
    ls_cond_broadcast(&node->router.idle);
    ls_mutex_unlock(&node->router.lock);
    ls_mutex_lock(&node->dispatch.lock);
    ls_cond_broadcast(&node->dispatch.room);
    ls_mutex_unlock(&node->dispatch.lock);
}

/* ---- adding ------------------------------------------------------------ */

/* Let the lock go, and wake the dispatch thread once, after it: it would only
 * wait again for the lock. */
static void unlock_and_wake(struct dispatch *d)
{
    const bool wake = d->waiting && d->queue.n > 0;
    if (wake)
        d->waiting = false;
    ls_mutex_unlock(&d->lock);
    if (wake)
        ls_cond_signal(&d->filled);
}

void dispatch_add(ls_node *node, struct message_list *list)
{
    struct dispatch *d = &node->dispatch;
    ls_mutex_lock(&d->lock);
    message_list_splice(&d->queue, list);
    if (d->queue.n > d->peak)
        d->peak = d->queue.n;
    unlock_and_wake(d);
}

static bool has_room(const ls_node *node, size_t bytes)
{
    const struct account *local = &node->dispatch.local;
    return local->messages == 0 ||
           (local->messages < node->options.window_messages &&
            local->bytes + bytes <= node->options.window_bytes);
}

int dispatch_reserve(ls_node *node, size_t bytes, bool wait, int64_t deadline)
{
    struct dispatch *d = &node->dispatch;
    int status = LS_OK;
    ls_mutex_lock(&d->lock);
    while (!has_room(node, bytes) && !d->closed && status == LS_OK) {
        status = atomic_load(&d->interrupted);
        if (status == LS_OK &&
            (!wait || dispatch_is_current(node) ||
             ls_cond_wait(&d->room, &d->lock, deadline) != LS_OK))
            status = LS_EAGAIN;
    }
    if (d->closed)
        status = LS_ECLOSED;
    if (status == LS_OK) {
        d->local.messages++;
        d->local.bytes += bytes;
    }
    ls_mutex_unlock(&d->lock);
    if (status == LS_EAGAIN)
        return ls_error(status,
                        "node %u has no room for its own event: %llu of them "
                        "wait to be handled",
                        node->options.id,
                        (unsigned long long)node->dispatch.local.messages);
    if (status == LS_ECLOSED)
        return ls_error(status, "node %u is stopping", node->options.id);
    if (status != LS_OK)
        return ls_error(status, "the emit was interrupted");
    return LS_OK;
}

void dispatch_fill(ls_node *node, struct message *message)
{
    struct dispatch *d = &node->dispatch;
    ls_mutex_lock(&d->lock);
    message_list_append(&d->queue, message);
    unlock_and_wake(d);
}

int dispatch_offer(ls_node *node, struct message *message)
{
    struct dispatch *d = &node->dispatch;
    ls_mutex_lock(&d->lock);
    const bool closed = d->closed;
    if (!closed)
        message_list_append(&d->queue, message);
    unlock_and_wake(d);
    if (!closed)
        return LS_OK;
    message_give_back_one(node->pool, message);
    return ls_error(LS_ECLOSED, "node %u has stopped", node->options.id);
}

void dispatch_give_up(ls_node *node, size_t bytes)
{
    struct dispatch *d = &node->dispatch;
    ls_mutex_lock(&d->lock);
    d->local.messages--;
    d->local.bytes -= bytes;
    ls_cond_broadcast(&d->room);
    ls_mutex_unlock(&d->lock);
}

/* ---- handling ---------------------------------------------------------- */

static void unlink_listener(struct event_entry *entry, struct listener *gone)
{
    struct listener **at = &entry->listeners;
    while (*at != NULL && *at != gone)
        at = &(*at)->next;
    if (*at == gone)
        *at = gone->next;
}

/* Listeners may come and go while one runs: the one that runs is pinned, so
 * that its successor is still known afterwards; those added meanwhile stand at
 * the end and wait for the next event. */
static void run_listeners(ls_node *node, struct event_entry *entry,
                          const struct message *message)
{
    struct listener *last = entry->listeners;
    while (last != NULL && last->next != NULL)
        last = last->next;
    if (last != NULL)
        last->running++;
    struct listener *listener = entry->listeners;
    while (listener != NULL) {
        const bool is_last = listener == last;
        struct listener *next = listener->next;
        if (!listener->removed && events_suits(listener, message->entry)) {
            listener->removed = listener->once;
            listener->running++;
            ls_mutex_unlock(&node->router.lock);
            ls_error_clear();
            const int64_t begin =
                event_trace_handler(node, message->entry, &message->event);
            const int status = listener->fn(listener->self, &message->event);
            if (begin != 0)
                event_trace_handled(node, message->entry, &message->event,
                                    begin);
            if (status != LS_OK)
                handler_failed(node, status, message->event.name,
                               listener->label);
            ls_mutex_lock(&node->router.lock);
            listener->running--;
            next = listener->next;
            node->figures.handled++;
        }
        if (is_last)
            listener->running--;
        if (listener->removed && listener->running == 0) {
            unlink_listener(entry, listener);
            events_free_listener(node, entry, listener);
            ls_cond_broadcast(&node->router.idle);
        }
        listener = is_last ? NULL : next;
    }
}

struct releases {
    struct peer *peer;
    uint64_t life; /* of the peer, when the messages came */
    struct account account, stream, local;
};

static void release(ls_node *node, struct releases *r)
{
    if (r->peer != NULL) {
        transport_lock(node->transport);
        /* Else the window is gone, with its sender. */
        const bool lives = r->peer->member.incarnation == r->life;
        if (lives && r->account.messages != 0)
            flow_release(node, r->peer, r->account.messages, r->account.bytes);
        if (lives && r->stream.messages != 0)
            streams_release(node, r->peer, r->stream.messages, r->stream.bytes);
        transport_unlock(node->transport);
    }
    if (r->local.messages != 0) {
        ls_mutex_lock(&node->dispatch.lock);
        node->dispatch.local.messages -= r->local.messages;
        node->dispatch.local.bytes -= r->local.bytes;
        ls_cond_broadcast(&node->dispatch.room);
        ls_mutex_unlock(&node->dispatch.lock);
    }
    *r = (struct releases){0};
}

static void account_for(ls_node *node, struct releases *r,
                        const struct message *message)
{
    if (message->kind != MESSAGE_EVENT)
        return;
    if (message->local) {
        r->local.messages++;
        r->local.bytes += message->held_bytes;
    }
    if (message->peer == NULL)
        return;
    if (r->peer != message->peer || r->life != message->peer_life) {
        release(node, r);
        r->peer = message->peer;
        r->life = message->peer_life;
    }
    struct account *account = message->stream ? &r->stream : &r->account;
    account->messages +=
        message->held_messages != 0 ? message->held_messages : 1;
    account->bytes += message->held_bytes;
}

static bool may_handle(ls_node *node, const struct message *message)
{
    const struct ls_event_gate *gate = node->options.gate;
    return gate == NULL || node->dispatch.open ||
           message->kind != MESSAGE_EVENT || message->latest ||
           gate->handles(gate->self, &message->event);
}

/* The first of these that may be handled, out of the list; NULL: none of them.
 */
static struct message *first_of(ls_node *node, struct message_list *list)
{
    struct message_list others;
    struct message *found = NULL, *message;
    message_list_init(&others);
    while (found == NULL && (message = message_list_take(list)) != NULL) {
        if (may_handle(node, message))
            found = message;
        else
            message_list_append(&others, message);
    }
    message_list_splice(&others, list);
    message_list_splice(list, &others);
    return found;
}

/* The next message that may be handled; NULL: there is none now.
 * handled: one was since this was asked last, which may have let others in.
 * was_held: out: it is one of those.
 */
static struct message *next_of(ls_node *node, struct message_list *todo,
                               bool handled, bool *was_held)
{
    struct message_list *held = &node->dispatch.held;
    struct message *message = handled ? first_of(node, held) : NULL;
    *was_held = message != NULL;
    while (message == NULL && (message = message_list_take(todo)) != NULL) {
        if (may_handle(node, message))
            break;
        message_list_append(held, message);
        message = NULL;
    }
    return message;
}

/* The one after it in its batch may be handled too. Lock held. */
static bool goes_on(ls_node *node, struct message *message)
{
    message->more--;
    message->event.sequence += message->event.sequence != 0 ? 1 : 0;
    bus_next_payload(message);
    if (node->options.gate == NULL)
        return true;
    ls_mutex_unlock(&node->router.lock);
    const bool may = may_handle(node, message);
    ls_mutex_lock(&node->router.lock);
    return may;
}

/* The rest of a batch: behind what was held before it came, and before what has
 * come after it. */
static void hold(ls_node *node, struct message *message, bool was_held)
{
    struct message_list *held = &node->dispatch.held;
    if (was_held)
        message_list_prepend(held, message);
    else
        message_list_append(held, message);
}

/* It has been handled. */
static void put_by(ls_node *node, struct releases *releases,
                   struct message_list *done, struct message *message)
{
    account_for(node, releases, message);
    message_list_append(done, message);
    if (done->n < RELEASE_EVERY && releases->account.messages < RELEASE_EVERY &&
        releases->account.bytes + releases->stream.bytes < RELEASE_BYTES)
        return;
    release(node, releases);
    message_give_back(node->pool, done);
}

static void handle_all(ls_node *node, struct message_list *todo)
{
    struct message_list done;
    message_list_init(&done);
    struct releases releases = {0};
    struct message *message = NULL;
    bool was_held;
    while ((message = next_of(node, todo, message != NULL, &was_held)) !=
           NULL) {
        bool more = false, may = true; /* of a batch */
        if (message->kind == MESSAGE_MEMBER) {
            watch_members(node, message);
        } else if (message->kind == MESSAGE_CHANNEL) {
            channels_dispatched(node, message);
        } else if (!message->latest || latest_resolve(node, message)) {
            ls_mutex_lock(&node->router.lock);
            do {
                struct event_entry *prefix = NULL;
                run_listeners(node, message->entry, message);
                while (events_any_globs(node) &&
                       (prefix = events_prefix(node, message->entry, prefix)) !=
                           NULL)
                    run_listeners(node, prefix, message);
                more = message->more != 0;
                may = !more || goes_on(node, message);
            } while (more && may);
            ls_mutex_unlock(&node->router.lock);
        }
        if (may)
            put_by(node, &releases, &done, message);
        else
            hold(node, message, was_held);
    }
    release(node, &releases);
    message_give_back(node->pool, &done);
}

static void dispatch_main(void *self)
{
    ls_node *node = self;
    struct dispatch *d = &node->dispatch;
    struct message_list todo;
    message_list_init(&todo);
    ls_log_set_node(node->options.id);
    ls_mutex_lock(&d->lock);
    for (;;) {
        while (d->queue.n == 0 && !d->closed) {
            d->waiting = true;
            if (ls_cond_wait(&d->filled, &d->lock, LS_FOREVER) != LS_OK)
                break;
            d->waiting = false;
        }
        if (d->queue.n == 0)
            break;
        message_list_splice(&todo, &d->queue);
        ls_mutex_unlock(&d->lock);
        handle_all(node, &todo);
        ls_mutex_lock(&d->lock);
    }
    ls_mutex_unlock(&d->lock);
    if (d->held.n > 0) {
        d->open = true;
        message_list_splice(&todo, &d->held);
        handle_all(node, &todo);
    }
    ls_mutex_lock(&d->lock);
    d->ended = true;
    ls_cond_broadcast(&d->room);
    ls_mutex_unlock(&d->lock);
}

int dispatch_start(ls_node *node)
{
    return ls_thread_spawn(node->runtime, &node->dispatch.thread, "ls-dispatch",
                           dispatch_main, node);
}

void dispatch_stop(ls_node *node)
{
    struct dispatch *d = &node->dispatch;
    ls_mutex_lock(&d->lock);
    d->closed = true;
    ls_cond_broadcast(&d->filled);
    ls_cond_broadcast(&d->room);
    int status = LS_OK;
    while (d->thread != NULL && !d->ended && status == LS_OK)
        status = ls_cond_wait(&d->room, &d->lock, LS_FOREVER);
    ls_mutex_unlock(&d->lock);
}
