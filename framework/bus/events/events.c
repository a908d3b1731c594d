/* The table of event names: chains that only grow, so that lookups need no
 * lock. */
#include "delivery.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static uint16_t bucket_of(const char *name, size_t size)
{
    return (uint16_t)(XXH3_64bits(name, size) % EVENT_BUCKETS);
}

struct event_entry *events_find(const ls_node *node, const char *name,
                                size_t size)
{
    struct event_entry *entry = atomic_load_explicit(
        &node->table.buckets[bucket_of(name, size)], memory_order_acquire);
    for (; entry != NULL; entry = entry->next)
        if (entry->topic_size == size + 2 &&
            memcmp(entry->name, name, size) == 0)
            return entry;
    return NULL;
}

struct event_entry *events_next(const ls_node *node,
                                const struct event_entry *before)
{
    struct event_entry *entry = before == NULL ? NULL : before->next;
    for (size_t i = before == NULL ? 0 : before->bucket + 1u;
         entry == NULL && i < EVENT_BUCKETS; i++)
        entry = atomic_load(&node->table.buckets[i]);
    return entry;
}

bool events_begins(const struct event_entry *entry,
                   const struct event_entry *prefix)
{
    return !entry->is_prefix &&
           memcmp(entry->topic, prefix->topic, prefix->filter_size) == 0;
}

static void publish(ls_node *node, struct event_entry *entry, const char *name,
                    size_t size)
{
    memcpy(entry->name, name, size);
    entry->topic_size = wire_topic_event(entry->topic, entry->name);
    entry->filter_size = entry->topic_size;
    entry->is_prefix = name[size - 1] == '*';
    if (entry->is_prefix) {
        entry->filter_size -= 2; /* without the * and the NUL */
        entry->next_prefix = atomic_load(&node->table.prefixes);
        atomic_store(&node->table.prefixes, entry);
    }
    entry->bucket = bucket_of(name, size);
    _Atomic(struct event_entry *) *bucket = &node->table.buckets[entry->bucket];
    entry->next = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, entry, memory_order_release);
    node->table.n++;
}

int events_get(ls_node *node, const char *name, size_t size, bool own,
               struct event_entry **out)
{
    const size_t max = own ? MAX_EVENTS : MAX_EVENTS / 2;
    int status = LS_OK;
    *out = events_find(node, name, size);
    if (*out != NULL)
        return LS_OK;
    ls_mutex_lock(&node->router.lock);
    *out = events_find(node, name, size);
    if (*out == NULL && node->table.n >= max)
        status =
            ls_error(LS_ELIMIT,
                     "event \"%.*s\" is one name more than %zu%s, and a node "
                     "forgets none that was ever used: put what changes, "
                     "such as a number, into the data",
                     (int)size, name, max, own ? "" : " that others may bring");
    else if (*out == NULL && (*out = calloc(1, sizeof **out)) == NULL)
        status = ls_error(LS_ENOMEM, "no memory for an event");
    else if ((*out)->topic_size == 0)
        publish(node, *out, name, size);
    ls_mutex_unlock(&node->router.lock);
    return status;
}

/* ---- names that begin alike -------------------------------------------- */

struct event_entry *events_prefix(const ls_node *node,
                                  const struct event_entry *entry,
                                  struct event_entry *after)
{
    struct event_entry *at =
        after == NULL ? atomic_load(&node->table.prefixes) : after->next_prefix;
    while (at != NULL && (entry->is_prefix || memcmp(at->topic, entry->topic,
                                                     at->filter_size) != 0))
        at = at->next_prefix;
    return at;
}

struct event_entry *events_heard(ls_node *node, const char *name, size_t size)
{
    struct event_entry *entry = events_find(node, name, size);
    char copy[LS_EVENT_MAX + 1];
    if (entry != NULL && entry->is_prefix)
        return NULL; /* no event is named so */
    if (entry != NULL || atomic_load(&node->table.prefixes) == NULL ||
        size > LS_EVENT_MAX)
        return entry;
    memcpy(copy, name, size);
    copy[size] = '\0';
    if (strlen(copy) != size || !wire_name_valid(copy))
        return NULL;
    struct event_entry *prefix = atomic_load(&node->table.prefixes);
    while (prefix != NULL &&
           strncmp(prefix->name, copy, prefix->filter_size - 1) != 0)
        prefix = prefix->next_prefix;
    if (prefix != NULL && events_get(node, copy, size, false, &entry) != LS_OK)
        atomic_fetch_add(&node->table.nameless, 1);
    return entry;
}

bool events_suits(const struct listener *listener,
                  const struct event_entry *entry)
{
    return listener->glob == NULL ||
           (fnmatch(listener->glob, entry->name, 0) == 0 &&
            (!events_is_reserved(entry) ||
             strncmp(listener->glob, "ls.", 3) == 0));
}

bool events_any_globs(const ls_node *node)
{
    return atomic_load_explicit(&node->table.n_globs, memory_order_relaxed) !=
           0;
}

void events_unlistened(ls_node *node)
{
    node->table.unlistened = true;
}

bool events_here(const ls_node *node, const struct event_entry *entry)
{
    if (atomic_load_explicit(&entry->n_listeners, memory_order_relaxed) != 0)
        return true;
    if (!events_any_globs(node))
        return false;
    const struct event_entry *prefix = NULL;
    while ((prefix = events_prefix(node, entry,
                                   (struct event_entry *)prefix)) != NULL)
        if (atomic_load(&prefix->n_listeners) != 0)
            return true;
    return false;
}

void events_free_listener(ls_node *node, struct event_entry *entry,
                          struct listener *listener)
{
    atomic_fetch_sub(&entry->n_listeners, 1);
    if (listener->glob != NULL)
        atomic_fetch_sub(&node->table.n_globs, 1);
    free(listener->glob);
    free(listener->label);
    free(listener);
}

/* ---- the end ----------------------------------------------------------- */

static void entry_free(ls_node *node, struct event_entry *entry)
{
    while (entry->listeners != NULL) {
        struct listener *listener = entry->listeners;
        entry->listeners = listener->next;
        events_free_listener(node, entry, listener);
    }
    free(entry->remotes);
    free(entry->targets.at);
    free(entry->receivers.at);
    free(entry->origins);
    free(entry->records);
    payload_drop(entry->latest);
    event_access_free(entry->access);
    free(entry);
}

void events_free(ls_node *node)
{
    struct event_entry *entry = events_next(node, NULL);
    while (entry != NULL) {
        struct event_entry *next = events_next(node, entry);
        entry_free(node, entry);
        entry = next;
    }
}

/* A connection is of one link, with one number: who says otherwise would take
 * the places of others. */
static bool listens_already(const struct event_entry *entry, uint32_t id,
                            uint64_t connection)
{
    for (size_t i = 0; i < entry->n_remotes && connection != 0; i++) {
        const struct remote_listener *remote = &entry->remotes[i];
        if (remote->id == id && remote->connection == connection &&
            remote->n != 0)
            return true;
    }
    return false;
}

int events_remote(ls_node *node, struct event_entry *entry,
                  const struct wire_listen *listen, uint64_t connection,
                  bool listens, enum listening *how)
{
    size_t i = 0;
    *how = LISTENING_ENDS;
    if (entry->is_prefix)
        node->world.version++; /* to many entries */
    while (i < entry->n_remotes && (entry->remotes[i].id != listen->id ||
                                    entry->remotes[i].link != listen->link))
        i++;
    entry->targets_version = 0;
    if (i < entry->n_remotes) {
        struct remote_listener *remote = &entry->remotes[i];
        const struct peer *peer = world_find(node, listen->id);
        /* Twice over one connection, of which only one end will be told. */
        if (listens && remote->n != 0 && connection != 0 &&
            remote->connection == connection)
            return LS_OK;
        if (listens && remote->n == 0 && peer != NULL &&
            member_is_here(&peer->member)) {
            latest_again(node, entry, listen->id);
            *how = LISTENING_ANEW;
        }
        if (listens)
            remote->connection = connection;
        if (listens || remote->n != 0)
            remote->n += listens ? 1u : 0u - 1u;
        node->table.unlistened = node->table.unlistened || remote->n == 0;
        return LS_OK;
    }
    if (!listens)
        return LS_OK; /* the end of one that was refused */
    if (listens_already(entry, listen->id, connection))
        return ls_error(LS_EPROTO,
                        "node %u listens to event \"%s\" over two links that "
                        "are one connection",
                        listen->id, entry->name);
    if (entry->n_remotes == MAX_LISTENERS)
        return ls_error(LS_ELIMIT, "more than %d listen to event \"%s\"",
                        MAX_LISTENERS, entry->name);
    struct remote_listener *grown =
        realloc(entry->remotes, (entry->n_remotes + 1) * sizeof *grown);
    if (grown == NULL)
        return ls_error(LS_ENOMEM, "no memory for a listener");
    grown[entry->n_remotes++] =
        (struct remote_listener){listen->id, listen->link, connection, 1};
    entry->remotes = grown;
    *how = LISTENING_BEGINS;
    return LS_OK;
}

/* Whether it is a listening of this member, as it is now: over a link that only
 * the member and this node know. */
static bool is_of(const struct remote_listener *remote,
                  const struct member *member)
{
    return member != NULL && !member_has_ended(member) &&
           member_shows(member, remote->link);
}

/* When a connection breaks, all that was subscribed over it is taken back, the
 * presence last. So what was taken back by one that is away now it had not
 * stopped listening to; nor by one that is not ready here yet, but is to the
 * other leaves of this hub. */
static bool may_come_back(const struct remote_listener *remote,
                          const struct peer *peer)
{
    return peer != NULL && is_of(remote, &peer->member) &&
           (peer->member.away_at != 0 ||
            (peer->member.n_present == 0 && peer->relayed));
}

static void sweep(ls_node *node, struct event_entry *entry)
{
    for (size_t i = entry->n_remotes; i-- > 0;) {
        const struct remote_listener remote = entry->remotes[i];
        struct peer *peer = world_find(node, remote.id);
        if (remote.n != 0 || may_come_back(&remote, peer))
            continue;
        entry->remotes[i] = entry->remotes[--entry->n_remotes];
        entry->targets_version = 0;
        if (entry->is_prefix)
            node->world.version++;
        if (peer == NULL || !is_of(&remote, &peer->member))
            continue;
        latest_again(node, entry, peer->member.id);
        if (node->me.hub && peer->relayed)
            relay_listen(node, peer, entry, LISTENING_ENDS);
    }
}

void events_sweep(ls_node *node)
{
    if (!node->table.unlistened)
        return;
    node->table.unlistened = false;
    for (struct event_entry *entry = NULL;
         (entry = events_next(node, entry)) != NULL;)
        sweep(node, entry);
}

static bool grow(struct targets *targets, size_t n)
{
    if (targets->capacity >= n)
        return true;
    struct peer **grown = realloc(targets->at, n * sizeof(*grown));
    if (grown == NULL)
        return false; /* as before; tried again at the next emit */
    targets->at = grown;
    targets->capacity = n;
    return true;
}

bool events_names(const struct event_entry *entry, const struct peer *peer)
{
    for (size_t i = 0; i < entry->n_remotes; i++)
        if (entry->remotes[i].id == peer->member.id &&
            is_of(&entry->remotes[i], &peer->member))
            return true;
    return false;
}

bool events_listens(const ls_node *node, const struct event_entry *entry,
                    const struct peer *peer)
{
    bool listens = events_names(entry, peer);
    struct event_entry *prefix = NULL;
    while (!listens && (prefix = events_prefix(node, entry, prefix)) != NULL)
        listens = events_names(prefix, peer);
    return listens;
}

bool events_is_reserved(const struct event_entry *entry)
{
    return strncmp(entry->name, "ls.", 3) == 0;
}

/* Add a peer once. */
static void add_target(struct targets *targets, struct peer *peer)
{
    for (size_t i = 0; i < targets->n; i++)
        if (targets->at[i] == peer)
            return;
    targets->at[targets->n++] = peer;
}

static void add_targets(ls_node *node, struct event_entry *entry,
                        const struct event_entry *of)
{
    for (size_t i = 0; i < of->n_remotes; i++) {
        const struct remote_listener *remote = &of->remotes[i];
        struct member *member = membership_find(&node->world, remote->id);
        if (!is_of(remote, member) || member->state != LS_MEMBER_READY)
            continue;
        if (remote->n != 0 || member->away_at != 0)
            add_target(&entry->receivers, peer_of(member));
        struct peer *direct = peer_direct(peer_of(member));
        if (remote->n != 0 && member_is_here(member) && direct->hop != NULL)
            add_target(&entry->targets, direct);
    }
}

void events_targets(ls_node *node, struct event_entry *entry)
{
    if (entry->targets_version == node->world.version)
        return;
    size_t n = entry->n_remotes;
    struct event_entry *prefix = NULL;
    while ((prefix = events_prefix(node, entry, prefix)) != NULL)
        n += prefix->n_remotes;
    if (!grow(&entry->targets, n) || !grow(&entry->receivers, n))
        return;
    entry->targets.n = entry->receivers.n = 0;
    add_targets(node, entry, entry);
    while ((prefix = events_prefix(node, entry, prefix)) != NULL)
        add_targets(node, entry, prefix);
    entry->targets_version = node->world.version;
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

/* What is known of the sender of this, in this life; NULL: no memory. */
static struct origin_sequence *origin_now(ls_node *node,
                                          struct event_entry *entry,
                                          const struct wire_header *header)
{
    struct origin_sequence *o = origin_of(node, entry, header->origin);
    if (o != NULL && o->incarnation != header->incarnation) {
        transport_lock(node->transport); /* latest_resolve() looks */
        o->incarnation = header->incarnation;
        memset(o->last, 0, sizeof o->last);
        transport_unlock(node->transport);
    }
    return o;
}

bool events_sequence(ls_node *node, struct event_entry *entry,
                     const struct wire_header *header, uint64_t n)
{
    const uint64_t sequence = header->sequence;
    if (sequence == 0)
        return true;
    struct origin_sequence *o = origin_now(node, entry, header);
    if (o == NULL)
        return true;
    uint64_t *last = &o->last[delivery_of(header)];
    if (sequence + n - 1 <= *last)
        return false;
    if (*last != 0 && sequence > *last + 1) {
        transport_lock(node->transport);
        o->missed += sequence - *last - 1;
        node->figures.stats.missed += sequence - *last - 1;
        transport_unlock(node->transport);
    }
    *last = sequence + n - 1;
    return true;
}

bool events_is_new(ls_node *node, struct event_entry *entry,
                   const struct wire_header *header)
{
    if (header->sequence == 0)
        return true;
    const struct origin_sequence *o = origin_now(node, entry, header);
    return o == NULL || header->sequence > o->last[delivery_of(header)];
}

bool events_stream_sequence(ls_node *node, struct event_entry *entry,
                            const struct wire_header *header)
{
    if (header->sequence == 0)
        return true;
    struct origin_sequence *o = origin_now(node, entry, header);
    if (o == NULL)
        return true;
    transport_lock(node->transport);
    uint64_t *last = &o->last[delivery_of(header)];
    const bool is_new = header->sequence > *last;
    if (is_new)
        *last = header->sequence;
    transport_unlock(node->transport);
    return is_new;
}

void events_missed(ls_node *node, struct event_entry *entry, uint32_t origin)
{
    for (size_t i = 0; i < entry->n_origins; i++)
        if (entry->origins[i].id == origin)
            entry->origins[i].missed++;
    node->figures.stats.missed++;
}
