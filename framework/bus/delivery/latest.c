/* Policy latest: one value per event, which every listener gets for the
 * present: when it changes, and when the listener appears.
 *
 * A value goes through the listener's stream, the next one only when that one
 * is acknowledged: so what is not sent yet is replaced, what is lost comes
 * again, and nobody ever goes back to an older one. */
#include "delivery.h"

#include <string.h>

void latest_set(ls_node *node, struct event_entry *entry,
                struct payload *payload)
{
    if (entry->latest == NULL) {
        entry->next_latest = node->latest;
        node->latest = entry;
    }
    payload_drop(entry->latest);
    entry->latest = payload;
    entry->sequences[LS_DELIVERY_LATEST]++;
}

void latest_close(ls_node *node)
{
    for (struct event_entry *entry = node->latest; entry != NULL;
         entry = entry->next_latest) {
        payload_drop(entry->latest);
        entry->latest = NULL;
    }
    node->latest = NULL;
}

static int push(ls_node *node, struct peer *peer, struct event_entry *entry)
{
    const size_t size = payload_size(entry->latest);
    const size_t piece = streams_piece(peer);
    size_t at = 0;
    int status;
    do {
        const bool is_long = size > piece;
        struct parcel parcel = {
            .payload = entry->latest,
            .offset = at,
            .size = size - at > piece ? piece : size - at,
            .of = is_long ? WIRE_KIND_CHUNK : WIRE_KIND_EVENT,
            .how = &deliveries[LS_DELIVERY_LATEST],
            .sequence = entry->sequences[LS_DELIVERY_LATEST],
            .entry = entry};
        status = streams_push(node, peer, &parcel);
        at += parcel.size;
    } while (status == LS_OK && at < size);
    return status;
}

/* What cannot be pushed is pushed when something is acknowledged: without
 * streams nothing is. */
static void set_waits(struct peer *peer, bool waits)
{
    struct peer_streams *streams = streams_of(peer);
    if (streams != NULL)
        streams->latest_waits = waits;
}

static bool has_acknowledged(const struct peer *peer, uint64_t number)
{
    const struct peer_streams *streams = streams_of(peer);
    return streams == NULL || streams->out.base > number;
}

static void offer(ls_node *node, struct peer *peer, struct event_entry *entry)
{
    struct receiver_record *record = losses_record(entry, peer->member.id);
    if (record == NULL)
        return;
    if (record->latest_incarnation != peer->member.incarnation) {
        record->latest_incarnation = peer->member.incarnation;
        record->latest_sequence = record->latest_number = 0;
    }
    if (record->latest_sequence == entry->sequences[LS_DELIVERY_LATEST])
        return;
    const size_t size = payload_size(entry->latest);
    if (!has_acknowledged(peer, record->latest_number) ||
        !streams_room(peer,
                      size < WIRE_CHUNK_BYTES ? size : WIRE_CHUNK_BYTES) ||
        push(node, peer, entry) != LS_OK) {
        set_waits(peer, true);
        return;
    }
    record->latest_sequence = entry->sequences[LS_DELIVERY_LATEST];
    record->latest_number = streams_of(peer)->out.next - 1;
}

void latest_offer(ls_node *node, struct peer *peer)
{
    set_waits(peer, false);
    if (peer->member.state != LS_MEMBER_READY)
        return;
    for (struct event_entry *entry = node->latest; entry != NULL;
         entry = entry->next_latest)
        if (events_listens(node, entry, peer))
            offer(node, peer, entry);
}

void latest_joined(ls_node *node, const struct event_entry *entry,
                   struct peer *peer)
{
    if (entry == NULL || entry->latest != NULL || entry->is_prefix)
        latest_offer(node, peer);
}

static void again(struct event_entry *entry, uint32_t id)
{
    struct receiver_record *record =
        entry->latest == NULL ? NULL : losses_record(entry, id);
    if (record != NULL)
        record->latest_sequence = 0;
}

void latest_again(const ls_node *node, struct event_entry *of, uint32_t id)
{
    struct event_entry *each = of->is_prefix ? node->latest : NULL;
    if (!of->is_prefix)
        again(of, id);
    for (; each != NULL; each = each->next_latest)
        if (events_begins(each, of))
            again(each, id);
}

void latest_forget(ls_node *node, const struct peer *peer)
{
    for (struct event_entry *entry = node->latest; entry != NULL;
         entry = entry->next_latest)
        again(entry, peer->member.id);
}

/* ---- here -------------------------------------------------------------- */

int latest_queue(ls_node *node, struct event_entry *entry, bool anew)
{
    transport_lock(node->transport);
    if (anew)
        entry->latest_handled = 0;
    const bool queued = entry->latest_queued || entry->latest == NULL;
    entry->latest_queued = entry->latest != NULL;
    transport_unlock(node->transport);
    if (queued)
        return LS_OK;
    struct message *message = message_take_one(node->pool);
    if (message == NULL) {
        transport_lock(node->transport);
        entry->latest_queued = false;
        transport_unlock(node->transport);
        return ls_error(LS_ENOMEM, "no memory for an event");
    }
    message->latest = true; /* and of no peer: it stands for the value */
    message->entry = entry;
    message->event.name = entry->name;
    message->event.origin = node->options.id;
    message->event.incarnation = node->me.incarnation;
    dispatch_append(node, message);
    return LS_OK;
}

static bool is_wanted(ls_node *node, const struct event_entry *entry)
{
    ls_mutex_lock(&node->router.lock);
    const bool wanted = entry->wanted;
    ls_mutex_unlock(&node->router.lock);
    return wanted;
}

void latest_here(ls_node *node, struct event_entry *of)
{
    struct event_entry *entry = NULL;
    int status = of->is_prefix ? LS_OK : latest_queue(node, of, true);
    while (of->is_prefix && status == LS_OK &&
           (entry = events_next(node, entry)) != NULL)
        if (events_begins(entry, of) && !is_wanted(node, entry))
            status = latest_queue(node, entry, true);
    if (status != LS_OK)
        ls_log_warn("bus: event \"%s\": no memory for its current value",
                    of->name);
}

bool latest_resolve(ls_node *node, struct message *message)
{
    struct event_entry *entry = message->entry;
    bool handle = true;
    transport_lock(node->transport);
    if (message->peer != NULL) {
        /* Not when a later one waits behind it. */
        for (size_t i = 0; i < entry->n_origins; i++)
            if (entry->origins[i].id == message->event.origin &&
                entry->origins[i].incarnation == message->event.incarnation)
                handle = message->event.sequence >=
                         entry->origins[i].last[LS_DELIVERY_LATEST];
    } else if (entry->latest != NULL &&
               entry->sequences[LS_DELIVERY_LATEST] > entry->latest_handled) {
        struct payload *payload = payload_share(entry->latest);
        message->event.data = payload_data(payload);
        message->event.size = payload_size(payload);
        message->event.sequence = entry->sequences[LS_DELIVERY_LATEST];
        message->owned = payload;
        message->release = payload_released;
        message->hint = payload;
        entry->latest_handled = entry->sequences[LS_DELIVERY_LATEST];
    } else {
        handle = false;
    }
    if (message->peer == NULL)
        entry->latest_queued = false;
    transport_unlock(node->transport);
    return handle;
}
