/* What a hub passes on of a leaf before it has shown that leaf: it is kept, and
 * counts in the hub's window, until the leaf is there. A node that has stopped,
 * so that nothing happens by itself. */
#include "bus.h"
#include "delivery.h"
#include "incoming.h"
#include "node_fixture.h"
#include "test.h"

enum { HUB = 2, LEAF = 3, LIFE = 33 };

static ls_node *node;
static struct peer *hub, *leaf;

static struct peer *known(uint32_t id)
{
    struct member *const member = membership_note(&node->world, id, LIFE);
    assert_non_null(member);
    member->endpoint = "inproc://nobody";
    return peer_of(member);
}

static int ignore(void *self, const struct ls_event *event)
{
    (void)self;
    (void)event;
    return LS_OK;
}

static void begin(void)
{
    const struct ls_node_options options = usual(1);
    node = started(&options);
    assert_ok(ls_on(node, "x", ignore, NULL));
    assert_ok(ls_node_stop(node, LS_OK));
    transport_lock(node->transport);
    hub = known(HUB);
    leaf = known(LEAF);
    hub->member.state = LS_MEMBER_READY;
    leaf->member.state = LS_MEMBER_SEEN;
    leaf->member.via = &hub->member;
    assert_ok(flow_open(hub));
    hub->hop->counts = true;
    transport_unlock(node->transport);
}

static void end(void)
{
    assert_ok(ls_node_destroy(&node));
}

static void forget(struct message *message)
{
    message->n_frames = 0;
}

static const struct transport_ops nothing = {.release = forget};

/* The bus thread's part. Returns whether it is kept. */
static bool comes(enum wire_kind kind, uint8_t flags)
{
    struct wire_header header = bus_header(node, kind);
    struct message *const message = bus_take(node);
    assert_non_null(message);
    header.origin = LEAF;
    header.incarnation = LIFE;
    header.sequence = 1;
    header.flags = flags;
    header.name = "x";
    header.name_size = 1;
    header.size = 5;
    header.data = (const uint8_t *)"hello";
    uint8_t *const head = message->small;
    size_t n = wire_topic_inbox(head, node->options.id);
    n += wire_header_write(head + n, &header);
    memcpy(head + n, "hello", 5);
    message->transport = &nothing;
    message->n_frames = 1;
    message->head = head;
    message->head_size = n + 5;
    header.data = head + n;
    const bool kept = early_keep(node, hub, &header, message);
    if (!kept)
        bus_drop(node, message);
    return kept;
}

/* Of the hub's window. */
static void assert_held(uint64_t messages, uint64_t bytes)
{
    const struct hop *const hop = hub->hop;
    assert_int_equal(hop->kept_messages - hop->released_messages, messages);
    assert_int_equal(hop->kept_bytes - hop->released_bytes, bytes);
}

static uint64_t n_early(void)
{
    return atomic_load(&node->figures.early);
}

TEST(an_event_counts_in_the_window_until_its_leaf_is_there)
{
    begin();
    assert_true(comes(WIRE_KIND_EVENT, 0));
    assert_held(1, 5);
    early_hand_on(node);
    assert_held(1, 5);
    assert_int_equal(hub->hop->early.n, 1);
    leaf->member.state = LS_MEMBER_READY;
    early_hand_on(node);
    assert_held(0, 0);
    assert_int_equal(hub->hop->early.n, 0);
    assert_int_equal(hub->hop->got_messages, 1); /* once */
    assert_int_equal(n_early(), 0);
    end();
}

TEST(it_is_kept_for_that_leaf_in_that_life_and_behind_that_hub)
{
    begin();
    assert_true(comes(WIRE_KIND_EVENT, 0));
    leaf->member.state = LS_MEMBER_READY;
    leaf->member.incarnation++;
    early_hand_on(node);
    assert_int_equal(hub->hop->early.n, 1);
    leaf->member.incarnation--;
    leaf->member.via = NULL;
    early_hand_on(node);
    assert_int_equal(hub->hop->early.n, 1);
    leaf->member.via = &hub->member;
    early_hand_on(node);
    assert_int_equal(hub->hop->early.n, 0);
    end();
}

TEST(it_is_kept_for_a_silence_and_then_counted)
{
    begin();
    const int64_t silence = node->options.silence_ms * LS_NS_PER_MS;
    assert_true(early_tick(node, 0) == LS_FOREVER);
    assert_true(comes(WIRE_KIND_EVENT, 0));
    const int64_t until = hub->hop->early_at + silence;
    assert_true(comes(WIRE_KIND_EVENT, 0));
    assert_true(early_tick(node, until - 1) == until);
    assert_held(2, 10);
    assert_true(early_tick(node, until) == LS_FOREVER);
    assert_held(0, 0);
    assert_int_equal(n_early(), 2);
    end();
}

/* What is reliable comes again. */
TEST(what_counts_in_no_window_is_kept_up_to_as_many_bytes)
{
    begin();
    node->options.window_bytes = 14;
    assert_true(comes(WIRE_KIND_RELIABLE, 0));
    assert_true(comes(WIRE_KIND_CHANNEL, 0));
    assert_false(comes(WIRE_KIND_RELIABLE, 0));
    assert_true(comes(WIRE_KIND_EVENT, 0)); /* which is bounded by itself */
    assert_int_equal(n_early(), 1);
    early_drop(node, hub);
    assert_true(comes(WIRE_KIND_RELIABLE, 0));
    early_drop(node, hub);
    end();
}

TEST(what_counts_in_no_window_is_kept_as_well_and_heartbeats_are_not)
{
    begin();
    assert_true(comes(WIRE_KIND_RELIABLE, 0));
    assert_true(comes(WIRE_KIND_CHANNEL, 0));
    assert_true(comes(WIRE_KIND_EVENT, WIRE_FLAG_WITHDRAW));
    assert_held(0, 0);
    assert_false(comes(WIRE_KIND_HEARTBEAT, 0));
    assert_int_equal(n_early(), 1);
    hub->hop->counts = false; /* its events are not for this node yet */
    assert_false(comes(WIRE_KIND_EVENT, 0));
    assert_true(comes(WIRE_KIND_RELIABLE, 0));
    assert_int_equal(n_early(), 2);
    early_drop(node, hub);
    assert_held(0, 0);
    assert_int_equal(n_early(), 6);
    end();
}
