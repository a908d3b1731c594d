/* One node asks another: an answer, a failure, and a call that is given up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/lockstep.h>

static int invert(void *self, ls_request *request)
{
    double x = 0;
    size_t size;
    const void *data = ls_request_data(request, &size);
    (void)self;
    if (size == sizeof x)
        memcpy(&x, data, sizeof x);
    if (x == 0)
        return ls_error(LS_EINVAL, "0 has no inverse");
    x = 1 / x;
    return ls_request_complete(&request, &x, sizeof x);
}

/* An answer may come later, from any thread: this one keeps the request. */
static int think(void *self, ls_request *request)
{
    ls_request **thought = self;
    *thought = request;
    return LS_OK;
}

static void ask(ls_rpc *calls, double x)
{
    void *answer = NULL;
    size_t size;
    const struct ls_call_options options = {.to = 1,
                                            .name = "invert",
                                            .data = &x,
                                            .size = sizeof x,
                                            .timeout_ms = 1000};
    if (ls_call_ask(calls, &options, &answer, &size) == LS_OK)
        printf("1 / %g is %g\n", x, *(const double *)answer);
    else
        printf("%s\n", ls_error_text());
    free(answer);
}

static void give_up(ls_rpc *calls)
{
    ls_call *call;
    const struct ls_call_options options = {
        .to = 1, .name = "think", .timeout_ms = 20};
    if (ls_call_start(&call, calls, &options) != LS_OK)
        return;
    if (ls_call_wait(call, LS_WAIT_DEFAULT) == LS_OK)
        printf("%s\n", ls_call_state_name(ls_call_state(call)));
    ls_call_destroy(&call);
}

static ls_request *thought;

/* What is served before the node is open, no call can miss. */
static ls_node *create(uint32_t id, ls_rpc **calls)
{
    static const char *const addresses[] = {"inproc://asker",
                                            "inproc://server"};
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_node_options_init(&options);
    options.id = id;
    options.bind = addresses[id];
    options.attach = addresses;
    options.n_attach = 2;
    options.world_size = 2;
    if (ls_node_create(&node, &options) != LS_OK ||
        ls_rpc_open(calls, node, NULL) != LS_OK ||
        ls_rpc_serve(*calls, "invert", LS_CALL_ANYONE, invert, NULL) != LS_OK ||
        ls_rpc_serve(*calls, "think", LS_CALL_ANYONE, think, &thought) !=
            LS_OK) {
        fprintf(stderr, "%s\n", ls_error_text());
        exit(1);
    }
    return node;
}

static void start(void *node)
{
    if (ls_node_start(node) != LS_OK)
        fprintf(stderr, "%s\n", ls_error_text());
}

int main(void)
{
    ls_rpc *asks, *serves;
    ls_thread *thread = NULL;
    ls_node *asker = create(0, &asks), *server = create(1, &serves);
    if (ls_thread_spawn(ls_runtime_threads(), &thread, "server", start,
                        server) != LS_OK)
        return 1;
    start(asker);
    if (ls_thread_join(&thread, LS_FOREVER) != LS_OK)
        return 1;
    ask(asks, 8);
    ask(asks, 0);
    give_up(asks);
    ls_rpc_close(&asks);
    ls_rpc_close(&serves);
    if (thought != NULL)
        (void)ls_request_fail(&thought, "nobody waits for it any more");
    ls_node_destroy(&asker);
    ls_node_destroy(&server);
    return 0;
}
