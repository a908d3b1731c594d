/* player.h and teacher.h: what the workers of both kinds of job do with a
 * plugin's environments and policy. */
#include "player.h"
#include "teacher.h"
#include "test.h"

#include <math.h>
#include <string.h>

/* An environment that counts its steps; an episode has five, each worth 1. The
 * policy's weights are one number, which learning raises by the rewards. */
struct counting {
    int64_t step;
};

static int env_init(void *env, ls_config_section *config, uint64_t seed)
{
    (void)env;
    (void)config;
    (void)seed;
    return LS_OK;
}

static void nothing(void *state)
{
    (void)state;
}

static void env_spec(const void *env, struct ls_env_spec *out)
{
    (void)env;
    *out = (struct ls_env_spec){.n_choices = 2, .max_steps = 5};
}

static int env_reset(void *env, void *observation)
{
    struct counting *counting = env;
    counting->step = 0;
    *(float *)observation = 0.0f;
    return LS_OK;
}

static int env_step(void *env, const void *action, void *observation,
                    float *reward, bool *terminated, bool *truncated)
{
    struct counting *counting = env;
    (void)action;
    counting->step++;
    *(float *)observation = (float)counting->step;
    *reward = 1.0f;
    *terminated = counting->step == 5;
    *truncated = false;
    return LS_OK;
}

static int policy_init(void *policy, ls_config_section *config,
                       const struct ls_env_spec *spec, uint64_t seed)
{
    (void)config;
    (void)spec;
    (void)seed;
    *(int64_t *)policy = 1000;
    return LS_OK;
}

static int act(void *policy, const struct ls_act *rows)
{
    float *actions = rows->actions;
    (void)policy;
    for (size_t i = 0; i < rows->n; i++)
        actions[i] = rows->explore ? 1.0f : 0.0f;
    return LS_OK;
}

static float td_error = -7.0f;

static int learn(void *policy, const struct ls_learn_batch *batch,
                 struct ls_learn_info *info)
{
    const struct ls_trajectory *first = &batch->trajectories[0];
    for (size_t i = 0; i < batch->n; i++)
        *(int64_t *)policy += (int64_t)batch->trajectories[i].n;
    info->n = 2;
    info->items[0].name = "loss/policy";
    info->items[0].value = (double)batch->n;
    info->items[1].name = "..";
    info->items[1].value = (double)((const float *)first->observations)[0];
    /* Of the second sample alone, and not of all its steps. */
    assert_true(isnan(info->td_errors[first->n]));
    info->td_errors[first->n] = td_error;
    return LS_OK;
}

static int save(const void *policy, ls_writer *out)
{
    ls_write_int(out, *(const int64_t *)policy);
    return LS_OK;
}

static int load(void *policy, const ls_value *in)
{
    return ls_value_int(in, policy);
}

static const struct ls_env_ops env_ops = {.state_bytes =
                                              sizeof(struct counting),
                                          .init = env_init,
                                          .fini = nothing,
                                          .spec = env_spec,
                                          .reset = env_reset,
                                          .step = env_step};
static const struct ls_policy_ops policy_ops = {.state_bytes = sizeof(int64_t),
                                                .init = policy_init,
                                                .fini = nothing,
                                                .act = act,
                                                .learn = learn,
                                                .save = save,
                                                .load = load};
static const struct ls_plugin plugin = {.abi = LS_PLUGIN_ABI,
                                        .name = "counting",
                                        .version = "1",
                                        .env = &env_ops,
                                        .policy = &policy_ops};

struct both {
    struct plan plan;
    struct agent agent;
    struct player *player;
    struct teacher *teacher;
    ls_device_stack *stack;
    ls_learner_info *info;
    struct agent_played played;
};

/* As an engine would make one. */
static int open_stack(struct both *both)
{
    struct ls_learner_options options = {.queue = 1};
    teacher_set_options(both->teacher, &options);
    return ls_learner_info_create(&both->info) ||
           ls_device_stack_create(&both->stack, options.devices[0],
                                  options.part_bytes);
}

static int set_up(void **state)
{
    static struct both both;
    static const char *const devices[] = {"cpu"};
    const struct teacher_options options = {.agent = &both.agent,
                                            .devices = devices,
                                            .n_devices = 1,
                                            .stacks = 2,
                                            .n = 2,
                                            .steps = 8};
    memset(&both, 0, sizeof both);
    *state = &both;
    return agent_init(&both.agent, &plugin, &both.plan, 1, 0, 3) ||
           player_create(&both.player, &both.agent, 2, 1, 9) ||
           teacher_create(&both.teacher, ls_runtime_threads(), &options) ||
           open_stack(&both);
}

static int tear_down(void **state)
{
    struct both *both = *state;
    ls_learner_info_destroy(&both->info);
    ls_device_stack_destroy(&both->stack);
    teacher_destroy(&both->teacher);
    player_destroy(&both->player);
    agent_fini(&both->agent);
    return 0;
}

EACH_TEST(set_up, tear_down)

static void collect(struct both *both, size_t steps, size_t env)
{
    size_t first = 99;
    both->played = (struct agent_played){.steps = 0};
    assert_ok(
        player_collect(both->player, 1, steps, NULL, &both->played, &first));
    assert_int_equal(first, env);
    assert_int_equal(both->played.steps, steps);
}

TEST(environments_take_turns)
{
    struct both *both = *state;
    for (size_t i = 0; i < 4; i++) {
        collect(both, 8, i % 2);
        /* Episodes of five steps go on from one trajectory to the next. */
        assert_int_equal(both->played.episodes, i < 2 ? 1 : 2);
        assert_true(both->played.return_sum == (i < 2 ? 5.0 : 10.0));
    }
}

TEST(a_reset_gives_up_episodes_that_are_under_way)
{
    struct both *both = *state;
    for (int i = 0; i < 3; i++) {
        player_reset(both->player);
        collect(both, 4, 0);
        assert_int_equal(both->played.episodes, 0);
    }
}

TEST(an_evaluation_leaves_what_is_collected_alone)
{
    struct both *both = *state;
    for (size_t i = 0; i < 2; i++) {
        collect(both, 3, i);
        both->played = (struct agent_played){.steps = 0};
        assert_ok(player_evaluate(&both->agent, 2, 2, NULL, &both->played));
        assert_true(both->played.return_sum == 10.0);
        assert_int_equal(both->played.episodes, 2);
        assert_int_equal(both->played.steps, 10);
    }
    collect(both, 3, 0);
    assert_int_equal(both->played.episodes, 1);
}

TEST(more_steps_than_there_is_room_for_are_refused)
{
    struct both *both = *state;
    assert_fails(player_collect(both->player, 1, 10, NULL, &both->played, NULL),
                 LS_EPROTO);
    assert_error_has("10 steps are asked for, and there is room for 9");
}

/* Twice the same. */
static int learn_from(struct both *both, const struct teacher_piece *piece)
{
    const struct teacher_piece pieces[] = {*piece, *piece};
    const struct ls_learner_place place = {.stack = 1, .memory = both->stack};
    double priorities[] = {0.5, 0.25};
    int status = teacher_load(both->teacher, &place, pieces, 2);
    ls_learner_info_clear(both->info);
    if (status == LS_OK)
        status =
            teacher_learn(both->teacher, &place, 0, 0, both->info, priorities);
    if (status == LS_OK)
        assert_true(priorities[0] == 0.5 && priorities[1] == 7.0);
    return status;
}

TEST(it_learns_from_the_steps_that_were_sent)
{
    struct both *both = *state;
    struct ls_bytes weights = {NULL, 0};
    struct teacher_piece part = {.name = "d.1", .n = 2};
    collect(both, 8, 0);
    assert_ok(player_part(both->player, 0, 3, 2, &part.data, &part.size));
    assert_ok(learn_from(both, &part));
    assert_int_equal(ls_learner_info_count(both->info), 3);
    assert_true(ls_learner_info_get(both->info, "loss/policy") == 2.0);
    assert_true(ls_learner_info_get(both->info, "..") == 3.0);
    assert_true(ls_learner_info_get(both->info, "td_error") == 7.0);
    assert_ok(agent_save(&both->agent, &weights));
    assert_int_equal(weights.size, 3); /* 1004 */
    assert_memory_equal(weights.data, "\xcd\x03\xec", 3);
    assert_ok(agent_renew_policy(&both->agent, &both->plan));
    assert_ok(agent_save(&both->agent, &weights));
    assert_memory_equal(weights.data, "\xcd\x03\xe8", 3); /* 1000 */
    ls_bytes_clear(&weights);
}

TEST(an_error_that_is_infinite_is_none)
{
    struct both *both = *state;
    struct teacher_piece part = {.name = "d.1", .n = 2};
    collect(both, 8, 0);
    assert_ok(player_part(both->player, 0, 3, 2, &part.data, &part.size));
    td_error = INFINITY;
    assert_fails(learn_from(both, &part), LS_EHANDLER);
    td_error = -7.0f;
    assert_error_has("a td_error of trajectory 1 is infinite");
}

TEST(steps_that_are_not_there_are_refused)
{
    struct both *both = *state;
    struct teacher_piece part = {.n = 7};
    collect(both, 8, 0);
    assert_fails(player_part(both->player, 0, 7, 2, &part.data, &part.size),
                 LS_EPROTO);
    assert_ok(player_bytes(both->player, 0, &part.data, &part.size));
    assert_fails(learn_from(both, &part), LS_EPROTO);
    assert_error_has("item 0 of 2: a trajectory of 8 steps, not of 7");
    part.n = 8;
    assert_ok(learn_from(both, &part));
}

TEST(data_that_is_no_trajectory_is_named)
{
    struct both *both = *state;
    const struct teacher_piece junk = {
        .name = "d.1", .data = "junk", .size = 4, .n = 8};
    assert_fails(learn_from(both, &junk), LS_EPROTO);
    assert_error_has("data d.1");
    assert_int_equal(ls_learner_info_count(both->info), 0);
}

TEST(data_longer_than_expected_is_refused)
{
    struct both *both = *state;
    struct teacher_piece piece = {.n = 9};
    collect(both, 9, 0);
    assert_ok(player_bytes(both->player, 0, &piece.data, &piece.size));
    assert_fails(learn_from(both, &piece), LS_EPROTO);
}
