/* Who may emit an event to a node. */
#include "event_access.h"

#include "bus.h"
#include "quiet.h"
#include "test.h"
#include "transport_fixture.h"
#include "world_fixture.h"

/* A node that is told of members by hand. */
struct guard {
    ls_node *node;
    ls_security *security;
};

static int set_up(void **state)
{
    struct guard *guard = calloc(1, sizeof *guard);
    struct ls_node_options options;
    char endpoint[LS_ENDPOINT_MAX + 1];
    assert_non_null(guard);
    ls_node_options_init(&options);
    assert_ok(ls_node_create(&guard->node, &options));
    assert_ok(ls_security_none(&guard->security));
    assert_ok(open_transport(&guard->node->transport, ls_runtime_threads(),
                             "inproc://guard", guard->security, endpoint));
    *state = guard;
    return 0;
}

static int tear_down(void **state)
{
    struct guard *guard = *state;
    ls_node_destroy(&guard->node);
    ls_security_destroy(&guard->security);
    free(guard);
    return 0;
}

static struct member one(uint32_t id, const char *role, const char *labels)
{
    return (struct member){.id = id, .role = role, .labels = labels};
}

static bool admits(struct guard *guard, const char *event,
                   const struct member *origin)
{
    struct event_entry *entry;
    assert_ok(events_get(guard->node, event, strlen(event), true, &entry));
    return event_access_admits(guard->node, entry, origin);
}

static bool admits_id(struct guard *guard, uint32_t id)
{
    const struct member member = one(id, "worker", "slow");
    return admits(guard, "load", &member);
}

static bool admits_role(struct guard *guard, const char *role)
{
    const struct member member = one(3, role, "role");
    return admits(guard, "load", &member);
}

static bool admits_labels(struct guard *guard, const char *labels)
{
    const struct member member = one(3, "label", labels);
    return admits(guard, "load", &member);
}

static void allow(struct guard *guard, const char *who)
{
    assert_ok(ls_node_allow(guard->node, "load", who));
}

/* ---- who is meant ------------------------------------------------------ */

TEST_WITH(until_somebody_is_named_all_may, set_up, tear_down)
{
    assert_true(admits_id(*state, 1));
    assert_true(admits_role(*state, ""));
    assert_true(admits_labels(*state, ""));
}

TEST_WITH(an_id_is_that_node, set_up, tear_down)
{
    allow(*state, "3");
    assert_true(admits_id(*state, 3));
    assert_false(admits_id(*state, 30));
    assert_false(admits_id(*state, 0));
    allow(*state, "0");
    allow(*state, "4294967295");
    assert_true(admits_id(*state, 0));
    assert_true(admits_id(*state, UINT32_MAX));
    assert_false(admits_id(*state, 4));
}

TEST_WITH(a_role_is_all_of_that_role, set_up, tear_down)
{
    allow(*state, "role:learner");
    assert_true(admits_role(*state, "learner"));
    assert_false(admits_role(*state, "learner2"));
    assert_false(admits_role(*state, "learn"));
    assert_false(admits_role(*state, "Learner"));
    assert_false(admits_role(*state, ""));
    assert_false(admits_labels(*state, "learner"));
}

TEST_WITH(a_label_is_one_of_those_that_it_has, set_up, tear_down)
{
    allow(*state, "label:gpu");
    assert_true(admits_labels(*state, "gpu"));
    assert_true(admits_labels(*state, "fast,gpu"));
    assert_true(admits_labels(*state, "gpu,fast"));
    assert_true(admits_labels(*state, "a,gpu,b"));
    assert_false(admits_labels(*state, "gpus,fast"));
    assert_false(admits_labels(*state, "fast,agpu"));
    assert_false(admits_labels(*state, "gp"));
    assert_false(admits_labels(*state, ""));
    assert_false(admits_role(*state, "gpu"));
}

TEST_WITH(each_call_names_one_more, set_up, tear_down)
{
    allow(*state, "7");
    allow(*state, "role:learner");
    allow(*state, "label:gpu");
    allow(*state, "7");
    assert_true(admits_id(*state, 7));
    assert_true(admits_role(*state, "learner"));
    assert_true(admits_labels(*state, "gpu"));
    assert_false(admits_id(*state, 8));
}

TEST_WITH(other_events_are_free, set_up, tear_down)
{
    const struct member member = one(8, "", "");
    allow(*state, "7");
    assert_false(admits(*state, "load", &member));
    assert_true(admits(*state, "loads", &member));
}

TEST_WITH(who_may_not_is_counted_and_named, set_up, tear_down)
{
    struct guard *guard = *state;
    struct ls_refusal refusals[2];
    allow(guard, "7");
    assert_true(admits_id(guard, 7));
    assert_int_equal(ls_node_refusals(guard->node, refusals, 2), 0);
    assert_false(admits_id(guard, 8));
    assert_false(admits_id(guard, 8));
    assert_int_equal(ls_node_refusals(guard->node, refusals, 2), 1);
    assert_int_equal(refusals[0].kind, LS_REFUSAL_ACCESS);
    assert_string_equal(refusals[0].who, "node 8");
    assert_int_equal(refusals[0].n, 2);
    assert_has(refusals[0].why, "event \"load\"");
}

/* ---- errors ------------------------------------------------------------ */

TEST_WITH(what_names_nobody_is_refused, set_up, tear_down)
{
    struct guard *guard = *state;
    static const char *const bad[] = {
        "",
        "x",
        "-1",
        "+3",
        " 3",
        "3 ",
        "3x",
        "0x3",
        "3,4",
        "4294967296",
        "role:",
        "label:",
        "role:a b",
        "label:a,b",
        "Role:a",
        "learner",
        "role:a*",
        "node 3",
        "18446744073709551619",
        ("role:1234567890123456789012345678901234567890"
         "123456789012345678901234")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(ls_node_allow(guard->node, "load", bad[i]), LS_EINVAL);
        assert_error_has("role:WORD");
    }
    assert_fails(ls_node_allow(guard->node, "load", NULL), LS_EINVAL);
    assert_true(admits_id(guard, 3)); /* nobody was named */
}

TEST_WITH(what_is_no_event_name_is_refused, set_up, tear_down)
{
    struct guard *guard = *state;
    char name[LS_EVENT_MAX + 2];
    memset(name, 'e', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    static const char *const bad[] = {"", "a*", "a?", "[a]", "\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(ls_node_allow(guard->node, bad[i], "3"), LS_EINVAL);
    assert_fails(ls_node_allow(guard->node, NULL, "3"), LS_EINVAL);
    assert_fails(ls_node_allow(guard->node, name, "3"), LS_EINVAL);
    name[sizeof name - 2] = '\0';
    assert_ok(ls_node_allow(guard->node, name, "3"));
}

/* ---- between nodes ----------------------------------------------------- */

struct heard {
    struct counter load, after;
    const char *who;
};

static void roles(struct ls_node_options *options, size_t index)
{
    static const char *const all[] = {"hub", "writer", "reader"};
    options->role = all[index];
}

/* The third lets only some emit "load". */
static void listen_third(ls_node *node, size_t index, void *self)
{
    struct heard *heard = self;
    if (index != 2)
        return;
    counter_init(&heard->load);
    counter_init(&heard->after);
    assert_ok(ls_node_allow(node, "load", heard->who));
    assert_ok(ls_on(node, "load", count, &heard->load));
    assert_ok(ls_on(node, "after", count, &heard->after));
}

static void only_the_second_is_heard(enum ls_topology topology, const char *who)
{
    struct heard heard = {.who = who};
    struct world world;
    struct ls_refusal refusal;
    world_start(&world, &(struct world_plan){.n = 3,
                                             .topology = topology,
                                             .tune = roles,
                                             .prepare = listen_third,
                                             .self = &heard});
    ls_node *hub = world.at[0].node, *writer = world.at[1].node;
    assert_ok(ls_emit(hub, "load", NULL, 0));
    emit_until_heard(hub, "after", &heard.after); /* in order */
    assert_int_equal(counter_get(&heard.load), 0);
    assert_true(ls_node_refusals(world.at[2].node, &refusal, 1) >= 1);
    assert_int_equal(refusal.kind, LS_REFUSAL_ACCESS);
    assert_string_equal(refusal.who, "node 1");
    emit_until_heard(writer, "load", &heard.load);
    world_destroy(&world);
    counter_fini(&heard.load);
    counter_fini(&heard.after);
}

TEST(what_others_emit_is_dropped)
{
    only_the_second_is_heard(LS_TOPOLOGY_MESH, "2");
}

TEST(behind_a_hub_it_is_the_leaf_that_counts)
{
    only_the_second_is_heard(LS_TOPOLOGY_STAR, "role:writer");
}

int main(void)
{
    return tests_run_quietly();
}
