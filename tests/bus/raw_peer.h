/* raw_peer.h - a peer made of bare sockets, that may say anything. It has no
 * secret: nodes that meet it are insecure. */
#ifndef RAW_PEER_H
#define RAW_PEER_H

#include <zmq.h>

#include "wire.h"
#include "world_fixture.h"

/* It has one XPUB, at which the node will subscribe once it has seen a
 * presence, and one XSUB, with which it subscribes at the node. */
struct raw_peer {
    void *zctx, *xpub, *sub;
    char endpoint[LS_ENDPOINT_MAX + 1];
    uint32_t id;
    uint64_t incarnation;
    const char *job;
    uint64_t link; /* the number of its link to the node */
    uint64_t sequence;
};

static inline void raw_connect(struct raw_peer *raw, const char *node_endpoint)
{
    assert_int_equal(zmq_connect(raw->sub, node_endpoint), 0);
}

/* node_endpoint: where it subscribes; NULL: nowhere yet. */
static inline void raw_open(struct raw_peer *raw, uint32_t id,
                            const char *node_endpoint)
{
    const int verbose = 1, no_linger = 0, wait_ms = LONG_MS, unlimited = 0;
    size_t size = sizeof raw->endpoint;
    *raw = (struct raw_peer){
        .id = id, .incarnation = 77, .job = "lockstep", .link = 0x4d};
    raw->zctx = zmq_ctx_new();
    raw->xpub = zmq_socket(raw->zctx, ZMQ_XPUB);
    raw->sub = zmq_socket(raw->zctx, ZMQ_XSUB);
    assert_true(raw->xpub != NULL && raw->sub != NULL);
    for (int i = 0; i < 2; i++) {
        void *socket = i == 0 ? raw->xpub : raw->sub;
        zmq_setsockopt(socket, ZMQ_LINGER, &no_linger, sizeof no_linger);
        zmq_setsockopt(socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
        zmq_setsockopt(socket, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
        zmq_setsockopt(socket, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
    }
    zmq_setsockopt(raw->xpub, ZMQ_XPUB_VERBOSER, &verbose, sizeof verbose);
    assert_int_equal(zmq_bind(raw->xpub, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(
        zmq_getsockopt(raw->xpub, ZMQ_LAST_ENDPOINT, raw->endpoint, &size), 0);
    if (node_endpoint != NULL)
        raw_connect(raw, node_endpoint);
}

static inline void raw_close(struct raw_peer *raw)
{
    zmq_close(raw->xpub);
    zmq_close(raw->sub);
    zmq_ctx_term(raw->zctx);
}

static inline void raw_say_up(struct raw_peer *raw, const void *frame,
                              size_t size, bool more)
{
    assert_int_equal(zmq_send(raw->sub, frame, size, more ? ZMQ_SNDMORE : 0),
                     (int)size);
}

static inline void raw_tell_topic(struct raw_peer *raw, uint8_t begins,
                                  const void *topic, size_t size)
{
    uint8_t frame[2 * WIRE_TOPIC_MAX] = {begins};
    assert_true(size < sizeof frame);
    memcpy(frame + 1, topic, size);
    raw_say_up(raw, frame, size + 1, false);
}

static inline void raw_subscribe(struct raw_peer *raw, const void *topic,
                                 size_t size)
{
    raw_tell_topic(raw, 1, topic, size);
}

static inline void raw_unsubscribe(struct raw_peer *raw, const void *topic,
                                   size_t size)
{
    raw_tell_topic(raw, 0, topic, size);
}

static inline void raw_be_present(struct raw_peer *raw)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    struct wire_presence me = {
        .link = raw->link, .id = raw->id, .incarnation = raw->incarnation};
    strcpy(me.job, raw->job);
    strcpy(me.endpoint, raw->endpoint);
    raw_subscribe(raw, topic, wire_topic_control(topic));
    raw_subscribe(raw, topic, wire_topic_inbox(topic, raw->id));
    raw_subscribe(raw, topic, wire_presence_write(topic, &me));
}

static inline void raw_answer(struct raw_peer *raw, const char *challenge);

/* The next subscription or its end, without the byte that says which, a NUL
 * after it; challenges are answered on the way. Returns its size. */
static inline int raw_topic(struct raw_peer *raw, char *topic, bool *on)
{
    char frame[WIRE_TOPIC_MAX + 2];
    const int size = zmq_recv(raw->xpub, frame, WIRE_TOPIC_MAX + 1, 0);
    assert_in_range(size, 1, WIRE_TOPIC_MAX + 1);
    frame[size] = '\0';
    *on = frame[0] == 1;
    memcpy(topic, frame + 1, (size_t)size);
    if (*on && size == WIRE_CHALLENGE_SIZE + 3 && topic[0] == WIRE_CHALLENGE)
        raw_answer(raw, topic + 1);
    return size - 1;
}

static inline void raw_assert_before(int64_t deadline)
{
    assert_true(ls_now(ls_runtime_threads()) < deadline);
}

/* Wait until this very node is present, or is not any more: others of its
 * world may dial here too, and what is sent before is not heard by it. */
static inline void raw_await_node(struct raw_peer *raw, const ls_node *node,
                                  bool there)
{
    const int64_t deadline = long_deadline();
    char topic[WIRE_TOPIC_MAX + 2];
    struct wire_presence presence;
    bool on;
    do {
        raw_assert_before(deadline);
        const int size = raw_topic(raw, topic, &on);
        presence.id = UINT32_MAX;
        (void)wire_presence_read((const uint8_t *)topic, (size_t)size,
                                 &presence);
    } while (presence.id != ls_node_id(node) || on != there);
}

static inline void raw_await_presence(struct raw_peer *raw, const ls_node *node)
{
    raw_await_node(raw, node, true);
}

static inline void raw_send(struct raw_peer *raw, const void *frame,
                            size_t size, bool more)
{
    assert_int_equal(zmq_send(raw->xpub, frame, size, more ? ZMQ_SNDMORE : 0),
                     (int)size);
}

static inline struct wire_header raw_header(struct raw_peer *raw,
                                            enum wire_kind kind)
{
    return (struct wire_header){.kind = kind,
                                .job = wire_job_hash(raw->job),
                                .origin = raw->id,
                                .incarnation = raw->incarnation,
                                .sequence = ++raw->sequence};
}

/* Topic, header and an inline payload as one frame. */
static inline size_t raw_frame(uint8_t *frame, const char *event,
                               struct wire_header *header, const void *data,
                               size_t size)
{
    size_t n = event != NULL ? wire_topic_event(frame, event)
                             : wire_topic_control(frame);
    header->data = data;
    header->size = size;
    n += wire_header_write(frame + n, header);
    if (size != 0)
        memcpy(frame + n, data, size);
    return n + size;
}

static inline void raw_event(struct raw_peer *raw, const char *event,
                             struct wire_header *header, const void *data,
                             size_t size)
{
    uint8_t *frame = malloc(WIRE_HEAD_MAX + size);
    assert_non_null(frame);
    raw_send(raw, frame, raw_frame(frame, event, header, data, size), false);
    free(frame);
}

/* Say who listens here. */
static inline void raw_answer(struct raw_peer *raw, const char *challenge)
{
    uint8_t frame[WIRE_HEAD_MAX];
    struct wire_header header = raw_header(raw, WIRE_KIND_PROOF);
    header.name = raw->job;
    header.name_size = strlen(raw->job);
    header.data = frame;
    size_t n = wire_topic_challenge(frame, challenge);
    n += wire_header_write(frame + n, &header);
    raw_send(raw, frame, n, false);
}

/* A heartbeat that lists this node as ready: with it both are. */
static inline void raw_heartbeat(struct raw_peer *raw, ls_node *node)
{
    uint8_t members[1024];
    struct wire_header header = raw_header(raw, WIRE_KIND_HEARTBEAT);
    struct wire_member you = {.id = ls_node_id(node),
                              .incarnation = ls_node_incarnation(node),
                              .state = WIRE_MEMBER_READY,
                              .limit_messages = 1u << 30,
                              .limit_bytes = UINT64_MAX / 2};
    header.name = raw->job;
    header.name_size = strlen(raw->job);
    strcpy(you.endpoint, ls_node_endpoint(node));
    size_t size = wire_members_begin(members, 1);
    size += wire_member_write(members + size, &you);
    raw_event(raw, NULL, &header, members, size);
}

/* Wait until the node lists this peer: all that it subscribed to before its
 * presence has been read. */
static inline void raw_await_listed(struct raw_peer *raw)
{
    static uint8_t frame[2 * WIRE_CHUNK_BYTES];
    for (const int64_t deadline = long_deadline();;
         raw_assert_before(deadline)) {
        struct wire_header header;
        struct wire_cursor cursor;
        struct wire_member member;
        char topic_class;
        uint32_t to;
        const int size = zmq_recv(raw->sub, frame, sizeof frame, 0);
        assert_true(size > 0);
        if (wire_header_read(frame, (size_t)size, &topic_class, &to, &header) !=
                LS_OK ||
            header.kind != WIRE_KIND_HEARTBEAT ||
            wire_members_read(&cursor, header.data, header.size) != LS_OK)
            continue;
        while (wire_member_read(&cursor, &member) == 1)
            if (member.id == raw->id && (member.state == WIRE_MEMBER_PRESENT ||
                                         member.state == WIRE_MEMBER_READY))
                return;
    }
}

#endif
