/* Heartbeats: whom this node has present, what it sent each of them, and how
 * far each may send to it. From them follow ready both ways, a full mesh from
 * one address, exact loss counts, and limits that heal when a grant is lost. */
#include "bus.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool listed(const struct peer *peer)
{
    return peer->n_present != 0 && peer->via == NULL && !peer->said_farewell;
}

static size_t write_members(ls_node *node)
{
    size_t n = 0;
    for (size_t i = 0; i < node->n_peers; i++)
        n += listed(node->peers[i]) ? 1 : 0;
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
        if (!listed(peer))
            continue;
        const struct account limit = flow_limit(node, peer);
        struct wire_member member = {.id = peer->id,
                                     .incarnation = peer->incarnation,
                                     .present = true,
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
}

static void read_own(ls_node *node, struct peer *peer,
                     const struct wire_member *me)
{
    peer->lists_me = me->present;
    flow_settle(node, peer, me->sent_messages, me->sent_bytes);
    flow_raise(node, peer, me->limit_messages, me->limit_bytes);
}

/* Whether this is somebody whom this node should dial: unknown, or known but
 * not connected, and not one that has said farewell here. */
static bool is_news(ls_node *node, const struct wire_member *member)
{
    if (!member->present || member->endpoint[0] == '\0' || node->leaving)
        return false;
    const struct peer *known = world_find(node, member->id);
    if (known == NULL)
        return true;
    return known->link == NULL &&
           !(known->said_farewell && known->incarnation == member->incarnation);
}

/* A hub lists another node of this id. It would stop doing so when that one
 * were dead, after the time of silence; a leaf cannot ask by itself. */
static void see_twin(ls_node *node, const struct wire_member *twin)
{
    if (!twin->present || twin->incarnation > node->incarnation)
        return;
    if (node->twin_since == 0)
        node->twin_since = node->now;
    if (node->now - node->twin_since <
        (node->options.silence_ms + 500) * LS_NS_PER_MS)
        return;
    (void)ls_error(LS_EEXIST,
                   "node id %u is taken: %s has it, and so has %s; give each "
                   "node its own id",
                   node->options.id, twin->endpoint, node->endpoint);
    world_fail(node, LS_EEXIST, ls_error_text());
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
    int status = wire_members_read(&cursor, header->data, header->size);
    if (status != LS_OK)
        return status;
    bool listed_me = false, twin = false;
    while ((status = wire_member_read(&cursor, &member)) == 1) {
        if (member.id == node->options.id &&
            member.incarnation == node->incarnation) {
            listed_me = true;
            read_own(node, peer, &member);
        } else if (member.id == node->options.id &&
                   node->options.topology == LS_TOPOLOGY_STAR) {
            twin = member.present;
            see_twin(node, &member);
        } else if (node->options.topology == LS_TOPOLOGY_MESH &&
                   is_news(node, &member)) {
            (void)link_dial(node, member.endpoint, false, NULL);
        }
    }
    if (status < 0)
        return status;
    if (!twin && peer->via == NULL && node->hub == false)
        node->twin_since = 0;
    if (!listed_me)
        peer->lists_me = false;
    return LS_OK;
}
