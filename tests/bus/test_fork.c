/* What a process made before fork(2) is its own: the child is refused. */
#include "node_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/barrier.h"
#include "lockstep/call.h"
#include "lockstep/payload.h"
#include "lockstep/task.h"
#include "test.h"

static struct {
    ls_node *node;
    ls_task *task;
    ls_barrier *barrier;
    ls_rpc *calls;
    void *payload;
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

static void uses_the_rest(void)
{
    REFUSED(ls_task_run(parents.task, 1));
    REFUSED(ls_task_destroy(&parents.task));
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
    assert_ok(ls_barrier_create(&parents.barrier, parents.node, NULL));
    assert_ok(ls_rpc_open(&parents.calls, parents.node, NULL));
    assert_ok(ls_node_start(parents.node));
    assert_ok(ls_payload_alloc(&parents.payload, parents.node, 10));
    in_a_child(uses_the_node);
    in_a_child(uses_the_rest);
    assert_ok(ls_emit(parents.node, "e", NULL, 0));
    assert_ok(ls_barrier_wait(parents.barrier, 0, LONG_MS, NULL));
    assert_ok(ls_task_run(parents.task, 1));
    memset(parents.payload, 1, 10);
    ls_payload_free(parents.payload, NULL);
    ls_rpc_close(&parents.calls);
    assert_ok(ls_barrier_destroy(&parents.barrier));
    assert_ok(ls_task_destroy(&parents.task));
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

TEST(who_forks_before_the_first_node_may_make_them_in_the_child)
{
    in_a_child(makes_a_node);
}
