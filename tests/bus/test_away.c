/* A broken connection is not a death: members that go away and come back, and
 * those that do not. */
#include "severed_world.h"
#include "test.h"

static const struct severed_plan patient = {
    .n = 2, .heartbeat_ms = 20, .silence_ms = 60000};
static const struct severed_plan parted = {
    .n = 2, .heartbeat_ms = 20, .silence_ms = 60000, .parted = true};

/* ---- coming back ------------------------------------------------------- */

/* Each holds for as long as it takes to be noticed. */
static void break_and_mend(struct severed_link *link, struct severed_node *who,
                           int away)
{
    severed_reset(link, LINK_HOLDS);
    assert_reaches(&who->away_n, away);
    severed_reset(link, LINK_PASSES);
    assert_reaches(&who->back, away);
}

TEST(a_connection_that_breaks_is_mended_and_nobody_is_told)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0];
    severed_watch(world);
    for (int i = 1; i <= 3; i++)
        break_and_mend(&a->link, a, i);
    assert_ok(ls_emit(a->node, "x", "again", 5));
    assert_reaches(&world->at[1].heard, 1);
    assert_reaches(&a->heard, 1);
    assert_true(severed_stats(a).reconnects >= 3);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(counter_get(&world->at[i].ready), 1);
        assert_int_equal(counter_get(&world->at[i].lost), 0);
    }
    severed_end(world);
}

TEST(who_is_away_stays_ready_and_a_listener)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0];
    struct ls_member member;
    uint32_t ids[2];
    severed_watch(world);
    severed_reset(&a->link, LINK_HOLDS);
    assert_reaches(&a->away_n, 1);
    assert_int_equal(ls_node_members(a->node, &member, 1), 1);
    assert_int_equal(member.state, LS_MEMBER_READY);
    assert_int_equal(ls_node_listeners(a->node, "x", ids, 2), 2);
    assert_int_equal(ids[1], 2);
    severed_reset(&a->link, LINK_PASSES);
    assert_reaches(&a->back, 1);
    assert_int_equal(ls_node_listeners(a->node, "x", ids, 2), 2);
    assert_int_equal(counter_get(&a->lost), 0);
    severed_end(world);
}

TEST(what_is_emitted_meanwhile_is_missed_and_counted)
{
    enum { N = 20000 }; /* more than a window: nobody waits for it */
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    severed_watch(world);
    assert_ok(ls_emit(a->node, "x", NULL, 0));
    assert_reaches(&b->heard, 1);
    severed_reset(&a->link, LINK_HOLDS);
    assert_reaches(&a->away_n, 1);
    for (int i = 0; i < N; i++)
        assert_ok(ls_emit(a->node, "x", NULL, 0));
    severed_reset(&a->link, LINK_PASSES);
    assert_reaches(&a->back, 1);
    assert_ok(ls_emit(a->node, "x", NULL, 0));
    assert_reaches(&b->heard, 2);
    assert_int_equal(severed_stats(b).missed, N);
    severed_end(world);
}

TEST(what_was_listened_to_is_known_anew_when_one_is_back)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    struct counter other;
    counter_init(&other);
    severed_watch(world);
    severed_reset(&a->link, LINK_HOLDS);
    assert_reaches(&a->away_n, 1);
    assert_ok(ls_off(b->node, "x", count, &b->heard));
    assert_ok(ls_on(b->node, "y", count, &other));
    severed_reset(&a->link, LINK_PASSES);
    assert_reaches(&a->back, 1);
    assert_int_equal(ls_node_listeners(a->node, "x", NULL, 0), 1);
    assert_ok(ls_emit(a->node, "y", NULL, 0));
    assert_reaches(&other, 1);
    assert_int_equal(severed_stats(a).dropped, 0);
    severed_end(world);
    counter_fini(&other);
}

/* ---- not coming back --------------------------------------------------- */

TEST(one_whose_host_refuses_is_lost_at_once)
{
    struct severed_world *world = severed_start(&parted);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    severed_reset(&b->link, LINK_REFUSES); /* as if its process were gone */
    severed_reset(&a->link, LINK_HOLDS);
    assert_reaches(&a->lost, 1);
    assert_int_equal(a->last.id, 2);
    assert_int_equal(a->last.reason, LS_ELOST);
    severed_end(world);
}

TEST(one_that_dies_while_it_is_away_is_found)
{
    struct severed_world *world = severed_start(&parted);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    severed_watch(world);
    severed_reset(&a->link, LINK_HOLDS); /* the probe finds B's address alive */
    assert_reaches(&a->away_n, 1);
    severed_reset(&b->link, LINK_REFUSES);
    assert_reaches(&a->lost, 1);
    assert_int_equal(a->last.reason, LS_ELOST);
    severed_end(world);
}

TEST(one_that_stays_away_for_too_long_is_lost)
{
    struct severed_world *world = severed_start(
        &(struct severed_plan){.n = 2, .heartbeat_ms = 20, .silence_ms = 200});
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    severed_reset(&a->link, LINK_HOLDS);
    severed_reset(&b->link, LINK_HOLDS);
    assert_reaches(&a->lost, 1);
    assert_reaches(&b->lost, 1);
    assert_int_equal(a->last.reason, LS_ETIMEDOUT);
    assert_int_equal(b->last.reason, LS_ETIMEDOUT);
    severed_end(world);
}

TEST(one_that_is_heard_but_does_not_hear_is_lost_too)
{
    struct severed_world *world = severed_start(
        &(struct severed_plan){.n = 2, .heartbeat_ms = 20, .silence_ms = 200});
    struct severed_node *a = &world->at[0];
    severed_reset(&a->link, LINK_HOLDS); /* B still speaks to A */
    assert_reaches(&a->lost, 1);
    assert_reaches(&world->at[1].lost, 1);
    severed_end(world);
}

/* ---- whose id it is ---------------------------------------------------- */

struct second {
    ls_node *node;
    int status;
    char text[LS_ERROR_TEXT_MAX];
};

static void start_second(void *self)
{
    struct second *second = self;
    second->status = ls_node_start(second->node);
    (void)snprintf(second->text, sizeof second->text, "%s", ls_error_text());
}

/* Another node 2, which finds node 1 at its own address. */
static void make_second(struct second *second, struct severed_world *world)
{
    struct ls_node_options options;
    char address[128];
    const char *attach = address;
    (void)snprintf(address, sizeof address, "ipc://%s/0", world->directory);
    ls_node_options_init(&options);
    options.id = 2;
    options.bind = "tcp://127.0.0.1:*";
    options.attach = &attach;
    options.n_attach = 1;
    options.world_size = 2;
    options.heartbeat_ms = 20;
    options.silence_ms = 60000;
    options.start_timeout_ms = LONG_MS;
    options.linger_ms = 0;
    assert_ok(ls_node_create(&second->node, &options));
}

TEST(the_id_of_one_that_is_away_and_lives_is_not_given_away)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0];
    struct second second;
    ls_thread *thread;
    severed_watch(world);
    severed_reset(&a->link, LINK_HOLDS);
    assert_reaches(&a->away_n, 1);
    make_second(&second, world);
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "second",
                              start_second, &second));
    severed_reset(&a->link, LINK_PASSES);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(second.status, LS_EEXIST);
    assert_has(second.text, "node id 2 is taken");
    assert_has(second.text, world->at[1].link.endpoint);
    ls_node_destroy(&second.node);
    assert_int_equal(counter_get(&a->lost), 0);
    severed_end(world);
}

TEST(the_id_of_one_that_is_gone_is_free_at_once)
{
    struct severed_world *world = severed_start(&parted);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    struct second second;
    make_second(&second, world);
    /* Its connection hangs, and its process is gone: silence would tell in a
     * minute. */
    severed_hold(&a->link);
    severed_reset(&b->link, LINK_REFUSES);
    start_second(&second);
    assert_int_equal(second.status, LS_OK);
    assert_reaches(&a->lost, 1);
    assert_reaches(&a->ready, 2);
    ls_node_destroy(&second.node);
    severed_end(world);
}

/* ---- behind a hub ------------------------------------------------------ */

TEST(a_leaf_may_go_away_and_come_back)
{
    struct severed_world *world =
        severed_start(&(struct severed_plan){.n = 3,
                                             .topology = LS_TOPOLOGY_STAR,
                                             .heartbeat_ms = 20,
                                             .silence_ms = 60000});
    struct severed_node *hub = &world->at[0], *leaf = &world->at[1];
    severed_watch(world);
    break_and_mend(&hub->link, hub, 2);   /* both leaves */
    break_and_mend(&leaf->link, leaf, 2); /* the hub, and who is behind it */
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(counter_get(&world->at[i].lost), 0);
    for (size_t i = 0; i < 3; i++)
        assert_ok(ls_emit(world->at[i].node, "x", NULL, 0));
    for (size_t i = 0; i < 3; i++)
        assert_reaches(&world->at[i].heard, 3);
    severed_end(world);
}
