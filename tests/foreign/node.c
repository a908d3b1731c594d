/* A node beside docs/examples/peer.py, as a process of its own:
 *
 *   foreign_node ID WORLD BIND SECRET SEED EPOCHS
 *
 * SEED is the address of another node, or "-". It prints "at ENDPOINT", waits
 * for the world, emits a "greet", calls "double" at node 1, goes through EPOCHS
 * epochs of the barrier, and waits for node 1 to leave. It prints what it saw
 * of each: of the "count" that node 1 emitted, how many came in order, and how
 * many did not; and how much of what came it refused. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/lockstep.h>

#define WAIT_MS 60000
#define PEER    1u
#define FLAG    4u /* of this node, in each epoch; the peer's is 1 */

struct seen {
    ls_mutex lock;
    ls_cond changed;
    unsigned counted; /* "count", each the number after the one before */
    unsigned wrong;
    bool left, lost;
};

static int on_count(void *self, const struct ls_event *event)
{
    struct seen *seen = self;
    char text[16] = "";
    if (event->size < sizeof text)
        memcpy(text, event->data, event->size);
    ls_mutex_lock(&seen->lock);
    const bool next = event->origin == PEER &&
                      event->sequence == seen->counted + 1 &&
                      strtoul(text, NULL, 10) == seen->counted;
    seen->counted += next ? 1 : 0;
    seen->wrong += next ? 0 : 1;
    ls_cond_signal(&seen->changed);
    ls_mutex_unlock(&seen->lock);
    return LS_OK;
}

static void on_member(void *self, const struct ls_member *member)
{
    struct seen *seen = self;
    if (member->id != PEER)
        return;
    ls_mutex_lock(&seen->lock);
    seen->left = seen->left || member->state == LS_MEMBER_LEFT;
    seen->lost = seen->lost || member->state == LS_MEMBER_LOST;
    ls_cond_signal(&seen->changed);
    ls_mutex_unlock(&seen->lock);
}

static int failed(const char *what)
{
    fprintf(stderr, "foreign_node: %s: %s\n", what, ls_error_text());
    return 1;
}

static int call(ls_rpc *calls)
{
    void *answer = NULL;
    size_t size = 0;
    const struct ls_call_options options = {.to = PEER,
                                            .name = "double",
                                            .data = "twice",
                                            .size = 5,
                                            .timeout_ms = WAIT_MS};
    const struct ls_call_options unknown = {
        .to = PEER, .name = "halve", .timeout_ms = WAIT_MS};
    const int status = ls_call_ask(calls, &options, &answer, &size);
    if (status == LS_OK)
        printf("double %.*s\n", (int)size, (const char *)answer);
    free(answer);
    if (status != LS_OK ||
        ls_call_ask(calls, &unknown, &answer, &size) != LS_EHANDLER)
        return failed("call");
    return 0;
}

static int go_through(ls_barrier *gate, uint64_t epochs)
{
    struct ls_barrier_epoch_info info = {.epoch = 0};
    for (uint64_t i = 0; i < epochs; i++)
        if (ls_barrier_wait(gate, FLAG, WAIT_MS, &info) != LS_OK ||
            info.epoch != i || info.flags != (FLAG | 1u))
            return failed("barrier");
    printf("epochs %" PRIu64 " of %u members\n", info.epoch + 1, info.members);
    return 0;
}

/* Until the peer has gone: all that it emitted came before. */
static int wait_left(ls_node *node, struct seen *seen)
{
    const int64_t deadline = ls_deadline(ls_node_runtime(node), WAIT_MS);
    struct ls_node_stats stats;
    int status = LS_OK;
    ls_mutex_lock(&seen->lock);
    while (!seen->left && !seen->lost && status == LS_OK)
        status = ls_cond_wait(&seen->changed, &seen->lock, deadline);
    printf("counted %u, wrong %u\n%s\n", seen->counted, seen->wrong,
           seen->left ? "left" : "lost");
    ls_mutex_unlock(&seen->lock);
    ls_node_stats(node, &stats);
    printf("refused %" PRIu64 "\n", stats.refused);
    return status == LS_OK ? 0 : failed("node 1 did not leave");
}

static int take_part(ls_node *node, ls_rpc *calls, ls_barrier *gate,
                     struct seen *seen, uint64_t epochs)
{
    if (ls_on(node, "count", on_count, seen) != LS_OK ||
        ls_node_on_member(node, on_member, seen) != LS_OK ||
        ls_node_open(node) != LS_OK)
        return failed("open");
    printf("at %s\n", ls_node_endpoint(node));
    fflush(stdout);
    if (ls_node_join(node) != LS_OK)
        return failed("join");
    if (ls_emit(node, "greet", "hello", 5) != LS_OK)
        return failed("emit");
    return call(calls) != 0 || go_through(gate, epochs) != 0 ||
                   wait_left(node, seen) != 0
               ? 1
               : 0;
}

static int run(const struct ls_node_options *options, uint64_t epochs)
{
    struct seen seen = {.counted = 0};
    ls_node *node = NULL;
    ls_rpc *calls = NULL;
    ls_barrier *gate = NULL;
    int code = 1;
    if (ls_node_create(&node, options) != LS_OK ||
        ls_mutex_init(&seen.lock, ls_node_runtime(node)) != LS_OK ||
        ls_cond_init(&seen.changed, ls_node_runtime(node)) != LS_OK ||
        ls_rpc_open(&calls, node, NULL) != LS_OK ||
        ls_barrier_create(&gate, node, NULL) != LS_OK)
        (void)failed("create");
    else
        code = take_part(node, calls, gate, &seen, epochs);
    ls_barrier_destroy(&gate);
    ls_rpc_close(&calls);
    ls_node_destroy(&node);
    return code;
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fputs("usage: foreign_node ID WORLD BIND SECRET SEED EPOCHS\n", stderr);
        return 2;
    }
    struct ls_node_options options;
    const char *seed = argv[5];
    ls_node_options_init(&options);
    options.id = (uint32_t)strtoul(argv[1], NULL, 10);
    options.world_size = (uint32_t)strtoul(argv[2], NULL, 10);
    options.bind = argv[3];
    options.attach = &seed;
    options.n_attach = strcmp(seed, "-") == 0 ? 0 : 1;
    options.start_timeout_ms = WAIT_MS;
    if (ls_security_file(&options.security, argv[4]) != LS_OK)
        return failed("secret");
    const int code = run(&options, strtoull(argv[6], NULL, 10));
    ls_security_destroy(&options.security);
    return code;
}
