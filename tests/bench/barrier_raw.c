#include "barrier_raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <zmq.h>

#include "lockstep/status.h"
#include "process.h"

#define BODY_BYTES   48 /* about what the barrier's messages carry */
#define NAME_MAX_RAW 16
#define READY_MAX    16
#define ADDRESS_MAX  128

/* What a SUB asks for: the first byte of a body. */
static const char one_by_one = 'o', in_mesh = 'm';

struct raw {
    unsigned n;
    int leads;
    void *zctx;
    void *router;           /* the leader's, else DEALER */
    void *pull;             /* the leader's, else PUSH */
    void *pub;              /* the leader's, else SUB */
    void *own;              /* a member's XPUB in the mesh */
    void *heard[READY_MAX]; /* SUB: the leader's for each member, or one */
    unsigned n_heard;
    int epoll;                   /* of those */
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
    raw->pub = make_socket(raw, leads ? ZMQ_XPUB : ZMQ_SUB);
    /* Or it says nothing of the second who wants the same. */
    const int one = 1;
    if (leads)
        must(zmq_setsockopt(raw->pub, ZMQ_XPUB_VERBOSE, &one, sizeof one),
             "verbose");
    must(raw->epoll = epoll_create1(0), "epoll");
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

/* A SUB of the mesh. */
static void hear(struct raw *raw, const char *endpoint)
{
    void *socket = make_socket(raw, ZMQ_SUB);
    must(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, &in_mesh, 1), "subscribe");
    must(zmq_connect(socket, endpoint), "connect");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = socket};
    int fd;
    size_t size = sizeof fd;
    must(zmq_getsockopt(socket, ZMQ_FD, &fd, &size), "fd");
    must(epoll_ctl(raw->epoll, EPOLL_CTL_ADD, fd, &event), "epoll");
    raw->heard[raw->n_heard++] = socket;
}

struct raw *raw_join(unsigned n, char (*endpoints)[128])
{
    struct raw *raw = create(n, 0);
    const int ipc = strncmp(endpoints[2], "ipc:", 4) == 0;
    char endpoint[ADDRESS_MAX];
    must(zmq_setsockopt(raw->pub, ZMQ_SUBSCRIBE, &one_by_one, 1), "subscribe");
    must(zmq_connect(raw->router, endpoints[0]), "connect");
    must(zmq_connect(raw->pull, endpoints[1]), "connect");
    must(zmq_connect(raw->pub, endpoints[2]), "connect");
    hear(raw, endpoints[2]);
    raw->own = make_socket(raw, ZMQ_XPUB);
    bind_socket(raw->own, ipc ? endpoints[2] : "tcp://127.0.0.1:*",
                (unsigned)getpid(), endpoint);
    must(zmq_send(raw->pull, endpoint, sizeof endpoint, 0), "send");
    return raw;
}

/* Returns whether there was something. */
static int try_receive(void *socket)
{
    char body[BODY_BYTES];
    const int size = zmq_recv(socket, body, sizeof body, ZMQ_DONTWAIT);
    if (size < 0 && zmq_errno() != EAGAIN)
        must(size, "recv");
    return size >= 0;
}

/* Until so many have come, of any socket of the mesh. */
static void receive_any(struct raw *raw, unsigned n)
{
    struct epoll_event ready[READY_MAX];
    while (n > 0) {
        const int n_ready = epoll_wait(raw->epoll, ready, READY_MAX, -1);
        for (int i = 0; i < n_ready; i++)
            while (try_receive(ready[i].data.ptr))
                n--;
    }
}

static void receive(void *socket)
{
    char body[BODY_BYTES];
    must(zmq_recv(socket, body, sizeof body, 0), "recv");
}

static void send_body(void *socket, char topic)
{
    const char body[BODY_BYTES] = {topic};
    must(zmq_send(socket, body, sizeof body, 0), "send");
}

/* Hear from all members. */
static void gather(struct raw *raw, enum raw_kind kind)
{
    if (kind == RAW_MESH) {
        receive_any(raw, raw->n - 1);
        return;
    }
    for (unsigned i = 0; i + 1 < raw->n; i++) {
        if (kind == RAW_ROUTER) {
            const int size =
                zmq_recv(raw->router, raw->names[i], NAME_MAX_RAW, 0);
            must(size, "recv");
            raw->name_sizes[i] = (size_t)size;
            receive(raw->router);
        } else {
            receive(raw->pull);
        }
    }
}

/* Tell all members. */
static void spread(struct raw *raw, enum raw_kind kind)
{
    if (kind != RAW_ROUTER) {
        send_body(raw->pub, kind == RAW_MESH ? in_mesh : one_by_one);
        return;
    }
    for (unsigned i = 0; i + 1 < raw->n; i++) {
        must(zmq_send(raw->router, raw->names[i], raw->name_sizes[i],
                      ZMQ_SNDMORE),
             "send");
        send_body(raw->router, one_by_one);
    }
}

static void lead_round(struct raw *raw, enum raw_kind kind)
{
    gather(raw, kind);
    spread(raw, kind);
}

static void follow_round(struct raw *raw, enum raw_kind kind)
{
    if (kind == RAW_MESH) {
        send_body(raw->own, in_mesh);
        receive_any(raw, 1);
    } else {
        send_body(kind == RAW_ROUTER ? raw->router : raw->pull, one_by_one);
        receive(kind == RAW_ROUTER ? raw->router : raw->pub);
    }
}

void raw_meet(struct raw *raw)
{
    char endpoint[ADDRESS_MAX];
    if (!raw->leads) {
        receive(raw->own); /* somebody listens: PUB drops what nobody hears */
        return;
    }
    for (unsigned i = 0; i + 1 < raw->n; i++) {
        must(zmq_recv(raw->pull, endpoint, sizeof endpoint, 0), "recv");
        hear(raw, endpoint);
    }
    for (unsigned i = 0; i < 2 * (raw->n - 1); i++)
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
    for (unsigned i = 0; i < raw->n_heard; i++)
        (void)zmq_close(raw->heard[i]);
    if (raw->own != NULL)
        (void)zmq_close(raw->own);
    (void)close(raw->epoll);
    (void)zmq_close(raw->router);
    (void)zmq_close(raw->pull);
    (void)zmq_close(raw->pub);
    (void)zmq_ctx_term(raw->zctx);
    free(raw->names);
    free(raw->name_sizes);
    free(raw);
}
