/* The barrier as a step of tasks on real nodes, in one process. */
#include <stdatomic.h>

#include "group/barrier_nodes.h"
#include "test.h"

enum { N = 3, TIMEOUT_MS = 20000 };

/* What a node's task is to do, and what it did. */
struct player {
    struct member *member; /* its node */
    ls_task *task;         /* own */
    uint64_t n_iterations;
    uint64_t finish_at; /* iteration in which its step finishes the run */
    uint64_t fail_at;   /* in which its step fails */
    uint64_t cancel_at; /* in which its step cancels the run */
    bool fails_early;   /* it is the step before the barrier that fails */
    uint64_t seen;      /* iterations that its step began */
    atomic_uint_fast64_t done;
    atomic_bool ahead; /* another was not done with the last iteration */
    uint64_t n_left;   /* epochs that the barrier told it of */
    struct ls_barrier_epoch_info left; /* the last one */
    uint32_t adds;                     /* to its flags, when seen is 2 */
    uint64_t heard; /* waits in which it got flags of that kind */
};

static struct cluster cluster;
static struct player players[N];

#define NEVER UINT64_MAX

static int early(ls_step *step, void *self)
{
    struct player *player = self;
    (void)step;
    if (player->fails_early && player->seen == player->fail_at)
        return ls_error(LS_EHANDLER, "early");
    return LS_OK;
}

/* Stands between the two waits. */
static int work(ls_step *step, void *self)
{
    struct player *player = self;
    const uint64_t nth = player->seen++;
    for (size_t i = 0; i < N; i++) {
        if (atomic_load(&players[i].done) < nth)
            atomic_store(&player->ahead, true);
    }
    if (nth == player->finish_at)
        ls_task_finish(ls_step_task(step));
    if (nth == player->fail_at)
        return ls_error(LS_EHANDLER, "work");
    if (nth == player->cancel_at)
        ls_task_cancel(ls_step_task(step), LS_ECANCELED, "enough");
    atomic_fetch_add(&player->done, 1);
    return LS_OK;
}

static void on_left(void *self, const struct ls_barrier_epoch_info *info)
{
    struct player *player = self;
    assert_true(player->n_left == 0 || info->epoch > player->left.epoch);
    assert_true(info->left_at >= info->entered_at);
    if (info->flags >> 4 != 0) {
        assert_int_equal(info->flags >> 4, 1 << 4 | 1 << 5 | 1 << 6);
        assert_int_equal(player->seen, 2);
        player->heard++;
    }
    player->left = *info;
    player->n_left++;
}

static uint32_t add_flags(void *self)
{
    const struct player *player = self;
    return player->seen == 2 ? player->adds : 0;
}

static void set_up(uint64_t n_iterations)
{
    memset(&cluster, 0, sizeof cluster);
    cluster.n = N;
    for (size_t i = 0; i < N; i++) {
        create_member(&cluster, i);
        ls_barrier_destroy(&cluster.members[i].barrier);
        players[i] = (struct player){.member = &cluster.members[i],
                                     .n_iterations = n_iterations,
                                     .finish_at = NEVER,
                                     .fail_at = NEVER,
                                     .cancel_at = NEVER};
        struct player *player = &players[i];
        const struct ls_task_options options = {.node =
                                                    cluster.members[i].node};
        assert_ok(ls_task_create(&player->task, &options));
        ls_task_use_fn(player->task, early, player);
        const struct ls_barrier_options told = {.timeout_ms = TIMEOUT_MS,
                                                .left = on_left,
                                                .flags = add_flags,
                                                .self = player};
        ls_task_use(player->task, ls_mw_barrier(player->task, &told));
        ls_task_use_fn(player->task, work, player);
    }
    do_all(&cluster, start_node);
    check_all_ok(&cluster);
}

static void run_task(struct member *member)
{
    struct player *player = &players[member->index];
    note(member, ls_task_run(player->task, player->n_iterations));
}

static void tear_down(void)
{
    for (size_t i = 0; i < N; i++) {
        assert_false(atomic_load(&players[i].ahead));
        ls_node_stop(cluster.members[i].node, LS_OK);
        ls_task_destroy(&players[i].task);
    }
    destroy_cluster(&cluster);
}

static uint64_t iterations(size_t player)
{
    return ls_task_iterations(players[player].task);
}

TEST(nobody_begins_an_iteration_before_all_ended_the_last)
{
    set_up(50);
    do_all(&cluster, run_task);
    check_all_ok(&cluster);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(iterations(i), 50);
        assert_true(players[i].n_left >= 100);
        assert_int_equal(players[i].left.members, N);
    }
    tear_down();
}

TEST(one_that_finishes_ends_all_in_the_same_iteration)
{
    set_up(NEVER);
    players[1].finish_at = 5;
    do_all(&cluster, run_task);
    check_all_ok(&cluster);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(iterations(i), 6);
    tear_down();
}

TEST(what_some_add_to_their_flags_reaches_all_at_every_wait)
{
    set_up(NEVER);
    players[0].finish_at = 3;
    for (size_t i = 0; i < N; i++)
        players[i].adds = (256u << i) | 15u; /* the last are not theirs */
    do_all(&cluster, run_task);
    check_all_ok(&cluster);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(players[i].heard, 2); /* at an end, and a start */
        assert_int_equal(iterations(i), 4);
    }
    tear_down();
}

TEST(one_with_fewer_iterations_leaves_nobody_behind)
{
    set_up(NEVER);
    players[2].n_iterations = 3;
    do_all(&cluster, run_task);
    check_all_ok(&cluster);
    assert_int_equal(iterations(2), 3);
    for (size_t i = 0; i < 2; i++)
        assert_true(iterations(i) == 3 || iterations(i) == 4);
    tear_down();
}

/* The one fails with `status`; the others hear of it, and of who it was. */
static void check_failure(size_t one, int status)
{
    char named[40];
    snprintf(named, sizeof named, "node %u gave up with %s",
             cluster.members[one].id, ls_status_name(status));
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(cluster.members[i].status,
                         i == one ? status : LS_EABORTED);
        if (i != one)
            assert_has(cluster.members[i].text, named);
    }
}

/* After a failed run, all can run again. */
static void check_next_run(void)
{
    const uint64_t before[N] = {iterations(0), iterations(1), iterations(2)};
    for (size_t i = 0; i < N; i++) {
        players[i].n_iterations = 4;
        players[i].fail_at = NEVER;
        players[i].cancel_at = NEVER;
        players[i].seen = 0;
        atomic_store(&players[i].done, 0);
    }
    do_all(&cluster, run_task);
    check_all_ok(&cluster);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(iterations(i), before[i] + 4);
}

TEST(a_step_that_fails_ends_the_run_for_all)
{
    for (size_t one = 0; one < N; one++) {
        set_up(NEVER);
        players[one].fail_at = 3;
        do_all(&cluster, run_task);
        check_failure(one, LS_EHANDLER);
        check_next_run();
        tear_down();
    }
}

TEST(a_step_that_fails_before_the_barrier_does_too)
{
    for (size_t one = 0; one < N; one++) {
        set_up(NEVER);
        players[one].fail_at = 3;
        players[one].fails_early = true;
        do_all(&cluster, run_task);
        check_failure(one, LS_EHANDLER);
        check_next_run();
        tear_down();
    }
}

TEST(a_cancel_ends_the_run_for_all)
{
    for (size_t one = 0; one < N; one++) {
        set_up(NEVER);
        players[one].cancel_at = 3;
        do_all(&cluster, run_task);
        check_failure(one, LS_ECANCELED);
        check_next_run();
        tear_down();
    }
}

/* Node 2 does not come; node 1 ends the wait of node 0, begun or not. */
static void cancel_first(struct member *member)
{
    (void)member;
    ls_task_cancel(players[0].task, LS_ECANCELED, "enough");
}

TEST(a_cancel_wakes_the_wait)
{
    set_up(NEVER);
    void (*const acts[])(struct member *) = {run_task, cancel_first, NULL};
    do_each(&cluster, acts);
    assert_int_equal(cluster.members[0].status, LS_ECANCELED);
    assert_int_equal(iterations(0), 0);
    tear_down();
}

/* The round that all are in; it is the same for all. */
static uint64_t common_round(void)
{
    const uint64_t round = ls_task_round(players[0].task);
    for (size_t i = 1; i < N; i++)
        assert_true(ls_task_round(players[i].task) == round);
    return round;
}

TEST(each_run_is_a_round_that_all_know_alike)
{
    set_up(NEVER);
    assert_int_equal(ls_task_round(players[0].task), 0);
    players[1].fail_at = 3;
    do_all(&cluster, run_task);
    const uint64_t first = common_round();
    assert_true(first > 0);
    check_next_run();
    assert_true(common_round() > first);
    tear_down();
}

/* Two nodes, of which one runs by itself until the other has come. */
struct pair {
    ls_node *nodes[2]; /* own */
    ls_task *tasks[2]; /* own */
    int status[2];
    uint64_t rounds[2]; /* in the last iteration */
    atomic_uint_fast64_t seen[2];
};

static struct pair pair;

static int note_round(ls_step *step, void *self)
{
    const size_t i = self == &pair.seen[1];
    pair.rounds[i] = ls_task_round(ls_step_task(step));
    if (atomic_fetch_add(&pair.seen[i], 1) + 1 == 5 && i == 1)
        ls_task_finish_here(ls_step_task(step));
    return LS_OK;
}

static void make_one_of_pair(size_t i)
{
    static const char *const endpoints[] = {"inproc://mw-barrier-0",
                                            "inproc://mw-barrier-1"};
    const struct ls_barrier_options any = {.expected = LS_BARRIER_ANY,
                                           .timeout_ms = TIMEOUT_MS};
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.id = (uint32_t)i;
    options.bind = endpoints[i];
    options.attach = endpoints;
    options.n_attach = i;
    options.world_size = (uint32_t)i + 1;
    assert_ok(ls_node_create(&pair.nodes[i], &options));
    assert_ok(ls_task_create(&pair.tasks[i],
                             &(struct ls_task_options){.node = pair.nodes[i]}));
    ls_task_use(pair.tasks[i], ls_mw_barrier(pair.tasks[i], &any));
    ls_task_use_fn(pair.tasks[i], note_round, &pair.seen[i]);
    assert_ok(ls_node_start(pair.nodes[i]));
}

static void run_first_of_pair(void *self)
{
    (void)self;
    pair.status[0] = ls_task_run(pair.tasks[0], NEVER);
}

TEST(one_that_joins_a_run_is_brought_into_step)
{
    ls_thread *thread;
    memset(&pair, 0, sizeof pair);
    make_one_of_pair(0);
    assert_ok(ls_thread_spawn(ls_runtime_threads(), &thread, "first",
                              run_first_of_pair, NULL));
    make_one_of_pair(1);
    pair.status[1] = ls_task_run(pair.tasks[1], NEVER);
    assert_ok(ls_thread_join(&thread, LS_FOREVER));
    assert_int_equal(pair.status[0], LS_OK);
    assert_int_equal(pair.status[1], LS_OK);
    assert_int_equal(atomic_load(&pair.seen[1]), 5);
    assert_true(pair.rounds[0] > 0);
    assert_true(pair.rounds[0] == pair.rounds[1]);
    for (size_t i = 0; i < 2; i++)
        ls_node_stop(pair.nodes[i], LS_OK);
    for (size_t i = 0; i < 2; i++) {
        ls_task_destroy(&pair.tasks[i]);
        ls_node_destroy(&pair.nodes[i]);
    }
}

TEST(without_a_world_it_is_void)
{
    const struct ls_task_options options = {.node = NULL};
    ls_task *task;
    assert_ok(ls_task_create(&task, &options));
    const struct ls_middleware made = ls_mw_barrier(task, NULL);
    assert_null(made.fn);
    assert_int_equal(made.status, LS_OK);
    ls_task_destroy(&task);
}

TEST(what_is_wrong_with_its_options_fails_the_task)
{
    struct ls_node_options node_options;
    ls_node_options_init(&node_options);
    node_options.bind = "inproc://mw-barrier-options";
    ls_node *node;
    assert_ok(ls_node_create(&node, &node_options));
    const struct ls_task_options options = {.node = node};
    ls_task *task;
    assert_ok(ls_task_create(&task, &options));
    const struct ls_barrier_options wrong = {.name = "no blanks"};
    assert_fails(ls_task_use(task, ls_mw_barrier(task, &wrong)), LS_EINVAL);
    assert_has(ls_error_text(), "no blanks");
    const struct ls_barrier_options other = {.group = "learner"};
    const struct ls_middleware made = ls_mw_barrier(task, &other);
    assert_null(made.fn); /* this node is not in it */
    assert_int_equal(made.status, LS_OK);
    ls_task_destroy(&task);
    ls_node_destroy(&node);
}
