/* Nodes whose memory runs out, at each place where they take some: what they
 * were asked for then fails and says so, or is done without that memory. What
 * was taken on is kept; nothing crashes, hangs or is left behind. */
#include "allocations.h"
#include "lockstep/call.h"
#include "lockstep/payload.h"
#include "node_fixture.h"
#include "shared_memory.h"

/* A wait for what may be refused. */
#define SHORT_MS 100

static char long_body[200000];

/* The allocation that failed is a reason for that. */
static bool worked(int status)
{
    if (status != LS_OK && (status != LS_ENOMEM || !allocation_failed()))
        fail_msg("%s: %s", ls_status_name(status), ls_error_text());
    return status == LS_OK;
}

/* So is it when the other side had no memory for it. */
static bool answered(int status)
{
    const bool refused = status == LS_ETIMEDOUT || status == LS_EABORTED ||
                         status == LS_EHANDLER;
    return refused && allocation_failed() ? false : worked(status);
}

static int hear(void *self, const struct ls_event *event)
{
    (void)self;
    (void)event;
    return LS_OK;
}

static int answer(void *self, ls_request *request)
{
    (void)self;
    return ls_request_complete(&request, "yes", 3);
}

static void ask(ls_rpc *calls, uint32_t to, size_t size, size_t body_size)
{
    void *data = NULL;
    size_t n = 0;
    const struct ls_call_options asked = {
        .to = to,
        .name = "ask",
        .data = long_body,
        .size = size,
        .body = {.data = long_body, .size = body_size},
        .timeout_ms = SHORT_MS};
    if (answered(ls_call_ask(calls, &asked, &data, &n)))
        assert_int_equal(n, 3);
    free(data);
}

/* ---- one node ---- */

static void talk_to_itself(ls_node *node)
{
    ls_waiter *waiter = NULL;
    if (worked(ls_waiter_create(&waiter, node, "hello", 0)) &&
        worked(ls_emit(node, "hello", "you", 3)) &&
        ls_waiter_wait(waiter, SHORT_MS, NULL, NULL) != LS_OK)
        assert_true(allocation_failed() && ls_waiter_dropped(waiter) == 1);
    assert_ok(ls_waiter_destroy(&waiter));
    (void)worked(ls_emit(node, "hello", long_body, sizeof long_body));
    (void)worked(ls_off(node, "h*", hear, NULL));
}

static void live_alone(void)
{
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_rpc *calls = NULL;
    ls_node_options_init(&options);
    options.topology = LS_TOPOLOGY_ALONE;
    if (worked(ls_node_create(&node, &options)) &&
        worked(ls_rpc_open(&calls, node, NULL)) &&
        worked(ls_rpc_serve(calls, "ask", LS_CALL_ANYONE, answer, NULL)) &&
        worked(ls_on(node, "h*", hear, NULL)) &&
        worked(ls_on(node, "hello", hear, NULL)) &&
        worked(ls_node_start(node))) {
        talk_to_itself(node);
        ask(calls, 0, 1000, 0);
    }
    assert_ok(ls_rpc_close(&calls));
    assert_ok(ls_node_destroy(&node));
}

TEST(a_node_that_is_alone)
{
    (void)state;
    for (long n = 0; allocations_fail_at(n); n++)
        live_alone();
}

/* ---- calls that are closed ---- */

struct keeper {
    struct counter kept, let_go, held, ended;
    ls_request *request;
};

static int keep(void *self, ls_request *request)
{
    struct keeper *keeper = self;
    keeper->request = request;
    counter_add(&keeper->kept, 1);
    return LS_OK;
}

static void let_go(void *self)
{
    counter_add(&((struct keeper *)self)->let_go, 1);
}

/* Until the request is let go. */
static int hold(void *self, const struct ls_event *event)
{
    struct keeper *keeper = self;
    (void)event;
    counter_add(&keeper->held, 1);
    assert_reaches(&keeper->let_go, 1);
    return LS_OK;
}

static void end(void *self, ls_call *call)
{
    (void)call;
    counter_add(&((struct keeper *)self)->ended, 1);
}

/* That a call has ended goes to the dispatch thread in a message, and all there
 * were are in use: those of the request, and of its start, may be idle by now,
 * and events that wait take them. */
TEST(calls_are_closed_though_there_is_no_memory_to_tell_of_an_end)
{
    struct keeper keeper = {.request = NULL};
    struct counter *const counters[] = {&keeper.kept, &keeper.let_go,
                                        &keeper.held, &keeper.ended};
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_rpc *calls = NULL;
    ls_call *call = NULL;
    (void)state;
    for (size_t i = 0; i < 4; i++)
        counter_init(counters[i]);
    ls_node_options_init(&options);
    options.topology = LS_TOPOLOGY_ALONE;
    options.heartbeat_ms = LONG_MS; /* nobody else takes memory meanwhile */
    options.silence_ms = 2 * LONG_MS;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_rpc_open(&calls, node, NULL));
    assert_ok(ls_rpc_serve(calls, "keep", LS_CALL_ANYONE, keep, &keeper));
    assert_ok(ls_on(node, "hold", hold, &keeper));
    assert_ok(ls_node_start(node));
    assert_ok(ls_call_start(&call, calls,
                            &(struct ls_call_options){.name = "keep",
                                                      .timeout_ms = LONG_MS,
                                                      .ended = end,
                                                      .self = &keeper}));
    assert_reaches(&keeper.kept, 1);
    ls_request_on_cancel(keeper.request, let_go, &keeper);
    assert_ok(ls_emit(node, "hold", NULL, 0));
    assert_reaches(&keeper.held, 1);
    for (int i = 0; i < 8; i++)
        assert_ok(ls_emit(node, "hold", NULL, 0));

    (void)allocations_fail_at(0);
    assert_ok(ls_rpc_close(&calls));
    assert_true(allocation_failed());
    assert_int_equal(counter_get(&keeper.ended), 1);
    (void)ls_request_complete(&keeper.request, NULL, 0);
    ls_call_destroy(&call);
    assert_ok(ls_node_destroy(&node));
    for (size_t i = 0; i < 4; i++)
        counter_fini(counters[i]);
}

/* ---- two nodes ---- */

struct talker {
    ls_node *node;
    ls_rpc *calls;
    struct counter told, met; /* of all lives */
};

static void meet(void *self, const struct ls_member *member)
{
    if (member->state == LS_MEMBER_READY)
        counter_add(&((struct talker *)self)->met, 1);
}

/* Who is ready it is told, or its run is to fail. */
static void assert_told_of_other(struct talker *talker, int met)
{
    const int64_t deadline = long_deadline();
    while (counter_get(&talker->met) == met &&
           ls_node_take_error(talker->node) == LS_OK &&
           ls_now(ls_runtime_threads()) < deadline)
        ls_yield_core(ls_runtime_threads());
    assert_true(ls_now(ls_runtime_threads()) < deadline);
}

/* Something that it was told it had no memory for, as which events the other
 * listens to: it was counted, and the log has it. */
static bool refuses(ls_node *node)
{
    struct ls_node_stats stats;
    ls_node_stats(node, &stats);
    return stats.refused > 0;
}

/* What is reliable comes once it was taken on; what else is not sent says so.
 */
static void tell(const struct talker *from, struct talker *to)
{
    struct ls_emission emission = {.event = "told",
                                   .data = "a b c",
                                   .size = 5,
                                   .scope = LS_SCOPE_REMOTE,
                                   .delivery = LS_DELIVERY_RELIABLE,
                                   .timeout_ms = LONG_MS};
    const int before = counter_get(&to->told);
    if (refuses(from->node) || refuses(to->node))
        return;
    if (worked(ls_emit_with(from->node, &emission)))
        assert_reaches(&to->told, before + 1);
    emission.event = "seen";
    emission.delivery = LS_DELIVERY_LATEST;
    (void)worked(ls_emit_with(from->node, &emission));
    emission.delivery = LS_DELIVERY_BLOCK;
    emission.data = long_body;
    emission.size = sizeof long_body;
    (void)worked(ls_emit_with(from->node, &emission));
    void *image = NULL;
    if (worked(ls_payload_alloc(&image, from->node, sizeof long_body))) {
        emission.data = image;
        emission.release = ls_payload_free;
        (void)worked(ls_emit_with(from->node, &emission));
    }
}

/* Who refuses the other for lack of memory is not in its world. */
static bool begins(struct talker *talker, const struct ls_node_options *options)
{
    if (!worked(ls_node_create(&talker->node, options)) ||
        !worked(ls_rpc_open(&talker->calls, talker->node, NULL)) ||
        !worked(
            ls_rpc_serve(talker->calls, "ask", LS_CALL_ANYONE, answer, NULL)) ||
        !worked(ls_on(talker->node, "seen", hear, NULL)) ||
        !worked(ls_on(talker->node, "told", count, &talker->told)) ||
        !worked(ls_node_on_member(talker->node, meet, talker)))
        return false;
    return ls_node_start(talker->node) == LS_OK;
}

static void ends(struct talker *talker)
{
    assert_ok(ls_rpc_close(&talker->calls));
    assert_ok(ls_node_destroy(&talker->node));
}

/* Returns whether they have come to talk. */
static bool live_together(struct talker *a, struct talker *b, const char *bind,
                          int start_timeout_ms)
{
    bool talk = false;
    const int met[] = {counter_get(&a->met), counter_get(&b->met)};
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.bind = bind;
    options.start_timeout_ms = start_timeout_ms;
    options.heartbeat_ms = 20; /* settles what was charged and not sent */
    if (begins(a, &options)) {
        const char *const endpoint = ls_node_endpoint(a->node);
        char other[LS_ENDPOINT_MAX + 1];
        (void)snprintf(other, sizeof other, "%s-b", bind);
        options.id = 1;
        options.bind = strncmp(bind, "tcp", 3) == 0 ? bind : other;
        options.world_size = 2;
        options.attach = &endpoint;
        options.n_attach = 1;
        talk = begins(b, &options);
        if (talk) {
            assert_told_of_other(a, met[0]);
            assert_told_of_other(b, met[1]);
            tell(b, a);
            tell(a, b);
            ask(b->calls, 0, 10, sizeof long_body);
        }
        ends(b);
    }
    ends(a);
    return talk;
}

static void live_at(const char *bind)
{
    struct talker a = {.node = NULL}, b = {.node = NULL};
    struct counter *const counters[] = {&a.told, &a.met, &b.told, &b.met};
    for (size_t i = 0; i < 4; i++)
        counter_init(counters[i]);
    for (long n = 0; allocations_fail_at(n); n++)
        (void)live_together(&a, &b, bind, SHORT_MS);
    assert_true(live_together(&a, &b, bind, LONG_MS));
    for (size_t i = 0; i < 4; i++)
        counter_fini(counters[i]);
}

TEST(nodes_of_one_process)
{
    (void)state;
    live_at("inproc://out-of-memory");
}

TEST(nodes_over_tcp)
{
    char bind[LS_ENDPOINT_MAX + 1];
    (void)state;
    (void)snprintf(bind, sizeof bind, "tcp://%s:21500-21999", loopback());
    live_at(bind);
}
