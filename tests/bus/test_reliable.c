/* Policy reliable between real nodes: over connections that break, to members
 * that are slow, and to those that are lost. */
#include "severed_world.h"
#include "test.h"

#define MIB (1024u * 1024u)

static const struct severed_plan patient = {
    .n = 2, .heartbeat_ms = 20, .silence_ms = 60000};
static const struct severed_plan parted = {
    .n = 2, .heartbeat_ms = 20, .silence_ms = 60000, .parted = true};

static int emit(struct severed_node *from, const void *data, size_t size)
{
    return ls_emit_with(from->node,
                        &(struct ls_emission){.event = "x",
                                              .data = data,
                                              .size = size,
                                              .delivery = LS_DELIVERY_RELIABLE,
                                              .timeout_ms = LONG_MS});
}

static int emit_now(struct severed_node *from, uint32_t to)
{
    return ls_emit_with(from->node,
                        &(struct ls_emission){.event = "x",
                                              .delivery = LS_DELIVERY_RELIABLE,
                                              .to_one = to != 0,
                                              .to = to,
                                              .timeout_ms = -1});
}

/* ---- broken connections ------------------------------------------------ */

TEST(what_is_emitted_to_one_that_is_away_comes_when_it_is_back)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    severed_watch(world);
    severed_reset(&a->link, LINK_HOLDS);
    assert_reaches(&a->away_n, 1);
    for (int i = 0; i < 7; i++)
        assert_ok(emit(a, NULL, 0));
    assert_ok(emit_now(a, 2));
    assert_int_equal(counter_get(&b->heard), 0);
    severed_reset(&a->link, LINK_PASSES);
    assert_reaches(&b->heard, 8);
    assert_int_equal(severed_stats(b).missed, 0);
    severed_end(world);
}

/* Wait until something came to a node twice. */
static void await_repeated(struct severed_node *at)
{
    const int64_t deadline = long_deadline();
    while (severed_stats(at).repeated == 0 &&
           ls_now(ls_runtime_threads()) < deadline)
        counter_await_moment(&at->heard);
    assert_true(severed_stats(at).repeated != 0);
}

TEST(what_was_under_way_comes_again_and_is_handled_once)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    severed_watch(world);
    /* B hears, and its acknowledgements are held up on the way back. */
    severed_reset(&b->link, LINK_HOLDS);
    assert_reaches(&b->away_n, 1);
    assert_ok(emit(a, NULL, 0));
    assert_reaches(&b->heard, 1);
    await_repeated(b); /* since A does not know */
    severed_reset(&b->link, LINK_PASSES);
    assert_ok(emit(a, NULL, 0));
    assert_reaches(&b->heard, 2);
    ls_node_stop(a->node, LS_OK); /* when all is acknowledged */
    assert_int_equal(severed_stats(a).unacknowledged, 0);
    assert_true(severed_stats(a).resent >= 1);
    assert_int_equal(counter_get(&b->heard), 2);
    severed_end(world);
}

struct parts {
    struct counter came;
    size_t size;
    bool whole;
};

static uint8_t pattern(size_t at)
{
    return (uint8_t)(at * 31 + (at >> 13));
}

static int check_parts(void *self, const struct ls_event *event)
{
    struct parts *parts = self;
    const uint8_t *data = event->data;
    parts->size = event->size;
    parts->whole = true;
    for (size_t i = 0; i < event->size; i++)
        parts->whole = parts->whole && data[i] == pattern(i);
    counter_add(&parts->came, 1);
    return LS_OK;
}

TEST(a_long_one_is_whole_after_a_break)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    struct parts parts = {.size = 0};
    const size_t size = 20 * MIB + 5; /* more than the window */
    uint8_t *data = malloc(size);
    assert_non_null(data);
    for (size_t i = 0; i < size; i++)
        data[i] = pattern(i);
    counter_init(&parts.came);
    assert_ok(ls_on(b->node, "x", check_parts, &parts));
    severed_watch(world);
    severed_reset(&a->link, LINK_PASSES); /* it is being remade meanwhile */
    assert_ok(emit(a, data, size));
    severed_reset(&a->link, LINK_PASSES);
    assert_reaches(&parts.came, 1);
    assert_int_equal(parts.size, size);
    assert_true(parts.whole);
    severed_end(world);
    counter_fini(&parts.came);
    free(data);
}

TEST(it_runs_from_leaf_to_leaf_across_a_hub)
{
    struct severed_world *world =
        severed_start(&(struct severed_plan){.n = 3,
                                             .topology = LS_TOPOLOGY_STAR,
                                             .heartbeat_ms = 20,
                                             .silence_ms = 60000});
    struct severed_node *from = &world->at[1];
    for (int i = 0; i < 500; i++) {
        assert_ok(emit(from, &i, sizeof i));
        if (i % 100 == 50)
            severed_reset(&world->at[i / 100 % 3].link, LINK_PASSES);
    }
    assert_reaches(&world->at[0].heard, 500);
    assert_reaches(&world->at[1].heard, 500);
    assert_reaches(&world->at[2].heard, 500);
    assert_int_equal(counter_get(&world->at[2].heard), 500);
    severed_end(world);
}

/* ---- slow and lost members --------------------------------------------- */

static int hold_up(void *self, const struct ls_event *event)
{
    (void)event;
    if (!counter_reaches(self, 1))
        abort();
    return LS_OK;
}

TEST(a_full_window_names_the_slow_member)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    struct counter go_on;
    int n = 0;
    counter_init(&go_on);
    assert_ok(ls_on(b->node, "x", hold_up, &go_on));
    while (n < 100 && emit(a, NULL, 0) == LS_OK)
        n++; /* until its room is known */
    int status;
    while ((status = emit_now(a, 0)) == LS_OK && n < 1000000)
        n++;
    assert_int_equal(status, LS_EAGAIN);
    assert_error_has("node 2");
    assert_fails(emit_now(a, 2), LS_EAGAIN);
    assert_true(severed_stats(a).blocked >= 2);
    counter_add(&go_on, 1);
    assert_reaches(&b->heard, n); /* those that failed were not sent */
    assert_ok(emit(a, NULL, 0));
    assert_reaches(&b->heard, n + 1);
    severed_end(world);
    counter_fini(&go_on);
}

TEST(a_loss_is_counted_and_told)
{
    struct severed_world *world = severed_start(&parted);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    struct ls_node_loss loss;
    severed_watch(world);
    severed_reset(&a->link, LINK_HOLDS);
    assert_reaches(&a->away_n, 1);
    static const char large[24 * 1024]; /* in pieces, and one event */
    for (int i = 0; i < 2; i++)
        assert_ok(emit(a, NULL, 0));
    assert_ok(emit(a, large, sizeof large));
    /* Whoever comes next gets that one: it is not lost. */
    assert_ok(ls_emit_with(
        a->node,
        &(struct ls_emission){.event = "x", .delivery = LS_DELIVERY_LATEST}));
    severed_reset(&b->link, LINK_REFUSES); /* as if its process were gone */
    assert_reaches(&a->lost, 1);
    assert_fails(ls_node_take_error(a->node), LS_ELOST);
    assert_error_has("\"x\"");
    assert_error_has("node 2");
    assert_error_has("3 reliable events");
    assert_int_equal(severed_stats(a).unacknowledged, 3);
    assert_int_equal(ls_node_losses(a->node, &loss, 1), 1);
    assert_int_equal(loss.sender, 1);
    assert_int_equal(loss.receiver, 2);
    assert_string_equal(loss.event, "x");
    assert_int_equal(loss.unacknowledged, 3);
    assert_fails(emit_now(a, 2), LS_ENOENT);
    severed_end(world);
}

/* ---- stopping ---------------------------------------------------------- */

TEST(stopping_waits_for_what_is_not_acknowledged)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    severed_watch(world);
    severed_reset(&a->link, LINK_HOLDS);
    assert_reaches(&a->away_n, 1);
    for (int i = 0; i < 5; i++)
        assert_ok(emit(a, NULL, 0));
    severed_reset(&a->link, LINK_PASSES); /* not back yet */
    ls_node_stop(a->node, LS_OK);
    assert_reaches(&b->heard, 5);
    assert_reaches(&b->left, 1);
    assert_int_equal(severed_stats(a).unacknowledged, 0);
    severed_end(world);
}

TEST(who_stops_says_first_what_it_has_handled)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    for (int i = 0; i < 10; i++)
        assert_ok(emit(a, NULL, 0));
    assert_reaches(&b->heard, 10);
    ls_node_stop(b->node, LS_OK);
    assert_reaches(&a->left, 1);
    assert_int_equal(severed_stats(a).unacknowledged, 0);
    severed_end(world);
}

/* ---- channels ---------------------------------------------------------- */

struct inbox {
    struct counter came, room;
    uint64_t disorder;
};

static void note_room(void *self)
{
    struct inbox *inbox = self;
    counter_add(&inbox->room, 1);
}

static void take(void *self, uint32_t from, uint64_t life, const void *data,
                 size_t size)
{
    struct inbox *inbox = self;
    int number = -1;
    (void)from, (void)life;
    if (size == sizeof number)
        memcpy(&number, data, sizeof number);
    inbox->disorder += number != counter_get(&inbox->came);
    counter_add(&inbox->came, 1);
}

TEST(a_channel_may_send_reliably_too)
{
    static const struct ls_channel_ops ops = {.message = take,
                                              .room = note_room};
    struct severed_world *world = severed_start(&patient);
    struct inbox inbox = {.disorder = 0};
    ls_channel *to = NULL, *from = NULL;
    counter_init(&inbox.came);
    counter_init(&inbox.room);
    assert_ok(ls_channel_open(&to, world->at[1].node, "calls", &ops, &inbox));
    assert_ok(ls_channel_open(&from, world->at[0].node, "calls", &ops, &inbox));
    for (int i = 0; i < 300; i++) {
        assert_ok(ls_channel_send_reliable(from, 2, &i, sizeof i));
        if (i % 100 == 50)
            severed_reset(&world->at[0].link, LINK_PASSES);
    }
    assert_reaches(&inbox.came, 300);
    assert_int_equal(inbox.disorder, 0);
    assert_int_equal(counter_get(&inbox.room), 0); /* there always was */
    assert_fails(ls_channel_send_reliable(from, 9, NULL, 0), LS_ENOENT);
    assert_fails(
        ls_channel_send_reliable(from, 2, NULL, LS_CHANNEL_MESSAGE_MAX + 1),
        LS_ELIMIT);
    ls_channel_close(&from);
    ls_channel_close(&to);
    severed_end(world);
    counter_fini(&inbox.came);
    counter_fini(&inbox.room);
}

TEST(a_channel_does_not_wait_for_one_that_is_away)
{
    static const struct ls_channel_ops ops = {.message = take,
                                              .room = note_room};
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0];
    struct inbox inbox = {.disorder = 0};
    ls_channel *from = NULL;
    int n = 0, status;
    counter_init(&inbox.came);
    counter_init(&inbox.room);
    severed_watch(world);
    severed_reset(&a->link, LINK_HOLDS);
    assert_reaches(&a->away_n, 1);
    assert_ok(ls_channel_open(&from, a->node, "calls", &ops, &inbox));
    while ((status = ls_channel_send_reliable(from, 2, "", 1)) == LS_OK)
        n++;
    assert_int_equal(status, LS_EAGAIN);
    assert_error_has("node 2");
    assert_int_equal(n, 1024);
    severed_reset(&a->link, LINK_PASSES);
    assert_reaches(&inbox.room, 1); /* told when it has acknowledged them */
    assert_ok(ls_channel_send_reliable(from, 2, "", 1));
    ls_channel_close(&from);
    severed_end(world);
    counter_fini(&inbox.came);
    counter_fini(&inbox.room);
}
