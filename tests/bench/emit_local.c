/* From one thread to another in a process: an event that its own node handles,
 * and a queue, which is the least that it can cost. A round trip comes back by
 * a queue in both cases. */
#include "emit_end.h"

#include <string.h>

#include "lockstep/event.h"
#include "lockstep/queue.h"
#include "process.h"

#define ITEM_SIZE 32
#define CAPACITY  16384 /* the window that a node has by default */

struct local {
    struct emit_job job;
    ls_node *node;
    ls_queue *there, *back;
    long handled;
    struct emit_span span;
};

static ls_queue *make_queue(void)
{
    ls_queue *queue;
    if (ls_queue_create(&queue, ls_runtime_threads(),
                        &(struct ls_queue_options){.capacity = CAPACITY,
                                                   .item_size = ITEM_SIZE}) !=
        LS_OK)
        bench_fail("queue");
    return queue;
}

static void put(ls_queue *queue, const char *item)
{
    if (ls_queue_put(queue, item, LS_FOREVER) != LS_OK)
        bench_fail("put");
}

static void get(ls_queue *queue, char *item)
{
    if (ls_queue_get(queue, item, LS_FOREVER) != LS_OK)
        bench_fail("get");
}

/* Each answer when it is a round trip, else the last alone. */
static void handled(struct local *local, const char *item)
{
    if (++local->handled == local->job.n || local->job.trip)
        put(local->back, item);
}

static int on_event(void *self, const struct ls_event *event)
{
    handled(self, event->data);
    return LS_OK;
}

static void queue_main(void *self)
{
    struct local *local = self;
    char item[ITEM_SIZE];
    for (long i = 0; i < local->job.n; i++) {
        get(local->there, item);
        handled(local, item);
    }
}

static void send_all(struct local *local)
{
    char item[ITEM_SIZE] = {0};
    const struct ls_emission in = {.event = "data",
                                   .data = item,
                                   .size = sizeof item,
                                   .scope = LS_SCOPE_LOCAL,
                                   .delivery = LS_DELIVERY_BLOCK};
    local->span.from = bench_now();
    for (long i = 0; i < local->job.n; i++) {
        if (local->there != NULL)
            put(local->there, item);
        else if (ls_emit_with(local->node, &in) != LS_OK)
            bench_fail("emit");
        if (local->job.trip)
            get(local->back, item);
    }
    if (!local->job.trip)
        get(local->back, item);
    local->span.to = bench_now();
}

static void by_node(struct local *local)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.world_size = 1;
    options.bind = "inproc://local";
    if (ls_node_create(&local->node, &options) != LS_OK ||
        ls_on(local->node, "data", on_event, local) != LS_OK ||
        ls_node_start(local->node) != LS_OK)
        bench_fail("node");
    send_all(local);
    ls_node_destroy(&local->node);
}

static void by_queue(struct local *local)
{
    local->there = make_queue();
    ls_thread *thread = bench_thread(queue_main, local);
    send_all(local);
    bench_thread_join(thread);
    ls_queue_destroy(&local->there);
}

struct emit_span emit_local(const struct emit_job *job)
{
    struct local local = {.job = *job};
    local.back = make_queue();
    if (job->way == EMIT_QUEUE)
        by_queue(&local);
    else
        by_node(&local);
    ls_queue_destroy(&local.back);
    return local.span;
}
