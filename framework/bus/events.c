/* The table of event names: chains that only grow, so that lookups need no
 * lock. */
#include "bus.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static size_t bucket_of(const char *name, size_t size)
{
    return (size_t)(XXH3_64bits(name, size) % EVENT_BUCKETS);
}

struct event_entry *events_find(const ls_node *node, const char *name,
                                size_t size)
{
    struct event_entry *entry = atomic_load_explicit(
        &node->events[bucket_of(name, size)], memory_order_acquire);
    for (; entry != NULL; entry = entry->next)
        if (entry->topic_size == size + 2 &&
            memcmp(entry->name, name, size) == 0)
            return entry;
    return NULL;
}

static void publish(ls_node *node, struct event_entry *entry, const char *name,
                    size_t size)
{
    memcpy(entry->name, name, size);
    entry->topic_size = wire_topic_event(entry->topic, entry->name);
    _Atomic(struct event_entry *) *bucket =
        &node->events[bucket_of(name, size)];
    entry->next = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, entry, memory_order_release);
    node->n_events++;
}

int events_get(ls_node *node, const char *name, size_t size, bool own,
               struct event_entry **out)
{
    const size_t max = own ? MAX_EVENTS : MAX_EVENTS / 2;
    int status = LS_OK;
    *out = events_find(node, name, size);
    if (*out != NULL)
        return LS_OK;
    ls_mutex_lock(&node->router);
    *out = events_find(node, name, size);
    if (*out == NULL && node->n_events >= max)
        status = ls_error(LS_ELIMIT, "more than %zu event names", max);
    else if (*out == NULL && (*out = calloc(1, sizeof **out)) == NULL)
        status = ls_error(LS_ENOMEM, "no memory for an event");
    else if ((*out)->topic_size == 0)
        publish(node, *out, name, size);
    ls_mutex_unlock(&node->router);
    return status;
}

static void entry_free(struct event_entry *entry)
{
    while (entry->listeners != NULL) {
        struct listener *listener = entry->listeners;
        entry->listeners = listener->next;
        free(listener);
    }
    free(entry->remotes);
    free(entry->targets);
    free(entry->origins);
    free(entry);
}

void events_free(ls_node *node)
{
    for (size_t i = 0; i < EVENT_BUCKETS; i++) {
        struct event_entry *entry = atomic_load(&node->events[i]);
        while (entry != NULL) {
            struct event_entry *next = entry->next;
            entry_free(entry);
            entry = next;
        }
    }
}

int events_remote(ls_node *node, struct event_entry *entry, uint32_t id,
                  uint64_t incarnation, bool listens)
{
    size_t i = 0;
    while (i < entry->n_remotes &&
           (entry->remotes[i].id != id ||
            entry->remotes[i].incarnation != incarnation))
        i++;
    entry->targets_version = 0;
    if (i < entry->n_remotes) {
        if (listens || entry->remotes[i].n != 0)
            entry->remotes[i].n += listens ? 1u : 0u - 1u;
        node->unlistened = node->unlistened || entry->remotes[i].n == 0;
        return LS_OK;
    }
    if (!listens)
        return LS_OK; /* the end of one that was refused */
    if (entry->n_remotes == MAX_PEERS)
        return ls_error(LS_ELIMIT, "more than %d listen to event \"%s\"",
                        MAX_PEERS, entry->name);
    struct remote_listener *grown =
        realloc(entry->remotes, (entry->n_remotes + 1) * sizeof *grown);
    if (grown == NULL)
        return ls_error(LS_ENOMEM, "no memory for a listener");
    grown[entry->n_remotes++] = (struct remote_listener){id, incarnation, 1};
    entry->remotes = grown;
    return LS_OK;
}

/* When a connection breaks, all that was subscribed over it is taken back, the
 * presence last. So what was taken back by one that is away now it had not
 * stopped listening to. */
static void sweep(ls_node *node, struct event_entry *entry)
{
    size_t n = 0;
    for (size_t i = 0; i < entry->n_remotes; i++) {
        const struct remote_listener *remote = &entry->remotes[i];
        const struct peer *peer = world_find(node, remote->id);
        if (remote->n != 0 || (peer != NULL && peer->away_at != 0 &&
                               peer->incarnation == remote->incarnation))
            entry->remotes[n++] = *remote;
    }
    entry->n_remotes = n;
}

void events_sweep(ls_node *node)
{
    if (!node->unlistened)
        return;
    node->unlistened = false;
    for (size_t i = 0; i < EVENT_BUCKETS; i++) {
        struct event_entry *entry = atomic_load(&node->events[i]);
        for (; entry != NULL; entry = entry->next)
            sweep(node, entry);
    }
}

void events_targets(ls_node *node, struct event_entry *entry)
{
    if (entry->targets_version == node->world_version)
        return;
    if (entry->targets_capacity < entry->n_remotes) {
        struct peer **grown =
            realloc(entry->targets, entry->n_remotes * sizeof(*grown));
        if (grown == NULL)
            return; /* as before; tried again at the next emit */
        entry->targets = grown;
        entry->targets_capacity = entry->n_remotes;
    }
    size_t n = 0;
    for (size_t i = 0; i < entry->n_remotes; i++) {
        struct peer *peer = world_find(node, entry->remotes[i].id);
        if (peer == NULL || !member_hears(peer) || entry->remotes[i].n == 0 ||
            peer->incarnation != entry->remotes[i].incarnation)
            continue;
        struct peer *direct = peer->via != NULL ? peer->via : peer;
        size_t j = 0;
        while (j < n && entry->targets[j] != direct)
            j++;
        entry->targets[j] = direct;
        n = j < n ? n : n + 1;
    }
    entry->n_targets = n;
    entry->targets_version = node->world_version;
}

static struct origin_sequence *origin_of(ls_node *node,
                                         struct event_entry *entry, uint32_t id)
{
    for (size_t i = 0; i < entry->n_origins; i++)
        if (entry->origins[i].id == id)
            return &entry->origins[i];
    transport_lock(node->transport);
    struct origin_sequence *grown =
        realloc(entry->origins, (entry->n_origins + 1) * sizeof *grown);
    if (grown != NULL) {
        entry->origins = grown;
        grown[entry->n_origins] = (struct origin_sequence){.id = id};
        grown = &grown[entry->n_origins++];
    }
    transport_unlock(node->transport);
    return grown;
}

void events_sequence(ls_node *node, struct event_entry *entry, uint32_t origin,
                     uint64_t incarnation, uint64_t sequence)
{
    if (sequence == 0)
        return;
    struct origin_sequence *o = origin_of(node, entry, origin);
    if (o == NULL)
        return;
    if (o->incarnation != incarnation) {
        o->incarnation = incarnation;
        o->last = 0;
    }
    if (o->last != 0 && sequence > o->last + 1) {
        transport_lock(node->transport);
        o->missed += sequence - o->last - 1;
        node->stats.missed += sequence - o->last - 1;
        transport_unlock(node->transport);
    }
    if (sequence > o->last)
        o->last = sequence;
}
