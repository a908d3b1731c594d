/* The dispatch thread: runs handlers, one at a time, in the order in which
 * messages came. It takes the whole queue at once and gives the messages back
 * in batches, so that a message costs a fraction of a lock. Short events of the
 * node itself that follow each other share a message, as those of a batch from
 * elsewhere do: then one costs the lock that it is queued under. */
#include "bus.h"
#include "event_trace.h"

#include <stdlib.h>
#include <string.h>

/* Between two releases: handled messages, or events; and bytes, since whoever
 * sends long ones waits for their room, and a block is used again while it is
 * in cache. */
#define RELEASE_EVERY 64
#define RELEASE_BYTES (128u << 10)

/* For the payloads of many local events in close succession. */
#define PAGE_BYTES 4096

int dispatch_init(ls_node *node)
{
    struct dispatch *d = &node->dispatch;
    message_list_init(&d->queue);
    message_list_init(&d->spare);
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
    message_give_back(node->pool, &node->dispatch.spare);
    while (node->dispatch.n_pages != 0)
        free(node->dispatch.pages[--node->dispatch.n_pages]);
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

int dispatch_take_error(ls_node *node)
{
    const int status = ls_failure_return(&node->dispatch.failure);
    node->dispatch.failure.status = LS_OK;
    return status;
}

void dispatch_put_back(ls_node *node, const struct ls_failure *failure)
{
    node->dispatch.failure = *failure;
    ls_cond_broadcast(&node->router.idle);
}

int ls_node_take_error(ls_node *node)
{
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    ls_mutex_lock(&node->router.lock);
    const int status = dispatch_take_error(node);
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

/* Nothing joins what is not the last. */
static void append(struct dispatch *d, struct message *message)
{
    message_list_append(&d->queue, message);
    d->batch.message = NULL;
}

void dispatch_add(ls_node *node, struct message_list *list)
{
    struct dispatch *d = &node->dispatch;
    ls_mutex_lock(&d->lock);
    message_list_splice(&d->queue, list);
    d->batch.message = NULL;
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

/* Take room in the window of this node. Lock held, and let go of while it waits
 * for some. */
static int take_room(ls_node *node, size_t bytes, struct ls_due *due)
{
    struct dispatch *d = &node->dispatch;
    int status = LS_OK;
    while (!has_room(node, bytes) && !d->closed && status == LS_OK) {
        status = atomic_load(&d->interrupted);
        if (status == LS_OK &&
            (due == NULL || dispatch_is_current(node) ||
             (ls_cond_wait(&d->room, &d->lock, due->at) != LS_OK &&
              due_has_passed_without(node, due, &d->lock))))
            status = LS_EAGAIN;
    }
    if (d->closed)
        status = LS_ECLOSED;
    if (status == LS_OK) {
        d->local.messages++;
        d->local.bytes += bytes;
    }
    return status;
}

/* waiting: local events, then. */
static int not_taken(const ls_node *node, int status, uint64_t waiting)
{
    if (status == LS_EAGAIN)
        return ls_error(status,
                        "node %u has no room for its own event: %llu of them "
                        "wait to be handled",
                        node->options.id, (unsigned long long)waiting);
    if (status == LS_ECLOSED)
        return ls_error(status, "node %u is stopping", node->options.id);
    if (status == LS_ENOMEM)
        return ls_error(status, "no memory for an event");
    return ls_error(status, "the emit was interrupted");
}

static void give_room(ls_node *node, size_t messages, size_t bytes)
{
    struct account *local = &node->dispatch.local;
    local->messages -= messages;
    local->bytes -= bytes;
    ls_cond_broadcast(&node->dispatch.room);
}

/* A message for an event of this node, without its payload. Lock held. */
static int take_local(ls_node *node, struct event_entry *entry, size_t size,
                      struct message **out)
{
    struct message *message = message_take(node->pool, &node->dispatch.spare);
    if (message == NULL) {
        give_room(node, 1, size);
        return LS_ENOMEM;
    }
    message->local = true;
    message->held_messages = 1;
    message->held_bytes = size;
    message->entry = entry;
    message->event.name = entry->name;
    message->event.origin = node->options.id;
    message->event.incarnation = node->me.incarnation;
    message->event.sequence = 0;
    message->event.size = size;
    *out = message;
    return LS_OK;
}

/* Whether the last message of the queue is a batch of this event. */
static bool is_batch_of(const struct local_batch *batch,
                        const struct event_entry *entry)
{
    return batch->message != NULL && batch->message->entry == entry;
}

/* As many as are released together: whoever waits for their room does not wait
 * longer for it because they share a message. */
static bool is_full(const struct local_batch *batch, size_t size)
{
    return batch->message->more + 1 >= RELEASE_EVERY ||
           (size_t)(batch->end - batch->at) < WIRE_BATCH_LEAD + size;
}

/* Whether an event is the one after the last of a message. */
static bool follows(const ls_node *node, const struct message *message,
                    uint64_t sequence)
{
    const uint64_t first = message->event.sequence;
    return message->event.incarnation == node->me.incarnation &&
           sequence == (first == 0 ? 0 : first + message->more + 1);
}

/* Returns false: it is to have a message of its own. Lock held. */
static bool join_batch(ls_node *node, const struct event_entry *entry,
                       uint64_t sequence, const void *data, size_t size)
{
    struct dispatch *d = &node->dispatch;
    struct message *message = d->batch.message;
    if (!is_batch_of(&d->batch, entry) || is_full(&d->batch, size) ||
        !follows(node, message, sequence))
        return false;
    d->batch.at += wire_batch_write(d->batch.at, data, size);
    d->queue.n++;
    message->more++;
    message->held_messages = message->more + 1;
    message->held_bytes += size;
    return true;
}

static uint8_t *take_page(struct dispatch *d)
{
    return d->n_pages != 0 ? d->pages[--d->n_pages] : malloc(PAGE_BYTES);
}

static void give_back_page(void *page, void *hint)
{
    struct dispatch *d = hint;
    ls_mutex_lock(&d->lock);
    const bool keep = d->n_pages < DISPATCH_PAGES;
    if (keep)
        d->pages[d->n_pages++] = page;
    ls_mutex_unlock(&d->lock);
    if (!keep)
        free(page);
}

/* Queue a message with a short payload, which others may join. After one that
 * is full, more are likely to. Lock held. */
static void begin_batch(ls_node *node, struct message *message,
                        const void *data, size_t size)
{
    struct dispatch *d = &node->dispatch;
    const bool many =
        is_batch_of(&d->batch, message->entry) && is_full(&d->batch, size);
    uint8_t *at = message->small, *end = at + sizeof message->small;
    if (many && (message->owned = take_page(d)) != NULL) {
        message->release = give_back_page;
        message->hint = d;
        at = message->owned;
        end = at + PAGE_BYTES;
    }
    at += wire_batch_write(at, data, size);
    message->event.data = at - size;
    message->next_at = at;
    append(d, message);
    /* A gate may let one in, and hold the one before it. */
    if (node->options.gate == NULL)
        d->batch = (struct local_batch){message, at, end};
}

int dispatch_emit(ls_node *node, struct event_entry *entry, const void *data,
                  size_t size, struct ls_due *due)
{
    struct dispatch *d = &node->dispatch;
    struct message *message = NULL;
    ls_mutex_lock(&d->lock);
    int status = take_room(node, size, due);
    if (status == LS_OK && !join_batch(node, entry, 0, data, size)) {
        status = take_local(node, entry, size, &message);
        if (status == LS_OK)
            begin_batch(node, message, data, size);
    }
    const uint64_t waiting = d->local.messages;
    unlock_and_wake(d);
    return status == LS_OK ? LS_OK : not_taken(node, status, waiting);
}

int dispatch_reserve(ls_node *node, struct event_entry *entry, size_t bytes,
                     struct ls_due *due, struct message **out)
{
    struct dispatch *d = &node->dispatch;
    ls_mutex_lock(&d->lock);
    int status = take_room(node, bytes, due);
    if (status == LS_OK)
        status = take_local(node, entry, bytes, out);
    const uint64_t waiting = d->local.messages;
    ls_mutex_unlock(&d->lock);
    return status == LS_OK ? LS_OK : not_taken(node, status, waiting);
}

void dispatch_fill(ls_node *node, struct message *message, const void *data)
{
    struct dispatch *d = &node->dispatch;
    const size_t size = message->held_bytes;
    ls_mutex_lock(&d->lock);
    if (size > DISPATCH_SHORT)
        append(d, message);
    else if (join_batch(node, message->entry, message->event.sequence, data,
                        size))
        message_list_prepend(&d->spare, message);
    else
        begin_batch(node, message, data, size);
    unlock_and_wake(d);
}

void dispatch_append(ls_node *node, struct message *message)
{
    struct dispatch *d = &node->dispatch;
    ls_mutex_lock(&d->lock);
    append(d, message);
    unlock_and_wake(d);
}

int dispatch_offer(ls_node *node, struct message *message)
{
    struct dispatch *d = &node->dispatch;
    ls_mutex_lock(&d->lock);
    const bool closed = d->closed;
    if (!closed)
        append(d, message);
    unlock_and_wake(d);
    if (!closed)
        return LS_OK;
    message_give_back_one(node->pool, message);
    return ls_error(LS_ECLOSED, "node %u has stopped", node->options.id);
}

/* The next one needs no other, as long as it is the last. Lock held. */
static struct message *add_mark(ls_node *node)
{
    struct dispatch *d = &node->dispatch;
    struct message *mark =
        d->closed ? NULL : message_take(node->pool, &d->spare);
    if (mark == NULL)
        return NULL;
    mark->kind = MESSAGE_MARK;
    mark->entry = NULL; /* no event joins it */
    append(d, mark);
    d->batch.message = mark;
    return mark;
}

uint64_t dispatch_mark(ls_node *node)
{
    struct dispatch *d = &node->dispatch;
    uint64_t number = 0;
    ls_mutex_lock(&d->lock);
    struct message *mark = d->batch.message;
    if (mark == NULL || mark->kind != MESSAGE_MARK)
        mark = add_mark(node);
    if (mark != NULL)
        number = mark->watch = ++d->marks;
    unlock_and_wake(d);
    return number;
}

void dispatch_give_up(ls_node *node, struct message *message)
{
    ls_mutex_lock(&node->dispatch.lock);
    give_room(node, 1, message->held_bytes);
    ls_mutex_unlock(&node->dispatch.lock);
    message_give_back_one(node->pool, message);
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

static void call(ls_node *node, const struct listener *listener,
                 const struct message *message)
{
    ls_error_clear();
    const int64_t begin =
        event_trace_handler(node, message->entry, &message->event);
    const int status = listener->fn(listener->self, &message->event);
    if (begin != 0)
        event_trace_handled(node, message->entry, &message->event, begin);
    if (status != LS_OK)
        handler_failed(node, status, message->event.name, listener->label);
    /* Nobody else writes it, so it need not be one operation. */
    atomic_store_explicit(
        &node->figures.handled,
        atomic_load_explicit(&node->figures.handled, memory_order_relaxed) + 1,
        memory_order_relaxed);
}

/* The next event of a batch takes the place of the one before it. */
static void advance(struct message *message)
{
    message->more--;
    message->event.sequence += message->event.sequence != 0 ? 1 : 0;
    bus_next_payload(message);
}

/* Call the only listener that there is for events of a batch, until there may
 * be another one. It is pinned; router not held. */
static void call_alone(ls_node *node, const struct listener *listener,
                       struct message *message)
{
    call(node, listener, message);
    while (message->more != 0 && !listener->removed &&
           atomic_load_explicit(&message->entry->n_listeners,
                                memory_order_relaxed) == 1 &&
           !events_any_globs(node) && node->options.gate == NULL) {
        advance(message);
        call(node, listener, message);
    }
}

/* Listeners may come and go while one runs: the one that runs is pinned, so
 * that its successor is still known afterwards; those added meanwhile stand at
 * the end and wait for the next event. */
static void run_listeners(ls_node *node, struct event_entry *entry,
                          struct message *message)
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
        if (!listener->removed &&
            (listener->since <= node->dispatch.passed || message->latest) &&
            events_suits(listener, message->entry)) {
            listener->removed = listener->once;
            listener->running++;
            ls_mutex_unlock(&node->router.lock);
            call_alone(node, listener, message);
            ls_mutex_lock(&node->router.lock);
            listener->running--;
            next = listener->next;
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
    struct account account, stream, local;
};

static void release(ls_node *node, struct releases *r)
{
    if (r->peer != NULL) {
        transport_lock(node->transport);
        if (r->account.messages != 0)
            flow_release(node, r->peer, r->account.messages, r->account.bytes);
        if (r->stream.messages != 0)
            streams_release(node, r->peer, r->stream.messages, r->stream.bytes);
        transport_unlock(node->transport);
    }
    if (r->local.messages != 0) {
        ls_mutex_lock(&node->dispatch.lock);
        give_room(node, r->local.messages, r->local.bytes);
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
        r->local.messages += message->held_messages;
        r->local.bytes += message->held_bytes;
    }
    if (message->peer == NULL)
        return;
    if (r->peer != message->peer) {
        release(node, r);
        r->peer = message->peer;
    }
    struct account *account = message->stream ? &r->stream : &r->account;
    account->messages += message->held_messages;
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
    advance(message);
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
        releases->local.messages < RELEASE_EVERY &&
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
        } else if (message->kind == MESSAGE_MARK) {
            node->dispatch.passed = message->watch;
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
        d->batch.message = NULL;
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
