/* Presences: who came, who went, and who may have an id when two want it. */
#include "bus.h"

#include <inttypes.h>
#include <string.h>

bool presence_duplicate(ls_node *node, uint64_t incarnation,
                        const char *endpoint)
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

/* ---- coming ------------------------------------------------------------ */

static void settle_identity(struct peer *peer, const struct wire_presence *p)
{
    memcpy(peer->role, p->role, sizeof peer->role);
    memcpy(peer->labels, p->labels, sizeof peer->labels);
    memcpy(peer->endpoint, p->endpoint, sizeof peer->endpoint);
    /* It has moved: what answers at its old address is somebody else. */
    if (peer->link != NULL && !p->relayed &&
        strcmp(peer->link->endpoint, p->endpoint) != 0) {
        peer->link->peer = NULL;
        peer->link = NULL;
    }
}

static void dial_back(ls_node *node, struct peer *peer)
{
    if (!node->leaving && link_dial(node, peer->endpoint, false, peer) != LS_OK)
        world_refuse(node, NULL);
    struct link *link = link_find(node, peer->endpoint);
    if (link != NULL)
        link_present(node, link);
    if (link != NULL && link->peer == NULL && peer->link == NULL) {
        link->peer = peer;
        peer->link = link;
    }
}

/* The first presence of an incarnation. */
static void welcome(ls_node *node, struct peer *peer)
{
    node->world_version++;
    node->announce = true;
    if (peer->via == NULL) {
        dial_back(node, peer);
        /* So that a leaf knows whose connection it is before anything that is
         * relayed comes over it. */
        if (node->hub)
            heartbeat_send(node, ls_now(node->runtime));
    }
    streams_present(node, peer);
    world_update(node, peer);
}

/* Whether the world has room for one more. Of those that come at once, before
 * they are members, the eldest are let in. */
static bool has_room(const ls_node *node, const struct peer *one)
{
    uint32_t n = 2; /* this node and that one */
    for (size_t i = 0; i < node->n_peers; i++) {
        const struct peer *peer = node->peers[i];
        if (peer == one || peer->barred || !member_is_alive(peer))
            continue;
        n += peer->state == LS_MEMBER_READY ||
                     peer->incarnation < one->incarnation
                 ? 1
                 : 0;
    }
    return n <= node->options.world_max;
}

static void bar(ls_node *node, struct peer *peer)
{
    peer->barred = true;
    node->announce = true; /* it is told: see rejoin.c */
    (void)ls_error(LS_ELIMIT, "node %u at %s is one too many for this world",
                   peer->id, peer->endpoint);
    world_refuse(node, NULL);
}

static void arrives(ls_node *node, struct peer *peer,
                    const struct wire_presence *p)
{
    settle_identity(peer, p);
    peer->via = p->relayed ? world_find(node, p->relay) : NULL;
    if (peer->via == NULL && !has_room(node, peer))
        bar(node, peer);
    else
        welcome(node, peer);
}

static void appears(ls_node *node, struct peer *peer,
                    const struct wire_presence *p)
{
    const bool first = peer->n_present == 0;
    const enum member_change change = member_appears(peer);
    if (member_has_ended(peer))
        node->announce = true; /* it is told so: see rejoin.c */
    else if (change == MEMBER_RETURNED)
        world_apply(node, peer, change);
    else if (first)
        arrives(node, peer, p);
}

static void begin_anew(ls_node *node, struct peer *peer,
                       const struct wire_presence *p, unsigned n_present)
{
    world_renew(node, peer, p->incarnation);
    peer->n_present = n_present;
    arrives(node, peer, p);
}

/* Another incarnation at the address of one that has not ended, or in place of
 * it at its hub: the old one cannot be any more. */
void presence_replace(ls_node *node, struct peer *peer, uint64_t incarnation)
{
    struct link *link = peer->link;
    peer->link = NULL; /* it leads to the new one: it stays */
    peer->n_rival = 0;
    world_apply(node, peer, member_is_lost(peer, LS_ELOST));
    world_renew(node, peer, incarnation);
    peer->link = link;
}

/* Two want one id. Whether the elder still runs is asked of its host, and seen
 * by its heartbeats. */
static void compete(ls_node *node, struct peer *peer,
                    const struct wire_presence *p)
{
    (void)ls_error(LS_EEXIST, "node id %u is taken by %s; %s wants it too",
                   p->id, peer->endpoint, p->endpoint);
    world_refuse(node, NULL);
    if (peer->n_rival != 0 && peer->rival.incarnation == p->incarnation) {
        peer->n_rival++;
        return;
    }
    peer->rival = *p;
    peer->n_rival = 1;
    peer->rival_at = node->now;
    member_ask(peer, node->now);
}

static void present(ls_node *node, const struct wire_presence *p)
{
    if (p->id == node->options.id) {
        if (presence_duplicate(node, p->incarnation, p->endpoint))
            world_refuse(node, NULL);
        return;
    }
    if (check_presence(node, p) != LS_OK) {
        world_refuse(node, NULL);
        return;
    }
    struct peer *peer = world_find(node, p->id);
    const bool other = peer != NULL && peer->incarnation != p->incarnation;
    if (other && p->incarnation > peer->incarnation &&
        (p->relayed || strcmp(peer->endpoint, p->endpoint) == 0)) {
        if (member_is_alive(peer))
            presence_replace(node, peer, p->incarnation);
        begin_anew(node, peer, p, 1);
        return;
    }
    if (other && member_is_alive(peer)) {
        compete(node, peer, p);
        return;
    }
    peer = world_note(node, p->id, p->incarnation);
    if (peer != NULL) /* else no memory, or an older life of a dead one */
        appears(node, peer, p);
}

void presence_admit_barred(ls_node *node)
{
    for (size_t i = 0; i < node->n_peers; i++) {
        struct peer *peer = node->peers[i];
        if (!peer->barred || peer->n_present == 0 || !has_room(node, peer))
            continue;
        peer->barred = false;
        welcome(node, peer);
    }
}

void presence_admit_rival(ls_node *node, struct peer *peer)
{
    if (peer->n_rival == 0 || member_is_alive(peer))
        return;
    const struct wire_presence rival = peer->rival;
    const unsigned n = peer->n_rival;
    peer->n_rival = 0;
    begin_anew(node, peer, &rival, n);
}

/* ---- going ------------------------------------------------------------- */

static void absent(ls_node *node, const struct wire_presence *p)
{
    struct peer *peer = world_find(node, p->id);
    if (peer == NULL)
        return;
    if (peer->incarnation == p->incarnation) {
        node->world_version++;
        const enum member_change change = member_disappears(peer, node->now);
        if (node->leaving)
            peer->away_at = 0; /* it has read the farewell */
        else
            world_apply(node, peer, change);
        presence_admit_rival(node, peer);
        ls_cond_broadcast(&node->changed);
    } else if (peer->n_rival != 0 &&
               peer->rival.incarnation == p->incarnation) {
        peer->n_rival--;
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
    bool began = false;
    if (wire_listen_read(topic, size, &listen) != LS_OK ||
        events_get(node, listen.event, strlen(listen.event), false, &entry) !=
            LS_OK ||
        events_remote(node, entry, listen.id, listen.incarnation, subscribed,
                      &began) != LS_OK) {
        world_refuse(node, NULL);
        return;
    }
    struct peer *peer = world_find(node, listen.id);
    if (!subscribed || peer == NULL || peer->incarnation != listen.incarnation)
        return; /* its end: see events_sweep() */
    if (node->hub && peer->relayed && began)
        relay_listen(node, peer, entry, true);
    if (entry->latest != NULL && member_hears(peer))
        latest_offer(node, peer);
}
