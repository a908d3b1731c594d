#include "barrier_raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "lockstep/status.h"
#include "process.h"

#define BODY_BYTES   48 /* about what the barrier's messages carry */
#define NAME_MAX_RAW 16

/* The first byte of a body, which an XSUB asks for; none that begins a
 * subscription. */
static const char topic = 'x';

struct raw {
    unsigned n;
    int leads;
    void *zctx;
    void *router;                /* the leader's, else DEALER */
    void *pull;                  /* the leader's, else PUSH */
    void *pub;                   /* the leader's XPUB, else XSUB */
    char (*names)[NAME_MAX_RAW]; /* own; of the members, as ROUTER says */
    size_t *name_sizes;          /* own */
};

static void must(int result, const char *what)
{
    if (result >= 0)
        return;
    (void)ls_error(LS_EIO, "%s", zmq_strerror(zmq_errno()));
    bench_fail(what);
}

static void *make_socket(struct raw *raw, int type)
{
    const int zero = 0;
    void *socket = zmq_socket(raw->zctx, type);
    if (socket == NULL)
        must(-1, "socket");
    must(zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero), "linger");
    return socket;
}

static struct raw *create(unsigned n, int leads)
{
    struct raw *raw = calloc(1, sizeof *raw);
    if (raw == NULL)
        bench_fail("memory");
    raw->n = n;
    raw->leads = leads;
    raw->zctx = zmq_ctx_new();
    raw->router = make_socket(raw, leads ? ZMQ_ROUTER : ZMQ_DEALER);
    raw->pull = make_socket(raw, leads ? ZMQ_PULL : ZMQ_PUSH);
    raw->pub = make_socket(raw, leads ? ZMQ_XPUB : ZMQ_XSUB);
    /* Or it says nothing of the second who wants the same. */
    const int one = 1;
    if (leads)
        must(zmq_setsockopt(raw->pub, ZMQ_XPUB_VERBOSE, &one, sizeof one),
             "verbose");
    raw->names = calloc(n, sizeof *raw->names);
    raw->name_sizes = calloc(n, sizeof *raw->name_sizes);
    if (raw->names == NULL || raw->name_sizes == NULL)
        bench_fail("memory");
    return raw;
}

static void bind_socket(void *socket, const char *bind, unsigned number,
                        char *endpoint)
{
    char address[128];
    size_t size = 128;
    if (strncmp(bind, "ipc:", 4) == 0)
        (void)snprintf(address, sizeof address, "%s-%u", bind, number);
    else
        (void)snprintf(address, sizeof address, "%s", bind);
    must(zmq_bind(socket, address), "bind");
    must(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size), "name");
}

struct raw *raw_lead(unsigned n, const char *bind, char (*endpoints)[128])
{
    struct raw *raw = create(n, 1);
    bind_socket(raw->router, bind, 0, endpoints[0]);
    bind_socket(raw->pull, bind, 1, endpoints[1]);
    bind_socket(raw->pub, bind, 2, endpoints[2]);
    return raw;
}

struct raw *raw_join(unsigned n, char (*endpoints)[128])
{
    struct raw *raw = create(n, 0);
    const char subscribe[] = {1, topic};
    must(zmq_send(raw->pub, subscribe, sizeof subscribe, 0), "subscribe");
    must(zmq_connect(raw->router, endpoints[0]), "connect");
    must(zmq_connect(raw->pull, endpoints[1]), "connect");
    must(zmq_connect(raw->pub, endpoints[2]), "connect");
    return raw;
}

static void receive(void *socket)
{
    char body[BODY_BYTES];
    must(zmq_recv(socket, body, sizeof body, 0), "recv");
}

static void send_body(void *socket)
{
    const char body[BODY_BYTES] = {topic};
    must(zmq_send(socket, body, sizeof body, 0), "send");
}

/* Hear from all members. */
static void gather(struct raw *raw, enum raw_kind kind)
{
    for (unsigned i = 0; i + 1 < raw->n; i++) {
        if (kind == RAW_ROUTER) {
            const int size =
                zmq_recv(raw->router, raw->names[i], NAME_MAX_RAW, 0);
            must(size, "recv");
            raw->name_sizes[i] = (size_t)size;
            receive(raw->router);
        } else {
            receive(kind == RAW_PUB ? raw->pull : raw->pub);
        }
    }
}

/* Tell all members. */
static void spread(struct raw *raw, enum raw_kind kind)
{
    if (kind != RAW_ROUTER) {
        send_body(raw->pub);
        return;
    }
    for (unsigned i = 0; i + 1 < raw->n; i++) {
        must(zmq_send(raw->router, raw->names[i], raw->name_sizes[i],
                      ZMQ_SNDMORE),
             "send");
        send_body(raw->router);
    }
}

static void lead_round(struct raw *raw, enum raw_kind kind)
{
    gather(raw, kind);
    spread(raw, kind);
}

static void follow_round(struct raw *raw, enum raw_kind kind)
{
    void *const up[] = {
        [RAW_ROUTER] = raw->router, [RAW_PUB] = raw->pull, [RAW_UP] = raw->pub};
    send_body(up[kind]);
    receive(kind == RAW_ROUTER ? raw->router : raw->pub);
}

/* PUB drops what nobody has subscribed to yet. */
void raw_meet(struct raw *raw)
{
    for (unsigned i = 0; raw->leads && i + 1 < raw->n; i++)
        receive(raw->pub);
}

void raw_wait(struct raw *raw, enum raw_kind kind)
{
    for (int round = 0; round < 2; round++)
        if (raw->leads)
            lead_round(raw, kind);
        else
            follow_round(raw, kind);
}

void raw_close(struct raw *raw)
{
    (void)zmq_close(raw->router);
    (void)zmq_close(raw->pull);
    (void)zmq_close(raw->pub);
    (void)zmq_ctx_term(raw->zctx);
    free(raw->names);
    free(raw->name_sizes);
    free(raw);
}
