/* Being told that one is no member, and what follows.
 *
 * LOST is final for an incarnation. Whoever was declared lost and is heard
 * again (a partition has healed, a process was stopped and goes on) is told so,
 * with every heartbeat until it is a new incarnation. It becomes one in place:
 * under the same id and address it is a member like any that has just started.
 *
 * After a partition both sides have declared each other lost. Of two that did,
 * the one that counts fewer members rejoins, of equals the younger; the other
 * stays as it is. So a part that was cut off comes back to the rest. Any rule
 * would do for convergence, as long as in each such pair at least one of the
 * two rejoins once their counts stand still: a new incarnation is accused by
 * nobody, so each time there are fewer accusations, and in quiet times there
 * are no new ones. Who counts may be wrong for a moment, and then both do.
 *
 * A hub never rejoins, since all that a leaf knows of others goes through it:
 * a leaf that accuses its hub is accused in return. Who is a member the hub
 * alone says: a leaf that has declared another lost, with its hub or because
 * that was slower to find a new hub, and sees it there again, rejoins. */
#include "assembly.h"
#include "bus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- telling ----------------------------------------------------------- */

static uint32_t count_members(const ls_node *node)
{
    uint32_t n = 1;
    for (size_t i = 0; i < node->n_peers; i++)
        n += node->peers[i]->state == LS_MEMBER_READY ? 1 : 0;
    return node->hub ? UINT32_MAX : n;
}

static void tell(ls_node *node, const struct peer *peer, int reason,
                 uint64_t subject)
{
    struct wire_header header = bus_header(node, WIRE_KIND_VERDICT);
    header.reason = reason;
    header.subject = subject;
    header.members =
        reason == LS_ELIMIT ? node->options.world_max : count_members(node);
    header.silence_ms =
        peer->reason == LS_ETIMEDOUT ? (uint32_t)node->options.silence_ms : 0;
    const bool taken = reason == LS_EEXIST;
    (void)bus_send(node, peer->id, &header, peer->endpoint,
                   taken ? strlen(peer->endpoint) : 0);
}

void verdicts_send(ls_node *node)
{
    for (size_t i = 0; i < node->n_peers && !node->leaving; i++) {
        const struct peer *peer = node->peers[i];
        if (peer->via != NULL)
            continue;
        if (peer->state == LS_MEMBER_LOST && peer->n_present != 0)
            tell(node, peer, LS_ELOST, peer->incarnation);
        else if (peer->barred && peer->n_present != 0)
            tell(node, peer, LS_ELIMIT, peer->incarnation);
        /* The younger gives way, once the elder has proved to be alive. */
        if (peer->n_rival != 0 && peer->heard_at > peer->rival_at &&
            peer->rival.incarnation > peer->incarnation)
            tell(node, peer, LS_EEXIST, peer->rival.incarnation);
    }
}

/* ---- being told -------------------------------------------------------- */

static void want_rejoin(ls_node *node, const char *text)
{
    node->rejoins = true;
    snprintf(node->rejoin_text, sizeof node->rejoin_text, "%s", text);
    atomic_store(&node->chores, true);
}

static bool yields(const ls_node *node, const struct peer *peer,
                   uint32_t theirs)
{
    const uint32_t mine = count_members(node);
    return mine < theirs ||
           (mine == theirs && node->incarnation > peer->incarnation);
}

static void told_lost(ls_node *node, struct peer *peer,
                      const struct wire_header *header)
{
    char text[256];
    if (node->hub) {
        world_apply(node, peer, member_is_lost(peer, LS_ETIMEDOUT));
        node->announce = true;
        return;
    }
    if (peer->state == LS_MEMBER_LOST && !yields(node, peer, header->members))
        return;
    if (header->silence_ms != 0)
        snprintf(text, sizeof text,
                 "node %u was declared lost by node %u after %.1f s of silence",
                 node->options.id, peer->id, header->silence_ms / 1000.0);
    else
        snprintf(text, sizeof text,
                 "node %u was declared lost by node %u when its connection "
                 "closed",
                 node->options.id, peer->id);
    want_rejoin(node, text);
}

void verdict_read(ls_node *node, struct peer *peer,
                  const struct wire_header *header)
{
    const bool has_text = header->data != NULL && header->size != 0 &&
                          header->size <= LS_ENDPOINT_MAX;
    if (header->subject != node->incarnation)
        return;
    if (header->reason == LS_ELOST) {
        told_lost(node, peer, header);
        return;
    }
    if (header->reason == LS_EEXIST)
        (void)ls_error(LS_EEXIST,
                       "node id %u is taken: %.*s has it, says node %u, and so "
                       "has %s; give each node its own id",
                       node->options.id, has_text ? (int)header->size : 1,
                       has_text ? (const char *)header->data : "?", peer->id,
                       node->endpoint);
    else if (header->reason == LS_ELIMIT)
        (void)ls_error(LS_ELIMIT,
                       "node %u: the world is full: node %u counts %" PRIu32
                       " members already; see world_max",
                       node->options.id, peer->id, header->members);
    else
        return;
    world_fail(node, header->reason, ls_error_text());
}

void rejoin_hub(ls_node *node, const struct peer *hub, const struct peer *peer)
{
    char text[256];
    snprintf(text, sizeof text,
             "node %u had declared node %u lost, which its hub, node %u, has "
             "as a member",
             node->options.id, peer->id, hub->id);
    want_rejoin(node, text);
}

/* ---- rejoining --------------------------------------------------------- */

/* As if this node had just met it; but the connections are there, and what is
 * still held of what it sent keeps its place in the window. */
static void meet_again(ls_node *node, struct peer *peer)
{
    const unsigned n_present = peer->n_present;
    const bool barred = peer->barred;
    struct peer *via = peer->via;
    const struct account held = {
        atomic_load(&peer->kept_messages) - peer->released.messages,
        atomic_load(&peer->kept_bytes) - peer->released.bytes};
    const uint64_t stream_messages = atomic_load(&peer->streams.held_messages);
    const uint64_t stream_bytes = atomic_load(&peer->streams.held_bytes);
    if (peer->state == LS_MEMBER_READY) {
        (void)member_is_lost(peer, LS_ELOST);
        world_tell(node, peer);
    }
    world_renew(node, peer, peer->incarnation);
    peer->n_present = n_present;
    peer->barred = barred;
    peer->via = via;
    atomic_store(&peer->kept_messages, held.messages);
    atomic_store(&peer->kept_bytes, held.bytes);
    atomic_store(&peer->streams.held_messages, stream_messages);
    atomic_store(&peer->streams.held_bytes, stream_bytes);
}

static void forget_sequences(ls_node *node)
{
    for (size_t i = 0; i < EVENT_BUCKETS; i++) {
        struct event_entry *entry = atomic_load(&node->events[i]);
        for (; entry != NULL; entry = entry->next)
            entry->sequence = 0;
    }
}

void rejoin(ls_node *node)
{
    char text[LS_ERROR_TEXT_MAX];
    if (!node->rejoins || node->leaving)
        return;
    node->rejoins = false;
    batch_flush(node);
    const uint64_t now = (uint64_t)ls_wall_now(node->runtime);
    const uint64_t next = node->incarnation + 1;
    links_renew(node, now > next ? now : next);
    assembly_drop(node, NULL);
    forget_sequences(node);
    for (size_t i = 0; i < node->n_peers; i++)
        if (node->peers[i]->state != LS_MEMBER_LEFT)
            meet_again(node, node->peers[i]);
    const struct peer self = {.id = node->options.id,
                              .incarnation = node->incarnation,
                              .state = LS_MEMBER_READY};
    world_tell(node, &self);
    for (size_t i = 0; i < node->n_peers; i++) {
        presence_admit_rival(node, node->peers[i]);
        world_update(node, node->peers[i]);
    }
    node->world_version++;
    node->announce = true;
    node->stats.rejoined++;
    snprintf(text, sizeof text, "%s; it has rejoined as a new member",
             node->rejoin_text);
    ls_log_error("bus: %s", text);
    dispatch_keep_error(node, LS_ELOST, text);
}
