/* Windows, as arithmetic: no thread and no socket. */
#include <stdlib.h>
#include <string.h>

#include "bus.h"
#include "test.h"
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
    assert_ok(ls_node_create(&flow->node, &options));
    flow->node->options.window_messages = WINDOW_MESSAGES;
    flow->node->options.window_bytes = WINDOW_BYTES;
    assert_ok(ls_security_none(&flow->security));
    assert_ok(open_transport(&flow->node->transport, ls_runtime_threads(),
                             "inproc://flow", flow->security, endpoint));
    flow->from = calloc(1, sizeof *flow->from);
    flow->to = calloc(1, sizeof *flow->to);
    assert_true(flow->from != NULL && flow->to != NULL);
    assert_ok(flow_open(flow->from));
    assert_ok(flow_open(flow->to));
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
    assert_ok(flow_settle(flow->node, flow->to, &says));
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
    assert_ok(settle_as(flow, flow->to->hop->sent.messages,
                        flow->to->hop->sent.bytes));
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

EACH_TEST(setup, teardown)

/* As a leaf has none to those that its hub relays. */
TEST(a_peer_has_a_window_from_when_it_is_listed)
{
    struct flow *flow = *state;
    struct peer peer = {.member.id = 7};
    struct wire_member says = {.state = WIRE_MEMBER_READY};
    transport_lock(flow->node->transport);
    flow_begin(&peer);
    assert_null(peer.hop);
    flow_account(flow->node, &peer, &says);
    transport_unlock(flow->node->transport);
    assert_int_equal(says.limit_messages, WINDOW_MESSAGES);
    assert_int_equal(says.limit_bytes, WINDOW_BYTES);
    assert_true(flow_may(flow->node, &peer, WINDOW_MESSAGES, WINDOW_BYTES));
    free(peer.hop);
}

TEST(nothing_may_be_sent_before_a_grant)
{
    struct flow *flow = *state;
    assert_false(flow_room(flow->to, 0));
    grant(flow);
    assert_true(flow_room(flow->to, 0));
}

TEST(a_window_holds_so_many_messages)
{
    struct flow *flow = *state;
    grant(flow);
    for (int i = 0; i < WINDOW_MESSAGES; i++) {
        assert_true(flow_room(flow->to, 0));
        charge(flow, 0);
    }
    assert_false(flow_room(flow->to, 0));
}

TEST(a_window_holds_so_many_bytes)
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

TEST(what_is_held_takes_room_until_released)
{
    struct flow *flow = *state;
    assert_limit(flow, WINDOW_MESSAGES, WINDOW_BYTES);
    flow_got(flow->from, 1, 100, true);
    assert_limit(flow, WINDOW_MESSAGES, WINDOW_BYTES);
    release(flow, 1, 100);
    assert_limit(flow, WINDOW_MESSAGES + 1, WINDOW_BYTES + 100);
}

TEST(what_is_not_held_makes_room_at_once)
{
    struct flow *flow = *state;
    flow_got(flow->from, 1, 100, false);
    assert_limit(flow, WINDOW_MESSAGES + 1, WINDOW_BYTES + 100);
}

/* Of three that are held one is released. */
static void hold_two(struct flow *flow)
{
    flow_got(flow->from, 3, 300, true);
    release(flow, 1, 100);
}

TEST(a_new_life_has_what_the_one_before_does_not_hold)
{
    struct flow *flow = *state;
    hold_two(flow);
    flow_begin(flow->from);
    assert_limit(flow, WINDOW_MESSAGES - 2, WINDOW_BYTES - 200);
    release(flow, 2, 200);
    assert_limit(flow, WINDOW_MESSAGES, WINDOW_BYTES);
}

TEST(who_went_too_far_and_begins_again_may_send_nothing)
{
    struct flow *flow = *state;
    flow_got(flow->from, WINDOW_MESSAGES + 4, WINDOW_BYTES + 1, true);
    flow_begin(flow->from);
    assert_limit(flow, 0, 0);
    release(flow, 5, 100);
    assert_limit(flow, 1, 99);
}

static void forget(struct message *message)
{
    message->n_frames = 0;
}

/* The first message of the stream of a new life; it is for nobody. */
static uint64_t streamed(struct flow *flow)
{
    static const struct transport_ops nothing = {.release = forget};
    static const uint8_t data[1];
    struct message *const message = bus_take(flow->node);
    const struct wire_header header = {.kind = WIRE_KIND_RELIABLE,
                                       .of = WIRE_KIND_EVENT,
                                       .to_incarnation =
                                           flow->node->me.incarnation,
                                       .number = 1,
                                       .total = 1,
                                       .name = "x",
                                       .name_size = 1,
                                       .data = data,
                                       .size = 1};
    bool kept;
    assert_non_null(message);
    message->n_frames = 1;
    message->transport = &nothing;
    assert_ok(streams_message(flow->node, flow->from, &header, message, &kept));
    if (!kept)
        message_give_back_one(flow->node->pool, message);
    return streams_of(flow->from)->in.next - 1;
}

TEST(what_a_new_life_may_send_unasked_comes_again_while_its_window_is_full)
{
    struct flow *flow = *state;
    assert_int_equal(streamed(flow), 1);
    streams_of(flow->from)->held_messages = WINDOW_MESSAGES;
    streams_reset(flow->node, flow->from);
    assert_int_equal(streamed(flow), 0);
    streams_of(flow->from)->held_messages--;
    assert_int_equal(streamed(flow), 1);
    streams_free(flow->node, flow->from);
}

TEST(a_grant_that_is_overtaken_takes_nothing_back)
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

TEST(a_grant_is_not_sent_for_every_message)
{
    struct flow *flow = *state;
    const uint64_t before = limit_of(flow).messages;
    for (int i = 1; i < WINDOW_MESSAGES / 4; i++) {
        flow_got(flow->from, 1, 1, true);
        release(flow, 1, 1);
        assert_int_equal(flow->from->hop->granted_messages, before);
    }
    flow_got(flow->from, 1, 1, true);
    release(flow, 1, 1);
    assert_int_equal(flow->from->hop->granted_messages,
                     before + WINDOW_MESSAGES / 4);
}

TEST(a_quarter_of_the_bytes_is_granted_too)
{
    struct flow *flow = *state;
    const uint64_t before = limit_of(flow).bytes;
    flow_got(flow->from, 1, WINDOW_BYTES / 4, true);
    release(flow, 1, WINDOW_BYTES / 4);
    assert_int_equal(flow->from->hop->granted_bytes, before + WINDOW_BYTES / 4);
}

TEST(what_was_lost_is_counted_and_does_not_cost_room)
{
    struct flow *flow = *state;
    grant(flow);
    for (int i = 0; i < 10; i++)
        charge(flow, 10);
    for (int i = 0; i < 7; i++)
        flow_got(flow->from, 1, 10, true); /* three never came */
    settle(flow);
    assert_int_equal(flow->node->figures.stats.lost, 3);
    assert_limit(flow, WINDOW_MESSAGES + 3, WINDOW_BYTES + 30);
    release(flow, 7, 70);
    assert_limit(flow, WINDOW_MESSAGES + 10, WINDOW_BYTES + 100);
    settle(flow);
    assert_int_equal(flow->node->figures.stats.lost, 3); /* once */
}

TEST(what_was_not_counted_by_the_sender_is_no_loss)
{
    struct flow *flow = *state;
    flow_got(flow->from, 1, 10, false); /* it came before the sender knew */
    settle(flow);
    assert_int_equal(flow->node->figures.stats.lost, 0);
    assert_limit(flow, WINDOW_MESSAGES, WINDOW_BYTES);
}

TEST(a_sender_that_goes_further_is_seen)
{
    struct flow *flow = *state;
    grant(flow);
    assert_true(
        flow_may(flow->node, flow->from, WINDOW_MESSAGES, WINDOW_BYTES));
    for (int i = 0; i < 2 * WINDOW_MESSAGES; i++) {
        assert_true(flow_may(flow->node, flow->from, 1, 0));
        flow_got(flow->from, 1, 0, true);
    }
    assert_false(flow_may(flow->node, flow->from, 1, 0));
    assert_true(flow_may(flow->node, flow->from, 0, 2 * WINDOW_BYTES));
    assert_false(flow_may(flow->node, flow->from, 0, 2 * WINDOW_BYTES + 1));
    release(flow, WINDOW_MESSAGES, 0); /* it has been granted more */
    assert_true(flow_may(flow->node, flow->from, 1, 0));
}

/* It says with each heartbeat that it has sent nothing, and so nothing has
 * come. */
TEST(a_sender_that_denies_what_it_sent_gets_no_room_by_that)
{
    struct flow *flow = *state;
    grant(flow);
    int n = 0;
    while (n < 100 * WINDOW_MESSAGES &&
           flow_may(flow->node, flow->from, 1, 100)) {
        flow_got(flow->from, 1, 100, true);
        assert_ok(settle_as(flow, 0, 0));
        n++;
    }
    assert_true(n <= 2 * WINDOW_MESSAGES && n * 100 <= 2 * WINDOW_BYTES);
    release(flow, 1, 100);
    assert_true(flow_may(flow->node, flow->from, 1, 100));
}

/* A heartbeat has overtaken a whole window, so that counts as lost, and comes.
 */
TEST(what_comes_after_it_was_settled_is_borne)
{
    struct flow *flow = *state;
    grant(flow);
    for (int i = 0; i < WINDOW_MESSAGES; i++)
        charge(flow, WINDOW_BYTES / WINDOW_MESSAGES);
    settle(flow);
    for (int i = 0; i < WINDOW_MESSAGES; i++) {
        assert_true(flow_may(flow->node, flow->from, 1,
                             WINDOW_BYTES / WINDOW_MESSAGES));
        flow_got(flow->from, 1, WINDOW_BYTES / WINDOW_MESSAGES, true);
    }
    settle(flow);
    release(flow, WINDOW_MESSAGES, WINDOW_BYTES);
    assert_limit(flow, 2 * WINDOW_MESSAGES, 2 * WINDOW_BYTES);
}

TEST(what_a_sender_says_of_itself_is_bounded)
{
    struct flow *flow = *state;
    grant(flow);
    assert_fails(settle_as(flow, WINDOW_MESSAGES + 1, 0), LS_EPROTO);
    assert_fails(settle_as(flow, 0, WINDOW_BYTES + 1), LS_EPROTO);
    assert_fails(settle_as(flow, 1ull << 63, 0), LS_EPROTO);
    assert_int_equal(flow->node->figures.stats.lost, 0);
    assert_ok(settle_as(flow, 5, 50));
    assert_fails(settle_as(flow, 4, 50), LS_EPROTO);
    assert_fails(settle_as(flow, 5, 49), LS_EPROTO);
    assert_int_equal(flow->node->figures.stats.lost, 5);
}

static int n_lines;

static void count_lines(void *self, const char *line)
{
    (void)self;
    n_lines += strstr(line, "lost on the way") != NULL ? 1 : 0;
}

TEST(who_says_that_much_is_lost_does_not_fill_the_log)
{
    struct flow *flow = *state;
    ls_log_redirect(count_lines, NULL);
    for (uint64_t i = 1; i <= 1000; i++) {
        grant(flow);
        (void)limit_of(flow);
        assert_ok(settle_as(flow, i, 0));
    }
    ls_log_redirect(NULL, NULL);
    assert_int_equal(flow->node->figures.stats.lost, 1000);
    assert_int_equal(n_lines, 10);
}

TEST(more_cannot_arrive_than_was_sent)
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

TEST(the_first_credit_begins_the_counting)
{
    struct flow *flow = *state;
    assert_false(flow->to->hop->counts);
    flow_credit(flow->node, flow->to, &(struct wire_header){.kind = 0});
    assert_true(flow->to->hop->counts);
    flow_begin(flow->to);
    assert_false(flow->to->hop->counts);
}

TEST(who_waits_lets_what_is_under_way_arrive)
{
    struct flow *flow = *state;
    flow->node->options.window_bytes = 1u << 20;
    grant(flow);
    assert_true(flow_room_now(flow->to, 1u << 20)); /* one may always go */
    charge(flow, PACE_FIRST_BYTES);
    assert_false(flow_room_now(flow->to, 1));
    assert_true(flow_room(flow->to, 1));
    flow_got(flow->from, 1, PACE_FIRST_BYTES, false);
    grant(flow);
    assert_true(flow_room_now(flow->to, 1));
}

/* Whatever is sent, lost, held and released in whatever order: never more is
 * under way than the window, and once all is settled the window is whole. */
TEST(the_window_heals_whatever_happens)
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
                flow_got(flow->from, 1, 100, choice < 6);
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
