/* Windows, as arithmetic: no thread and no socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bus.h"
#include "transport_fixture.h"

#define WINDOW_MESSAGES 16
#define WINDOW_BYTES    4096

/* A sender's and a receiver's view of one connection between two nodes. */
struct flow {
    ls_node *node; /* the receiver; it has no one to send a grant to */
    struct peer *from;
    struct peer *to;
    ls_security *security;
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
    assert_int_equal(ls_security_none(&flow->security), LS_OK);
    assert_int_equal(open_transport(&flow->node->transport,
                                    ls_runtime_threads(), "inproc://flow",
                                    flow->security, endpoint),
                     LS_OK);
    flow->from = calloc(1, sizeof *flow->from);
    flow->to = calloc(1, sizeof *flow->to);
    assert_true(flow->from != NULL && flow->to != NULL);
    assert_int_equal(flow_open(flow->from), LS_OK);
    assert_int_equal(flow_open(flow->to), LS_OK);
    flow->from->member.state = LS_MEMBER_READY; /* else it is told nothing */
    flow->from->member.n_present = 1;
    *state = flow;
    return 0;
}

static int teardown(void **state)
{
    struct flow *flow = *state;
    free(flow->from->hop);
    free(flow->from);
    free(flow->to->hop);
    free(flow->to);
    ls_node_destroy(&flow->node);
    ls_security_destroy(&flow->security);
    free(flow);
    return 0;
}

static void release(struct flow *flow, uint64_t messages, uint64_t bytes)
{
    transport_lock(flow->node->transport);
    flow_release(flow->node, flow->from, messages, bytes);
    transport_unlock(flow->node->transport);
}

/* The receiver's limit reaches the sender, and what has arrived there. */
static void grant(struct flow *flow)
{
    struct wire_member says = {.state = WIRE_MEMBER_READY};
    transport_lock(flow->node->transport);
    flow_account(flow->node, flow->from, &says);
    says.sent_messages = says.sent_bytes = 0; /* it is told nothing here */
    assert_int_equal(flow_settle(flow->node, flow->to, &says), LS_OK);
    transport_unlock(flow->node->transport);
}

static int settle_as(struct flow *flow, uint64_t messages, uint64_t bytes)
{
    const struct wire_member says = {.state = WIRE_MEMBER_READY,
                                     .sent_messages = messages,
                                     .sent_bytes = bytes};
    transport_lock(flow->node->transport);
    const int status = flow_settle(flow->node, flow->from, &says);
    transport_unlock(flow->node->transport);
    return status;
}

static void settle(struct flow *flow)
{
    assert_int_equal(settle_as(flow, flow->to->hop->sent.messages,
                               flow->to->hop->sent.bytes),
                     LS_OK);
}

static struct account limit_of(struct flow *flow)
{
    struct wire_member says;
    transport_lock(flow->node->transport);
    flow_account(flow->node, flow->from, &says);
    transport_unlock(flow->node->transport);
    return (struct account){says.limit_messages, says.limit_bytes};
}

static void assert_limit(struct flow *flow, uint64_t messages, uint64_t bytes)
{
    const struct account limit = limit_of(flow);
    assert_int_equal(limit.messages, messages);
    assert_int_equal(limit.bytes, bytes);
}

static void charge(struct flow *flow, size_t bytes)
{
    (void)flow_charge(flow->node, flow->to, bytes);
}

/* As a leaf has none to those that its hub relays. */
static void test_a_peer_has_a_window_from_when_it_is_listed(void **state)
{
    struct flow *flow = *state;
    struct peer peer = {.member.id = 7};
    struct wire_member says = {.state = WIRE_MEMBER_READY};
    transport_lock(flow->node->transport);
    flow_begin(&peer, false);
    assert_null(peer.hop);
    flow_account(flow->node, &peer, &says);
    transport_unlock(flow->node->transport);
    assert_int_equal(says.limit_messages, WINDOW_MESSAGES);
    assert_int_equal(says.limit_bytes, WINDOW_BYTES);
    assert_true(flow_may(flow->node, &peer, WINDOW_MESSAGES, WINDOW_BYTES));
    free(peer.hop);
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
        charge(flow, 0);
    }
    assert_false(flow_room(flow->to, 0));
}

static void test_a_window_holds_so_many_bytes(void **state)
{
    struct flow *flow = *state;
    grant(flow);
    charge(flow, WINDOW_BYTES - 10);
    assert_true(flow_room(flow->to, 10));
    assert_false(flow_room(flow->to, 11));
    charge(flow, 10);
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
    flow_credit(
        flow->node, flow->to,
        &(struct wire_header){.limit_messages = 30, .limit_bytes = 9000});
    flow_credit(
        flow->node, flow->to,
        &(struct wire_header){.limit_messages = 20, .limit_bytes = 8000});
    transport_unlock(flow->node->transport);
    assert_int_equal(flow->to->hop->limit.messages, 30);
    assert_int_equal(flow->to->hop->limit.bytes, 9000);
}

static void test_a_grant_is_not_sent_for_every_message(void **state)
{
    struct flow *flow = *state;
    const uint64_t before = limit_of(flow).messages;
    for (int i = 1; i < WINDOW_MESSAGES / 4; i++) {
        flow_got(flow->from, 1, true);
        release(flow, 1, 1);
        assert_int_equal(flow->from->hop->granted_messages, before);
    }
    flow_got(flow->from, 1, true);
    release(flow, 1, 1);
    assert_int_equal(flow->from->hop->granted_messages,
                     before + WINDOW_MESSAGES / 4);
}

static void test_a_quarter_of_the_bytes_is_granted_too(void **state)
{
    struct flow *flow = *state;
    const uint64_t before = limit_of(flow).bytes;
    flow_got(flow->from, WINDOW_BYTES / 4, true);
    release(flow, 1, WINDOW_BYTES / 4);
    assert_int_equal(flow->from->hop->granted_bytes, before + WINDOW_BYTES / 4);
}

static void test_what_was_lost_is_counted_and_does_not_cost_room(void **state)
{
    struct flow *flow = *state;
    grant(flow);
    for (int i = 0; i < 10; i++)
        charge(flow, 10);
    for (int i = 0; i < 7; i++)
        flow_got(flow->from, 10, true); /* three never came */
    settle(flow);
    assert_int_equal(flow->node->figures.stats.lost, 3);
    assert_limit(flow, WINDOW_MESSAGES + 3, WINDOW_BYTES + 30);
    release(flow, 7, 70);
    assert_limit(flow, WINDOW_MESSAGES + 10, WINDOW_BYTES + 100);
    settle(flow);
    assert_int_equal(flow->node->figures.stats.lost, 3); /* once */
}

static void test_what_was_not_counted_by_the_sender_is_no_loss(void **state)
{
    struct flow *flow = *state;
    flow_got(flow->from, 10, false); /* it came before the sender knew */
    settle(flow);
    assert_int_equal(flow->node->figures.stats.lost, 0);
    assert_limit(flow, WINDOW_MESSAGES, WINDOW_BYTES);
}

static void test_a_sender_that_goes_further_is_seen(void **state)
{
    struct flow *flow = *state;
    grant(flow);
    assert_true(
        flow_may(flow->node, flow->from, WINDOW_MESSAGES, WINDOW_BYTES));
    for (int i = 0; i < WINDOW_MESSAGES + WINDOW_MESSAGES / 2; i++) {
        assert_true(flow_may(flow->node, flow->from, 1, 0));
        flow_got(flow->from, 0, true);
    }
    assert_false(flow_may(flow->node, flow->from, 1, 0));
    assert_false(flow_may(flow->node, flow->from, 0, 2 * WINDOW_BYTES));
    release(flow, WINDOW_MESSAGES, 0); /* it has been granted more */
    assert_true(flow_may(flow->node, flow->from, 1, 0));
}

static void test_what_a_sender_says_of_itself_is_bounded(void **state)
{
    struct flow *flow = *state;
    grant(flow);
    assert_int_equal(settle_as(flow, WINDOW_MESSAGES + 1, 0), LS_EPROTO);
    assert_int_equal(settle_as(flow, 0, WINDOW_BYTES + 1), LS_EPROTO);
    assert_int_equal(settle_as(flow, 1ull << 63, 0), LS_EPROTO);
    assert_int_equal(flow->node->figures.stats.lost, 0);
    assert_int_equal(settle_as(flow, 5, 50), LS_OK);
    assert_int_equal(settle_as(flow, 4, 50), LS_EPROTO);
    assert_int_equal(settle_as(flow, 5, 49), LS_EPROTO);
    assert_int_equal(flow->node->figures.stats.lost, 5);
}

static void test_more_cannot_arrive_than_was_sent(void **state)
{
    struct flow *flow = *state;
    grant(flow);
    charge(flow, 10);
    flow_credit(flow->node, flow->to,
                &(struct wire_header){.arrived_messages = UINT64_MAX,
                                      .arrived_bytes = UINT64_MAX});
    assert_int_equal(flow->to->hop->arrived.messages, 1);
    assert_int_equal(flow->to->hop->arrived.bytes, 10);
}

static void test_the_first_credit_begins_the_counting(void **state)
{
    struct flow *flow = *state;
    assert_false(flow->to->hop->counts);
    flow_credit(flow->node, flow->to, &(struct wire_header){.kind = 0});
    assert_true(flow->to->hop->counts);
    flow_begin(flow->to, false);
    assert_false(flow->to->hop->counts);
}

static void test_who_waits_lets_what_is_under_way_arrive(void **state)
{
    struct flow *flow = *state;
    flow->node->options.window_bytes = 1u << 20;
    grant(flow);
    assert_true(flow_room_now(flow->to, 1u << 20)); /* one may always go */
    charge(flow, PACE_FIRST_BYTES);
    assert_false(flow_room_now(flow->to, 1));
    assert_true(flow_room(flow->to, 1));
    flow_got(flow->from, PACE_FIRST_BYTES, false);
    grant(flow);
    assert_true(flow_room_now(flow->to, 1));
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
            charge(flow, 100);
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
    assert_int_equal(flow->to->hop->limit.messages -
                         flow->to->hop->sent.messages,
                     WINDOW_MESSAGES);
    assert_int_equal(flow->to->hop->limit.bytes - flow->to->hop->sent.bytes,
                     WINDOW_BYTES);
}

int main(void)
{
#define FLOW_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        FLOW_TEST(test_a_peer_has_a_window_from_when_it_is_listed),
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
        FLOW_TEST(test_a_sender_that_goes_further_is_seen),
        FLOW_TEST(test_what_a_sender_says_of_itself_is_bounded),
        FLOW_TEST(test_more_cannot_arrive_than_was_sent),
        FLOW_TEST(test_the_first_credit_begins_the_counting),
        FLOW_TEST(test_who_waits_lets_what_is_under_way_arrive),
        FLOW_TEST(test_the_window_heals_whatever_happens),
    };
    return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
