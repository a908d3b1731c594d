/* Whose messages come over which link. */
#include "bus.h"

#include <inttypes.h>

static struct peer *bind_link(ls_node *node, struct link *link,
                              const struct wire_header *header)
{
    if (link->peer != NULL && link->peer->id != header->origin &&
        member_is_alive(link->peer)) {
        (void)ls_error(LS_EPROTO, "node %u sends on the connection of node %u",
                       header->origin, link->peer->id);
        world_refuse(node, link);
        return NULL;
    }
    struct peer *peer = world_find(node, header->origin);
    if (peer != NULL && peer == link->peer && member_is_alive(peer) &&
        header->incarnation > peer->incarnation)
        presence_replace(node, peer, header->incarnation);
    peer = world_note(node, header->origin, header->incarnation);
    if (peer == NULL) {
        (void)ls_error(LS_EEXIST,
                       "node id %u is taken, or this is an older "
                       "life of it",
                       header->origin);
        world_refuse(node, link);
        return NULL;
    }
    if ((member_has_ended(peer) || peer->barred) &&
        header->kind != WIRE_KIND_VERDICT) {
        node->announce = true; /* it has left, or is told that it is lost */
        node->stats.refused += peer->state == LS_MEMBER_LOST ? 1 : 0;
        return NULL;
    }
    if (peer->link != NULL && peer->link != link && !peer->link->closing) {
        /* Two addresses of one node: the older stays, if it works. */
        struct link *better = peer->link->heard ? peer->link : link;
        struct link *other = better == link ? peer->link : link;
        better->attached = better->attached || other->attached;
        other->closing = true;
        if (better != link)
            return NULL;
    }
    if (!member_has_ended(peer))
        link_present(node, link);
    link->heard = true;
    if (link->peer != NULL && link->peer != peer)
        link->peer->link = NULL;
    link->peer = peer;
    peer->link = link;
    link->refusal[0] = '\0';
    return peer;
}

/* Who sent what the peer of this link passed on, or NULL. The presence of who
 * sent it comes over another connection, and maybe later. */
static struct peer *relayed(ls_node *node, const struct link *link,
                            const struct wire_header *header, bool leaf)
{
    const bool may_be_early = leaf && (header->kind == WIRE_KIND_EVENT ||
                                       header->kind == WIRE_KIND_CHUNK ||
                                       header->kind == WIRE_KIND_CHANNEL ||
                                       header->kind == WIRE_KIND_RELIABLE);
    struct peer *peer = world_find(node, header->origin);
    if (peer == NULL && may_be_early &&
        (peer = world_note(node, header->origin, header->incarnation)) != NULL)
        peer->via = link->peer;
    const bool known =
        peer != NULL && peer->via == link->peer &&
        peer->state != LS_MEMBER_LOST &&
        (peer->incarnation == header->incarnation ||
         (may_be_early && header->incarnation > peer->incarnation));
    return known ? peer : NULL;
}

struct peer *world_accept(ls_node *node, struct link *link,
                          const struct wire_header *header)
{
    if (header->job != node->job_hash) {
        if (header->kind == WIRE_KIND_HEARTBEAT) {
            (void)ls_error(LS_EMISMATCH,
                           "it belongs to job \"%.*s\", this is job \"%s\"",
                           (int)header->name_size, header->name, node->job);
            world_mismatch(node, link);
        } else {
            (void)ls_error(LS_EMISMATCH, "it belongs to another job");
            world_refuse(node, link);
        }
        return NULL;
    }
    const bool direct = header->kind == WIRE_KIND_HEARTBEAT;
    if (header->origin == node->options.id) {
        if (!direct)
            return NULL; /* what a hub relays comes back */
        if (presence_duplicate(node, header->incarnation, link->endpoint))
            world_refuse(node, link);
        else if (link->peer == NULL)
            link->closing = true; /* another name of our own address */
        return NULL;
    }
    const bool leaf = node->options.topology == LS_TOPOLOGY_STAR && !node->hub;
    const bool own = link->peer != NULL && link->peer->id == header->origin;
    struct peer *peer = NULL;
    if (link->peer != NULL && !own)
        peer = relayed(node, link, header, leaf);
    if (peer != NULL)
        return peer;
    /* Whose connection this is, now or after one that has ended, a heartbeat
     * says: of all else a leaf cannot know whether it was passed on. */
    if (leaf && !direct && !own &&
        !(link->peer != NULL && member_is_alive(link->peer)))
        return NULL;
    return bind_link(node, link, header);
}
