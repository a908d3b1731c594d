/* What a hub holds for one leaf of what another sends. A node that has stopped,
 * so that nothing happens by itself. */
#include "bus.h"
#include "incoming.h"
#include "node_fixture.h"
#include "test.h"

enum { SENDER = 2, READER = 3, LIFE = 33, WINDOW = 16 };

static ls_node *node;
static struct peer *sender;

static struct peer *leaf_of(uint32_t id)
{
    struct member *const member = membership_note(&node->world, id, LIFE);
    assert_non_null(member);
    member->endpoint = "inproc://nobody";
    member->state = LS_MEMBER_READY;
    member->n_present = 1;
    assert_ok(flow_open(peer_of(member)));
    return peer_of(member);
}

/* The reader has granted nothing. */
static void begin(void)
{
    struct ls_node_options options = usual(1);
    options.topology = LS_TOPOLOGY_STAR;
    options.window_messages = WINDOW;
    node = started(&options);
    assert_ok(ls_node_stop(node, LS_OK));
    assert_true(node->me.hub);
    transport_lock(node->transport);
    sender = leaf_of(SENDER);
    (void)leaf_of(READER);
    transport_unlock(node->transport);
}

static void end(void)
{
    transport_lock(node->transport);
    relay_drop(node, sender);
    transport_unlock(node->transport);
    assert_ok(ls_node_destroy(&node));
}

static void forget(struct message *message)
{
    message->n_frames = 0;
}

static void copy(struct message *to, const struct message *of)
{
    memcpy(to->small, of->small, sizeof to->small);
    to->transport = of->transport;
    to->n_frames = 1;
    to->head = to->small;
    to->head_size = of->head_size;
}

static const struct transport_ops nothing = {.release = forget, .copy = copy};

/* For the reader. */
static int comes(enum wire_kind kind, uint8_t flags)
{
    struct wire_header header = bus_header(node, kind);
    struct message *const message = bus_take(node);
    bool kept;
    assert_non_null(message);
    header.origin = SENDER;
    header.incarnation = LIFE;
    header.flags = flags;
    header.total = 1u << 20;
    header.name = "x";
    header.name_size = 1;
    uint8_t *const head = message->small;
    header.data = head;
    size_t n = wire_topic_inbox(head, READER);
    n += wire_header_write(head + n, &header);
    message->transport = &nothing;
    message->n_frames = 1;
    message->head = head;
    message->head_size = n;
    header.data = head + n;
    struct incoming in = {
        .direct = sender, .origin = sender, .header = &header};
    const int status = incoming_event(node, &in, message, true, READER, &kept);
    assert_false(kept); /* the hub has a copy */
    bus_drop(node, message);
    return status;
}

static struct account granted(void)
{
    struct wire_member says = {.state = WIRE_MEMBER_READY};
    transport_lock(node->transport);
    flow_account(node, sender, &says);
    transport_unlock(node->transport);
    return (struct account){says.limit_messages, says.limit_bytes};
}

/* Who has ended may come back, and its window with it. */
TEST(what_is_dropped_of_a_sender_is_held_no_more)
{
    begin();
    const struct account before = granted();
    assert_ok(comes(WIRE_KIND_EVENT, 0));
    assert_ok(comes(WIRE_KIND_CHUNK, WIRE_FLAG_WITHDRAW));
    assert_int_equal(granted().messages, before.messages);
    transport_lock(node->transport);
    relay_drop(node, sender);
    flow_begin(sender);
    transport_unlock(node->transport);
    const struct account after = granted();
    assert_int_equal(after.messages, before.messages);
    assert_int_equal(after.bytes, before.bytes);
    end();
}

TEST(what_takes_events_back_waits_within_bounds_too)
{
    begin();
    assert_ok(comes(WIRE_KIND_EVENT, 0));
    assert_int_equal(sender->hop->relay.n, 1);
    int n = 0;
    while (n < 100 * WINDOW &&
           comes(WIRE_KIND_CHUNK, WIRE_FLAG_WITHDRAW) == LS_OK)
        n++;
    assert_in_range(n, WINDOW, 4 * WINDOW);
    assert_int_equal(sender->hop->relay.n, n + 1);
    assert_fails(comes(WIRE_KIND_CHUNK, WIRE_FLAG_WITHDRAW), LS_ELIMIT);
    assert_ok(comes(WIRE_KIND_EVENT, 0)); /* it is still in its window */
    end();
}
