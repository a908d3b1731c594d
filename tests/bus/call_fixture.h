/* call_fixture.h - a world of nodes that have calls, and handlers that do what
 * the request's data says. */
#ifndef CALL_FIXTURE_H
#define CALL_FIXTURE_H

#include "lockstep/call.h"
#include "world_fixture.h"

#define CALL_NODES 4

struct call_world;

/* What one node has of calls. */
struct caller_node {
    struct call_world *world;
    ls_node *node;
    ls_rpc *calls;
    uint32_t id;
    struct counter entered;   /* handlers */
    struct counter held;      /* requests that are not answered yet */
    struct counter alarmed;   /* on_cancel */
    struct counter may_go;    /* where a slow handler waits */
    ls_request *requests[64]; /* those held, in order */
    size_t n_requests;
};

struct call_world {
    struct world world;
    struct caller_node at[CALL_NODES];
    size_t n;
    struct ls_rpc_options options;
    void (*prepare)(struct caller_node *at);
};

/* ---- handlers ---------------------------------------------------------- */

static inline int serve_echo(void *self, ls_request *request)
{
    struct caller_node *at = self;
    size_t size;
    const void *data = ls_request_data(request, &size);
    counter_add(&at->entered, 1);
    return ls_request_complete(&request, data, size);
}

static inline int serve_failure(void *self, ls_request *request)
{
    struct caller_node *at = self;
    (void)request;
    counter_add(&at->entered, 1);
    return ls_error(LS_ECONFIG, "the oven is cold");
}

static inline void note_alarm(void *self)
{
    struct caller_node *at = self;
    counter_add(&at->alarmed, 1);
}

/* Keeps it; the test answers. */
static inline int serve_held(void *self, ls_request *request)
{
    struct caller_node *at = self;
    ls_request_on_cancel(request, note_alarm, at);
    at->requests[at->n_requests++] = request;
    counter_add(&at->held, 1);
    return LS_OK;
}

/* Does not return before it may. */
static inline int serve_slow(void *self, ls_request *request)
{
    struct caller_node *at = self;
    counter_add(&at->entered, 1);
    if (!counter_reaches(&at->may_go, 1))
        abort();
    return ls_request_complete(&request, NULL, 0);
}

/* ---- worlds ------------------------------------------------------------ */

static inline void caller_prepare(ls_node *node, size_t index, void *self)
{
    struct call_world *w = self;
    struct caller_node *at = &w->at[index];
    at->world = w;
    at->node = node;
    at->id = ls_node_id(node);
    counter_init(&at->entered);
    counter_init(&at->held);
    counter_init(&at->alarmed);
    counter_init(&at->may_go);
    assert_ok(ls_rpc_open(&at->calls, node, &w->options));
    assert_ok(ls_rpc_serve(at->calls, "echo", LS_CALL_ANYONE, serve_echo, at));
    assert_ok(
        ls_rpc_serve(at->calls, "fail", LS_CALL_ANYONE, serve_failure, at));
    assert_ok(ls_rpc_serve(at->calls, "hold", LS_CALL_ANYONE, serve_held, at));
    assert_ok(ls_rpc_serve(at->calls, "slow", LS_CALL_ANYONE, serve_slow, at));
    assert_ok(
        ls_rpc_serve(at->calls, "mine", LS_CALL_MASTER_ONLY, serve_echo, at));
    if (w->prepare != NULL)
        w->prepare(at);
}

/* options: NULL: all default. plan: what differs from a mesh over inproc. */
static inline struct call_world *
call_world_start(size_t n, const struct ls_rpc_options *options,
                 void (*prepare)(struct caller_node *at),
                 const struct world_plan *plan)
{
    struct call_world *w = calloc(1, sizeof *w);
    struct world_plan mine =
        plan != NULL ? *plan : (struct world_plan){.transport = NULL};
    assert_non_null(w);
    w->n = n;
    w->prepare = prepare;
    if (options != NULL)
        w->options = *options;
    mine.n = n;
    mine.prepare = caller_prepare;
    mine.self = w;
    world_start(&w->world, &mine);
    return w;
}

static inline void call_world_end(struct call_world *w)
{
    for (size_t i = 0; i < w->n; i++)
        ls_rpc_close(&w->at[i].calls);
    world_destroy(&w->world);
    for (size_t i = 0; i < w->n; i++) {
        counter_fini(&w->at[i].entered);
        counter_fini(&w->at[i].held);
        counter_fini(&w->at[i].alarmed);
        counter_fini(&w->at[i].may_go);
    }
    free(w);
}

/* ---- calls ------------------------------------------------------------- */

static inline ls_call *call_start(struct caller_node *at, uint32_t to,
                                  const char *name, int wait_ms)
{
    ls_call *call = NULL;
    assert_ok(ls_call_start(&call, at->calls,
                            &(struct ls_call_options){.to = to,
                                                      .name = name,
                                                      .data = "abc",
                                                      .size = 3,
                                                      .timeout_ms = wait_ms}));
    return call;
}

/* Wait for its end; borrow until destroy. */
static inline const struct ls_call_result *call_end(ls_call *call)
{
    assert_ok(ls_call_wait(call, LONG_MS));
    return ls_call_result(call);
}

#define assert_ends(call, wanted)                                              \
    do {                                                                       \
        const struct ls_call_result *result_ = call_end(call);                 \
        if (result_->state != (wanted))                                        \
            fail_msg("it ended as %s, not %s: %s",                             \
                     ls_call_state_name(result_->state),                       \
                     ls_call_state_name(wanted), result_->text);               \
    } while (0)

static inline int ask(struct caller_node *at, uint32_t to, const char *name,
                      uint32_t channel)
{
    return ls_call_ask(
        at->calls,
        &(struct ls_call_options){
            .to = to, .channel = channel, .name = name, .timeout_ms = LONG_MS},
        NULL, NULL);
}

static inline struct ls_rpc_stats stats_of(struct caller_node *at)
{
    struct ls_rpc_stats stats;
    ls_rpc_stats(at->calls, &stats);
    return stats;
}

#endif
