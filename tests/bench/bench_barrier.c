/* The barrier between processes, through memory that they share and by
 * messages, against raw libzmq that does the same two rounds through a leader,
 * in the same processes and in turn. RANKS=16 measures only that. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barrier_raw.h"
#include "bench.h"
#include "lockstep/barrier.h"
#include "process.h"

#define EPOCHS      200 /* in one round */
#define WAIT_MS     60000
#define MEMBERS_MAX 16
#define N_NODES     2 /* of a process */
#define N_RAW       3
#define N_KINDS     (N_NODES + N_RAW)

static const char *const kinds[N_KINDS] = {"shared memory", "messages",
                                           "raw router", "raw pub", "raw up"};

/* --- in a member's process ---------------------------------------------- */

struct member {
    ls_node *node[N_NODES]; /* by kind */
    ls_barrier *barrier[N_NODES];
    struct raw *raw;
};

static void must(int status, const char *what)
{
    if (status != LS_OK)
        bench_fail(what);
}

/* bind: "tcp", or the beginning of an address. */
static void create_node(struct member *member, int kind, unsigned index,
                        unsigned n, const char *bind, const char *seed)
{
    char address[160], job[LS_JOB_MAX + 1];
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = index;
    options.world_size = n;
    options.start_timeout_ms = WAIT_MS;
    (void)snprintf(job, sizeof job, "%s-%d", bench_job(), kind);
    options.job = job;
    if (kind != 0)
        options.shared_bytes = 0;
    (void)snprintf(address, sizeof address, "%s-%d", bind, kind);
    if (strncmp(bind, "ipc:", 4) == 0)
        options.bind = address;
    if (seed != NULL) {
        options.attach = &seed;
        options.n_attach = 1;
    }
    must(ls_node_create(&member->node[kind], &options), "create");
    must(ls_barrier_create(&member->barrier[kind], member->node[kind], NULL),
         "barrier");
    must(ls_node_open(member->node[kind]), "open");
}

static void wait_once(struct member *member, int kind)
{
    if (kind < N_NODES)
        must(ls_barrier_wait(member->barrier[kind], 0, WAIT_MS, NULL), "wait");
    else
        raw_wait(member->raw, (enum raw_kind)(kind - N_NODES));
}

/* "KIND": go through so many epochs; answer with ns an epoch. */
static void serve(struct member *member)
{
    char line[PROCESS_LINE_MAX];
    while (parent_hear(line)) {
        const int kind = atoi(line);
        wait_once(member, kind);
        const int64_t start = bench_now();
        for (int i = 0; i < EPOCHS; i++)
            wait_once(member, kind);
        (void)snprintf(line, sizeof line, "%" PRId64,
                       (bench_now() - start) / EPOCHS);
        parent_tell(line);
    }
    for (int i = 0; i < N_NODES; i++) {
        ls_barrier_destroy(&member->barrier[i]);
        ls_node_destroy(&member->node[i]);
    }
    raw_close(member->raw);
}

/* member INDEX N BIND RAW-BIND [SEED*2 RAW-ENDPOINT*3] */
static int run_member(char **arguments)
{
    struct member member = {0};
    char line[PROCESS_LINE_MAX];
    char endpoints[3][128];
    const unsigned index = (unsigned)atoi(arguments[0]);
    const unsigned n = (unsigned)atoi(arguments[1]);
    for (int i = 0; i < N_NODES; i++)
        create_node(&member, i, index, n, arguments[2],
                    index == 0 ? NULL : arguments[4 + i]);
    if (index == 0) {
        member.raw = raw_lead(n, arguments[3], endpoints);
        (void)snprintf(line, sizeof line, "%s %s %s %s %s",
                       ls_node_endpoint(member.node[0]),
                       ls_node_endpoint(member.node[1]), endpoints[0],
                       endpoints[1], endpoints[2]);
        parent_tell(line);
    } else {
        for (int i = 0; i < 3; i++)
            (void)snprintf(endpoints[i], sizeof endpoints[i], "%s",
                           arguments[4 + N_NODES + i]);
        member.raw = raw_join(n, endpoints);
    }
    for (int i = 0; i < N_NODES; i++)
        must(ls_node_join(member.node[i]), "join");
    raw_meet(member.raw);
    parent_tell("ready");
    serve(&member);
    return 0;
}

/* --- in the program's own ----------------------------------------------- */

struct world {
    unsigned n;
    struct process members[MEMBERS_MAX];
};

struct measured {
    struct world *world;
    int kind;
    char name[64];
};

static void start_world(struct world *world, unsigned n, const char *transport)
{
    static int number;
    char bind[128], raw_bind[128], index[16], size[16];
    char leader[PROCESS_LINE_MAX], line[PROCESS_LINE_MAX];
    char seed[5][128];
    const int ipc = strcmp(transport, "ipc") == 0;
    world->n = n;
    number++;
    (void)snprintf(size, sizeof size, "%u", n);
    (void)snprintf(raw_bind, sizeof raw_bind,
                   ipc ? "ipc://%s/raw-%d" : "tcp://127.0.0.1:*",
                   bench_folder(), number);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(index, sizeof index, "%u", i);
        (void)snprintf(bind, sizeof bind, ipc ? "ipc://%s/bus-%d-%u" : "tcp",
                       bench_folder(), number, i);
        const char *const arguments[] = {
            "member", index,    size,
            bind,     raw_bind, i == 0 ? NULL : seed[0],
            seed[1],  seed[2],  seed[3],
            seed[4],  NULL};
        process_start(&world->members[i], arguments);
        if (i > 0)
            continue;
        process_hear(&world->members[0], leader);
        if (sscanf(leader, "%127s %127s %127s %127s %127s", seed[0], seed[1],
                   seed[2], seed[3], seed[4]) != 5)
            bench_fail("the leader's addresses");
    }
    for (unsigned i = 0; i < n; i++)
        process_hear(&world->members[i], line);
}

static void end_world(struct world *world)
{
    for (unsigned i = 0; i < world->n; i++)
        process_end(&world->members[i]);
}

static double measure(void *self)
{
    const struct measured *measured = self;
    struct world *world = measured->world;
    char line[PROCESS_LINE_MAX];
    double most = 0;
    (void)snprintf(line, sizeof line, "%d", measured->kind);
    for (unsigned i = 0; i < world->n; i++)
        process_tell(&world->members[i], line);
    for (unsigned i = 0; i < world->n; i++) {
        process_hear(&world->members[i], line);
        const double us = strtod(line, NULL) / 1000;
        if (us > most)
            most = us;
    }
    return most;
}

static void compare(unsigned n, const char *transport,
                    const struct bench_options *options)
{
    struct world world;
    struct measured measured[N_KINDS];
    struct bench_figure figures[N_KINDS];
    char name[64];
    start_world(&world, n, transport);
    for (int i = 0; i < N_KINDS; i++) {
        measured[i] = (struct measured){.world = &world, .kind = i};
        (void)snprintf(measured[i].name, sizeof measured[i].name,
                       "%u processes, %s, %s", n, transport, kinds[i]);
        figures[i] = (struct bench_figure){.name = measured[i].name,
                                           .unit = "us",
                                           .run = measure,
                                           .self = &measured[i]};
    }
    bench_run(figures, N_KINDS, options);
    bench_print("barrier", figures, N_KINDS, options);
    for (int i = 0; i < N_NODES * N_RAW; i++) {
        const int own = i / N_RAW, raw = N_NODES + i % N_RAW;
        (void)snprintf(name, sizeof name, "%u processes, %s, %s to %s", n,
                       transport, kinds[own], kinds[raw]);
        bench_print_derived("barrier", name, "x",
                            figures[own].median / figures[raw].median, options);
    }
    (void)fflush(stdout);
    end_world(&world);
}

int main(int argc, char **argv)
{
    static const unsigned sizes[] = {2, 4, 8, 16};
    struct bench_options options;
    if (argc > 5 && strcmp(argv[1], "member") == 0)
        return run_member(argv + 2);
    bench_options_read(&options, argc, argv);
    process_init();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (!bench_is_asked_for("RANKS", (int)sizes[i]))
            continue;
        compare(sizes[i], "ipc", &options);
        compare(sizes[i], "tcp", &options);
    }
    return 0;
}
