/* Whatever is destroyed in the wrong order says so, and does no harm. */
#include "node_fixture.h"

#include <sched.h>

#include "lockstep/barrier.h"
#include "lockstep/call.h"
#include "lockstep/channel.h"
#include "lockstep/task.h"
#include "test.h"

/* Nothing was done: it is there, and does its work. */
static void refuses(ls_node **node, const char *why)
{
    ls_node *const same = *node;
    assert_fails(ls_node_destroy(node), LS_ESTATE);
    assert_error_has(why);
    assert_ptr_equal(*node, same);
    assert_ok(ls_emit(*node, "still.there", NULL, 0));
}

TEST(a_node_outlives_its_task)
{
    struct ls_node_options options = usual(3);
    ls_node *node = create(&options);
    ls_task *task = NULL;
    assert_ok(ls_task_create(&task, &(struct ls_task_options){.node = node}));
    refuses(&node, "task");
    assert_ok(ls_node_start(node));
    refuses(&node, "node 3");
    assert_ok(ls_task_destroy(&task));
    assert_ok(ls_node_destroy(&node));
    assert_null(node);
}

TEST(a_node_outlives_its_barriers_calls_and_channels)
{
    struct ls_node_options options = usual(3);
    ls_node *node = started(&options);
    ls_barrier *barrier = NULL;
    assert_ok(ls_barrier_create(&barrier, node, NULL));
    refuses(&node, "step");
    assert_ok(ls_barrier_destroy(&barrier));
    ls_rpc *calls = NULL;
    assert_ok(ls_rpc_open(&calls, node, NULL));
    refuses(&node, "channel");
    ls_rpc_close(&calls);
    assert_ok(ls_node_destroy(&node));
}

TEST(a_node_outlives_its_waiters)
{
    struct ls_node_options options = usual(4);
    ls_node *node = started(&options);
    ls_waiter *waiter = NULL;
    assert_ok(ls_waiter_create(&waiter, node, "x", 0));
    refuses(&node, "waiter");
    assert_ok(ls_waiter_destroy(&waiter));
    assert_ok(ls_node_destroy(&node));
}

TEST(a_node_outlives_whatever_holds_it)
{
    struct ls_node_options options = usual(4);
    ls_node *node = started(&options);
    ls_node_hold(node);
    ls_node_hold(node);
    assert_fails(ls_node_destroy(&node), LS_ESTATE);
    ls_node_let_go(node);
    assert_fails(ls_node_destroy(&node), LS_ESTATE);
    ls_node_let_go(node);
    assert_ok(ls_node_destroy(&node));
}

TEST(what_secures_a_node_outlives_it)
{
    ls_security *security = NULL;
    assert_ok(ls_security_none(&security));
    struct ls_node_options options = usual(0);
    options.security = security;
    ls_node *node = create(&options);
    assert_fails(ls_security_destroy(&security), LS_ESTATE);
    assert_ok(ls_node_start(node));
    assert_fails(ls_security_destroy(&security), LS_ESTATE);
    assert_error_has("node");
    assert_ok(ls_node_destroy(&node));
    assert_ok(ls_security_destroy(&security));
    assert_null(security);
}

struct seen {
    ls_node *node;
    int stopped, destroyed;
};

static int ends_its_node(void *self, const struct ls_event *event)
{
    (void)event;
    struct seen *seen = self;
    ls_node *node = seen->node;
    seen->stopped = ls_node_stop(node, LS_OK);
    seen->destroyed = ls_node_destroy(&node);
    return LS_OK;
}

TEST(a_handler_cannot_end_its_own_node)
{
    struct ls_node_options options = usual(0);
    ls_node *node = started(&options);
    struct seen seen = {.node = node};
    assert_ok(ls_on(node, "end", ends_its_node, &seen));
    assert_ok(ls_emit(node, "end", NULL, 0));
    assert_ok(ls_node_stop(node, LS_OK)); /* what was emitted is handled */
    assert_int_equal(seen.stopped, LS_ESTATE);
    assert_int_equal(seen.destroyed, LS_ESTATE);
    assert_ok(ls_node_destroy(&node));
}

struct closing {
    ls_node *node;
    ls_rpc *calls;
    int opened, status;
};

static int closes_its_calls(void *self, ls_request *request)
{
    struct closing *closing = self;
    ls_rpc *second;
    closing->opened = ls_rpc_open(&second, closing->node, NULL);
    closing->status = ls_rpc_close(&closing->calls);
    return ls_request_complete(&request, NULL, 0);
}

static void ended_closes(void *self, ls_call *call)
{
    struct closing *closing = self;
    (void)call;
    if (closing->status == LS_OK)
        closing->status = ls_rpc_close(&closing->calls);
}

/* It would wait for itself. */
static void closing_is_refused(unsigned n_workers)
{
    struct ls_node_options options = usual(0);
    ls_node *node = started(&options);
    ls_rpc *calls = NULL;
    ls_call *call = NULL;
    assert_ok(ls_rpc_open(&calls, node,
                          &(struct ls_rpc_options){.n_workers = n_workers}));
    struct closing handler = {.node = node, .calls = calls};
    struct closing ended = {.calls = calls};
    assert_ok(ls_rpc_serve(calls, "close", LS_CALL_ANYONE, closes_its_calls,
                           &handler));
    const struct ls_call_options close = {.to = 0,
                                          .name = "close",
                                          .timeout_ms = LONG_MS,
                                          .ended = ended_closes,
                                          .self = &ended};
    assert_ok(ls_call_start(&call, calls, &close));
    assert_ok(ls_call_wait(call, LONG_MS));
    assert_int_equal(ls_call_state(call), LS_CALL_COMPLETED);
    ls_call_destroy(&call);
    assert_int_equal(handler.opened, LS_EEXIST);
    assert_int_equal(handler.status, LS_ESTATE);
    assert_int_equal(ended.status, LS_ESTATE);
    assert_ptr_equal(handler.calls, calls);
    assert_ok(ls_rpc_close(&calls));
    assert_null(calls);
    assert_ok(ls_node_destroy(&node));
}

TEST(a_handler_cannot_close_its_calls)
{
    closing_is_refused(0);
    closing_is_refused(2);
}

struct ending {
    ls_node *node;
    struct counter handled, may_return;
    bool has_returned;
    bool saw; /* whether it had, when the second stop returned */
};

static int takes_long(void *self, const struct ls_event *event)
{
    (void)event;
    struct ending *ending = self;
    counter_add(&ending->handled, 1);
    const bool may = counter_reaches(&ending->may_return, 2);
    ending->has_returned = true;
    return may ? LS_OK : ls_error(LS_ETIMEDOUT, "nobody lets it return");
}

static void stops(void *self)
{
    struct ending *ending = self;
    (void)ls_node_stop(ending->node, LS_OK);
}

static void stops_too(void *self)
{
    struct ending *ending = self;
    counter_add(&ending->may_return, 1);
    (void)ls_node_stop(ending->node, LS_OK);
    ending->saw = ending->has_returned;
}

/* As where a signal's thread stops a node, and main, whose wait has ended with
 * that, destroys it. */
TEST(a_second_stop_waits_for_the_first)
{
    struct ls_node_options options = usual(0);
    struct ending ending = {.node = started(&options)};
    ls_thread *first = NULL, *second = NULL;
    counter_init(&ending.handled);
    counter_init(&ending.may_return);
    assert_ok(ls_on(ending.node, "long", takes_long, &ending));
    assert_ok(ls_emit(ending.node, "long", NULL, 0));
    assert_reaches(&ending.handled, 1);
    assert_ok(
        ls_thread_spawn(ls_runtime_threads(), &first, "first", stops, &ending));
    assert_int_equal(ls_wait_for(ending.node, "x", LONG_MS, NULL, NULL),
                     LS_ECLOSED);
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &second, "second",
                              stops_too, &ending));
    assert_reaches(&ending.may_return, 1);
    for (int i = 0; i < 1000; i++)
        (void)sched_yield();
    counter_add(&ending.may_return, 1);
    assert_ok(ls_thread_join(&second, LS_FOREVER));
    assert_true(ending.saw);
    assert_ok(ls_node_destroy(&ending.node));
    assert_ok(ls_thread_join(&first, LS_FOREVER));
    counter_fini(&ending.handled);
    counter_fini(&ending.may_return);
}

static int destroys_its_task(ls_step *step, void *self)
{
    ls_task *task = ls_step_task(step);
    *(int *)self = ls_task_destroy(&task);
    return LS_OK;
}

TEST(a_step_cannot_end_its_own_task)
{
    int status = LS_OK;
    ls_task *task = NULL;
    assert_ok(ls_task_create(&task, &(struct ls_task_options){0}));
    assert_ok(ls_task_use_fn(task, destroys_its_task, &status));
    assert_ok(ls_task_run(task, 1));
    assert_int_equal(status, LS_ESTATE);
    assert_ok(ls_task_destroy(&task));
    assert_ok(ls_task_destroy(&task));
}
