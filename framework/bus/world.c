/* Who is there: records of peers, driven by presences, heartbeats, farewells
 * and silence. */
#include "bus.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peer *world_find(ls_node *node, uint32_t id)
{
    for (size_t i = 0; i < node->n_peers; i++)
        if (node->peers[i]->id == id)
            return node->peers[i];
    return NULL;
}

static void forget(struct peer *peer, uint64_t incarnation)
{
    peer->incarnation = incarnation;
    peer->state = LS_MEMBER_SEEN;
    peer->reason = LS_OK;
    peer->n_present = 0;
    peer->via = NULL;
    peer->lists_me = false;
    peer->said_farewell = false;
    peer->lost_at = 0;
    peer->heard_at = 0;
    peer->sent = peer->limit = (struct account){0};
    atomic_store(&peer->got_messages, 0);
    atomic_store(&peer->got_bytes, 0);
    /* What is still held of the old one will be released. */
    atomic_store(&peer->kept_messages, 0);
    atomic_store(&peer->kept_bytes, 0);
    peer->released = peer->granted = (struct account){0};
}

static bool alive(const struct peer *peer)
{
    return peer->n_present != 0 || peer->state == LS_MEMBER_READY ||
           (peer->state != LS_MEMBER_LEFT && peer->state != LS_MEMBER_LOST &&
            peer->heard_at != 0);
}

struct peer *world_note(ls_node *node, uint32_t id, uint64_t incarnation)
{
    struct peer *peer = world_find(node, id);
    if (peer != NULL) {
        if (peer->incarnation == incarnation)
            return peer;
        if (alive(peer) || incarnation < peer->incarnation)
            return NULL;
        if (node->hub)
            relay_present(node, peer, false);
        forget(peer, incarnation);
        return peer;
    }
    if (node->n_peers == MAX_PEERS || (peer = calloc(1, sizeof *peer)) == NULL)
        return NULL;
    peer->id = id;
    forget(peer, incarnation);
    message_list_init(&peer->relay);
    node->peers[node->n_peers++] = peer;
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

/* Tell channels and users, outside the lock: see bus.c. */
static void tell(ls_node *node, const struct peer *peer)
{
    struct ls_member *grown =
        realloc(node->news, (node->n_news + 1) * sizeof *grown);
    if (grown != NULL) {
        node->news = grown;
        world_member(peer, &grown[node->n_news++]);
    }
    ls_cond_broadcast(&node->changed);
}

void world_update(ls_node *node, struct peer *peer)
{
    const bool both =
        peer->via != NULL || (peer->lists_me && peer->heard_at != 0);
    if (peer->n_present == 0 || !both || peer->said_farewell ||
        peer->state == LS_MEMBER_READY)
        return;
    peer->state = LS_MEMBER_READY;
    peer->reason = LS_OK;
    node->announce = true;
    if (node->hub && peer->via == NULL)
        relay_present(node, peer, true); /* after a silence */
    ls_log_info("bus: node %u %s%s%sis ready at %s", peer->id,
                peer->role[0] != '\0' ? "(" : "", peer->role,
                peer->role[0] != '\0' ? ") " : "", peer->endpoint);
    tell(node, peer);
}

static void gone(ls_node *node, struct peer *peer, enum ls_member_state state,
                 int reason)
{
    const bool was_ready = peer->state == LS_MEMBER_READY;
    peer->state = state;
    peer->reason = reason;
    peer->lists_me = false;
    peer->lost_at = 0;
    node->world_version++;
    node->announce = true;
    /* Our connection there closes: to one that leaves this says that all it
     * sent has been received. An address that the user gave is kept for who
     * comes back to it, and so is one that is silent but still connected. */
    if (peer->link != NULL && (state == LS_MEMBER_LEFT ||
                               (!peer->link->attached && peer->n_present == 0)))
        peer->link->closing = true;
    if (node->hub) {
        relay_present(node, peer, false);
        relay_flush(node);
    }
    assembly_drop(node, peer);
    if (state == LS_MEMBER_LOST)
        ls_log_warn("bus: node %u (%s) is lost: %s", peer->id, peer->role,
                    reason == LS_ETIMEDOUT ? "it fell silent"
                                           : "its connection closed");
    else
        ls_log_info("bus: node %u (%s) left", peer->id, peer->role);
    if (was_ready)
        tell(node, peer);
    ls_cond_broadcast(&node->changed);
}

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

/* ---- presence ---------------------------------------------------------- */

static bool duplicate(ls_node *node, uint64_t incarnation, const char *endpoint)
{
    if (incarnation == node->incarnation)
        return false;
    (void)ls_error(LS_EEXIST,
                   "node id %u is taken: %s has it, and so has %s; give each "
                   "node its own id",
                   node->options.id, endpoint, node->endpoint);
    /* The younger gives way; the elder only says so. */
    if (incarnation < node->incarnation)
        world_fail(node, LS_EEXIST, ls_error_text());
    return true;
}

bool world_other_configuration(const ls_node *node, uint64_t hash)
{
    return hash != 0 && node->options.config_hash != 0 &&
           hash != node->options.config_hash;
}

/* Whether a presence is of this world; else LS_* with the reason. */
static int check_presence(ls_node *node, const struct wire_presence *p)
{
    if (strcmp(p->job, node->job) != 0)
        return ls_error(LS_EMISMATCH,
                        "node %u at %s belongs to job \"%s\", this is job "
                        "\"%s\"",
                        p->id, p->endpoint, p->job, node->job);
    if (world_other_configuration(node, p->config_hash))
        return ls_error(LS_EMISMATCH,
                        "node %u at %s runs another configuration "
                        "(%" PRIx64 ") than node %u at %s (%" PRIx64 "); start "
                        "all with the same file",
                        p->id, p->endpoint, p->config_hash, node->options.id,
                        node->endpoint, node->options.config_hash);
    return LS_OK;
}

static void settle_identity(struct peer *peer, const struct wire_presence *p)
{
    memcpy(peer->role, p->role, sizeof peer->role);
    memcpy(peer->endpoint, p->endpoint, sizeof peer->endpoint);
}

static void arrived(ls_node *node, struct peer *peer,
                    const struct wire_presence *p)
{
    settle_identity(peer, p);
    peer->via = p->relayed ? world_find(node, p->relay) : NULL;
    peer->lost_at = 0;
    node->world_version++;
    node->announce = true;
    if (p->relayed) {
        world_update(node, peer);
        return;
    }
    if (!node->leaving && link_dial(node, p->endpoint, false, peer) != LS_OK)
        world_refuse(node, NULL);
    struct link *link = link_find(node, p->endpoint);
    if (link != NULL && link->peer == NULL && peer->link == NULL) {
        link->peer = peer;
        peer->link = link;
    }
    if (node->hub) {
        /* So that a leaf knows whose connection it is before anything that is
         * relayed comes over it. */
        heartbeat_send(node, ls_now(node->runtime));
        relay_present(node, peer, true);
    }
    world_update(node, peer);
}

static void present(ls_node *node, const struct wire_presence *p)
{
    if (p->id == node->options.id) {
        if (duplicate(node, p->incarnation, p->endpoint))
            world_refuse(node, NULL);
        return;
    }
    if (check_presence(node, p) != LS_OK) {
        world_refuse(node, NULL);
        return;
    }
    struct peer *peer = world_find(node, p->id);
    if (peer == NULL || (peer->incarnation != p->incarnation && !alive(peer)))
        peer = world_note(node, p->id, p->incarnation);
    if (peer == NULL)
        return; /* no memory for one more, or an older life of a dead one */
    if (peer->incarnation == p->incarnation) {
        if (peer->n_present++ == 0)
            arrived(node, peer, p);
        return;
    }
    /* Another has this id and lives, or has not been missed yet. */
    (void)ls_error(LS_EEXIST, "node id %u is taken by %s; %s wants it too",
                   p->id, peer->endpoint, p->endpoint);
    world_refuse(node, NULL);
    peer->rival = *p;
    peer->n_rival++;
}

static void admit_rival(ls_node *node, struct peer *peer)
{
    if (peer->n_rival == 0 || peer->rival.endpoint[0] == '\0')
        return;
    const struct wire_presence rival = peer->rival;
    forget(peer, rival.incarnation);
    peer->n_present = peer->n_rival;
    peer->n_rival = 0;
    arrived(node, peer, &rival);
}

void world_farewell(ls_node *node, struct peer *peer, int reason)
{
    peer->said_farewell = true;
    peer->farewell_reason = reason;
    gone(node, peer, LS_MEMBER_LEFT, reason);
    if (peer->n_present == 0)
        admit_rival(node, peer); /* its next life came before its last word */
}

static void absent(ls_node *node, const struct wire_presence *p)
{
    struct peer *peer = world_find(node, p->id);
    if (peer == NULL)
        return;
    if (peer->incarnation != p->incarnation) {
        if (peer->n_rival != 0 && peer->rival.incarnation == p->incarnation)
            peer->n_rival--;
        return;
    }
    if (peer->n_present == 0 || --peer->n_present != 0)
        return;
    node->world_version++;
    ls_cond_broadcast(&node->changed);
    if (peer->said_farewell) {
        admit_rival(node, peer);
    } else if (!node->leaving) {
        peer->lost_at = ls_now(node->runtime) + FAREWELL_NS;
    }
}

void world_presence(ls_node *node, const uint8_t *topic, size_t size,
                    bool subscribed)
{
    struct wire_presence p;
    if (wire_presence_read(topic, size, &p) != LS_OK)
        world_refuse(node, NULL);
    else if (subscribed)
        present(node, &p);
    else
        absent(node, &p);
}

void world_listen(ls_node *node, const uint8_t *topic, size_t size,
                  bool subscribed)
{
    struct wire_listen listen;
    struct event_entry *entry = NULL;
    if (wire_listen_read(topic, size, &listen) != LS_OK ||
        events_get(node, listen.event, strlen(listen.event), false, &entry) !=
            LS_OK ||
        events_remote(node, entry, listen.id, listen.incarnation, subscribed) !=
            LS_OK) {
        world_refuse(node, NULL);
        return;
    }
    struct peer *peer = world_find(node, listen.id);
    if (node->hub && peer != NULL && peer->relayed &&
        peer->incarnation == listen.incarnation)
        relay_listen(node, peer, entry, subscribed);
}

/* ---- over a link ------------------------------------------------------- */

static struct peer *bind_link(ls_node *node, struct link *link,
                              const struct wire_header *header)
{
    if (link->peer != NULL && link->peer->id != header->origin &&
        alive(link->peer)) {
        (void)ls_error(LS_EPROTO, "node %u sends on the connection of node %u",
                       header->origin, link->peer->id);
        world_refuse(node, link);
        return NULL;
    }
    struct peer *peer = world_note(node, header->origin, header->incarnation);
    if (peer == NULL) {
        (void)ls_error(LS_EEXIST,
                       "node id %u is taken, or this is an older "
                       "life of it",
                       header->origin);
        world_refuse(node, link);
        return NULL;
    }
    if (peer->said_farewell)
        return NULL; /* its last words, over a link that we reopened */
    if (peer->link != NULL && peer->link != link && !peer->link->closing) {
        /* Two addresses of one node: the older stays. */
        peer->link->attached = peer->link->attached || link->attached;
        link->closing = true;
        return NULL;
    }
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
                                       header->kind == WIRE_KIND_CHANNEL);
    struct peer *peer = world_find(node, header->origin);
    if (peer == NULL && may_be_early &&
        (peer = world_note(node, header->origin, header->incarnation)) != NULL)
        peer->via = link->peer;
    const bool known =
        peer != NULL && peer->via == link->peer &&
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
        if (duplicate(node, header->incarnation, link->endpoint))
            world_refuse(node, link);
        else if (link->peer == NULL)
            link->closing = true; /* another name of our own address */
        return NULL;
    }
    const bool leaf = node->options.topology == LS_TOPOLOGY_STAR && !node->hub;
    if (leaf && !direct && link->peer == NULL)
        return NULL; /* whose connection this is, a heartbeat says first */
    struct peer *peer = NULL;
    if (link->peer != NULL && link->peer->id != header->origin)
        peer = relayed(node, link, header, leaf);
    return peer != NULL ? peer : bind_link(node, link, header);
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
            if (node->peers[i]->heard_at != 0)
                node->peers[i]->heard_at += late;
    node->looked_at = now;
}

int64_t world_tick(ls_node *node, int64_t now)
{
    const int64_t silence = node->options.silence_ms * LS_NS_PER_MS;
    int64_t next = LS_FOREVER;
    excuse_own_stall(node, now);
    for (size_t i = 0; i < node->n_peers; i++) {
        struct peer *peer = node->peers[i];
        if (peer->lost_at != 0 && peer->lost_at <= now) {
            gone(node, peer, LS_MEMBER_LOST, LS_ELOST);
            admit_rival(node, peer);
        } else if (peer->lost_at != 0) {
            next = peer->lost_at < next ? peer->lost_at : next;
        }
        if (peer->state != LS_MEMBER_READY || peer->via != NULL)
            continue;
        if (now - peer->heard_at > silence)
            gone(node, peer, LS_MEMBER_LOST, LS_ETIMEDOUT);
        else if (peer->heard_at + silence < next)
            next = peer->heard_at + silence;
    }
    return next;
}
