/* bench_emit - events between nodes, against raw libzmq XPUB and SUB.
 *
 *   bench_emit [--json] [--rounds N] [--quick] [WORD...]
 * --quick: a tenth of the events; of round trips all, as fewer would end before
 * the two have met in shared memory. WORD: only what has all these words in its
 * name, as in `bench_emit tcp 32`.
 *
 * events:     one node emits under policy block, another handles (or 8 do);
 *             from the first handled to the last. A loss is an error.
 * round-trip: emit, handle, emit, handle.
 * local:      from emit to a handler of the same node, against ls_queue.
 * Raw sends the same payloads in one frame, without limits, and 1 MiB without
 * a copy, as Lockstep does. What is compared takes turns, round by round, each
 * time in processes of its own (inproc, local: one process). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "emit_end.h"
#include "process.h"

#define QUICK     10
#define WAYS      4
#define RECEIVERS 8
#define TEXT_MAX  24

struct comparison {
    const char *transport;
    const char *size_name;
    const char *kind;
    size_t size;
    long n;       /* of Lockstep's */
    long n_other; /* of the others; fast ones need more to be measurable */
    double target;
};

#define EVENTS "events"
#define TO_8   "events-to-8"
#define TRIP   "round-trip"
#define KIB_4  4096
#define MIB_1  (1024 * 1024)

/* Targets: of events at least, of times at most so much of the other's. */
static const struct comparison comparisons[] = {
    {"tcp", "32", EVENTS, 32, 600000, 600000, 0.75},
    {"ipc", "32", EVENTS, 32, 600000, 600000, 0.75},
    {"inproc", "32", EVENTS, 32, 600000, 600000, 0.6},
    {"tcp", "4KiB", EVENTS, KIB_4, 40000, 40000, 0.95},
    {"ipc", "4KiB", EVENTS, KIB_4, 40000, 40000, 0.95},
    {"inproc", "4KiB", EVENTS, KIB_4, 100000, 100000, 0.95},
    {"tcp", "1MiB", EVENTS, MIB_1, 500, 500, 0.95},
    {"ipc", "1MiB", EVENTS, MIB_1, 500, 500, 0.95},
    {"inproc", "1MiB", EVENTS, MIB_1, 200000, 600000, 0.95},
    {"tcp", "32", TO_8, 32, 60000, 60000, 0.9},
    {"tcp", "32", TRIP, 32, 1000, 1000, 1.25},
    {"ipc", "32", TRIP, 32, 1000, 1000, 1.25},
    {"inproc", "32", TRIP, 32, 2000, 2000, 1.25},
    {"tcp", "4KiB", TRIP, KIB_4, 1000, 1000, 0},
    {"ipc", "4KiB", TRIP, KIB_4, 1000, 1000, 0},
    {"inproc", "4KiB", TRIP, KIB_4, 2000, 2000, 0},
    {"tcp", "1MiB", TRIP, MIB_1, 100, 100, 0},
    {"ipc", "1MiB", TRIP, MIB_1, 100, 100, 0},
    {"inproc", "1MiB", TRIP, MIB_1, 2000, 2000, 0},
    {"local", "32", EVENTS, 32, 600000, 600000, 1.2},
    {"local", "32", TRIP, 32, 3000, 3000, 1.2},
};

/* A figure's `self`. */
struct measure {
    const struct comparison *of;
    struct emit_job job;
};

/* ---- the measured processes -------------------------------------------- */

static const struct emit_ops *ops_of(const struct emit_job *job)
{
    return job->way == EMIT_BUS || job->way == EMIT_FAR ? &emit_bus : &emit_raw;
}

static void tell_span(struct emit_span span)
{
    char line[PROCESS_LINE_MAX];
    (void)snprintf(line, sizeof line, "%" PRId64 " %" PRId64, span.from,
                   span.to);
    parent_tell(line);
    while (parent_hear(line))
        ; /* its end says that all are done */
}

static void end_main(const struct emit_job *job, unsigned id, const char *bind,
                     const char *peer)
{
    const struct emit_ops *ops = ops_of(job);
    char endpoint[EMIT_ENDPOINT_MAX], line[PROCESS_LINE_MAX];
    void *end = ops->open(job, id, bind, id == 0 ? NULL : peer, endpoint);
    parent_tell(endpoint);
    if (!parent_hear(line))
        bench_fail("no peer");
    tell_span(ops->run(end, line));
    ops->close(end);
}

struct sender {
    const struct emit_ops *ops;
    void *end;
    const char *peer;
    struct emit_span span;
};

static void sender_main(void *self)
{
    struct sender *sender = self;
    sender->span = sender->ops->run(sender->end, sender->peer);
}

static void inproc_main(const struct emit_job *job)
{
    struct sender sender = {.ops = ops_of(job)};
    char at[2][EMIT_ENDPOINT_MAX];
    sender.end = sender.ops->open(job, 0, "inproc://end0", NULL, at[0]);
    void *end = sender.ops->open(job, 1, "inproc://end1", at[0], at[1]);
    sender.peer = at[1];
    ls_thread *thread = bench_thread(sender_main, &sender);
    const struct emit_span span = sender.ops->run(end, at[0]);
    bench_thread_join(thread);
    tell_span(span.to != 0 ? span : sender.span);
    sender.ops->close(end);
    sender.ops->close(sender.end);
}

/* --end TRANSPORT WAY TRIP SIZE N RECEIVERS ID BIND PEER */
static void hidden_main(char **argv)
{
    const struct emit_job job = {
        .way = (enum emit_way)strtol(argv[3], NULL, 10),
        .trip = strtol(argv[4], NULL, 10) != 0,
        .size = strtoul(argv[5], NULL, 10),
        .n = strtol(argv[6], NULL, 10),
        .n_receivers = (unsigned)strtoul(argv[7], NULL, 10)};
    if (strcmp(argv[2], "local") == 0)
        tell_span(emit_local(&job));
    else if (strcmp(argv[2], "inproc") == 0)
        inproc_main(&job);
    else
        end_main(&job, (unsigned)strtoul(argv[8], NULL, 10), argv[9], argv[10]);
}

/* ---- one measurement --------------------------------------------------- */

static void start_end(struct process *process, const struct measure *m,
                      unsigned id, const char *peer)
{
    const struct emit_job *job = &m->job;
    char way[TEXT_MAX], size[TEXT_MAX], n[TEXT_MAX];
    char receivers[TEXT_MAX], number[TEXT_MAX];
    char bind[EMIT_ENDPOINT_MAX] = "tcp";
    (void)snprintf(way, sizeof way, "%d", (int)job->way);
    (void)snprintf(size, sizeof size, "%zu", job->size);
    (void)snprintf(n, sizeof n, "%ld", job->n);
    (void)snprintf(receivers, sizeof receivers, "%u", job->n_receivers);
    (void)snprintf(number, sizeof number, "%u", id);
    if (strcmp(m->of->transport, "ipc") == 0)
        (void)snprintf(bind, sizeof bind, "ipc://%s/%u", bench_folder(), id);
    const char *const arguments[] = {"--end",   m->of->transport,
                                     way,       job->trip ? "1" : "0",
                                     size,      n,
                                     receivers, number,
                                     bind,      peer,
                                     NULL};
    process_start(process, arguments);
}

static void merge_span(struct process *process, struct emit_span *span)
{
    char line[PROCESS_LINE_MAX], *rest;
    process_hear(process, line);
    const int64_t from = strtoll(line, &rest, 10);
    const int64_t to = strtoll(rest, NULL, 10);
    if (from != 0 && (span->from == 0 || from < span->from))
        span->from = from;
    if (to > span->to)
        span->to = to;
}

static void in_one_process(const struct measure *m, struct emit_span *span)
{
    struct process process;
    start_end(&process, m, 0, "");
    merge_span(&process, span);
    process_end(&process);
}

static void between_processes(const struct measure *m, struct emit_span *span)
{
    const unsigned n = 1 + m->job.n_receivers;
    struct process ends[1 + RECEIVERS];
    char at[2][PROCESS_LINE_MAX];
    start_end(&ends[0], m, 0, "");
    process_hear(&ends[0], at[0]);
    for (unsigned i = 1; i < n; i++)
        start_end(&ends[i], m, i, at[0]);
    for (unsigned i = 1; i < n; i++) {
        process_hear(&ends[i], at[1]);
        process_tell(&ends[i], at[0]);
    }
    process_tell(&ends[0], at[1]);
    for (unsigned i = 0; i < n; i++)
        merge_span(&ends[i], span);
    for (unsigned i = 0; i < n; i++)
        process_end(&ends[i]);
}

/* Events: thousands a second. Round trips: us. */
static double run_measure(void *self)
{
    const struct measure *m = self;
    struct emit_span span = {0};
    if (strcmp(m->of->transport, "tcp") == 0 ||
        strcmp(m->of->transport, "ipc") == 0)
        between_processes(m, &span);
    else
        in_one_process(m, &span);
    const double ns_each = (double)(span.to - span.from) / (double)m->job.n;
    return m->job.trip ? ns_each / 1e3 : 1e6 / ns_each;
}

/* ---- comparisons ------------------------------------------------------- */

static bool is_local(const struct comparison *c)
{
    return strcmp(c->transport, "local") == 0;
}

/* Returns how many figures there are. */
static size_t prepare(const struct comparison *c, bool quick,
                      struct measure *measures, struct bench_figure *figures)
{
    static const char *const names[] = {
        "Lockstep", "Lockstep, shared_bytes 0", "raw libzmq",
        "raw libzmq with a handler thread", "ls_queue"};
    const bool trip = strcmp(c->kind, TRIP) == 0;
    enum emit_way ways[WAYS] = {EMIT_BUS, EMIT_RAW, EMIT_RAW_HANDLER, EMIT_FAR};
    const size_t n = !trip || is_local(c) ? 2 : WAYS;
    if (is_local(c))
        ways[1] = EMIT_QUEUE;
    for (size_t i = 0; i < n; i++) {
        measures[i].of = c;
        measures[i].job = (struct emit_job){
            .way = ways[i],
            .trip = trip,
            .size = c->size,
            .n = (i == 0 ? c->n : c->n_other) / (quick && !trip ? QUICK : 1),
            .n_receivers = strcmp(c->kind, TO_8) == 0 ? RECEIVERS : 1};
        figures[i] = (struct bench_figure){.name = names[ways[i]],
                                           .unit = trip ? "us" : "k/s",
                                           .run = run_measure,
                                           .self = &measures[i]};
    }
    return n;
}

static void print_ratio(const char *bench, const struct comparison *c,
                        const struct bench_figure *figures, size_t n,
                        const struct bench_options *options)
{
    const bool local_events = is_local(c) && strcmp(c->kind, EVENTS) == 0;
    const double ratio = figures[0].median / figures[n > 2 ? 2 : 1].median;
    char target[32] = "";
    if (c->target > 0)
        (void)snprintf(target, sizeof target, " (target %s %.2f)",
                       n > 2 || is_local(c) ? "<=" : ">=", c->target);
    char name[128];
    (void)snprintf(name, sizeof name, "%s, Lockstep's%s",
                   local_events ? "time" : "ratio", target);
    bench_print_derived(bench, name, "x", local_events ? 1 / ratio : ratio,
                        options);
    if (local_events)
        bench_print_derived(bench, "more than a hop (target <= 100)", "ns",
                            1e6 / figures[0].median - 1e6 / figures[1].median,
                            options);
}

static void compare(const struct comparison *c, const char *bench, bool quick,
                    const struct bench_options *options)
{
    struct measure measures[WAYS];
    static struct bench_figure figures[WAYS];
    const size_t n = prepare(c, quick, measures, figures);
    bench_run(figures, n, options);
    bench_print(bench, figures, n, options);
    print_ratio(bench, c, figures, n, options);
    if (!options->json)
        (void)printf("\n");
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc == 11 && strcmp(argv[1], "--end") == 0) {
        hidden_main(argv);
        return 0;
    }
    struct bench_options options;
    struct bench_choice choice;
    bench_choice_read(&choice, &argc, argv);
    bench_options_read(&options, argc, argv);
    process_init();
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
        const struct comparison *c = &comparisons[i];
        char bench[64];
        (void)snprintf(bench, sizeof bench, "emit %s %s %s", c->transport,
                       c->size_name, c->kind);
        if (bench_is_chosen(&choice, bench))
            compare(c, bench, choice.quick, &options);
    }
    return bench_choice_end(&choice);
}
