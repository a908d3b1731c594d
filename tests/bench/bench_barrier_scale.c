/* What a barrier of a thousand members costs: as many state machines as asked
 * for, their messages as bytes, on a network in virtual time. A message takes
 * 50 µs, give or take 20, and each node 1 µs for each that it sends or is sent.
 * One thread, one seed: the same figures on any machine.
 *
 *   bench_barrier_scale [MEMBERS]
 *
 * Latency is from the last entry to the last exit. Memory is the most that this
 * process has had so far, so the ways stand in the order of their need. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barrier_epoch.h"
#include "lockstep/random.h"
#include "lockstep/runtime.h"

#define DELAY_NS   INT64_C(30000) /* at least */
#define SPREAD_NS  40000          /* and up to so much more */
#define WORK_NS    1000
#define ENTRY_NS   100000 /* all enter within so long */
#define EPOCHS_MAX 10

struct way {
    const char *name;
    struct ls_epoch_rules rules;
    unsigned n_epochs;
};

struct event {
    int64_t at;
    uint64_t order; /* of those at the same time */
    uint32_t from;
    uint32_t to;
    unsigned char *bytes; /* own; NULL: the node is to enter, or ask again */
    bool enter;
    size_t size;
};

struct node {
    struct ls_epoch *machine; /* own */
    int64_t busy_until;
    int64_t tick_at; /* for which an event is queued */
    bool inside;
};

struct network {
    struct ls_rng rng;
    int64_t now;
    uint32_t n;
    struct node *nodes; /* own */
    struct event *heap; /* own */
    size_t n_heap;
    size_t capacity;
    uint64_t order;
    uint64_t n_sent;
    uint32_t n_inside;
    int64_t last_entry;
    int64_t last_exit;
};

static void *must(void *memory)
{
    if (memory == NULL) {
        fputs("bench_barrier_scale: no memory\n", stderr);
        exit(1);
    }
    return memory;
}

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct network *net, struct event event)
{
    if (net->n_heap == net->capacity) {
        net->capacity = 2 * net->capacity + 1024;
        net->heap = must(realloc(net->heap, net->capacity * sizeof event));
    }
    event.order = net->order++;
    size_t at = net->n_heap++;
    for (; at > 0 && is_before(&event, &net->heap[(at - 1) / 2]);
         at = (at - 1) / 2)
        net->heap[at] = net->heap[(at - 1) / 2];
    net->heap[at] = event;
}

static struct event pop(struct network *net)
{
    const struct event first = net->heap[0];
    const struct event last = net->heap[--net->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < net->n_heap; at = child) {
        if (child + 1 < net->n_heap &&
            is_before(&net->heap[child + 1], &net->heap[child]))
            child++;
        if (!is_before(&net->heap[child], &last))
            break;
        net->heap[at] = net->heap[child];
    }
    net->heap[at] = last;
    return first;
}

static void send_out(struct network *net, uint32_t from)
{
    struct node *node = &net->nodes[from];
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
    size_t n;
    const struct ls_epoch_out *out = ls_epoch_take(node->machine, &n);
    for (size_t i = 0; i < n; i++) {
        node->busy_until += WORK_NS;
        struct event event = {
            .at = node->busy_until + DELAY_NS +
                  (int64_t)ls_rng_below(&net->rng, SPREAD_NS + 1),
            .from = from,
            .to = out[i].to};
        event.size = ls_barrier_wire_encode(&out[i].message, bytes);
        event.bytes = must(malloc(event.size));
        memcpy(event.bytes, bytes, event.size);
        push(net, event);
        net->n_sent++;
    }
}

static void settle(struct network *net, uint32_t id)
{
    struct node *node = &net->nodes[id];
    send_out(net, id);
    const struct ls_epoch_end *end = ls_epoch_end(node->machine);
    if (node->inside && end != NULL) {
        node->inside = false;
        net->n_inside--;
        net->last_exit = node->busy_until;
        if (end->status != LS_OK) {
            fprintf(stderr, "bench_barrier_scale: node %" PRIu32 ": %s\n", id,
                    end->reason.text);
            exit(1);
        }
    }
    const int64_t at = ls_epoch_wake_at(node->machine);
    if (at != LS_FOREVER && at != node->tick_at) {
        node->tick_at = at;
        push(net, (struct event){.at = at, .to = id});
    }
}

/* The node's turn comes when it has done what came before. */
static void begin_work(struct network *net, struct node *node, int64_t ns)
{
    if (node->busy_until < net->now)
        node->busy_until = net->now;
    node->busy_until += ns;
}

static void deliver(struct network *net, const struct event *event)
{
    struct ls_barrier_missing scratch[LS_BARRIER_MISSING_MAX];
    struct ls_barrier_message message;
    struct node *node = &net->nodes[event->to];
    begin_work(net, node, WORK_NS);
    if (ls_barrier_wire_decode(event->bytes, event->size, &message, scratch) !=
        LS_OK)
        exit(1);
    ls_epoch_receive(node->machine, node->busy_until, event->from, 1, &message);
    free(event->bytes);
}

static void act(struct network *net, const struct event *event)
{
    struct node *node = &net->nodes[event->to];
    if (event->bytes != NULL) {
        deliver(net, event);
    } else if (!event->enter) {
        begin_work(net, node, 0);
        ls_epoch_tick(node->machine, net->now);
    } else {
        begin_work(net, node, 0);
        node->inside = true;
        net->last_entry = net->now;
        ls_epoch_enter(node->machine, net->now, LS_FOREVER, 0);
    }
    settle(net, event->to);
}

/* Returns its latency. */
static int64_t run_epoch(struct network *net)
{
    for (uint32_t i = 0; i < net->n; i++)
        push(net,
             (struct event){.at = net->now + 1 +
                                  (int64_t)ls_rng_below(&net->rng, ENTRY_NS),
                            .to = i,
                            .enter = true});
    net->n_inside = net->n;
    while (net->n_inside > 0) {
        const struct event event = pop(net);
        net->now = event.at;
        act(net, &event);
    }
    return net->last_exit - net->last_entry;
}

static void create(struct network *net, uint32_t n, const struct way *way)
{
    *net = (struct network){.n = n};
    ls_rng_seed(&net->rng, 1, 0);
    net->nodes = must(calloc(n, sizeof *net->nodes));
    for (uint32_t i = 0; i < n; i++) {
        struct ls_epoch **machine = &net->nodes[i].machine;
        if (ls_epoch_create(machine, i, &way->rules) != LS_OK)
            must(NULL);
        ls_epoch_set_self(*machine, 1, 0);
        for (uint32_t k = 0; k < n; k++) {
            if (k != i && ls_epoch_joined(*machine, 0, k, 1, 0) != LS_OK)
                must(NULL);
        }
    }
}

static void destroy(struct network *net)
{
    for (size_t i = 0; i < net->n_heap; i++)
        free(net->heap[i].bytes);
    for (uint32_t i = 0; i < net->n; i++)
        ls_epoch_destroy(&net->nodes[i].machine);
    free(net->nodes);
    free(net->heap);
}

static double peak_mib(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    }
    if (file != NULL)
        fclose(file);
    return (double)kib / 1024;
}

static void measure(const struct way *way, uint32_t n)
{
    static struct network net;
    int64_t sum = 0;
    create(&net, n, way);
    for (unsigned i = 0; i < way->n_epochs; i++)
        sum += run_epoch(&net);
    printf("%-8s %8" PRIu32 " %16" PRIu64 " %16.1f %14.1f\n", way->name, n,
           net.n_sent / way->n_epochs,
           (double)sum / way->n_epochs / (double)LS_NS_PER_US, peak_mib());
    fflush(stdout);
    destroy(&net);
}

int main(int argc, char **argv)
{
    const unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    if (n < 2 || n > 100000) {
        fputs("usage: bench_barrier_scale [MEMBERS]\n", stderr);
        return 2;
    }
    const struct ls_epoch_rules rules = {.least = (uint32_t)n,
                                         .most = (uint32_t)n};
    struct way ways[] = {{"tree", rules, EPOCHS_MAX},
                         {"leader", rules, EPOCHS_MAX},
                         {"mesh", rules, 1}};
    ways[0].rules.fanout = LS_EPOCH_FANOUT;
    ways[1].rules.fanout = 1;
    ways[2].rules.direct_max = (uint32_t)n;
    printf("%-8s %8s %16s %16s %14s\n", "way", "members", "messages/epoch",
           "latency (us)", "memory (MiB)");
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        measure(&ways[i], (uint32_t)n);
    return 0;
}
