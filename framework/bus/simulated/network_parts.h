/* network_parts.h - what the files of the simulated network share.
 *
 * A connection is one subscriber's link to one publisher, with two ways: down
 * go messages, up go subscriptions, and messages too. What is sent on a way is
 * a packet, and arrives by a call of the simulation at its time. An end of a
 * connection may be gone while the other does not know yet; when both are gone,
 * so is the connection. Everything happens in the one thread of the simulation,
 * and nothing here lets another fiber run between two looks at the same thing.
 */
#ifndef LOCKSTEP_BUS_NETWORK_PARTS_H
#define LOCKSTEP_BUS_NETWORK_PARTS_H

#include "lockstep/network.h"

#include "transport.h"

#define NETWORK_RETRY_NS     (10 * LS_NS_PER_MS) /* doubles … */
#define NETWORK_RETRY_MAX_NS (500 * LS_NS_PER_MS)
#define NETWORK_TIMEOUT_NS   (1500 * LS_NS_PER_MS) /* of a connect */
#define NETWORK_CUT_NS       (3 * LS_NS_PER_S)     /* … closes a connection */
#define NETWORK_PROBE_NS     LS_NS_PER_S           /* of silence */
#define NETWORK_DELAY_NS     (50 * LS_NS_PER_US)
#define NETWORK_LENGTHS      1024 /* topics are shorter, in bytes */

/* network_table.c: things by their hash, which hold this. */
struct hashed {
    struct hashed *next;
    uint64_t hash;
};
struct table {
    struct hashed **buckets;
    size_t n, n_buckets; /* a power of two, or 0 */
};
int table_add(struct table *table, struct hashed *what);
void table_remove(struct table *table, struct hashed *what);
/* The first of those with this hash or another; NULL. */
struct hashed *table_first(const struct table *table, uint64_t hash);
/* Call fn for all, which may free them, and empty the table. */
void table_clear(struct table *table, void (*fn)(struct hashed *what));

/* Bytes that are subscribed to; one for all who do. */
struct topic {
    struct hashed in;
    unsigned users;
    size_t size;
    uint8_t bytes[];
};

/* Who gets what begins with a topic from one publisher. */
struct filter {
    struct hashed in;
    struct topic *topic;
    const struct sim_transport *publisher;
    size_t n, capacity;
    struct connection **connections;
};

/* A host that has joined. */
struct network_host {
    struct network_host *next;
    ls_network *network;
    ls_host *host;
};

/* An address, bound or only dialled. Never freed before the network. */
struct place {
    struct hashed in;
    struct network_host *host;   /* who bound it last; NULL: nobody did */
    struct sim_transport *bound; /* NULL: nobody listens */
    char endpoint[];
};

/* The bytes of one message, shared by all who are sent it. */
struct buffer {
    unsigned users;
    unsigned n_frames;
    size_t size, split; /* where the second frame begins */
    uint8_t bytes[];
};

enum packet_kind {
    PACKET_MESSAGE,
    PACKET_SUBSCRIBE,
    PACKET_UNSUBSCRIBE,
    PACKET_CLOSE /* the end that sent it is gone */
};

struct packet {
    struct packet *next, *before; /* among all that are under way */
    struct packet *then;          /* among those held, or not yet read */
    struct connection *connection;
    struct buffer *buffer; /* MESSAGE */
    struct topic *topic;   /* SUBSCRIBE, UNSUBSCRIBE */
    uint64_t sequence;     /* on its way */
    uint64_t number;       /* of its connection */
    enum packet_kind kind;
    bool up;
    bool again; /* the second of two */
};

struct packet_list {
    struct packet *first, **last;
};
void packet_list_init(struct packet_list *list);
void packet_list_append(struct packet_list *list, struct packet *packet);
struct packet *packet_list_take(struct packet_list *list);

/* One direction of a connection. */
struct way {
    int64_t last_due; /* nothing that keeps its place comes before it */
    int64_t free_at;  /* when the line is done with what is on it */
    uint64_t sent, seen;
    uint64_t dropped; /* what has no higher number than this is lost */
    bool cut;
    struct packet_list held; /* came while it was cut */
    const struct ls_network_path *path;
    uint64_t version; /* of the network, that the path is of */
};

struct connection {
    struct connection *next, *before;         /* in the network */
    struct connection *next_out, *before_out; /* of the publisher */
    ls_network *network;
    uint64_t number;                 /* from 1 */
    unsigned users;                  /* calls to come, packets, and the list */
    struct sim_transport *publisher; /* NULL: not connected, or gone */
    struct sim_link *link;           /* NULL: gone */
    struct place *to;                /* that is dialled */
    struct place *from;              /* of whoever dials */
    struct network_host *server, *client;
    bool open;   /* established */
    bool proved; /* the publisher knows that it is node: */
    uint32_t id;
    bool finished;     /* both ends are gone */
    int64_t cut_since; /* in either direction; -1: it is not */
    struct way down, up;
    uint64_t messages, bytes; /* under way */
    uint64_t published;       /* the last publish that it was part of */
    struct filter **filters;  /* in the byte order of their topics */
    uint32_t n_filters, filter_capacity;
};

struct subscription {
    struct topic *topic;
    unsigned n; /* so many times */
};

struct sim_link {
    struct transport_link base;
    void *owner;
    uint64_t trusted;              /* the number of a connection; 0: none */
    struct connection *connection; /* or the attempt at one; NULL: neither */
    int64_t retry_ns;
    struct subscription *subscriptions; /* in byte order */
    uint32_t n_subscriptions, capacity;
    struct packet_list unread;
    bool ready; /* in a list of its transport */
    struct sim_link *next_ready;
};

/* A subscription that came or went, or a message that came up; not yet told. */
struct notice {
    struct notice *next;
    struct topic *topic;
    bool subscribed;
    struct packet *packet; /* own; NULL: it is a subscription */
    struct speaker by;
};

struct network_probe {
    struct network_probe *next;
    ls_network *network;
    struct sim_transport *transport; /* NULL: gone, or told */
    struct place *place;
    enum transport_probed answer;
    bool answered;
    char endpoint[LS_ENDPOINT_MAX + 1];
};

struct sim_transport {
    struct transport base;
    struct network_host *host;
    struct sim_transport *next; /* in the network */
    uint64_t number;            /* for hashes */
    uint32_t id;                /* of its node */
    bool proves;                /* and asks others to: who cannot is refused */
    struct place *place;
    bool closed;
    bool woken;
    bool to_wake; /* in the network's list */
    struct sim_transport *next_to_wake;
    ls_mutex lock; /* for `came` alone */
    ls_cond came;
    bool lent;               /* another than the bus thread polls */
    int64_t stands_until;    /* the bus thread, meanwhile */
    struct connection *outs; /* to those that subscribed here */
    struct notice *notices, **last_notice;
    struct sim_link *ready, **last_ready;
    struct sim_link *todo;    /* those that are read now, one by one */
    struct sim_link *reading; /* which; NULL: none, or it was closed */
    unsigned n_answers;       /* of probes, not yet told */
};

/* How messages travel, or whether, from a host to another; NULL is any. */
struct rule {
    struct rule *next; /* the one before it in time */
    const ls_host *from, *to;
    struct ls_network_path path;
    bool cut;
};

struct ls_network {
    ls_simulation *simulation;
    struct ls_rng rng;
    uint64_t version;             /* of the paths */
    struct ls_network_path local; /* within a host */
    struct rule *paths, *cuts;    /* the latest first */
    struct network_host *hosts;
    struct sim_transport *transports;
    struct sim_transport *to_wake; /* what came to them, they do not know */
    uint64_t n_transports, n_publishes, n_connections; /* ever */
    struct connection *connections;
    struct packet *packets; /* under way */
    struct network_probe *probes;
    struct table topics, filters, places;
    /* What lengths topics had that begin with a byte, as bits. */
    uint64_t lengths[256][NETWORK_LENGTHS / 64];
    unsigned next_port;
    struct ls_network_stats stats;
};

/* network.c */
int64_t network_now(const ls_network *network);
/* Call fn(arg) then; without memory the run is void, and ends as that. */
void network_at(ls_network *network, int64_t at, void (*fn)(void *arg),
                void *arg);
void network_no_memory(ls_network *network);
/* Have a transport look at what came; it is woken by network_wake(), which may
 * let others run, and so is the last thing that a call does. */
void network_to_wake(struct sim_transport *t);
void network_wake(ls_network *network);
/* A transport ends. */
void network_forget(struct sim_transport *t);

/* network_path.c */
const struct ls_network_path *network_path(ls_network *network,
                                           const struct network_host *from,
                                           const struct network_host *to);
bool network_is_cut(const ls_network *network, const struct network_host *from,
                    const struct network_host *to);
/* How long the next one takes: delay and jitter. */
int64_t network_delay(ls_network *network, const struct ls_network_path *path);
int network_check_path(const struct ls_network_path *path);
void network_rules_free(struct rule **rules);

/* network_place.c: addresses. NULL: no memory. */
struct place *network_place(ls_network *network,
                            const struct network_host *host,
                            const char *endpoint);
/* Errors: as of transport_open(). */
int network_bind(struct sim_transport *t, const char *bind, char *endpoint);
/* The host of that name that lives, or did; NULL. */
struct network_host *network_named(ls_network *network, const char *name);
/* Whether the host of an address is a name, not a number. */
bool network_is_name(const char *host);

/* network_topic.c */
struct topic *topic_get(ls_network *network, const uint8_t *bytes, size_t size);
void topic_put(ls_network *network, struct topic *topic);
int topic_compare(const struct topic *topic, const uint8_t *bytes, size_t size);
int filter_add(struct connection *connection, struct topic *topic);
void filter_remove(struct connection *connection, const struct topic *topic);
/* The filters of a publisher that a message passes, one by one: start with
 * *length = 0. NULL: no more. */
struct filter *filter_next(const struct sim_transport *t, const uint8_t *bytes,
                           size_t size, size_t *length);
void network_topics_free(ls_network *network);

/* network_packet.c */
struct buffer *buffer_create(const void *head, size_t head_size,
                             const void *body, size_t body_size,
                             unsigned n_frames);
void buffer_put(struct buffer *buffer);
int packet_send_message(struct connection *connection, bool up,
                        struct buffer *buffer);
/* Up, or down for PACKET_CLOSE. topic: NULL for that. */
void packet_send_control(struct connection *connection, bool up,
                         enum packet_kind kind, struct topic *topic);
void packet_free(ls_network *network, struct packet *packet);
/* Hand on what came while the ways were cut, as far as they are not. */
void packets_release_held(struct connection *connection);
/* Lose all that is under way. */
void packets_drop(struct connection *connection);
/* One that has come: the bus has read it; or it never will. */
void packet_read(ls_network *network, const struct packet *packet);
void packet_lose(ls_network *network, struct packet *packet);

/* network_connection.c */
/* Dial, after some time. Errors: LS_ENOMEM. */
int connection_dial(struct sim_link *link, struct place *to, int64_t wait_ns);
void connection_link_closed(struct sim_link *link);
/* Gone here, and dials again. */
void connection_link_lost(struct connection *connection);
void connection_publisher_gone(struct connection *connection);
/* Both ends at once. */
void connection_break(struct connection *connection, const char *why);
/* All of a host that dies. */
void connection_kill(struct connection *connection,
                     const struct network_host *host);
void connection_use(struct connection *connection);
void connection_let_go(struct connection *connection);
const char *place_label(const struct place *place);

/* transport_sim.c: what the network tells a transport. */
/* by: the connection that it came over. spoken: else that has ended. */
void sim_transport_notice(struct sim_transport *t, struct topic *topic,
                          bool subscribed, const struct connection *by,
                          bool spoken);
/* packet: moved; read when it has been told of. */
void sim_transport_message(struct sim_transport *t, struct packet *packet);
static inline struct sim_transport *sim_of(transport *t)
{
    return (struct sim_transport *)t;
}

/* transport_sim_link.c; the first is of the network. */
void sim_link_message(struct sim_link *link, struct packet *packet);
int sim_link_open(transport *t, transport_link **out, void *owner);
int sim_link_connect(transport_link *link, const char *endpoint, bool known,
                     uint32_t id);
void sim_link_trust(transport_link *link, const struct message *message);
int sim_link_subscribe(transport_link *link, const uint8_t *topic, size_t size,
                       bool subscribe);
int sim_link_send(transport_link *link, const void *head, size_t head_size,
                  const void *body, size_t body_size);
void sim_link_close(transport_link *link, bool linger);
void sim_links_read(struct sim_transport *t,
                    const struct transport_events *events, void *self);
void sim_message_copy(struct message *copy, const struct message *of);
void sim_message_release(struct message *message);
/* What a message was received in. */
struct buffer *sim_message_buffer(const struct message *message);

/* transport_sim_probe.c */
int sim_probe(transport *t, const char *endpoint);
void sim_probes_tell(struct sim_transport *t,
                     const struct transport_events *events, void *self);
void sim_probes_forget(struct sim_transport *t);

#endif
