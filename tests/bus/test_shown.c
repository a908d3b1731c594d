/* What the hub of a star shows of a leaf: what that leaf says in the life that
 * is shown, and has signed; and who believes it. */
#include <sys/stat.h>

#include "bus.h"
#include "keys_fixture.h"
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
/* ---- what a leaf makes of it ------------------------------------------- */

enum { STAR = 3 }; /* the hub, OWN, and leaves 4 and 5 */

static void join_one(void *self)
{
    assert_ok(ls_node_join(self));
}

static ls_node *one_of_star(const struct scratch *scratch, uint32_t id,
                            ls_security *security)
{
    struct ends ends;
    struct ls_node_options options = by_ipc(scratch, id, security, &ends);
    ls_node *node = NULL;
    options.topology = LS_TOPOLOGY_STAR;
    options.world_size = STAR;
    options.heartbeat_ms = 50;
    options.silence_ms = LONG_MS;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_node_open(node)); /* it may be asked what it has refused */
    return node;
}

static void give(const struct scratch *scratch, const char *name, mode_t mode)
{
    char to[64];
    (void)snprintf(to, sizeof to, "some/%s", name);
    copy_file(keys(scratch, name).text, in(scratch, to).text);
    assert_int_equal(chmod(in(scratch, to).text, mode), 0);
}

static void renew_key(const struct scratch *scratch, uint32_t id)
{
    char name[64];
    (void)snprintf(name, sizeof name, "node-%u.cert", (unsigned)id);
    assert_int_equal(unlink(keys(scratch, name).text), 0);
    (void)snprintf(name, sizeof name, "node-%u.cert_secret", (unsigned)id);
    assert_int_equal(unlink(keys(scratch, name).text), 0);
    make(scratch, id);
}

/* Leaf 4 has a folder of its own, without the certificate of leaf 5, or with an
 * older one, until it has refused what the hub shows. */
static void meet_late(const struct scratch *scratch, bool older)
{
    ls_security *security[STAR];
    ls_node *nodes[STAR];
    ls_thread *threads[STAR];
    ls_runtime *runtime = ls_runtime_threads();
    if (older)
        give(scratch, "node-5.cert", 0644);
    renew_key(scratch, 5);
    for (uint32_t i = 0; i < STAR; i++) {
        const struct path folder =
            OWN + i == 4 ? in(scratch, "some") : keys(scratch, "");
        assert_ok(ls_security_curve(&security[i], folder.text, OWN + i));
        nodes[i] = one_of_star(scratch, OWN + i, security[i]);
        assert_ok(
            ls_thread_spawn(runtime, &threads[i], "join", join_one, nodes[i]));
    }
    await_refusal(nodes[1], LS_REFUSAL_IDENTITY);
    give(scratch, "node-5.cert", 0644);
    for (size_t i = 0; i < STAR; i++)
        assert_ok(ls_thread_join(&threads[i], LS_FOREVER));
    for (size_t i = STAR; i-- > 0;) {
        ls_node_destroy(&nodes[i]);
        ls_security_destroy(&security[i]);
    }
}

TEST_WITH(a_leaf_believes_it_once_it_has_the_certificate, keys_set_up,
          scratch_tear_down)
{
    make(*state, 5);
    assert_int_equal(mkdir(in(*state, "some").text, 0700), 0);
    give(*state, "node-3.cert", 0644);
    give(*state, "node-4.cert", 0644);
    give(*state, "node-4.cert_secret", 0600);
    meet_late(*state, false);
    meet_late(*state, true);
}

/* ---- what it does not believe ------------------------------------------ */

static void say(ls_node *node, const struct speaker *by,
                const struct wire_presence *p, bool on)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    const size_t size = wire_presence_write(topic, p);
    transport_lock(node->transport);
    subscription_read(node, topic, size, on, by);
    transport_unlock(node->transport);
}

static struct wire_presence presence_of(uint32_t id, bool relayed)
{
    struct wire_presence p = {.link = 7,
                              .relayed = relayed,
                              .relay = OWN,
                              .id = id,
                              .incarnation = id,
                              .job = "lockstep",
                              .endpoint = "ipc:///nowhere"};
    return p;
}

/* Leaves of which nobody has a certificate, of a hub that is there; by a node
 * that has stopped, so that nothing happens by itself. */
TEST_WITH(what_a_leaf_does_not_believe_is_bounded, keys_set_up,
          scratch_tear_down)
{
    const struct speaker hub_says = {
        .spoken = true, .proved = true, .id = OWN, .connection = 1};
    const struct speaker other_says = {
        .spoken = true, .proved = true, .id = 9, .connection = 2};
    const struct speaker broke = {.connection = 0};
    const struct path folder = keys(*state, "");
    ls_security *security = NULL;
    assert_ok(ls_security_curve(&security, folder.text, 4));
    ls_node *leaf = one_of_star(*state, 4, security);
    assert_ok(ls_node_stop(leaf, LS_OK));
    const struct wire_presence hub_itself = presence_of(OWN, false);
    struct wire_presence p = presence_of(100, true);
    say(leaf, &hub_says, &p, true); /* not a hub yet */
    assert_null(leaf->doubts.first);
    say(leaf, &hub_says, &hub_itself, true);
    say(leaf, &other_says, &p, true);
    assert_null(leaf->doubts.first);
    for (uint32_t id = 100; id < 110; id++) {
        p = presence_of(id, true);
        say(leaf, &hub_says, &p, true);
    }
    for (uint32_t id = 100; id < 100 + STAR; id++) { /* the first of them */
        assert_non_null(leaf->doubts.first);
        p = presence_of(id, true);
        say(leaf, &other_says, &p, false);
        say(leaf, id == 100 ? &broke : &hub_says, &p, false);
    }
    assert_null(leaf->doubts.first);
    ls_node_destroy(&leaf);
    ls_security_destroy(&security);
}
