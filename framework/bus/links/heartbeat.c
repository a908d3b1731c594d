/* Heartbeats: whom this node has present, what it sent each of them, and how
 * far each may send to it. From them follow ready both ways, a full mesh from
 * one address, exact loss counts, and limits that heal when a grant is lost. */
#include "bus.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ANNOUNCE_NS      (LS_NS_PER_MS) /* heartbeats on change: not closer */
#define ANNOUNCE_PEER_NS (50 * LS_NS_PER_US)

static size_t write_members(ls_node *node)
{
    const struct membership *world = &node->world;
    uint32_t n = 0;
    for (size_t i = 0; i < world->n; i++)
        n += membership_lists(world, world->at[i], node->loop.now) ? 1 : 0;
    const size_t need = wire_members_size(n);
    if (node->heart.capacity < need) {
        uint8_t *grown = realloc(node->heart.bytes, need);
        if (grown == NULL)
            return 0;
        node->heart.bytes = grown;
        node->heart.capacity = need;
    }
    size_t size = wire_members_begin(node->heart.bytes, n);
    for (size_t i = 0; i < world->n; i++) {
        const struct member *member = world->at[i];
        if (!membership_lists(world, member, node->loop.now))
            continue;
        struct wire_member listed = {.id = member->id,
                                     .incarnation = member->incarnation,
                                     .state = membership_lists_as(member),
                                     .reason = member->reason};
        strcpy(listed.endpoint, member->endpoint);
        flow_account(node, world_at(node, i), &listed);
        size += wire_member_write(node->heart.bytes + size, &listed);
    }
    return size;
}

/* With those that others record, what ties clocks together. */
static void trace(ls_node *node, enum ls_trace_kind kind, uint64_t number,
                  const struct peer *peer)
{
    if (node->options.trace == NULL)
        return;
    const int64_t now = ls_trace_now(node->options.trace);
    ls_trace_add(
        node->options.trace,
        &(struct ls_trace_record){
            .kind = (uint8_t)kind,
            .begin_ns = now,
            .end_ns = now,
            .number = number,
            .peer = peer != NULL ? peer->member.id : LS_TRACE_NOBODY,
            .life = peer != NULL ? (uint32_t)peer->member.incarnation : 0});
}

static void send(ls_node *node, int64_t now)
{
    batch_flush(node); /* the accounts speak of what came before them */
    node->world.announce = false;
    node->heart.announced_at = now;
    node->heart.due_at = now + node->options.heartbeat_ms * LS_NS_PER_MS;
    const size_t size = write_members(node);
    if (size == 0)
        return;
    uint8_t head[WIRE_HEAD_MAX];
    struct wire_header header = bus_header(node, WIRE_KIND_HEARTBEAT);
    header.sequence = ++node->heart.n;
    header.config_hash = node->options.config_hash;
    header.name = node->me.job;
    header.name_size = strlen(node->me.job);
    header.data = node->heart.bytes;
    header.size = size;
    size_t head_size = wire_topic_control(head);
    head_size += wire_header_write(head + head_size, &header);
    trace(node, LS_TRACE_BEAT, header.sequence, NULL);
    (void)transport_publish(node->transport, head, head_size, node->heart.bytes,
                            size);
    membership_announced(&node->world, now);
    streams_acknowledge_all(node);
}

/* By the clock, and soon after a change. */
int64_t heartbeat_tick(ls_node *node, int64_t now)
{
    struct heart *heart = &node->heart;
    int64_t due = heart->due_at;
    if (node->world.announce) {
        const int64_t soon = heart->announced_at + ANNOUNCE_NS +
                             (int64_t)node->world.n * ANNOUNCE_PEER_NS;
        due = soon < due ? soon : due;
    }
    if (due > now)
        return due;
    send(node, now);
    return heart->due_at;
}

static bool other_configuration(const ls_node *node, uint64_t hash)
{
    return hash != 0 && node->options.config_hash != 0 &&
           hash != node->options.config_hash;
}

int heartbeat_read(ls_node *node, struct peer *peer,
                   const struct wire_header *header)
{
    struct wire_cursor cursor;
    struct wire_member listed;
    bool listed_me = false;
    if (other_configuration(node, header->config_hash))
        return ls_error(LS_EMISMATCH,
                        "it runs another configuration (%" PRIx64 ") than this "
                        "node (%" PRIx64 "); start all with the same "
                        "file, and version of its plugin",
                        header->config_hash, node->options.config_hash);
    if (membership_heartbeat(&peer->member, header->sequence) != LS_OK)
        return LS_OK;
    trace(node, LS_TRACE_HEARD, header->sequence, peer);
    int status = wire_members_read(&cursor, header->data, header->size);
    if (status != LS_OK)
        return status;
    while ((status = wire_member_read(&cursor, &listed)) == 1) {
        if (listed.id == node->options.id &&
            listed.incarnation == node->me.incarnation) {
            listed_me = true;
            if (!member_has_ended(&peer->member))
                status = flow_settle(node, peer, &listed);
        }
        if (status < 0)
            break;
        membership_listed(&node->world, &peer->member, &listed, node->loop.now);
    }
    if (status < 0)
        return status;
    membership_list_ends(&node->world, &peer->member, listed_me,
                         node->loop.now);
    return LS_OK;
}
