/* Dialled addresses, and what this node subscribes to at each of them. */
#include "bus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct link *link_find(ls_node *node, const char *endpoint)
{
    for (struct link *link = node->links; link != NULL; link = link->next)
        if (!link->closing && strcmp(link->endpoint, endpoint) == 0)
            return link;
    return NULL;
}

static int subscribe(struct link *link, const uint8_t *topic, size_t size,
                     bool on)
{
    return transport_link_subscribe(link->transport, topic, size, on);
}

static size_t listen_topic(const ls_node *node, const struct event_entry *entry,
                           uint8_t *topic)
{
    struct wire_listen listen = {node->options.id, node->incarnation, ""};
    memcpy(listen.event, entry->name, sizeof listen.event);
    return wire_listen_write(topic, &listen);
}

static int subscribe_interest(ls_node *node, struct link *link,
                              const struct event_entry *entry, bool on)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    const size_t size = listen_topic(node, entry, topic);
    /* That it listens is said after the filter is in force, and taken back
     * before it is lifted. */
    int status = on ? LS_OK : subscribe(link, topic, size, false);
    if (status == LS_OK)
        status = subscribe(link, entry->topic, entry->topic_size, on);
    if (status == LS_OK && on)
        status = subscribe(link, topic, size, true);
    return status;
}

static int subscribe_own(ls_node *node, struct link *link)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    int status = subscribe(link, topic, wire_topic_control(topic), true);
    if (status == LS_OK)
        status = subscribe(link, topic,
                           wire_topic_inbox(topic, node->options.id), true);
    for (size_t i = 0; i < EVENT_BUCKETS && status == LS_OK; i++) {
        const struct event_entry *entry = atomic_load(&node->events[i]);
        for (; entry != NULL && status == LS_OK; entry = entry->next)
            if (entry->subscribed)
                status = subscribe_interest(node, link, entry, true);
    }
    return status;
}

static size_t presence_topic(const ls_node *node, uint8_t *topic)
{
    struct wire_presence me = {.id = node->options.id,
                               .incarnation = node->incarnation,
                               .config_hash = node->options.config_hash};
    memcpy(me.job, node->job, sizeof me.job);
    memcpy(me.role, node->role, sizeof me.role);
    memcpy(me.labels, node->labels, sizeof me.labels);
    memcpy(me.endpoint, node->endpoint, sizeof me.endpoint);
    return wire_presence_write(topic, &me);
}

static int subscribe_presence(ls_node *node, struct link *link, bool on)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    return subscribe(link, topic, presence_topic(node, topic), on);
}

static void present_everywhere(ls_node *node, bool on)
{
    for (struct link *link = node->links; link != NULL; link = link->next)
        if (!link->closing && !link->withdrawn)
            (void)subscribe_presence(node, link, on);
}

/* Tell everyone what this incarnation listens to, or take it back. */
static void listen_everywhere(ls_node *node, bool on)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    for (size_t i = 0; i < EVENT_BUCKETS; i++) {
        const struct event_entry *entry = atomic_load(&node->events[i]);
        for (; entry != NULL; entry = entry->next)
            if (entry->subscribed)
                links_subscribe(node, topic, listen_topic(node, entry, topic),
                                on, NULL);
    }
}

void links_renew(ls_node *node, uint64_t incarnation)
{
    const uint64_t old = node->incarnation;
    /* The new one first: so nobody takes this node to be away. */
    node->incarnation = incarnation;
    listen_everywhere(node, true);
    present_everywhere(node, true);
    node->incarnation = old;
    present_everywhere(node, false);
    listen_everywhere(node, false);
    node->incarnation = incarnation;
}

static size_t unanswered(const ls_node *node)
{
    size_t n = 0;
    for (const struct link *link = node->links; link != NULL; link = link->next)
        n += link->peer == NULL && !link->attached ? 1 : 0;
    return n;
}

int link_dial(ls_node *node, const char *endpoint, bool attached,
              const struct peer *peer)
{
    if (strcmp(endpoint, node->endpoint) == 0)
        return LS_OK;
    struct link *link = link_find(node, endpoint);
    if (link != NULL) {
        link->attached = link->attached || attached;
        return LS_OK;
    }
    if (!node->options.insecure && transport_leaves_host(endpoint))
        return ls_error(LS_EINVAL,
                        "%s is beyond this host: traffic there is neither "
                        "secret nor authenticated; set insecure to allow it",
                        endpoint);
    if (!attached && unanswered(node) >= MAX_UNANSWERED)
        return ls_error(LS_ELIMIT,
                        "%s is not dialled: %d addresses that peers named did "
                        "not answer",
                        endpoint, MAX_UNANSWERED);
    link = calloc(1, sizeof *link);
    if (link == NULL)
        return ls_error(LS_ENOMEM, "no memory for a link");
    snprintf(link->endpoint, sizeof link->endpoint, "%s", endpoint);
    link->attached = attached;
    int status = transport_link_open(node->transport, &link->transport, link);
    if (status == LS_OK)
        status = subscribe_own(node, link);
    if (status == LS_OK && node->hub && peer != NULL)
        relay_dial(node, link, peer);
    if (status == LS_OK)
        status = subscribe_presence(node, link, true);
    if (status == LS_OK)
        status = transport_link_connect(link->transport, endpoint);
    if (status != LS_OK) {
        transport_link_close(&link->transport);
        free(link);
        return status;
    }
    link->next = node->links;
    node->links = link;
    ls_log_debug("bus: dialling %s", endpoint);
    return LS_OK;
}

/* Whoever leaves waits until the presence of all others is gone: that says that
 * all it sent has been received. An address that the user gave is kept for who
 * comes back to it, as nobody else may know where this node is; the heartbeats
 * of a new one are heard, as those of any. Who is only lost may not be gone,
 * and still has to see this node. */
void link_retire(ls_node *node, struct link *link, bool left)
{
    link->closing = link->closing || !link->attached;
    if (link->closing || !left || link->withdrawn)
        return;
    link->withdrawn = true;
    (void)subscribe_presence(node, link, false);
}

void link_present(ls_node *node, struct link *link)
{
    if (!link->withdrawn || node->leaving)
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
        if (link->peer != NULL && link->peer->link == link)
            link->peer->link = NULL;
        transport_link_close(&link->transport);
        free(link);
    }
}

void links_subscribe(ls_node *node, const uint8_t *topic, size_t size, bool on,
                     const struct link *but)
{
    for (struct link *link = node->links; link != NULL; link = link->next)
        if (link != but && !link->closing)
            (void)subscribe(link, topic, size, on);
}

void links_sync_interests(ls_node *node)
{
    if (!atomic_exchange(&node->interests_changed, false))
        return;
    for (size_t i = 0; i < EVENT_BUCKETS; i++) {
        struct event_entry *entry = atomic_load(&node->events[i]);
        for (; entry != NULL; entry = entry->next) {
            ls_mutex_lock(&node->router);
            const bool wanted = entry->wanted;
            ls_mutex_unlock(&node->router);
            if (wanted == entry->subscribed)
                continue;
            entry->subscribed = wanted;
            /* What is sent meanwhile is not missed. */
            for (size_t j = 0; wanted && j < entry->n_origins; j++)
                entry->origins[j].last = entry->origins[j].stream_last = 0;
            transport_lock(node->transport);
            for (struct link *l = node->links; l != NULL; l = l->next)
                if (!l->closing)
                    (void)subscribe_interest(node, l, entry, wanted);
            transport_unlock(node->transport);
        }
    }
}
