/* Calls between real nodes: threads, order, opening and closing. */
#include "call_fixture.h"
#include "test.h"

static struct call_world *three(const struct ls_rpc_options *options)
{
    return call_world_start(3, options, NULL, NULL);
}

/* ---- threads and order ------------------------------------------------- */

struct order {
    struct caller_node *at;
    int events;
    int seen; /* by the request */
};

static struct order order;

static int on_event(void *self, const struct ls_event *event)
{
    (void)self;
    (void)event;
    order.events++;
    return LS_OK;
}

static int serve_order(void *self, ls_request *request)
{
    (void)self;
    order.seen = order.events;
    return ls_request_complete(&request, NULL, 0);
}

static void serve_in_order(struct caller_node *at)
{
    assert_ok(
        ls_rpc_serve(at->calls, "order", LS_CALL_ANYONE, serve_order, at));
    if (at->id == 2)
        assert_ok(ls_on(at->node, "tick", on_event, NULL));
}

TEST(a_call_comes_after_the_reliable_events_before_it)
{
    struct call_world *w = call_world_start(2, NULL, serve_in_order, NULL);
    order = (struct order){0};
    for (int i = 1; i <= 200; i++) {
        assert_ok(
            ls_emit_with(w->at[0].node,
                         &(struct ls_emission){.event = "tick",
                                               .delivery = LS_DELIVERY_RELIABLE,
                                               .timeout_ms = LONG_MS}));
        assert_ok(ask(&w->at[0], 2, "order", 0));
        assert_int_equal(order.seen, i);
    }
    call_world_end(w);
}

TEST(workers_run_handlers_at_the_same_time)
{
    struct call_world *w = three(&(struct ls_rpc_options){.n_workers = 2});
    ls_call *calls[2];
    for (int i = 0; i < 2; i++)
        calls[i] = call_start(&w->at[0], 2, "slow", LONG_MS);
    assert_reaches(&w->at[1].entered, 2); /* both are in it */
    counter_add(&w->at[1].may_go, 1);
    for (int i = 0; i < 2; i++) {
        assert_ends(calls[i], LS_CALL_COMPLETED);
        ls_call_destroy(&calls[i]);
    }
    call_world_end(w);
}

static int serve_relay(void *self, ls_request *request)
{
    struct caller_node *at = self;
    const int status = ask(at, 3, "echo", 0);
    if (status != LS_OK)
        return status;
    return ls_request_complete(&request, NULL, 0);
}

static void serve_relays(struct caller_node *at)
{
    assert_ok(
        ls_rpc_serve(at->calls, "relay", LS_CALL_ANYONE, serve_relay, at));
}

TEST(a_worker_may_ask_in_turn_the_dispatch_thread_not)
{
    struct call_world *w = call_world_start(
        3, &(struct ls_rpc_options){.n_workers = 1}, serve_relays, NULL);
    assert_ok(ask(&w->at[0], 2, "relay", 0));
    call_world_end(w);
    w = call_world_start(3, NULL, serve_relays, NULL);
    assert_fails(ask(&w->at[0], 2, "relay", 0), LS_EHANDLER);
    assert_error_has("dispatch thread");
    call_world_end(w);
}

static int serve_wait(void *self, ls_request *request)
{
    struct caller_node *at = self;
    ls_call *call = call_start(at, 3, "hold", LONG_MS);
    const int status = ls_call_wait(call, LS_WAIT_DEFAULT);
    ls_call_destroy(&call);
    (void)request;
    return status;
}

static void serve_waits(struct caller_node *at)
{
    assert_ok(ls_rpc_serve(at->calls, "wait", LS_CALL_ANYONE, serve_wait, at));
}

/* A request whose call ended early has come, comes later, or never does. */
static void drop_what_it_may_hold(struct caller_node *at)
{
    ls_node_stop(at->node, LS_OK);
    if (counter_get(&at->held) != 0)
        (void)ls_request_fail(&at->requests[0], "");
}

TEST(waiting_has_a_deadline_and_its_threads)
{
    struct call_world *w = call_world_start(3, NULL, serve_waits, NULL);
    ls_call *call = call_start(&w->at[0], 2, "hold", LONG_MS);
    assert_fails(ls_call_wait(call, 0), LS_ETIMEDOUT);
    assert_reaches(&w->at[1].held, 1);
    assert_ok(ls_request_complete(&w->at[1].requests[0], NULL, 0));
    assert_ends(call, LS_CALL_COMPLETED);
    ls_call_destroy(&call);
    assert_fails(ask(&w->at[0], 2, "wait", 0), LS_EHANDLER);
    assert_error_has("cannot wait itself");
    drop_what_it_may_hold(&w->at[2]);
    call_world_end(w);
}

/* ---- opening and closing ----------------------------------------------- */

TEST(opening_and_serving_are_refused_when_they_cannot_be)
{
    struct call_world *w = three(NULL);
    ls_rpc *calls = (ls_rpc *)(void *)&calls;
    ls_node *node = w->at[0].node;
    assert_fails(ls_rpc_open(&calls, node, NULL), LS_EEXIST);
    assert_fails(ls_rpc_open(&calls, node,
                             &(struct ls_rpc_options){.max_requests = 65537}),
                 LS_EINVAL);
    assert_fails(
        ls_rpc_open(&calls, node, &(struct ls_rpc_options){.max_calls = 65537}),
        LS_EINVAL);
    assert_fails(
        ls_rpc_open(&calls, node, &(struct ls_rpc_options){.n_workers = 65}),
        LS_EINVAL);
    assert_fails(ls_rpc_open(&calls, node,
                             &(struct ls_rpc_options){
                                 .max_body_bytes = (size_t)UINT32_MAX + 1}),
                 LS_EINVAL);
    assert_null(calls);
    calls = w->at[0].calls;
    assert_fails(ls_rpc_serve(calls, "a b", LS_CALL_ANYONE, serve_echo, NULL),
                 LS_EINVAL);
    assert_fails(ls_rpc_serve(calls, "x", LS_CALL_ANYONE, NULL, NULL),
                 LS_EINVAL);
    assert_fails(
        ls_rpc_serve(calls, "x", (enum ls_call_who)2, serve_echo, NULL),
        LS_EINVAL);
    assert_fails(ls_rpc_serve(calls, "echo", LS_CALL_ANYONE, serve_echo, NULL),
                 LS_EEXIST);
    assert_fails(
        ls_rpc_serve(calls, "ls.connect", LS_CALL_ANYONE, serve_echo, NULL),
        LS_EEXIST);
    ls_rpc_close(&w->at[0].calls);
    assert_null(w->at[0].calls);
    ls_rpc_close(&w->at[0].calls);
    ls_rpc_close(NULL);
    ls_node_stop(node, LS_OK);
    assert_fails(ls_rpc_open(&calls, node, NULL), LS_ECLOSED);
    call_world_end(w);
}

TEST(starting_is_refused_when_it_cannot_be)
{
    struct call_world *w = three(&(struct ls_rpc_options){.max_calls = 1});
    static const char data[LS_CALL_DATA_MAX + 1];
    ls_call *call = (ls_call *)(void *)&call;
    const struct {
        struct ls_call_options options;
        int status;
    } bad[] = {
        {{.to = 2, .name = "a b"}, LS_EINVAL},
        {{.to = 2}, LS_EINVAL},
        {{.to = 2, .name = "echo", .timeout_ms = -1}, LS_EINVAL},
        {{.to = 2, .name = "echo", .size = 1}, LS_EINVAL},
        {{.to = 2, .name = "echo", .data = data, .size = sizeof data},
         LS_ELIMIT},
        {{.to = 77, .name = "echo"}, LS_ENOENT},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(ls_call_start(&call, w->at[0].calls, &bad[i].options),
                     bad[i].status);
    ls_call *open = call_start(&w->at[0], 2, "hold", LONG_MS);
    const struct ls_call_options good = {.to = 2, .name = "echo"};
    assert_fails(ls_call_start(&call, w->at[0].calls, &good), LS_EAGAIN);
    assert_reaches(&w->at[1].held, 1);
    ls_call_destroy(&open);
    (void)ls_request_complete(&w->at[1].requests[0], NULL, 0);
    ls_node_stop(w->at[0].node, LS_OK);
    assert_fails(ls_call_start(&call, w->at[0].calls, &good), LS_ECLOSED);
    assert_null(call);
    call_world_end(w);
}

/* Outputs are written only on success. */
static void asking_ends_with(struct caller_node *at, uint32_t to,
                             const char *name, int timeout_ms, int status,
                             const char *has)
{
    void *answer = at;
    size_t size = 7;
    struct ls_body body = {.data = at};
    assert_fails(
        ls_call_ask_body(at->calls,
                         &(struct ls_call_options){
                             .to = to, .name = name, .timeout_ms = timeout_ms},
                         &answer, &size, &body),
        status);
    assert_error_has(has);
    assert_ptr_equal(answer, at);
    assert_int_equal(size, 7);
    assert_ptr_equal(body.data, at);
}

static void close_it(void *self)
{
    struct caller_node *at = self;
    ls_rpc_close(&at->calls);
}

struct closer {
    struct caller_node *at, *other; /* closes when the other holds a request */
};

static void close_when_held(void *self)
{
    struct closer *closer = self;
    if (!counter_reaches(&closer->other->held, 1))
        abort();
    ls_rpc_close(&closer->at->calls);
}

TEST(asking_says_how_it_ended)
{
    struct call_world *w = three(NULL);
    struct caller_node *at = &w->at[0];
    struct closer closer = {at, &w->at[1]};
    ls_thread *thread;
    asking_ends_with(at, 2, "fail", LONG_MS, LS_EHANDLER, "the oven is cold");
    asking_ends_with(at, 2, "mine", LONG_MS, LS_EABORTED, "master");
    asking_ends_with(at, 3, "hold", 1, LS_ETIMEDOUT, "hold");
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "close",
                              close_when_held, &closer));
    asking_ends_with(at, 2, "hold", LONG_MS, LS_ECANCELED, "closed");
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    (void)ls_request_fail(&w->at[1].requests[0], "");
    drop_what_it_may_hold(&w->at[2]);
    call_world_end(w);
}

TEST(a_node_that_is_not_on_the_network_calls_nobody)
{
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_rpc *calls = NULL;
    ls_call *call = (ls_call *)(void *)&call;
    const struct ls_call_options question = {.to = 0, .name = "echo"};
    ls_node_options_init(&options);
    options.bind = "inproc://calls-nobody";
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_rpc_open(&calls, node, NULL));
    assert_fails(ls_call_start(&call, calls, &question), LS_ECLOSED);
    assert_null(call);
    assert_ok(ls_rpc_close(&calls));
    assert_ok(ls_node_destroy(&node));
}

TEST(closing_ends_all_on_both_sides)
{
    struct call_world *w = three(NULL);
    struct caller_node *at = &w->at[1];
    ls_call *mine = call_start(at, 3, "hold", LONG_MS);
    assert_reaches(&w->at[2].held, 1);
    ls_call *begun = call_start(&w->at[0], 2, "hold", LONG_MS);
    assert_reaches(&at->held, 1);
    ls_call *running = call_start(&w->at[0], 2, "slow", LONG_MS);
    assert_reaches(&at->entered, 1);
    ls_call *queued = call_start(&w->at[0], 2, "echo", LONG_MS);
    ls_call *own = call_start(at, 2, "echo", LONG_MS);
    /* What comes after it on the bus thread shows that `queued` is there. */
    assert_fails(ask(&w->at[0], 2, "nonsense", 0), LS_EHANDLER);
    ls_thread *thread;
    assert_ok(
        ls_thread_spawn(ls_runtime_threads(), &thread, "close", close_it, at));
    assert_ends(queued, LS_CALL_START_FAILED);
    assert_int_equal(ls_call_result(queued)->code, LS_CALL_SHUTTING_DOWN);
    assert_ends(begun, LS_CALL_FAILED);
    assert_ends(running, LS_CALL_FAILED);
    assert_ends(mine, LS_CALL_CANCELLED);
    assert_ends(own, LS_CALL_CANCELLED);
    assert_reaches(&at->alarmed, 1);
    counter_add(&at->may_go, 1); /* it waits for the handler that runs */
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    ls_call_destroy(&queued);
    ls_call_destroy(&begun);
    ls_call_destroy(&running);
    /* What outlives it is still good for being looked at and ended. */
    assert_int_equal(ls_call_state(mine), LS_CALL_CANCELLED);
    ls_call_destroy(&mine);
    ls_call_destroy(&own);
    assert_fails(ls_request_complete(&at->requests[0], NULL, 0), LS_ECANCELED);
    (void)ls_request_complete(&w->at[2].requests[0], NULL, 0);
    call_world_end(w);
}

static int fail_late(void *self, ls_request *request)
{
    struct caller_node *at = self;
    (void)request;
    counter_add(&at->entered, 1);
    if (!counter_reaches(&at->may_go, 1))
        abort();
    return ls_error(LS_ECONFIG, "the oven is cold");
}

static void serve_late(struct caller_node *at)
{
    assert_ok(ls_rpc_serve(at->calls, "late", LS_CALL_ANYONE, fail_late, at));
}

/* Nothing of it may be left: what is would be a leak. */
TEST(a_handler_may_fail_while_its_node_closes)
{
    struct call_world *w = call_world_start(2, NULL, serve_late, NULL);
    struct caller_node *at = &w->at[1];
    ls_call *call = call_start(&w->at[0], 2, "late", LONG_MS);
    assert_reaches(&at->entered, 1);
    ls_thread *thread;
    assert_ok(
        ls_thread_spawn(ls_runtime_threads(), &thread, "close", close_it, at));
    assert_ends(call, LS_CALL_FAILED);
    counter_add(&at->may_go, 1);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    ls_call_destroy(&call);
    call_world_end(w);
}

static void note_release(void *data, void *hint)
{
    bool *const released = hint;
    free(data);
    *released = true;
}

TEST(what_outlives_its_node_can_be_waited_for_and_answered)
{
    enum { BODY_BYTES = 1 << 20 }; /* it would take a block */
    struct call_world *w = call_world_start(2, NULL, NULL, NULL);
    ls_call *call = call_start(&w->at[0], 2, "hold", LONG_MS);
    assert_reaches(&w->at[1].held, 1);
    ls_request *request = w->at[1].requests[0];
    assert_ok(ls_rpc_close(&w->at[1].calls));
    assert_ends(call, LS_CALL_FAILED);
    call_world_end(w);
    assert_ok(ls_call_wait(call, 0));
    assert_ok(ls_call_wait(call, LONG_MS));
    ls_call_destroy(&call);
    bool released = false;
    const struct ls_body body = {calloc(1, BODY_BYTES), BODY_BYTES,
                                 note_release, &released};
    assert_non_null(body.data);
    assert_fails(ls_request_complete_with(&request, NULL, 0, &body),
                 LS_ECANCELED);
    assert_null(request);
    assert_true(released);
}

TEST(what_all_of_it_amounts_to_is_counted)
{
    struct call_world *w = three(NULL);
    ls_call *call = call_start(&w->at[0], 2, "hold", LONG_MS);
    assert_true(ls_call_id(call) == 1);
    assert_reaches(&w->at[1].held, 1);
    assert_ok(ask(&w->at[0], 2, "echo", 0)); /* after it is told as started */
    (void)ask(&w->at[0], 2, "fail", 0);
    (void)ask(&w->at[0], 2, "mine", 0);
    struct ls_rpc_stats asked = stats_of(&w->at[0]);
    struct ls_rpc_stats did = stats_of(&w->at[1]);
    assert_int_equal(asked.started, 4);
    assert_int_equal(asked.open_calls, 1);
    assert_int_equal(did.open_requests, 1);
    assert_int_equal(did.served, 2);
    assert_int_equal(did.refused, 1);
    ls_call_destroy(&call);
    assert_reaches(&w->at[1].alarmed, 1); /* or its answer would be stale */
    (void)ls_request_complete(&w->at[1].requests[0], NULL, 0);
    asked = stats_of(&w->at[0]);
    static const uint64_t ended[] = {1, 1, 1, 0, 0, 1};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(asked.ended[i], ended[i]);
    assert_int_equal(asked.stale + asked.malformed, 0);
    call_world_end(w);
}
