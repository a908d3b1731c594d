/* bench_trace - what the flight recorder costs.
 *
 *   bench_trace [--json] [--rounds N]
 *
 * The same work with a recorder and without, in turn: a pipeline of ten steps
 * that yield and do nothing, where each iteration takes less than its records
 * would; the same with 20 us of work in each step, where everything is
 * recorded; and emits of 32 bytes between two nodes over ipc. Of each round the
 * ratio; of all of them the mean, and the interval in which it lies with 95 %
 * confidence. The bound is 1.02. Time is that of the processors, of all
 * threads: what else runs on the machine counts less then. */
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
    ls_task *task;
};

static int works(ls_step *step, void *self)
{
    const struct pipeline *pipeline = self;
    for (int64_t i = 0; i < pipeline->work; i++)
        sum = sum + 1;
    const int status = ls_yield(step);
    sum = sum - 1;
    return status;
}

static void make(struct pipeline *pipeline)
{
    must(ls_task_create(
             &pipeline->task,
             &(struct ls_task_options){.trace = recorder(pipeline->on, 0)}),
         "task");
    for (int i = 0; i < STEPS; i++)
        must(ls_task_use_fn(pipeline->task, works, pipeline), "use");
}

static double run_pipeline(void *self)
{
    const struct pipeline *pipeline = self;
    const int64_t start = cpu_now();
    must(ls_task_run(pipeline->task, pipeline->n), "run");
    return (double)(cpu_now() - start) / (double)(STEPS * (int64_t)pipeline->n);
}

/* ---- emits --------------------------------------------------------------- */

struct pair {
    bool on;
    ls_node *from, *to;
    long handled;
    struct bench_latch finished;
};

static int on_data(void *self, const struct ls_event *event)
{
    struct pair *pair = self;
    (void)event;
    if (++pair->handled % EMITS == 0)
        bench_latch_open(&pair->finished);
    return LS_OK;
}

static ls_node *node_of(const struct pair *pair, uint32_t id,
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
    options.trace = recorder(pair->on, id);
    must(ls_node_create(&node, &options), "node");
    return node;
}

static void join(struct pair *pair)
{
    bench_latch_init(&pair->finished);
    pair->from = node_of(pair, 0, NULL);
    must(ls_node_open(pair->from), "open");
    const char *attach = ls_node_endpoint(pair->from);
    pair->to = node_of(pair, 1, &attach);
    must(ls_on(pair->to, "data", on_data, pair), "on");
    must(ls_node_open(pair->to), "open");
    must(ls_node_join(pair->to), "join");
    must(ls_node_join(pair->from), "join");
}

static double run_pair(void *self)
{
    struct pair *pair = self;
    static const char data[SIZE];
    const int64_t start = cpu_now();
    for (int i = 0; i < EMITS; i++)
        must(ls_emit(pair->from, "data", data, SIZE), "emit");
    bench_latch_wait(&pair->finished, PATIENCE_S * 1000);
    return (double)(cpu_now() - start) / EMITS;
}

int main(int argc, char **argv)
{
    static struct pipeline empty[] = {{.n = 20000}, {.on = true, .n = 20000}};
    static struct pipeline busy[] = {{.work = 20000, .n = 200},
                                     {.on = true, .work = 20000, .n = 200}};
    static struct pair pairs[] = {{.on = false}, {.on = true}};
    static const char *const names[] = {"empty step", "busy step", "emit"};
    enum { N = 6 };
    struct bench_options options;
    bench_options_read(&options, argc, argv);
    if (argc == 1 || (argc == 2 && options.json))
        options.n_rounds = ROUNDS;
    process_init();
    struct bench_figure figures[N];
    for (int i = 0; i < 2; i++) {
        make(&empty[i]);
        make(&busy[i]);
        join(&pairs[i]);
        const char *const on = i == 0 ? "off" : "on";
        const struct bench_figure three[] = {
            {.name = on, .unit = "ns", .run = run_pipeline, .self = &empty[i]},
            {.name = on, .unit = "ns", .run = run_pipeline, .self = &busy[i]},
            {.name = on, .unit = "ns", .run = run_pair, .self = &pairs[i]}};
        for (int k = 0; k < 3; k++)
            figures[2 * k + i] = three[k];
    }
    bench_measure(figures, N, &options);
    for (int k = 0; k < 3; k++)
        bench_compare("trace", names[k], "off", &figures[2 * k],
                      &figures[2 * k + 1], &options);
    bench_order(figures, N, &options);
    bench_print("trace", figures, N, &options);
    return 0;
}
