/* One member of a world, for the tests with many processes.
 *
 *   member ID WORLD TOPOLOGY ENDPOINT SEED greet
 *       emits one event when the world is formed, hears those of all others,
 *       and says "heard N"
 *   member ID WORLD TOPOLOGY ENDPOINT SEED barrier EPOCHS [near]
 *       goes through so many epochs and prints "EPOCH ENTERED LEFT" for each,
 *       in ns of the clock that all processes of a host share; and with `near`
 *       "sent N near N repeated N": the messages that this took, and those of
 *       them that went through shared memory, which it has for that
 *   member ID WORLD TOPOLOGY ENDPOINT SEED endure SILENCE_MS [again]
 *       goes through epochs until one of the members is sent SIGTERM, and with
 *       `again` even if some fail: endure.h
 *   member ID WORLD TOPOLOGY ENDPOINT SEED endless
 *       says "first" after its first epoch, and goes on until one fails; then
 *       prints the status, the time, and what the error says
 *   member ID WORLD TOPOLOGY ENDPOINT SEED watch
 *       stays until its input ends, and prints what becomes of the others,
 *       "ready ID INCARNATION", "lost ID REASON", "left ID"; "is INCARNATION"
 *       of itself at first and when it has rejoined, after "error TEXT"
 *
 * SEED is the address of one member; it may be one's own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/lockstep.h>

#include "endure.h"

#define WAIT_MS 60000

static int failed(const char *what)
{
    fprintf(stderr, "member: %s: %s\n", what, ls_error_text());
    return 1;
}

struct ears {
    ls_mutex lock;
    ls_cond changed;
    uint32_t heard;
};

static int hear(void *self, const struct ls_event *event)
{
    struct ears *ears = self;
    (void)event;
    ls_mutex_lock(&ears->lock);
    ears->heard++;
    ls_cond_signal(&ears->changed);
    ls_mutex_unlock(&ears->lock);
    return LS_OK;
}

static int greet(ls_node *node, uint32_t world)
{
    ls_runtime *runtime = ls_node_runtime(node);
    const int64_t deadline = ls_deadline(runtime, WAIT_MS);
    struct ears ears = {.heard = 0};
    if (ls_mutex_init(&ears.lock, runtime) != LS_OK ||
        ls_cond_init(&ears.changed, runtime) != LS_OK ||
        ls_on(node, "greet", hear, &ears) != LS_OK ||
        ls_node_start(node) != LS_OK ||
        ls_emit(node, "greet", "first", 5) != LS_OK)
        return failed("start");
    int status = LS_OK;
    ls_mutex_lock(&ears.lock);
    while (ears.heard < world && status == LS_OK)
        status = ls_cond_wait(&ears.changed, &ears.lock, deadline);
    printf("heard %" PRIu32 "\n", ears.heard);
    ls_mutex_unlock(&ears.lock);
    ls_node_stop(node, LS_OK);
    return status == LS_OK ? 0 : failed("not all were heard");
}

static void say_sent(ls_node *node, ls_barrier *gate)
{
    struct ls_node_stats stats;
    struct ls_barrier_stats sent;
    ls_node_stats(node, &stats);
    ls_barrier_stats(gate, &sent);
    printf("sent %" PRIu64 " near %" PRIu64 " repeated %" PRIu64 "\n",
           sent.sent, stats.near, sent.repeated);
}

static int go_through(ls_node *node, uint64_t epochs,
                      struct ls_barrier_epoch_info *infos, bool near)
{
    ls_barrier *gate;
    if (infos == NULL || ls_barrier_create(&gate, node, NULL) != LS_OK ||
        ls_node_start(node) != LS_OK)
        return failed("start");
    for (uint64_t i = 0; i < epochs; i++)
        if (ls_barrier_wait(gate, 0, WAIT_MS, &infos[i]) != LS_OK)
            return failed("barrier");
    for (uint64_t i = 0; i < epochs; i++)
        printf("%" PRIu64 " %" PRId64 " %" PRId64 "\n", infos[i].epoch,
               infos[i].entered_at, infos[i].left_at);
    if (near)
        say_sent(node, gate);
    ls_barrier_destroy(&gate);
    return 0;
}

static int barrier(ls_node *node, uint64_t epochs, bool near)
{
    struct ls_barrier_epoch_info *infos = calloc(epochs, sizeof *infos);
    const int code = go_through(node, epochs, infos, near);
    free(infos);
    return code;
}

static int endless(ls_node *node)
{
    ls_barrier *gate;
    if (ls_barrier_create(&gate, node, NULL) != LS_OK ||
        ls_node_start(node) != LS_OK ||
        ls_barrier_wait(gate, 0, WAIT_MS, NULL) != LS_OK)
        return failed("start");
    puts("first");
    fflush(stdout);
    int status = LS_OK;
    while (status == LS_OK)
        status = ls_barrier_wait(gate, 0, WAIT_MS, NULL);
    printf("%s %" PRId64 " %s\n", ls_status_name(status),
           ls_now(ls_node_runtime(node)), ls_error_text());
    fflush(stdout);
    (void)getchar(); /* who ended first must not be a loss to the others */
    ls_barrier_destroy(&gate);
    return 0;
}

static void say_is(const ls_node *node)
{
    printf("is %" PRIx64 "\n", ls_node_incarnation(node));
    fflush(stdout);
}

static void say_member(void *self, const struct ls_member *member)
{
    (void)self;
    if (member->state == LS_MEMBER_READY)
        printf("ready %" PRIu32 " %" PRIx64 "\n", member->id,
               member->incarnation);
    else if (member->state == LS_MEMBER_LOST)
        printf("lost %" PRIu32 " %s\n", member->id,
               ls_status_name(member->reason));
    else
        printf("left %" PRIu32 "\n", member->id);
    fflush(stdout);
}

/* Ends when nothing comes any more that would end its wait. */
static void say_errors(void *self)
{
    ls_node *node = self;
    while (ls_wait_for(node, "never", -1, NULL, NULL) == LS_ELOST) {
        printf("error %s\n", ls_error_text());
        say_is(node);
    }
}

static int watch(ls_node *node)
{
    ls_thread *errors;
    char line[64];
    if (ls_node_on_member(node, say_member, NULL) != LS_OK ||
        ls_node_start(node) != LS_OK ||
        ls_thread_spawn(ls_node_runtime(node), &errors, "errors", say_errors,
                        node) != LS_OK)
        return failed("start");
    say_is(node);
    while (fgets(line, sizeof line, stdin) != NULL)
        ;
    ls_node_stop(node, LS_OK);
    return ls_thread_join(&errors, LS_FOREVER) == LS_OK ? 0 : failed("join");
}

static int topology_of(const char *name)
{
    return strcmp(name, "star") == 0 ? LS_TOPOLOGY_STAR : LS_TOPOLOGY_MESH;
}

/* more: there is one word more. */
static int run(ls_node *node, const char *mode, const char *size, bool more)
{
    if (strcmp(mode, "greet") == 0)
        return greet(node, ls_node_world_size(node));
    if (strcmp(mode, "watch") == 0)
        return watch(node);
    if (strcmp(mode, "endless") == 0)
        return endless(node);
    if (strcmp(mode, "endure") == 0)
        return endure(node, more);
    return barrier(node, strtoull(size, NULL, 10), more);
}

int main(int argc, char **argv)
{
    if (argc < 7) {
        fputs("usage: member ID WORLD TOPOLOGY ENDPOINT SEED "
              "greet|barrier|endless|endure|watch ...\n",
              stderr);
        return 2;
    }
    const char *mode = argv[6];
    const char *size = argc > 7 ? argv[7] : "0";
    struct ls_node_options options;
    ls_node_options_init(&options);
    const char *seed = argv[5];
    options.id = (uint32_t)strtoul(argv[1], NULL, 10);
    options.world_size = (uint32_t)strtoul(argv[2], NULL, 10);
    options.topology = (enum ls_topology)topology_of(argv[3]);
    options.bind = argv[4];
    options.insecure = true; /* hosts that are namespaces of this one */
    const bool near = strcmp(mode, "barrier") == 0 && argc > 8;
    if (!near && strncmp(options.bind, "tcp://198.18.", 13) == 0)
        options.shared_bytes = 0;
    options.start_timeout_ms = WAIT_MS;
    options.attach = &seed;
    options.n_attach = strcmp(seed, argv[4]) == 0 ? 0 : 1;
    if (strcmp(mode, "endure") == 0)
        options.silence_ms = (int)strtol(size, NULL, 10);
    ls_node *node;
    if (ls_node_create(&node, &options) != LS_OK)
        return failed("create");
    const int code = run(node, mode, size, argc > 8);
    ls_node_destroy(&node);
    return code;
}
