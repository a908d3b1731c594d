/* What a peer subscribes to here: some of it says something. */
#include <inttypes.h>
#include <stdio.h>
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

/* Whether what it says of its node is signed by that node, where that is asked
 * for; and whether the node may call itself so. */
static bool is_genuine(ls_node *node, const struct speaker *by,
                       const struct wire_presence *p)
{
    char statement[WIRE_TOPIC_MAX];
    if (node->security == NULL)
        return true;
    if (!credentials_suits(node->security, p->id, p->role, p->labels)) {
        /* Who only claims to be that node is told nothing. */
        if (by->proved && by->id == p->id)
            membership_unsuited(&node->world, p);
        (void)ls_error(LS_EPROTO,
                       "node %" PRIu32 " gives itself role \"%s\" and labels "
                       "\"%s\", which its certificate does not",
                       p->id, p->role, p->labels);
        return false;
    }
    if (!p->relayed)
        return true;
    const size_t size = wire_presence_statement(statement, p);
    if (credentials_signed(node->security, p->id, statement, size,
                           p->signature))
        return true;
    (void)ls_error(LS_EPROTO,
                   "node %" PRIu32 " has not signed the presence that node "
                   "%" PRIu32 " shows of it",
                   p->id, p->relay);
    return false;
}

static int present(ls_node *node, const struct speaker *by,
                   const struct wire_presence *p)
{
    return bus_omits(node, BUS_LETS_IN, p)
               ? LS_OK
               : membership_present(&node->world, by, p, node->loop.now);
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
    if (subscribed && !is_genuine(node, by, &p))
        status = LS_EPROTO;
    else if (subscribed)
        status = present(node, by, &p);
    else
        status = membership_absent(&node->world, by, &p, node->loop.now);
    if (status != LS_OK)
        refuse_speaker(node, by, kind_of(status));
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
