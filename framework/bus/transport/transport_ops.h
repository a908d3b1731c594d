/* transport_ops.h - what an implementation of transport.h fills in.
 *
 * transport.c forwards each call to the transport's table. A transport and its
 * links begin with the structs below and continue as they like. Contracts are
 * those of transport.h, except for what is said here. */
#ifndef LOCKSTEP_BUS_TRANSPORT_OPS_H
#define LOCKSTEP_BUS_TRANSPORT_OPS_H

#include <stdatomic.h>

#include "transport.h"

struct transport_ops {
    /* Fills struct transport. */
    int (*open)(transport **out, const struct transport_options *options,
                char *endpoint);
    /* Frees the transport. */
    void (*close)(transport *t);
    void (*unbind)(transport *t);
    void (*renew)(transport *t, uint64_t incarnation);

    int (*publish)(transport *t, const void *head, size_t head_size,
                   const void *body, size_t body_size);
    int (*publish_owned)(transport *t, const void *head, size_t head_size,
                         void *body, size_t body_size,
                         void (*release)(void *data, void *hint), void *hint);
    int (*republish)(transport *t, const struct message *message);

    /* Sets (*out)->transport. */
    int (*link_open)(transport *t, transport_link **out, void *owner);
    int (*link_connect)(transport_link *link, const char *endpoint, bool known,
                        uint32_t id);
    int (*link_subscribe)(transport_link *link, const uint8_t *topic,
                          size_t size, bool subscribe);
    void (*link_trust)(transport_link *link, const struct message *message);
    /* Frees the link. */
    void (*link_close)(transport_link *link, bool linger);

    void (*name)(const transport *t, uint64_t connection,
                 char name[TRANSPORT_NAME_MAX]);
    void (*allow)(transport *t, size_t bytes);
    int64_t (*look)(transport *t, int64_t now,
                    bool (*exempt)(void *self, uint64_t connection),
                    void (*cut)(void *self, const char *name), void *self);

    int (*probe)(transport *t, const char *endpoint);
    bool (*take_in)(transport *t, int64_t deadline,
                    const struct transport_events *events, void *self);
    void (*wake)(transport *t);
    bool (*explain)(transport *t, const char *endpoint, bool known, uint32_t id,
                    char *text, size_t size);

    /* Of messages with frames; both know it by message->transport. */
    void (*copy)(struct message *copy, const struct message *of);
    void (*release)(struct message *message);
};

struct transport {
    const struct transport_ops *ops;
    ls_runtime *runtime; /* borrow */
    ls_mutex lock;
    atomic_bool crowded; /* somebody may not read: transport_look() is wanted */
};

struct transport_link {
    transport *transport;
};

extern const struct transport_ops transport_zmq_ops, transport_sim_ops;

/* By the scheme of an address to bind. Errors: LS_EINVAL there is none. */
int transport_find(const char *bind, const struct transport_ops **out);

#endif
