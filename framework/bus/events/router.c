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
    atomic_store(&node->table.interests_changed, true);
    if (node->transport != NULL)
        node_wake(node);
}

/* The entry that the listeners to an event, or to what a glob matches, are
 * kept in: of the latter, that of all names that begin as the glob does, up to
 * what has a meaning in it. Writes its name. */
static bool entry_name(const char *event, char name[LS_EVENT_MAX + 1])
{
    const size_t size = event == NULL ? 0 : strnlen(event, LS_EVENT_MAX + 1);
    const size_t plain = size == 0 ? 0 : strcspn(event, "*?[");
    if (size == 0 || size > LS_EVENT_MAX)
        return false;
    memcpy(name, event, size + 1);
    for (size_t i = plain; i < size; i++)
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '\\')
            return false;
    if (plain != size) {
        name[plain] = '*';
        name[plain + 1] = '\0';
    }
    return wire_filter_valid(name);
}

/* NULL: there is none. */
static struct event_entry *find_entry(const ls_node *node, const char *event)
{
    char name[LS_EVENT_MAX + 1];
    return entry_name(event, name) ? events_find(node, name, strlen(name))
                                   : NULL;
}

static int make_listener(struct listener **out, const char *event,
                         const char *label, bool is_prefix)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener != NULL && label != NULL)
        listener->label = strdup(label);
    if (listener != NULL && is_prefix)
        listener->glob = strdup(event);
    if (listener == NULL || (label != NULL && listener->label == NULL) ||
        (is_prefix && listener->glob == NULL)) {
        if (listener != NULL) {
            free(listener->label);
            free(listener->glob);
        }
        free(listener);
        return ls_error(LS_ENOMEM, "no memory for a listener");
    }
    *out = listener;
    return LS_OK;
}

static void append(ls_node *node, struct event_entry *entry,
                   struct listener *listener)
{
    struct listener **at = &entry->listeners;
    while (*at != NULL)
        at = &(*at)->next;
    *at = listener;
    atomic_fetch_add(&entry->n_listeners, 1);
    if (listener->glob != NULL)
        atomic_fetch_add(&node->table.n_globs, 1);
}

static int listen(ls_node *node, const char *event, ls_event_fn *fn, void *self,
                  const char *label, bool once, bool from_now)
{
    char name[LS_EVENT_MAX + 1];
    if (fn == NULL)
        return ls_error(LS_EINVAL, "event \"%s\": there is no handler",
                        event == NULL ? "" : event);
    if (!entry_name(event, name))
        return ls_error(LS_EINVAL,
                        "\"%s\" is neither an event name nor a glob: 1 to %d "
                        "printable characters without space and \\",
                        event == NULL ? "" : event, LS_EVENT_MAX);
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    if (node_is_stopping(node))
        return ls_error(LS_ECLOSED, "node %u is stopping", node->options.id);
    struct event_entry *entry;
    struct listener *listener = NULL;
    int status = events_get(node, name, strlen(name), true, &entry);
    if (status == LS_OK)
        status = make_listener(&listener, event, label, entry->is_prefix);
    if (status != LS_OK)
        return status;
    listener->fn = fn;
    listener->self = self;
    listener->once = once;
    listener->since = from_now ? dispatch_mark(node) : 0;
    ls_mutex_lock(&node->router.lock);
    append(node, entry, listener);
    const bool first = !entry->wanted;
    entry->begun = entry->begun || first;
    interest(node, entry, true);
    ls_mutex_unlock(&node->router.lock);
    if (first && node->transport != NULL)
        latest_here(node, entry);
    return LS_OK;
}

int router_listen_from_now(ls_node *node, const char *event, ls_event_fn *fn,
                           void *self, const char *label, bool once)
{
    return listen(node, event, fn, self, label, once, true);
}

int ls_on_named(ls_node *node, const char *event, ls_event_fn *fn, void *self,
                const char *label)
{
    return listen(node, event, fn, self, label, false, false);
}

int ls_once_named(ls_node *node, const char *event, ls_event_fn *fn, void *self,
                  const char *label)
{
    return listen(node, event, fn, self, label, true, false);
}

/* ---- off --------------------------------------------------------------- */

/* Take one listener out: it is freed here, or by the dispatch thread when it
 * runs just now. Router held. */
static void take_out(ls_node *node, struct event_entry *entry,
                     struct listener *listener)
{
    listener->removed = true;
    if (listener->running != 0)
        return;
    struct listener **at = &entry->listeners;
    while (*at != listener)
        at = &(*at)->next;
    *at = listener->next;
    events_free_listener(node, entry, listener);
}

static bool any_live(const struct event_entry *entry)
{
    for (const struct listener *l = entry->listeners; l != NULL; l = l->next)
        if (!l->removed)
            return true;
    return false;
}

/* Which listeners of an entry: the one that was given this event, fn and self;
 * or, without fn, those that were given what the glob `event` matches. */
struct choice {
    const char *event;
    ls_event_fn *fn;
    void *self;
};

static bool is_chosen(const struct event_entry *entry,
                      const struct listener *listener,
                      const struct choice *choice)
{
    const char *const given =
        listener->glob != NULL ? listener->glob : entry->name;
    if (choice->fn == NULL)
        return fnmatch(choice->event, given, 0) == 0 &&
               (strncmp(given, "ls.", 3) != 0 ||
                strncmp(choice->event, "ls.", 3) == 0);
    return listener->fn == choice->fn && listener->self == choice->self &&
           strcmp(given, choice->event) == 0;
}

static bool any_ending(const struct event_entry *entry,
                       const struct choice *choice)
{
    for (const struct listener *l = entry->listeners; l != NULL; l = l->next)
        if (l->removed && is_chosen(entry, l, choice))
            return true;
    return false;
}

/* Remove those that are chosen; waits until none of them runs for the last
 * time, a `once` too, unless called from a handler. Router held. */
static int remove_listeners(ls_node *node, struct event_entry *entry,
                            const struct choice *choice)
{
    int n = 0;
    for (struct listener *l = entry->listeners, *next; l != NULL; l = next) {
        next = l->next;
        if (l->removed || !is_chosen(entry, l, choice))
            continue;
        take_out(node, entry, l);
        n++;
        if (choice->fn != NULL)
            break;
    }
    if (n != 0 && !any_live(entry))
        interest(node, entry, false);
    int status = LS_OK;
    while (any_ending(entry, choice) && !dispatch_is_current(node) &&
           status == LS_OK)
        status =
            ls_cond_wait(&node->router.idle, &node->router.lock, LS_FOREVER);
    return n;
}

int ls_off(ls_node *node, const char *event, ls_event_fn *fn, void *self)
{
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    struct event_entry *entry = find_entry(node, event);
    const struct choice choice = {.event = event, .fn = fn, .self = self};
    int n = 0;
    if (event != NULL && entry != NULL && fn != NULL) {
        ls_mutex_lock(&node->router.lock);
        n = remove_listeners(node, entry, &choice);
        ls_mutex_unlock(&node->router.lock);
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
    const struct choice choice = {.event = pattern};
    int n = 0;
    if (pattern == NULL)
        return 0;
    for (struct event_entry *entry = NULL;
         (entry = events_next(node, entry)) != NULL;) {
        ls_mutex_lock(&node->router.lock);
        n += remove_listeners(node, entry, &choice);
        ls_mutex_unlock(&node->router.lock);
    }
    return n;
}

bool router_off_waiting(ls_node *node, const char *event, ls_event_fn *fn,
                        void *self)
{
    struct event_entry *entry = find_entry(node, event);
    const struct choice choice = {.event = event, .fn = fn, .self = self};
    const bool removed = remove_listeners(node, entry, &choice) != 0;
    interest(node, entry, true);
    return removed;
}

/* ---- settings and figures ---------------------------------------------- */

int ls_node_set_delivery(ls_node *node, const char *event,
                         enum ls_delivery delivery)
{
    if (!wire_name_valid(event))
        return wire_name_refused(event, "an event name");
    if ((int)delivery < LS_DELIVERY_DEFAULT || delivery >= N_DELIVERIES)
        return ls_error(LS_EINVAL, "event \"%s\": there is no delivery %d",
                        event, (int)delivery);
    if (node_check(node) != LS_OK)
        return LS_ESTATE;
    struct event_entry *entry;
    const int status = events_get(node, event, strlen(event), true, &entry);
    if (status == LS_OK)
        entry->delivery = delivery;
    return status;
}

static int by_id(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Add the ready members that listen to `entry`, the event's own or a prefix of
 * its name, and are not listed by one before it. Lock held. */
static size_t list_remotes(const ls_node *node, const struct event_entry *entry,
                           const struct event_entry *name, uint32_t *ids,
                           size_t n, size_t capacity)
{
    for (size_t i = 0; i < entry->n_remotes; i++) {
        const struct peer *peer = world_find(node, entry->remotes[i].id);
        if (peer == NULL || peer->member.state != LS_MEMBER_READY ||
            !member_shows(&peer->member, entry->remotes[i].link))
            continue;
        bool again = entry != name && events_names(name, peer);
        struct event_entry *prefix = NULL;
        while (entry != name && !again &&
               (prefix = events_prefix(node, name, prefix)) != entry)
            again = events_names(prefix, peer);
        if (again)
            continue;
        if (n < capacity)
            ids[n] = peer->member.id;
        n++;
    }
    return n;
}

size_t ls_node_listeners(ls_node *node, const char *event, uint32_t *ids,
                         size_t capacity)
{
    struct event_entry *entry = NULL, *prefix = NULL;
    if (node_check(node) != LS_OK || !wire_name_valid(event) ||
        events_get(node, event, strlen(event), true, &entry) != LS_OK)
        return 0;
    size_t n = 0;
    if (events_here(node, entry)) {
        if (n < capacity)
            ids[n] = node->options.id;
        n++;
    }
    if (node->transport != NULL) {
        transport_lock(node->transport);
        n = list_remotes(node, entry, entry, ids, n, capacity);
        while ((prefix = events_prefix(node, entry, prefix)) != NULL)
            n = list_remotes(node, prefix, entry, ids, n, capacity);
        transport_unlock(node->transport);
    }
    if (capacity != 0)
        qsort(ids, n < capacity ? n : capacity, sizeof *ids, by_id);
    return n;
}
