/* Listeners: coming, going, failing, and being waited for. */
#include "shared_memory.h"
#include "test.h"
#include "world_fixture.h"

static ls_node *alone(void)
{
    char bind[LS_ENDPOINT_MAX + 1];
    struct ls_node_options options;
    ls_node_options_init(&options);
    fresh_endpoint(bind, sizeof bind);
    options.bind = bind;
    options.id = 5;
    ls_node *node = NULL;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_node_start(node));
    return node;
}

static void emit(ls_node *node, const char *event)
{
    assert_ok(ls_emit(node, event, NULL, 0));
}

/* Emit, and wait until it and all before it has been handled. */
static void flush(ls_node *node)
{
    struct counter done;
    counter_init(&done);
    assert_ok(ls_once(node, "flush", count, &done));
    emit(node, "flush");
    assert_reaches(&done, 1);
    counter_fini(&done);
}

/* A handler that says when it runs, and runs until it may end. */
struct gate {
    struct counter entered, may_leave, left;
    int status;
};

static void gate_init(struct gate *gate)
{
    gate->status = LS_OK;
    counter_init(&gate->entered);
    counter_init(&gate->may_leave);
    counter_init(&gate->left);
}

static void gate_fini(struct gate *gate)
{
    counter_fini(&gate->entered);
    counter_fini(&gate->may_leave);
    counter_fini(&gate->left);
}

static int pass_gate(void *self, const struct ls_event *event)
{
    struct gate *gate = self;
    (void)event;
    counter_add(&gate->entered, 1);
    if (!counter_reaches(&gate->may_leave, 1))
        abort();
    counter_add(&gate->left, 1);
    return gate->status != LS_OK ? ls_error(gate->status, "the gate says no")
                                 : LS_OK;
}

/* ---- off --------------------------------------------------------------- */

TEST(off_removes_one_listener_alone)
{
    ls_node *node = alone();
    struct counter a, b;
    counter_init(&a);
    counter_init(&b);
    assert_ok(ls_on(node, "x", count, &a));
    assert_ok(ls_on(node, "x", count, &b));
    assert_ok(ls_on(node, "x", count, &b)); /* twice */
    assert_ok(ls_off(node, "x", count, &b));
    emit(node, "x");
    flush(node);
    assert_int_equal(counter_get(&a), 1);
    assert_int_equal(counter_get(&b), 1);
    ls_node_destroy(&node);
    counter_fini(&a);
    counter_fini(&b);
}

TEST(off_without_such_a_listener_says_so)
{
    ls_node *node = alone();
    assert_fails(ls_off(node, "x", count, NULL), LS_ENOENT);
    assert_ok(ls_on(node, "x", count, NULL));
    assert_fails(ls_off(node, "y", count, NULL), LS_ENOENT);
    assert_fails(ls_off(node, "x", count, node), LS_ENOENT);
    assert_fails(ls_off(node, "x", pass_gate, NULL), LS_ENOENT);
    assert_fails(ls_off(node, NULL, count, NULL), LS_ENOENT);
    assert_ok(ls_off(node, "x", count, NULL));
    assert_fails(ls_off(node, "x", count, NULL), LS_ENOENT);
    assert_error_has("\"x\" has no such listener on node 5");
    ls_node_destroy(&node);
}

TEST(one_name_too_many_is_named)
{
    ls_node *node = alone();
    char name[LS_EVENT_MAX + 1];
    int status = LS_OK, n = 0;
    while (status == LS_OK && n <= 16384) {
        (void)snprintf(name, sizeof name, "answer.%d", n++);
        if ((status = ls_on(node, name, count, NULL)) == LS_OK)
            status = ls_off(node, name, count, NULL);
    }
    assert_int_equal(status, LS_ELIMIT);
    assert_error_has("event \"answer.16384\" is one name more than 16384");
    assert_fails(ls_emit(node, name, NULL, 0), LS_ELIMIT);
    assert_ok(ls_on(node, "answer.7", count, NULL)); /* known */
    ls_node_destroy(&node);
}

struct off_call {
    ls_node *node;
    struct gate *gate;
    struct counter *called;
    int left_before; /* whether the handler had left when off returned */
    int status;
};

static void call_off(void *self)
{
    struct off_call *call = self;
    counter_add(call->called, 1);
    call->status = ls_off(call->node, "x", pass_gate, call->gate);
    call->left_before = counter_get(&call->gate->left);
}

/* off() is called while the handler runs, which then ends. */
static struct off_call off_during_the_handler(bool once)
{
    ls_node *node = alone();
    struct gate gate;
    struct counter called;
    ls_thread *thread;
    gate_init(&gate);
    counter_init(&called);
    assert_ok(once ? ls_once(node, "x", pass_gate, &gate)
                   : ls_on(node, "x", pass_gate, &gate));
    emit(node, "x");
    assert_reaches(&gate.entered, 1);
    struct off_call call = {.node = node, .gate = &gate, .called = &called};
    assert_ok(
        ls_thread_spawn(ls_runtime_threads(), &thread, "off", call_off, &call));
    assert_reaches(&called, 1);
    /* It cannot have returned: what is seen is that it never does too soon. */
    assert_fails(ls_thread_join(&thread, ls_deadline(ls_runtime_threads(), 5)),
                 LS_ETIMEDOUT);
    counter_add(&gate.may_leave, 1);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    emit(node, "x");
    flush(node);
    assert_int_equal(counter_get(&gate.entered), 1);
    ls_node_destroy(&node);
    gate_fini(&gate);
    counter_fini(&called);
    return call;
}

TEST(off_waits_for_the_running_handler)
{
    const struct off_call call = off_during_the_handler(false);
    assert_int_equal(call.status, LS_OK);
    assert_int_equal(call.left_before, 1);
}

TEST(off_waits_for_a_once_that_runs)
{
    const struct off_call call = off_during_the_handler(true);
    assert_int_equal(call.status, LS_ENOENT); /* it has had its once */
    assert_int_equal(call.left_before, 1);
}

/* ---- coming and going for ever ------------------------------------------- */

enum { NAMES = 16 };

/* As long as a name can be, and as many as are told of at once. */
static const char *long_name(size_t i)
{
    static char name[LS_EVENT_MAX + 1];
    memset(name, 'n', LS_EVENT_MAX);
    name[0] = (char)('a' + i);
    return name;
}

static void await_listeners(ls_node *at, size_t wanted)
{
    ls_runtime *runtime = ls_runtime_threads();
    const int64_t deadline = long_deadline();
    for (size_t i = 0; i < NAMES; i++)
        while (ls_node_listeners(at, long_name(i), NULL, 0) != wanted) {
            assert_true(ls_now(runtime) < deadline);
            ls_yield_core(runtime);
        }
}

/* More in all than one connection may subscribe to at a time. */
TEST(a_node_may_begin_and_stop_to_listen_for_ever)
{
    struct world *world = calloc(1, sizeof *world);
    struct counter heard;
    struct ls_node_stats stats;
    counter_init(&heard);
    world_start(world, &(struct world_plan){.n = 2, .transport = "ipc"});
    ls_node *const other = world->at[0].node, *const node = world->at[1].node;
    for (int round = 0; round < 600; round++) {
        for (size_t i = 0; i < NAMES; i++)
            assert_ok(ls_on(node, long_name(i), count, &heard));
        await_listeners(other, 1);
        for (size_t i = 0; i < NAMES; i++)
            assert_ok(ls_off(node, long_name(i), count, &heard));
        await_listeners(other, 0);
    }
    assert_int_equal(ls_node_refusals(other, NULL, 0), 0);
    ls_node_stats(other, &stats);
    assert_int_equal(stats.reconnects, 0);
    world_destroy(world);
    counter_fini(&heard);
    free(world);
}

TEST(off_all_matches_names_as_a_shell_does)
{
    ls_node *node = alone();
    static const char *const names[] = {"step.1", "step.2", "step.x",
                                        "step",   "done",   "a/b"};
    for (size_t i = 0; i < 6; i++)
        assert_ok(ls_on(node, names[i], count, NULL));
    assert_int_equal(ls_off_all(node, "nothing*"), 0);
    assert_int_equal(ls_off_all(node, "step.[0-9]"), 2);
    assert_int_equal(ls_off_all(node, "step.[!0-9]"), 1);
    assert_int_equal(ls_off_all(node, "ste?"), 1);
    assert_ok(ls_on(node, "done", count, node));
    assert_int_equal(ls_off_all(node, "*"), 3);
    assert_int_equal(ls_off_all(node, "*"), 0);
    assert_ok(ls_on(node, "ls.finish", count, node)); /* as a task does */
    assert_int_equal(ls_off_all(node, "*"), 0);
    assert_int_equal(ls_off_all(node, "ls.*"), 1);
    ls_node_destroy(&node);
}

/* ---- inside handlers --------------------------------------------------- */

struct inside {
    ls_node *node;
    struct counter a, b;
    int status;
};

static void inside_init(struct inside *inside)
{
    inside->node = alone();
    inside->status = 1;
    counter_init(&inside->a);
    counter_init(&inside->b);
}

static void inside_fini(struct inside *inside)
{
    ls_node_destroy(&inside->node);
    counter_fini(&inside->a);
    counter_fini(&inside->b);
}

static int emit_again(void *self, const struct ls_event *event)
{
    struct inside *in = self;
    counter_add(&in->a, 1);
    return counter_get(&in->a) < 1000 ? ls_emit(in->node, event->name, NULL, 0)
                                      : LS_OK;
}

TEST(handlers_may_emit)
{
    struct inside in;
    inside_init(&in);
    assert_ok(ls_on(in.node, "again", emit_again, &in));
    emit(in.node, "again");
    assert_reaches(&in.a, 1000);
    assert_ok(ls_node_take_error(in.node));
    inside_fini(&in);
}

static int register_another(void *self, const struct ls_event *event)
{
    struct inside *in = self;
    counter_add(&in->a, 1);
    return ls_on(in->node, event->name, count, &in->b);
}

TEST(a_listener_added_by_a_handler_hears_the_next)
{
    struct inside in;
    inside_init(&in);
    assert_ok(ls_once(in.node, "x", register_another, &in));
    emit(in.node, "x");
    flush(in.node);
    assert_int_equal(counter_get(&in.b), 0);
    emit(in.node, "x");
    flush(in.node);
    assert_int_equal(counter_get(&in.a), 1);
    assert_int_equal(counter_get(&in.b), 1);
    inside_fini(&in);
}

static int remove_self(void *self, const struct ls_event *event)
{
    struct inside *in = self;
    counter_add(&in->a, 1);
    in->status = ls_off(in->node, event->name, remove_self, in);
    return LS_OK;
}

static int remove_other(void *self, const struct ls_event *event)
{
    struct inside *in = self;
    in->status = ls_off(in->node, event->name, count, &in->b);
    return LS_OK;
}

TEST(a_handler_may_remove_itself)
{
    struct inside in;
    inside_init(&in);
    assert_ok(ls_on(in.node, "x", remove_self, &in));
    assert_ok(ls_on(in.node, "x", count, &in.b));
    emit(in.node, "x");
    emit(in.node, "x");
    flush(in.node);
    assert_int_equal(in.status, LS_OK);
    assert_int_equal(counter_get(&in.a), 1);
    assert_int_equal(counter_get(&in.b), 2);
    inside_fini(&in);
}

TEST(a_listener_removed_by_a_handler_does_not_run)
{
    struct inside in;
    inside_init(&in);
    assert_ok(ls_on(in.node, "x", remove_other, &in));
    assert_ok(ls_on(in.node, "x", count, &in.b));
    emit(in.node, "x");
    flush(in.node);
    assert_int_equal(in.status, LS_OK);
    assert_int_equal(counter_get(&in.b), 0);
    inside_fini(&in);
}

static int wait_inside(void *self, const struct ls_event *event)
{
    struct inside *in = self;
    (void)event;
    in->status = ls_wait_for(in->node, "never", -1, NULL, NULL);
    counter_add(&in->a, 1);
    return LS_OK;
}

TEST(a_handler_cannot_wait_for_events)
{
    struct inside in;
    inside_init(&in);
    assert_ok(ls_on(in.node, "x", wait_inside, &in));
    emit(in.node, "x");
    assert_reaches(&in.a, 1);
    assert_int_equal(in.status, LS_ESTATE);
    inside_fini(&in);
}

/* ---- errors in handlers ------------------------------------------------ */

static int fail_loudly(void *self, const struct ls_event *event)
{
    (void)event;
    if (self != NULL)
        counter_add(self, 1);
    return ls_error(LS_EIO, "the disk is full");
}

static int fail_silently(void *self, const struct ls_event *event)
{
    (void)self;
    (void)event;
    return LS_ELIMIT;
}

TEST(an_error_names_node_event_and_handler)
{
    ls_node *node = alone();
    assert_ok(ls_node_take_error(node));
    assert_ok(ls_on(node, "save", fail_loudly, NULL));
    emit(node, "save");
    flush(node);
    assert_fails(ls_node_take_error(node), LS_EIO);
    assert_error_has("node 5");
    assert_error_has("\"save\"");
    assert_error_has("fail_loudly");
    assert_error_has("the disk is full");
    assert_ok(ls_node_take_error(node)); /* taken */
    ls_node_destroy(&node);
}

/* As who wraps ls_on() and ls_once(): all its handlers are one function. */
TEST(an_error_names_the_label_that_was_given)
{
    static const char *const labels[] = {"on save", "once saved"};
    ls_node *node = alone();
    assert_ok(ls_on_named(node, "a", fail_loudly, NULL, labels[0]));
    assert_ok(ls_once_named(node, "b", fail_loudly, NULL, labels[1]));
    for (int i = 0; i < 4; i++) {
        emit(node, i % 2 == 0 ? "a" : "b");
        flush(node);
        if (i == 3) {
            assert_ok(ls_node_take_error(node)); /* it was once */
            continue;
        }
        assert_fails(ls_node_take_error(node), LS_EIO);
        assert_error_has(labels[i % 2]);
    }
    ls_node_destroy(&node);
}

static int raise_in_python(void *self, const struct ls_event *event)
{
    (void)event;
    const int status = ls_error(LS_EHANDLER, "KeyError");
    ls_error_set_cookie(*(const uint64_t *)self);
    return status;
}

TEST(a_cookie_goes_where_the_error_goes)
{
    ls_node *node = alone();
    const uint64_t cookie = 4711;
    assert_ok(ls_on(node, "a", raise_in_python, (void *)(uintptr_t)&cookie));
    emit(node, "a");
    flush(node);
    assert_fails(ls_node_take_error(node), LS_EHANDLER);
    assert_error_has("raise_in_python: LS_EHANDLER: KeyError");
    assert_true(ls_error_cookie() == cookie);
    assert_ok(ls_node_take_error(node));
    ls_node_destroy(&node);
}

TEST(the_first_error_is_kept)
{
    ls_node *node = alone();
    assert_ok(ls_on(node, "x", fail_silently, NULL));
    assert_ok(ls_on(node, "x", fail_loudly, NULL));
    emit(node, "x");
    flush(node);
    assert_fails(ls_node_take_error(node), LS_ELIMIT);
    assert_error_has("fail_silently");
    assert_ok(ls_node_take_error(node));
    ls_node_destroy(&node);
}

TEST(an_error_stops_nothing)
{
    ls_node *node = alone();
    struct counter failed, heard;
    counter_init(&failed);
    counter_init(&heard);
    assert_ok(ls_on(node, "x", fail_loudly, &failed));
    assert_ok(ls_on(node, "x", count, &heard));
    for (int i = 0; i < 10; i++)
        emit(node, "x");
    assert_reaches(&failed, 10);
    assert_reaches(&heard, 10);
    ls_node_destroy(&node);
    counter_fini(&failed);
    counter_fini(&heard);
}

/* ---- stopping ---------------------------------------------------------- */

static void stop_node(void *self)
{
    ls_node_stop(self, LS_OK);
}

TEST(stop_waits_for_the_running_handler)
{
    ls_node *node = alone();
    struct gate gate;
    ls_thread *thread;
    gate_init(&gate);
    assert_ok(ls_on(node, "x", pass_gate, &gate));
    emit(node, "x");
    assert_reaches(&gate.entered, 1);
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "stop", stop_node,
                              node));
    assert_fails(ls_thread_join(&thread, ls_deadline(ls_runtime_threads(), 5)),
                 LS_ETIMEDOUT);
    counter_add(&gate.may_leave, 1);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(counter_get(&gate.left), 1);
    ls_node_destroy(&node);
    gate_fini(&gate);
}

/* A handler that is stuck keeps nothing else of its node from going on: not
 * its emits, and not what others see of it. */
static void listen_gate(ls_node *node, size_t index, void *self)
{
    struct gate *gates = self;
    gate_init(&gates[index]);
    assert_ok(ls_on(node, "stuck", pass_gate, &gates[index]));
    assert_ok(ls_on(node, "hi", count, &gates[index].left));
}

TEST(a_stuck_handler_holds_up_its_own_node_alone)
{
    struct world *world = calloc(1, sizeof *world);
    struct gate gates[2];
    world_start(world, &(struct world_plan){
                           .n = 2, .prepare = listen_gate, .self = gates});
    assert_ok(ls_emit_with(
        world->at[0].node,
        &(struct ls_emission){.event = "stuck", .to_one = true, .to = 1}));
    assert_reaches(&gates[0].entered, 1);
    for (int i = 0; i < 50; i++) {
        emit(world->at[0].node, "hi");
        emit(world->at[1].node, "hi");
    }
    assert_reaches(&gates[1].left, 100);
    counter_add(&gates[0].may_leave, 1);
    assert_reaches(&gates[0].left, 101);
    world_destroy(world);
    for (size_t i = 0; i < 2; i++)
        gate_fini(&gates[i]);
    free(world);
}
