/* Who answers at an address that the user gave, one after the other: a node
 * waits there for whoever comes next, and a leaf knows its hub. */
#include "raw_peer.h"
#include "test.h"

#define HUB   1
#define LEAF  2
#define OTHER 9

/* A leaf at a hub made of bare sockets. */
struct star {
    struct raw_peer hub;
    ls_node *leaf;
    struct counter met;         /* how often the hub has become ready */
    struct counter ready, lost; /* the same of the other */
};

static void on_member(void *self, const struct ls_member *member)
{
    struct star *star = self;
    const bool is_ready = member->state == LS_MEMBER_READY;
    if (member->id == OTHER)
        counter_add(is_ready ? &star->ready : &star->lost, 1);
    else if (is_ready)
        counter_add(&star->met, 1);
}

/* As a hub does, which is attached to nobody: a leaf comes first. */
static void meet(struct star *star)
{
    const int before = counter_get(&star->met);
    raw_await_presence(&star->hub, star->leaf);
    raw_be_present(&star->hub);
    raw_heartbeat(&star->hub, star->leaf);
    assert_reaches(&star->met, before + 1);
}

static void star_begin(struct star *star)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    raw_open(&star->hub, HUB, NULL);
    counter_init(&star->met);
    counter_init(&star->ready);
    counter_init(&star->lost);
    const char *attach = star->hub.endpoint;
    options.id = LEAF;
    options.bind = "tcp://127.0.0.1:*";
    options.attach = &attach;
    options.n_attach = 1;
    options.insecure = true;
    options.topology = LS_TOPOLOGY_STAR;
    options.world_size = 1;
    options.silence_ms = LONG_MS;
    options.linger_ms = 10; /* nobody answers its farewell */
    assert_ok(ls_node_create(&star->leaf, &options));
    assert_ok(ls_node_on_member(star->leaf, on_member, star));
    assert_ok(ls_node_start(star->leaf));
    raw_connect(&star->hub, ls_node_endpoint(star->leaf));
}

static void star_open(struct star *star)
{
    star_begin(star);
    meet(star);
}

static void star_close(struct star *star)
{
    ls_node_destroy(&star->leaf);
    counter_fini(&star->met);
    counter_fini(&star->ready);
    counter_fini(&star->lost);
    raw_close(&star->hub);
}

static void say_farewell(struct star *star)
{
    struct wire_header header = raw_header(&star->hub, WIRE_KIND_FAREWELL);
    raw_event(&star->hub, NULL, &header, NULL, 0);
    raw_await_node(&star->hub, star->leaf, false);
}

/* What a new life of the hub says first is that it is there. */
static void come_back(struct star *star)
{
    star->hub.incarnation++;
    star->hub.sequence = 0;
    raw_heartbeat(&star->hub, star->leaf);
    meet(star);
}

TEST(who_said_farewell_is_met_again_in_its_next_life)
{
    struct star star;
    star_open(&star);
    for (int i = 0; i < 3; i++) {
        say_farewell(&star);
        come_back(&star);
    }
    star_close(&star);
}

TEST(what_a_hub_passes_on_first_is_not_the_hub)
{
    struct star star;
    star_open(&star);
    say_farewell(&star);
    struct wire_header header = raw_header(&star.hub, WIRE_KIND_CREDIT);
    header.origin = OTHER;
    raw_event(&star.hub, NULL, &header, NULL, 0);
    come_back(&star);
    star_close(&star);
}

/* Takes what is next: whether it is a challenge, which is not answered. */
static bool take_challenge(struct raw_peer *raw, char *challenge)
{
    char frame[WIRE_TOPIC_MAX + 2] = "";
    const int size = zmq_recv(raw->xpub, frame, sizeof frame, 0);
    assert_in_range(size, 1, WIRE_TOPIC_MAX + 1);
    if (frame[0] != 1 || frame[1] != WIRE_CHALLENGE)
        return false;
    memcpy(challenge, frame + 2, WIRE_CHALLENGE_SIZE + 1);
    return true;
}

static void await_challenge(struct raw_peer *raw, char *challenge)
{
    while (!take_challenge(raw, challenge))
        continue;
}

/* The first that is asked for three times more: who waits for long dials anew,
 * and asks for something else. */
static void await_repeated(struct raw_peer *raw, char *challenge)
{
    char next[WIRE_CHALLENGE_SIZE + 1];
    await_challenge(raw, challenge);
    for (int repeated = 0; repeated < 3; repeated++) {
        await_challenge(raw, next);
        if (strcmp(next, challenge) != 0) {
            memcpy(challenge, next, sizeof next);
            repeated = -1;
        }
    }
}

/* False: it has dialled anew meanwhile. */
static bool is_met_by(struct star *star, const char *challenge)
{
    const int64_t deadline = long_deadline();
    char next[WIRE_CHALLENGE_SIZE + 1];
    zmq_pollitem_t asks = {.socket = star->hub.xpub, .events = ZMQ_POLLIN};
    while (counter_get(&star->met) == 0) {
        raw_assert_before(deadline);
        if (zmq_poll(&asks, 1, 10) != 1)
            continue;
        if (take_challenge(&star->hub, next) && strcmp(next, challenge) != 0)
            return false;
    }
    return true;
}

TEST(a_proof_is_asked_for_until_it_comes_and_may_come_late)
{
    char challenge[WIRE_CHALLENGE_SIZE + 1];
    struct star star;
    star_begin(&star);
    do {
        await_repeated(&star.hub, challenge);
        raw_answer(&star.hub, challenge);
        raw_be_present(&star.hub);
        raw_heartbeat(&star.hub, star.leaf);
    } while (!is_met_by(&star, challenge));
    star_close(&star);
}

/* ---- who is a member --------------------------------------------------- */

static void be_told_of_other(struct star *star, enum wire_member_state state)
{
    uint8_t members[1024];
    struct wire_header header = raw_header(&star->hub, WIRE_KIND_HEARTBEAT);
    struct wire_member leaf = {.id = LEAF,
                               .incarnation = ls_node_incarnation(star->leaf),
                               .state = WIRE_MEMBER_PRESENT};
    struct wire_member other = {
        .id = OTHER, .incarnation = 5, .state = state, .reason = LS_ELOST};
    header.name = star->hub.job;
    header.name_size = strlen(star->hub.job);
    strcpy(leaf.endpoint, ls_node_endpoint(star->leaf));
    strcpy(other.endpoint, "tcp://127.0.0.1:1");
    size_t size = wire_members_begin(members, 2);
    size += wire_member_write(members + size, &leaf);
    size += wire_member_write(members + size, &other);
    raw_event(&star->hub, NULL, &header, members, size);
}

static void be_shown_other(struct star *star)
{
    uint8_t topic[WIRE_TOPIC_MAX];
    struct wire_presence other = {.link = star->hub.link,
                                  .relayed = true,
                                  .relay = HUB,
                                  .id = OTHER,
                                  .incarnation = 5};
    strcpy(other.job, star->hub.job);
    strcpy(other.endpoint, "tcp://127.0.0.1:1");
    raw_subscribe(&star->hub, topic, wire_presence_write(topic, &other));
    assert_reaches(&star->ready, 1);
}

TEST(a_leaf_that_has_lost_whom_its_hub_has_rejoins)
{
    struct star star;
    star_open(&star);
    const uint64_t before = ls_node_incarnation(star.leaf);
    be_shown_other(&star);
    be_told_of_other(&star, WIRE_MEMBER_LOST);
    assert_reaches(&star.lost, 1);
    be_told_of_other(&star, WIRE_MEMBER_PRESENT);
    raw_await_presence(&star.hub, star.leaf);
    raw_heartbeat(&star.hub, star.leaf);
    assert_reaches(&star.ready, 2);
    assert_true(ls_node_incarnation(star.leaf) != before);
    assert_fails(ls_node_take_error(star.leaf), LS_ELOST);
    assert_error_has("node 2 had declared node 9 lost, which its hub, node 1, "
                     "has as a member; it has rejoined as a new member");
    star_close(&star);
}

/* Heartbeats are not passed on: what it says of windows is of none. */
TEST(a_hub_that_left_sends_no_heartbeats_of_leaves)
{
    struct star star;
    struct ls_node_stats stats;
    star_open(&star);
    be_shown_other(&star);
    say_farewell(&star);
    const struct raw_peer hub = star.hub;
    star.hub.id = OTHER;
    star.hub.incarnation = 5;
    raw_heartbeat(&star.hub, star.leaf);
    star.hub = hub;
    come_back(&star);
    ls_node_stats(star.leaf, &stats);
    assert_true(stats.early >= 1);
    star_close(&star);
}
