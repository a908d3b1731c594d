/* bench_world - how fast members find and miss each other, and what one costs
 * that does nothing.
 *
 * formed: from before the first of 8 processes is started until the last of
 *         them knows all; they are given the address of one. Beside it, how
 *         long 8 take that only say a word.
 * death:  one of 5 processes is killed (-9): until the last of the others is
 *         told.
 * memory: resident, of a node, 50 of which are a star over inproc in one
 *         process. Beside it, of the sockets alone that this takes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "bench.h"
#include "lockstep/log.h"
#include "lockstep/node.h"
#include "process.h"

#define N_FORMED    8
#define N_DEATH     5
#define N_NODES     50
#define PATIENCE_MS 20000

/* Something that one thread waits for and another brings about. */
struct gate {
    ls_mutex lock;
    ls_cond opened;
    int64_t at; /* when; 0: not yet */
};

static struct gate gate;

static void gate_init(void)
{
    if (ls_mutex_init(&gate.lock, ls_runtime_threads()) != LS_OK ||
        ls_cond_init(&gate.opened, ls_runtime_threads()) != LS_OK)
        bench_fail("gate");
}

static void gate_open(void)
{
    ls_mutex_lock(&gate.lock);
    if (gate.at == 0)
        gate.at = bench_now();
    ls_cond_signal(&gate.opened);
    ls_mutex_unlock(&gate.lock);
}

static int64_t gate_wait(void)
{
    const int64_t deadline = ls_deadline(ls_runtime_threads(), PATIENCE_MS);
    ls_mutex_lock(&gate.lock);
    while (gate.at == 0)
        if (ls_cond_wait(&gate.opened, &gate.lock, deadline) != LS_OK)
            bench_fail("it did not happen in time");
    const int64_t at = gate.at;
    ls_mutex_unlock(&gate.lock);
    return at;
}

static void tell_number(int64_t number)
{
    char line[PROCESS_LINE_MAX];
    (void)snprintf(line, sizeof line, "%" PRId64, number);
    parent_tell(line);
}

static int64_t hear_number(struct process *process)
{
    char line[PROCESS_LINE_MAX];
    process_hear(process, line);
    return strtoll(line, NULL, 10);
}

static void wait_end(void)
{
    char line[PROCESS_LINE_MAX];
    while (parent_hear(line))
        ;
}

/* ---- a member ---------------------------------------------------------- */

static void on_member(void *self, const struct ls_member *member)
{
    (void)self;
    if (member->state == LS_MEMBER_LOST)
        gate_open();
}

/* --member ID SIZE SEED: says its endpoint, when the world is formed, and when
 * a member was lost. */
static void member_main(char **argv)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    const char *seed = argv[4];
    ls_node *node;
    options.job = bench_job();
    options.id = (uint32_t)strtoul(argv[2], NULL, 10);
    options.world_size = (uint32_t)strtoul(argv[3], NULL, 10);
    options.attach = &seed;
    options.n_attach = *seed != '\0';
    gate_init();
    if (ls_node_create(&node, &options) != LS_OK ||
        ls_node_on_member(node, on_member, NULL) != LS_OK ||
        ls_node_open(node) != LS_OK)
        bench_fail("member");
    parent_tell(ls_node_endpoint(node));
    if (ls_node_join(node) != LS_OK)
        bench_fail("join");
    tell_number(bench_now());
    if (options.world_size == N_DEATH)
        tell_number(gate_wait());
    wait_end();
    ls_node_destroy(&node);
}

static void start_member(struct process *process, unsigned id, unsigned size,
                         const char *seed)
{
    char texts[2][16];
    (void)snprintf(texts[0], sizeof texts[0], "%u", id);
    (void)snprintf(texts[1], sizeof texts[1], "%u", size);
    const char *const arguments[] = {"--member", texts[0], texts[1], seed,
                                     NULL};
    process_start(process, arguments);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns when the last of them knew all. */
static int64_t form(struct process *members, unsigned n)
{
    char seed[PROCESS_LINE_MAX], line[PROCESS_LINE_MAX];
    int64_t formed = 0;
    start_member(&members[0], 0, n, "");
    process_hear(&members[0], seed);
    for (unsigned i = 1; i < n; i++)
        start_member(&members[i], i, n, seed);
    for (unsigned i = 1; i < n; i++)
        process_hear(&members[i], line);
    for (unsigned i = 0; i < n; i++)
        formed = later(formed, hear_number(&members[i]));
    return formed;
}

static double formed_ms(void *self)
{
    struct process members[N_FORMED];
    (void)self;
    const int64_t from = bench_now();
    const int64_t to = form(members, N_FORMED);
    for (unsigned i = 0; i < N_FORMED; i++)
        process_end(&members[i]);
    return (double)(to - from) / 1e6;
}

static double started_ms(void *self)
{
    struct process members[N_FORMED];
    int64_t to = 0;
    (void)self;
    const int64_t from = bench_now();
    for (unsigned i = 0; i < N_FORMED; i++) {
        const char *const arguments[] = {"--word", NULL};
        process_start(&members[i], arguments);
    }
    for (unsigned i = 0; i < N_FORMED; i++)
        to = later(to, hear_number(&members[i]));
    for (unsigned i = 0; i < N_FORMED; i++)
        process_end(&members[i]);
    return (double)(to - from) / 1e6;
}

static double death_ms(void *self)
{
    struct process members[N_DEATH];
    int64_t to = 0;
    (void)self;
    (void)form(members, N_DEATH);
    const int64_t from = bench_now();
    process_kill(&members[N_DEATH - 1]);
    for (unsigned i = 0; i < N_DEATH - 1; i++)
        to = later(to, hear_number(&members[i]));
    for (unsigned i = 0; i < N_DEATH - 1; i++)
        process_end(&members[i]);
    return (double)(to - from) / 1e6;
}

/* ---- memory ------------------------------------------------------------ */

static long resident_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    char line[PROCESS_LINE_MAX];
    if (file == NULL || fgets(line, sizeof line, file) == NULL)
        bench_fail("/proc/self/statm");
    (void)fclose(file);
    char *rest;
    (void)strtol(line, &rest, 10); /* of the address space */
    const long resident = strtol(rest, NULL, 10);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Who has seen whom; under the gate's lock. */
static bool seen[N_NODES][N_NODES];
static int n_seen;

static void on_ready(void *self, const struct ls_member *member)
{
    bool *row = self;
    if (member->state != LS_MEMBER_READY)
        return;
    ls_mutex_lock(&gate.lock);
    n_seen += !row[member->id];
    row[member->id] = true;
    const bool all = n_seen == N_NODES * (N_NODES - 1);
    ls_mutex_unlock(&gate.lock);
    if (all)
        gate_open();
}

/* --nodes: a star; says what a node takes. */
static void nodes_main(void)
{
    ls_node *nodes[N_NODES];
    gate_init();
    const long before = resident_kib();
    for (uint32_t i = 0; i < N_NODES; i++) {
        const char *hub = "inproc://node0";
        char bind[32];
        struct ls_node_options options;
        ls_node_options_init(&options);
        (void)snprintf(bind, sizeof bind, "inproc://node%u", i);
        options.id = i;
        options.bind = bind;
        options.topology = LS_TOPOLOGY_STAR;
        options.attach = &hub;
        options.n_attach = i != 0;
        options.world_size = 1; /* to start them one by one */
        if (ls_node_create(&nodes[i], &options) != LS_OK ||
            ls_node_on_member(nodes[i], on_ready, seen[i]) != LS_OK ||
            ls_node_start(nodes[i]) != LS_OK)
            bench_fail("node");
    }
    (void)gate_wait();
    tell_number((resident_kib() - before) * 1024 / N_NODES);
    wait_end();
    for (size_t i = 0; i < N_NODES; i++)
        ls_node_destroy(&nodes[i]);
}

static void connect_sub(void *zctx, void **sub, unsigned to)
{
    char at[32];
    *sub = zmq_socket(zctx, ZMQ_SUB);
    (void)snprintf(at, sizeof at, "inproc://node%u", to);
    if (*sub == NULL || zmq_setsockopt(*sub, ZMQ_SUBSCRIBE, "", 0) != 0 ||
        zmq_connect(*sub, at) != 0)
        bench_fail("connect");
}

/* --sockets: an XPUB each, and a SUB for each side of each spoke. */
static void sockets_main(void)
{
    void *pubs[N_NODES], *subs[2 * N_NODES] = {0};
    char subscription[16];
    const long before = resident_kib();
    void *zctx = zmq_ctx_new();
    for (unsigned i = 0; i < N_NODES; i++) {
        char at[32];
        (void)snprintf(at, sizeof at, "inproc://node%u", i);
        pubs[i] = zmq_socket(zctx, ZMQ_XPUB);
        const int verbose = 1;
        if (pubs[i] == NULL ||
            zmq_setsockopt(pubs[i], ZMQ_XPUB_VERBOSE, &verbose,
                           sizeof verbose) != 0 ||
            zmq_bind(pubs[i], at) != 0)
            bench_fail("bind");
    }
    for (unsigned i = 1; i < N_NODES; i++) {
        connect_sub(zctx, &subs[2 * i], 0);
        connect_sub(zctx, &subs[2 * i + 1], i);
        if (zmq_recv(pubs[0], subscription, sizeof subscription, 0) < 0 ||
            zmq_recv(pubs[i], subscription, sizeof subscription, 0) < 0)
            bench_fail("subscription");
    }
    tell_number((resident_kib() - before) * 1024 / N_NODES);
    wait_end();
    for (size_t i = 0; i < N_NODES; i++)
        zmq_close(pubs[i]);
    for (size_t i = 2; i < 2 * N_NODES; i++)
        zmq_close(subs[i]);
    zmq_ctx_term(zctx);
}

static double memory_kib(void *self)
{
    struct process process;
    const char *const arguments[] = {self, NULL};
    process_start(&process, arguments);
    const int64_t bytes = hear_number(&process);
    process_end(&process);
    return (double)bytes / 1024;
}

/* ------------------------------------------------------------------------ */

static bool is_hidden(int argc, char **argv)
{
    if (ls_log_setup("error") != LS_OK) /* that members are lost is no news */
        bench_fail("log");
    if (argc == 5 && strcmp(argv[1], "--member") == 0)
        member_main(argv);
    else if (argc == 2 && strcmp(argv[1], "--word") == 0)
        tell_number(bench_now());
    else if (argc == 2 && strcmp(argv[1], "--nodes") == 0)
        nodes_main();
    else if (argc == 2 && strcmp(argv[1], "--sockets") == 0)
        sockets_main();
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    if (is_hidden(argc, argv))
        return 0;
    struct bench_options options;
    bench_options_read(&options, argc, argv);
    process_init();
    static char nodes[] = "--nodes", sockets[] = "--sockets";
    struct bench_figure figures[] = {
        {.name = "8 processes, formed (target <= 100)",
         .unit = "ms",
         .run = formed_ms},
        {.name = "8 processes, only started", .unit = "ms", .run = started_ms},
        {.name = "death known to 4 (target <= 10)",
         .unit = "ms",
         .run = death_ms},
        {.name = "memory of a node",
         .unit = "KiB",
         .run = memory_kib,
         .self = nodes},
        {.name = "memory of its sockets alone",
         .unit = "KiB",
         .run = memory_kib,
         .self = sockets},
    };
    enum { NODE = 3, SOCKETS = 4, N_FIGURES = 5 };
    bench_run(figures, N_FIGURES, &options);
    bench_print("world", figures, N_FIGURES, &options);
    bench_print_derived("world", "a node beyond sockets (target <= 200)", "KiB",
                        figures[NODE].median - figures[SOCKETS].median,
                        &options);
    return 0;
}
