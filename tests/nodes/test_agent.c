/* agent.h with the plugin cartpole: environments side by side, on threads and
 * in a simulation, give what they give one by one; and whoever reads the state
 * of another one goes on as it does, to the bit. */
#include "agent.h"
#include "test.h"

#include <math.h>
#include <string.h>

#include "lockstep/simulation.h"

#include "cartpole.h"
#include "support/trajectory_room.h"

enum { N_ENVS = 5, N_STEPS = 40 };

static const struct ls_plugin plugin = {.abi = LS_PLUGIN_ABI,
                                        .name = "cartpole",
                                        .version = "1",
                                        .env = &cartpole_env,
                                        .policy = &cartpole_policy};

/* An agent, and what it has collected last. */
struct player {
    struct plan plan;
    ls_config *config;
    struct agent agent;
    struct trajectory kept[N_ENVS];
    struct ls_trajectory views[N_ENVS];
    struct agent_played played;
};

static void open_player(struct player *player, uint64_t seed, size_t n_envs)
{
    memset(player, 0, sizeof *player);
    assert_ok(ls_config_parse(&player->config, "job.yaml",
                              "env: {max_steps: 30}\n"
                              "policy: {hidden: 8, epochs: 2}\n"));
    ls_config_section *root = ls_config_root(player->config);
    player->plan.seed = seed;
    player->plan.env = ls_config_section_at(root, "env");
    player->plan.policy = ls_config_section_at(root, "policy");
    assert_ok(agent_init(&player->agent, &plugin, &player->plan, 3, 0, n_envs));
    const struct trajectory_shape shape = agent_shape(&player->agent, N_STEPS);
    for (size_t i = 0; i < N_ENVS; i++) {
        assert_ok(trajectory_init(&player->kept[i], &shape));
        player->views[i] = player->kept[i].view;
    }
}

static void close_player(struct player *player)
{
    for (size_t i = 0; i < N_ENVS; i++)
        trajectory_fini(&player->kept[i]);
    agent_fini(&player->agent);
    ls_config_destroy(&player->config);
}

static void collect(struct player *player, size_t first, size_t n)
{
    assert_ok(agent_collect(&player->agent, first, n, player->views + first,
                            N_STEPS, NULL, &player->played));
}

static void learn(struct player *player)
{
    struct ls_learn_info info = {.n = 0};
    const struct ls_learn_batch batch = {.trajectories = player->views,
                                         .n = N_ENVS};
    assert_ok(cartpole_policy.learn(player->agent.policy, &batch, &info));
}

/* All of its state as one value. */
static struct ls_bytes state_of(const struct player *player)
{
    struct ls_bytes out = {.data = NULL};
    ls_writer *writer;
    const void *data;
    size_t size;
    assert_ok(ls_writer_create(&writer));
    ls_write_array(writer, 3);
    assert_ok(cartpole_policy.save(player->agent.policy, writer));
    assert_ok(agent_write_training(&player->agent, writer));
    assert_ok(agent_write_envs(&player->agent, writer));
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_bytes_set(&out, data, size));
    ls_writer_destroy(&writer);
    return out;
}

static int go_on_from(struct player *player, const struct ls_bytes *state)
{
    ls_document *document;
    assert_ok(ls_document_read(&document, state->data, state->size, NULL));
    const ls_value *const parts = ls_document_root(document);
    int status =
        cartpole_policy.load(player->agent.policy, ls_value_at(parts, 0));
    if (status == LS_OK)
        status = agent_read_training(&player->agent, ls_value_at(parts, 1));
    if (status == LS_OK)
        status = agent_read_envs(&player->agent, ls_value_at(parts, 2));
    ls_document_destroy(&document);
    return status;
}

static void assert_alike(const struct player *one, const struct player *other)
{
    struct ls_bytes a = state_of(one), b = state_of(other);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    ls_bytes_clear(&a);
    ls_bytes_clear(&b);
    for (size_t i = 0; i < N_ENVS; i++) {
        const struct ls_trajectory *left = &one->views[i];
        const struct ls_trajectory *right = &other->views[i];
        assert_memory_equal(left->observations, right->observations,
                            N_STEPS * 4 * sizeof(float));
        assert_memory_equal(left->actions, right->actions,
                            N_STEPS * sizeof(float));
        assert_memory_equal(left->extras, right->extras,
                            N_STEPS * sizeof(float));
        assert_memory_equal(left->truncated, right->truncated, N_STEPS);
    }
    assert_int_equal(one->played.steps, other->played.steps);
    assert_int_equal(one->played.episodes, other->played.episodes);
    assert_true(one->played.return_sum == other->played.return_sum);
}

static void play_on(struct player *player)
{
    for (int i = 0; i < 3; i++) {
        collect(player, 0, N_ENVS);
        learn(player);
    }
    assert_ok(agent_episode(&player->agent, 1, NULL, &player->played));
}

TEST(from_an_environment_that_was_kept_the_same_is_played)
{
    struct player player;
    struct ls_bytes kept = {.size = 0};
    open_player(&player, 5, 2);
    assert_ok(agent_keep_env(&player.agent, 1, &kept));
    struct agent_played first = {.steps = 0}, second = {.steps = 0};
    for (int i = 0; i < 20; i++)
        assert_ok(agent_episode(&player.agent, 1, NULL, &first));
    collect(&player, 1, 1); /* an episode is under way */
    assert_ok(agent_restore_env(&player.agent, 1, &kept));
    for (int i = 0; i < 20; i++)
        assert_ok(agent_episode(&player.agent, 1, NULL, &second));
    assert_memory_equal(&first, &second, sizeof first);
    assert_fails(
        agent_restore_env(&player.agent, 1,
                          &(struct ls_bytes){.data = "\xc0", .size = 1}),
        LS_EPROTO);
    /* What cannot be saved goes on. */
    struct ls_env_ops ops = cartpole_env;
    struct ls_plugin forgetful = plugin;
    ops.n_parts = 0;
    forgetful.env = &ops;
    player.agent.plugin = &forgetful;
    assert_ok(agent_restore_env(&player.agent, 1, &kept));
    player.agent.plugin = &plugin;
    ls_bytes_clear(&kept);
    close_player(&player);
}

TEST(side_by_side_is_as_one_by_one)
{
    struct player together, alone;
    open_player(&together, 9, N_ENVS);
    open_player(&alone, 9, N_ENVS);
    for (int round = 0; round < 3; round++) {
        collect(&together, 0, N_ENVS);
        for (size_t i = 0; i < N_ENVS; i++)
            collect(&alone, i, 1);
        assert_alike(&together, &alone);
    }
    assert_true(together.played.episodes > 0);
    assert_int_equal(together.played.steps, 3 * N_ENVS * N_STEPS);
    close_player(&together);
    close_player(&alone);
}

TEST(threads_change_nothing)
{
    struct player alone, crew;
    open_player(&alone, 4, N_ENVS);
    open_player(&crew, 4, N_ENVS);
    play_on(&alone);
    assert_ok(agent_use_threads(&crew.agent, ls_runtime_threads(), 3));
    play_on(&crew);
    assert_alike(&alone, &crew);
    /* More of them than environments, and none again. */
    assert_ok(agent_use_threads(&crew.agent, ls_runtime_threads(), 99));
    play_on(&crew);
    agent_end_threads(&crew.agent);
    play_on(&alone);
    assert_alike(&alone, &crew);
    close_player(&alone);
    close_player(&crew);
}

static bool alike(struct player *one, struct player *other,
                  int (*save)(struct agent *agent, struct ls_bytes *out))
{
    struct ls_bytes a = {.size = 0}, b = {.size = 0};
    assert_ok(save(&one->agent, &a));
    assert_ok(save(&other->agent, &b));
    const bool same = a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
    ls_bytes_clear(&a);
    ls_bytes_clear(&b);
    return same;
}

/* As one that takes the place of another does, of another seed. */
TEST(who_loads_the_training_and_the_policy_learns_on_alike)
{
    for (int whole = 0; whole < 2; whole++) {
        struct player one, other;
        struct ls_bytes weights = {.size = 0}, training = {.size = 0};
        open_player(&one, 6, N_ENVS);
        open_player(&other, 99, N_ENVS);
        play_on(&one);
        assert_ok(agent_save(&one.agent, &weights));
        assert_ok(agent_save_training(&one.agent, &training));
        if (whole)
            assert_ok(agent_load_training(&other.agent, &training));
        assert_ok(agent_load(&other.agent, &weights));
        collect(&one, 0, N_ENVS);
        memcpy(other.views, one.views, sizeof one.views);
        learn(&one);
        learn(&other);
        assert_int_equal(alike(&one, &other, agent_save), whole);
        assert_int_equal(alike(&one, &other, agent_save_training), whole);
        ls_bytes_clear(&weights);
        ls_bytes_clear(&training);
        close_player(&one);
        close_player(&other);
    }
}

static void simulated(void *arg)
{
    struct player *player = arg;
    assert_ok(agent_use_threads(&player->agent, ls_runtime_current(), 4));
    play_on(player);
    agent_end_threads(&player->agent);
}

TEST(a_simulation_owns_the_threads)
{
    for (uint64_t seed = 1; seed < 6; seed++) {
        const struct ls_simulation_options options = {.seed = seed};
        struct player alone, crew;
        ls_simulation *simulation;
        open_player(&alone, 4, N_ENVS);
        open_player(&crew, 4, N_ENVS);
        play_on(&alone);
        assert_ok(ls_simulation_create(&simulation, &options));
        assert_ok(ls_simulation_run(simulation, simulated, &crew));
        ls_simulation_destroy(&simulation);
        assert_alike(&alone, &crew);
        close_player(&alone);
        close_player(&crew);
    }
}

TEST(who_reads_a_state_goes_on_as_it_does)
{
    struct player first, second;
    open_player(&first, 7, N_ENVS);
    open_player(&second, 8, N_ENVS); /* another one in all ways */
    play_on(&first);
    play_on(&second); /* and further */
    play_on(&second);
    struct ls_bytes middle = state_of(&first);
    first.played = (struct agent_played){.steps = 0};
    play_on(&first);
    assert_ok(go_on_from(&second, &middle));
    struct ls_bytes read = state_of(&second);
    assert_int_equal(read.size, middle.size);
    assert_memory_equal(read.data, middle.data, middle.size);
    second.played = (struct agent_played){.steps = 0};
    play_on(&second);
    assert_alike(&first, &second);
    play_on(&first);
    play_on(&second);
    assert_alike(&first, &second);
    ls_bytes_clear(&middle);
    ls_bytes_clear(&read);
    close_player(&first);
    close_player(&second);
}

TEST(a_state_of_others_is_refused)
{
    struct player player;
    open_player(&player, 7, N_ENVS);
    struct ls_bytes whole = state_of(&player);
    close_player(&player);
    open_player(&player, 7, N_ENVS - 1);
    assert_fails(go_on_from(&player, &whole), LS_EMISMATCH);
    assert_error_has("5 environments, not 4");
    /* A part that is missing: "optimiser" has another name. */
    close_player(&player);
    open_player(&player, 7, N_ENVS);
    char *bytes = whole.data;
    size_t at = 0;
    while (memcmp(bytes + at, "optimiser", 9) != 0)
        assert_true(++at + 9 <= whole.size);
    bytes[at] = 'O';
    assert_fails(go_on_from(&player, &whole), LS_EPROTO);
    assert_string_equal(ls_error_text(), "plugin cartpole: optimiser: load: it "
                                         "is missing");
    ls_bytes_clear(&whole);
    close_player(&player);
}

static void *failing; /* the environment that does */

static int failing_step(void *env, const void *action, void *observation,
                        float *reward, bool *terminated, bool *truncated)
{
    if (env == failing)
        return ls_error(LS_EIO, "the cart fell off the table");
    return cartpole_env.step(env, action, observation, reward, terminated,
                             truncated);
}

TEST(what_fails_on_a_thread_is_said)
{
    struct ls_env_ops ops = cartpole_env;
    const struct ls_plugin weak = {.name = "weak",
                                   .version = "1",
                                   .env = &ops,
                                   .policy = &cartpole_policy};
    struct player player;
    ops.step = failing_step;
    open_player(&player, 1, N_ENVS);
    player.agent.plugin = &weak;
    failing = player.agent.envs[3].state;
    for (size_t threads = 1; threads <= N_ENVS; threads++) {
        assert_ok(
            agent_use_threads(&player.agent, ls_runtime_threads(), threads));
        assert_fails(agent_collect(&player.agent, 0, N_ENVS, player.views,
                                   N_STEPS, NULL, &player.played),
                     LS_EIO);
        assert_string_equal(ls_error_text(), "plugin weak: env: step: the cart "
                                             "fell off the table");
        assert_int_equal(player.played.steps, 0);
        for (size_t i = 0; i < N_ENVS; i++)
            player.agent.envs[i].begun = false;
    }
    close_player(&player);
}

static int silent_step(void *env, const void *action, void *observation,
                       float *reward, bool *terminated, bool *truncated)
{
    (void)env;
    (void)action;
    (void)observation;
    (void)reward;
    (void)terminated;
    (void)truncated;
    return LS_EIO;
}

TEST(what_fails_without_a_text_has_no_other_text)
{
    struct ls_env_ops ops = cartpole_env;
    const struct ls_plugin weak = {.name = "weak",
                                   .version = "1",
                                   .env = &ops,
                                   .policy = &cartpole_policy};
    struct player player;
    ops.step = silent_step;
    open_player(&player, 1, 1);
    player.agent.plugin = &weak;
    (void)ls_error(LS_ENOENT, "something of yesterday");
    assert_fails(agent_collect(&player.agent, 0, 1, player.views, 1, NULL,
                               &player.played),
                 LS_EIO);
    assert_string_equal(ls_error_text(),
                        "plugin weak: env: step: it returned -16, LS_EIO, and "
                        "left no error text");
    close_player(&player);
}

static int endless_step(void *env, const void *action, void *observation,
                        float *reward, bool *terminated, bool *truncated)
{
    const int status = cartpole_env.step(env, action, observation, reward,
                                         terminated, truncated);
    *reward = INFINITY;
    return status;
}

/* It would be above any goal. */
TEST(an_episode_without_a_finite_return_fails)
{
    struct ls_env_ops ops = cartpole_env;
    const struct ls_plugin weak = {.name = "weak",
                                   .version = "1",
                                   .env = &ops,
                                   .policy = &cartpole_policy};
    struct player player;
    ops.step = endless_step;
    open_player(&player, 1, 1);
    player.agent.plugin = &weak;
    assert_fails(agent_episode(&player.agent, 0, NULL, &player.played),
                 LS_EHANDLER);
    assert_string_equal(ls_error_text(), "plugin weak: env: step: a reward "
                                         "that is not finite, inf");
    close_player(&player);
}

TEST(what_cannot_be_saved_begins_an_episode)
{
    struct ls_env_ops forgetful = cartpole_env;
    const struct ls_plugin weak = {.name = "weak",
                                   .version = "1",
                                   .env = &forgetful,
                                   .policy = &cartpole_policy};
    struct player player;
    forgetful.parts = NULL;
    forgetful.n_parts = 0;
    open_player(&player, 1, N_ENVS);
    player.agent.plugin = &weak;
    assert_ok(agent_collect(&player.agent, 0, N_ENVS, player.views, 3, NULL,
                            &player.played));
    assert_true(player.agent.envs[0].begun);
    struct ls_bytes whole = state_of(&player);
    assert_ok(go_on_from(&player, &whole));
    assert_false(player.agent.envs[0].begun);
    ls_bytes_clear(&whole);
    close_player(&player);
}

static struct ls_env_spec told;

static void tell_shape(const void *env, struct ls_env_spec *out)
{
    (void)env;
    *out = told;
}

TEST(a_shape_beyond_the_limits_is_refused)
{
    static const struct {
        struct ls_space observation, action;
        const char *because;
    } wrong[] = {
        {{LS_U8, 4, {1024, 1024, 2, 1}}, {LS_I32, 0, {0}}, "observation"},
        {{LS_U8, 2, {8, 0}}, {LS_I32, 0, {0}}, "observation"},
        {{LS_U8, 5, {1, 1, 1, 1}}, {LS_I32, 0, {0}}, "observation"},
        {{(enum ls_element)4, 0, {0}}, {LS_I32, 0, {0}}, "observation"},
        {{LS_U8, 2, {SIZE_MAX, SIZE_MAX}}, {LS_I32, 0, {0}}, "observation"},
        {{LS_U8, 1, {1 << 20}}, {LS_I32, 1, {65537}}, "action"},
        {{LS_U8, 1, {1 << 20}}, {(enum ls_element)4, 1, {1}}, "action"},
        {{LS_U8, 1, {1 << 20}}, {LS_I32, 1, {65536}}, "65 extras"}};
    struct ls_env_ops env = cartpole_env;
    struct ls_policy_ops policy = cartpole_policy;
    const struct ls_plugin weak = {
        .name = "weak", .version = "1", .env = &env, .policy = &policy};
    struct player player;
    struct agent agent;
    env.spec = tell_shape;
    policy.n_extras = 65;
    open_player(&player, 1, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        told = (struct ls_env_spec){.observation = wrong[i].observation,
                                    .action = wrong[i].action};
        assert_fails(agent_init(&agent, &weak, &player.plan, 0, 0, 1),
                     LS_EHANDLER);
        assert_error_has(wrong[i].because);
    }
    close_player(&player);
}
