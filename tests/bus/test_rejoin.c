/* Being declared lost while alive: who was goes on as a new member, and all
 * end in one world again. */
#include "severed_world.h"
#include "test.h"

static struct severed_plan plan_of(size_t n, enum ls_topology topology)
{
    return (struct severed_plan){
        .n = n, .topology = topology, .heartbeat_ms = 20, .silence_ms = 500};
}

/* Nobody hears anybody, for so long that all have lost all; then it heals. */
static void part(struct severed_world *world)
{
    for (size_t i = 0; i < world->n; i++)
        severed_reset(&world->at[i].link, LINK_HOLDS);
    for (size_t i = 0; i < world->n; i++)
        assert_reaches(&world->at[i].lost, (int)world->n - 1);
    for (size_t i = 0; i < world->n; i++)
        severed_reset(&world->at[i].link, LINK_PASSES);
}

static void emit_all(struct severed_world *world)
{
    for (size_t i = 0; i < world->n; i++)
        for (int n = 0; n < 100; n++)
            assert_ok(ls_emit(world->at[i].node, "x", "data", 4));
    for (size_t i = 0; i < world->n; i++)
        assert_reaches(&world->at[i].heard, 100 * (int)world->n);
}

TEST(of_two_that_lost_each_other_the_larger_id_rejoins)
{
    const struct severed_plan plan = plan_of(2, LS_TOPOLOGY_MESH);
    struct severed_world *world = severed_start(&plan);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    const uint64_t life_a = ls_node_incarnation(a->node);
    const uint64_t life_b = ls_node_incarnation(b->node);
    part(world);
    severed_await_agreement(world);
    assert_true(ls_node_incarnation(a->node) == life_a);
    assert_true(ls_node_incarnation(b->node) != life_b);
    assert_int_equal(severed_stats(a).rejoined, 0);
    assert_int_equal(severed_stats(b).rejoined, 1);
    assert_ok(ls_node_take_error(a->node));
    assert_fails(ls_node_take_error(b->node), LS_ELOST);
    assert_error_has("node 2 was declared lost by node 1 after 0.5 s of "
                     "silence; it has rejoined as a new member");
    assert_ok(ls_node_take_error(b->node)); /* said once */
    emit_all(world);
    assert_int_equal(counter_get(&a->lost), 1);
    severed_end(world);
}

TEST(windows_are_whole_after_rejoining)
{
    struct severed_plan plan = plan_of(2, LS_TOPOLOGY_MESH);
    plan.silence_ms = 1500; /* the work must not be taken for silence */
    struct severed_world *world = severed_start(&plan);
    emit_all(world);
    part(world);
    severed_await_agreement(world);
    for (size_t i = 0; i < 2; i++) {
        struct severed_node *at = &world->at[i];
        for (int n = 0; n < 40000; n++) /* more than two windows hold */
            assert_ok(ls_emit(at->node, "x", NULL, 0));
        assert_int_equal(severed_stats(at).lost, 0);
    }
    for (size_t i = 0; i < 2; i++)
        assert_reaches(&world->at[i].heard, 200 + 80000);
    severed_end(world);
}

TEST(a_world_in_pieces_becomes_one_again)
{
    const struct severed_plan plan = plan_of(4, LS_TOPOLOGY_MESH);
    struct severed_world *world = severed_start(&plan);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < world->n; i++)
            severed_reset(&world->at[i].link, LINK_HOLDS);
        for (size_t i = 0; i < world->n; i++)
            assert_reaches(&world->at[i].lost, 3 * (round + 1));
        for (size_t i = 0; i < world->n; i++)
            severed_reset(&world->at[i].link, LINK_PASSES);
        severed_await_agreement(world);
    }
    severed_end(world);
}

TEST(one_that_nobody_hears_rejoins_alone)
{
    struct severed_plan plan = plan_of(3, LS_TOPOLOGY_MESH);
    plan.silence_ms = 1500; /* the others must hear each other all the time */
    struct severed_world *world = severed_start(&plan);
    severed_reset(&world->at[2].link, LINK_HOLDS); /* it hears the others */
    for (size_t i = 0; i < 2; i++)
        assert_reaches(&world->at[i].lost, 1);
    severed_reset(&world->at[2].link, LINK_PASSES);
    severed_await_agreement(world);
    assert_int_equal(severed_stats(&world->at[0]).rejoined, 0);
    assert_int_equal(severed_stats(&world->at[1]).rejoined, 0);
    assert_true(severed_stats(&world->at[2]).rejoined >= 1);
    severed_end(world);
}

/* ---- who is told of it ------------------------------------------------- */

struct renewal {
    struct counter renewed, lost, ready;
    uint64_t incarnation;
    bool in_order;
};

static void on_renewed(void *self, uint64_t incarnation)
{
    struct renewal *renewal = self;
    renewal->incarnation = incarnation;
    renewal->in_order = counter_get(&renewal->ready) == 1;
    counter_add(&renewal->renewed, 1);
}

static void on_member(void *self, const struct ls_member *member)
{
    struct renewal *renewal = self;
    if (member->state == LS_MEMBER_READY)
        counter_add(&renewal->ready, 1);
    else
        counter_add(&renewal->lost, 1);
}

TEST(channels_are_told)
{
    static const struct ls_channel_ops ops = {
        .message = severed_ignore, .member = on_member, .renewed = on_renewed};
    const struct severed_plan plan = plan_of(2, LS_TOPOLOGY_MESH);
    struct severed_world *world = severed_start(&plan);
    struct severed_node *b = &world->at[1];
    struct renewal renewal;
    counter_init(&renewal.renewed);
    counter_init(&renewal.lost);
    counter_init(&renewal.ready);
    assert_ok(ls_channel_open(&b->channel, b->node, "c", &ops, &renewal));
    assert_reaches(&renewal.ready, 1);
    part(world);
    assert_reaches(&renewal.renewed, 1);
    assert_true(renewal.in_order); /* all lost before, ready again after */
    assert_int_equal(counter_get(&renewal.lost), 1);
    assert_reaches(&renewal.ready, 2);
    assert_true(renewal.incarnation == ls_node_incarnation(b->node));
    severed_end(world);
    counter_fini(&renewal.renewed);
    counter_fini(&renewal.lost);
    counter_fini(&renewal.ready);
}

struct wait {
    ls_node *node;
    int status;
    char text[LS_ERROR_TEXT_MAX];
};

static void wait_for_ever(void *self)
{
    struct wait *wait = self;
    wait->status = ls_wait_for(wait->node, "never", LONG_MS, NULL, NULL);
    (void)snprintf(wait->text, sizeof wait->text, "%s", ls_error_text());
}

TEST(what_waits_there_is_ended)
{
    const struct severed_plan plan = plan_of(2, LS_TOPOLOGY_MESH);
    struct severed_world *world = severed_start(&plan);
    struct wait wait = {.node = world->at[1].node};
    ls_thread *thread;
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "wait",
                              wait_for_ever, &wait));
    part(world);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(wait.status, LS_ELOST);
    assert_has(wait.text, "it has rejoined as a new member");
    severed_end(world);
}

/* ---- star -------------------------------------------------------------- */

TEST(leaves_rejoin_and_the_hub_never_does)
{
    const struct severed_plan plan = plan_of(4, LS_TOPOLOGY_STAR);
    struct severed_world *world = severed_start(&plan);
    part(world);
    severed_await_agreement(world);
    assert_int_equal(severed_stats(&world->at[0]).rejoined, 0);
    for (size_t i = 1; i < 4; i++)
        assert_true(severed_stats(&world->at[i]).rejoined >= 1);
    emit_all(world);
    severed_end(world);
}

TEST(with_the_hub_all_behind_it_are_lost_and_named)
{
    struct severed_plan plan = plan_of(4, LS_TOPOLOGY_STAR);
    plan.silence_ms = 60000;
    struct severed_world *world = severed_start(&plan);
    severed_reset(&world->at[0].link, LINK_REFUSES); /* as if it were dead */
    for (size_t i = 1; i < 4; i++)
        severed_reset(&world->at[i].link, LINK_HOLDS);
    for (size_t i = 1; i < 4; i++) {
        struct ls_member members[3];
        assert_reaches(&world->at[i].lost, 3);
        assert_int_equal(ls_node_members(world->at[i].node, members, 3), 3);
        for (size_t j = 0; j < 3; j++) {
            assert_int_equal(members[j].state, LS_MEMBER_LOST);
            assert_int_equal(members[j].reason, LS_ELOST);
        }
    }
    for (size_t i = 0; i < 4; i++)
        severed_reset(&world->at[i].link, LINK_PASSES);
    severed_await_agreement(world); /* it was not */
    severed_end(world);
}
