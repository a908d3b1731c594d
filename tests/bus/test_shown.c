/* What the hub of a star shows of a leaf: what that leaf says in the life that
 * is shown, and has signed. */
#include "node_fixture.h"
#include "raw_peer.h"
#include "test.h"

enum { HUB = 1, LEAF = 2, OTHER = 3, CONFIG = 0x77 };

static ls_node *hub;
static struct raw_peer other; /* a leaf that sees what the hub shows */

/* What it says; a hub that is insecure asks nobody for a signature. */
static void present_signed(struct raw_peer *raw, const char *signature,
                           uint64_t config)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    struct wire_presence me = {.link = raw->link,
                               .id = raw->id,
                               .incarnation = raw->incarnation,
                               .config_hash = config};
    strcpy(me.job, raw->job);
    strcpy(me.endpoint, raw->endpoint);
    strcpy(me.signature, signature);
    raw_subscribe(raw, topic, wire_topic_control(topic));
    raw_subscribe(raw, topic, wire_topic_inbox(topic, raw->id));
    raw_subscribe(raw, topic, wire_presence_write(topic, &me));
}

/* It is dialled, and says so. */
static void be_heard(struct raw_peer *raw)
{
    raw_await_presence(raw, hub);
    raw_heartbeat(raw, hub);
}

static void begin(void)
{
    struct ls_node_options options = usual(HUB);
    options.bind = "tcp://127.0.0.1:*";
    options.topology = LS_TOPOLOGY_STAR;
    options.insecure = true;
    options.world_size = 1;
    options.world_max = 8;
    options.config_hash = CONFIG;
    options.heartbeat_ms = 20;
    options.silence_ms = LONG_MS;
    options.linger_ms = 10; /* nobody answers its farewell */
    hub = started(&options);
    raw_open(&other, OTHER, ls_node_endpoint(hub));
    present_signed(&other, "", CONFIG);
    be_heard(&other);
}

static void end(void)
{
    ls_node_destroy(&hub);
    raw_close(&other);
}

/* What the other leaf is shown next, or that it is taken back. */
static struct wire_presence next_shown(bool wanted_on)
{
    const int64_t deadline = long_deadline();
    char topic[WIRE_TOPIC_MAX + 2];
    struct wire_presence shown;
    bool on;
    do {
        raw_assert_before(deadline);
        const int size = raw_topic(&other, topic, &on);
        shown.relayed = false;
        (void)wire_presence_read((const uint8_t *)topic, (size_t)size, &shown);
    } while (!shown.relayed);
    assert_int_equal(on, wanted_on);
    assert_int_equal(shown.relay, HUB);
    assert_int_equal(shown.id, LEAF);
    return shown;
}

static void assert_shown(const struct raw_peer *leaf, const char *signature,
                         uint64_t config, bool on)
{
    const struct wire_presence shown = next_shown(on);
    assert_true(shown.incarnation == leaf->incarnation);
    assert_string_equal(shown.endpoint, leaf->endpoint);
    assert_string_equal(shown.signature, signature);
    assert_true(shown.config_hash == config);
}

static void await_refusal(ls_node *node, enum ls_refusal_kind kind)
{
    const int64_t deadline = long_deadline();
    struct ls_refusal refusals[8];
    struct counter nothing;
    counter_init(&nothing);
    for (bool found = false; !found;) {
        raw_assert_before(deadline);
        const size_t n = ls_node_refusals(node, refusals, 8);
        for (size_t i = 0; i < n && i < 8; i++)
            found = found || refusals[i].kind == kind;
        counter_await_moment(&nothing);
    }
    counter_fini(&nothing);
}

/* The first is killed, and its next life comes before the hub has seen that:
 * it is refused, and let in once the first is gone. */
TEST(one_that_waited_for_its_id_is_shown_as_it_has_signed)
{
    struct raw_peer first, next;
    (void)state;
    begin();
    raw_open(&first, LEAF, ls_node_endpoint(hub));
    present_signed(&first, "aaaa", 0);
    be_heard(&first);
    assert_shown(&first, "aaaa", 0, true);
    raw_open(&next, LEAF, ls_node_endpoint(hub));
    next.incarnation++;
    next.link++;
    present_signed(&next, "bbbb", CONFIG);
    await_refusal(hub, LS_REFUSAL_WORLD);
    raw_close(&first);
    assert_shown(&first, "aaaa", 0, false);
    be_heard(&next);
    assert_shown(&next, "bbbb", CONFIG, true);
    raw_close(&next);
    end();
}