/* bench_call - calls between two nodes, against raw libzmq's DEALER and ROUTER.
 *
 *   bench_call [--json] [--rounds N]
 *
 * Round trips of 32 bytes, one after the other: ls_call_ask() from the main
 * thread, a handler on the dispatch thread of the other node, through shared
 * memory, and over the connection (`shared_bytes` 0); raw: a DEALER and
 * a ROUTER, each read by the thread that answers. Each measurement has
 * processes of its own (inproc: one), and they take turns. Of each the median,
 * and the time that one in a hundred takes longer than. Then 10,000 calls at
 * the same time, again and again: what the process needs afterwards. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "bench.h"
#include "lockstep/call.h"
#include "process.h"

#define TRIPS       2000
#define WARM_UP     200
#define DATA        32
#define PATIENCE_MS 20000
#define IN_FLIGHT   10000
#define ENDPOINT    256

/* ---- trips ------------------------------------------------------------- */

typedef void trip_fn(void *self);

static int earlier(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Make them all, and tell two of their times. */
static void measure(trip_fn *trip, void *self)
{
    static int64_t took[TRIPS];
    char line[PROCESS_LINE_MAX];
    for (int i = 0; i < WARM_UP; i++)
        trip(self);
    for (int i = 0; i < TRIPS; i++) {
        const int64_t from = bench_now();
        trip(self);
        took[i] = bench_now() - from;
    }
    qsort(took, TRIPS, sizeof *took, earlier);
    (void)snprintf(line, sizeof line, "%" PRId64 " %" PRId64, took[TRIPS / 2],
                   took[TRIPS / 100 * 99]);
    parent_tell(line);
}

static void await_end(void)
{
    char line[PROCESS_LINE_MAX];
    while (parent_hear(line))
        ; /* its end says that all are done */
}

/* ---- Lockstep's -------------------------------------------------------- */

struct bus_end {
    ls_node *node;
    ls_rpc *calls;
};

static int serve_echo(void *self, ls_request *request)
{
    size_t size;
    const void *data = ls_request_data(request, &size);
    (void)self;
    return ls_request_complete(&request, data, size);
}

static void bus_open(struct bus_end *end, uint32_t id, const char *bind,
                     const char *peer, bool shares)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.job = bench_job();
    options.id = id;
    options.world_size = 2;
    options.bind = strcmp(bind, "tcp") == 0 ? NULL : bind;
    options.attach = &peer;
    options.n_attach = peer != NULL;
    options.shared_bytes = shares ? options.shared_bytes : 0;
    const struct ls_rpc_options many = {.max_calls = IN_FLIGHT,
                                        .max_requests = IN_FLIGHT};
    if (ls_node_create(&end->node, &options) != LS_OK ||
        ls_rpc_open(&end->calls, end->node, &many) != LS_OK ||
        ls_rpc_serve(end->calls, "echo", LS_CALL_ANYONE, serve_echo, NULL) !=
            LS_OK ||
        ls_node_open(end->node) != LS_OK)
        bench_fail("node");
}

static void bus_join(struct bus_end *end)
{
    if (ls_node_join(end->node) != LS_OK)
        bench_fail("join");
}

static void bus_close(struct bus_end *end)
{
    ls_rpc_close(&end->calls);
    ls_node_destroy(&end->node);
}

static void bus_trip(void *self)
{
    static const char data[DATA];
    struct bus_end *end = self;
    void *answer;
    size_t size;
    if (ls_call_ask(end->calls,
                    &(struct ls_call_options){.to = 0,
                                              .name = "echo",
                                              .data = data,
                                              .size = DATA,
                                              .timeout_ms = PATIENCE_MS},
                    &answer, &size) != LS_OK)
        bench_fail("call");
    free(answer);
}

static void bus_join_main(void *self)
{
    bus_join(self);
}

static void bus_in_one(bool shares)
{
    struct bus_end ends[2];
    bus_open(&ends[0], 0, "inproc://server", NULL, shares);
    bus_open(&ends[1], 1, "inproc://client", "inproc://server", shares);
    ls_thread *thread = bench_thread(bus_join_main, &ends[0]);
    bus_join(&ends[1]);
    bench_thread_join(thread);
    measure(bus_trip, &ends[1]);
    bus_close(&ends[1]);
    bus_close(&ends[0]);
}

static void bus_main(uint32_t id, const char *bind, const char *peer,
                     bool shares)
{
    struct bus_end end;
    bus_open(&end, id, bind, id == 0 ? NULL : peer, shares);
    if (id == 0)
        parent_tell(ls_node_endpoint(end.node));
    bus_join(&end);
    if (id == 1)
        measure(bus_trip, &end);
    await_end();
    bus_close(&end);
}

/* ---- raw libzmq's ------------------------------------------------------ */

static void must(int result, const char *what)
{
    if (result < 0) {
        (void)ls_error(LS_EIO, "%s", zmq_strerror(zmq_errno()));
        bench_fail(what);
    }
}

static void *raw_socket(void *zctx, int type)
{
    const int no_linger = 0, patience = PATIENCE_MS;
    void *socket = zmq_socket(zctx, type);
    if (socket == NULL)
        must(-1, "socket");
    must(zmq_setsockopt(socket, ZMQ_LINGER, &no_linger, sizeof no_linger),
         "linger");
    must(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience, sizeof patience),
         "timeout");
    return socket;
}

/* Answer with what was asked, the sender's identity in front. */
static void raw_serve(void *self)
{
    for (int i = 0; i < WARM_UP + TRIPS; i++) {
        char identity[ENDPOINT], data[DATA];
        const int n = zmq_recv(self, identity, sizeof identity, 0);
        must(n, "request");
        must(zmq_recv(self, data, sizeof data, 0), "request");
        must(zmq_send(self, identity, (size_t)n, ZMQ_SNDMORE), "reply");
        must(zmq_send(self, data, sizeof data, 0), "reply");
    }
}

static void raw_trip(void *self)
{
    char data[DATA] = {0};
    must(zmq_send(self, data, sizeof data, 0), "send");
    must(zmq_recv(self, data, sizeof data, 0), "receive");
}

static void *raw_bound(void *zctx, const char *bind, char endpoint[ENDPOINT])
{
    size_t size = ENDPOINT;
    void *router = raw_socket(zctx, ZMQ_ROUTER);
    must(
        zmq_bind(router, strcmp(bind, "tcp") == 0 ? "tcp://127.0.0.1:*" : bind),
        "bind");
    must(zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, endpoint, &size), "where");
    return router;
}

static void raw_in_one(void *zctx)
{
    char endpoint[ENDPOINT];
    void *router = raw_bound(zctx, "inproc://server", endpoint);
    void *dealer = raw_socket(zctx, ZMQ_DEALER);
    must(zmq_connect(dealer, endpoint), "connect");
    ls_thread *thread = bench_thread(raw_serve, router);
    measure(raw_trip, dealer);
    bench_thread_join(thread);
    zmq_close(dealer);
    zmq_close(router);
}

static void raw_main(void *zctx, uint32_t id, const char *bind,
                     const char *peer)
{
    char endpoint[ENDPOINT];
    void *socket;
    if (id == 0) {
        socket = raw_bound(zctx, bind, endpoint);
        parent_tell(endpoint);
        raw_serve(socket);
    } else {
        socket = raw_socket(zctx, ZMQ_DEALER);
        must(zmq_connect(socket, peer), "connect");
        measure(raw_trip, socket);
    }
    await_end();
    zmq_close(socket);
}

/* ---- many at the same time --------------------------------------------- */

static long resident_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return kib;
}

static ls_request *held[IN_FLIGHT];
static size_t n_held;

/* Keeps all until the last of them is there. */
static int serve_held(void *self, ls_request *request)
{
    (void)self;
    held[n_held++] = request;
    if (n_held < IN_FLIGHT)
        return LS_OK;
    for (size_t i = 0; i < n_held; i++)
        if (ls_request_complete(&held[i], NULL, 0) != LS_OK)
            bench_fail("answer");
    n_held = 0;
    return LS_OK;
}

static void flight_round(struct bus_end *end)
{
    static ls_call *calls[IN_FLIGHT];
    static const char data[DATA];
    const struct ls_call_options options = {.to = 0,
                                            .name = "hold",
                                            .data = data,
                                            .size = DATA,
                                            .timeout_ms = PATIENCE_MS};
    for (size_t i = 0; i < IN_FLIGHT; i++)
        if (ls_call_start(&calls[i], end->calls, &options) != LS_OK)
            bench_fail("start");
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        if (ls_call_wait(calls[i], LS_WAIT_DEFAULT) != LS_OK ||
            ls_call_result(calls[i])->state != LS_CALL_COMPLETED)
            bench_fail(ls_call_result(calls[i])->text);
        ls_call_destroy(&calls[i]);
    }
}

/* Both nodes are in this process: resident KiB before, and after each round. */
static void flight_main(int n_rounds)
{
    struct bus_end ends[2];
    char line[PROCESS_LINE_MAX];
    bus_open(&ends[0], 0, "inproc://server", NULL, true);
    bus_open(&ends[1], 1, "inproc://client", "inproc://server", true);
    if (ls_rpc_serve(ends[0].calls, "hold", LS_CALL_ANYONE, serve_held, NULL) !=
        LS_OK)
        bench_fail("serve");
    ls_thread *thread = bench_thread(bus_join_main, &ends[0]);
    bus_join(&ends[1]);
    bench_thread_join(thread);
    for (int i = 0; i <= n_rounds; i++) {
        const int64_t from = bench_now();
        if (i != 0)
            flight_round(&ends[1]);
        (void)snprintf(line, sizeof line, "%ld %" PRId64, resident_kib(),
                       bench_now() - from);
        parent_tell(line);
    }
    await_end();
    bus_close(&ends[1]);
    bus_close(&ends[0]);
}

/* ---- the program ------------------------------------------------------- */

struct way {
    const char *transport;
    const char *by;  /* "raw", "bus", "far": over the connection */
    double p50, p99; /* us, of the last round */
};

static void read_times(struct process *process, struct way *way)
{
    char line[PROCESS_LINE_MAX], *rest;
    process_hear(process, line);
    way->p50 = (double)strtoll(line, &rest, 10) / 1e3;
    way->p99 = (double)strtoll(rest, NULL, 10) / 1e3;
}

static void start_end(struct process *process, const struct way *way, int id,
                      const char *peer)
{
    char bind[ENDPOINT] = "tcp";
    if (strcmp(way->transport, "ipc") == 0)
        (void)snprintf(bind, sizeof bind, "ipc://%s/%d", bench_folder(), id);
    const char *const arguments[] = {
        "--end", way->transport, way->by, id == 0 ? "0" : "1",
        bind,    peer,           NULL};
    process_start(process, arguments);
}

static double run_way(void *self)
{
    struct way *way = self;
    struct process ends[2];
    char endpoint[PROCESS_LINE_MAX];
    const bool alone = strcmp(way->transport, "inproc") == 0;
    start_end(&ends[0], way, 0, "");
    if (alone) {
        read_times(&ends[0], way);
    } else {
        process_hear(&ends[0], endpoint);
        start_end(&ends[1], way, 1, endpoint);
        read_times(&ends[1], way);
        process_end(&ends[1]);
    }
    process_end(&ends[0]);
    return way->p50;
}

static double same_run(void *self)
{
    const struct way *way = self;
    return way->p99;
}

static void compare(const char *transport, const struct bench_options *options)
{
    struct way ways[] = {{.transport = transport, .by = "raw"},
                         {.transport = transport, .by = "bus"},
                         {.transport = transport, .by = "far"}};
    char title[64];
    struct bench_figure figures[] = {
        {.name = "raw, p50", .unit = "us", .run = run_way, .self = &ways[0]},
        {.name = "raw, p99", .unit = "us", .run = same_run, .self = &ways[0]},
        {.name = "call, p50", .unit = "us", .run = run_way, .self = &ways[1]},
        {.name = "call, p99", .unit = "us", .run = same_run, .self = &ways[1]},
        {.name = "shared_bytes 0, p50",
         .unit = "us",
         .run = run_way,
         .self = &ways[2]},
        {.name = "shared_bytes 0, p99",
         .unit = "us",
         .run = same_run,
         .self = &ways[2]},
    };
    (void)snprintf(title, sizeof title, "call: %s, 32 B", transport);
    const size_t n = sizeof figures / sizeof *figures;
    bench_run(figures, n, options);
    bench_print(title, figures, n, options);
    bench_print_derived(title, "call / raw, p50 (target <= 1.4)", "x",
                        figures[2].median / figures[0].median, options);
    bench_print_derived(title, "call / raw, p99", "x",
                        figures[3].median / figures[1].median, options);
    bench_print_derived(title, "shared_bytes 0 / raw, p50", "x",
                        figures[4].median / figures[0].median, options);
}

static void fly(const struct bench_options *options)
{
    struct process process;
    char n[24], line[PROCESS_LINE_MAX], *rest;
    double kib[3] = {0}, ns = 0;
    const int half = 2 * options->n_rounds;
    (void)snprintf(n, sizeof n, "%d", 2 * half);
    const char *const arguments[] = {"--flight", n, NULL};
    process_start(&process, arguments);
    for (int i = 0; i <= 2 * half; i++) {
        process_hear(&process, line);
        kib[i == 0 ? 0 : i <= half ? 1 : 2] = (double)strtol(line, &rest, 10);
        ns = (double)strtoll(rest, NULL, 10);
    }
    process_end(&process);
    const char *bench = "call: 10,000 in flight";
    bench_print_derived(bench, "10,000 in flight: resident before", "KiB",
                        kib[0], options);
    bench_print_derived(bench, "after half of the rounds", "KiB", kib[1],
                        options);
    bench_print_derived(bench, "after all of them", "KiB", kib[2], options);
    bench_print_derived(bench, "one of them, in the last round", "us",
                        ns / 1e3 / IN_FLIGHT, options);
}

/* --end TRANSPORT WAY ID BIND PEER */
static void hidden_main(char **argv)
{
    const bool raw = strcmp(argv[3], "raw") == 0;
    const bool shares = strcmp(argv[3], "far") != 0;
    const bool alone = strcmp(argv[2], "inproc") == 0;
    const uint32_t id = argv[4][0] == '0' ? 0 : 1;
    void *zctx = raw ? zmq_ctx_new() : NULL;
    if (alone && raw)
        raw_in_one(zctx);
    else if (alone)
        bus_in_one(shares);
    else if (raw)
        raw_main(zctx, id, argv[5], argv[6]);
    else
        bus_main(id, argv[5], argv[6], shares);
    if (alone)
        await_end();
    if (raw)
        zmq_ctx_term(zctx);
}

int main(int argc, char **argv)
{
    static const char *const transports[] = {"tcp", "ipc", "inproc"};
    struct bench_options options;
    if (argc == 7 && strcmp(argv[1], "--end") == 0) {
        hidden_main(argv);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--flight") == 0) {
        flight_main((int)strtol(argv[2], NULL, 10));
        return 0;
    }
    bench_options_read(&options, argc, argv);
    process_init();
    for (size_t i = 0; i < 3; i++)
        compare(transports[i], &options);
    fly(&options);
    return 0;
}
