/* Links: one XSUB each, read by the bus thread. */
#define _GNU_SOURCE /* epoll, explicit_bzero */
#include "transport_zmq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "credentials.h"

#define READ_BUDGET                                                            \
    512 /* messages from one link before others are looked at                  \
         */
#define MAX_READY 64
/* Messages of one link that wait to be read: beyond that its sender waits. */
#define UNREAD_MARK 2048
/* What was taken back leaves in so long, or nobody is there: libzmq dials who
 * has gone until this is over, to say again what else was subscribed. */
#define TAKE_BACK_MS 20
#define STAND_ON_NS  (20 * LS_NS_PER_MS)

/* ---- links ------------------------------------------------------------- */

static void make_dirty(struct zmq_link *link)
{
    struct zmq_transport *t = zmq_of(link->base.transport);
    if (link->dirty)
        return;
    link->dirty = true;
    link->next_dirty = t->dirty;
    t->dirty = link;
}

static void take_out(struct zmq_link **list, const struct zmq_link *link)
{
    while (*list != NULL && *list != link)
        list = &(*list)->next_dirty;
    if (*list == link)
        *list = link->next_dirty;
}

static struct zmq_link *link_of(transport_link *link)
{
    return (struct zmq_link *)link;
}

int transport_zmq_link_open(transport *base, transport_link **out, void *owner)
{
    struct zmq_transport *t = zmq_of(base);
    struct zmq_link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return ls_error(LS_ENOMEM, "no memory for a link");
    link->base.transport = base;
    link->owner = owner;
    link->fd = -1;
    zmq_msg_init(&link->proof);
    int status = LS_OK;
    if ((link->sub = zmq_socket(t->zctx, ZMQ_XSUB)) == NULL)
        status = transport_zmq_error("zmq_socket");
    else if (!transport_zmq_set_common(link->sub, t->max_message_bytes, 0) ||
             !transport_zmq_set_int(link->sub, ZMQ_SNDHWM, 0) ||
             !transport_zmq_set_int(link->sub, ZMQ_RCVHWM, UNREAD_MARK))
        status = transport_zmq_error("zmq_setsockopt");
    else if ((link->fd = transport_zmq_fd(link->sub)) < 0 ||
             !transport_zmq_watch(t, link->fd, link))
        status = ls_error_from(errno, "epoll_ctl");
    if (status != LS_OK) {
        transport_zmq_link_close(&link->base, false);
        return status;
    }
    *out = &link->base;
    return LS_OK;
}

/* Show who this node is, to whoever listens at that address and nowhere else.
 */
static int set_password(const struct zmq_transport *t, void *sub,
                        const char *endpoint)
{
    char user[16], password[256];
    struct credentials_claim claim = {.id = t->id,
                                      .incarnation = t->incarnation};
    transport_canonical(endpoint, claim.address);
    const int status =
        credentials_password(t->security, &claim, user, password);
    if (status != LS_OK)
        return status;
    return zmq_setsockopt(sub, ZMQ_PLAIN_USERNAME, user, strlen(user)) == 0 &&
                   zmq_setsockopt(sub, ZMQ_PLAIN_PASSWORD, password,
                                  strlen(password)) == 0
               ? LS_OK
               : transport_zmq_error("zmq_setsockopt");
}

/* Show who this node is, to the node of that id alone. */
static int set_keys(const struct zmq_transport *t, void *sub,
                    const char *endpoint, bool known, uint32_t id)
{
    char server[LS_PUBLIC_KEY_MAX], mine[LS_PUBLIC_KEY_MAX];
    char secret[LS_PUBLIC_KEY_MAX];
    if (!known)
        return ls_error(LS_EINVAL,
                        "%s: which node is to answer there? Say it by its id, "
                        "as in 0@%s: keys belong to nodes",
                        endpoint, endpoint);
    int status = credentials_server_key(t->security, id, server);
    if (status == LS_OK)
        status = credentials_own_keys(t->security, mine, secret);
    if (status != LS_OK)
        return status;
    const bool ok =
        zmq_setsockopt(sub, ZMQ_CURVE_SERVERKEY, server, sizeof server) == 0 &&
        zmq_setsockopt(sub, ZMQ_CURVE_PUBLICKEY, mine, sizeof mine) == 0 &&
        zmq_setsockopt(sub, ZMQ_CURVE_SECRETKEY, secret, sizeof secret) == 0;
    explicit_bzero(secret, sizeof secret);
    return ok ? LS_OK : transport_zmq_error("zmq_setsockopt");
}

int transport_zmq_authenticate(const struct zmq_transport *t,
                               struct zmq_link *link, const char *endpoint,
                               bool known, uint32_t id)
{
    link->own = transport_in_process(endpoint);
    if (link->own)
        return LS_OK;
    switch (ls_security_mode(t->security)) {
    case LS_SECURITY_PLAIN:
        return set_password(t, link->sub, endpoint);
    case LS_SECURITY_CURVE:
        return set_keys(t, link->sub, endpoint, known, id);
    default:
        return LS_OK;
    }
}

int transport_zmq_link_connect(transport_link *base, const char *endpoint,
                               bool known, uint32_t id)
{
    struct zmq_link *link = link_of(base);
    const int status = transport_zmq_authenticate(zmq_of(base->transport), link,
                                                  endpoint, known, id);
    if (status != LS_OK)
        return status;
    make_dirty(link);
    if (transport_zmq_set_family(link->sub, endpoint) &&
        zmq_connect(link->sub, endpoint) == 0)
        return LS_OK;
    const int error = zmq_errno();
    if (error == EINVAL || error == EPROTONOSUPPORT)
        return ls_error(LS_EINVAL, "\"%s\" is not an address to attach to",
                        endpoint);
    return transport_zmq_error(endpoint);
}

/* libzmq gives all messages of a connection one record of its properties, so
 * the place of one of them tells connections apart for as long as a message of
 * it is kept. */
static const char *mark_of(zmq_msg_t *frame)
{
    return zmq_msg_gets(frame, "Peer-Address");
}

void transport_zmq_link_trust(transport_link *base,
                              const struct message *message)
{
    struct zmq_link *link = link_of(base);
    zmq_msg_t *frame = (zmq_msg_t *)(uintptr_t)&message->frames[0];
    zmq_msg_close(&link->proof);
    zmq_msg_init(&link->proof);
    zmq_msg_copy(&link->proof, frame);
    link->mark = link->own ? NULL : mark_of(&link->proof);
    link->proved = true;
}

static int send_up(const struct zmq_link *link, const void *head,
                   size_t head_size, const void *body, size_t body_size)
{
    zmq_msg_t frame;
    if (!transport_zmq_frame_short(&frame, head, head_size, body, body_size))
        return ls_error(LS_ENOMEM, "no memory for a message");
    HANDED_OVER();
    if (zmq_msg_send(&frame, link->sub, ZMQ_DONTWAIT) >= 0)
        return LS_OK;
    const int status = transport_zmq_error("zmq_msg_send");
    zmq_msg_close(&frame);
    return status;
}

int transport_zmq_link_subscribe(transport_link *base, const uint8_t *topic,
                                 size_t size, bool subscribe)
{
    static const uint8_t subscribe_byte[] = {0, 1};
    struct zmq_link *link = link_of(base);
    make_dirty(link);
    return send_up(link, &subscribe_byte[subscribe], 1, topic, size);
}

/* Its answers are read until there is nothing, if they are read now; else
 * whether the send has swallowed the edge is looked at here. */
int transport_zmq_link_send(transport_link *base, const void *head,
                            size_t head_size, const void *body,
                            size_t body_size)
{
    struct zmq_link *link = link_of(base);
    const int status = send_up(link, head, head_size, body, body_size);
    if (zmq_of(base->transport)->reading != link &&
        transport_zmq_is_readable(link->sub))
        make_dirty(link);
    return status;
}

void transport_zmq_link_close(transport_link *base, bool linger)
{
    struct zmq_link *link = link_of(base);
    struct zmq_transport *t = zmq_of(base->transport);
    take_out(&t->dirty, link);
    take_out(&t->todo, link);
    if (t->reading == link)
        t->reading = NULL;
    if (link->fd >= 0)
        epoll_ctl(t->epoll, EPOLL_CTL_DEL, link->fd, NULL);
    if (link->sub != NULL && linger)
        (void)transport_zmq_set_int(link->sub, ZMQ_LINGER,
                                    t->linger_ms < TAKE_BACK_MS ? t->linger_ms
                                                                : TAKE_BACK_MS);
    if (link->sub != NULL)
        zmq_close(link->sub);
    zmq_msg_close(&link->proof);
    free(link);
}

/* ---- receiving --------------------------------------------------------- */

/* Read one message whole; parts beyond the second are read and thrown away,
 * or they would be taken for the start of the next one. */
static bool receive(struct zmq_link *link, struct message *message)
{
    zmq_msg_t *first = (zmq_msg_t *)&message->frames[0];
    zmq_msg_init(first);
    if (zmq_msg_recv(first, link->sub, ZMQ_DONTWAIT) < 0)
        return false;
    TAKEN_OVER();
    message->transport = &transport_zmq_ops;
    message->n_frames = 1;
    message->head = zmq_msg_data(first);
    message->head_size = zmq_msg_size(first);
    message->tail = NULL;
    message->tail_size = 0;
    message->trusted =
        link->proved && (link->own || mark_of(first) == link->mark);
    bool more = zmq_msg_more(first) != 0;
    if (more) {
        zmq_msg_t *second = (zmq_msg_t *)&message->frames[1];
        zmq_msg_init(second);
        zmq_msg_recv(second, link->sub, ZMQ_DONTWAIT);
        message->n_frames = 2;
        message->tail = zmq_msg_data(second);
        message->tail_size = zmq_msg_size(second);
        more = zmq_msg_more(second) != 0;
    }
    while (more) {
        zmq_msg_t rest;
        zmq_msg_init(&rest);
        more = zmq_msg_recv(&rest, link->sub, ZMQ_DONTWAIT) >= 0 &&
               zmq_msg_more(&rest) != 0;
        zmq_msg_close(&rest);
        message->n_frames = 3; /* too many: refused above, see bus.c */
    }
    return true;
}

void transport_zmq_copy(struct message *copy, const struct message *of)
{
    for (unsigned i = 0; i < of->n_frames && i < 2; i++) {
        zmq_msg_init((zmq_msg_t *)&copy->frames[i]);
        zmq_msg_copy((zmq_msg_t *)&copy->frames[i],
                     (zmq_msg_t *)(uintptr_t)&of->frames[i]);
    }
    copy->transport = of->transport;
    copy->n_frames = of->n_frames;
    copy->head = zmq_msg_data((zmq_msg_t *)&copy->frames[0]);
    copy->head_size = of->head_size;
    copy->tail =
        of->n_frames > 1 ? zmq_msg_data((zmq_msg_t *)&copy->frames[1]) : NULL;
    copy->tail_size = of->tail_size;
}

void transport_released(void)
{
    TAKEN_OVER();
}

void transport_zmq_release(struct message *message)
{
    HANDED_OVER();
    zmq_msg_close((zmq_msg_t *)&message->frames[0]);
    if (message->n_frames > 1)
        zmq_msg_close((zmq_msg_t *)&message->frames[1]);
    message->n_frames = 0;
}

/* Whoever is told of a message may close the link that it came over. */
static void read_link(struct zmq_transport *t, struct zmq_link *link,
                      const struct transport_events *events, void *self)
{
    t->reading = link;
    for (unsigned i = 0; i < READ_BUDGET; i++) {
        struct message *message = events->take(self);
        if (message == NULL)
            break;
        if (!receive(link, message)) {
            message->n_frames = 0;
            events->message(self, NULL, message);
            return;
        }
        events->message(self, link->owner, message);
        if (t->reading == NULL)
            return;
    }
    make_dirty(link);
}

/* Returns whether to go on with the next. Lock held. */
static bool hear(struct zmq_transport *t, zmq_msg_t *frame,
                 const struct transport_events *events, void *self)
{
    TAKEN_OVER();
    const uint8_t *data = zmq_msg_data(frame);
    const size_t size = zmq_msg_size(frame);
    if (size != 0 && data[0] > 1) {
        const struct speaker by = transport_zmq_speaker(t, frame);
        t->hears = true;
        transport_said(events, self, data, size, &by);
        return !transport_zmq_floods(t, &by, frame);
    }
    if (size > 1) {
        const struct speaker by = transport_zmq_subscriber(t, frame);
        events->subscription(self, data + 1, size - 1, data[0] == 1, &by);
    }
    return true;
}

/* All of it, but when one is cut off: who comes again could go on for ever. */
static void read_publisher(struct zmq_transport *t,
                           const struct transport_events *events, void *self)
{
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    transport_lock(&t->base);
    bool calm = true;
    while (calm && zmq_msg_recv(&frame, t->xpub, ZMQ_DONTWAIT) >= 0)
        calm = hear(t, &frame, events, self);
    if (calm) {
        transport_zmq_none_left(t);
        atomic_store(&t->unlooked, false);
        atomic_store(&t->xpub_readable, false);
    }
    transport_unlock(&t->base);
    zmq_msg_close(&frame);
}

/* Strangers, as the monitor and the gate saw them. A refusal of the gate ends a
 * connection too, so there is an event whenever there is one. */
static void tell_refused(struct zmq_transport *t,
                         const struct transport_events *events, void *self)
{
    char who[TRANSPORT_NAME_MAX], why[TRANSPORT_WHY_MAX];
    uint64_t n;
    transport_zmq_monitor_read(t, events, self);
    if (transport_zmq_gate_refused(t->gate, who, why, sizeof why, &n))
        events->refused(
            self, &(struct transport_refusal){.who = who, .why = why, .n = n});
}

/* When who polls looks for subscriptions, if nobody has. */
static int64_t looks_at(const struct zmq_transport *t)
{
    return atomic_load(&t->left_at) + LOOK_LATER_NS;
}

int64_t transport_zmq_due(const struct zmq_transport *t, int64_t deadline)
{
    const int64_t due = transport_zmq_probes_due(t);
    deadline = due < deadline ? due : deadline;
    if (t->dirty != NULL || atomic_load(&t->xpub_readable))
        return LS_NOW;
    if (!atomic_load(&t->unlooked))
        return deadline;
    return looks_at(t) < deadline ? looks_at(t) : deadline;
}

static int wait_ms(int64_t now, int64_t deadline)
{
    if (deadline == LS_FOREVER)
        return -1;
    if (deadline <= now)
        return 0;
    const int64_t left = deadline - now;
    const int64_t ms = (left + LS_NS_PER_MS - 1) / LS_NS_PER_MS;
    return ms > 60000 ? 60000 : (int)ms;
}

/* A timer has woken the bus thread, and another thread polls, which looks after
 * it: stand by until the next one, or until woken as the turn is given back. To
 * be woken each time costs more than to look once more, when the other has set
 * the next. Who gives the turn back before it can see until when does not wake
 * it. */
static int stand_on(struct zmq_transport *t,
                    const struct transport_events *events, void *self,
                    struct epoll_event ready[MAX_READY])
{
    int n = 0;
    do {
        const int64_t now = ls_now(t->base.runtime);
        const int64_t due = atomic_load(&t->due);
        const int64_t until = due > now ? due : now + STAND_ON_NS;
        atomic_store(&t->stands_until, until);
        if (transport_rests(events, self, false))
            return n;
        n = epoll_wait(t->stand_by, ready, MAX_READY, wait_ms(now, until));
    } while (!transport_rests(events, self, false));
    return n;
}

static int await(struct zmq_transport *t, int64_t deadline,
                 const struct transport_events *events, void *self,
                 struct epoll_event ready[MAX_READY])
{
    const int64_t now = ls_now(t->base.runtime);
    const int64_t paced = atomic_load(&t->met_at) + LOOK_LATER_NS;
    const bool lent = t->lent;
    if (lent)
        atomic_store(&t->due, deadline);
    if (t->hears) /* who sends up waits for an answer */
        transport_zmq_look_at_last(t);
    if (paced > now && paced < deadline)
        deadline = paced;
    atomic_store(&t->rests_until, deadline);
    const int64_t until = transport_zmq_due(t, deadline);
    const int ms = wait_ms(now, until);
    if (ms == 0)
        return epoll_wait(t->epoll, ready, MAX_READY, 0);
    if (!lent) {
        t->stands_by = t->lends;
        atomic_store(&t->stands_until, until);
    }
    const bool stands_by = !lent && t->stands_by;
    const bool waits = transport_rests(events, self, true);
    int n = epoll_wait(stands_by ? t->stand_by : t->epoll, ready, MAX_READY,
                       waits ? ms : 0);
    if (!transport_rests(events, self, false))
        n = stand_on(t, events, self, ready);
    atomic_store(&t->rests_until, LS_NOW); /* who polls: not before */
    /* Not before it has the turn: what is ready now may be gone by then. */
    return stands_by && n > 0 ? epoll_wait(t->epoll, ready, MAX_READY, 0) : n;
}

bool transport_zmq_poll(transport *base, int64_t deadline,
                        const struct transport_events *events, void *self)
{
    struct zmq_transport *t = zmq_of(base);
    struct epoll_event ready[MAX_READY];
    bool monitored = false;
    const int n = await(t, deadline, events, self, ready);
    if (atomic_load(&t->unlooked) && ls_now(t->base.runtime) >= looks_at(t))
        atomic_store(&t->xpub_readable, true);
    for (int i = 0; i < n; i++) {
        void *what = ready[i].data.ptr;
        if (what == &t->wake) {
            uint64_t count;
            const ssize_t got = read(t->wake, &count, sizeof count);
            (void)got;
            atomic_store(&t->woken, false);
        } else if (what == t->xpub) {
            atomic_store(&t->xpub_readable, true);
        } else if (what == t->monitor) {
            monitored = true;
        } else if (!transport_zmq_probe_ready(t, what)) {
            make_dirty(what);
        }
    }
    if (atomic_load(&t->xpub_readable))
        read_publisher(t, events, self);
    transport_zmq_tell_overfull(t, events, self);
    /* Not before all is read: what one that has ended said would be taken for
     * another's, which has its descriptor by now. */
    if (monitored && !atomic_load(&t->xpub_readable))
        tell_refused(t, events, self);
    if (t->probes != NULL)
        transport_zmq_probes_tell(t, events, self);
    t->todo = t->dirty;
    t->dirty = NULL;
    while (t->todo != NULL) {
        struct zmq_link *link = t->todo;
        t->todo = link->next_dirty;
        link->dirty = false;
        read_link(t, link, events, self);
    }
    t->reading = NULL;
    return t->dirty != NULL;
}
