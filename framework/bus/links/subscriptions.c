/* What a peer subscribes to here: some of it says something. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "credentials.h"
#include "delivery.h"

/* Whom to name: the node that it has proved to be, or its address. */
static void name_speaker(const ls_node *node, const struct speaker *by,
                         char name[TRANSPORT_NAME_MAX])
{
    name[0] = '\0';
    if (by->proved)
        snprintf(name, TRANSPORT_NAME_MAX, "node %" PRIu32, by->id);
    else if (by->connection != 0)
        transport_name(node->transport, by->connection, name);
}

void refuse_speaker(ls_node *node, const struct speaker *by,
                    enum ls_refusal_kind kind)
{
    char who[TRANSPORT_NAME_MAX];
    name_speaker(node, by, who);
    refusals_note(&node->refusals, kind, who, 1, node->loop.now);
}

static enum ls_refusal_kind kind_of(int status)
{
    switch (status) {
    case LS_EPROTO:
        return LS_REFUSAL_IDENTITY;
    case LS_ENOENT:
        return LS_REFUSAL_STALE;
    default:
        return LS_REFUSAL_WORLD;
    }
}

/* ---- presence ---------------------------------------------------------- */

static bool is_signed(ls_node *node, const struct wire_presence *p)
{
    char statement[WIRE_TOPIC_MAX];
    const size_t size = wire_presence_statement(statement, p);
    return credentials_signed(node->security, p->id, statement, size,
                              p->signature);
}

static bool unsuited(ls_node *node, const struct speaker *by,
                     const struct wire_presence *p, const char *why)
{
    /* Who only claims to be that node is told nothing, where ids are proved. */
    if (by->proved ? by->id == p->id : !p->relayed)
        membership_unsuited(&node->world, p);
    (void)ls_error(LS_EPROTO,
                   "node %" PRIu32 " gives itself role \"%s\" and labels "
                   "\"%s\", which %s",
                   p->id, p->role, p->labels, why);
    return false;
}

/* Whether what it says of its node is signed by that node, where that is asked
 * for; and whether the node may call itself so. */
static bool is_genuine(ls_node *node, const struct speaker *by,
                       const struct wire_presence *p)
{
    if (node->security == NULL)
        return true;
    if (p->relayed && !is_signed(node, p)) {
        (void)ls_error(LS_EPROTO,
                       "node %" PRIu32 " has not signed the presence that node "
                       "%" PRIu32 " shows of it, or not with the key that its "
                       "certificate has here",
                       p->id, p->relay);
        return false;
    }
    return credentials_suits(node->security, p->id, p->role, p->labels) ||
           unsuited(node, by, p, "its certificate does not");
}

/* Whether the program lets it call itself so: it will say no other. */
static bool is_suited(ls_node *node, const struct speaker *by,
                      const struct wire_presence *p)
{
    const struct ls_node_options *options = &node->options;
    return options->suits == NULL ||
           options->suits(options->suits_self, p->id, p->role, p->labels) ||
           unsuited(node, by, p, "it may not have here");
}

static int present(ls_node *node, const struct speaker *by,
                   const struct wire_presence *p)
{
    if (!is_suited(node, by, p))
        return LS_EPROTO;
    return bus_omits(node, BUS_LETS_IN, p)
               ? LS_OK
               : membership_present(&node->world, by, p, node->loop.now);
}

/* A hub shows a leaf once, and this node may be given the certificate of that
 * leaf, or its next one, a moment later. So what is not believed is kept, as
 * long as it is shown, and looked at again with each heartbeat. */
struct doubt {
    struct doubt *next;
    struct wire_presence presence;
    struct speaker by;
};

static int64_t heartbeat_ns(const ls_node *node)
{
    return node->options.heartbeat_ms * LS_NS_PER_MS;
}

static void doubt(ls_node *node, const struct speaker *by,
                  const struct wire_presence *p)
{
    struct doubt **at = &node->doubts.first;
    uint32_t room = node->options.world_max;
    for (; *at != NULL && room != 0; room--)
        at = &(*at)->next;
    if (room == 0 || !p->relayed ||
        membership_may_show(&node->world, by, p) != LS_OK ||
        (*at = malloc(sizeof **at)) == NULL)
        return;
    **at = (struct doubt){.presence = *p, .by = *by};
    if (at == &node->doubts.first)
        node->doubts.look_at = node->loop.now + heartbeat_ns(node);
}

static bool is_same(const struct wire_presence *a,
                    const struct wire_presence *b)
{
    return a->link == b->link && a->id == b->id &&
           a->incarnation == b->incarnation;
}

static void end_doubt(struct doubt **at)
{
    struct doubt *doubt = *at;
    *at = doubt->next;
    free(doubt);
}

/* Whether what is taken back was not believed. */
static bool was_doubted(ls_node *node, const struct speaker *by,
                        const struct wire_presence *p)
{
    struct doubt **at = &node->doubts.first;
    while (*at != NULL && !is_same(&(*at)->presence, p))
        at = &(*at)->next;
    if (*at == NULL || (by->proved && by->id != (*at)->by.id))
        return false;
    end_doubt(at);
    return true;
}

static bool is_settled(ls_node *node, const struct doubt *doubt)
{
    const struct wire_presence *p = &doubt->presence;
    if (membership_may_show(&node->world, &doubt->by, p) != LS_OK)
        return true;
    if (!is_genuine(node, &doubt->by, p))
        return false;
    const int status = present(node, &doubt->by, p);
    if (status != LS_OK)
        refuse_speaker(node, &doubt->by, kind_of(status));
    ls_cond_broadcast(&node->changed);
    return true;
}

int64_t doubts_tick(ls_node *node, int64_t now)
{
    const bool due = now >= node->doubts.look_at;
    for (struct doubt **at = &node->doubts.first; due && *at != NULL;)
        if (is_settled(node, *at))
            end_doubt(at);
        else
            at = &(*at)->next;
    if (due)
        node->doubts.look_at = now + heartbeat_ns(node);
    return node->doubts.first != NULL ? node->doubts.look_at : LS_FOREVER;
}

void doubts_fini(ls_node *node)
{
    while (node->doubts.first != NULL)
        end_doubt(&node->doubts.first);
}

static void presence(ls_node *node, const uint8_t *topic, size_t size,
                     bool subscribed, const struct speaker *by)
{
    struct wire_presence p;
    int status = wire_presence_read(topic, size, &p);
    if (status != LS_OK) {
        refuse_speaker(node, by,
                       status == LS_EMISMATCH ? LS_REFUSAL_WORLD
                                              : LS_REFUSAL_FORM);
        return;
    }
    if (!subscribed && was_doubted(node, by, &p))
        return;
    const bool genuine = !subscribed || is_genuine(node, by, &p);
    if (!genuine)
        status = LS_EPROTO;
    else if (subscribed)
        status = present(node, by, &p);
    else
        status = membership_absent(&node->world, by, &p, node->loop.now);
    if (status != LS_OK)
        refuse_speaker(node, by, kind_of(status));
    if (!genuine)
        doubt(node, by, &p);
    ls_cond_broadcast(&node->changed);
}

/* ---- listening --------------------------------------------------------- */

static void listening(ls_node *node, const uint8_t *topic, size_t size,
                      bool subscribed, const struct speaker *by)
{
    struct wire_listen listen;
    struct event_entry *entry = NULL;
    enum listening how;
    if (wire_listen_read(topic, size, &listen) != LS_OK) {
        refuse_speaker(node, by, LS_REFUSAL_FORM);
        return;
    }
    if (membership_may_listen(&node->world, by, listen.id) != LS_OK) {
        refuse_speaker(node, by, LS_REFUSAL_IDENTITY);
        return;
    }
    const size_t length = strlen(listen.event);
    if (!subscribed &&
        (entry = events_find(node, listen.event, length)) == NULL)
        return; /* the end of one that was refused */
    int status = events_get(node, listen.event, length, false, &entry);
    if (status == LS_OK)
        status = events_remote(node, entry, &listen, by->connection, subscribed,
                               &how);
    if (status != LS_OK) {
        refuse_speaker(node, by, LS_REFUSAL_FORM);
        if (status == LS_ENOMEM) /* it would wait in vain, and nobody know */
            ls_node_interrupt_soon(node, LS_ENOMEM);
        return;
    }
    struct peer *peer = world_find(node, listen.id);
    if (!subscribed || peer == NULL ||
        !member_shows(&peer->member, listen.link))
        return; /* its end: see events_sweep() */
    if (node->me.hub && peer->relayed && how != LISTENING_ENDS)
        relay_listen(node, peer, entry, how);
    if (member_is_here(&peer->member))
        delivery_joined(node, entry, peer);
}

/* ---- all of them ------------------------------------------------------- */

void subscription_read(ls_node *node, const uint8_t *topic, size_t size,
                       bool subscribed, const struct speaker *by)
{
    bus_look_after(node);
    switch (topic[0]) {
    case WIRE_PRESENCE:
        presence(node, topic, size, subscribed, by);
        break;
    case WIRE_LISTEN:
        listening(node, topic, size, subscribed, by);
        break;
    case WIRE_CHALLENGE:
        if (subscribed)
            answer_challenge(node, topic, size);
        break;
    case WIRE_CONTROL:
    case WIRE_EVENT:
    case WIRE_INBOX:
        break;
    default:
        (void)ls_error(LS_EPROTO, "a subscription of an unknown class");
        refuse_speaker(node, by, LS_REFUSAL_FORM);
        break;
    }
}
