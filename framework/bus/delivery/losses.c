/* What was lost between whom, and who is slow. */
#include "bus.h"

#include <stdlib.h>
#include <string.h>

#define SLOW_NS     LS_NS_PER_S        /* without room so long is slow */
#define REMINDED_NS (10 * LS_NS_PER_S) /* a line about one peer, at most */

struct receiver_record *losses_record(struct event_entry *entry, uint32_t id)
{
    for (size_t i = 0; i < entry->n_records; i++)
        if (entry->records[i].id == id)
            return &entry->records[i];
    struct receiver_record *grown =
        realloc(entry->records, (entry->n_records + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    entry->records = grown;
    grown += entry->n_records++;
    *grown = (struct receiver_record){.id = id};
    return grown;
}

/* ---- who is slow ------------------------------------------------------- */

static bool remind(struct slowness *slow, int64_t since, int64_t now)
{
    if (now - since < SLOW_NS ||
        (slow->warned_at != 0 && now - slow->warned_at < REMINDED_NS))
        return false;
    slow->warned_at = now;
    return true;
}

int64_t losses_waiting(const struct event_entry *entry, struct peer *peer,
                       int64_t since, int64_t now)
{
    struct slowness *slow = &peer->slow;
    if (now - since < SLOW_NS)
        return since + SLOW_NS;
    if (remind(slow, since, now))
        ls_log_warn("bus: node %u%s is slow: an emit of event \"%s\" has "
                    "waited %.1f s for room there",
                    peer->member.id, peer->member.as_role, entry->name,
                    (double)(now - since) / (double)LS_NS_PER_S);
    return slow->warned_at + REMINDED_NS;
}

void losses_dropped_here(ls_node *node, struct event_entry *entry)
{
    atomic_fetch_add(&node->figures.dropped_here, 1);
    if (node->transport == NULL)
        return;
    transport_lock(node->transport);
    struct receiver_record *record = losses_record(entry, node->options.id);
    if (record != NULL)
        record->dropped++;
    transport_unlock(node->transport);
}

void losses_dropped(ls_node *node, struct event_entry *entry, struct peer *peer)
{
    struct slowness *slow = &peer->slow;
    struct receiver_record *record = losses_record(entry, peer->member.id);
    const int64_t now = ls_now(node->runtime);
    node->figures.stats.dropped++;
    if (record != NULL)
        record->dropped++;
    if (slow->seen == 0 || now - slow->seen > SLOW_NS) {
        slow->since = now;
        slow->dropped = 0;
    } else {
        slow->waited_ns += now - slow->seen;
    }
    slow->seen = now;
    slow->dropped++;
    if (remind(slow, slow->since, now))
        ls_log_warn("bus: node %u%s is slow: it missed %llu events in the "
                    "last %.1f s, \"%s\" among them",
                    peer->member.id, peer->member.as_role,
                    (unsigned long long)slow->dropped,
                    (double)(now - slow->since) / (double)LS_NS_PER_S,
                    entry->name);
}

void losses_unacknowledged(ls_node *node, struct event_entry *entry,
                           const struct peer *peer)
{
    /* Whoever leaves has no more use for what the framework tells it. */
    if (peer->member.state == LS_MEMBER_LEFT && events_is_reserved(entry))
        return;
    struct receiver_record *record = losses_record(entry, peer->member.id);
    node->figures.stats.unacknowledged++;
    if (record != NULL)
        record->unacknowledged++;
}

/* ---- telling ----------------------------------------------------------- */

void ls_node_stats(ls_node *node, struct ls_node_stats *out)
{
    *out = (struct ls_node_stats){0};
    if (node_check(node) != LS_OK)
        return;
    if (node->transport != NULL) {
        transport_lock(node->transport);
        *out = node->figures.stats;
        out->refused = node->refusals.total;
        out->blocks_held = blocks_held(node);
        out->missed += atomic_load(&node->table.nameless);
        for (size_t i = 0; i < node->world.n; i++) {
            const struct peer *peer = world_at(node, i);
            if (peer->slow.waited_ns <= out->slowest_ns)
                continue;
            out->slowest = peer->member.id;
            out->slowest_ns = peer->slow.waited_ns;
        }
        transport_unlock(node->transport);
    }
    out->emitted = atomic_load(&node->figures.emitted);
    out->handled = atomic_load(&node->figures.handled);
    out->received = atomic_load(&node->figures.received);
    out->received_bytes = atomic_load(&node->figures.received_bytes);
    out->repeated = atomic_load(&node->figures.repeated);
    out->early = atomic_load(&node->figures.early);
    out->dropped += atomic_load(&node->figures.dropped_here);
    ls_mutex_lock(&node->dispatch.lock);
    out->queued = node->dispatch.queue.n;
    out->queued_peak = node->dispatch.peak;
    ls_mutex_unlock(&node->dispatch.lock);
}

struct rows {
    struct ls_node_loss *out;
    size_t capacity, n;
};

static void add(struct rows *rows, const struct event_entry *entry,
                struct ls_node_loss row)
{
    if (row.dropped == 0 && row.missed == 0 && row.unacknowledged == 0)
        return;
    if (rows->n < rows->capacity) {
        memcpy(row.event, entry->name, sizeof row.event);
        rows->out[rows->n] = row;
    }
    rows->n++;
}

size_t ls_node_losses(ls_node *node, struct ls_node_loss *out, size_t capacity)
{
    struct rows rows = {out, capacity, 0};
    const uint32_t self = node->options.id;
    if (node->transport == NULL || node_check(node) != LS_OK)
        return 0;
    transport_lock(node->transport);
    const struct event_entry *entry = NULL;
    while ((entry = events_next(node, entry)) != NULL) {
        for (size_t j = 0; j < entry->n_records; j++)
            add(&rows, entry,
                (struct ls_node_loss){.sender = self,
                                      .receiver = entry->records[j].id,
                                      .dropped = entry->records[j].dropped,
                                      .unacknowledged =
                                          entry->records[j].unacknowledged});
        for (size_t j = 0; j < entry->n_origins; j++)
            add(&rows, entry,
                (struct ls_node_loss){.sender = entry->origins[j].id,
                                      .receiver = self,
                                      .missed = entry->origins[j].missed});
    }
    transport_unlock(node->transport);
    return rows.n;
}
