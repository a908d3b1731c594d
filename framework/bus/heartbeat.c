/* Heartbeats: whom this node has present, what it sent each of them, and how
 * far each may send to it. From them follow ready both ways, a full mesh from
 * one address, exact loss counts, and limits that heal when a grant is lost. */
#include "bus.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A hub also says who has ended, for leaves that missed it. */
static bool is_obituary(const ls_node *node, const struct peer *peer)
{
    return node->hub && member_has_ended(peer) &&
           node->now - peer->ended_at <
               2 * node->options.silence_ms * LS_NS_PER_MS;
}

static bool listed(const ls_node *node, const struct peer *peer)
{
    return peer->via == NULL && (member_hears(peer) || is_obituary(node, peer));
}

static enum wire_member_state state_of(const struct peer *peer)
{
    return peer->state == LS_MEMBER_LEFT   ? WIRE_MEMBER_LEFT
           : peer->state == LS_MEMBER_LOST ? WIRE_MEMBER_LOST
                                           : WIRE_MEMBER_PRESENT;
}

static size_t write_members(ls_node *node)
{
    size_t n = 0;
    for (size_t i = 0; i < node->n_peers; i++)
        n += listed(node, node->peers[i]) ? 1 : 0;
    const size_t need = wire_members_size(n);
    if (node->heartbeat_size < need) {
        uint8_t *grown = realloc(node->heartbeat, need);
        if (grown == NULL)
            return 0;
        node->heartbeat = grown;
        node->heartbeat_size = need;
    }
    size_t size = wire_members_begin(node->heartbeat, (uint32_t)n);
    for (size_t i = 0; i < node->n_peers; i++) {
        struct peer *peer = node->peers[i];
        if (!listed(node, peer))
            continue;
        const struct account limit = flow_limit(node, peer);
        struct wire_member member = {.id = peer->id,
                                     .incarnation = peer->incarnation,
                                     .state = state_of(peer),
                                     .reason = peer->reason,
                                     .sent_messages = peer->sent.messages,
                                     .sent_bytes = peer->sent.bytes,
                                     .limit_messages = limit.messages,
                                     .limit_bytes = limit.bytes};
        memcpy(member.endpoint, peer->endpoint, sizeof member.endpoint);
        peer->granted = limit;
        size += wire_member_write(node->heartbeat + size, &member);
    }
    return size;
}

void heartbeat_send(ls_node *node, int64_t now)
{
    batch_flush(node); /* the accounts speak of what came before them */
    node->announce = false;
    node->announced_at = now;
    node->heartbeat_at = now + node->options.heartbeat_ms * LS_NS_PER_MS;
    const size_t size = write_members(node);
    if (size == 0)
        return;
    uint8_t head[WIRE_HEAD_MAX];
    struct wire_header header = bus_header(node, WIRE_KIND_HEARTBEAT);
    header.sequence = ++node->heartbeats;
    header.config_hash = node->options.config_hash;
    header.name = node->job;
    header.name_size = strlen(node->job);
    header.data = node->heartbeat;
    header.size = size;
    size_t head_size = wire_topic_control(head);
    head_size += wire_header_write(head + head_size, &header);
    (void)transport_publish(node->transport, head, head_size, node->heartbeat,
                            size);
    verdicts_send(node);
    streams_acknowledge_all(node);
}

static void read_own(ls_node *node, struct peer *peer,
                     const struct wire_member *me)
{
    peer->lists_me = me->state == WIRE_MEMBER_PRESENT;
    flow_settle(node, peer, me->sent_messages, me->sent_bytes);
    flow_raise(node, peer, me->limit_messages, me->limit_bytes);
}

/* Whether this is somebody whom this node should dial: unknown, or known but
 * not connected, and not one that has said farewell here. */
static bool is_news(ls_node *node, const struct wire_member *member)
{
    if (member->state != WIRE_MEMBER_PRESENT || member->endpoint[0] == '\0' ||
        node->leaving)
        return false;
    const struct peer *known = world_find(node, member->id);
    if (known == NULL)
        return true;
    /* Who was lost but now may still be listed by some. */
    const bool over =
        known->state == LS_MEMBER_LEFT ||
        (known->state == LS_MEMBER_LOST &&
         node->now - known->ended_at < node->options.silence_ms * LS_NS_PER_MS);
    return known->link == NULL &&
           !(over && known->incarnation == member->incarnation);
}

/* What its hub says of another leaf. */
static void read_relayed(ls_node *node, const struct peer *hub,
                         const struct wire_member *member)
{
    struct peer *peer = world_find(node, member->id);
    if (peer == NULL || peer->via != hub ||
        peer->incarnation != member->incarnation)
        return;
    if (member->state == WIRE_MEMBER_LEFT)
        world_apply(node, peer, member_leaves(peer, member->reason));
    else if (member->state == WIRE_MEMBER_LOST)
        world_apply(node, peer, member_is_lost(peer, member->reason));
    else if (peer->state == LS_MEMBER_LOST && peer->n_present != 0)
        rejoin_hub(node, hub, peer);
}

int heartbeat_read(ls_node *node, struct peer *peer,
                   const struct wire_header *header)
{
    struct wire_cursor cursor;
    struct wire_member member;
    if (world_other_configuration(node, header->config_hash))
        return ls_error(LS_EMISMATCH,
                        "it runs another configuration (%" PRIx64 ") than this "
                        "node (%" PRIx64 "); start all with the same file",
                        header->config_hash, node->options.config_hash);
    if (header->sequence <= peer->heartbeats)
        return LS_OK; /* overtaken by a newer one */
    peer->heartbeats = header->sequence;
    int status = wire_members_read(&cursor, header->data, header->size);
    if (status != LS_OK)
        return status;
    bool listed_me = false;
    while ((status = wire_member_read(&cursor, &member)) == 1) {
        if (member.id == node->options.id &&
            member.incarnation == node->incarnation) {
            listed_me = true;
            read_own(node, peer, &member);
        } else if (node->options.topology == LS_TOPOLOGY_STAR) {
            read_relayed(node, peer, &member);
        } else if (node->options.topology == LS_TOPOLOGY_MESH &&
                   is_news(node, &member)) {
            (void)link_dial(node, member.endpoint, false, NULL);
        }
    }
    if (status < 0)
        return status;
    if (!listed_me)
        peer->lists_me = false;
    return LS_OK;
}
