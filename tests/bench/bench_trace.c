/* bench_trace - what the flight recorder costs.
 *
 *   bench_trace [--json] [--rounds N] [WORD...]
 * WORD: only what has all these words in its name, as in `bench_trace emit`.
 *
 * The same work without a recorder, with one, and without once more, in turn: a
 * pipeline of ten steps that yield and do nothing, where each iteration takes
 * less than its records would; the same with 20 us of work in each step, where
 * everything is recorded; and emits of 32 bytes between two nodes over ipc. Of
 * each round the ratio; of all of them the mean, and the interval in which it
 * lies with 95 % confidence. The bound is 1.02. Each run has tasks and nodes of
 * its own, so that where they lie in memory is no part of the ratio; that of
 * without to without should contain 1, and says how much the machine adds. Time
 * is that of the processors, of all threads: what else runs counts less then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"
#include "lockstep/event.h"
#include "lockstep/task.h"
#include "lockstep/trace.h"
#include "process.h"

#define ROUNDS     20 /* unless --rounds says so */
#define STEPS      10
#define EMITS      100000
#define SIZE       32
#define PATIENCE_S 60

static volatile int64_t sum;

static void must(int status, const char *what)
{
    if (status != LS_OK)
        bench_fail(what);
}

static int64_t cpu_now(void)
{
    return (int64_t)clock() * (LS_NS_PER_S / CLOCKS_PER_SEC);
}

static ls_trace *recorder(bool on, uint32_t id)
{
    ls_trace *trace = NULL;
    if (on)
        must(ls_trace_create(&trace, &(struct ls_trace_options){.node = id}),
             "trace");
    return trace;
}

/* ---- steps --------------------------------------------------------------- */

struct pipeline {
    bool on;
    int64_t work; /* additions in each step */
    uint64_t n;
};

static int do_work(ls_step *step, void *self)
{
    const struct pipeline *pipeline = self;
    for (int64_t i = 0; i < pipeline->work; i++)
        sum = sum + 1;
    const int status = ls_yield(step);
    sum = sum - 1;
    return status;
}

static double run_pipeline(void *self)
{
    struct pipeline *pipeline = self;
    ls_trace *trace = recorder(pipeline->on, 0);
    ls_task *task = NULL;
    must(ls_task_create(&task, &(struct ls_task_options){.trace = trace}),
         "task");
    for (int i = 0; i < STEPS; i++)
        must(ls_task_use_fn(task, do_work, pipeline), "use");
    must(ls_task_run(task, pipeline->n / 10), "run");
    const int64_t start = cpu_now();
    must(ls_task_run(task, pipeline->n), "run");
    const int64_t took = cpu_now() - start;
    ls_task_destroy(&task);
    ls_trace_destroy(&trace);
    return (double)took / (double)(STEPS * (int64_t)pipeline->n);
}

/* ---- emits --------------------------------------------------------------- */

struct pair {
    bool on;
    ls_node *from, *to;
    ls_trace *traces[2];
    long left;
    struct bench_latch finished;
};

static int on_data(void *self, const struct ls_event *event)
{
    struct pair *pair = self;
    (void)event;
    if (--pair->left == 0)
        bench_latch_open(&pair->finished);
    return LS_OK;
}

static ls_node *node_of(struct pair *pair, uint32_t id,
                        const char *const *attach)
{
    ls_node *node = NULL;
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.job = pair->on ? "on" : "off";
    options.id = id;
    options.world_size = 2;
    options.attach = attach;
    options.n_attach = attach != NULL;
    options.trace = pair->traces[id] = recorder(pair->on, id);
    must(ls_node_create(&node, &options), "node");
    return node;
}

static void join(struct pair *pair)
{
    pair->from = node_of(pair, 0, NULL);
    must(ls_node_open(pair->from), "open");
    const char *attach = ls_node_endpoint(pair->from);
    pair->to = node_of(pair, 1, &attach);
    must(ls_on(pair->to, "data", on_data, pair), "on");
    must(ls_node_open(pair->to), "open");
    must(ls_node_join(pair->to), "join");
    must(ls_node_join(pair->from), "join");
}

static void emit(struct pair *pair, long n)
{
    static const char data[SIZE];
    bench_latch_init(&pair->finished);
    pair->left = n;
    for (long i = 0; i < n; i++)
        must(ls_emit(pair->from, "data", data, SIZE), "emit");
    bench_latch_wait(&pair->finished, PATIENCE_S * 1000);
    bench_latch_fini(&pair->finished);
}

static double run_pair(void *self)
{
    struct pair *pair = self;
    join(pair);
    emit(pair, EMITS / 10);
    const int64_t start = cpu_now();
    emit(pair, EMITS);
    const int64_t took = cpu_now() - start;
    must(ls_node_destroy(&pair->to), "destroy");
    must(ls_node_destroy(&pair->from), "destroy");
    ls_trace_destroy(&pair->traces[0]);
    ls_trace_destroy(&pair->traces[1]);
    return (double)took / EMITS;
}

struct work {
    const char *name;
    double (*run)(void *self);
    void *(*self)(bool on);
};

static void *empty_steps(bool on)
{
    static struct pipeline pipelines[2];
    pipelines[on] = (struct pipeline){.on = on, .n = 20000};
    return &pipelines[on];
}

static void *busy_steps(bool on)
{
    static struct pipeline pipelines[2];
    pipelines[on] = (struct pipeline){.on = on, .work = 20000, .n = 200};
    return &pipelines[on];
}

static void *two_nodes(bool on)
{
    static struct pair pairs[2];
    pairs[on].on = on;
    return &pairs[on];
}

static void compare(const struct work *work,
                    const struct bench_options *options)
{
    static const char *const names[] = {"off", "on", "off again"};
    enum { N = sizeof names / sizeof names[0] };
    static struct bench_figure figures[N];
    char name[40];
    for (int i = 0; i < N; i++)
        figures[i] = (struct bench_figure){.name = names[i],
                                           .unit = "ns",
                                           .run = work->run,
                                           .self = work->self(i == 1)};
    bench_measure(figures, N, options);
    for (int i = 1; i < N; i++) {
        (void)snprintf(name, sizeof name, "%s, %s", work->name, names[i]);
        bench_compare("trace", name, "off", &figures[0], &figures[i], options);
    }
    bench_order(figures, N, options);
    (void)snprintf(name, sizeof name, "trace, %s", work->name);
    bench_print(name, figures, N, options);
}

int main(int argc, char **argv)
{
    static const struct work works[] = {
        {"empty step", run_pipeline, empty_steps},
        {"busy step", run_pipeline, busy_steps},
        {"emit", run_pair, two_nodes}};
    struct bench_options options;
    struct bench_choice choice;
    bench_choice_read(&choice, &argc, argv);
    if (choice.quick)
        bench_fail("there is no --quick of it");
    bench_options_read(&options, argc, argv);
    if (argc == 1 || (argc == 2 && options.json))
        options.n_rounds = ROUNDS;
    process_init();
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        if (bench_is_chosen(&choice, works[i].name))
            compare(&works[i], &options);
    return bench_choice_end(&choice);
}
