/* Dialled addresses, and what this node subscribes to at each of them. */
#include "bus.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "credentials.h"

/* Addresses that peers named: of presences, and of hearsay alone. */
#define MAX_UNANSWERED 256
#define MAX_HEARSAY    16
#define REDIAL_MOST_NS (8 * LS_NS_PER_S)

struct link *link_find(ls_node *node, const char *endpoint)
{
    for (struct link *link = node->links; link != NULL; link = link->next)
        if (!link->closing && strcmp(link->endpoint, endpoint) == 0)
            return link;
    return NULL;
}

/* ---- what is subscribed to --------------------------------------------- */

int link_subscribe(struct link *link, const uint8_t *topic, size_t size,
                   bool on)
{
    return link->transport != NULL
               ? transport_link_subscribe(link->transport, topic, size, on)
               : LS_OK; /* all of it is when there is a socket again */
}

int link_listen(struct link *link, uint32_t id, const struct event_entry *entry,
                enum listening how)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    struct wire_listen listen = {link->number, id, ""};
    memcpy(listen.event, entry->name, sizeof listen.event);
    const size_t size = wire_listen_write(topic, &listen);
    /* That it listens is said after the filter is in force, and taken back
     * before it is lifted. */
    int status = LS_OK;
    if (how != LISTENING_BEGINS)
        status = link_subscribe(link, topic, size, false);
    if (status == LS_OK && how != LISTENING_ANEW)
        status = link_subscribe(link, entry->topic, entry->filter_size,
                                how == LISTENING_BEGINS);
    if (status == LS_OK && how != LISTENING_ENDS)
        status = link_subscribe(link, topic, size, true);
    return status;
}

static int ask(ls_node *node, struct link *link)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    link->ask_at = node->loop.now + link->ask_ns;
    return link_subscribe(link, topic,
                          wire_topic_challenge(topic, link->challenge), true);
}

static int challenge(ls_node *node, struct link *link)
{
    (void)snprintf(link->challenge, sizeof link->challenge,
                   "%016" PRIx64 "%016" PRIx64, ls_entropy(node->runtime),
                   ls_entropy(node->runtime));
    return ask(node, link);
}

/* The same, so that an answer to either counts: who is far away answers late.
 */
static void ask_again(ls_node *node, struct link *link)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    (void)link_subscribe(link, topic,
                         wire_topic_challenge(topic, link->challenge), false);
    (void)ask(node, link);
    link->ask_ns *= 2;
    if (link->ask_ns > LINK_ASK_MAX_NS)
        link->ask_ns = LINK_ASK_MAX_NS;
}

static int subscribe_own(ls_node *node, struct link *link)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    int status = challenge(node, link);
    if (status == LS_OK)
        status = link_subscribe(link, topic, wire_topic_control(topic), true);
    if (status == LS_OK) /* a hub is sent what is for any of its leaves */
        status = link_subscribe(link, topic,
                                node->me.hub
                                    ? wire_topic_inboxes(topic)
                                    : wire_topic_inbox(topic, node->options.id),
                                true);
    const struct event_entry *entry = NULL;
    while (status == LS_OK && (entry = events_next(node, entry)) != NULL)
        if (entry->subscribed)
            status =
                link_listen(link, node->options.id, entry, LISTENING_BEGINS);
    return status;
}

static struct wire_presence presence_of(const ls_node *node)
{
    struct wire_presence me = {.id = node->options.id,
                               .incarnation = node->me.incarnation,
                               .config_hash = node->options.config_hash,
                               .host = node->me.host};
    memcpy(me.job, node->me.job, sizeof me.job);
    memcpy(me.role, node->me.role, sizeof me.role);
    memcpy(me.labels, node->me.labels, sizeof me.labels);
    memcpy(me.endpoint, node->me.endpoint, sizeof me.endpoint);
    memcpy(me.signature, node->me.signature, sizeof me.signature);
    return me;
}

static int subscribe_as(struct link *link, const struct wire_presence *who,
                        bool on)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    struct wire_presence me = *who;
    me.link = link->number;
    return link_subscribe(link, topic, wire_presence_write(topic, &me), on);
}

static int subscribe_presence(ls_node *node, struct link *link, bool on)
{
    const struct wire_presence me = presence_of(node);
    return subscribe_as(link, &me, on);
}

int links_sign(ls_node *node)
{
    char statement[WIRE_TOPIC_MAX];
    node->me.signature[0] = '\0';
    if (node->options.topology != LS_TOPOLOGY_STAR || node->me.hub ||
        node->security == NULL)
        return LS_OK;
    const struct wire_presence me = presence_of(node);
    const size_t size = wire_presence_statement(statement, &me);
    return credentials_sign(node->security, statement, size,
                            node->me.signature);
}

static void present_everywhere(ls_node *node, const struct wire_presence *who,
                               bool on)
{
    for (struct link *link = node->links; link != NULL; link = link->next)
        if (!link->closing && !link->withdrawn)
            (void)subscribe_as(link, who, on);
}

/* The new one first: so nobody takes this node to be away. */
void links_renew(ls_node *node, uint64_t incarnation)
{
    const struct wire_presence before = presence_of(node);
    transport_renew(node->transport, incarnation);
    node->me.incarnation = incarnation;
    if (links_sign(node) != LS_OK)
        ls_log_error("bus: %s", ls_error_text());
    const struct wire_presence now = presence_of(node);
    present_everywhere(node, &now, true);
    present_everywhere(node, &before, false);
}

/* ---- dialling ---------------------------------------------------------- */

static size_t unanswered(const ls_node *node, bool hearsay)
{
    size_t n = 0;
    for (const struct link *link = node->links; link != NULL; link = link->next)
        n +=
            link->peer == NULL && !link->attached && (!hearsay || link->hearsay)
                ? 1
                : 0;
    return n;
}

static bool has_keys(const ls_node *node)
{
    return node->security != NULL &&
           ls_security_mode(node->security) == LS_SECURITY_CURVE;
}

/* Before a socket is made, or ended: a member may name thousands without a
 * key. */
static int check_key(const ls_node *node, const char *endpoint, uint32_t id)
{
    char key[CREDENTIALS_KEY_MAX];
    return has_keys(node) && !transport_in_process(endpoint)
               ? credentials_server_key(node->security, id, key)
               : LS_OK;
}

static int check_dial(const ls_node *node, const char *endpoint, bool attached,
                      bool hearsay, bool known, uint32_t id)
{
    if (!node->options.insecure && !has_keys(node) &&
        transport_leaves_host(endpoint))
        return ls_error(LS_EINVAL,
                        "%s is beyond this host: that takes keys (see "
                        "lockstep/security.h), or `insecure`",
                        endpoint);
    const int status = known ? check_key(node, endpoint, id) : LS_OK;
    if (status != LS_OK)
        return status;
    if (!attached && (unanswered(node, false) >= MAX_UNANSWERED ||
                      (hearsay && unanswered(node, true) >= MAX_HEARSAY)))
        return ls_error(LS_ELIMIT,
                        "%s is not dialled: too many addresses that peers "
                        "named did not answer",
                        endpoint);
    return LS_OK;
}

/* The socket of a link: everything subscribed to, the presence last. */
static int open_link(ls_node *node, struct link *link)
{
    const struct peer *peer = link->known ? world_find(node, link->id) : NULL;
    int status = transport_link_open(node->transport, &link->transport, link);
    if (status == LS_OK)
        status = subscribe_own(node, link);
    if (status == LS_OK && node->me.hub)
        relay_dial(node, link, peer);
    if (status == LS_OK && !link->withdrawn)
        status = subscribe_presence(node, link, true);
    if (status == LS_OK)
        status = transport_link_connect(link->transport, link->endpoint,
                                        link->known, link->id);
    if (status != LS_OK)
        transport_link_close(&link->transport, false);
    link->heard_at = node->loop.now;
    return status;
}

/* Whether it says itself that it is there. */
static bool is_present(const ls_node *node, uint32_t id)
{
    const struct peer *peer = world_find(node, id);
    return peer != NULL && peer->member.n_present != 0;
}

static int64_t silence_of(const ls_node *node)
{
    return node->options.silence_ms * LS_NS_PER_MS;
}

/* Another node is said to be at the address of a link. Hearsay does not count
 * where one says so itself; and of those that others name each has a time of
 * silence to answer, or who names many would have it dialled for ever. */
static int dial_as(ls_node *node, struct link *link, uint32_t id)
{
    const struct peer *peer = link->peer;
    const bool hearsay = !is_present(node, id);
    const bool answers =
        peer != NULL && peer->member.id != id && member_is_alive(&peer->member);
    if (answers || (hearsay && is_present(node, link->id)))
        return ls_error(LS_EPROTO,
                        "node %" PRIu32 " is said to be at %s, where node "
                        "%" PRIu32 " is",
                        id, link->endpoint,
                        answers ? peer->member.id : link->id);
    if (hearsay && node->loop.now - link->heard_at < silence_of(node))
        return ls_error(LS_ELIMIT,
                        "%s is not dialled as node %" PRIu32 ": it is dialled "
                        "as node %" PRIu32,
                        link->endpoint, id, link->id);
    int status = check_key(node, link->endpoint, id);
    if (status != LS_OK)
        return status; /* it stays whose it was */
    link->known = true;
    link->id = id;
    link->hearsay = hearsay && peer == NULL;
    transport_link_close(&link->transport, false);
    status = open_link(node, link);
    link->closing = status != LS_OK && !link->attached;
    return status;
}

static int64_t first_redial(const ls_node *node)
{
    return has_keys(node) ? LINK_REDIAL_KEYS_NS : LINK_REDIAL_NS;
}

int link_dial(ls_node *node, const char *endpoint, bool attached, bool known,
              uint32_t id)
{
    const bool hearsay = known && !attached && !is_present(node, id);
    if (strcmp(endpoint, node->me.endpoint) == 0)
        return LS_OK;
    struct link *link = link_find(node, endpoint);
    if (link != NULL) {
        link->attached = link->attached || attached;
        link->named_at = known ? node->loop.now : link->named_at;
        if (known && link->known && link->id != id)
            return dial_as(node, link, id);
        if (link->hearsay && !hearsay) { /* it says so itself now */
            link->hearsay = false;
            link->redial_ns = first_redial(node);
        }
        return LS_OK;
    }
    int status = check_dial(node, endpoint, attached, hearsay, known, id);
    if (status != LS_OK)
        return status;
    link = calloc(1, sizeof *link);
    if (link == NULL)
        return ls_error(LS_ENOMEM, "no memory for a link");
    snprintf(link->endpoint, sizeof link->endpoint, "%s", endpoint);
    link->attached = attached;
    link->hearsay = hearsay;
    link->known = known;
    link->named_at = node->loop.now;
    link->id = id;
    link->ask_ns = LINK_ASK_NS;
    link->redial_ns = hearsay ? silence_of(node) : first_redial(node);
    while (link->number == 0)
        link->number = ls_entropy(node->runtime);
    status = open_link(node, link);
    if (status != LS_OK) {
        free(link);
        return status;
    }
    link->next = node->links;
    node->links = link;
    ls_log_debug("bus: dialling %s", endpoint);
    return LS_OK;
}

/* Of several that say they are at this address, the next; else as before. */
static void take_turns(const ls_node *node, struct link *link)
{
    uint32_t first = link->id, next = link->id;
    for (size_t i = node->world.n; i-- > 0;) {
        const struct member *member = node->world.at[i];
        if (member->n_present == 0 || member->via != NULL ||
            strcmp(member->endpoint, link->endpoint) != 0)
            continue;
        first = member->id;
        if (member->id > link->id)
            next = member->id;
    }
    next = next == link->id ? first : next;
    if (link->known && next != link->id &&
        check_key(node, link->endpoint, next) == LS_OK)
        link->id = next;
}

/* Where there is no socket for it, one that the user gave is dialled again
 * later: nobody else may know of it. */
static void redial(ls_node *node, struct link *link)
{
    take_turns(node, link);
    link->redial_ns *= 2;
    if (link->redial_ns > REDIAL_MOST_NS)
        link->redial_ns = REDIAL_MOST_NS;
    ls_log_debug("bus: dialling %s anew", link->endpoint);
    transport_link_close(&link->transport, false);
    if (open_link(node, link) == LS_OK)
        return;
    ls_log_warn("bus: dialling %s again: %s", link->endpoint, ls_error_text());
    link->closing = !link->attached;
}

static int64_t patience_of(const ls_node *node)
{
    return 2 * node->options.heartbeat_ms * LS_NS_PER_MS;
}

/* Others may name it again. Who is not named any more has left meanwhile, as a
 * client does after its call, and is missed by nobody. */
static void give_up(ls_node *node, struct link *link)
{
    link->closing = true;
    if (node->loop.now - link->named_at >= patience_of(node)) {
        ls_log_debug("bus: nobody speaks of %s any more", link->endpoint);
        return;
    }
    (void)ls_error(LS_EUNREACHABLE,
                   "a member spoke of node %" PRIu32 " there, and nobody "
                   "answers",
                   link->id);
    refusals_note(&node->refusals, LS_REFUSAL_WORLD, link->endpoint, 1,
                  node->loop.now);
}

/* Where it says to be, if that is elsewhere. */
static void seek(ls_node *node, const struct link *link, struct member *member)
{
    if (!node->world.leaving && member_hears(member) && member->via == NULL &&
        strcmp(member->endpoint, link->endpoint) != 0)
        (void)world_dial(node, member, member->id, member->endpoint);
}

static bool works(const struct link *link)
{
    return link->transport != NULL && link->peer != NULL &&
           link->peer->member.state == LS_MEMBER_READY;
}

static int64_t heard_at(const struct link *link)
{
    const int64_t heard =
        link->peer == NULL ? 0 : (int64_t)link->peer->member.heard_at;
    return heard > link->heard_at ? heard : link->heard_at;
}

bool link_serves(const ls_node *node, const struct link *link)
{
    return link->transport != NULL && link->peer != NULL && !link->closing &&
           link->life == link->peer->member.incarnation &&
           node->loop.now - heard_at(link) < patience_of(node);
}

/* One over which nothing has been heard for a while: returns when to look at it
 * again. */
static int64_t pursue(ls_node *node, struct link *link, int64_t now)
{
    const int64_t since = heard_at(link);
    const int64_t patience = patience_of(node);
    /* Who has proved to be there may be busy, and what it has sent over this
     * connection would be lost with it. */
    const int64_t wait_ns = link->peer != NULL && link->redial_ns < 2 * patience
                                ? 2 * patience
                                : link->redial_ns;
    const int64_t redial_at = works(link) ? LS_FOREVER : since + wait_ns;
    if (redial_at <= now) {
        if (link->peer == NULL && !link->attached &&
            (link->hearsay || !is_present(node, link->id)))
            give_up(node, link);
        else
            redial(node, link);
        return now + link->redial_ns;
    }
    if (since + patience > now) {
        link->ask_ns = LINK_ASK_NS;
    } else if (link->ask_at <= now) {
        ask_again(node, link);
        if (link->peer != NULL)
            seek(node, link, &link->peer->member);
    }
    const int64_t ask_at =
        link->ask_at > since + patience ? link->ask_at : since + patience;
    return ask_at < redial_at ? ask_at : redial_at;
}

void links_excuse(ls_node *node, int64_t late, int64_t now)
{
    for (struct link *link = node->links; link != NULL; link = link->next)
        link->heard_at =
            link->heard_at + late < now ? link->heard_at + late : now;
}

int64_t links_tick(ls_node *node, int64_t now)
{
    int64_t next = LS_FOREVER;
    for (struct link *link = node->links; link != NULL; link = link->next) {
        if (link->closing || node->world.leaving)
            continue;
        const int64_t due = pursue(node, link, now);
        next = due < next ? due : next;
    }
    return next;
}

/* ---- ending ------------------------------------------------------------ */

void link_unbind(ls_node *node, struct link *link)
{
    struct peer *peer = link->peer;
    link->peer = NULL;
    if (peer == NULL || peer->link != link)
        return;
    peer->link = NULL;
    peer->member.linked = false;
    seek(node, link, &peer->member);
}

/* Another that is there, and says to be at this address; NULL: nobody. */
static const struct member *heir(const ls_node *node, const struct link *link)
{
    for (size_t i = 0; i < node->world.n; i++) {
        const struct member *member = node->world.at[i];
        if (member_hears(member) && member->via == NULL &&
            strcmp(member->endpoint, link->endpoint) == 0)
            return member;
    }
    return NULL;
}

/* It is dialled anew, at once, as the one that is there now. */
static void bequeath(ls_node *node, struct link *link, const struct member *to)
{
    link_unbind(node, link);
    link->known = true;
    link->id = to->id;
    link->hearsay = false;
    link->redial_ns = first_redial(node);
    link->heard_at = node->loop.now - link->redial_ns;
}

/* Whoever leaves waits until all others have taken their presence back: that
 * says that all it sent has been received. An address that the user gave is
 * kept for who comes back to it, as nobody else may know where this node is;
 * the proof of a new one is heard there. Who is only lost may not be gone, and
 * still has to see this node. */
void link_retire(ls_node *node, struct link *link, bool left)
{
    const struct member *next =
        left || link->peer == NULL ? NULL : heir(node, link);
    if (next != NULL) {
        bequeath(node, link, next);
        return;
    }
    link->closing = link->closing || !link->attached;
    if (!left || link->withdrawn)
        return;
    link->withdrawn = true;
    (void)subscribe_presence(node, link, false);
}

void link_present(ls_node *node, struct link *link)
{
    if (!link->withdrawn || node->world.leaving)
        return;
    link->withdrawn = false;
    (void)subscribe_presence(node, link, true);
}

void links_close_marked(ls_node *node)
{
    struct link **at = &node->links;
    while (*at != NULL) {
        struct link *link = *at;
        if (!link->closing) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        link_unbind(node, link);
        transport_link_close(&link->transport, link->withdrawn);
        free(link);
    }
}

/* ---- what changes ------------------------------------------------------ */

/* What was sent before it is listened to was not missed. */
static void forget_sequences(ls_node *node, const struct event_entry *prefix)
{
    struct event_entry *entry = NULL;
    while ((entry = events_next(node, entry)) != NULL)
        if (!entry->subscribed && events_begins(entry, prefix))
            for (size_t j = 0; j < entry->n_origins; j++)
                memset(entry->origins[j].last, 0,
                       sizeof entry->origins[j].last);
}

static void sync_interest(ls_node *node, struct event_entry *entry)
{
    ls_mutex_lock(&node->router.lock);
    const bool wanted = entry->wanted;
    const bool anew = wanted && entry->begun && entry->subscribed;
    const enum listening how = anew     ? LISTENING_ANEW
                               : wanted ? LISTENING_BEGINS
                                        : LISTENING_ENDS;
    entry->begun = false;
    ls_mutex_unlock(&node->router.lock);
    if (wanted == entry->subscribed && !anew)
        return;
    entry->subscribed = wanted;
    if (wanted && entry->is_prefix)
        forget_sequences(node, entry);
    for (size_t j = 0; wanted && j < entry->n_origins; j++) {
        if (anew)
            entry->origins[j].last[LS_DELIVERY_LATEST] = 0;
        else /* what is sent meanwhile is not missed */
            memset(entry->origins[j].last, 0, sizeof entry->origins[j].last);
    }
    transport_lock(node->transport);
    for (struct link *link = node->links; link != NULL; link = link->next)
        if (!link->closing)
            (void)link_listen(link, node->options.id, entry, how);
    transport_unlock(node->transport);
}

void links_sync_interests(ls_node *node)
{
    if (!atomic_exchange(&node->table.interests_changed, false))
        return;
    for (struct event_entry *entry = NULL;
         (entry = events_next(node, entry)) != NULL;)
        sync_interest(node, entry);
}
