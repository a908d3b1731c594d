/* Barriers that are not simply one among all: several at once, groups, members
 * that are elsewhere, have other options, or go on without the lost. Real
 * nodes, in one process. */
#include "barrier_nodes.h"
#include "test.h"

enum { N_NAMES = 3 };

static const char *const names[N_NAMES] = {"first", "second", "third"};
static ls_barrier *barriers[CLUSTER_MAX][N_NAMES];

static void create_named(struct member *member, const char *name,
                         const struct ls_barrier_options *given)
{
    struct ls_barrier_options options = *given;
    options.name = name;
    assert_ok(ls_barrier_create(&member->barrier, member->node, &options));
}

/* A started cluster without the barriers that it comes with. */
static void create_bare(struct cluster *cluster, size_t n)
{
    create_cluster(cluster, n, LS_TOPOLOGY_MESH);
    for (size_t i = 0; i < n; i++)
        ls_barrier_destroy(&cluster->members[i].barrier);
}

/* --- several at once ---------------------------------------------------- */

static void wait_in(struct member *member, size_t which, uint64_t times)
{
    for (uint64_t i = 0; i < times && member->status == LS_OK; i++) {
        struct ls_barrier_epoch_info info;
        note(member, ls_barrier_wait(barriers[member->index][which],
                                     1u << member->index, LONG_MS, &info));
        if (member->status == LS_OK && info.epoch != i)
            note(member, ls_error(LS_EPROTO, "epoch %d", (int)info.epoch));
    }
}

static void second_thread(void *self)
{
    struct member *member = self;
    wait_in(member, 1, 50);
}

/* Two threads of each node, each in its own barrier. */
static void wait_in_two(struct member *member)
{
    struct member other = *member;
    ls_thread *thread;
    member->status = LS_OK;
    other.status = LS_OK;
    if (note(member, ls_thread_spawn(ls_runtime_threads(), &thread, "second",
                                     second_thread, &other)) != LS_OK)
        return;
    wait_in(member, 0, 200);
    const int status = ls_thread_join(&thread, LS_FOREVER);
    if (member->status == LS_OK && (status < 0 || other.status < 0))
        *member = other;
}

TEST(barriers_of_one_node_do_not_know_each_other)
{
    struct cluster cluster;
    create_bare(&cluster, 4);
    for (size_t i = 0; i < cluster.n; i++) {
        for (size_t k = 0; k < N_NAMES; k++) {
            create_named(&cluster.members[i], names[k],
                         &(struct ls_barrier_options){.expected = 0});
            barriers[i][k] = cluster.members[i].barrier;
            cluster.members[i].barrier = NULL;
        }
    }
    do_all(&cluster, wait_in_two);
    check_all_ok(&cluster);
    for (size_t i = 0; i < cluster.n; i++) {
        for (size_t k = 0; k < N_NAMES; k++) {
            struct ls_barrier_stats stats;
            ls_barrier_stats(barriers[i][k], &stats);
            assert_int_equal(stats.epochs, k == 0 ? 200 : k == 1 ? 50 : 0);
            assert_int_equal(stats.failed, 0);
        }
    }
    for (size_t i = 0; i < cluster.n; i++) {
        ls_node_stop(cluster.members[i].node, LS_OK);
        for (size_t k = 0; k < N_NAMES; k++)
            ls_barrier_destroy(&barriers[i][k]);
    }
    destroy_cluster(&cluster);
}

/* --- members that are elsewhere ----------------------------------------- */

static bool is_told_of_the_other(const struct cluster *cluster)
{
    bool told = false;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(cluster->members[i].status, LS_ETIMEDOUT);
        char part[80];
        snprintf(part, sizeof part,
                 "has no barrier of this name, waits in barrier \"%s\"",
                 i == 0 ? "right" : "left");
        told = told || strstr(cluster->members[i].text, part) != NULL;
    }
    return told;
}

/* Two wait for each other in barriers of different names. */
TEST(a_timeout_says_in_which_barrier_the_other_waits)
{
    struct cluster cluster;
    const struct ls_barrier_options none = {.expected = 0};
    create_bare(&cluster, 2);
    create_named(&cluster.members[0], "left", &none);
    create_named(&cluster.members[1], "right", &none);
    /* Each may have stopped waiting when the other asks. */
    do
        do_all(&cluster, wait_short);
    while (!is_told_of_the_other(&cluster));
    destroy_cluster(&cluster);
}

TEST(who_is_in_another_barrier_may_still_come)
{
    struct cluster cluster;
    const struct ls_barrier_options none = {.expected = 0};
    create_bare(&cluster, 3);
    for (size_t i = 0; i < 3; i++)
        create_named(&cluster.members[i], i == 2 ? "other" : "one", &none);
    void (*const early[CLUSTER_MAX])(struct member *) = {wait_short, wait_short,
                                                         NULL};
    do_each(&cluster, early);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(cluster.members[i].status, LS_ETIMEDOUT);
    ls_barrier_destroy(&cluster.members[2].barrier);
    create_named(&cluster.members[2], "one", &none);
    wait_short(&cluster.members[2]); /* told of the epoch that failed */
    do_all(&cluster, wait_long);
    check_all_ok(&cluster);
    destroy_cluster(&cluster);
}

static void take_down(struct member *member)
{
    ls_barrier_destroy(&member->barrier);
}

TEST(who_takes_its_barrier_down_is_named)
{
    struct cluster cluster;
    create_cluster(&cluster, 4, LS_TOPOLOGY_MESH);
    do_all(&cluster, wait_long);
    check_all_ok(&cluster);
    void (*const acts[CLUSTER_MAX])(struct member *) = {wait_long, wait_long,
                                                        take_down, wait_long};
    do_each(&cluster, acts);
    for (size_t i = 0; i < 4; i++) {
        if (i == 2)
            continue;
        assert_status(cluster.members[i].status, LS_EMISMATCH,
                      cluster.members[i].text, __FILE__, __LINE__);
        assert_has(cluster.members[i].text,
                   "node 4294967295 has no barrier of this name any more");
    }
    destroy_cluster(&cluster);
}

/* --- options ------------------------------------------------------------ */

static void check_options_differ(struct ls_barrier_options other)
{
    struct cluster cluster;
    const struct ls_barrier_options none = {.expected = 0};
    create_bare(&cluster, 3);
    for (size_t i = 0; i < 3; i++)
        create_named(&cluster.members[i], "gate", i == 1 ? &other : &none);
    do_all(&cluster, wait_long);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(cluster.members[i].status, LS_EMISMATCH);
        assert_has(cluster.members[i].text, "node 7");
    }
    destroy_cluster(&cluster);
}

TEST(members_with_other_options_are_refused)
{
    check_options_differ((struct ls_barrier_options){.expected = 3});
    check_options_differ((struct ls_barrier_options){.expected = 4});
    check_options_differ((struct ls_barrier_options){.fanout = 1});
    check_options_differ(
        (struct ls_barrier_options){.on_loss = LS_ON_LOSS_GO_ON});
}

/* --- groups ------------------------------------------------------------- */

static void create_with_role(struct cluster *cluster, size_t index,
                             const char *role, const char *labels)
{
    struct member *member = &cluster->members[index];
    create_node_only(cluster, index, role, labels);
    const struct ls_barrier_options group = {.group = "learner"};
    ls_barrier *barrier = NULL;
    const int status = ls_barrier_create(&barrier, member->node, &group);
    if (strstr(role, "collector") != NULL && labels[0] == '\0') {
        assert_int_equal(status, LS_EINVAL);
        assert_has(ls_error_text(), "is not in its group \"learner\"");
    } else {
        assert_ok(status);
    }
    member->barrier = barrier;
}

TEST(a_group_waits_without_the_others)
{
    struct cluster cluster = {.n = 4, .topology = LS_TOPOLOGY_MESH};
    create_with_role(&cluster, 0, "evaluator,learner", "");
    create_with_role(&cluster, 1, "collector", "");
    create_with_role(&cluster, 2, "learner", "");
    create_with_role(&cluster, 3, "collector", "fast,learner");
    do_all(&cluster, start_node);
    check_all_ok(&cluster);
    void (*const acts[CLUSTER_MAX])(struct member *) = {wait_long, NULL,
                                                        wait_long, wait_long};
    do_each(&cluster, acts);
    check_all_ok(&cluster);
    for (size_t i = 0; i < 4; i++) {
        uint32_t ids[CLUSTER_MAX] = {0};
        if (i == 1)
            continue;
        assert_int_equal(cluster.members[i].infos[0].members, 3);
        assert_int_equal(ls_barrier_members(cluster.members[i].barrier, ids, 2),
                         3);
        assert_int_equal(ids[2], 0);
        assert_int_equal(
            ls_barrier_members(cluster.members[i].barrier, ids, CLUSTER_MAX),
            3);
        assert_int_equal(ids[0], 12);
        assert_int_equal(ids[1], 1000000);
        assert_int_equal(ids[2], 4294967295u);
    }
    destroy_cluster(&cluster);
}

TEST(those_with_the_ids_wait_without_the_others)
{
    static const uint32_t ids[] = {7, 1000000};
    const struct ls_barrier_options both = {
        .name = "x", .group = "learner", .ids = ids, .n_ids = 2};
    const struct ls_barrier_options these = {.ids = ids, .n_ids = 2};
    struct cluster cluster = {.n = 3, .topology = LS_TOPOLOGY_MESH};
    ls_barrier *none;
    for (size_t i = 0; i < 3; i++) {
        create_node_only(&cluster, i, "learner", "");
        if (i == 2)
            assert_fails(
                ls_barrier_create(&none, cluster.members[i].node, &these),
                LS_EINVAL);
        else
            assert_ok(ls_barrier_create(&cluster.members[i].barrier,
                                        cluster.members[i].node, &these));
    }
    assert_fails(ls_barrier_create(&none, cluster.members[0].node, &both),
                 LS_EINVAL);
    do_all(&cluster, start_node);
    check_all_ok(&cluster);
    void (*const acts[CLUSTER_MAX])(struct member *) = {wait_long, wait_long};
    do_each(&cluster, acts);
    check_all_ok(&cluster);
    assert_int_equal(cluster.members[0].infos[0].members, 2);
    destroy_cluster(&cluster);
}

/* --- losses ------------------------------------------------------------- */

static void leave_world(struct member *member)
{
    ls_node_stop(member->node, LS_OK);
}

/* All four say the same, whoever heard of it first. */
TEST(one_of_five_is_lost_and_all_say_so)
{
    for (size_t gone = 0; gone < 5; gone++) {
        struct cluster cluster;
        char named[32];
        create_cluster(&cluster, 5, LS_TOPOLOGY_MESH);
        do_all(&cluster, wait_long);
        check_all_ok(&cluster);
        void (*acts[CLUSTER_MAX])(struct member *) = {
            wait_long, wait_long, wait_long, wait_long, wait_long};
        acts[gone] = leave_world;
        do_each(&cluster, acts);
        snprintf(named, sizeof named, "node %u was lost",
                 cluster.members[gone].id);
        for (size_t i = 0; i < 5; i++) {
            if (i == gone)
                continue;
            assert_int_equal(cluster.members[i].status, LS_ELOST);
            assert_has(cluster.members[i].text, named);
        }
        destroy_cluster(&cluster);
    }
}

TEST(the_others_go_on_without_the_lost)
{
    struct cluster cluster;
    const struct ls_barrier_options options = {.on_loss = LS_ON_LOSS_GO_ON};
    create_bare(&cluster, 5);
    for (size_t i = 0; i < 5; i++)
        create_named(&cluster.members[i], "gate", &options);
    do_all(&cluster, wait_long);
    check_all_ok(&cluster);
    const uint64_t view = cluster.members[0].infos[0].view;
    assert_int_equal(cluster.members[0].infos[0].members, 5);
    void (*acts[CLUSTER_MAX])(struct member *) = {
        wait_long, leave_world, wait_long, wait_long, wait_long};
    do_each(&cluster, acts);
    acts[1] = NULL;
    do_each(&cluster, acts); /* the first may still have counted it */
    const struct ls_barrier_epoch_info *first = &cluster.members[0].infos[0];
    for (size_t i = 0; i < 5; i++) {
        const struct ls_barrier_epoch_info *info = &cluster.members[i].infos[0];
        if (i == 1)
            continue;
        check_ok(&cluster.members[i]);
        assert_int_equal(info->members, 4);
        assert_int_equal(info->epoch, first->epoch);
        assert_int_equal(info->view, first->view);
        assert_true(info->view > view);
    }
    destroy_cluster(&cluster);
}

static void wait_for_three(struct member *member)
{
    if (member->index == 2)
        start_node(member);
    do
        wait_long(member);
    while (member->status == LS_OK && member->infos[0].members < 3);
}

TEST(who_joins_an_elastic_world_is_waited_for)
{
    struct cluster cluster = {
        .n = 3, .formed = 2, .topology = LS_TOPOLOGY_MESH};
    for (size_t i = 0; i < 3; i++)
        create_member(&cluster, i);
    void (*const two[CLUSTER_MAX])(struct member *) = {start_node, start_node,
                                                       NULL};
    do_each(&cluster, two);
    check_all_ok(&cluster);
    void (*const waits[CLUSTER_MAX])(struct member *) = {wait_long, wait_long,
                                                         NULL};
    do_each(&cluster, waits);
    check_all_ok(&cluster);
    assert_int_equal(cluster.members[0].infos[0].members, 2);
    do_all(&cluster, wait_for_three);
    check_all_ok(&cluster);
    const struct ls_barrier_epoch_info *first = &cluster.members[0].infos[0];
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(cluster.members[i].infos[0].epoch, first->epoch);
        assert_int_equal(cluster.members[i].infos[0].view, first->epoch);
    }
    destroy_cluster(&cluster);
}

/* Two wait for three, or for whoever is there, while the third comes. */
static void check_forming(const struct ls_barrier_options *options)
{
    struct cluster cluster = {
        .n = 3, .formed = 2, .topology = LS_TOPOLOGY_MESH};
    for (size_t i = 0; i < 3; i++) {
        create_node_only(&cluster, i, "learner", "");
        create_named(&cluster.members[i], "gate", options);
    }
    void (*const two[CLUSTER_MAX])(struct member *) = {start_node, start_node,
                                                       NULL};
    do_each(&cluster, two);
    check_all_ok(&cluster);
    do_all(&cluster, wait_for_three);
    check_all_ok(&cluster);
    destroy_cluster(&cluster);
}

TEST(nobody_fails_while_the_world_is_formed)
{
    for (int i = 0; i < 5; i++) {
        check_forming(&(struct ls_barrier_options){.expected = 3});
        check_forming(
            &(struct ls_barrier_options){.expected = 3, .group = "learner"});
        check_forming(&(struct ls_barrier_options){.group = "learner"});
        check_forming(&(struct ls_barrier_options){.expected = LS_BARRIER_ANY});
    }
}

TEST(below_what_is_expected_nobody_goes_on)
{
    struct cluster cluster;
    const struct ls_barrier_options options = {.on_loss = LS_ON_LOSS_GO_ON,
                                               .expected = 3};
    create_bare(&cluster, 3);
    for (size_t i = 0; i < 3; i++)
        create_named(&cluster.members[i], "gate", &options);
    do_all(&cluster, wait_long);
    check_all_ok(&cluster);
    void (*const acts[CLUSTER_MAX])(struct member *) = {wait_short, leave_world,
                                                        wait_short};
    do_each(&cluster, acts);
    for (size_t i = 0; i < 3; i += 2) {
        assert_true(cluster.members[i].status < 0);
        assert_has(cluster.members[i].text, "node 7 was lost");
    }
    destroy_cluster(&cluster);
}
