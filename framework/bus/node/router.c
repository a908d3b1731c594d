/* Listeners of this node, waiting for events, and the figures. */
#include "bus.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* ---- on, once ---------------------------------------------------------- */

static void interest(ls_node *node, struct event_entry *entry, bool wanted)
{
    if (entry->wanted == wanted)
        return;
    entry->wanted = wanted;
    atomic_store(&node->interests_changed, true);
    if (node->transport != NULL)
        node_wake(node);
}

static int listen(ls_node *node, const char *event, ls_event_fn *fn, void *self,
                  const char *label, bool once)
{
    if (!wire_name_valid(event) || fn == NULL)
        return ls_error(LS_EINVAL,
                        "\"%s\" is no event name: 1 to %d printable "
                        "characters without space * ? [ ] \\",
                        event == NULL ? "" : event, LS_EVENT_MAX);
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    if (node_is_stopping(node))
        return ls_error(LS_ECLOSED, "node %u is stopping", node->options.id);
    struct event_entry *entry;
    const int status = events_get(node, event, strlen(event), true, &entry);
    if (status != LS_OK)
        return status;
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return ls_error(LS_ENOMEM, "no memory for a listener");
    *listener =
        (struct listener){.fn = fn, .self = self, .label = label, .once = once};
    ls_mutex_lock(&node->router);
    struct listener **at = &entry->listeners;
    while (*at != NULL)
        at = &(*at)->next;
    *at = listener;
    atomic_fetch_add(&entry->n_listeners, 1);
    const bool first = !entry->wanted;
    entry->begun = entry->begun || first;
    interest(node, entry, true);
    ls_mutex_unlock(&node->router);
    /* Others tell it of their value; nobody does of this node's own. */
    if (first && node->transport != NULL &&
        latest_queue(node, entry, true) != LS_OK)
        ls_log_warn("bus: event \"%s\": no memory for its current value",
                    entry->name);
    return LS_OK;
}

int ls_router_on(ls_node *node, const char *event, ls_event_fn *fn, void *self,
                 const char *label)
{
    return listen(node, event, fn, self, label, false);
}

int ls_router_once(ls_node *node, const char *event, ls_event_fn *fn,
                   void *self, const char *label)
{
    return listen(node, event, fn, self, label, true);
}

/* ---- off --------------------------------------------------------------- */

/* Take one listener out: it is freed here, or by the dispatch thread when it
 * runs just now. Router held. */
static void take_out(struct event_entry *entry, struct listener *listener)
{
    listener->removed = true;
    if (listener->running != 0)
        return;
    struct listener **at = &entry->listeners;
    while (*at != listener)
        at = &(*at)->next;
    *at = listener->next;
    atomic_fetch_sub(&entry->n_listeners, 1);
    free(listener);
}

static bool any_live(const struct event_entry *entry)
{
    for (const struct listener *l = entry->listeners; l != NULL; l = l->next)
        if (!l->removed)
            return true;
    return false;
}

static bool matches(const struct listener *listener, ls_event_fn *fn,
                    const void *self)
{
    return fn == NULL || (listener->fn == fn && listener->self == self);
}

static bool any_ending(const struct event_entry *entry, ls_event_fn *fn,
                       const void *self)
{
    for (const struct listener *l = entry->listeners; l != NULL; l = l->next)
        if (l->removed && matches(l, fn, self))
            return true;
    return false;
}

/* Remove those that match (fn NULL: all); waits until none that matches runs
 * for the last time, a `once` too, unless called from a handler. Router
 * held. */
static int remove_listeners(ls_node *node, struct event_entry *entry,
                            ls_event_fn *fn, const void *self)
{
    int n = 0;
    for (struct listener *l = entry->listeners, *next; l != NULL; l = next) {
        next = l->next;
        if (l->removed || !matches(l, fn, self))
            continue;
        take_out(entry, l);
        n++;
        if (fn != NULL)
            break;
    }
    if (!any_live(entry))
        interest(node, entry, false);
    int status = LS_OK;
    while (any_ending(entry, fn, self) && !dispatch_is_current(node) &&
           status == LS_OK)
        status = ls_cond_wait(&node->idle, &node->router, LS_FOREVER);
    return n;
}

int ls_off(ls_node *node, const char *event, ls_event_fn *fn, void *self)
{
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    struct event_entry *entry =
        event == NULL ? NULL : events_find(node, event, strlen(event));
    int n = 0;
    if (entry != NULL && fn != NULL) {
        ls_mutex_lock(&node->router);
        n = remove_listeners(node, entry, fn, self);
        ls_mutex_unlock(&node->router);
    }
    return n != 0 ? LS_OK
                  : ls_error(LS_ENOENT,
                             "event \"%s\" has no such listener on node %u",
                             event == NULL ? "" : event, node->options.id);
}

int ls_off_all(ls_node *node, const char *pattern)
{
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    int n = 0;
    for (size_t i = 0; i < EVENT_BUCKETS; i++) {
        struct event_entry *entry = atomic_load(&node->events[i]);
        for (; entry != NULL; entry = entry->next) {
            if (fnmatch(pattern, entry->name, 0) != 0)
                continue;
            ls_mutex_lock(&node->router);
            n += remove_listeners(node, entry, NULL, NULL);
            ls_mutex_unlock(&node->router);
        }
    }
    return n;
}

/* ---- wait_for ---------------------------------------------------------- */

struct waiter {
    ls_node *node;
    ls_event_fn *fn;
    void *self;
    bool came;
    int status;
    char text[LS_ERROR_TEXT_MAX];
};

static int came(void *self, const struct ls_event *event)
{
    struct waiter *w = self;
    int status = LS_OK;
    if (w->fn != NULL && (status = w->fn(w->self, event)) != LS_OK)
        memcpy(w->text, ls_error_text(), strlen(ls_error_text()) + 1);
    ls_mutex_lock(&w->node->router);
    w->came = true;
    w->status = status;
    ls_cond_broadcast(&w->node->idle);
    ls_mutex_unlock(&w->node->router);
    return LS_OK;
}

static int wait_locked(ls_node *node, const struct waiter *w, int64_t deadline)
{
    while (!w->came) {
        if (node_is_stopping(node))
            return LS_ECLOSED;
        if (node->error != LS_OK)
            return LS_EHANDLER;
        if (atomic_load(&node->dispatch.interrupted) != LS_OK)
            return atomic_load(&node->dispatch.interrupted);
        if (ls_cond_wait(&node->idle, &node->router, deadline) != LS_OK &&
            !w->came)
            return LS_ETIMEDOUT;
    }
    return w->status;
}

int ls_wait_for(ls_node *node, const char *event, int wait_ms, ls_event_fn *fn,
                void *self)
{
    if (dispatch_is_current(node))
        return ls_error(LS_ESTATE,
                        "a handler cannot wait for event \"%s\": "
                        "events are handled by its own thread",
                        event);
    const int64_t deadline = ls_deadline(node->runtime, wait_ms);
    struct waiter w = {.node = node, .fn = fn, .self = self};
    int status = ls_router_once(node, event, came, &w, "ls_wait_for");
    if (status != LS_OK)
        return status;
    ls_mutex_lock(&node->router);
    status = wait_locked(node, &w, deadline);
    struct event_entry *entry = events_find(node, event, strlen(event));
    if (!w.came) {
        /* What waits again soon must not miss what comes in between: the
         * subscription stays. */
        (void)remove_listeners(node, entry, came, &w);
        interest(node, entry, true);
        if (w.came) /* meanwhile: fn was running */
            status = w.status;
    }
    ls_mutex_unlock(&node->router);
    if (status == LS_EHANDLER && !w.came)
        return ls_node_take_error(node);
    if (status == LS_OK)
        return LS_OK;
    return ls_error(status, "waiting for event \"%s\": %s", event,
                    w.text[0] != '\0' ? w.text : ls_status_sentence(status));
}

void ls_router_interrupt(ls_node *node, int status)
{
    if (node_check(node) != LS_OK)
        return;
    ls_mutex_lock(&node->router);
    atomic_store(&node->dispatch.interrupted, status);
    ls_cond_broadcast(&node->idle);
    ls_mutex_unlock(&node->router);
    ls_mutex_lock(&node->dispatch.lock);
    ls_cond_broadcast(&node->dispatch.room);
    ls_mutex_unlock(&node->dispatch.lock);
    if (node->transport == NULL)
        return;
    transport_lock(node->transport);
    ls_cond_broadcast(&node->changed);
    transport_unlock(node->transport);
}

int ls_node_take_error(ls_node *node)
{
    char text[LS_ERROR_TEXT_MAX];
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    ls_mutex_lock(&node->router);
    const int status = node->error;
    memcpy(text, node->error_text, sizeof text);
    node->error = LS_OK;
    ls_mutex_unlock(&node->router);
    return status == LS_OK ? LS_OK : ls_error(status, "%s", text);
}

/* ---- settings and figures ---------------------------------------------- */

int ls_event_policy(ls_node *node, const char *event, enum ls_policy policy)
{
    if (!wire_name_valid(event) || (int)policy < LS_POLICY_DEFAULT ||
        policy > LS_POLICY_LATEST)
        return ls_error(LS_EINVAL, "no event name, or no policy");
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    struct event_entry *entry;
    const int status = events_get(node, event, strlen(event), true, &entry);
    if (status == LS_OK)
        entry->policy = policy;
    return status;
}

static int by_id(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

size_t ls_router_listeners(ls_node *node, const char *event, uint32_t *ids,
                           size_t capacity)
{
    const struct event_entry *entry = events_find(node, event, strlen(event));
    if (entry == NULL || node_check(node) != LS_OK)
        return 0;
    size_t n = 0;
    if (atomic_load(&entry->n_listeners) != 0) {
        if (n < capacity)
            ids[n] = node->options.id;
        n++;
    }
    if (node->transport != NULL) {
        transport_lock(node->transport);
        for (size_t i = 0; i < entry->n_remotes; i++) {
            const struct peer *peer = world_find(node, entry->remotes[i].id);
            if (peer == NULL || peer->member.state != LS_MEMBER_READY ||
                !member_shows(&peer->member, entry->remotes[i].link))
                continue;
            if (n < capacity)
                ids[n] = peer->member.id;
            n++;
        }
        transport_unlock(node->transport);
    }
    if (capacity != 0)
        qsort(ids, n < capacity ? n : capacity, sizeof *ids, by_id);
    return n;
}
