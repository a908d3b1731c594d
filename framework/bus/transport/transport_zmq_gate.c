/* Who may connect to a bound socket: the ZAP handler of the context.
 *
 * libzmq asks at one address of the context, inproc://zeromq.zap.01, for each
 * connection to a socket that has a ZAP domain; zauth of CZMQ serves only
 * CZMQ's own context. A gate is such a domain. Its vocabulary is zauth's: allow
 * and deny by address, PLAIN, CURVE. With a domain libzmq also refuses peers of
 * ZMTP 1.0 and 2.0, one of which could abort the process while a socket is
 * closed (docs/decisions/0023-identity.md).
 *
 * The User-Id that it answers with is "ID/NUMBER", or "/NUMBER" where nobody
 * proves an id; NUMBER counts the connections of a gate. libzmq hands it back
 * with each subscription of that connection.
 * Source: https://rfc.zeromq.org/spec/27, zmq_setsockopt(3). */
#define _GNU_SOURCE /* explicit_bzero */
#include "transport_zmq.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "credentials.h"

#define HANDLER     "inproc://zeromq.zap.01"
#define MAX_FRAMES  12
#define FRAME_MAX   256 /* a user name and a password have 255 at most */
#define N_ADDRESSES 2
/* From the bind of a socket until its gate is told where that is. */
#define OPENS_MS 20000

struct zmq_gate {
    struct zmq_gate *next;
    struct zmq_handler *handler; /* borrow */
    char domain[24];
    ls_security *security; /* borrow */
    /* under handler->lock */
    char addresses[N_ADDRESSES][LS_ENDPOINT_MAX + 1]; /* canonical */
    bool open;
    bool busy; /* it is being asked for somebody */
    uint64_t n_connections;
    uint64_t n_refused;
    char who[TRANSPORT_NAME_MAX]; /* the last of those */
    char why[TRANSPORT_WHY_MAX];
};

/* What libzmq asks. */
struct frame_of {
    uint8_t bytes[FRAME_MAX];
    size_t size; /* of the frame, which may have been longer */
};

enum { VERSION, REQUEST, DOMAIN, ADDRESS, IDENTITY, MECHANISM, FIRST, SECOND };

struct request {
    struct frame_of frames[MAX_FRAMES];
    size_t n;
};

struct zmq_handler {
    void *socket;
    ls_thread *thread;
    ls_mutex lock;
    ls_cond changed; /* a gate is open, gone, or not busy any more */
    struct zmq_gate *gates;
    uint64_t n_gates;       /* ever */
    struct request request; /* of its thread */
};

/* ---- gates ------------------------------------------------------------- */

int transport_zmq_gate_open(struct zmq_gate **out, struct zmq_handler *handler,
                            ls_security *security)
{
    struct zmq_gate *gate = calloc(1, sizeof *gate);
    if (gate == NULL)
        return ls_error(LS_ENOMEM, "no memory for an endpoint");
    gate->security = security;
    gate->handler = handler;
    ls_mutex_lock(&handler->lock);
    snprintf(gate->domain, sizeof gate->domain, "lockstep/%" PRIu64,
             ++handler->n_gates);
    gate->next = handler->gates;
    handler->gates = gate;
    ls_mutex_unlock(&handler->lock);
    *out = gate;
    return LS_OK;
}

void transport_zmq_gate_close(struct zmq_gate **gate_p)
{
    struct zmq_gate *gate = *gate_p;
    if (gate == NULL)
        return;
    struct zmq_handler *handler = gate->handler;
    int status = LS_OK;
    ls_mutex_lock(&handler->lock);
    struct zmq_gate **at = &handler->gates;
    while (*at != gate)
        at = &(*at)->next;
    *at = gate->next;
    ls_cond_broadcast(&handler->changed);
    while (gate->busy && status == LS_OK)
        status = ls_cond_wait(&handler->changed, &handler->lock, LS_FOREVER);
    ls_mutex_unlock(&handler->lock);
    free(gate);
    *gate_p = NULL;
}

bool transport_zmq_gate_guard(const struct zmq_gate *gate, void *socket)
{
    char public_key[LS_PUBLIC_KEY_MAX], secret_key[LS_PUBLIC_KEY_MAX];
    const int mode = (int)ls_security_mode(gate->security);
    bool ok = zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, gate->domain,
                             strlen(gate->domain)) == 0;
    if (ok && mode == LS_SECURITY_PLAIN)
        return transport_zmq_set_int(socket, ZMQ_PLAIN_SERVER, 1);
    if (!ok || mode != LS_SECURITY_CURVE)
        return ok;
    ok =
        credentials_own_keys(gate->security, public_key, secret_key) == LS_OK &&
        transport_zmq_set_int(socket, ZMQ_CURVE_SERVER, 1) &&
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret_key,
                       sizeof secret_key) == 0;
    explicit_bzero(secret_key, sizeof secret_key);
    return ok;
}

void transport_zmq_gate_opens(struct zmq_gate *gate, const char *bound,
                              const char *advertised)
{
    char addresses[N_ADDRESSES][LS_ENDPOINT_MAX + 1] = {"", ""};
    transport_canonical(bound, addresses[0]);
    if (advertised[0] != '\0')
        transport_canonical(advertised, addresses[1]);
    ls_mutex_lock(&gate->handler->lock);
    memcpy(gate->addresses, addresses, sizeof addresses);
    gate->open = true;
    ls_cond_broadcast(&gate->handler->changed);
    ls_mutex_unlock(&gate->handler->lock);
}

bool transport_zmq_gate_refused(struct zmq_gate *gate, char *who, char *why,
                                size_t why_size, uint64_t *n)
{
    ls_mutex_lock(&gate->handler->lock);
    *n = gate->n_refused;
    gate->n_refused = 0;
    memcpy(who, gate->who, sizeof gate->who);
    snprintf(why, why_size, "%s", gate->why);
    ls_mutex_unlock(&gate->handler->lock);
    return *n != 0;
}

/* ---- one request ------------------------------------------------------- */

struct answer {
    const char *code; /* 200; 300 for now; 400 never */
    char user[48];    /* to be written behind "/" */
    char why[TRANSPORT_WHY_MAX];
};

static bool is(const struct frame_of *frame, const char *text)
{
    return frame->size == strlen(text) &&
           memcmp(frame->bytes, text, frame->size) == 0;
}

static void refuse(struct answer *answer, const char *code)
{
    answer->code = code;
    snprintf(answer->why, sizeof answer->why, "%s", ls_error_text());
}

static void check_plain(const struct zmq_gate *gate, const struct request *r,
                        struct answer *answer)
{
    struct credentials_claim claim;
    if (r->n <= SECOND || r->frames[FIRST].size > FRAME_MAX ||
        r->frames[SECOND].size > FRAME_MAX ||
        credentials_check_plain(gate->security, r->frames[FIRST].bytes,
                                r->frames[FIRST].size, r->frames[SECOND].bytes,
                                r->frames[SECOND].size, &claim) != LS_OK) {
        refuse(answer, "400");
        return;
    }
    for (size_t i = 0; i < N_ADDRESSES; i++)
        if (strcmp(claim.address, gate->addresses[i]) == 0) {
            snprintf(answer->user, sizeof answer->user, "%" PRIu32, claim.id);
            return;
        }
    const bool advertises = gate->addresses[1][0] != '\0' &&
                            strcmp(gate->addresses[1], gate->addresses[0]) != 0;
    (void)ls_error(LS_EMISMATCH,
                   "node %" PRIu32 " dialled %s, but this node is at %s%s%s: "
                   "dial it as that, or `advertise` the other here",
                   claim.id, claim.address, gate->addresses[0],
                   advertises ? " and " : "",
                   advertises ? gate->addresses[1] : "");
    refuse(answer, "400");
}

/* What is published goes to whoever is connected, so who may only ask for an id
 * does not come in where anything else is said. */
static void misplaced(struct answer *answer, bool enrolment, uint32_t id)
{
    if (enrolment)
        (void)ls_error(LS_EMISMATCH,
                       "it has the enrolment key, which opens nothing but the "
                       "place where ids are given out");
    else
        (void)ls_error(LS_EMISMATCH,
                       "it has the key of node %" PRIu32 ", and here is only "
                       "asked for ids",
                       id);
    refuse(answer, "400");
}

static void check_curve(const struct zmq_gate *gate, const struct request *r,
                        struct answer *answer)
{
    uint32_t id = 0;
    bool enrolment = false;
    if (r->n <= FIRST || r->frames[FIRST].size != 32 ||
        credentials_check_curve(gate->security, r->frames[FIRST].bytes, &id,
                                &enrolment) != LS_OK)
        refuse(answer, credentials_gives_ids(gate->security)
                           ? "400"
                           : "300"); /* its key may yet be told */
    else if (enrolment != credentials_gives_ids(gate->security))
        misplaced(answer, enrolment, id);
    else if (!enrolment)
        snprintf(answer->user, sizeof answer->user, "%" PRIu32, id);
}

static void decide(const struct zmq_gate *gate, const struct request *r,
                   struct answer *answer)
{
    char address[FRAME_MAX + 1];
    const size_t n = r->frames[ADDRESS].size;
    const int mode = (int)ls_security_mode(gate->security);
    static const char *const mechanisms[] = {[LS_SECURITY_NONE] = "NULL",
                                             [LS_SECURITY_PLAIN] = "PLAIN",
                                             [LS_SECURITY_CURVE] = "CURVE"};
    snprintf(address, sizeof address, "%.*s", (int)(n < FRAME_MAX ? n : 0),
             (const char *)r->frames[ADDRESS].bytes);
    if (address[0] == ':' && address[1] != ':') /* of a file: ":uid:gid:pid" */
        address[0] = '\0';
    if (!credentials_admits(gate->security, address)) {
        (void)ls_error(LS_EMISMATCH, "its address is not allowed");
        refuse(answer, "400");
    } else if (!is(&r->frames[MECHANISM], mechanisms[mode])) {
        (void)ls_error(LS_EMISMATCH, "it does not authenticate by %s",
                       mechanisms[mode]);
        refuse(answer, "400");
    } else if (mode == LS_SECURITY_PLAIN) {
        check_plain(gate, r, answer);
    } else if (mode == LS_SECURITY_CURVE) {
        check_curve(gate, r, answer);
    }
}

static struct zmq_gate *find(const struct zmq_handler *handler,
                             const struct frame_of *domain)
{
    struct zmq_gate *gate = handler->gates;
    while (gate != NULL && !is(domain, gate->domain))
        gate = gate->next;
    return gate;
}

/* The gate of this domain, which stays while it is busy. Whoever is quick comes
 * before the gate knows where it listens. libzmq takes "again in a moment" for
 * an answer, and then never ends that connection, so it is kept waiting. */
static struct zmq_gate *enter(struct zmq_handler *handler,
                              const struct frame_of *domain)
{
    const int64_t deadline = ls_deadline(ls_runtime_threads(), OPENS_MS);
    struct zmq_gate *gate;
    int status = LS_OK;
    ls_mutex_lock(&handler->lock);
    while ((gate = find(handler, domain)) != NULL && !gate->open &&
           status == LS_OK)
        status = ls_cond_wait(&handler->changed, &handler->lock, deadline);
    if (gate != NULL && !gate->open)
        gate = NULL;
    if (gate != NULL)
        gate->busy = true;
    ls_mutex_unlock(&handler->lock);
    return gate;
}

static void leave(struct zmq_gate *gate, const struct request *r,
                  struct answer *answer)
{
    struct zmq_handler *handler = gate->handler;
    ls_mutex_lock(&handler->lock);
    if (strcmp(answer->code, "200") == 0) {
        char number[24];
        snprintf(number, sizeof number, "/%" PRIu64, ++gate->n_connections);
        memcpy(answer->user + strlen(answer->user), number, strlen(number) + 1);
    } else {
        const size_t n = r->frames[ADDRESS].size;
        gate->n_refused++;
        snprintf(gate->who, sizeof gate->who, "%.*s",
                 (int)(n < sizeof gate->who ? n : 0),
                 (const char *)r->frames[ADDRESS].bytes);
        memcpy(gate->why, answer->why, sizeof gate->why);
    }
    gate->busy = false;
    ls_cond_broadcast(&handler->changed);
    ls_mutex_unlock(&handler->lock);
}

/* ---- the handler ------------------------------------------------------- */

static bool receive(void *socket, struct request *r)
{
    zmq_msg_t frame;
    bool more = true;
    r->n = 0;
    while (more) {
        zmq_msg_init(&frame);
        int size;
        do
            size = zmq_msg_recv(&frame, socket, 0);
        while (size < 0 && zmq_errno() == EINTR);
        if (size < 0) { /* the context ends */
            zmq_msg_close(&frame);
            return false;
        }
        if (r->n < MAX_FRAMES) {
            struct frame_of *to = &r->frames[r->n];
            const size_t n = zmq_msg_size(&frame);
            memcpy(to->bytes, zmq_msg_data(&frame),
                   n < FRAME_MAX ? n : FRAME_MAX);
            to->size = n;
        }
        r->n++;
        more = zmq_msg_more(&frame) != 0;
        zmq_msg_close(&frame);
    }
    TAKEN_OVER();
    return true;
}

static void reply(void *socket, const struct request *r,
                  const struct answer *answer)
{
    const struct frame_of *request = &r->frames[REQUEST];
    const size_t size = request->size < FRAME_MAX ? request->size : FRAME_MAX;
    HANDED_OVER();
    (void)zmq_send(socket, "1.0", 3, ZMQ_SNDMORE);
    (void)zmq_send(socket, request->bytes, size, ZMQ_SNDMORE);
    (void)zmq_send(socket, answer->code, 3, ZMQ_SNDMORE);
    (void)zmq_send(socket, "", 0, ZMQ_SNDMORE);
    (void)zmq_send(socket, answer->user, strlen(answer->user), ZMQ_SNDMORE);
    (void)zmq_send(socket, "", 0, 0);
}

static void serve(void *arg)
{
    struct zmq_handler *handler = arg;
    struct request *request = &handler->request;
    while (receive(handler->socket, request)) {
        struct answer answer = {.code = "300"};
        struct zmq_gate *gate =
            request->n > MECHANISM && is(&request->frames[VERSION], "1.0")
                ? enter(handler, &request->frames[DOMAIN])
                : NULL;
        if (gate != NULL) {
            answer.code = "200";
            decide(gate, request, &answer);
            leave(gate, request, &answer);
        }
        reply(handler->socket, request, &answer);
    }
    zmq_close(handler->socket);
}

static void handler_free(struct zmq_handler *handler)
{
    ls_cond_fini(&handler->changed);
    ls_mutex_fini(&handler->lock);
    free(handler);
}

int transport_zmq_handler_start(struct zmq_handler **out, void *zctx)
{
    ls_runtime *runtime = ls_runtime_threads();
    struct zmq_handler *handler = calloc(1, sizeof *handler);
    if (handler == NULL)
        return ls_error(LS_ENOMEM, "no memory to ask who connects");
    int status = ls_mutex_init(&handler->lock, runtime);
    if (status == LS_OK)
        status = ls_cond_init(&handler->changed, runtime);
    if (status == LS_OK &&
        ((handler->socket = zmq_socket(zctx, ZMQ_REP)) == NULL ||
         !transport_zmq_set_int(handler->socket, ZMQ_LINGER, 0) ||
         zmq_bind(handler->socket, HANDLER) != 0))
        status = transport_zmq_error(HANDLER);
    if (status == LS_OK)
        status = ls_thread_spawn(runtime, &handler->thread, "ls-zap", serve,
                                 handler);
    if (status == LS_OK) {
        *out = handler;
        return LS_OK;
    }
    if (handler->socket != NULL)
        zmq_close(handler->socket);
    handler_free(handler);
    return status;
}

void transport_zmq_handler_join(struct zmq_handler **handler)
{
    if (*handler == NULL)
        return;
    const int status = ls_thread_join(&(*handler)->thread, LS_FOREVER);
    assert(status == LS_OK);
    (void)status;
    handler_free(*handler);
    *handler = NULL;
}
