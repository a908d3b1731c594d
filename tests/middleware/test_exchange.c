/* Fields of a context, brought from the nodes of one role to those of another:
 * nodes in this process, over inproc. */
#include <assert.h>

#include "exchange_world.h"
#include "lockstep/log.h"
#include "test.h"

static const struct ls_exchange_options data_exchange = {
    .name = "data",
    .from = "collector",
    .to = "learner",
    .fields = "trajectories,trajectory_end_idx",
    .increments = "env_step",
};
static const struct ls_exchange_options model_exchange = {
    .name = "model",
    .from = "learner",
    .to = "collector",
    .fields = "policy,train_iter",
    .skip = 1,
};

static int wrong(const char *what, int64_t found, int64_t expected)
{
    return ls_error(LS_EHANDLER, "%s is %lld, not %lld", what, (long long)found,
                    (long long)expected);
}

/* In lock step ----------------------------------------------------------- */

/* 2 items in the first iteration, 4 in the second, 8 … */
static int collect_doubling(ls_step *step, void *self)
{
    (void)self;
    struct ls_online_context *context = ls_step_context(step);
    const int64_t n = INT64_C(1) << (context->total_step + 1);
    int status = LS_OK;
    for (int64_t i = 0; i < n && status == LS_OK; i++)
        status = ls_items_append(&context->trajectories, &i, sizeof i);
    context->env_step += n;
    if (context->train_iter != context->total_step &&
        !ls_task_finishing(ls_step_task(step)))
        return wrong("train_iter", context->train_iter, context->total_step);
    return status;
}

static int learn_doubling(ls_step *step, void *self)
{
    (void)self;
    struct ls_online_context *context = ls_step_context(step);
    const int64_t n = INT64_C(1) << (context->total_step + 1);
    context->train_iter++;
    if (context->trajectories.n != (size_t)n)
        return wrong("items", (int64_t)context->trajectories.n, n);
    return context->env_step == 2 * n - 2
               ? LS_OK
               : wrong("env_step", context->env_step, 2 * n - 2);
}

static void build_doubling(struct player *player)
{
    ls_task *task = player->task;
    ls_task_use(task, ls_mw_exchange(task, &model_exchange));
    if (strcmp(player->role, "collector") == 0)
        ls_task_use_fn(task, collect_doubling, NULL);
    ls_task_use(task, ls_mw_exchange(task, &data_exchange));
    if (strcmp(player->role, "learner") == 0)
        ls_task_use_fn(task, learn_doubling, NULL);
}

TEST(learner_sees_2_4_8_items_and_collector_its_updates)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_doubling, .iterations = 3},
        {.id = 1, .role = "collector", .build = build_doubling},
    };
    play(players, 2);
    assert_went_well(players, 2);
    assert_int_equal(players[0].ran, 3);
    assert_true(players[1].ran >= 3);
}

static int collect_four(ls_step *step, void *self)
{
    const uint32_t *id = self;
    struct ls_online_context *context = ls_step_context(step);
    int status = LS_OK;
    for (int i = 0; i < 4 && status == LS_OK; i++)
        status = ls_items_append(&context->trajectories, id, sizeof *id);
    if (status == LS_OK)
        status = ls_numbers_append(&context->trajectory_end_idx, 1);
    if (status == LS_OK)
        status = ls_numbers_append(&context->trajectory_end_idx, 3);
    context->env_step += *id;
    return status;
}

static int learn_from_two(ls_step *step, void *self)
{
    (void)self;
    static const int64_t ends[] = {1, 3, 5, 7};
    static const uint32_t ids[] = {3, 3, 3, 3, 9, 9, 9, 9};
    struct ls_online_context *context = ls_step_context(step);
    if (context->trajectories.n != 8)
        return wrong("items", (int64_t)context->trajectories.n, 8);
    for (size_t i = 0; i < 8; i++)
        if (memcmp(context->trajectories.items[i].data, &ids[i],
                   sizeof ids[i]) != 0)
            return wrong("item of another order", (int64_t)i, -1);
    if (context->trajectory_end_idx.n != 4 ||
        memcmp(context->trajectory_end_idx.values, ends, sizeof ends) != 0)
        return wrong("ends", (int64_t)context->trajectory_end_idx.n, 4);
    const int64_t env_step = 12 * (context->total_step + 1);
    return context->env_step == env_step
               ? LS_OK
               : wrong("env_step", context->env_step, env_step);
}

static void build_two(struct player *player)
{
    ls_task *task = player->task;
    ls_task_use(task, ls_mw_exchange(task, &data_exchange));
    if (strcmp(player->role, "collector") == 0) {
        ls_task_use(task, ls_mw_exchange(task, &model_exchange));
        ls_task_use_fn(task, collect_four, &player->id);
        return;
    }
    ls_task_use_fn(task, learn_from_two, NULL);
    ls_task_use(task, ls_mw_exchange(task, &model_exchange));
}

TEST(two_collectors_are_merged_the_same_whoever_is_first)
{
    struct player players[] = {
        {.id = 9, .role = "collector", .build = build_two},
        {.id = 5, .role = "learner", .build = build_two, .iterations = 50},
        {.id = 3, .role = "collector", .build = build_two},
    };
    play(players, 3);
    assert_went_well(players, 3);
    assert_int_equal(players[1].ran, 50);
}

/* Weights that come in chunks. */
enum { POLICY_BYTES = 20 * 1024 * 1024 };

static int train_big(ls_step *step, void *self)
{
    (void)self;
    struct ls_online_context *context = ls_step_context(step);
    context->policy = (struct ls_bytes){malloc(POLICY_BYTES), POLICY_BYTES};
    assert(context->policy.data != NULL);
    memset(context->policy.data, (int)++context->train_iter, POLICY_BYTES);
    return LS_OK;
}

static int use_big(ls_step *step, void *self)
{
    (void)self;
    struct ls_online_context *context = ls_step_context(step);
    const unsigned char *bytes = context->policy.data;
    if (context->total_step == 0 || ls_task_finishing(ls_step_task(step)))
        return LS_OK;
    if (context->policy.size != POLICY_BYTES)
        return wrong("policy", (int64_t)context->policy.size, POLICY_BYTES);
    return bytes[0] == context->total_step &&
                   bytes[POLICY_BYTES - 1] == context->total_step
               ? LS_OK
               : wrong("first byte", bytes[0], context->total_step);
}

static void build_big(struct player *player)
{
    ls_task *task = player->task;
    ls_task_use(task, ls_mw_exchange(task, &model_exchange));
    ls_task_use_fn(task, player->id == 0 ? train_big : use_big, NULL);
}

TEST(weights_of_many_chunks_arrive_whole)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_big, .iterations = 4},
        {.id = 1, .role = "collector", .build = build_big},
    };
    play(players, 2);
    assert_went_well(players, 2);
}

/* The newest ------------------------------------------------------------- */

enum { STALE = 3 };

static int check_age(ls_step *step, void *self)
{
    (void)self;
    const struct ls_online_context *context = ls_step_context(step);
    const int64_t age = context->total_step - (context->train_iter - 1);
    /* A run that finishes goes on with what there is. */
    return age <= STALE || ls_task_finishing(ls_step_task(step))
               ? LS_OK
               : wrong("age", age, STALE);
}

static int train(ls_step *step, void *self)
{
    (void)self;
    struct ls_online_context *context = ls_step_context(step);
    context->train_iter++;
    return LS_OK;
}

static void build_stale(struct player *player)
{
    ls_task *task = player->task;
    struct ls_exchange_options options = model_exchange;
    options.skip = 0;
    options.newest = true;
    options.every = STALE;
    options.stale = STALE;
    ls_task_use(task, ls_mw_exchange(task, &options));
    ls_task_use_fn(task, player->id == 0 ? train : check_age, NULL);
}

TEST(the_newest_is_never_older_than_allowed)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_stale, .iterations = 200},
        {.id = 1, .role = "collector", .build = build_stale},
        {.id = 2, .role = "collector", .build = build_stale},
    };
    play(players, 3);
    assert_went_well(players, 3);
}

static void build_newest(struct player *player)
{
    struct ls_exchange_options options = model_exchange;
    options.newest = true;
    ls_task_use(player->task, ls_mw_exchange(player->task, &options));
}

TEST(the_newest_of_nobody_is_not_waited_for)
{
    struct player players[] = {
        {.id = 1, .role = "collector", .build = build_newest, .iterations = 5}};
    play(players, 1);
    assert_went_well(players, 1);
    assert_int_equal(players[0].ran, 5);
}

/* Ends ------------------------------------------------------------------- */

static void build_data(struct player *player)
{
    ls_task_use(player->task, ls_mw_exchange(player->task, &data_exchange));
}

TEST(a_wait_ends_when_the_senders_have_finished)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_data},
        {.id = 1, .role = "collector", .build = build_data, .iterations = 2},
        {.id = 2, .role = "collector", .build = build_data, .iterations = 2},
    };
    play(players, 3);
    assert_went_well(players, 3);
    assert_true(players[0].ran <= 3);
}

static int finish_now(ls_step *step, void *self)
{
    (void)self;
    ls_task_finish(ls_step_task(step));
    return LS_OK;
}

/* The learner waits in an iteration in which its run finishes already. */
static void build_last_wait(struct player *player)
{
    struct ls_exchange_options options = data_exchange;
    options.timeout_ms = 500;
    if (strcmp(player->role, "learner") == 0)
        ls_task_use_fn(player->task, finish_now, NULL);
    ls_task_use(player->task, ls_mw_exchange(player->task, &options));
}

static void count_line(void *self, const char *line)
{
    int *n = self;
    *n += strstr(line, "the run ends without more") != NULL;
}

static int lines_of(struct player *players, size_t n_players)
{
    int n = 0;
    assert_ok(ls_log_setup("warn"));
    ls_log_redirect(count_line, &n);
    play(players, n_players);
    ls_log_redirect(NULL, NULL);
    assert_went_well(players, n_players);
    assert_int_equal(players[0].ran, 1);
    return n;
}

TEST(a_sender_that_has_ended_is_not_waited_for)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_last_wait},
        {.id = 1,
         .role = "collector",
         .build = build_last_wait,
         .ends_at_once = true,
         .stays = true},
    };
    assert_int_equal(lines_of(players, 2), 0);
}

TEST(a_run_that_finishes_does_not_fail_for_want_of_a_message)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_last_wait},
        {.id = 1,
         .role = "collector",
         .build = build_last_wait,
         .idle = true,
         .stays = true},
    };
    assert_int_equal(lines_of(players, 2), 1);
}

static int fail_in_the_second(ls_step *step, void *self)
{
    (void)self;
    const struct ls_online_context *context = ls_step_context(step);
    return context->total_step == 1 ? ls_error(LS_EIO, "as it should") : LS_OK;
}

static void build_failing(struct player *player)
{
    build_data(player);
    if (strcmp(player->role, "collector") == 0)
        ls_task_use_fn(player->task, fail_in_the_second, NULL);
}

TEST(a_sender_that_fails_is_named)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_failing},
        {.id = 7, .role = "collector", .build = build_failing},
    };
    play(players, 2);
    assert_failed(&players[1], LS_EIO, "as it should");
    assert_failed(&players[0], LS_ELOST, "node 7 (collector)");
    assert_failed(&players[0], LS_ELOST, "\"data\"");
    assert_int_equal(players[0].ran, 1);
}

TEST(a_learner_whose_collector_has_gone_does_not_wait)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_data},
        {.id = 7, .role = "collector", .build = build_data, .idle = true},
    };
    play(players, 2);
    assert_failed(&players[0], LS_ELOST, "no node that sends is left");
}

/* Waits as long as the run goes on, without any messages. */
static void build_silent(struct player *player)
{
    struct ls_exchange_options options = data_exchange;
    options.timeout_ms = 50;
    if (strcmp(player->role, "learner") == 0) {
        ls_task_use(player->task, ls_mw_exchange(player->task, &options));
        return;
    }
    options.name = "other";
    options.from = "learner";
    options.to = "collector";
    options.timeout_ms = 0;
    ls_task_use(player->task, ls_mw_exchange(player->task, &options));
}

TEST(a_wait_that_takes_too_long_names_who_has_not_sent)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_silent},
        {.id = 7, .role = "collector", .build = build_silent},
        {.id = 8, .role = "collector", .build = build_silent},
    };
    play(players, 3);
    assert_failed(&players[0], LS_ETIMEDOUT,
                  "node 7 (collector), node 8 (collector)");
    assert_failed(&players[1], LS_ELOST, "node 0 (learner)");
}

TEST(also_who_sends_no_more_since_its_own_run_has_ended)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_silent},
        {.id = 7,
         .role = "collector",
         .build = build_data,
         .ends_at_once = true,
         .stays = true},
    };
    play(players, 2);
    assert_failed(&players[0], LS_ETIMEDOUT,
                  "node 7 (collector)"); /* by then or not */
}

TEST(a_role_that_is_not_in_the_world_is_named)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_silent}};
    play(players, 1);
    assert_failed(&players[0], LS_ETIMEDOUT, "of role collector");
}

static struct player *to_cancel;

static int cancel_other(ls_step *step, void *self)
{
    (void)step;
    (void)self;
    ls_task_cancel(to_cancel->task, LS_ECANCELED, "enough");
    return LS_OK;
}

static void build_cancelled(struct player *player)
{
    if (strcmp(player->role, "collector") == 0)
        ls_task_use_fn(player->task, cancel_other, NULL);
    else
        build_data(player);
}

TEST(a_cancelled_run_ends_the_wait)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_cancelled},
        {.id = 1,
         .role = "collector",
         .build = build_cancelled,
         .iterations = 1},
    };
    to_cancel = &players[0];
    play(players, 2);
    assert_failed(&players[0], LS_ECANCELED, "enough");
}

static void build_finishing(struct player *player)
{
    if (strcmp(player->role, "evaluator") == 0)
        ls_task_use_fn(player->task, train, NULL);
    else
        build_data(player);
}

TEST(another_nodes_finish_ends_a_wait_for_nobody)
{
    struct player players[] = {
        {.id = 0, .role = "learner", .build = build_finishing},
        {.id = 1,
         .role = "evaluator",
         .build = build_finishing,
         .iterations = 1},
    };
    play(players, 2);
    assert_went_well(players, 2);
}
