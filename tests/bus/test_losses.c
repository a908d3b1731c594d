/* What is lost is counted, between whom and of which event; who is slow is
 * named. */
#include "raw_peer.h"

#include "bus.h"
#include "lockstep/simulation.h"

#define WINDOW 16
#define MIB    (1024u * 1024u)

/* ---- over a network that doubles and puts out of order ------------------ */

struct listener_world {
    struct world world;
    ls_node *node;
    struct counter ready, came, disorder;
    uint64_t last;
    struct raw_peer raw;
};

static int check_order(void *self, const struct ls_event *event)
{
    struct listener_world *l = self;
    if (event->sequence <= l->last)
        counter_add(&l->disorder, 1);
    l->last = event->sequence;
    counter_add(&l->came, 1);
    return LS_OK;
}

static void on_member(void *self, const struct ls_member *member)
{
    struct listener_world *l = self;
    counter_add(&l->ready, member->state == LS_MEMBER_READY ? 1 : 0);
}

static void listen_one(ls_node *node, size_t index, void *self)
{
    struct listener_world *l = self;
    (void)index;
    assert_ok(ls_on(node, "x", check_order, l));
    assert_ok(ls_node_on_member(node, on_member, l));
}

static void patient(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->insecure = true;    /* raw peers have no secret, */
    options->silence_ms = 60000; /* and do not keep beating, */
    options->linger_ms = 100;    /* and do not close when told farewell */
}

static struct listener_world *listener_start(void)
{
    struct listener_world *l = calloc(1, sizeof *l);
    assert_non_null(l);
    counter_init(&l->ready);
    counter_init(&l->came);
    counter_init(&l->disorder);
    world_start(&l->world, &(struct world_plan){.n = 1,
                                                .transport = "tcp",
                                                .tune = patient,
                                                .prepare = listen_one,
                                                .self = l});
    l->node = l->world.at[0].node;
    raw_open(&l->raw, 666, ls_node_endpoint(l->node));
    raw_be_present(&l->raw);
    raw_await_presence(&l->raw, l->node);
    raw_heartbeat(&l->raw, l->node);
    assert_reaches(&l->ready, 1);
    return l;
}

/* Whether the raw peer has acknowledged all. */
static bool is_acknowledged(ls_node *node)
{
    transport_lock(node->transport);
    const bool idle = stream_is_idle(&streams_of(world_find(node, 666))->out);
    transport_unlock(node->transport);
    return idle;
}

static void listener_end(struct listener_world *l)
{
    raw_close(&l->raw);
    world_destroy(&l->world);
    counter_fini(&l->ready);
    counter_fini(&l->came);
    counter_fini(&l->disorder);
    free(l);
}

static void send_event(struct listener_world *l, uint64_t sequence)
{
    struct wire_header header = raw_header(&l->raw, WIRE_KIND_EVENT);
    header.sequence = sequence;
    raw_event(&l->raw, "x", &header, "data", 4);
}

static void send_chunk(struct listener_world *l, uint64_t sequence,
                       uint32_t offset)
{
    struct wire_header header = raw_header(&l->raw, WIRE_KIND_CHUNK);
    header.sequence = sequence;
    header.total = 8;
    header.offset = offset;
    raw_event(&l->raw, "x", &header, "data", 4);
}

static void assert_counts(struct listener_world *l, uint64_t missed,
                          uint64_t repeated)
{
    struct ls_router_stats stats;
    ls_router_stats(l->node, &stats);
    assert_int_equal(stats.missed, missed);
    assert_int_equal(stats.repeated, repeated);
    assert_int_equal(counter_get(&l->disorder), 0);
}

static void test_what_comes_twice_is_handled_once(void **state)
{
    (void)state;
    struct listener_world *l = listener_start();
    for (uint64_t i = 1; i <= 5; i++) {
        send_event(l, i);
        send_event(l, i);
    }
    send_event(l, 6);
    assert_reaches(&l->came, 6);
    assert_counts(l, 0, 5);
    listener_end(l);
}

static void test_what_comes_too_late_is_missed(void **state)
{
    (void)state;
    struct listener_world *l = listener_start();
    const uint64_t order[] = {1, 2, 5, 3, 4, 6, 8, 7, 9};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        send_event(l, order[i]);
    assert_reaches(&l->came, 6); /* without 3, 4 and 7 */
    assert_counts(l, 3, 3);
    struct ls_router_loss loss;
    assert_int_equal(ls_router_losses(l->node, &loss, 1), 1);
    assert_int_equal(loss.sender, 666);
    assert_int_equal(loss.receiver, 1);
    assert_int_equal(loss.missed, 3);
    listener_end(l);
}

static void test_parts_that_come_twice_do_no_harm(void **state)
{
    (void)state;
    struct listener_world *l = listener_start();
    send_event(l, 1);
    send_chunk(l, 2, 0);
    send_chunk(l, 2, 0);
    send_chunk(l, 2, 4);
    send_chunk(l, 2, 4);
    send_chunk(l, 2, 0);
    send_event(l, 3);
    assert_reaches(&l->came, 3);
    assert_counts(l, 0, 2); /* after it was whole */
    listener_end(l);
}

/* ---- one that is slow -------------------------------------------------- */

struct slow_world {
    struct world world;
    ls_node *from, *to;
    struct counter done, go_on;
};

static int wait_for_it(void *self, const struct ls_event *event)
{
    struct slow_world *slow = self;
    (void)event;
    if (!counter_reaches(&slow->go_on, 1))
        abort();
    counter_add(&slow->done, 1);
    return LS_OK;
}

static void listen_slowly(ls_node *node, size_t index, void *self)
{
    struct slow_world *slow = self;
    if (index == 1)
        assert_ok(ls_on(node, "x", wait_for_it, slow));
}

static void small_window(struct ls_node_options *options, size_t index)
{
    options->window_messages = WINDOW;
    options->window_bytes = 4 * MIB;
    options->role = index == 1 ? "slow" : "";
    options->silence_ms = 20000;
}

static struct slow_world *slow_start(void)
{
    struct slow_world *slow = calloc(1, sizeof *slow);
    assert_non_null(slow);
    counter_init(&slow->done);
    counter_init(&slow->go_on);
    world_start(&slow->world, &(struct world_plan){.n = 2,
                                                   .tune = small_window,
                                                   .prepare = listen_slowly,
                                                   .self = slow});
    slow->from = slow->world.at[0].node;
    slow->to = slow->world.at[1].node;
    return slow;
}

static void slow_end(struct slow_world *slow)
{
    counter_add(&slow->go_on, 1);
    world_destroy(&slow->world);
    counter_fini(&slow->done);
    counter_fini(&slow->go_on);
    free(slow);
}

/* Until the sender knows that there is room again, each is dropped. Returns how
 * many it has dropped so far. */
static uint64_t emit_one_that_goes(ls_node *from)
{
    struct ls_router_stats before, after;
    do {
        ls_router_stats(from, &before);
        assert_ok(ls_emit(from, "x", NULL, 0));
        ls_router_stats(from, &after);
    } while (after.dropped != before.dropped);
    return after.dropped;
}

static void test_a_long_event_that_is_dropped_counts_once(void **state)
{
    (void)state;
    struct slow_world *slow = slow_start();
    struct ls_router_stats stats;
    struct ls_router_loss loss;
    uint8_t *data = calloc(10, MIB);
    assert_non_null(data);
    assert_ok(ls_event_policy(slow->from, "x", LS_POLICY_DROP));
    for (int i = 0; i < WINDOW - 1; i++) /* the handler waits */
        assert_ok(ls_emit(slow->from, "x", NULL, 0));
    /* There is room for one part more, or none. */
    for (int i = 0; i < 3; i++)
        assert_ok(ls_emit(slow->from, "x", data, 10u * MIB));
    free(data);
    ls_router_stats(slow->from, &stats);
    assert_int_equal(stats.dropped, 3);
    assert_int_equal(ls_router_losses(slow->from, &loss, 1), 1);
    assert_int_equal(loss.sender, 1);
    assert_int_equal(loss.receiver, 2);
    assert_string_equal(loss.event, "x");
    assert_int_equal(loss.dropped, 3);
    counter_add(&slow->go_on, 1);
    assert_reaches(&slow->done, WINDOW - 1);
    const uint64_t n_dropped = emit_one_that_goes(slow->from);
    assert_reaches(&slow->done, WINDOW); /* it shows what was missed */
    ls_router_stats(slow->to, &stats);
    assert_int_equal(stats.missed, n_dropped);
    slow_end(slow);
}

static void test_nothing_lost_is_no_row(void **state)
{
    (void)state;
    struct slow_world *slow = slow_start();
    struct ls_router_stats stats;
    counter_add(&slow->go_on, 1);
    for (int i = 0; i < 5; i++)
        assert_ok(ls_emit(slow->from, "x", NULL, 0));
    assert_reaches(&slow->done, 5);
    assert_int_equal(ls_router_losses(slow->from, NULL, 0), 0);
    assert_int_equal(ls_router_losses(slow->to, NULL, 0), 0);
    ls_router_stats(slow->from, &stats);
    assert_int_equal(stats.slowest_ns, 0);
    slow_end(slow);
}

static void test_the_slowest_is_known(void **state)
{
    (void)state;
    struct slow_world *slow = slow_start();
    struct ls_router_stats stats;
    for (int i = 0; i < WINDOW; i++)
        assert_ok(ls_emit(slow->from, "x", NULL, 0));
    assert_fails(ls_emit_with(slow->from, &(struct ls_emission){.event = "x",
                                                                .wait_ms = 5}),
                 LS_EAGAIN);
    ls_router_stats(slow->from, &stats);
    assert_int_equal(stats.slowest, 2);
    assert_true(stats.slowest_ns > 0);
    slow_end(slow);
}

static void count_lines(void *self, const char *line)
{
    assert_text(line, "node 5 (late) is slow", __LINE__);
    assert_text(line, "\"x\"", __LINE__);
    ++*(int *)self;
}

static void test_a_line_says_who_is_slow_now_and_then(void **state)
{
    (void)state;
    const struct event_entry entry = {.name = "x"};
    struct peer *peer = calloc(1, sizeof *peer);
    int lines = 0;
    assert_non_null(peer);
    peer->member.id = 5;
    peer->member.role = "late";
    ls_log_redirect(count_lines, &lines);
    const int64_t s = LS_NS_PER_S;
    assert_int_equal(losses_waiting(&entry, peer, s, s), 2 * s);
    assert_int_equal(losses_waiting(&entry, peer, s, s + s / 2), 2 * s);
    assert_int_equal(lines, 0);
    assert_int_equal(losses_waiting(&entry, peer, s, 2 * s), 12 * s);
    assert_int_equal(lines, 1);
    assert_int_equal(losses_waiting(&entry, peer, s, 3 * s), 12 * s);
    assert_int_equal(losses_waiting(&entry, peer, 3 * s, 5 * s), 12 * s);
    assert_int_equal(lines, 1);
    assert_int_equal(losses_waiting(&entry, peer, s, 12 * s), 22 * s);
    assert_int_equal(lines, 2);
    ls_log_redirect(NULL, NULL);
    free(peer);
}

/* It has got the first message of the stream to it; an event tells when that
 * was read. */
static void acknowledge(struct listener_world *l, uint64_t life, uint64_t event)
{
    struct wire_header header = raw_header(&l->raw, WIRE_KIND_ACK);
    header.to_incarnation = life;
    header.number = 1;
    header.limit_messages = header.limit_bytes = 1u << 30;
    raw_event(&l->raw, NULL, &header, NULL, 0);
    header = raw_header(&l->raw, WIRE_KIND_EVENT);
    header.sequence = event;
    raw_event(&l->raw, "x", &header, "data", 4);
    assert_reaches(&l->came, (int)event);
}

static void forget(void *data, void *hint)
{
    (void)data;
    (void)hint;
}

/* A message of a channel into the stream to the raw peer. */
static void push(ls_node *node)
{
    struct parcel parcel = {.size = 4, .of = WIRE_KIND_CHANNEL};
    parcel.name = strdup("channel");
    assert_non_null(parcel.name);
    assert_ok(payload_create(&parcel.payload, "data", 4, forget, NULL));
    transport_lock(node->transport);
    assert_ok(streams_push(node, world_find(node, 666), &parcel));
    transport_unlock(node->transport);
    payload_drop(parcel.payload);
}

static void test_an_acknowledgement_of_an_earlier_life_is_none(void **state)
{
    (void)state;
    struct listener_world *l = listener_start();
    const uint64_t life = ls_node_incarnation(l->node);
    push(l->node);
    acknowledge(l, life - 1, 1);
    assert_false(is_acknowledged(l->node));
    acknowledge(l, life, 2);
    assert_true(is_acknowledged(l->node));
    listener_end(l);
}

struct dropping {
    ls_simulation *simulation;
    int lines;
};

static void note_missed(void *self, const char *line)
{
    assert_text(line, "missed 3 events in the last 1.0 s", __LINE__);
    ++*(int *)self;
}

static void drop_now_and_then(void *arg)
{
    struct dropping *dropping = arg;
    ls_runtime *runtime = ls_simulation_runtime(dropping->simulation);
    const int64_t s = LS_NS_PER_S, soon = s / 1000;
    struct event_entry entry = {.name = "x"};
    ls_node *node = calloc(1, sizeof *node);
    struct peer *peer = calloc(1, sizeof *peer);
    assert_true(node != NULL && peer != NULL);
    node->runtime = runtime;
    peer->member.role = "late";
    losses_dropped(node, &entry, peer);
    ls_rest_until(runtime, ls_now(runtime) + s / 2);
    losses_dropped(node, &entry, peer);
    assert_in_range(peer->slow.waited_ns, s / 2, s / 2 + soon);
    ls_rest_until(runtime, ls_now(runtime) + 3 * s); /* it kept up */
    for (int i = 0; i < 4; i++) {
        losses_dropped(node, &entry, peer);
        assert_int_equal(dropping->lines, i < 2 ? 0 : 1);
        ls_rest_until(runtime, ls_now(runtime) + s / 2 + soon / 10);
    }
    assert_in_range(peer->slow.waited_ns, 2 * s, 2 * s + soon);
    assert_int_equal(node->figures.stats.dropped, 6);
    assert_int_equal(entry.records->dropped, 6);
    free(entry.records);
    free(peer);
    free(node);
}

static void test_drops_in_short_succession_are_one_slowness(void **state)
{
    (void)state;
    struct dropping dropping = {.lines = 0};
    assert_ok(ls_simulation_create(&dropping.simulation, NULL));
    ls_log_redirect(note_missed, &dropping.lines);
    assert_ok(
        ls_simulation_run(dropping.simulation, drop_now_and_then, &dropping));
    ls_log_redirect(NULL, NULL);
    ls_simulation_destroy(&dropping.simulation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_acknowledgement_of_an_earlier_life_is_none),
        cmocka_unit_test(test_what_comes_twice_is_handled_once),
        cmocka_unit_test(test_what_comes_too_late_is_missed),
        cmocka_unit_test(test_parts_that_come_twice_do_no_harm),
        cmocka_unit_test(test_a_long_event_that_is_dropped_counts_once),
        cmocka_unit_test(test_nothing_lost_is_no_row),
        cmocka_unit_test(test_the_slowest_is_known),
        cmocka_unit_test(test_a_line_says_who_is_slow_now_and_then),
        cmocka_unit_test(test_drops_in_short_succession_are_one_slowness),
    };
    return cmocka_run_group_tests_name("losses", tests, NULL, NULL);
}
