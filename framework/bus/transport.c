#include "transport.h"

#include "runtime_network.h"
#include "transport_ops.h"

int transport_open(transport **out, ls_runtime *runtime, const char *bind,
                   size_t max_message_bytes, int linger_ms, char *endpoint)
{
    const struct transport_ops *ops = ls_runtime_network(runtime) == NULL
                                          ? &transport_zmq_ops
                                          : &transport_sim_ops;
    return ops->open(out, runtime, bind, max_message_bytes, linger_ms,
                     endpoint);
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

int transport_link_connect(transport_link *link, const char *endpoint)
{
    return link->transport->ops->link_connect(link, endpoint);
}

int transport_link_subscribe(transport_link *link, const uint8_t *topic,
                             size_t size, bool subscribe)
{
    return link->transport->ops->link_subscribe(link, topic, size, subscribe);
}

void transport_link_close(transport_link **link)
{
    if (link == NULL || *link == NULL)
        return;
    (*link)->transport->ops->link_close(*link);
    *link = NULL;
}

/* ---- what comes -------------------------------------------------------- */

int transport_probe(transport *t, const char *endpoint)
{
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

void transport_explain(transport *t, const char *endpoint, char *text,
                       size_t size)
{
    t->ops->explain(t, endpoint, text, size);
}
