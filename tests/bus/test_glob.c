/* Listening to all events whose names match a glob. */
#include "bus.h"
#include "node_fixture.h"
#include "test.h"

#define MIB (1024u * 1024u)

enum { ARM, DONE, ALL, OWN, N_GLOBS };
static const char *const globs[N_GLOBS] = {"arm.*", "*.done", "*", "ls.t*"};

struct heard {
    struct counter of[N_GLOBS];
    struct counter named; /* "arm.left", by its name */
    size_t bytes;
};

static int measure(void *self, const struct ls_event *event)
{
    struct heard *heard = self;
    heard->bytes = event->size;
    return count(&heard->of[ALL], event);
}

static void listen(ls_node *node, struct heard *heard)
{
    for (int i = 0; i < N_GLOBS; i++)
        if (i != ALL)
            assert_ok(ls_on(node, globs[i], count, &heard->of[i]));
    assert_ok(ls_on(node, "*", measure, heard));
    assert_ok(ls_on(node, "arm.left", count, &heard->named));
}

/* The last one listens from the start. */
static void prepare(ls_node *node, size_t index, void *self)
{
    if (index == 2)
        listen(node, self);
}

static void heard_init(struct heard *heard)
{
    for (int i = 0; i < N_GLOBS; i++)
        counter_init(&heard->of[i]);
    counter_init(&heard->named);
    heard->bytes = 0;
}

static void heard_fini(struct heard *heard)
{
    for (int i = 0; i < N_GLOBS; i++)
        counter_fini(&heard->of[i]);
    counter_fini(&heard->named);
}

static void emit(ls_node *node, const char *event, enum ls_delivery policy,
                 const void *data, size_t size)
{
    assert_ok(ls_emit_with(node, &(struct ls_emission){.event = event,
                                                       .data = data,
                                                       .size = size,
                                                       .delivery = policy}));
}

static void small_windows(struct ls_node_options *options, size_t index)
{
    (void)index;
    options->window_messages = 32;
}

static void assert_nothing_is_wrong(struct world *world)
{
    for (size_t i = 0; i < world->n; i++) {
        struct ls_node_stats stats;
        ls_node_stats(world->at[i].node, &stats);
        assert_int_equal(stats.refused, 0);
        assert_int_equal(stats.missed, 0);
        assert_int_equal(stats.dropped, 0);
        assert_int_equal(stats.unacknowledged, 0);
    }
}

static const enum ls_topology topologies[] = {LS_TOPOLOGY_MESH,
                                              LS_TOPOLOGY_STAR};
static const char *const transports[] = {"inproc", "port"};

static struct world_plan plan_of(int i, struct heard *heard)
{
    return (struct world_plan){.n = 3,
                               .topology = topologies[i / 2],
                               .transport = transports[i % 2],
                               .tune = small_windows,
                               .prepare = prepare,
                               .self = heard};
}

static void matches_only(ls_node *from, struct heard *heard)
{
    emit(from, "arm.left", LS_DELIVERY_BLOCK, NULL, 0);
    emit(from, "arm.left.done", LS_DELIVERY_BLOCK, NULL, 0);
    emit(from, "armour", LS_DELIVERY_BLOCK, NULL, 0);
    emit(from, "ls.test", LS_DELIVERY_BLOCK, NULL, 0);
    assert_reaches(&heard->of[ALL], 3);
    assert_reaches(&heard->of[OWN], 1);
    assert_reaches(&heard->of[ARM], 2);
    assert_reaches(&heard->of[DONE], 1);
    assert_reaches(&heard->named, 1);
}

/* More than the windows hold, of several names, and short enough to share
 * frames: both ends count the same. */
static void keeps_accounts(ls_node *from, struct heard *heard)
{
    static const char *const names[] = {"arm.left", "leg", "hand.done"};
    const int before = counter_get(&heard->of[ALL]);
    for (int i = 0; i < 600; i++)
        emit(from, names[i / 7 % 3], LS_DELIVERY_BLOCK, "x", 1);
    assert_reaches(&heard->of[ALL], before + 600);
}

static void by_every_policy(ls_node *from, struct heard *heard, char *bulk)
{
    const int before = counter_get(&heard->of[ALL]);
    emit(from, "long", LS_DELIVERY_BLOCK, bulk, 3 * MIB);
    assert_reaches(&heard->of[ALL], before + 1);
    assert_int_equal(heard->bytes, 3 * MIB);
    emit(from, "long.sure", LS_DELIVERY_RELIABLE, bulk, 3 * MIB);
    emit(from, "sure", LS_DELIVERY_RELIABLE, "x", 1);
    assert_reaches(&heard->of[ALL], before + 3);
    emit(from, "value", LS_DELIVERY_LATEST, "x", 1);
    assert_reaches(&heard->of[ALL], before + 4);
    assert_ok(ls_emit_with(
        from, &(struct ls_emission){.event = "one", .to_one = true, .to = 3}));
    assert_reaches(&heard->of[ALL], before + 5);
}

TEST(a_glob_hears_what_it_matches_over_any_network)
{
    char *bulk = calloc(3, MIB);
    assert_non_null(bulk);
    for (int i = 0; i < 4; i++) {
        struct heard heard;
        struct world world;
        heard_init(&heard);
        const struct world_plan plan = plan_of(i, &heard);
        world_start(&world, &plan);
        matches_only(world.at[1].node, &heard);
        keeps_accounts(world.at[1].node, &heard);
        keeps_accounts(world.at[0].node, &heard);
        by_every_policy(world.at[1].node, &heard, bulk);
        assert_nothing_is_wrong(&world);
        const int all = counter_get(&heard.of[ALL]);
        world_destroy(&world);
        assert_int_equal(counter_get(&heard.of[ALL]), all);
        assert_int_equal(counter_get(&heard.of[ARM]), 2 + 2 * 203);
        assert_int_equal(counter_get(&heard.named), 1 + 2 * 203);
        assert_int_equal(counter_get(&heard.of[OWN]), 1);
        heard_fini(&heard);
    }
    free(bulk);
}

TEST(who_listens_later_hears_what_comes_then)
{
    for (int i = 0; i < 4; i++) {
        struct heard heard;
        struct world world;
        heard_init(&heard);
        struct world_plan plan = plan_of(i, &heard);
        plan.prepare = NULL;
        world_start(&world, &plan);
        ls_node *const from = world.at[1].node, *const to = world.at[2].node;
        emit(from, "value", LS_DELIVERY_LATEST, "x", 1);
        emit(from, "leg", LS_DELIVERY_BLOCK, "x", 1);
        assert_ok(ls_on(to, "v*", count, &heard.of[DONE]));
        assert_reaches(&heard.of[DONE], 1); /* the current value */
        assert_ok(ls_on(to, "arm.*", count, &heard.of[ARM]));
        emit_until_heard(from, "arm.right", &heard.of[ARM]);
        uint32_t ids[4];
        assert_ok(ls_on(to, "arm.right", count, &heard.named));
        emit_until_heard(from, "arm.right", &heard.named);
        assert_int_equal(ls_node_listeners(from, "arm.right", ids, 4), 1);
        assert_int_equal(ids[0], 3);
        assert_int_equal(ls_node_listeners(from, "armour", ids, 4), 0);
        assert_ok(ls_off(to, "arm.right", count, &heard.named));
        emit_until_heard(from, "arm.right", &heard.of[ARM]);
        assert_nothing_is_wrong(&world);
        assert_ok(ls_off(to, "arm.*", count, &heard.of[ARM]));
        const int n = counter_get(&heard.of[ARM]);
        emit(from, "arm.right", LS_DELIVERY_BLOCK, NULL, 0);
        assert_ok(ls_on(to, "arm.*", count, &heard.of[ARM]));
        emit_until_heard(from, "arm.right", &heard.of[ARM]);
        assert_true(counter_get(&heard.of[ARM]) > n);
        world_destroy(&world);
        heard_fini(&heard);
    }
}

TEST(a_leaf_that_is_gone_listens_no_more)
{
    for (int i = 0; i < 4; i++) {
        struct heard heard;
        struct world world;
        heard_init(&heard);
        const struct world_plan plan = plan_of(i, &heard);
        world_start(&world, &plan);
        assert_ok(ls_node_destroy(&world.at[2].node));
        struct ls_member member;
        assert_ok(ls_node_member(world.at[0].node, 3, &member));
        assert_string_equal(ls_member_state_name(member.state), "left");
        assert_fails(ls_node_member(world.at[0].node, 9, &member), LS_ENOENT);
        for (int j = 0; j < 100; j++) /* nobody's window fills */
            emit(world.at[0].node, "arm.left", LS_DELIVERY_BLOCK, "x", 1);
        assert_int_equal(
            ls_node_listeners(world.at[0].node, "arm.left", NULL, 0), 0);
        world_destroy(&world);
        heard_fini(&heard);
    }
}

static int refuse(void *self, const struct ls_event *event)
{
    (void)self;
    (void)event;
    return ls_error(LS_EPROTO, "no");
}

TEST(one_node_by_itself)
{
    struct heard heard;
    struct world world;
    char label[] = "mine";
    heard_init(&heard);
    const struct world_plan plan = {.n = 1};
    world_start(&world, &plan);
    ls_node *const node = world.at[0].node;
    listen(node, &heard);
    matches_only(node, &heard);
    assert_fails(ls_off(node, "arm.?", count, &heard.of[ARM]), LS_ENOENT);
    assert_ok(ls_off(node, "arm.*", count, &heard.of[ARM]));
    assert_int_equal(ls_off_all(node, NULL), 0);
    assert_int_equal(ls_off_all(node, "*"), 3);
    assert_int_equal(ls_off_all(node, "ls.*"), 1);
    emit(node, "arm.left", LS_DELIVERY_BLOCK, NULL, 0);
    assert_ok(ls_on_named(node, "[a-c]*", refuse, NULL, label));
    label[0] = '\0'; /* it was copied */
    emit(node, "dog", LS_DELIVERY_BLOCK, NULL, 0);
    emit(node, "cat", LS_DELIVERY_BLOCK, NULL, 0);
    assert_fails(ls_wait_for(node, "[x-z]*", LONG_MS, NULL, NULL), LS_EPROTO);
    assert_error_has("\"cat\": handler mine");
    world_destroy(&world);
    assert_int_equal(counter_get(&heard.named), 1);
    heard_fini(&heard);
}

TEST(what_is_no_glob_is_refused)
{
    struct world world;
    struct counter counter;
    char name[LS_EVENT_MAX + 2];
    const struct world_plan plan = {.n = 1};
    world_create(&world, &plan);
    counter_init(&counter);
    ls_node *const node = world.at[0].node;
    static const char *const wrong[] = {"", "a b*", "a\\*", "a*\n", "a]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(ls_on(node, wrong[i], count, &counter), LS_EINVAL);
    memset(name, 'a', sizeof name);
    name[LS_EVENT_MAX - 1] = '*';
    name[LS_EVENT_MAX] = '\0';
    assert_ok(ls_on(node, name, count, &counter));
    name[LS_EVENT_MAX] = '*';
    name[LS_EVENT_MAX + 1] = '\0';
    assert_fails(ls_on(node, name, count, &counter), LS_EINVAL);
    assert_fails(ls_emit(node, "arm.*", NULL, 0), LS_EINVAL);
    counter_fini(&counter);
    world_destroy(&world);
}

/* Else each event is matched with what nobody listens to. */
TEST(who_listens_to_no_glob_any_more_looks_for_none)
{
    struct counter heard;
    const struct ls_node_options options = usual(1);
    ls_node *node = create(&options);
    counter_init(&heard);
    for (int i = 0; i < 3; i++)
        assert_ok(ls_on(node, i < 2 ? "arm.*" : "arm.left", count, &heard));
    assert_int_equal(atomic_load(&node->table.n_globs), 2);
    assert_ok(ls_off(node, "arm.*", count, &heard));
    assert_ok(ls_off(node, "arm.*", count, &heard));
    assert_int_equal(atomic_load(&node->table.n_globs), 0);
    assert_ok(ls_node_destroy(&node));
    counter_fini(&heard);
}
