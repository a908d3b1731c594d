/* Windows, as arithmetic: no thread and no socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bus.h"

#define WINDOW_MESSAGES 16
#define WINDOW_BYTES    4096

/* A sender's and a receiver's view of one connection between two nodes. */
struct flow {
    ls_node *node; /* the receiver; it has no one to send a grant to */
    struct peer *from;
    struct peer *to;
};

static int setup(void **state)
{
    struct flow *flow = calloc(1, sizeof *flow);
    struct ls_node_options options;
    char endpoint[LS_ENDPOINT_MAX + 1];
    assert_non_null(flow);
    ls_node_options_init(&options);
    assert_int_equal(ls_node_create(&flow->node, &options), LS_OK);
    flow->node->options.window_messages = WINDOW_MESSAGES;
    flow->node->options.window_bytes = WINDOW_BYTES;
    assert_int_equal(transport_open(&flow->node->transport,
                                    ls_runtime_threads(), "inproc://flow", 1024,
                                    0, endpoint),
                     LS_OK);
    flow->from = calloc(1, sizeof *flow->from);
    flow->to = calloc(1, sizeof *flow->to);
    assert_true(flow->from != NULL && flow->to != NULL);
    *state = flow;
    return 0;
}

static int teardown(void **state)
{
    struct flow *flow = *state;
    free(flow->from);
    free(flow->to);
    ls_node_destroy(&flow->node);
    free(flow);
    return 0;
}

static void release(struct flow *flow, uint64_t messages, uint64_t bytes)
{
    transport_lock(flow->node->transport);
    flow_release(flow->node, flow->from, messages, bytes);
    transport_unlock(flow->node->transport);
}

/* The receiver's limit reaches the sender. */
static void grant(struct flow *flow)
{
    const struct account limit = flow_limit(flow->node, flow->from);
    transport_lock(flow->node->transport);
    flow_raise(flow->node, flow->to, limit.messages, limit.bytes);
    transport_unlock(flow->node->transport);
}

static void settle(struct flow *flow)
{
    transport_lock(flow->node->transport);
    flow_settle(flow->node, flow->from, flow->to->sent.messages,
                flow->to->sent.bytes);
    transport_unlock(flow->node->transport);
}

static void assert_limit(struct flow *flow, uint64_t messages, uint64_t bytes)
{
    const struct account limit = flow_limit(flow->node, flow->from);
    assert_int_equal(limit.messages, messages);
    assert_int_equal(limit.bytes, bytes);
}

static void test_nothing_may_be_sent_before_a_grant(void **state)
{
    struct flow *flow = *state;
    assert_false(flow_room(flow->to, 0));
    grant(flow);
    assert_true(flow_room(flow->to, 0));
}

static void test_a_window_holds_so_many_messages(void **state)
{
    struct flow *flow = *state;
    grant(flow);
    for (int i = 0; i < WINDOW_MESSAGES; i++) {
        assert_true(flow_room(flow->to, 0));
        flow_charge(flow->to, 0);
    }
    assert_false(flow_room(flow->to, 0));
}

static void test_a_window_holds_so_many_bytes(void **state)
{
    struct flow *flow = *state;
    grant(flow);
    flow_charge(flow->to, WINDOW_BYTES - 10);
    assert_true(flow_room(flow->to, 10));
    assert_false(flow_room(flow->to, 11));
    flow_charge(flow->to, 10);
    assert_true(flow_room(flow->to, 0)); /* an empty one still fits */
    assert_false(flow_room(flow->to, 1));
}

static void test_what_is_held_takes_room_until_released(void **state)
{
    struct flow *flow = *state;
    assert_limit(flow, WINDOW_MESSAGES, WINDOW_BYTES);
    flow_got(flow->from, 100, true);
    assert_limit(flow, WINDOW_MESSAGES, WINDOW_BYTES);
    release(flow, 1, 100);
    assert_limit(flow, WINDOW_MESSAGES + 1, WINDOW_BYTES + 100);
}

static void test_what_is_not_held_makes_room_at_once(void **state)
{
    struct flow *flow = *state;
    flow_got(flow->from, 100, false);
    assert_limit(flow, WINDOW_MESSAGES + 1, WINDOW_BYTES + 100);
}

static void test_a_grant_that_is_overtaken_takes_nothing_back(void **state)
{
    struct flow *flow = *state;
    transport_lock(flow->node->transport);
    flow_raise(flow->node, flow->to, 30, 9000);
    flow_raise(flow->node, flow->to, 20, 8000);
    transport_unlock(flow->node->transport);
    assert_int_equal(flow->to->limit.messages, 30);
    assert_int_equal(flow->to->limit.bytes, 9000);
}

static void test_a_grant_is_not_sent_for_every_message(void **state)
{
    struct flow *flow = *state;
    flow->from->granted = flow_limit(flow->node, flow->from);
    const struct account before = flow->from->granted;
    for (int i = 1; i < WINDOW_MESSAGES / 4; i++) {
        flow_got(flow->from, 1, true);
        release(flow, 1, 1);
        assert_int_equal(flow->from->granted.messages, before.messages);
    }
    flow_got(flow->from, 1, true);
    release(flow, 1, 1);
    assert_int_equal(flow->from->granted.messages,
                     before.messages + WINDOW_MESSAGES / 4);
}

static void test_a_quarter_of_the_bytes_is_granted_too(void **state)
{
    struct flow *flow = *state;
    flow->from->granted = flow_limit(flow->node, flow->from);
    const uint64_t before = flow->from->granted.bytes;
    flow_got(flow->from, WINDOW_BYTES / 4, true);
    release(flow, 1, WINDOW_BYTES / 4);
    assert_int_equal(flow->from->granted.bytes, before + WINDOW_BYTES / 4);
}

static void test_what_was_lost_is_counted_and_does_not_cost_room(void **state)
{
    struct flow *flow = *state;
    grant(flow);
    for (int i = 0; i < 10; i++)
        flow_charge(flow->to, 10);
    for (int i = 0; i < 7; i++)
        flow_got(flow->from, 10, true); /* three never came */
    settle(flow);
    assert_int_equal(flow->node->stats.lost, 3);
    assert_limit(flow, WINDOW_MESSAGES + 3, WINDOW_BYTES + 30);
    release(flow, 7, 70);
    assert_limit(flow, WINDOW_MESSAGES + 10, WINDOW_BYTES + 100);
    settle(flow);
    assert_int_equal(flow->node->stats.lost, 3); /* once */
}

static void test_what_was_not_counted_by_the_sender_is_no_loss(void **state)
{
    struct flow *flow = *state;
    flow_got(flow->from, 10, false); /* it came before the sender knew */
    settle(flow);
    assert_int_equal(flow->node->stats.lost, 0);
    assert_limit(flow, WINDOW_MESSAGES, WINDOW_BYTES);
}

/* Whatever is sent, lost, held and released in whatever order: never more is
 * under way than the window, and once all is settled the window is whole. */
static void test_the_window_heals_whatever_happens(void **state)
{
    struct flow *flow = *state;
    uint64_t held = 0, random = 1;
    grant(flow);
    for (int i = 0; i < 100000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const unsigned choice = (unsigned)(random >> 60);
        if (choice < 8 && flow_room(flow->to, 100)) {
            flow_charge(flow->to, 100);
            if (choice != 0) { /* else lost */
                flow_got(flow->from, 100, choice < 6);
                held += choice < 6 ? 1 : 0;
            }
        } else if (choice < 12 && held > 0) {
            held--;
            release(flow, 1, 100);
        } else if (choice == 12) {
            settle(flow);
        } else if (choice == 13) {
            grant(flow);
        }
        assert_true(held <= WINDOW_MESSAGES && held * 100 <= WINDOW_BYTES);
    }
    release(flow, held, held * 100);
    settle(flow);
    grant(flow);
    assert_int_equal(flow->to->limit.messages - flow->to->sent.messages,
                     WINDOW_MESSAGES);
    assert_int_equal(flow->to->limit.bytes - flow->to->sent.bytes,
                     WINDOW_BYTES);
}

int main(void)
{
#define FLOW_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        FLOW_TEST(test_nothing_may_be_sent_before_a_grant),
        FLOW_TEST(test_a_window_holds_so_many_messages),
        FLOW_TEST(test_a_window_holds_so_many_bytes),
        FLOW_TEST(test_what_is_held_takes_room_until_released),
        FLOW_TEST(test_what_is_not_held_makes_room_at_once),
        FLOW_TEST(test_a_grant_that_is_overtaken_takes_nothing_back),
        FLOW_TEST(test_a_grant_is_not_sent_for_every_message),
        FLOW_TEST(test_a_quarter_of_the_bytes_is_granted_too),
        FLOW_TEST(test_what_was_lost_is_counted_and_does_not_cost_room),
        FLOW_TEST(test_what_was_not_counted_by_the_sender_is_no_loss),
        FLOW_TEST(test_the_window_heals_whatever_happens),
    };
    return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
