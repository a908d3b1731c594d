/* Those that connected to this node.
 *
 * libzmq tells of a connection by what it sends: a subscription carries the
 * User-Id that the gate gave, and the descriptor of the socket. That number may
 * be another's when it is used, so the cookie of the socket, which the kernel
 * never gives twice, is kept with it. Nothing in libzmq ends one connection of
 * a bound socket; shutdown(2) does, and libzmq then sees it end.
 * Source: zmq_msg_get(3) ZMQ_SRCFD, zmq_msg_gets(3), socket(7) SO_COOKIE. */
#define _GNU_SOURCE /* SO_COOKIE */
#include "transport_zmq.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <xxhash.h>

#include "wire.h"

#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

/* Whoever has taken nothing for so long while too much waits is cut off; one
 * that is exempt has more patience. */
#define STALLED_NS      (10 * LS_NS_PER_MS)
#define STALLED_LONG_NS LS_NS_PER_S
#define LOOK_AGAIN_NS   (5 * LS_NS_PER_MS)
/* So long after somebody came to the mark it is looked for. */
#define AT_MARK_NS (2 * LS_NS_PER_S)
/* Topics that one connection may subscribe to at a time: all event names that
 * peers may make known, and as much again. */
#define TOPIC_BYTES_MAX (2u << 20)
#define TOPICS_TOO_MANY "subscribed to more than 2 MiB of topics"
/* Messages that one may send up while there was always one left to read: they
 * wait where nothing bounds them. Fewer than the last are not looked at. */
#define SAID_MAX      8192u
#define SAID_TOO_MANY "sent up messages faster than they could be read"
#define SAID_FEW      1024u

static uint64_t cookie_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0
               ? cookie
               : 0;
}

void transport_zmq_peer_name(int fd, char name[TRANSPORT_NAME_MAX])
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_storage room;
    } peer = {.any.sa_family = AF_UNSPEC};
    char text[INET6_ADDRSTRLEN] = "";
    socklen_t size = sizeof peer;
    name[0] = '\0';
    if (fd < 0 || getpeername(fd, &peer.any, &size) != 0)
        return;
    if (peer.any.sa_family == AF_INET &&
        inet_ntop(AF_INET, &peer.in.sin_addr, text, sizeof text) != NULL)
        snprintf(name, TRANSPORT_NAME_MAX, "%s:%u", text,
                 ntohs(peer.in.sin_port));
    else if (peer.any.sa_family == AF_INET6 &&
             inet_ntop(AF_INET6, &peer.in6.sin6_addr, text, sizeof text) !=
                 NULL)
        snprintf(name, TRANSPORT_NAME_MAX, "[%s]:%u", text,
                 ntohs(peer.in6.sin6_port));
    struct ucred process = {.pid = 0};
    size = sizeof process;
    if (peer.any.sa_family == AF_UNIX &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &size) == 0)
        snprintf(name, TRANSPORT_NAME_MAX, "process %ld", (long)process.pid);
}

static struct zmq_inbound *find(const struct zmq_transport *t, uint64_t number)
{
    /* The last ones are those that speak. */
    for (size_t i = t->n_inbounds; i-- > 0;)
        if (t->inbounds[i].number == number)
            return &t->inbounds[i];
    return NULL;
}

/* ---- what each has subscribed to --------------------------------------- */

struct zmq_topic {
    struct zmq_topic *next; /* in its bucket */
    size_t size;
    uint8_t bytes[];
};

static struct zmq_topic **bucket_of(const struct zmq_transport *t,
                                    const struct zmq_inbound *in,
                                    const uint8_t *bytes, size_t size)
{
    const uint64_t hash = XXH3_64bits_withSeed(bytes, size, t->topic_seed);
    return &in->topics[hash & (in->n_buckets - 1)];
}

/* Where the pointer to it is, or NULL. */
static struct zmq_topic **find_topic(const struct zmq_transport *t,
                                     const struct zmq_inbound *in,
                                     const uint8_t *bytes, size_t size)
{
    struct zmq_topic **at =
        in->n_buckets == 0 ? NULL : bucket_of(t, in, bytes, size);
    while (at != NULL && *at != NULL &&
           ((*at)->size != size || memcmp((*at)->bytes, bytes, size) != 0))
        at = &(*at)->next;
    return at == NULL || *at == NULL ? NULL : at;
}

static bool grow_topics(const struct zmq_transport *t, struct zmq_inbound *in)
{
    struct zmq_inbound grown = *in;
    if (in->n_topics < in->n_buckets)
        return true;
    grown.n_buckets = in->n_buckets == 0 ? 16 : 2 * in->n_buckets;
    grown.topics = calloc(grown.n_buckets, sizeof(struct zmq_topic *));
    if (grown.topics == NULL)
        return false;
    for (size_t i = 0; i < in->n_buckets; i++)
        for (struct zmq_topic *topic = in->topics[i], *next; topic != NULL;
             topic = next) {
            struct zmq_topic **at =
                bucket_of(t, &grown, topic->bytes, topic->size);
            next = topic->next;
            topic->next = *at;
            *at = topic;
        }
    free(in->topics);
    in->topics = grown.topics;
    in->n_buckets = grown.n_buckets;
    return true;
}

/* Without memory it counts all the same, for good; as what comes twice does,
 * which nobody who is honest sends. */
static void subscribes(const struct zmq_transport *t, struct zmq_inbound *in,
                       const uint8_t *bytes, size_t size)
{
    in->topic_bytes += size;
    if (find_topic(t, in, bytes, size) != NULL || !grow_topics(t, in))
        return;
    struct zmq_topic *topic = malloc(sizeof *topic + size);
    if (topic == NULL)
        return;
    struct zmq_topic **at = bucket_of(t, in, bytes, size);
    topic->next = *at;
    topic->size = size;
    memcpy(topic->bytes, bytes, size);
    *at = topic;
    in->n_topics++;
}

static void unsubscribes(const struct zmq_transport *t, struct zmq_inbound *in,
                         const uint8_t *bytes, size_t size)
{
    struct zmq_topic **at = find_topic(t, in, bytes, size);
    if (at == NULL)
        return;
    struct zmq_topic *gone = *at;
    *at = gone->next;
    free(gone);
    in->n_topics--;
    in->topic_bytes -= size;
}

static void forget(struct zmq_inbound *in)
{
    for (size_t i = 0; i < in->n_buckets; i++)
        while (in->topics[i] != NULL) {
            struct zmq_topic *gone = in->topics[i];
            in->topics[i] = gone->next;
            free(gone);
        }
    free(in->topics);
    in->topics = NULL;
    in->n_buckets = in->n_topics = 0;
}

/* ---- all of them ------------------------------------------------------- */

/* Forget those that are no more. */
static void prune(struct zmq_transport *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_inbounds; i++)
        if (t->inbounds[i].cookie != 0 &&
            cookie_of(t->inbounds[i].fd) == t->inbounds[i].cookie)
            t->inbounds[n++] = t->inbounds[i];
        else
            forget(&t->inbounds[i]);
    t->n_inbounds = n;
}

void transport_zmq_inbounds_free(struct zmq_transport *t)
{
    while (t->n_inbounds > 0)
        forget(&t->inbounds[--t->n_inbounds]);
    free(t->inbounds);
}

static struct zmq_inbound *note(struct zmq_transport *t,
                                const struct speaker *by, int fd)
{
    if (t->n_inbounds == t->inbound_capacity) {
        prune(t);
        const size_t capacity =
            t->n_inbounds < t->inbound_capacity / 2 ? t->inbound_capacity
            : t->inbound_capacity == 0              ? 8
                                                    : 2 * t->inbound_capacity;
        struct zmq_inbound *grown =
            capacity == t->inbound_capacity
                ? t->inbounds
                : realloc(t->inbounds, capacity * sizeof *grown);
        if (grown == NULL)
            return NULL;
        t->inbounds = grown;
        t->inbound_capacity = capacity;
    }
    struct zmq_inbound *in = &t->inbounds[t->n_inbounds++];
    *in = (struct zmq_inbound){.number = by->connection,
                               .fd = fd,
                               .cookie = cookie_of(fd),
                               .unsent = -1};
    transport_zmq_peer_name(fd, in->name);
    return in;
}

static void cut(struct zmq_inbound *in)
{
    if (in->cookie != 0 && cookie_of(in->fd) == in->cookie)
        (void)shutdown(in->fd, SHUT_RDWR);
    in->cookie = 0;
}

bool transport_zmq_inbound_ended(struct zmq_transport *t, int fd)
{
    for (size_t i = 0; i < t->n_inbounds; i++) {
        if (t->inbounds[i].fd != fd)
            continue;
        /* This one alone: of others that are gone too it is yet to be told. */
        forget(&t->inbounds[i]);
        t->n_inbounds--;
        memmove(&t->inbounds[i], &t->inbounds[i + 1],
                (t->n_inbounds - i) * sizeof t->inbounds[i]);
        return true;
    }
    return false;
}

void transport_zmq_inbound_early(struct zmq_transport *t, int fd)
{
    t->early[t->n_early++ % ZMQ_EARLY_MAX] = (struct zmq_early){.fd = fd};
}

static size_t n_early(const struct zmq_transport *t)
{
    return t->n_early < ZMQ_EARLY_MAX ? t->n_early : ZMQ_EARLY_MAX;
}

void transport_zmq_inbound_reused(struct zmq_transport *t, int fd)
{
    for (size_t i = 0; i < n_early(t); i++)
        if (t->early[i].number == 0 && t->early[i].fd == fd)
            t->early[i].fd = -1;
}

static bool has_ended(struct zmq_transport *t, uint64_t number, int fd)
{
    struct zmq_early *unread = NULL;
    for (size_t i = 0; i < n_early(t); i++) {
        struct zmq_early *early = &t->early[i];
        if (early->number == number)
            return true;
        if (early->number == 0 && early->fd == fd && fd >= 0)
            unread = early;
    }
    if (unread != NULL)
        unread->number = number;
    return unread != NULL;
}

/* "ID/NUMBER", "/NUMBER" */
static bool read_user(const char *user, struct speaker *by)
{
    char *end;
    by->proved = user[0] != '/';
    if (by->proved) {
        const unsigned long id = strtoul(user, &end, 10);
        if (*end != '/' || id > UINT32_MAX)
            return false;
        by->id = (uint32_t)id;
        user = end;
    }
    by->connection = strtoull(user + 1, &end, 10);
    return *end == '\0';
}

static void cut_off(struct zmq_transport *t, struct zmq_inbound *in,
                    const char *of)
{
    memcpy(t->overfull, in->name, sizeof t->overfull);
    t->overfull_of = of;
    t->n_overfull++;
    cut(in);
}

/* The connection that a frame came over; NULL: it has ended, or is not known.
 */
static struct zmq_inbound *
inbound_of(struct zmq_transport *t, const struct speaker *by, zmq_msg_t *frame)
{
    struct zmq_inbound *in = by->spoken ? find(t, by->connection) : NULL;
    if (!by->spoken || in != NULL)
        return in;
    const int fd = zmq_msg_get(frame, ZMQ_SRCFD);
    return has_ended(t, by->connection, fd) ? NULL : note(t, by, fd);
}

bool transport_zmq_floods(struct zmq_transport *t, const struct speaker *by,
                          zmq_msg_t *frame)
{
    struct zmq_inbound *in =
        ++t->n_said > SAID_FEW ? inbound_of(t, by, frame) : NULL;
    if (in == NULL)
        return false;
    if (in->backlog != t->backlog) {
        in->backlog = t->backlog;
        in->n_said = 0;
    }
    if (++in->n_said != SAID_MAX || in->cookie == 0)
        return false;
    cut_off(t, in, SAID_TOO_MANY);
    return true;
}

void transport_zmq_none_left(struct zmq_transport *t)
{
    t->n_said = 0;
    t->backlog++;
}

/* The frame is a byte, which says whether it subscribes, and a topic. */
static void note_topic(struct zmq_transport *t, struct zmq_inbound *in,
                       zmq_msg_t *frame)
{
    const uint8_t *const bytes = zmq_msg_data(frame);
    const size_t size = zmq_msg_size(frame) - 1;
    if (bytes[0] == 1)
        subscribes(t, in, bytes + 1, size);
    else
        unsubscribes(t, in, bytes + 1, size);
    if (in->topic_bytes <= TOPIC_BYTES_MAX || in->cookie == 0)
        return;
    cut_off(t, in, TOPICS_TOO_MANY);
}

struct speaker transport_zmq_speaker(const struct zmq_transport *t,
                                     zmq_msg_t *frame)
{
    struct speaker by = {.own = t->gate == NULL};
    const char *user = by.own ? NULL : zmq_msg_gets(frame, "User-Id");
    by.spoken = user != NULL && read_user(user, &by);
    return by;
}

struct speaker transport_zmq_subscriber(struct zmq_transport *t,
                                        zmq_msg_t *frame)
{
    const struct speaker by = transport_zmq_speaker(t, frame);
    struct zmq_inbound *in = inbound_of(t, &by, frame);
    if (in != NULL)
        note_topic(t, in, frame);
    return by;
}

void transport_zmq_tell_overfull(struct zmq_transport *t,
                                 const struct transport_events *events,
                                 void *self)
{
    char why[96];
    if (t->n_overfull == 0)
        return;
    snprintf(why, sizeof why, "it %s, and was cut off", t->overfull_of);
    events->refused(self, &(struct transport_refusal){.too_much = true,
                                                      .who = t->overfull,
                                                      .why = why,
                                                      .n = t->n_overfull});
    t->n_overfull = 0;
}

void transport_zmq_name(const transport *base, uint64_t connection,
                        char name[TRANSPORT_NAME_MAX])
{
    const struct zmq_inbound *in =
        find((const struct zmq_transport *)base, connection);
    snprintf(name, TRANSPORT_NAME_MAX, "%s", in != NULL ? in->name : "");
}

/* ---- those that do not read -------------------------------------------- */

void transport_zmq_allow(transport *base, size_t bytes)
{
    zmq_of(base)->allowed = bytes;
}

/* Whether its host has taken nothing for so long. */
static bool is_stalled(struct zmq_inbound *in, int64_t now, int64_t patience)
{
    int unsent = 0;
    if (in->cookie == 0 || cookie_of(in->fd) != in->cookie ||
        ioctl(in->fd, SIOCOUTQ, &unsent) != 0)
        return false;
    if (unsent == 0 || unsent != in->unsent) {
        in->unsent = unsent;
        in->unsent_since = now;
        return false;
    }
    return now - in->unsent_since >= patience;
}

int64_t transport_zmq_look(transport *base, int64_t now,
                           bool (*exempt)(void *self, uint64_t connection),
                           void (*told)(void *self, const char *name),
                           void *self)
{
    struct zmq_transport *t = zmq_of(base);
    if (now - t->at_mark_since >= AT_MARK_NS)
        t->at_mark_since = 0;
    if (atomic_load(&t->ledger->held) <= t->allowed && t->at_mark_since == 0) {
        atomic_store(&base->crowded, false);
        return LS_FOREVER;
    }
    bool over_network = false;
    for (size_t i = 0; i < t->n_inbounds; i++) {
        struct zmq_inbound *in = &t->inbounds[i];
        over_network = over_network || in->cookie != 0;
        const bool patient = exempt(self, in->number);
        if (!is_stalled(in, now, patient ? STALLED_LONG_NS : STALLED_NS))
            continue;
        cut(in);
        told(self, in->name);
    }
    /* Within this process nobody stalls, and what a receiver keeps is held. */
    return now + (over_network ? LOOK_AGAIN_NS : LS_NS_PER_S);
}
