/* Samples a second through a service job, from collect() to learn(): three
 * shapes, and one, three and eight collectors; against calls one after the
 * other, and events of 1 MiB, both over the connection, measured in the same
 * run; beside them events in shared memory, as they go by themselves, and
 * images over the connection. Nodes are threads of this process, over ipc. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "collector_service.h"
#include "coordinator.h"
#include "learner_service.h"
#include "lockstep/event.h"
#include "process.h"
#include "store_bus.h"

#define COLLECTORS_MAX 8
#define NODES_MAX      (2 + COLLECTORS_MAX)
#define PATIENCE_MS    60000
#define MIB            ((size_t)1 << 20)
#define STACKS         4  /* of the learner, with two loaders */
#define WARM           20 /* batches before the first that counts */

static void must(int status)
{
    if (status < 0)
        bench_fail("it failed");
}

/* Nodes --------------------------------------------------------------------
 */

struct peer {
    ls_node *node;
    ls_rpc *calls;
    ls_thread *starter;
};

static unsigned n_worlds;

/* shares: whether large payloads go through shared memory. */
static void peer_open(struct peer *peer, uint32_t id, size_t n, bool shares)
{
    struct ls_node_options options;
    char binds[NODES_MAX][PROCESS_LINE_MAX];
    const char *attach[NODES_MAX];
    ls_node_options_init(&options);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(binds[i], sizeof binds[i], "ipc://%s/%u.%zu",
                       bench_folder(), n_worlds, i);
        attach[i] = binds[i];
    }
    options.bind = binds[id];
    options.attach = attach;
    options.n_attach = n;
    options.id = id;
    options.role = id == 0 ? "coordinator" : id == 1 ? "learner" : "collector";
    options.world_size = (uint32_t)n;
    options.world_max = (uint32_t)n;
    options.shared_bytes = shares ? options.shared_bytes : 0;
    must(ls_node_create(&peer->node, &options));
    must(ls_rpc_open(&peer->calls, peer->node, NULL));
}

static void start(void *self)
{
    const struct peer *peer = self;
    must(ls_node_start(peer->node));
}

static void peers_start(struct peer *peers, size_t n, size_t stride)
{
    char *at = (char *)peers;
    for (size_t i = 0; i < n; i++, at += stride)
        ((struct peer *)at)->starter = bench_thread(start, at);
    at = (char *)peers;
    for (size_t i = 0; i < n; i++, at += stride)
        bench_thread_join(((struct peer *)at)->starter);
}

static void peer_close(struct peer *peer)
{
    ls_rpc_close(&peer->calls);
    ls_node_destroy(&peer->node);
}

/* What it is held against --------------------------------------------------
 */

struct pair {
    struct peer peers[2];
    int64_t handled;
    int64_t wanted;
    struct bench_latch all;
};

static void pair_open(struct pair *pair, bool shares)
{
    n_worlds++;
    *pair = (struct pair){.handled = 0};
    bench_latch_init(&pair->all);
    peer_open(&pair->peers[0], 0, 2, shares);
    peer_open(&pair->peers[1], 1, 2, shares);
}

static void pair_close(struct pair *pair)
{
    peer_close(&pair->peers[0]);
    peer_close(&pair->peers[1]);
    bench_latch_fini(&pair->all);
}

static int answer(void *self, ls_request *request)
{
    (void)self;
    return ls_request_complete(&request, "pong", 4);
}

/* Calls a second, one after the other, over the connection. */
static double calls(void *self)
{
    enum { N = 2000 };
    struct pair pair;
    (void)self;
    pair_open(&pair, false);
    must(ls_rpc_serve(pair.peers[1].calls, "ping.it", LS_CALL_ANYONE, answer,
                      NULL));
    peers_start(pair.peers, 2, sizeof pair.peers[0]);
    const int64_t from = bench_now();
    for (int i = 0; i < N; i++)
        must(ls_call_ask(pair.peers[0].calls,
                         &(struct ls_call_options){.to = 1, .name = "ping.it"},
                         NULL, NULL));
    const int64_t took = bench_now() - from;
    pair_close(&pair);
    return N * (double)LS_NS_PER_S / (double)took;
}

static int on_event(void *self, const struct ls_event *event)
{
    struct pair *pair = self;
    (void)event;
    if (++pair->handled == pair->wanted)
        bench_latch_open(&pair->all);
    return LS_OK;
}

static void keep(void *data, void *hint)
{
    (void)data;
    (void)hint;
}

/* MiB a second, in events of 1 MiB. */
static double move_events(bool shares)
{
    enum { N = 1000 };
    static char payload[MIB];
    struct pair pair;
    pair_open(&pair, shares);
    pair.wanted = N;
    must(ls_on(pair.peers[1].node, "data", on_event, &pair));
    peers_start(pair.peers, 2, sizeof pair.peers[0]);
    const int64_t from = bench_now();
    for (int i = 0; i < N; i++)
        must(ls_emit_with(pair.peers[0].node,
                          &(struct ls_emission){.event = "data",
                                                .data = payload,
                                                .size = sizeof payload,
                                                .release = keep,
                                                .timeout_ms = PATIENCE_MS}));
    bench_latch_wait(&pair.all, PATIENCE_MS);
    const int64_t took = bench_now() - from;
    pair_close(&pair);
    return N * (double)LS_NS_PER_S / (double)took;
}

static double events(void *self)
{
    (void)self;
    return move_events(false);
}

static double shared_events(void *self)
{
    (void)self;
    return move_events(true);
}

/* A job ---------------------------------------------------------------------
 */

struct shape {
    size_t step_bytes; /* as they are sent */
    int64_t unroll, split, batch;
    int64_t batches;
    size_t collectors;
    bool connected; /* nothing is shared */
};

struct part {
    struct peer peer; /* first */
    struct job *job;
    struct store *store;
    ls_task *task;
    ls_thread *runner;
    learner_service *learner;
    collector_service *collector;
    char *memory; /* of a collector: a trajectory; of the learner: a stack */
};

struct job {
    const struct shape *shape;
    struct part parts[NODES_MAX];
    coordinator *coordinator;
    int64_t learned, from, to;
};

static int nothing(void *self)
{
    (void)self;
    return LS_OK;
}

static int load(void *self, const struct ls_bytes *weights)
{
    (void)self;
    (void)weights;
    return LS_OK;
}

static int save(void *self, struct ls_bytes *out)
{
    (void)self;
    return ls_bytes_set(out, "weights", 7);
}

static size_t bytes_of(const struct shape *shape)
{
    return shape->step_bytes * (size_t)(shape->unroll / shape->split);
}

static int collect(void *self, int64_t unroll_len, int64_t parts, int64_t more,
                   struct collected_data *out, struct collected *what)
{
    (void)more;
    const struct part *part = self;
    (void)parts;
    *what = (struct collected){.steps = unroll_len, .episodes = 1};
    const int status =
        collected_room(out, part->job->shape->step_bytes * (size_t)unroll_len);
    if (status == LS_OK)
        memcpy(out->bytes, part->memory, out->size);
    return status;
}

static int evaluate(void *self, double *episode_return, int64_t *steps)
{
    (void)self;
    *episode_return = 0.0;
    *steps = 1;
    return LS_OK;
}

/* Into the stack, as a batch is laid out. */
static int read_batch(void *self, const struct ls_learner_place *place,
                      const struct learner_sample *samples, size_t n)
{
    const struct part *part = self;
    const size_t bytes = bytes_of(part->job->shape);
    char *at = part->memory + place->stack * n * bytes;
    for (size_t i = 0; i < n; i++, at += bytes)
        memcpy(at, samples[i].data, bytes);
    return LS_OK;
}

static int learn(void *self, const struct learner_lesson *lesson)
{
    struct job *job = ((struct part *)self)->job;
    (void)lesson;
    if (++job->learned == WARM)
        job->from = bench_now();
    job->to = bench_now();
    return LS_OK;
}

static struct service_options common(const struct part *part)
{
    return (struct service_options){.node = part->peer.node,
                                    .calls = part->peer.calls,
                                    .store = part->store,
                                    .patience_ms = PATIENCE_MS};
}

static void be_learner(struct part *part)
{
    static const struct learner_ops ops = {.reset = nothing,
                                           .load = load,
                                           .save = save,
                                           .read = read_batch,
                                           .learn = learn};
    const struct shape *shape = part->job->shape;
    part->memory = calloc(STACKS * (size_t)shape->batch, bytes_of(shape));
    must(learner_service_create(
        &part->learner,
        &(struct learner_service_options){.common = common(part),
                                          .ops = &ops,
                                          .self = part,
                                          .stacks = STACKS,
                                          .loaders = 2}));
    learner_service_use(part->learner, part->task);
}

static void be_collector(struct part *part)
{
    static const struct collector_ops ops = {.reset = nothing,
                                             .load = load,
                                             .collect = collect,
                                             .evaluate = evaluate};
    const struct shape *shape = part->job->shape;
    part->memory = calloc((size_t)shape->unroll, shape->step_bytes);
    must(collector_service_create(
        &part->collector,
        &(struct collector_service_options){
            .common = common(part), .ops = &ops, .self = part}));
    collector_service_use(part->collector, part->task);
}

static void be_coordinator(struct part *part)
{
    struct job *job = part->job;
    const struct shape *shape = job->shape;
    const size_t batch = (size_t)shape->batch;
    must(coordinator_create(
        &job->coordinator,
        &(struct coordinator_options){
            .calls = part->peer.calls,
            .store = part->store,
            .kinds = fsm_kinds,
            .fsm = {.iterations = shape->batches,
                    .stop_value = NAN,
                    .unroll_len = shape->unroll,
                    .split = shape->split,
                    .ahead = 15,
                    .batch_size = shape->batch,
                    .learner_batches = STACKS,
                    .send_policy_freq = 1000000,
                    .send_info_freq = 1000000,
                    .replay = {.mode = REPLAY_FIFO,
                               .capacity = 64 * batch,
                               .samples_per_insert = 1,
                               .error_buffer = 8.0 * (double)batch},
                    .seed = 1}}));
    must(coordinator_use(job->coordinator, part->task));
}

static void part_open(struct job *job, size_t i, size_t n)
{
    struct part *part = &job->parts[i];
    part->job = job;
    peer_open(&part->peer, (uint32_t)i, n, !job->shape->connected);
    must(ls_task_create(&part->task,
                        &(struct ls_task_options){.node = part->peer.node}));
    must(store_bus_open(
        &part->store, &(struct store_bus_options){.node = part->peer.node,
                                                  .calls = part->peer.calls}));
    if (i == 0)
        be_coordinator(part);
    else if (i == 1)
        be_learner(part);
    else
        be_collector(part);
}

static void run_part(void *self)
{
    const struct part *part = self;
    must(ls_task_run(part->task, UINT64_MAX));
}

static void part_close(struct part *part)
{
    ls_task_destroy(&part->task);
    if (part == part->job->parts)
        coordinator_destroy(&part->job->coordinator);
    ls_rpc_close(&part->peer.calls);
    learner_service_destroy(&part->learner);
    collector_service_destroy(&part->collector);
    store_close(&part->store);
    ls_node_destroy(&part->peer.node);
    free(part->memory);
}

/* Samples a second. */
static double run_job(const struct shape *shape)
{
    static struct job job;
    const size_t n = 2 + shape->collectors;
    job = (struct job){.shape = shape};
    n_worlds++;
    for (size_t i = 0; i < n; i++)
        part_open(&job, i, n);
    peers_start(&job.parts[0].peer, n, sizeof job.parts[0]);
    for (size_t i = 0; i < n; i++)
        job.parts[i].runner = bench_thread(run_part, &job.parts[i]);
    for (size_t i = 0; i < n; i++)
        bench_thread_join(job.parts[i].runner);
    for (size_t i = 0; i < n; i++)
        part_close(&job.parts[i]);
    return (double)((job.learned - WARM) * shape->batch) * (double)LS_NS_PER_S /
           (double)(job.to - job.from);
}

static double samples(void *self)
{
    return run_job(self);
}

static double mib(void *self)
{
    const struct shape *shape = self;
    return run_job(shape) * (double)bytes_of(shape) / (double)MIB;
}

/* All of it -----------------------------------------------------------------
 */

enum {
    CALLS,
    EVENTS,
    SHARED_EVENTS,
    ONE_1,
    ONE_3,
    ONE_8,
    LONG_1,
    LONG_3,
    LONG_8,
    IMAGE_1,
    IMAGE_3,
    IMAGE_8,
    CONNECTED,
    N_FIGURES
};

static struct bench_options options;
static bool failed;

static void hold(const char *name, double ratio, double least)
{
    char text[96];
    (void)snprintf(text, sizeof text, "%s (target >= %g)", name, least);
    bench_print_derived("samples", text, "x", ratio, &options);
    failed = failed || ratio < least;
}

int main(int argc, char **argv)
{
    enum { FLOATS = 4 * (4 + 4 + 1 + 1) + 2, IMAGE = 84 * 84 * 4 };
    static struct shape shapes[10];
    static const size_t collectors[] = {1, 3, 8};
    for (size_t i = 0; i < 3; i++) {
        const size_t n = collectors[i];
        shapes[i] = (struct shape){FLOATS, 128, 128, 256, 400, n, false};
        shapes[3 + i] = (struct shape){FLOATS, 128, 1, 128, 300, n, false};
        shapes[6 + i] = (struct shape){IMAGE, 32, 32, 32, 600, n, false};
    }
    shapes[9] = (struct shape){IMAGE, 32, 32, 32, 600, 3, true};
    static struct bench_figure figures[] = {
        {.name = "calls over the connection", .unit = "/s", .run = calls},
        {.name = "events of 1 MiB, over the connection",
         .unit = "MiB/s",
         .run = events},
        {.name = "events of 1 MiB, in shared memory",
         .unit = "MiB/s",
         .run = shared_events},
        {.name = "one step of 4 floats, 1 collector", .unit = "/s"},
        {.name = "one step of 4 floats, 3 collectors", .unit = "/s"},
        {.name = "one step of 4 floats, 8 collectors", .unit = "/s"},
        {.name = "128 steps of 4 floats, 1 collector", .unit = "/s"},
        {.name = "128 steps of 4 floats, 3 collectors", .unit = "/s"},
        {.name = "128 steps of 4 floats, 8 collectors", .unit = "/s"},
        {.name = "84x84x4 bytes, 1 collector", .unit = "MiB/s"},
        {.name = "84x84x4 bytes, 3 collectors", .unit = "MiB/s"},
        {.name = "84x84x4 bytes, 8 collectors", .unit = "MiB/s"},
        {.name = "84x84x4 bytes, 3, over connections", .unit = "MiB/s"},
    };
    for (size_t i = ONE_1; i < N_FIGURES; i++) {
        figures[i].run = i < IMAGE_1 ? samples : mib;
        figures[i].self = &shapes[i - ONE_1];
    }
    bench_options_read(&options, argc, argv);
    process_init();
    bench_run(figures, N_FIGURES, &options);
    bench_print("samples", figures, N_FIGURES, &options);
    hold("one step, for a call", figures[ONE_3].median / figures[CALLS].median,
         10.0);
    hold("128 steps, for a call",
         figures[LONG_3].median / figures[CALLS].median, 2.0);
    hold("images, for events over the connection",
         figures[IMAGE_3].median / figures[EVENTS].median, 0.5);
    bench_print_derived("samples", "images, for events in shared memory", "x",
                        figures[IMAGE_3].median / figures[SHARED_EVENTS].median,
                        &options);
    bench_print_derived("samples", "images, for images over connections", "x",
                        figures[IMAGE_3].median / figures[CONNECTED].median,
                        &options);
    for (size_t i = ONE_1; i < CONNECTED; i += 3)
        for (size_t k = i + 1; k < i + 3; k++) {
            char text[64];
            (void)snprintf(text, sizeof text, "%s, for 1", figures[k].name);
            hold(text, figures[k].median / figures[i].median, 0.9);
        }
    return failed ? 1 : 0;
}
