/* What the members that a node sees mean for its run. */
#include "elastic_run.h"
#include "test.h"

/* A learner, two collectors and an evaluator; this node is the learner. */
enum { LEARNER, FIRST, SECOND, EVALUATOR, N };

static struct plan_node nodes[N];
static struct ls_member members[N - 1];
static struct plan plan;

static int set_up(void **state)
{
    (void)state;
    static const enum plan_role roles[N] = {PLAN_LEARNER, PLAN_COLLECTOR,
                                            PLAN_COLLECTOR, PLAN_EVALUATOR};
    for (size_t i = 0; i < N; i++)
        nodes[i] =
            (struct plan_node){.id = (uint32_t)(10 * i), .role = roles[i]};
    for (size_t i = 1; i < N; i++)
        members[i - 1] = (struct ls_member){
            .id = nodes[i].id, .incarnation = 1, .state = LS_MEMBER_READY};
    plan = (struct plan){
        .nodes = nodes, .n_nodes = N, .world = {.topology = LS_TOPOLOGY_MESH}};
    return 0;
}

static void become(size_t index, enum ls_member_state state, int reason)
{
    members[index - 1].state = state;
    members[index - 1].reason = reason;
}

/* which: N: none decides. */
static void check(enum elastic_state state, size_t which)
{
    size_t found = N;
    assert_int_equal(elastic_look(&plan, LEARNER, members, N - 1, &found),
                     state);
    assert_int_equal(found, which);
}

EACH_TEST(set_up, NULL)

TEST(all_there_is_whole)
{
    check(ELASTIC_WHOLE, N);
}

TEST(a_loss_is_what_the_policy_of_the_lost_one_says)
{
    become(FIRST, LS_MEMBER_LOST, LS_ELOST);
    check(ELASTIC_BROKEN, FIRST);
    nodes[FIRST].on_loss = PLAN_RESTART;
    check(ELASTIC_AWAITS, FIRST);
    nodes[FIRST].on_loss = PLAN_GO_ON;
    check(ELASTIC_WHOLE, N);
}

TEST(who_left_with_an_error_is_lost)
{
    become(SECOND, LS_MEMBER_LEFT, LS_EHANDLER);
    check(ELASTIC_BROKEN, SECOND);
    nodes[SECOND].on_loss = PLAN_RESTART;
    check(ELASTIC_AWAITS, SECOND);
}

TEST(who_is_lost_decides_and_not_who_gave_up_for_want_of_it)
{
    nodes[FIRST].on_loss = nodes[SECOND].on_loss = PLAN_RESTART;
    become(FIRST, LS_MEMBER_LEFT, LS_ELOST);
    check(ELASTIC_AWAITS, FIRST);
    become(SECOND, LS_MEMBER_LOST, LS_ELOST);
    check(ELASTIC_AWAITS, SECOND);
}

TEST(who_left_well_has_finished_the_run)
{
    nodes[FIRST].on_loss = PLAN_RESTART;
    become(FIRST, LS_MEMBER_LOST, LS_ELOST);
    become(EVALUATOR, LS_MEMBER_LEFT, LS_OK);
    check(ELASTIC_DONE, EVALUATOR);
}

TEST(one_on_its_way_is_awaited)
{
    become(SECOND, LS_MEMBER_SEEN, LS_OK);
    check(ELASTIC_AWAITS, SECOND);
    members[SECOND - 1].id = 99; /* never heard of */
    check(ELASTIC_AWAITS, SECOND);
}

TEST(nothing_is_learned_without_a_collector)
{
    nodes[FIRST].on_loss = nodes[SECOND].on_loss = PLAN_GO_ON;
    become(FIRST, LS_MEMBER_LOST, LS_ELOST);
    check(ELASTIC_WHOLE, N);
    become(SECOND, LS_MEMBER_LOST, LS_ELOST);
    check(ELASTIC_BROKEN, SECOND);
    nodes[FIRST].on_loss = PLAN_RESTART;
    check(ELASTIC_AWAITS, FIRST);
}

/* Through the hub a leaf loses all the others, who are there. */
TEST(a_leaf_of_a_star_waits_for_all)
{
    plan.world.topology = LS_TOPOLOGY_STAR;
    plan.first = FIRST;
    nodes[FIRST].on_loss = PLAN_RESTART;
    become(FIRST, LS_MEMBER_LOST, LS_ELOST);
    become(SECOND, LS_MEMBER_LOST, LS_ELOST);
    check(ELASTIC_AWAITS, FIRST);
    plan.first = LEARNER;
    check(ELASTIC_BROKEN, SECOND);
}
