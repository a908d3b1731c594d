/* Short events in close succession share a frame.
 *
 * An emit that comes alone is published at once. One that comes on the heels
 * of another is put into the batch, and the bus thread is woken to publish it;
 * what comes until the bus thread gets there shares the frame, so the batch is
 * as large as the machine is busy, and no timer is needed. Other events, and
 * heartbeats with their accounts, are published behind it, so order holds. */
#include "bus.h"

#include <stdlib.h>
#include <string.h>

#define CLOSE_NS  (20 * LS_NS_PER_US) /* two emits so close share a frame */
#define RECENT_NS LS_NS_PER_MS

/* Returns false when there is no memory for it. */
static bool begin(ls_node *node, struct event_entry *entry, uint8_t flags,
                  uint64_t sequence)
{
    struct batch *batch = &node->batch;
    if (batch->bytes == NULL && (batch->bytes = malloc(BATCH_BYTES)) == NULL)
        return false;
    struct wire_header header = bus_header(node, WIRE_KIND_BATCH);
    header.sequence = sequence;
    header.flags = flags;
    memcpy(batch->bytes, entry->topic, entry->topic_size);
    batch->size = entry->topic_size;
    batch->size += wire_header_write(batch->bytes + batch->size, &header);
    batch->payloads = batch->size;
    batch->entry = entry;
    batch->flags = flags;
    batch->n = 0;
    node_wake(node);
    return true;
}

void batch_flush(ls_node *node)
{
    struct batch *batch = &node->batch;
    if (batch->entry == NULL)
        return;
    wire_batch_count(batch->bytes + batch->payloads, batch->n);
    if (transport_publish(node->transport, batch->bytes, batch->size, NULL,
                          0) != LS_OK)
        ls_log_error("bus: %u events \"%s\" were lost: %s", batch->n,
                     batch->entry->name, ls_error_text());
    batch->entry = NULL;
    batch->published_at = ls_now(node->runtime);
    if (batch->n > 1)
        batch->shared_at = batch->published_at;
}

bool batch_is_recent(const ls_node *node)
{
    const struct batch *batch = &node->batch;
    return batch->shared_at != 0 &&
           ls_now(node->runtime) - batch->shared_at < RECENT_NS;
}

static bool fits(const ls_node *node, const struct event_entry *entry,
                 uint8_t flags, size_t size)
{
    const struct batch *batch = &node->batch;
    return batch->entry == entry && batch->flags == flags &&
           batch->size + WIRE_BATCH_LEAD + size <= BATCH_BYTES;
}

bool batch_add(ls_node *node, struct event_entry *entry, uint8_t flags,
               uint64_t sequence, const void *data, size_t size)
{
    struct batch *batch = &node->batch;
    /* A hub relays message by message, in windows hop by hop. */
    const bool may = size <= WIRE_BATCH_PAYLOAD_MAX &&
                     node->options.topology != LS_TOPOLOGY_STAR;
    if (!may || !fits(node, entry, flags, size))
        batch_flush(node);
    if (!may)
        return false;
    if (batch->entry != entry) { /* there is none, now */
        const int64_t now = ls_now(node->runtime);
        const bool close = now - batch->published_at < CLOSE_NS;
        batch->published_at = now;
        if (!close || !begin(node, entry, flags, sequence))
            return false;
    }
    batch->size += wire_batch_write(batch->bytes + batch->size, data, size);
    batch->n++;
    return true;
}
