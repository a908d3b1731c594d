/* Raw libzmq's ends: XPUB to SUB, the payload in one frame, without limits on
 * what is queued. A round trip has one of each at both ends; with a handler
 * thread, one thread receives and another sends, as a node does. */
#include "emit_end.h"

#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "lockstep/queue.h"
#include "process.h"

struct end {
    struct emit_job job;
    unsigned id;
    void *pub, *sub;
    char *payload;
    ls_queue *queue; /* from the receiving to the handling thread */
    char peer[EMIT_ENDPOINT_MAX];
};

/* Of this process: inproc works within one. */
static void *zctx;
static unsigned n_ends;

static void must(int result, const char *what)
{
    if (result < 0) {
        (void)ls_error(LS_EIO, "%s", zmq_strerror(zmq_errno()));
        bench_fail(what);
    }
}

static void set(void *socket, int option, int value)
{
    must(zmq_setsockopt(socket, option, &value, sizeof value), "setsockopt");
}

static void *make_socket(int type)
{
    void *socket = zmq_socket(zctx, type);
    if (socket == NULL)
        must(-1, "socket");
    set(socket, ZMQ_SNDHWM, 0);
    set(socket, ZMQ_RCVHWM, 0);
    set(socket, ZMQ_LINGER, 0);
    set(socket, ZMQ_RCVTIMEO, EMIT_PATIENCE_MS);
    return socket;
}

static void connect_to(struct end *end, const char *peer)
{
    end->sub = make_socket(ZMQ_SUB);
    must(zmq_setsockopt(end->sub, ZMQ_SUBSCRIBE, "", 0), "subscribe");
    must(zmq_connect(end->sub, peer), "connect");
}

static void *raw_open(const struct emit_job *job, unsigned id, const char *bind,
                      const char *peer, char *endpoint)
{
    struct end *end = calloc(1, sizeof *end);
    size_t size = EMIT_ENDPOINT_MAX;
    if (end == NULL || (end->payload = calloc(1, job->size)) == NULL)
        bench_fail("no memory");
    if (n_ends++ == 0)
        zctx = zmq_ctx_new();
    end->job = *job;
    end->id = id;
    end->pub = make_socket(ZMQ_XPUB);
    set(end->pub, ZMQ_XPUB_VERBOSE, 1);
    must(zmq_bind(end->pub,
                  strcmp(bind, "tcp") == 0 ? "tcp://127.0.0.1:*" : bind),
         "bind");
    must(zmq_getsockopt(end->pub, ZMQ_LAST_ENDPOINT, endpoint, &size),
         "endpoint");
    if (peer != NULL)
        connect_to(end, peer);
    return end;
}

/* Wait until everyone who is to hear has subscribed. */
static void wait_heard(struct end *end)
{
    char subscription[16];
    for (unsigned i = 0; i < end->job.n_receivers; i++)
        must(zmq_recv(end->pub, subscription, sizeof subscription, 0),
             "nobody subscribed");
}

static void keep(void *data, void *hint)
{
    (void)data;
    (void)hint;
}

static void send_one(struct end *end)
{
    zmq_msg_t message;
    if (end->job.size < EMIT_ZERO_COPY) {
        must(zmq_send(end->pub, end->payload, end->job.size, 0), "send");
        return;
    }
    must(zmq_msg_init_data(&message, end->payload, end->job.size, keep, NULL),
         "message");
    must(zmq_msg_send(&message, end->pub, 0), "send");
}

static void receive_one(struct end *end, zmq_msg_t *message)
{
    must(zmq_msg_recv(message, end->sub, 0), "not all messages came in time");
}

static struct emit_span receive_all(struct end *end)
{
    struct emit_span span = {0};
    zmq_msg_t message;
    zmq_msg_init(&message);
    for (long i = 0; i < end->job.n; i++) {
        receive_one(end, &message);
        if (i == 0)
            span.from = bench_now();
    }
    span.to = bench_now();
    zmq_msg_close(&message);
    return span;
}

/* ---- round trips ------------------------------------------------------- */

static struct emit_span trips(struct end *end)
{
    zmq_msg_t message;
    zmq_msg_init(&message);
    const int64_t from = bench_now();
    for (long i = 0; i < end->job.n; i++) {
        if (end->id == 0)
            send_one(end);
        receive_one(end, &message);
        if (end->id != 0)
            send_one(end);
    }
    zmq_msg_close(&message);
    return (struct emit_span){end->id == 0 ? from : 0,
                              end->id == 0 ? bench_now() : 0};
}

static void reader_main(void *self)
{
    struct end *end = self;
    for (long i = 0; i < end->job.n; i++) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        receive_one(end, &message);
        if (ls_queue_put(end->queue, &message, LS_FOREVER) != LS_OK)
            bench_fail("put");
    }
}

static struct emit_span trips_by_handler(struct end *end)
{
    zmq_msg_t message;
    if (ls_queue_create(&end->queue, ls_runtime_threads(),
                        &(struct ls_queue_options){
                            .capacity = 16, .item_size = sizeof message}) !=
        LS_OK)
        bench_fail("queue");
    ls_thread *reader = bench_thread(reader_main, end);
    const int64_t from = bench_now();
    for (long i = 0; i < end->job.n; i++) {
        if (end->id == 0)
            send_one(end);
        if (ls_queue_get(end->queue, &message, LS_FOREVER) != LS_OK)
            bench_fail("get");
        zmq_msg_close(&message);
        if (end->id != 0)
            send_one(end);
    }
    const int64_t to = bench_now();
    bench_thread_join(reader);
    ls_queue_destroy(&end->queue);
    return (struct emit_span){end->id == 0 ? from : 0, end->id == 0 ? to : 0};
}

static struct emit_span raw_run(void *self, const char *peer)
{
    struct end *end = self;
    if (end->id == 0 && end->job.trip)
        connect_to(end, peer);
    if (end->id == 0 || end->job.trip)
        wait_heard(end);
    if (end->job.trip)
        return end->job.way == EMIT_RAW ? trips(end) : trips_by_handler(end);
    if (end->id != 0)
        return receive_all(end);
    for (long i = 0; i < end->job.n; i++)
        send_one(end);
    return (struct emit_span){0};
}

static void raw_close(void *self)
{
    struct end *end = self;
    zmq_close(end->pub);
    if (end->sub != NULL)
        zmq_close(end->sub);
    if (--n_ends == 0)
        zmq_ctx_term(zctx);
    free(end->payload);
    free(end);
}

const struct emit_ops emit_raw = {raw_open, raw_run, raw_close};
