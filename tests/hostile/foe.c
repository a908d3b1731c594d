#include "foe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>
#include <zmq.h>

#include "credentials.h"
#include "transport.h"

#define SEND_WAIT_MS 100
#define UNSENT_MARK  64 /* frames: what a foe keeps is no figure of ours */

/* ---- who is let in at a foe -------------------------------------------- */

static ls_thread *zap_thread;
static void *zap_socket;

/* Everybody: a PLAIN server of libzmq asks. */
static void zap(void *socket)
{
    char frames[12][256];
    int sizes[12] = {0}, more = 1;
    for (;;) {
        size_t n = 0;
        for (more = 1; more != 0 && n < 12; n++) {
            size_t size = sizeof more;
            sizes[n] = zmq_recv(socket, frames[n], sizeof frames[n], 0);
            if (sizes[n] < 0) {
                zmq_close(socket);
                return;
            }
            zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
        }
        zmq_send(socket, "1.0", 3, ZMQ_SNDMORE);
        zmq_send(socket, frames[1], (size_t)sizes[1], ZMQ_SNDMORE);
        zmq_send(socket, "200", 3, ZMQ_SNDMORE);
        zmq_send(socket, "", 0, ZMQ_SNDMORE);
        zmq_send(socket, "foe", 3, ZMQ_SNDMORE);
        zmq_send(socket, "", 0, 0);
    }
}

bool foes_begin(struct siege *siege)
{
    const int no_linger = 0;
    zap_socket = zmq_socket(siege->zctx, ZMQ_REP);
    return zap_socket != NULL &&
           zmq_setsockopt(zap_socket, ZMQ_LINGER, &no_linger,
                          sizeof no_linger) == 0 &&
           zmq_bind(zap_socket, "inproc://zeromq.zap.01") == 0 &&
           ls_thread_spawn(ls_runtime_threads(), &zap_thread, "zap", zap,
                           zap_socket) == LS_OK;
}

void foes_end(struct siege *siege)
{
    foes_close(siege);
    if (siege->zctx != NULL)
        zmq_ctx_term(siege->zctx);
    (void)!ls_thread_join(&zap_thread, LS_FOREVER);
}

/* ---- sockets ----------------------------------------------------------- */

static bool set(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static bool set_text(void *socket, int option, const char *text)
{
    return zmq_setsockopt(socket, option, text, strlen(text)) == 0;
}

static bool guard_plain(struct foe *foe)
{
    char user[CREDENTIALS_USER_MAX], password[CREDENTIALS_PASSWORD_MAX];
    struct credentials_claim claim = {.id = foe->id,
                                      .incarnation = foe->incarnation};
    bool ok = set(foe->xpub, ZMQ_PLAIN_SERVER, 1) &&
              set_text(foe->xpub, ZMQ_ZAP_DOMAIN, "foe");
    if (foe->node == NULL)
        return ok;
    transport_canonical(foe->node->endpoint, claim.address);
    return ok &&
           credentials_password(foe->security, &claim, user, password) ==
               LS_OK &&
           set_text(foe->sub, ZMQ_PLAIN_USERNAME, user) &&
           set_text(foe->sub, ZMQ_PLAIN_PASSWORD, password);
}

static bool guard_curve(struct foe *foe)
{
    char server[CREDENTIALS_KEY_MAX], mine[CREDENTIALS_KEY_MAX];
    char secret[CREDENTIALS_KEY_MAX];
    if (credentials_own_keys(foe->security, mine, secret) != LS_OK ||
        !set(foe->xpub, ZMQ_CURVE_SERVER, 1) ||
        zmq_setsockopt(foe->xpub, ZMQ_CURVE_SECRETKEY, secret, sizeof secret) !=
            0)
        return false;
    return foe->node == NULL ||
           (credentials_server_key(foe->siege->security, foe->node->id,
                                   server) == LS_OK &&
            zmq_setsockopt(foe->sub, ZMQ_CURVE_SERVERKEY, server,
                           sizeof server) == 0 &&
            zmq_setsockopt(foe->sub, ZMQ_CURVE_PUBLICKEY, mine, sizeof mine) ==
                0 &&
            zmq_setsockopt(foe->sub, ZMQ_CURVE_SECRETKEY, secret,
                           sizeof secret) == 0);
}

static bool guard(struct foe *foe)
{
    struct siege *siege = foe->siege;
    if (foe->has == FOE_NOTHING || siege->mode == LS_SECURITY_NONE) {
        foe->security =
            siege->mode == LS_SECURITY_NONE ? siege->security : NULL;
        return true;
    }
    if (siege->mode == LS_SECURITY_PLAIN) {
        foe->security =
            foe->has == FOE_MEMBER ? siege->security : siege->false_security;
        return guard_plain(foe);
    }
    return ls_security_curve(&foe->security,
                             foe->has == FOE_MEMBER ? siege->secret
                                                    : siege->false_keys,
                             foe->id) == LS_OK &&
           guard_curve(foe);
}

static bool open_sockets(struct foe *foe, const char *bind)
{
    size_t size = sizeof foe->endpoint;
    foe->xpub = zmq_socket(foe->siege->zctx, ZMQ_XPUB);
    foe->sub = zmq_socket(foe->siege->zctx, ZMQ_XSUB);
    return foe->xpub != NULL && foe->sub != NULL &&
           set(foe->xpub, ZMQ_LINGER, 0) && set(foe->sub, ZMQ_LINGER, 0) &&
           set(foe->xpub, ZMQ_XPUB_VERBOSER, 1) &&
           set(foe->xpub, ZMQ_XPUB_NODROP, 1) &&
           set(foe->xpub, ZMQ_SNDHWM, UNSENT_MARK) &&
           set(foe->xpub, ZMQ_SNDTIMEO, SEND_WAIT_MS) &&
           set(foe->xpub, ZMQ_RCVHWM, 0) &&
           set(foe->sub, ZMQ_RECONNECT_IVL, -1) &&
           set(foe->sub, ZMQ_SNDHWM, 0) &&
           set(foe->sub, ZMQ_RCVHWM, foe->deaf ? 1 : 0) &&
           (!foe->deaf || set(foe->sub, ZMQ_RCVBUF, 65536)) && guard(foe) &&
           zmq_bind(foe->xpub, bind) == 0 &&
           zmq_getsockopt(foe->xpub, ZMQ_LAST_ENDPOINT, foe->endpoint, &size) ==
               0 &&
           (foe->node == NULL ||
            zmq_connect(foe->sub, foe->node->endpoint) == 0);
}

struct foe *foe_open_as(struct siege *siege, enum foe_has has, uint32_t id,
                        struct process *node, const char *bind, bool deaf)
{
    struct foe *foe = calloc(1, sizeof *foe);
    if (foe == NULL)
        abort();
    ls_runtime *runtime = ls_runtime_threads();
    foe->siege = siege;
    foe->has = has;
    foe->node = node;
    foe->id = foe->proves = id;
    foe->incarnation = foe->proves_life = ls_entropy(runtime) | 1;
    foe->link = ls_entropy(runtime) | 1;
    foe->deaf = deaf;
    foe->next = siege->foes;
    siege->foes = foe;
    if (!open_sockets(foe, bind))
        case_fails(siege, "a foe cannot begin: %s; %s",
                   zmq_strerror(zmq_errno()), ls_error_text());
    return foe;
}

struct foe *foe_open(struct siege *siege, enum foe_has has,
                     struct process *node)
{
    const uint32_t id = siege->next_id++;
    return foe_open_as(siege, has, id, node, "tcp://127.0.0.1:*", false);
}

void foe_close(struct foe *foe)
{
    struct foe **at = &foe->siege->foes;
    while (*at != foe)
        at = &(*at)->next;
    *at = foe->next;
    if (foe->xpub != NULL)
        zmq_close(foe->xpub);
    if (foe->sub != NULL)
        zmq_close(foe->sub);
    if (foe->siege->mode == LS_SECURITY_CURVE)
        ls_security_destroy(&foe->security);
    free(foe);
}

void foes_close(struct siege *siege)
{
    while (siege->foes != NULL)
        foe_close(siege->foes);
}

/* ---- what comes -------------------------------------------------------- */

static void answer(struct foe *foe, const char *challenge)
{
    uint8_t frame[WIRE_HEAD_MAX + CREDENTIALS_PROOF_BYTES];
    uint8_t proof[CREDENTIALS_PROOF_BYTES];
    struct credentials_claim claim = {.id = foe->proves,
                                      .incarnation = foe->proves_life};
    struct wire_header header = foe_header(foe, WIRE_KIND_PROOF);
    header.origin = foe->proves;
    header.incarnation = foe->proves_life;
    header.sequence = 0;
    header.name = "lockstep";
    header.name_size = 8;
    header.data = proof;
    transport_canonical(foe->endpoint, claim.address);
    if (foe->security != NULL)
        header.size =
            credentials_prove(foe->security, challenge, &claim, proof);
    size_t n = wire_topic_challenge(frame, challenge);
    n += wire_header_write(frame + n, &header);
    memcpy(frame + n, proof, header.size);
    (void)foe_send(foe, frame, n + header.size);
}

static void hear_topic(struct foe *foe, const uint8_t *topic, size_t size,
                       bool on)
{
    struct wire_presence presence;
    if (on && !foe->silent && size == WIRE_CHALLENGE_SIZE + 2 &&
        topic[0] == WIRE_CHALLENGE)
        answer(foe, (const char *)topic + 1);
    if (wire_presence_read(topic, size, &presence) != LS_OK ||
        presence.id >= sizeof foe->here / sizeof *foe->here)
        return;
    unsigned *n = &foe->here[presence.id];
    *n = on ? *n + 1 : *n - (*n != 0 ? 1 : 0);
    if (on && foe->greet != NULL && presence.id == foe->node->id)
        foe->greet(foe);
}

static bool hear_message(struct foe *foe)
{
    static uint8_t frame[2 * WIRE_CHUNK_BYTES];
    struct wire_header header;
    char topic_class;
    uint32_t to;
    const int size = zmq_recv(foe->sub, frame, sizeof frame, ZMQ_DONTWAIT);
    if (size <= 0 || (size_t)size > sizeof frame ||
        wire_header_read(frame, (size_t)size, &topic_class, &to, &header) !=
            LS_OK)
        return size >= 0;
    if (header.kind == WIRE_KIND_PROOF)
        foe->proofs++;
    if (header.kind == WIRE_KIND_VERDICT && header.subject == foe->incarnation)
        foe->verdicts++;
    return true;
}

static void pump(struct foe *foe)
{
    char frame[WIRE_TOPIC_MAX + 2];
    int size;
    while ((size = zmq_recv(foe->xpub, frame, sizeof frame - 1, ZMQ_DONTWAIT)) >
           0) {
        size = size < (int)sizeof frame ? size : (int)sizeof frame - 1;
        frame[size] = '\0';
        hear_topic(foe, (uint8_t *)frame + 1, (size_t)size - 1, frame[0] == 1);
    }
    while (!foe->deaf && hear_message(foe))
        ;
}

void foes_pump(struct siege *siege)
{
    for (struct foe *foe = siege->foes; foe != NULL; foe = foe->next)
        if (foe->xpub != NULL && foe->sub != NULL)
            pump(foe);
}

static bool wait_here(struct foe *foe, uint32_t by, bool here, int64_t wait_ms)
{
    const int64_t deadline = now_ms() + wait_ms;
    while ((foe->here[by] != 0) != here && now_ms() < deadline) {
        zmq_pollitem_t item = {.socket = foe->xpub, .events = ZMQ_POLLIN};
        (void)zmq_poll(&item, 1, LOOK_MS);
        foes_pump(foe->siege);
    }
    return (foe->here[by] != 0) == here;
}

bool foe_is_dialled(struct foe *foe, uint32_t by)
{
    const bool is = wait_here(foe, by, true, WAIT_MS);
    if (!is)
        case_fails(foe->siege, "node %u does not dial its client", by);
    return is;
}

bool foe_is_dropped(struct foe *foe, uint32_t by, int64_t within_ms)
{
    return wait_here(foe, by, false, within_ms);
}

static bool wait_counted(struct foe *foe, const unsigned *count)
{
    const unsigned before = *count;
    const int64_t deadline = now_ms() + WAIT_MS;
    while (*count == before && now_ms() < deadline) {
        zmq_pollitem_t item = {.socket = foe->sub, .events = ZMQ_POLLIN};
        (void)zmq_poll(&item, 1, LOOK_MS);
        foes_pump(foe->siege);
    }
    return *count != before;
}

bool foe_is_told(struct foe *foe)
{
    return foe->verdicts != 0 || wait_counted(foe, &foe->verdicts);
}

bool foe_is_answered(struct foe *foe)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    char challenge[WIRE_CHALLENGE_SIZE + 1];
    (void)snprintf(challenge, sizeof challenge, "%032x", foe->proofs + 1);
    foe_subscribe(foe, topic, wire_topic_challenge(topic, challenge), true);
    return wait_counted(foe, &foe->proofs);
}

/* ---- what it says ------------------------------------------------------ */

void foe_subscribe(struct foe *foe, const void *topic, size_t size, bool on)
{
    uint8_t frame[4096];
    frame[0] = on ? 1 : 0;
    memcpy(frame + 1, topic, size);
    (void)zmq_send(foe->sub, frame, size + 1, 0);
}

void foe_present(struct foe *foe, const struct foe_presence *as, bool on)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    struct wire_presence p = {.link = as->link != 0 ? as->link : foe->link,
                              .id = as->id != 0 ? as->id : foe->id,
                              .incarnation = as->incarnation != 0
                                                 ? as->incarnation
                                                 : foe->incarnation,
                              .relayed = as->relayed,
                              .relay = as->relay,
                              .job = "lockstep"};
    (void)snprintf(p.endpoint, sizeof p.endpoint, "%s",
                   as->endpoint != NULL ? as->endpoint : foe->endpoint);
    (void)snprintf(p.role, sizeof p.role, "%s",
                   as->role != NULL ? as->role : "");
    foe_subscribe(foe, topic, wire_presence_write(topic, &p), on);
}

void foe_listen(struct foe *foe, uint32_t as, const char *event, bool on)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    struct wire_listen listen = {.link = foe->link, .id = as};
    (void)snprintf(listen.event, sizeof listen.event, "%s", event);
    if (on)
        foe_subscribe(foe, topic, wire_topic_event(topic, event), true);
    foe_subscribe(foe, topic, wire_listen_write(topic, &listen), on);
}

void foe_be_present(struct foe *foe)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    const struct foe_presence myself = {.id = 0};
    foe_subscribe(foe, topic, wire_topic_control(topic), true);
    foe_subscribe(foe, topic, wire_topic_inbox(topic, foe->id), true);
    foe_present(foe, &myself, true);
}

struct wire_header foe_header(struct foe *foe, enum wire_kind kind)
{
    return (struct wire_header){.kind = kind,
                                .job = wire_job_hash("lockstep"),
                                .origin = foe->id,
                                .incarnation = foe->incarnation,
                                .sequence = ++foe->sequence};
}

size_t foe_frame(const struct foe *foe, uint8_t *out, const char *event,
                 struct wire_header *header, const void *data, size_t size)
{
    const enum wire_kind kind = header->kind;
    const bool to_all = event != NULL || foe->node == NULL ||
                        kind == WIRE_KIND_HEARTBEAT ||
                        kind == WIRE_KIND_FAREWELL;
    size_t n;
    if (kind == WIRE_KIND_RELIABLE && event != NULL) {
        header->name = event;
        header->name_size = strlen(event);
        n = wire_topic_inbox(out, foe->node->id);
    } else if (event != NULL) {
        n = wire_topic_event(out, event);
    } else {
        n = to_all ? wire_topic_control(out)
                   : wire_topic_inbox(out, foe->node->id);
    }
    header->data = data != NULL ? data : out;
    header->size = size;
    n += wire_header_write(out + n, header);
    if (size != 0)
        memcpy(out + n, data, size);
    return n + size;
}

void foe_send_up(struct foe *foe, const void *frame, size_t size)
{
    (void)zmq_send(foe->sub, frame, size, 0);
}

bool foe_send(struct foe *foe, const void *frame, size_t size)
{
    return zmq_send(foe->xpub, frame, size, 0) == (int)size;
}

bool foe_say(struct foe *foe, const char *event, struct wire_header *header,
             const void *data, size_t size)
{
    uint8_t *frame = malloc(WIRE_HEAD_MAX + size);
    const bool sent =
        frame != NULL &&
        foe_send(foe, frame, foe_frame(foe, frame, event, header, data, size));
    free(frame);
    return sent;
}

struct wire_member foe_lists(const struct foe *foe)
{
    struct wire_member you = {.id = foe->node->id,
                              .incarnation = foe->node->incarnation,
                              .state = WIRE_MEMBER_READY,
                              .limit_messages = 1u << 30,
                              .limit_bytes = UINT64_MAX / 2};
    memcpy(you.endpoint, foe->node->endpoint, sizeof you.endpoint);
    return you;
}

void foe_heartbeat(struct foe *foe, const struct wire_member *as, uint32_t n)
{
    const struct wire_member you = foe_lists(foe);
    struct wire_header header = foe_header(foe, WIRE_KIND_HEARTBEAT);
    header.name = "lockstep";
    header.name_size = 8;
    const uint32_t all = n + 1;
    uint8_t *members = malloc(wire_members_size(all));
    if (members == NULL)
        abort();
    size_t size = wire_members_begin(members, all);
    for (uint32_t i = 0; i < n; i++)
        size += wire_member_write(members + size, &as[i]);
    size += wire_member_write(members + size, &you);
    (void)foe_say(foe, NULL, &header, members, size);
    free(members);
}

static void list_its_node(struct foe *foe)
{
    foe_heartbeat(foe, NULL, 0);
}

bool foe_join(struct foe *foe)
{
    foe->greet = list_its_node;
    foe_be_present(foe);
    if (!foe_is_dialled(foe, foe->node->id))
        return false;
    const char *line = process_ask(foe->siege, foe->node, "client %u", foe->id);
    foe->greet = NULL;
    if (strncmp(line, "figures", 7) == 0)
        return true;
    case_fails(foe->siege, "node %u does not take node %u for a member",
               foe->node->id, foe->id);
    return false;
}
