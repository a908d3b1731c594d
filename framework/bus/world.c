/* Who is there: the records of peers, and what this node does about what
 * becomes of them. What does become of them is decided in member.c. */
#include "assembly.h"
#include "bus.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a peer of this id stands, or would: they are ordered by id, since
 * every heartbeat looks for everyone. */
static size_t place(const ls_node *node, uint32_t id)
{
    size_t low = 0, high = node->n_peers;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (node->peers[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct peer *world_find(ls_node *node, uint32_t id)
{
    const size_t at = place(node, id);
    return at < node->n_peers && node->peers[at]->id == id ? node->peers[at]
                                                           : NULL;
}

void world_renew(ls_node *node, struct peer *peer, uint64_t incarnation)
{
    streams_reset(node, peer);
    member_begin(peer, incarnation);
    peer->sent = peer->limit = (struct account){0};
    atomic_store(&peer->got_messages, 0);
    atomic_store(&peer->got_bytes, 0);
    /* What is still held of the old one will be released. */
    atomic_store(&peer->kept_messages, 0);
    atomic_store(&peer->kept_bytes, 0);
    peer->released = peer->granted = (struct account){0};
}

struct peer *world_note(ls_node *node, uint32_t id, uint64_t incarnation)
{
    struct peer *peer = world_find(node, id);
    if (peer != NULL) {
        if (peer->incarnation == incarnation)
            return peer;
        if (member_is_alive(peer) || incarnation < peer->incarnation)
            return NULL;
        if (node->hub)
            relay_present(node, peer, false);
        world_renew(node, peer, incarnation);
        return peer;
    }
    if (node->n_peers == MAX_PEERS || (peer = calloc(1, sizeof *peer)) == NULL)
        return NULL;
    peer->id = id;
    world_renew(node, peer, incarnation);
    message_list_init(&peer->relay);
    const size_t at = place(node, id);
    memmove(&node->peers[at + 1], &node->peers[at],
            (node->n_peers - at) * sizeof(struct peer *));
    node->peers[at] = peer;
    node->n_peers++;
    return peer;
}

void world_member(const struct peer *peer, struct ls_member *out)
{
    *out = (struct ls_member){.id = peer->id,
                              .incarnation = peer->incarnation,
                              .state = peer->state,
                              .reason = peer->reason,
                              .heard_at = peer->heard_at};
    memcpy(out->role, peer->role, sizeof out->role);
    memcpy(out->labels, peer->labels, sizeof out->labels);
    memcpy(out->endpoint, peer->endpoint, sizeof out->endpoint);
}

void world_fail(ls_node *node, int status, const char *text)
{
    if (node->fatal == LS_OK) {
        node->fatal = status;
        snprintf(node->fatal_text, sizeof node->fatal_text, "%s", text);
    }
    ls_cond_broadcast(&node->changed);
}

/* ---- what becomes of a member ------------------------------------------ */

void world_tell(ls_node *node, const struct peer *peer)
{
    struct ls_member *grown =
        realloc(node->news, (node->n_news + 1) * sizeof *grown);
    if (grown != NULL) {
        node->news = grown;
        world_member(peer, &grown[node->n_news++]);
    }
    ls_cond_broadcast(&node->changed);
}

void world_tell_news(ls_node *node)
{
    for (;;) {
        transport_lock(node->transport);
        struct ls_member *members = node->news;
        const size_t n = node->n_news;
        node->news = NULL;
        node->n_news = 0;
        transport_unlock(node->transport);
        if (members == NULL)
            return;
        for (size_t i = 0; i < n; i++) {
            if (members[i].id == node->options.id) {
                channels_renewed(node, members[i].incarnation);
                continue;
            }
            channels_member(node, &members[i]);
            struct message *message = message_take(node->pool, &node->spare);
            struct ls_member *copy =
                message == NULL ? NULL : malloc(sizeof *copy);
            if (copy == NULL)
                continue;
            *copy = members[i];
            message->kind = MESSAGE_MEMBER;
            message->member = copy;
            message_list_append(&node->arrived, message);
        }
        free(members);
    }
}

static void became_ready(ls_node *node, struct peer *peer)
{
    node->announce = true;
    if (node->hub)
        relay_present(node, peer, true);
    ls_log_info("bus: node %u %s%s%sis ready at %s", peer->id,
                peer->role[0] != '\0' ? "(" : "", peer->role,
                peer->role[0] != '\0' ? ") " : "", peer->endpoint);
    world_tell(node, peer);
    latest_offer(node, peer);
}

void peer_returned(ls_node *node, struct peer *peer)
{
    node->stats.reconnects++;
    node->unlistened = true; /* what it does not listen to any more */
    node->announce = true;
    ls_log_info("bus: node %u (%s) is connected again", peer->id, peer->role);
    /* Its leaves had no connection but that one. */
    for (size_t i = 0; i < node->n_peers; i++)
        if (node->peers[i]->via == peer && node->peers[i]->away_at != 0)
            node->peers[i]->away_at = node->now;
    streams_present(node, peer);
}

/* Through a hub that is lost nobody is reached any more. */
static void end_behind(ls_node *node, const struct peer *hub)
{
    for (size_t i = 0; i < node->n_peers; i++)
        if (node->peers[i]->via == hub)
            world_apply(node, node->peers[i],
                        member_is_lost(node->peers[i], LS_ELOST));
}

static void log_end(const struct peer *peer)
{
    if (peer->state == LS_MEMBER_LOST)
        ls_log_warn("bus: node %u (%s) is lost: %s", peer->id, peer->role,
                    peer->reason == LS_ETIMEDOUT ? "it fell silent"
                                                 : "it is gone");
    else
        ls_log_info("bus: node %u (%s) left", peer->id, peer->role);
}

static void peer_ended(ls_node *node, struct peer *peer, bool tell)
{
    const bool gone = peer->state == LS_MEMBER_LEFT || peer->reason == LS_ELOST;
    peer->ended_at = node->now;
    node->unlistened = true;
    node->announce = true;
    /* One that is only silent may speak again, and then has to be told what
     * was thought of it. */
    if (peer->link != NULL && gone)
        link_retire(node, peer->link, peer->state == LS_MEMBER_LEFT);
    if (node->hub) {
        relay_present(node, peer, false);
        relay_flush(node);
    }
    assembly_drop(node, peer);
    streams_gone(node, peer);
    log_end(peer);
    if (tell)
        world_tell(node, peer);
    if (peer->state == LS_MEMBER_LOST)
        end_behind(node, peer);
    presence_admit_rival(node, peer);
    presence_admit_barred(node);
}

void world_apply(ls_node *node, struct peer *peer, enum member_change change)
{
    if (change == MEMBER_SAME)
        return;
    node->world_version++;
    atomic_store(&node->chores, true);
    if (change == MEMBER_BECAME_READY)
        became_ready(node, peer);
    else if (change == MEMBER_AWAY)
        ls_log_info("bus: the connection of node %u (%s) is gone", peer->id,
                    peer->role);
    else if (change == MEMBER_RETURNED)
        peer_returned(node, peer);
    else
        peer_ended(node, peer, change == MEMBER_ENDED);
    ls_cond_broadcast(&node->changed);
}

void world_update(ls_node *node, struct peer *peer)
{
    world_apply(node, peer, member_settle(peer));
}

void world_farewell(ls_node *node, struct peer *peer, int reason)
{
    world_apply(node, peer, member_leaves(peer, reason));
}

/* ---- refusing ---------------------------------------------------------- */

void world_refuse(ls_node *node, struct link *link)
{
    node->stats.refused++;
    if (link == NULL) {
        snprintf(node->refusal, sizeof node->refusal, "%.*s",
                 (int)sizeof node->refusal - 1, ls_error_text());
        /* One that sends nothing else must not fill a disk. */
        const uint64_t n = node->stats.refused;
        if (n <= 64 || (n & (n - 1)) == 0)
            ls_log_warn("bus: refused: %s", ls_error_text());
        return;
    }
    if (link->refusal[0] == '\0')
        ls_log_warn("bus: refused what %s sends: %s", link->endpoint,
                    ls_error_text());
    snprintf(link->refusal, sizeof link->refusal, "%.*s",
             (int)sizeof link->refusal - 1, ls_error_text());
}

/* Whoever answers at the given addresses is of no use, at any of them: waiting
 * longer does not help. */
void world_mismatch(ls_node *node, struct link *link)
{
    char text[LS_ERROR_TEXT_MAX];
    world_refuse(node, link);
    if (link == NULL || !link->attached || world_n_ready(node) != 0)
        return;
    for (const struct link *l = node->links; l != NULL; l = l->next)
        if (l->attached && l->refusal[0] == '\0')
            return;
    snprintf(text, sizeof text, "node %u: %s answers, but %s", node->options.id,
             link->endpoint, link->refusal);
    world_fail(node, LS_EMISMATCH, text);
}

/* ---- time -------------------------------------------------------------- */

/* One that came, did its work and left before this node was done with joining
 * was a member all the same. */
bool world_has(const struct peer *peer)
{
    return peer->state == LS_MEMBER_READY ||
           (peer->state == LS_MEMBER_LEFT && peer->reason == LS_OK);
}

size_t world_n_ready(const ls_node *node)
{
    size_t n = 0;
    for (size_t i = 0; i < node->n_peers; i++)
        n += world_has(node->peers[i]) ? 1 : 0;
    return n;
}

/* After a stop of our own we must not accuse the others of silence. */
static void excuse_own_stall(ls_node *node, int64_t now)
{
    const int64_t late = now - node->looked_at;
    if (node->looked_at != 0 &&
        late > 4 * node->options.heartbeat_ms * LS_NS_PER_MS)
        for (size_t i = 0; i < node->n_peers; i++)
            member_excuse(node->peers[i], late);
    node->looked_at = now;
}

int64_t world_tick(ls_node *node, int64_t now)
{
    const int64_t silence = node->options.silence_ms * LS_NS_PER_MS;
    int64_t next = LS_FOREVER;
    excuse_own_stall(node, now);
    for (size_t i = 0; i < node->n_peers; i++) {
        struct peer *peer = node->peers[i];
        if (node->leaving && peer->away_at == 0)
            continue;
        world_apply(node, peer, member_tick(peer, now, silence, &next));
        node->probes_wanted =
            node->probes_wanted || peer->probe == PROBE_WANTED;
    }
    return next;
}

/* Ask the hosts of those whose connection is gone whether they still run. */
void world_probe(ls_node *node)
{
    if (!node->probes_wanted)
        return;
    node->probes_wanted = false;
    for (size_t i = 0; i < node->n_peers; i++) {
        struct peer *peer = node->peers[i];
        if (peer->probe != PROBE_WANTED)
            continue;
        peer->probe = PROBE_ASKED;
        if (transport_probe(node->transport, peer->endpoint) != LS_OK)
            world_probed(node, peer->endpoint, TRANSPORT_UNKNOWN);
    }
}

void world_probed(ls_node *node, const char *endpoint,
                  enum transport_probed answer)
{
    const int64_t heartbeat = node->options.heartbeat_ms * LS_NS_PER_MS;
    atomic_store(&node->chores, true);
    for (size_t i = 0; i < node->n_peers; i++) {
        struct peer *peer = node->peers[i];
        if (strcmp(peer->endpoint, endpoint) == 0)
            world_apply(node, peer,
                        member_probed(peer, answer == TRANSPORT_REFUSES,
                                      node->now, heartbeat));
    }
}
