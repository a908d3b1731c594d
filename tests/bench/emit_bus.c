/* Lockstep's ends: a node that emits under policy block, and nodes that
 * handle. A round trip never leaves the handlers: each answer is emitted by
 * the one that handles. */
#include "emit_end.h"

#include <stdlib.h>
#include <string.h>

#include "lockstep/event.h"
#include "process.h"

struct end {
    ls_node *node;
    struct emit_job job;
    unsigned id;
    char *payload;
    long handled;
    struct emit_span span;
    struct bench_latch finished;
};

static void keep(void *data, void *hint)
{
    (void)data;
    (void)hint;
}

static void emit(struct end *end, const char *event)
{
    const struct ls_emission in = {
        .event = event,
        .data = end->payload,
        .size = end->job.size,
        .delivery = LS_DELIVERY_BLOCK,
        .timeout_ms = EMIT_PATIENCE_MS,
        .release = end->job.size >= EMIT_ZERO_COPY ? keep : NULL};
    if (ls_emit_with(end->node, &in) != LS_OK)
        bench_fail("emit");
}

static void finish(struct end *end)
{
    end->span.to = bench_now();
    bench_latch_open(&end->finished);
}

static int on_data(void *self, const struct ls_event *event)
{
    struct end *end = self;
    (void)event;
    if (end->handled++ == 0)
        end->span.from = bench_now();
    if (end->handled == end->job.n)
        finish(end);
    return LS_OK;
}

static int on_ping(void *self, const struct ls_event *event)
{
    (void)event;
    emit(self, "pong");
    return LS_OK;
}

static int on_pong(void *self, const struct ls_event *event)
{
    struct end *end = self;
    (void)event;
    if (++end->handled == end->job.n)
        finish(end);
    else
        emit(end, "ping");
    return LS_OK;
}

static void listen(struct end *end)
{
    int status = LS_OK;
    if (end->job.trip && end->id == 0)
        status = ls_on(end->node, "pong", on_pong, end);
    else if (end->job.trip)
        status = ls_on(end->node, "ping", on_ping, end);
    else if (end->id != 0)
        status = ls_on(end->node, "data", on_data, end);
    if (status != LS_OK)
        bench_fail("on");
}

static struct end *create(const struct emit_job *job, unsigned id)
{
    struct end *end = calloc(1, sizeof *end);
    if (end == NULL || (end->payload = calloc(1, job->size)) == NULL)
        bench_fail("no memory");
    bench_latch_init(&end->finished);
    end->job = *job;
    end->id = id;
    return end;
}

static void *bus_open(const struct emit_job *job, unsigned id, const char *bind,
                      const char *peer, char *endpoint)
{
    struct end *end = create(job, id);
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.job = bench_job();
    options.id = id;
    options.world_size = 1 + job->n_receivers;
    options.bind = strcmp(bind, "tcp") == 0 ? NULL : bind;
    options.attach = &peer;
    options.n_attach = peer != NULL;
    if (job->way == EMIT_FAR)
        options.shared_bytes = 0;
    if (ls_node_create(&end->node, &options) != LS_OK)
        bench_fail("node");
    listen(end);
    if (ls_node_open(end->node) != LS_OK)
        bench_fail("open");
    (void)strncpy(endpoint, ls_node_endpoint(end->node), EMIT_ENDPOINT_MAX);
    return end;
}

static void check_losses(const struct end *end)
{
    struct ls_node_stats stats;
    ls_node_stats(end->node, &stats);
    if (stats.lost + stats.missed + stats.dropped != 0) {
        (void)ls_error(LS_ELOST, "%llu lost, %llu missed",
                       (unsigned long long)stats.lost,
                       (unsigned long long)stats.missed);
        bench_fail("events were lost under policy block");
    }
}

static struct emit_span bus_run(void *self, const char *peer)
{
    struct end *end = self;
    (void)peer; /* the mesh knows */
    if (ls_node_join(end->node) != LS_OK)
        bench_fail("join");
    if (end->id == 0 && !end->job.trip)
        for (long i = 0; i < end->job.n; i++)
            emit(end, "data");
    if (end->id == 0 && end->job.trip) {
        end->span.from = bench_now();
        emit(end, "ping");
    }
    if ((end->id == 0) == end->job.trip)
        bench_latch_wait(&end->finished, EMIT_PATIENCE_MS);
    check_losses(end);
    return end->span;
}

static void bus_close(void *self)
{
    struct end *end = self;
    ls_node_destroy(&end->node);
    bench_latch_fini(&end->finished);
    free(end->payload);
    free(end);
}

const struct emit_ops emit_bus = {bus_open, bus_run, bus_close};
