/* The barrier among real nodes, in one process. */
#include "barrier_nodes.h"
#include "test.h"

static void wait_often(struct member *member)
{
    for (size_t i = 0; i < EPOCHS; i++) {
        const uint32_t flags = i % CLUSTER_MAX == member->index ? 0x80u : 0;
        if (note(member, ls_barrier_wait(member->barrier, flags, LONG_MS,
                                         &member->infos[i])) != LS_OK)
            return;
    }
}

/* One clock for all, so that it can be judged by time. */
static void check_epochs(const struct cluster *cluster)
{
    for (size_t i = 0; i < EPOCHS; i++) {
        int64_t last_entry = INT64_MIN;
        int64_t first_exit = INT64_MAX;
        for (size_t k = 0; k < cluster->n; k++) {
            const struct ls_barrier_epoch_info *info =
                &cluster->members[k].infos[i];
            assert_int_equal(info->epoch, i);
            assert_int_equal(info->flags,
                             i % CLUSTER_MAX < cluster->n ? 0x80u : 0);
            if (info->entered_at > last_entry)
                last_entry = info->entered_at;
            if (info->left_at < first_exit)
                first_exit = info->left_at;
        }
        assert_true(last_entry <= first_exit);
    }
}

static void run_epochs(size_t n, enum ls_topology topology)
{
    struct cluster cluster;
    create_cluster(&cluster, n, topology);
    do_all(&cluster, wait_often);
    check_all_ok(&cluster);
    check_epochs(&cluster);
    destroy_cluster(&cluster);
}

TEST(nobody_leaves_before_all_have_entered_mesh)
{
    run_epochs(2, LS_TOPOLOGY_MESH);
    run_epochs(5, LS_TOPOLOGY_MESH);
    run_epochs(8, LS_TOPOLOGY_MESH);
}

TEST(nobody_leaves_before_all_have_entered_star)
{
    run_epochs(2, LS_TOPOLOGY_STAR);
    run_epochs(5, LS_TOPOLOGY_STAR);
    run_epochs(8, LS_TOPOLOGY_STAR);
}

TEST(a_node_alone_does_not_wait)
{
    run_epochs(1, LS_TOPOLOGY_MESH);
}

TEST(an_epoch_takes_four_messages_a_member)
{
    /* Over connections: when lines come to be, what goes through them may
     * overtake, and is answered once more. */
    struct cluster cluster = {.n = 5, .far = true};
    start_cluster(&cluster);
    do_all(&cluster, wait_often);
    check_all_ok(&cluster);
    struct ls_barrier_stats sum = {0};
    for (size_t i = 0; i < cluster.n; i++) {
        struct ls_barrier_stats stats;
        ls_barrier_stats(cluster.members[i].barrier, &stats);
        assert_int_equal(stats.epochs, EPOCHS);
        assert_int_equal(stats.failed, 0);
        assert_true(stats.waited_ns > 0);
        sum.sent += stats.sent;
        sum.repeated += stats.repeated;
    }
    /* A repeat and its answer, when this machine is slow. */
    assert_true(sum.sent <= EPOCHS * 4u * 4u + 2 * sum.repeated);
    destroy_cluster(&cluster);
}

/* False: one of the two came to this epoch when the other had given up. */
static bool name_the_third(const struct cluster *cluster, int epoch)
{
    static const char missing[] =
        "missing: node 4294967295 (last in epoch 2, heard ";
    char in_epoch[32];
    bool both = true;
    snprintf(in_epoch, sizeof in_epoch, "epoch %d: ", epoch);
    for (size_t i = 0; i < 2; i++) {
        const struct member *member = &cluster->members[i];
        assert_int_equal(member->status, LS_ETIMEDOUT);
        assert_has(member->text, in_epoch);
        both = both && strstr(member->text, missing) != NULL;
    }
    return both;
}

TEST(a_timeout_names_who_is_missing)
{
    struct cluster cluster;
    create_cluster(&cluster, 3, LS_TOPOLOGY_MESH);
    for (int i = 0; i < 3; i++) {
        do_all(&cluster, wait_long);
        check_all_ok(&cluster);
    }
    void (*const acts[])(struct member *) = {wait_short, wait_short, NULL};
    int epoch = 3;
    do
        do_each(&cluster, acts);
    while (!name_the_third(&cluster, epoch++));
    destroy_cluster(&cluster);
}

TEST(a_timeout_names_a_missing_leader)
{
    struct cluster cluster;
    create_cluster(&cluster, 3, LS_TOPOLOGY_MESH);
    void (*const acts[])(struct member *) = {wait_short, NULL, NULL};
    do_each(&cluster, acts);
    assert_int_equal(cluster.members[0].status, LS_ETIMEDOUT);
    assert_has(cluster.members[0].text, "node 7 (entered none");
    assert_has(cluster.members[0].text, "node 4294967295 (entered none");
    destroy_cluster(&cluster);
}

TEST(the_next_epoch_works_after_a_failed_one)
{
    struct cluster cluster;
    create_cluster(&cluster, 3, LS_TOPOLOGY_MESH);
    void (*const early[])(struct member *) = {wait_short, wait_short, NULL};
    void (*const late[])(struct member *) = {NULL, NULL, wait_long};
    do_each(&cluster, early);
    do_each(&cluster, late);
    assert_int_equal(cluster.members[2].status, LS_ETIMEDOUT);
    assert_has(cluster.members[2].text,
               "gave up with LS_ETIMEDOUT: the deadline passed");
    do_all(&cluster, wait_long);
    check_all_ok(&cluster);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(cluster.members[i].infos[0].epoch, 1);
    destroy_cluster(&cluster);
}

static void stop_and_destroy(struct member *member)
{
    destroy_member(member);
}

TEST(a_lost_member_is_named)
{
    for (size_t gone = 0; gone < 3; gone++) {
        struct cluster cluster;
        char named[32];
        create_cluster(&cluster, 3, LS_TOPOLOGY_MESH);
        void (*acts[])(struct member *) = {wait_long, wait_long, wait_long};
        acts[gone] = stop_and_destroy;
        do_each(&cluster, acts);
        snprintf(named, sizeof named, "node %u was lost",
                 cluster.members[gone].id);
        for (size_t i = 0; i < 3; i++) {
            const struct member *member = &cluster.members[i];
            if (i == gone)
                continue;
            if (member->status == LS_EMISMATCH)
                continue; /* it had gone before this one entered */
            assert_true(member->status == LS_ELOST ||
                        member->status == LS_EABORTED);
            if (member->status == LS_ELOST)
                assert_has(member->text, named);
        }
        destroy_cluster(&cluster);
    }
}

static int abort_status = LS_ECANCELED;

static void abort_it(struct member *member)
{
    ls_barrier_abort(member->barrier, abort_status);
    wait_long(member);
}

TEST(an_abort_ends_the_epoch_for_all)
{
    struct cluster cluster;
    create_cluster(&cluster, 3, LS_TOPOLOGY_MESH);
    void (*const acts[])(struct member *) = {wait_long, wait_long, abort_it};
    do_each(&cluster, acts);
    assert_int_equal(cluster.members[2].status, LS_ECANCELED);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(cluster.members[i].status, LS_EABORTED);
        assert_has(cluster.members[i].text,
                   "node 4294967295 gave up with LS_ECANCELED");
        assert_int_equal(cluster.members[i].cause, LS_ECANCELED);
    }
    do_all(&cluster, wait_long);
    check_all_ok(&cluster);
    destroy_cluster(&cluster);
}

TEST(an_abort_with_what_is_true_of_all_is_theirs_too)
{
    static const int statuses[] = {LS_ETIMEDOUT, LS_ELOST, LS_EMISMATCH};
    struct cluster cluster;
    create_cluster(&cluster, 3, LS_TOPOLOGY_MESH);
    void (*const acts[])(struct member *) = {wait_long, wait_long, abort_it};
    for (size_t i = 0; i < 3; i++) {
        char named[64];
        abort_status = statuses[i];
        do_each(&cluster, acts);
        (void)snprintf(named, sizeof named, "node 4294967295 gave up with %s",
                       ls_status_name(statuses[i]));
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(cluster.members[k].status, statuses[i]);
        for (size_t k = 0; k < 2; k++) {
            assert_has(cluster.members[k].text, named);
            assert_int_equal(cluster.members[k].cause, LS_OK);
        }
    }
    abort_status = LS_ECANCELED;
    destroy_cluster(&cluster);
}

/* The waits of 0 and 1 have begun or will find the epoch ended: both do. */
static void abort_first(struct member *member)
{
    ls_barrier_abort(member->cluster->members[0].barrier, LS_ECANCELED);
}

TEST(an_abort_wakes_the_waiter)
{
    struct cluster cluster;
    create_cluster(&cluster, 3, LS_TOPOLOGY_MESH);
    void (*const acts[])(struct member *) = {wait_long, wait_long, abort_first};
    do_each(&cluster, acts);
    assert_int_equal(cluster.members[0].status, LS_ECANCELED);
    assert_int_equal(cluster.members[1].status, LS_EABORTED);
    destroy_cluster(&cluster);
}

static void abort_and_discard(struct member *member)
{
    ls_barrier_abort(member->barrier, LS_ECANCELED);
    ls_barrier_discard(member->barrier);
    wait_long(member);
}

static void wait_twice(struct member *member)
{
    wait_long(member);
    member->infos[1].epoch = member->status == LS_EABORTED; /* the first */
    wait_long(member);
}

TEST(an_abort_that_is_discarded_has_ended_its_epoch_all_the_same)
{
    struct cluster cluster;
    create_cluster(&cluster, 3, LS_TOPOLOGY_MESH);
    void (*const acts[])(struct member *) = {wait_twice, wait_twice,
                                             abort_and_discard};
    do_each(&cluster, acts);
    check_all_ok(&cluster);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(cluster.members[i].infos[1].epoch, 1);
    ls_barrier_discard(cluster.members[0].barrier); /* nothing is there */
    do_all(&cluster, wait_long);
    check_all_ok(&cluster);
    destroy_cluster(&cluster);
}

static void stop_first(struct member *member)
{
    ls_node_stop(member->cluster->members[0].node, LS_OK);
}

TEST(a_node_that_stops_ends_its_wait)
{
    struct cluster cluster;
    create_cluster(&cluster, 3, LS_TOPOLOGY_MESH);
    void (*const acts[])(struct member *) = {wait_long, stop_first, NULL};
    do_each(&cluster, acts);
    assert_int_equal(cluster.members[0].status, LS_ECLOSED);
    wait_long(&cluster.members[0]);
    assert_int_equal(cluster.members[0].status, LS_ECLOSED);
    destroy_cluster(&cluster);
}

TEST(a_world_of_another_size_is_refused)
{
    struct cluster cluster;
    create_cluster(&cluster, 2, LS_TOPOLOGY_MESH);
    ls_barrier *barrier;
    const struct ls_barrier_options options = {.name = "more", .expected = 3};
    assert_ok(ls_barrier_create(&barrier, cluster.members[0].node, &options));
    assert_fails(ls_barrier_wait(barrier, 0, LONG_MS, NULL), LS_EMISMATCH);
    assert_has(ls_error_text(), "sees 2 members, not 3");
    ls_barrier_destroy(&barrier);
    destroy_cluster(&cluster);
}

static void restart(struct cluster *cluster, size_t index)
{
    destroy_member(&cluster->members[index]);
    create_member(cluster, index);
}

static void wait_until_ok(struct member *member)
{
    do
        wait_long(member);
    while (member->status != LS_OK && member->status != LS_ECLOSED);
}

static void start_and_wait(struct member *member)
{
    start_node(member);
    if (member->status == LS_OK)
        wait_until_ok(member);
}

TEST(a_restarted_node_goes_on_with_the_others)
{
    struct cluster cluster;
    create_cluster(&cluster, 3, LS_TOPOLOGY_MESH);
    do_all(&cluster, wait_long);
    do_all(&cluster, wait_long);
    restart(&cluster, 2);
    void (*const acts[])(struct member *) = {wait_until_ok, wait_until_ok,
                                             start_and_wait};
    do_each(&cluster, acts);
    check_all_ok(&cluster);
    const uint64_t epoch = cluster.members[0].infos[0].epoch;
    assert_true(epoch >= 2);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(cluster.members[i].infos[0].epoch, epoch);
    do_all(&cluster, wait_long);
    check_all_ok(&cluster);
    destroy_cluster(&cluster);
}

/* The leader is asked once the other waits, and not before. */
TEST(one_thread_waits_at_a_time)
{
    struct cluster cluster;
    struct ls_barrier_stats stats;
    struct ls_barrier_epoch_info info = {.epoch = 77};
    create_cluster(&cluster, 2, LS_TOPOLOGY_MESH);
    struct member *asks = &cluster.members[0];
    ls_barrier *kept = asks->barrier;
    asks->act = wait_long;
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &asks->thread, "asks",
                              run_member, asks));
    do
        ls_barrier_stats(kept, &stats);
    while (stats.sent == 0);
    assert_fails(ls_barrier_wait(kept, 0, LONG_MS, &info), LS_ESTATE);
    assert_int_equal(info.epoch, 77);
    assert_fails(ls_barrier_destroy(&asks->barrier), LS_ESTATE);
    assert_ptr_equal(asks->barrier, kept);
    wait_long(&cluster.members[1]);
    assert_ok(ls_thread_join(&asks->thread, LS_FOREVER));
    check_all_ok(&cluster);
    assert_int_equal(asks->infos[0].epoch, 0);
    destroy_cluster(&cluster);
}

TEST(an_abort_counts_once)
{
    struct cluster cluster;
    struct ls_barrier_epoch_info info = {.epoch = 77};
    uint32_t id = 0;
    create_cluster(&cluster, 1, LS_TOPOLOGY_MESH);
    ls_barrier *barrier = cluster.members[0].barrier;
    assert_int_equal(ls_barrier_members(barrier, NULL, 0), 0);
    ls_barrier_abort(barrier, LS_EHANDLER);
    ls_barrier_abort(barrier, LS_EIO);
    assert_fails(ls_barrier_wait(barrier, 0, LONG_MS, &info), LS_EHANDLER);
    assert_int_equal(info.epoch, 77);
    ls_barrier_abort(barrier, LS_OK);
    assert_fails(ls_barrier_wait(barrier, 0, LONG_MS, &info), LS_ECANCELED);
    assert_int_equal(ls_barrier_members(barrier, &id, 1), 0);
    assert_ok(ls_barrier_wait(barrier, 5, LONG_MS, &info));
    assert_int_equal(info.epoch, 2);
    assert_int_equal(info.flags, 5);
    assert_int_equal(ls_barrier_members(barrier, NULL, 0), 1);
    assert_int_equal(ls_barrier_members(barrier, &id, 1), 1);
    assert_int_equal(id, cluster.members[0].id);
    destroy_cluster(&cluster);
}

TEST(ids_name_each_member_once_and_this_node)
{
    const uint32_t id = cluster_ids[0];
    const uint32_t twice[] = {7, id, 7}, others[] = {7, 8};
    struct ls_barrier_options options = {
        .name = "ids", .ids = twice, .n_ids = 3};
    struct cluster cluster = {.n = 1};
    ls_barrier *barrier;
    create_node_only(&cluster, 0, "learner", "");
    ls_node *node = cluster.members[0].node;
    assert_ok(ls_node_start(node));
    assert_fails(ls_barrier_create(&barrier, node, &options), LS_EINVAL);
    assert_error_has("7 is twice");
    options.ids = others;
    options.n_ids = 2;
    assert_fails(ls_barrier_create(&barrier, node, &options), LS_EINVAL);
    options.n_ids = 0;
    assert_fails(ls_barrier_create(&barrier, node, &options), LS_EINVAL);
    options.ids = &id;
    options.n_ids = 1;
    options.group = "learner";
    assert_fails(ls_barrier_create(&barrier, node, &options), LS_EINVAL);
    assert_null(barrier);
    options.group = NULL;
    assert_ok(ls_barrier_create(&barrier, node, &options));
    assert_ok(ls_barrier_wait(barrier, 0, LONG_MS, NULL));
    assert_ok(ls_barrier_destroy(&barrier));
    assert_ok(ls_node_stop(node, LS_OK));
    assert_fails(ls_barrier_create(&barrier, node, &options), LS_ECLOSED);
    assert_null(barrier);
    destroy_cluster(&cluster);
}

TEST(misuse_is_refused)
{
    struct ls_node_options node_options;
    ls_node *node;
    ls_barrier *barrier;
    ls_barrier *other = NULL;
    ls_node_options_init(&node_options);
    node_options.bind = "inproc://barrier-misuse";
    assert_ok(ls_node_create(&node, &node_options));
    char name[LS_EVENT_MAX + 1];
    memset(name, 'n', LS_EVENT_MAX);
    name[LS_EVENT_MAX] = '\0';
    struct ls_barrier_options options = {.name = name};
    assert_fails(ls_barrier_create(&other, node, &options), LS_EINVAL);
    name[118] = '\0'; /* one more than the most */
    assert_fails(ls_barrier_create(&other, node, &options), LS_EINVAL);
    name[117] = '\0';
    assert_ok(ls_barrier_create(&other, node, &options));
    assert_ok(ls_barrier_destroy(&other));
    options.name = "";
    assert_fails(ls_barrier_create(&other, node, &options), LS_EINVAL);
    options.name = "no blanks";
    assert_fails(ls_barrier_create(&other, node, &options), LS_EINVAL);
    options = (struct ls_barrier_options){.timeout_ms = -1};
    assert_fails(ls_barrier_create(&other, node, &options), LS_EINVAL);
    options = (struct ls_barrier_options){.grace_ms = -1};
    assert_fails(ls_barrier_create(&other, node, &options), LS_EINVAL);
    assert_ok(ls_barrier_create(&barrier, node, NULL));
    assert_fails(ls_barrier_create(&other, node, NULL), LS_EEXIST);
    assert_null(other);
    assert_fails(ls_barrier_wait(barrier, 0, 0, NULL), LS_ESTATE);
    assert_has(ls_error_text(), "start the node");
    ls_barrier_destroy(&barrier);
    assert_null(barrier);
    ls_barrier_destroy(&barrier);
    ls_barrier_destroy(NULL);
    ls_node_destroy(&node);
}
