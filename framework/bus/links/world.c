/* Who is there: what this node does about what becomes of the others, which
 * framework/bus/membership decides. */
#include "assembly.h"
#include "bus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What may wait for those that do not read, besides the windows of those that
 * are here. */
#define ALLOWED_BYTES (32u << 20)

struct peer *world_find(const ls_node *node, uint32_t id)
{
    struct member *member = membership_find(&node->world, id);
    return member == NULL ? NULL : peer_of(member);
}

void world_member(const struct member *member, struct ls_member *out)
{
    *out = (struct ls_member){.id = member->id,
                              .incarnation = member->incarnation,
                              .host = member->host,
                              .state = member->state,
                              .reason = member->reason,
                              .heard_at = member->heard_at};
    strcpy(out->role, member->role);
    strcpy(out->labels, member->labels);
    strcpy(out->endpoint, member->endpoint);
}

void world_allow(ls_node *node)
{
    const size_t n = membership_n_ready(&node->world);
    transport_allow(node->transport,
                    ALLOWED_BYTES + (n + 1) * node->options.window_bytes);
}

/* ---- telling ----------------------------------------------------------- */

/* Whoever waits for it would wait in vain: the run is to fail. */
static void not_told(ls_node *node)
{
    (void)ls_error(LS_ENOMEM,
                   "node %u: no memory to tell what has become of a member",
                   node->options.id);
    ls_log_error("bus: %s", ls_error_text());
    dispatch_keep_error(node, LS_ENOMEM);
}

void world_tell(ls_node *node, const struct member *member)
{
    struct ls_member *grown =
        realloc(node->news.at, (node->news.n + 1) * sizeof *grown);
    if (grown != NULL) {
        node->news.at = grown;
        world_member(member, &grown[node->news.n++]);
    } else {
        not_told(node);
    }
    ls_cond_broadcast(&node->changed);
}

static void tell_channels(ls_node *node, const struct ls_member *member)
{
    if (member->id == node->options.id)
        channels_renewed(node, member->incarnation);
    else
        channels_member(node, member);
}

/* All in one message: a world that forms makes much news at once. members:
 * moved. */
static void tell_users(ls_node *node, struct ls_member *members, size_t n)
{
    struct message *message = bus_take(node);
    if (message == NULL) {
        free(members);
        not_told(node);
        return;
    }
    message->kind = MESSAGE_MEMBER;
    message->members = members;
    message->n_members = n;
    bus_hand_on(node, message);
}

void world_tell_news(ls_node *node)
{
    for (;;) {
        transport_lock(node->transport);
        struct ls_member *members = node->news.at;
        const size_t n = node->news.n;
        node->news.at = NULL;
        node->news.n = 0;
        transport_unlock(node->transport);
        if (members == NULL)
            return;
        for (size_t i = 0; i < n; i++)
            tell_channels(node, &members[i]);
        tell_users(node, members, n);
    }
}

/* ---- what becomes of a member ------------------------------------------ */

/* A life begins, with empty accounts but for what the one before still holds.
 */
static void on_began(void *self, struct member *member)
{
    ls_node *node = self;
    struct peer *peer = peer_of(member);
    if (peer->link != NULL)
        link_present(node, peer->link);
    early_drop(node, peer);
    blocks_part(node, peer);
    flow_begin(peer);
    streams_reset(node, peer);
}

static void became_ready(ls_node *node, struct peer *peer)
{
    const struct member *member = &peer->member;
    if (node->me.hub)
        relay_present(node, peer, true);
    world_allow(node);
    ls_log_info("bus: node %u%s is ready at %s", member->id, member->as_role,
                member->endpoint);
    world_tell(node, member);
    if (member->via == NULL)
        flow_connected(node, peer); /* before anything that counts */
    streams_present(node, peer);
}

/* The connection of a peer was broken and is made again: it hears all from here
 * on. What it listened to before (entry->remotes) has been kept. */
static void returned(ls_node *node, struct peer *peer)
{
    node->figures.stats.reconnects++;
    events_unlistened(node); /* what it does not listen to any more */
    ls_log_info("bus: node %u%s is connected again", peer->member.id,
                peer->member.as_role);
    if (peer->member.via == NULL)
        flow_connected(node, peer); /* what it granted meanwhile is not known */
    streams_present(node, peer);
}

/* One that was never ready may come and go as often as it likes, and is none of
 * those that anybody misses. */
static void log_end(const struct member *member, bool was_ready)
{
    if (member->state != LS_MEMBER_LOST)
        ls_log_info("bus: node %u%s left", member->id, member->as_role);
    else if (!was_ready)
        ls_log_info("bus: node %u%s is gone, which was not ready", member->id,
                    member->as_role);
    else
        ls_log_warn("bus: node %u%s is lost: %s", member->id, member->as_role,
                    member->reason == LS_ETIMEDOUT ? "it fell silent"
                    : member->reason == LS_EPROTO
                        ? "it broke the protocol, and was cut off"
                    : member->reason == LS_ESTATE
                        ? "it had declared this node lost"
                        : "it is gone");
}

static void ended(ls_node *node, struct peer *peer, bool was_ready)
{
    const struct member *member = &peer->member;
    const bool gone = member->state == LS_MEMBER_LEFT ||
                      member->reason == LS_ELOST || member->reason == LS_EPROTO;
    events_unlistened(node);
    /* One that is only silent may speak again, and then has to be told what
     * was thought of it. */
    if (peer->link != NULL && gone)
        link_retire(node, peer->link, member->state == LS_MEMBER_LEFT);
    if (node->me.hub) {
        relay_present(node, peer, false);
        relay_drop(node, peer);
        relay_flush(node);
    }
    early_drop(node, peer);
    assembly_drop(node, peer);
    blocks_part(node, peer);
    streams_gone(node, peer);
    log_end(member, was_ready);
    world_allow(node);
    if (was_ready)
        world_tell(node, member);
}

static void on_changed(void *self, struct member *member,
                       enum member_change change)
{
    ls_node *node = self;
    struct peer *peer = peer_of(member);
    bus_look_after(node);
    if (node->world.renewing) /* it is there, and met again */
        world_tell(node, member);
    else if (change == MEMBER_BECAME_READY)
        became_ready(node, peer);
    else if (change == MEMBER_AWAY)
        ls_log_info("bus: the connection of node %u%s is gone", member->id,
                    member->as_role);
    else if (change == MEMBER_RETURNED)
        returned(node, peer);
    else
        ended(node, peer, change == MEMBER_ENDED);
    ls_cond_broadcast(&node->changed);
}

/* ---- whom to dial ------------------------------------------------------ */

/* Another link would lose what is under way over this one. Over that of another
 * life nothing serves, and it is left when the member answers elsewhere. */
static bool is_reached_elsewhere(const ls_node *node,
                                 const struct member *member,
                                 const char *endpoint)
{
    const struct link *link = ((const struct peer *)member)->link;
    return link != NULL && strcmp(link->endpoint, endpoint) != 0 &&
           link_serves(node, link);
}

bool world_dial(ls_node *node, struct member *member, uint32_t id,
                const char *endpoint)
{
    /* A leaf dials its hub alone, at the address that was given. */
    if (node->options.topology == LS_TOPOLOGY_STAR && !node->me.hub &&
        link_find(node, endpoint) == NULL)
        return true;
    if (member != NULL && is_reached_elsewhere(node, member, endpoint)) {
        link_present(node, peer_of(member)->link);
        return true;
    }
    const int status = link_dial(node, endpoint, false, true, id);
    if (status == LS_ELIMIT && member == NULL)
        return false; /* it is named again when there is room */
    if (status != LS_OK) {
        char who[32];
        snprintf(who, sizeof who, "node %u", id);
        refusals_note(&node->refusals, LS_REFUSAL_WORLD, who, 1,
                      node->loop.now);
        return false;
    }
    struct link *link = link_find(node, endpoint);
    if (member != NULL && link != NULL)
        link_present(node, link);
    return true;
}

static bool on_dial(void *self, struct member *member, uint32_t id,
                    const char *endpoint)
{
    return world_dial(self, member, id, endpoint);
}

/* ---- what the others are told ------------------------------------------ */

static void on_tell(void *self, const struct verdict *verdict)
{
    ls_node *node = self;
    struct wire_header header = bus_header(node, WIRE_KIND_VERDICT);
    header.reason = verdict->reason;
    header.subject = verdict->subject;
    header.members = verdict->members;
    header.silence_ms = verdict->silence_ms;
    (void)bus_send(node, verdict->to, &header, verdict->text,
                   strlen(verdict->text));
}

const struct membership_ops world_ops = {
    .began = on_began, .changed = on_changed, .dial = on_dial, .tell = on_tell};

/* ---- probes ------------------------------------------------------------ */

/* Ask the hosts of those whose connection is gone whether they still run. */
void world_probe(ls_node *node)
{
    if (!node->world.probes_wanted)
        return;
    node->world.probes_wanted = false;
    for (size_t i = 0; i < node->world.n; i++) {
        struct member *member = node->world.at[i];
        if (member->probe != PROBE_WANTED)
            continue;
        member->probe = PROBE_ASKED;
        if (transport_probe(node->transport, member->endpoint) != LS_OK)
            membership_probed(&node->world, member->endpoint, false,
                              node->loop.now);
    }
}
