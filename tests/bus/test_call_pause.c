/* A node stands still for longer than the others wait, on a simulated network:
 * its calls are lost, it comes back as a new life, and what it says late is not
 * believed. */
#include "network_fixture.h"

#include "lockstep/call.h"
#include "lockstep/channel.h"
#include "test.h"

struct side {
    ls_host *host;
    ls_runtime *runtime;
    ls_node *node;
    ls_rpc *calls;
    ls_request *held;
    int n_handled, n_cancelled;
    int status; /* of the start */
    ls_thread *thread;
};

static struct side sides[2];

static void note_cancelled(void *self)
{
    struct side *side = self;
    side->n_cancelled++;
}

static int serve(void *self, ls_request *request)
{
    struct side *side = self;
    size_t size;
    side->n_handled++;
    (void)ls_request_data(request, &size);
    if (size == 0)
        return ls_request_complete(&request, "now", 3);
    ls_request_on_cancel(request, note_cancelled, side);
    side->held = request;
    return LS_OK;
}

static void side_start(void *self)
{
    struct side *side = self;
    side->status = ls_node_start(side->node);
}

static void side_open(struct net *net, size_t index)
{
    static const char *const all[] = {"tcp://127.0.0.1:21500",
                                      "tcp://127.0.0.1:21501"};
    struct side *side = &sides[index];
    struct ls_node_options options;
    *side = (struct side){.host = net->hosts[index]};
    side->runtime = ls_host_runtime(side->host);
    ls_node_options_init(&options);
    options.id = (uint32_t)index + 1;
    options.bind = all[index];
    options.attach = all;
    options.n_attach = 2;
    options.world_size = 2;
    options.runtime = side->runtime;
    assert_ok(ls_node_create(&side->node, &options));
    assert_ok(ls_rpc_open(&side->calls, side->node, NULL));
    assert_ok(ls_rpc_serve(side->calls, "x", LS_CALL_ANYONE, serve, side));
    assert_ok(ls_thread_spawn(side->runtime, &side->thread, "start", side_start,
                              side));
}

static void open_both(struct net *net)
{
    side_open(net, 0);
    side_open(net, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_ok(ls_thread_join(&sides[i].thread, LS_FOREVER));
        assert_ok(sides[i].status);
    }
}

static void close_both(void)
{
    for (size_t i = 0; i < 2; i++) {
        ls_rpc_close(&sides[i].calls);
        ls_node_destroy(&sides[i].node);
    }
}

static ls_call *start(size_t size)
{
    ls_call *call;
    assert_ok(ls_call_start(&call, sides[0].calls,
                            &(struct ls_call_options){.to = 2,
                                                      .name = "x",
                                                      .data = "1",
                                                      .size = size,
                                                      .timeout_ms = 60000}));
    return call;
}

static enum ls_call_state end_of(ls_call *call)
{
    assert_ok(ls_call_wait(call, LONG_MS));
    return ls_call_result(call)->state;
}

/* The one that is asked is stopped, with a call begun and one that it has not
 * read. */
static void stopped_server(struct net *net)
{
    open_both(net);
    const uint64_t life = ls_node_incarnation(sides[1].node);
    ls_call *begun = start(1);
    net_rest(net, 100);
    assert_int_equal(ls_call_state(begun), LS_CALL_STARTED);
    assert_ok(ls_rpc_connect(sides[0].calls, 2, 0, 1000));
    ls_host_pause(sides[1].host);
    ls_call *unread = start(0);
    const int64_t from = net_now(net);
    assert_int_equal(end_of(begun), LS_CALL_LOST);
    assert_int_equal(end_of(unread), LS_CALL_LOST);
    assert_true(net_now(net) - from < 4 * LS_NS_PER_S); /* of virtual time */
    ls_call_destroy(&begun);
    ls_call_destroy(&unread);
    net_rest(net, 3000);
    ls_host_resume(sides[1].host);
    net_rest(net, 5000);
    /* It knows that nobody waits any more, and has no master. */
    uint32_t master;
    assert_true(ls_node_incarnation(sides[1].node) != life);
    assert_int_equal(sides[1].n_cancelled, 1);
    assert_false(ls_rpc_master(sides[1].calls, &master));
    assert_fails(ls_request_complete(&sides[1].held, "late", 4), LS_ECANCELED);
    assert_int_equal(sides[1].n_handled,
                     1); /* what it had not read is not done */
    ls_call *again = start(0);
    assert_int_equal(end_of(again), LS_CALL_COMPLETED);
    ls_call_destroy(&again);
    assert_ok(ls_rpc_connect(sides[0].calls, 2, 0, 1000));
    close_both();
}

TEST(the_calls_of_one_that_is_stopped_are_lost)
{
    net_run(NULL, stopped_server);
}

/* The one that asks is: for it, time has passed as well. */
static void stopped_caller(struct net *net)
{
    open_both(net);
    ls_call *call = start(1);
    net_rest(net, 100);
    ls_host_pause(sides[0].host);
    net_rest(net, 5000);
    assert_int_equal(sides[1].n_cancelled, 1);
    assert_fails(ls_request_complete(&sides[1].held, "late", 4), LS_ECANCELED);
    ls_host_resume(sides[0].host);
    assert_int_equal(end_of(call), LS_CALL_LOST);
    ls_call_destroy(&call);
    net_rest(net, 5000);
    call = start(0);
    assert_int_equal(end_of(call), LS_CALL_COMPLETED);
    ls_call_destroy(&call);
    close_both();
}

TEST(those_that_a_stopped_one_asked_are_cancelled)
{
    net_run(NULL, stopped_caller);
}

/* Both are, for longer than the call may take: neither had that time. */
static void both_stopped(struct net *net)
{
    open_both(net);
    ls_call *call = start(1);
    net_rest(net, 100);
    ls_host_pause(sides[0].host);
    ls_host_pause(sides[1].host);
    net_rest(net, 90000);
    ls_host_resume(sides[1].host);
    ls_host_resume(sides[0].host);
    net_rest(net, 1000);
    assert_int_equal(sides[1].n_cancelled, 0);
    assert_ok(ls_request_complete(&sides[1].held, "late", 4));
    assert_int_equal(end_of(call), LS_CALL_COMPLETED);
    ls_call_destroy(&call);
    /* What is asked from then on has its time, and no more. */
    call = start(1);
    net_rest(net, 59000);
    assert_int_equal(sides[1].n_cancelled, 0);
    net_rest(net, 2000);
    assert_int_equal(sides[1].n_cancelled, 1);
    assert_int_equal(end_of(call), LS_CALL_TIMEOUT);
    assert_fails(ls_request_complete(&sides[1].held, "late", 4), LS_ECANCELED);
    ls_call_destroy(&call);
    close_both();
}

TEST(a_call_outlives_a_stop_of_both_sides)
{
    net_run(NULL, both_stopped);
}

/* What came while it did not look counts as heard when it is read: of two that
 * are slow in turn, neither is lost. */
static void slow_in_turn(struct net *net)
{
    struct ls_member member;
    open_both(net);
    const uint64_t life = ls_node_incarnation(sides[1].node);
    net_rest(net, 1000);
    ls_host_pause(sides[0].host);
    net_rest(net, 900);
    ls_host_resume(sides[0].host);
    net_rest(net, 1);
    ls_host_pause(sides[1].host);
    net_rest(net, 1500);
    ls_host_resume(sides[1].host);
    net_rest(net, 1000);
    assert_ok(ls_node_member(sides[0].node, 2, &member));
    assert_int_equal(member.state, LS_MEMBER_READY);
    assert_true(member.incarnation == life);
    close_both();
}

TEST(nobody_is_lost_for_what_waited_to_be_read)
{
    net_run(NULL, slow_in_turn);
}

/* One that stood still for 20 s has had none of them. */
static void due_later(struct net *net)
{
    open_both(net);
    const ls_node *node = sides[0].node;
    struct ls_due due =
        ls_due_at(node, ls_now(sides[0].runtime) + 10 * LS_NS_PER_S);
    struct ls_due now = {.at = LS_NOW};
    assert_int_equal(due.stood_ns, 0);
    ls_host_pause(sides[0].host);
    ls_host_pause(sides[1].host);
    net_rest(net, 20000);
    ls_host_resume(sides[0].host);
    ls_host_resume(sides[1].host);
    assert_true(ls_due_has_passed(node, &now));
    assert_false(ls_due_has_passed(node, &due));
    assert_true(due.stood_ns >= 20 * LS_NS_PER_S);
    assert_true(due.stood_ns < 21 * LS_NS_PER_S);
    net_rest(net, 9000);
    assert_false(ls_due_has_passed(node, &due));
    net_rest(net, 2000);
    assert_true(ls_due_has_passed(node, &due));
    assert_true(ls_node_stood_ns(node) == due.stood_ns);
    close_both();
}

TEST(what_is_due_while_a_node_stands_still_is_due_later)
{
    net_run(NULL, due_later);
}

/* Its connection breaks, and is made again: nothing is lost or done twice. */
static void broken_connection(struct net *net)
{
    open_both(net);
    ls_call *calls[50];
    for (int i = 0; i < 50; i++) {
        calls[i] = start(0);
        if (i % 10 == 3)
            ls_network_reset(net->network, sides[0].host, sides[1].host);
        net_rest(net, 7);
    }
    for (int i = 0; i < 50; i++) {
        assert_int_equal(end_of(calls[i]), LS_CALL_COMPLETED);
        ls_call_destroy(&calls[i]);
    }
    assert_int_equal(sides[1].n_handled, 50);
    close_both();
}

TEST(a_broken_connection_is_not_noticed)
{
    net_run(NULL, broken_connection);
}
