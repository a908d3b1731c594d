/* Policy latest: a value that every listener has, sooner or later, and none an
 * older one after it. */
#include "test.h"
#include "network_fixture.h"
#include "severed_world.h"

#define MIB (1024u * 1024u)

static const struct severed_plan patient = {
    .n = 2, .heartbeat_ms = 20, .silence_ms = 60000};

/* What a listener has seen of a value that is a number. */
struct seen {
    struct counter value; /* the last */
    struct counter came;
    struct counter go_on; /* how many may be handled */
    uint64_t backwards, twice;
    size_t size;
};

static int see(void *self, const struct ls_event *event)
{
    struct seen *seen = self;
    int value = 0;
    memcpy(&value, event->data, sizeof value);
    seen->size = event->size;
    if (!counter_reaches(&seen->go_on, counter_get(&seen->came) + 1))
        abort();
    const int step = value - counter_get(&seen->value);
    seen->backwards += step < 0;
    seen->twice += step == 0;
    counter_add(&seen->came, 1);
    counter_add(&seen->value, step);
    return LS_OK;
}

static void seen_init(struct seen *seen, int go_on)
{
    *seen = (struct seen){.size = 0};
    counter_init(&seen->value);
    counter_init(&seen->came);
    counter_init(&seen->go_on);
    counter_add(&seen->go_on, go_on);
}

static void seen_fini(struct seen *seen)
{
    counter_fini(&seen->value);
    counter_fini(&seen->came);
    counter_fini(&seen->go_on);
}

static void set(struct severed_node *from, int value)
{
    assert_ok(ls_emit_with(
        from->node, &(struct ls_emission){.event = "v",
                                          .data = &value,
                                          .size = sizeof value,
                                          .delivery = LS_DELIVERY_LATEST}));
}

/* ---- who gets it ------------------------------------------------------- */

TEST(who_begins_to_listen_gets_the_current_value)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    struct seen seen;
    seen_init(&seen, 100);
    set(a, 1);
    set(a, 2);
    assert_ok(ls_on(b->node, "v", see, &seen));
    assert_reaches(&seen.value, 2);
    assert_int_equal(counter_get(&seen.came), 1);
    set(a, 3);
    assert_reaches(&seen.value, 3);
    assert_ok(ls_off(b->node, "v", see, &seen));
    set(a, 4);
    assert_ok(ls_on(b->node, "v", see, &seen));
    assert_reaches(&seen.value, 4);
    /* Perhaps twice: what was sent to it before, and since it began again. */
    assert_int_equal(seen.backwards, 0);
    severed_end(world);
    seen_fini(&seen);
}

/* Whether its emitter has noticed meanwhile, or not. */
static void listen_again_and_again(const struct severed_plan *plan)
{
    struct severed_world *world = severed_start(plan);
    struct severed_node *from = &world->at[plan->n - 1], *to = &world->at[0];
    if (plan->topology == LS_TOPOLOGY_STAR)
        to = &world->at[1]; /* a leaf, too */
    set(from, 7);
    for (int i = 0; i < 20; i++) {
        struct seen seen;
        seen_init(&seen, 100);
        assert_ok(ls_on(to->node, "v", see, &seen));
        assert_reaches(&seen.value, 7);
        assert_ok(ls_off(to->node, "v", see, &seen));
        while (i % 2 == 0 && ls_node_listeners(from->node, "v", NULL, 0) != 0)
            emit_until_heard(from->node, "x", &to->heard);
        seen_fini(&seen);
    }
    severed_end(world);
}

TEST(who_stops_and_begins_again_gets_the_same_value_again)
{
    listen_again_and_again(&patient);
    listen_again_and_again(
        &(struct severed_plan){.n = 3,
                               .topology = LS_TOPOLOGY_STAR,
                               .heartbeat_ms = patient.heartbeat_ms,
                               .silence_ms = patient.silence_ms});
}

TEST(this_node_itself_gets_it_too)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0];
    struct seen seen;
    seen_init(&seen, 100);
    set(a, 1);
    assert_ok(ls_on(a->node, "v", see, &seen));
    assert_reaches(&seen.value, 1);
    set(a, 2);
    assert_reaches(&seen.value, 2);
    severed_end(world);
    seen_fini(&seen);
}

TEST(a_value_set_while_one_is_away_comes_when_it_is_back)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    struct seen seen;
    seen_init(&seen, 100);
    assert_ok(ls_on(b->node, "v", see, &seen));
    set(a, 1);
    assert_reaches(&seen.value, 1);
    severed_watch(world);
    severed_reset(&a->link, LINK_HOLDS);
    assert_reaches(&a->away_n, 1);
    for (int i = 2; i < 50; i++)
        set(a, i);
    severed_reset(&a->link, LINK_PASSES);
    assert_reaches(&seen.value, 49);
    assert_true(counter_get(&seen.came) <= 3); /* 1, 2 and 49 */
    assert_int_equal(seen.backwards + seen.twice, 0);
    assert_int_equal(severed_stats(b).missed, 0);
    severed_end(world);
    seen_fini(&seen);
}

TEST(a_member_that_comes_later_gets_it)
{
    struct world world;
    struct seen seen;
    const int value = 7;
    world_start(&world, &(struct world_plan){.n = 1});
    seen_init(&seen, 100);
    assert_ok(
        ls_emit_with(world.at[0].node,
                     &(struct ls_emission){.event = "v",
                                           .data = &value,
                                           .size = sizeof value,
                                           .delivery = LS_DELIVERY_LATEST}));
    char bind[LS_ENDPOINT_MAX + 1];
    fresh_endpoint(bind, sizeof bind);
    ls_node *late = world_late(&world, &(struct world_plan){.n = 2}, 2, bind);
    assert_ok(ls_on(late, "v", see, &seen));
    assert_ok(ls_node_start(late));
    assert_reaches(&seen.value, 7);
    ls_node_destroy(&late);
    world_destroy(&world);
    seen_fini(&seen);
}

/* ---- what is replaced -------------------------------------------------- */

TEST(a_slow_handler_gets_the_newest_next)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    struct seen there, here;
    seen_init(&there, 0);
    seen_init(&here, 0);
    assert_ok(ls_on(b->node, "v", see, &there));
    assert_ok(ls_on(a->node, "v", see, &here));
    for (int i = 1; i <= 2000; i++)
        set(a, i); /* never waits */
    counter_add(&there.go_on, 100000);
    counter_add(&here.go_on, 100000);
    assert_reaches(&there.value, 2000);
    assert_reaches(&here.value, 2000);
    assert_true(counter_get(&here.came) <= 2); /* the first, the last */
    assert_int_equal(there.backwards + there.twice, 0);
    assert_int_equal(here.backwards + here.twice, 0);
    assert_int_equal(severed_stats(a).dropped, 0);
    assert_int_equal(severed_stats(b).missed, 0);
    severed_end(world);
    seen_fini(&there);
    seen_fini(&here);
}

static void count_release(void *data, void *hint)
{
    free(data);
    counter_add(hint, 1);
}

TEST(a_long_value_is_whole_and_freed_when_it_is_replaced)
{
    struct severed_world *world = severed_start(&patient);
    struct severed_node *a = &world->at[0], *b = &world->at[1];
    struct seen seen;
    struct counter released;
    seen_init(&seen, 100);
    counter_init(&released);
    assert_ok(ls_on(b->node, "v", see, &seen));
    for (int i = 1; i <= 3; i++) {
        int *data = calloc(5, MIB);
        assert_non_null(data);
        data[0] = i;
        assert_ok(ls_emit_with(
            a->node, &(struct ls_emission){.event = "v",
                                           .data = data,
                                           .size = 5u * MIB,
                                           .delivery = LS_DELIVERY_LATEST,
                                           .release = count_release,
                                           .hint = &released}));
        assert_reaches(&seen.value, i);
        assert_int_equal(seen.size, 5u * MIB);
    }
    assert_reaches(&released, 2); /* the third is the current one */
    ls_node_destroy(&a->node);
    assert_reaches(&released, 3);
    severed_end(world);
    seen_fini(&seen);
    counter_fini(&released);
}

/* ---- within the node --------------------------------------------------- */

/* Its handler takes longer than they are emitted. */
struct alone {
    ls_runtime *runtime;
    ls_thread *thread;
    int handled;
};

static int take_long(void *self, const struct ls_event *event)
{
    struct alone *alone = self;
    int value;
    memcpy(&value, event->data, sizeof value);
    assert_int_equal(value, alone->handled++);
    ls_rest_until(alone->runtime, ls_deadline(alone->runtime, 10));
    return LS_OK;
}

static void emit_to_itself(void *self)
{
    enum { VALUES = 100 };
    struct alone *alone = self;
    struct ls_node_options options;
    ls_node *node = NULL;
    ls_node_options_init(&options);
    options.bind = "tcp://127.0.0.1:21500";
    options.runtime = alone->runtime;
    options.window_messages = 16;
    assert_ok(ls_node_create(&node, &options));
    assert_ok(ls_on(node, "v", take_long, alone));
    assert_ok(ls_node_start(node));
    for (int i = 0; i < VALUES; i++)
        assert_ok(ls_emit_with(
            node, &(struct ls_emission){.event = "v",
                                        .data = &i,
                                        .size = sizeof i,
                                        .scope = LS_SCOPE_LOCAL,
                                        .delivery = LS_DELIVERY_LATEST}));
    ls_rest_until(alone->runtime, ls_deadline(alone->runtime, 1000));
    assert_int_equal(alone->handled, VALUES);
    assert_ok(ls_node_destroy(&node));
}

static void be_alone(struct net *net)
{
    struct alone alone = {.runtime = ls_host_runtime(net->hosts[0])};
    assert_ok(ls_thread_spawn(alone.runtime, &alone.thread, "alone",
                              emit_to_itself, &alone));
    assert_ok(ls_thread_join(&alone.thread, LS_FOREVER));
}

TEST(one_that_is_only_for_the_node_itself_is_never_lost_and_waits_for_room)
{
    net_run(NULL, be_alone);
}

/* ---- errors ------------------------------------------------------------ */

TEST(it_is_for_all_and_for_started_nodes)
{
    struct severed_world *world = severed_start(&patient);
    struct ls_emission emission = {
        .event = "v", .delivery = LS_DELIVERY_LATEST, .to_one = true, .to = 2};
    struct ls_node_options options;
    ls_node *node = NULL;
    assert_ok(ls_on(world->at[1].node, "v", count, &world->at[1].heard));
    emit_until_heard(world->at[0].node, "v", &world->at[1].heard);
    assert_fails(ls_emit_with(world->at[0].node, &emission), LS_EINVAL);
    ls_node_options_init(&options);
    assert_ok(ls_node_create(&node, &options));
    emission.to_one = false;
    assert_fails(ls_emit_with(node, &emission), LS_ESTATE);
    ls_node_destroy(&node);
    severed_end(world);
}
