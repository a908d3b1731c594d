/* Long events come in chunks, in order over one connection, and are put
 * together here.
 *
 * The sender's window holds at most half of itself, in messages and in bytes,
 * for those that are not whole yet; chunks beyond that are done with as soon as
 * they are copied, or an event larger than the window could never be whole. */
#include "assembly.h"

#include <stdlib.h>
#include <string.h>

#define MAX_AT_ONCE 64 /* long events of one node */

static struct assembly **find(ls_node *node, const struct peer *origin,
                              const struct event_entry *entry, bool stream)
{
    struct assembly **at = &node->assemblies;
    while (*at != NULL && ((*at)->origin != origin || (*at)->entry != entry ||
                           (*at)->stream != stream))
        at = &(*at)->next;
    return at;
}

static void give_up(ls_node *node, struct assembly **at)
{
    struct assembly *a = *at;
    *at = a->next;
    if (a->held.messages != 0) {
        transport_lock(node->transport);
        flow_release(node, a->direct, a->held.messages, a->held.bytes);
        transport_unlock(node->transport);
    }
    free(a->data);
    free(a);
}

static size_t n_of(const ls_node *node, const struct peer *origin)
{
    size_t n = 0;
    for (const struct assembly *a = node->assemblies; a != NULL; a = a->next)
        n += a->origin == origin ? 1 : 0;
    return n;
}

static struct assembly *begin(ls_node *node, struct peer *origin,
                              struct peer *direct, struct event_entry *entry,
                              const struct wire_header *header)
{
    if (header->total > node->options.max_payload_bytes ||
        n_of(node, origin) == MAX_AT_ONCE) {
        (void)ls_error(LS_ELIMIT,
                       "event \"%s\" of %u bytes: that is over "
                       "max_payload_bytes, or one of more than %d long ones "
                       "at once",
                       entry->name, header->total, MAX_AT_ONCE);
        bus_refuse_member(node, &origin->member, LS_REFUSAL_WINDOW);
        return NULL;
    }
    struct assembly *a = calloc(1, sizeof *a);
    if (a == NULL || (a->data = malloc(header->total)) == NULL) {
        free(a);
        return NULL;
    }
    a->origin = origin;
    a->direct = direct;
    a->entry = entry;
    a->sequence = header->sequence;
    a->total = header->total;
    a->stream = header->kind == WIRE_KIND_RELIABLE;
    a->next = node->assemblies;
    node->assemblies = a;
    return a;
}

static struct message *finish(ls_node *node, struct assembly **at)
{
    struct assembly *a = *at;
    struct message *message = bus_take(node);
    if (message == NULL) {
        give_up(node, at);
        return NULL;
    }
    *at = a->next;
    message->owned = a->data;
    message->event.data = a->data;
    message->event.size = a->total;
    message->held_bytes = a->held.bytes;
    message->held_messages = (unsigned)a->held.messages;
    free(a);
    return message;
}

/* Whether one more chunk may be held in the window of a peer. */
static bool may_hold(const ls_node *node, const struct peer *direct,
                     size_t size)
{
    const struct ls_node_options *o = &node->options;
    struct account held = {1, size};
    for (const struct assembly *a = node->assemblies; a != NULL; a = a->next) {
        if (a->direct != direct)
            continue;
        held.messages += a->held.messages;
        held.bytes += a->held.bytes;
    }
    return held.messages <= o->window_messages / 2 &&
           held.bytes <= o->window_bytes / 2;
}

struct message *assembly_add(ls_node *node, struct peer *origin,
                             struct peer *direct, struct event_entry *entry,
                             const struct wire_header *header,
                             const uint8_t *data, size_t size, bool *keep)
{
    const bool in_window = *keep;
    const bool stream = header->kind == WIRE_KIND_RELIABLE;
    *keep = false;
    struct assembly **at = find(node, origin, entry, stream);
    if (*at != NULL && header->sequence == (*at)->sequence &&
        header->sequence != 0 && header->offset < (*at)->filled &&
        (header->flags & WIRE_FLAG_WITHDRAW) == 0)
        return NULL; /* it came twice */
    if (*at != NULL &&
        (header->offset == 0 || header->offset != (*at)->filled ||
         header->sequence != (*at)->sequence ||
         (header->flags & WIRE_FLAG_WITHDRAW) != 0))
        give_up(node, at);
    if (header->offset == 0 && (header->flags & WIRE_FLAG_WITHDRAW) == 0 &&
        begin(node, origin, direct, entry, header) != NULL)
        at = &node->assemblies;
    else
        at = find(node, origin, entry, stream);
    struct assembly *a = *at;
    if (a == NULL || size > a->total - a->filled || size == 0)
        return NULL;
    memcpy(a->data + a->filled, data, size);
    a->filled += (uint32_t)size;
    if (in_window && may_hold(node, direct, size)) {
        a->held.messages++;
        a->held.bytes += size;
        *keep = true;
    }
    return a->filled == a->total ? finish(node, at) : NULL;
}

void assembly_drop(ls_node *node, const struct peer *origin)
{
    struct assembly **at = &node->assemblies;
    while (*at != NULL) {
        struct assembly *a = *at;
        if (origin != NULL && a->origin != origin) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        if (a->held.messages != 0) /* it may come back to its window */
            flow_release(node, a->direct, a->held.messages, a->held.bytes);
        free(a->data);
        free(a);
    }
}
