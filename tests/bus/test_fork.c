/* What a process made before fork(2) is its own: the child is refused. */
#include "node_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/barrier.h"
#include "lockstep/call.h"
#include "lockstep/channel.h"
#include "lockstep/payload.h"
#include "lockstep/task.h"
#include "test.h"

static struct {
    ls_node *node;
    ls_task *task;
    ls_task *by_hand; /* between its halves */
    ls_barrier *barrier;
    ls_rpc *calls;
    void *payload;
    ls_waiter *waiter;
    ls_channel *channel;
    ls_call *call;
    ls_request *request; /* of that call; not answered */
    struct counter held;
} parents;

static int ignore(void *self, const struct ls_event *event)
{
    (void)self;
    (void)event;
    return LS_OK;
}

static int refuse(void *self, ls_request *request)
{
    (void)self;
    return ls_request_fail(&request, "no");
}

static int hold(void *self, ls_request *request)
{
    (void)self;
    parents.request = request;
    counter_add(&parents.held, 1);
    return LS_OK;
}

static void ignore_message(void *self, uint32_t from, uint64_t incarnation,
                           const void *data, size_t size)
{
    (void)self, (void)from, (void)incarnation, (void)data, (void)size;
}

static void ignore_dispatched(void *self, int what)
{
    (void)self, (void)what;
}

static const struct ls_channel_ops channel_ops = {
    .message = ignore_message, .dispatched = ignore_dispatched};

/* Each line is an exit code of the child, so that a failure says which. */
#define REFUSED(call)                                                          \
    do {                                                                       \
        if ((call) != LS_ESTATE)                                               \
            _exit(__LINE__ & 127);                                             \
    } while (0)

static void uses_the_node(void)
{
    ls_node *node = parents.node;
    REFUSED(ls_emit(node, "e", NULL, 0));
    if (strstr(ls_error_text(), "forked") == NULL)
        _exit(1);
    REFUSED(ls_on(node, "e", ignore, NULL));
    REFUSED(ls_once(node, "e", ignore, NULL));
    REFUSED(ls_off(node, "e", ignore, NULL));
    REFUSED(ls_off_all(node, "*"));
    REFUSED(ls_wait_for(node, "e", LONG_MS, NULL, NULL));
    REFUSED(ls_node_set_delivery(node, "e", LS_DELIVERY_DROP));
    REFUSED(ls_node_allow(node, "e", "3"));
    REFUSED(ls_node_on_member(node, NULL, NULL));
    REFUSED(ls_node_take_error(node));
    REFUSED(ls_node_start(node));
    REFUSED(ls_node_join(node));
    REFUSED(ls_node_stop(node, LS_OK));
    REFUSED(ls_node_destroy(&node));
    struct ls_member members[2];
    struct ls_node_stats stats;
    ls_node_stats(node, &stats);
    ls_node_interrupt(node, LS_ECANCELED);
    if (node != parents.node || ls_node_members(node, members, 2) != 0 ||
        stats.emitted != 0 || ls_node_listeners(node, "e", NULL, 0) != 0 ||
        ls_node_losses(node, NULL, 0) != 0 ||
        ls_node_refusals(node, NULL, 0) != 0)
        _exit(2);
}

static void never_cancelled(void *self, int status)
{
    (void)self, (void)status;
    _exit(11);
}

static void uses_the_tasks(void)
{
    REFUSED(ls_task_run(parents.task, 1));
    REFUSED(ls_task_forward(parents.task));
    REFUSED(ls_task_destroy(&parents.task));
    REFUSED(ls_task_forward(parents.by_hand));
    REFUSED(ls_task_backward(parents.by_hand));
    REFUSED(ls_task_end(parents.by_hand));
    ls_task_cancel(parents.by_hand, LS_EIO, NULL);
    REFUSED(ls_task_on_cancel(parents.by_hand, never_cancelled, NULL));
    ls_task_finish_here(parents.by_hand);
    ls_task_finish(parents.by_hand);
    if (ls_task_cancelled(parents.by_hand) != LS_OK ||
        ls_task_finishing(parents.by_hand))
        _exit(12);
}

static void uses_the_rest(void)
{
    REFUSED(ls_barrier_wait(parents.barrier, 0, LONG_MS, NULL));
    ls_barrier_abort(parents.barrier, LS_ECANCELED);
    REFUSED(ls_barrier_destroy(&parents.barrier));
    void *payload;
    REFUSED(ls_payload_alloc(&payload, parents.node, 10));
    ls_payload_free(ls_payload_share(parents.payload), NULL);
    ls_call *call = NULL;
    REFUSED(ls_call_start(&call, parents.calls,
                          &(struct ls_call_options){.name = "e"}));
    REFUSED(ls_rpc_serve(parents.calls, "e", LS_CALL_ANYONE, refuse, NULL));
    uint32_t master;
    struct ls_rpc_stats calls;
    struct ls_barrier_stats barrier;
    ls_rpc_stats(parents.calls, &calls);
    ls_barrier_stats(parents.barrier, &barrier);
    if (ls_rpc_master(parents.calls, &master) || calls.started != 0 ||
        barrier.sent != 0 || ls_barrier_members(parents.barrier, NULL, 0) != 0)
        _exit(5);
    REFUSED(ls_rpc_close(&parents.calls));
    struct ls_node_options options = usual(4);
    ls_node *another = NULL;
    if (ls_node_create(&another, &options) != LS_OK)
        _exit(3);
    REFUSED(ls_node_start(another));
    if (ls_node_destroy(&another) != LS_OK)
        _exit(4);
}

static int n_released;

static void release(void *data, void *hint)
{
    (void)data, (void)hint;
    n_released++;
}

static bool is_never_over(void *self)
{
    (void)self;
    return false;
}

static void waits_on_the_channel(ls_channel *channel)
{
    ls_runtime *runtime = ls_runtime_threads();
    const int64_t deadline = ls_deadline(runtime, LONG_MS);
    ls_mutex mutex;
    ls_cond cond;
    if (ls_mutex_init(&mutex, runtime) != LS_OK ||
        ls_cond_init(&cond, runtime) != LS_OK)
        _exit(13);
    REFUSED(ls_channel_listen(channel, deadline));
    ls_mutex_lock(&mutex);
    REFUSED(ls_channel_attend(channel, &cond, &mutex, is_never_over, deadline));
    ls_mutex_unlock(&mutex);
    if (ls_channel_borrow(channel))
        _exit(14);
    ls_channel_ring(channel);
    ls_cond_fini(&cond);
    ls_mutex_fini(&mutex);
}

static void uses_what_waits(void)
{
    ls_node *node = parents.node;
    struct ls_member member;
    ls_waiter *waiter = parents.waiter;
    REFUSED(ls_node_member(node, 9, &member));
    REFUSED(ls_emit_with(node, &(struct ls_emission){.event = "e",
                                                     .data = &member,
                                                     .size = 1,
                                                     .release = release}));
    REFUSED(ls_waiter_wait(waiter, LONG_MS, NULL, NULL));
    REFUSED(ls_waiter_destroy(&waiter));
    if (n_released != 1 || waiter != parents.waiter ||
        ls_waiter_dropped(waiter) != 0)
        _exit(6);
    REFUSED(ls_waiter_create(&waiter, node, "e", 0));
    ls_channel *channel = parents.channel;
    REFUSED(ls_channel_send(channel, 3, "x", 1));
    REFUSED(ls_channel_send_two(channel, 3, "x", 1, "y", 1));
    REFUSED(ls_channel_send_near(channel, 3, "x", 1));
    REFUSED(ls_channel_send_reliable(channel, 3, "x", 1));
    REFUSED(ls_channel_answer(channel, "other", 3, "x", 1));
    REFUSED(ls_channel_dispatch(channel, 1));
    ls_channel_wake_at(channel, LS_NOW);
    waits_on_the_channel(channel);
    ls_channel_close(&channel);
    if (channel != parents.channel)
        _exit(7);
    REFUSED(ls_channel_open(&channel, node, "new", &channel_ops, NULL));
}

static void uses_the_calls(void)
{
    ls_call *call = parents.call;
    REFUSED(ls_call_wait(call, LONG_MS));
    ls_call_cancel(call);
    ls_call_destroy(&call);
    if (call != parents.call || ls_call_state(call) != LS_CALL_LOST)
        _exit(8);
    ls_request *requests[] = {parents.request, parents.request,
                              parents.request};
    ls_request_on_cancel(parents.request, NULL, NULL);
    if (!ls_request_is_cancelled(parents.request))
        _exit(9);
    const struct ls_body body = {.size = 0, .release = release};
    REFUSED(ls_request_complete_with(&requests[0], "x", 1, &body));
    REFUSED(ls_request_fail(&requests[1], "x"));
    REFUSED(ls_request_refuse(&requests[2], LS_CALL_REFUSED, "x"));
    if (n_released != 1 || requests[0] != NULL || requests[1] != NULL ||
        requests[2] != NULL)
        _exit(10);
}

static void in_a_child(void (*fn)(void))
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(10); /* it ends by that if something waits */
        fn();
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(a_child_is_refused_and_its_parent_goes_on)
{
    struct ls_node_options options = usual(3);
    parents.node = create(&options);
    assert_ok(ls_task_create(&parents.task,
                             &(struct ls_task_options){.node = parents.node}));
    assert_ok(ls_task_create(&parents.by_hand,
                             &(struct ls_task_options){.node = parents.node}));
    assert_ok(ls_barrier_create(&parents.barrier, parents.node, NULL));
    assert_ok(ls_rpc_open(&parents.calls, parents.node, NULL));
    assert_ok(ls_node_start(parents.node));
    assert_ok(ls_payload_alloc(&parents.payload, parents.node, 10));
    assert_ok(ls_task_forward(parents.by_hand));
    in_a_child(uses_the_node);
    in_a_child(uses_the_tasks);
    in_a_child(uses_the_rest);
    assert_ok(ls_emit(parents.node, "e", NULL, 0));
    assert_ok(ls_barrier_wait(parents.barrier, 0, LONG_MS, NULL));
    assert_ok(ls_task_run(parents.task, 1));
    assert_ok(ls_task_backward(parents.by_hand));
    assert_ok(ls_task_end(parents.by_hand));
    memset(parents.payload, 1, 10);
    ls_payload_free(parents.payload, NULL);
    ls_rpc_close(&parents.calls);
    assert_ok(ls_barrier_destroy(&parents.barrier));
    assert_ok(ls_task_destroy(&parents.task));
    assert_ok(ls_task_destroy(&parents.by_hand));
    assert_ok(ls_node_destroy(&parents.node));
}

static void makes_a_node(void)
{
    struct ls_node_options options = usual(5);
    ls_node *node = NULL;
    if (ls_node_create(&node, &options) != LS_OK ||
        ls_node_start(node) != LS_OK || ls_emit(node, "e", NULL, 0) != LS_OK ||
        ls_node_destroy(&node) != LS_OK)
        _exit(5);
}

TEST(what_waits_and_what_is_asked_is_the_parents)
{
    struct ls_node_options options = usual(3);
    parents.node = create(&options);
    counter_init(&parents.held);
    assert_ok(ls_rpc_open(&parents.calls, parents.node, NULL));
    assert_ok(ls_rpc_serve(parents.calls, "hold", LS_CALL_ANYONE, hold, NULL));
    assert_ok(ls_channel_open(&parents.channel, parents.node, "talk",
                              &channel_ops, NULL));
    assert_ok(ls_node_start(parents.node));
    assert_ok(ls_waiter_create(&parents.waiter, parents.node, "e", 0));
    assert_ok(ls_call_start(&parents.call, parents.calls,
                            &(struct ls_call_options){.to = 3,
                                                      .name = "hold",
                                                      .timeout_ms = LONG_MS}));
    assert_reaches(&parents.held, 1);
    in_a_child(uses_what_waits);
    in_a_child(uses_the_calls);
    assert_ok(ls_request_complete(&parents.request, NULL, 0));
    assert_ok(ls_call_wait(parents.call, LONG_MS));
    assert_int_equal(ls_call_state(parents.call), LS_CALL_COMPLETED);
    ls_call_destroy(&parents.call);
    assert_ok(ls_emit(parents.node, "e", NULL, 0));
    assert_ok(ls_waiter_wait(parents.waiter, LONG_MS, NULL, NULL));
    assert_ok(ls_waiter_destroy(&parents.waiter));
    ls_channel_close(&parents.channel);
    assert_ok(ls_rpc_close(&parents.calls));
    assert_ok(ls_node_destroy(&parents.node));
    counter_fini(&parents.held);
}

TEST(who_forks_before_the_first_node_may_make_them_in_the_child)
{
    in_a_child(makes_a_node);
}
