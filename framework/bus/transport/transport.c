#include "transport.h"

#include "runtime_network.h"
#include "transport_ops.h"

int transport_open(transport **out, const struct transport_options *options,
                   char *endpoint)
{
    const struct transport_ops *ops;
    const int status = transport_find(options->bind, &ops);
    if (status != LS_OK)
        return status;
    if (ls_runtime_network(options->runtime) != NULL)
        ops = &transport_sim_ops;
    return ops->open(out, options, endpoint);
}

void transport_close(transport **t)
{
    if (t == NULL || *t == NULL)
        return;
    (*t)->ops->close(*t);
    *t = NULL;
}

void transport_unbind(transport *t)
{
    t->ops->unbind(t);
}

void transport_renew(transport *t, uint64_t incarnation)
{
    t->ops->renew(t, incarnation);
}

void transport_lock(transport *t)
{
    ls_mutex_lock(&t->lock);
}

void transport_unlock(transport *t)
{
    ls_mutex_unlock(&t->lock);
}

ls_mutex *transport_mutex(transport *t)
{
    return &t->lock;
}

/* ---- publishing -------------------------------------------------------- */

int transport_publish(transport *t, const void *head, size_t head_size,
                      const void *body, size_t body_size)
{
    return t->ops->publish(t, head, head_size, body, body_size);
}

int transport_publish_owned(transport *t, const void *head, size_t head_size,
                            void *body, size_t body_size,
                            void (*release)(void *data, void *hint), void *hint)
{
    return t->ops->publish_owned(t, head, head_size, body, body_size, release,
                                 hint);
}

int transport_republish(transport *t, const struct message *message)
{
    return t->ops->republish(t, message);
}

/* ---- links ------------------------------------------------------------- */

int transport_link_open(transport *t, transport_link **out, void *owner)
{
    return t->ops->link_open(t, out, owner);
}

int transport_link_connect(transport_link *link, const char *endpoint,
                           bool known, uint32_t id)
{
    if (!transport_carries(link->transport, endpoint))
        return ls_error(LS_EINVAL, "\"%s\" is no address to attach to",
                        endpoint);
    return link->transport->ops->link_connect(link, endpoint, known, id);
}

int transport_link_subscribe(transport_link *link, const uint8_t *topic,
                             size_t size, bool subscribe)
{
    return link->transport->ops->link_subscribe(link, topic, size, subscribe);
}

void transport_link_trust(transport_link *link, const struct message *message)
{
    link->transport->ops->link_trust(link, message);
}

void transport_link_close(transport_link **link, bool linger)
{
    if (link == NULL || *link == NULL)
        return;
    (*link)->transport->ops->link_close(*link, linger);
    *link = NULL;
}

/* ---- those that connected here ----------------------------------------- */

void transport_name(const transport *t, uint64_t connection,
                    char name[TRANSPORT_NAME_MAX])
{
    t->ops->name(t, connection, name);
}

void transport_allow(transport *t, size_t bytes)
{
    t->ops->allow(t, bytes);
}

bool transport_is_crowded(const transport *t)
{
    return atomic_load_explicit(&t->crowded, memory_order_relaxed);
}

int64_t transport_look(transport *t, int64_t now,
                       bool (*exempt)(void *self, uint64_t connection),
                       void (*cut)(void *self, const char *name), void *self)
{
    return t->ops->look(t, now, exempt, cut, self);
}

/* ---- what comes -------------------------------------------------------- */

int transport_probe(transport *t, const char *endpoint)
{
    if (!transport_carries(t, endpoint))
        return ls_error(LS_EINVAL, "\"%s\" is no address to probe", endpoint);
    return t->ops->probe(t, endpoint);
}

bool transport_poll(transport *t, int64_t deadline,
                    const struct transport_events *events, void *self)
{
    return t->ops->take_in(t, deadline, events, self);
}

void transport_wake(transport *t)
{
    t->ops->wake(t);
}

void transport_copy(struct message *copy, const struct message *of)
{
    of->transport->copy(copy, of);
}

void transport_release(struct message *message)
{
    if (message->n_frames != 0)
        message->transport->release(message);
}

bool transport_explain(transport *t, const char *endpoint, bool known,
                       uint32_t id, char *text, size_t size)
{
    text[0] = '\0';
    return transport_carries(t, endpoint) &&
           t->ops->explain(t, endpoint, known, id, text, size);
}
