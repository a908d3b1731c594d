/* nim.c - a plugin from outside with several policies: two players, and each
 * learns from what it has done itself.
 *
 * From a heap of stones they take one, two or three in turn; who takes the last
 * one wins. The observation says whose turn it is, {player, stones}, so one
 * state acts for both, and learns for both from the same batch. Whoever leaves
 * a multiple of four wins: that is what the figures `first` and `second` are
 * compared with. */
#include <lockstep/plugin.h>
#include <lockstep/random.h>

#include <string.h>

enum { N_PLAYERS = 2, MOST = 3, HEAP_MAX = 100 };

static const char *const names[N_PLAYERS] = {"first", "second"};

/* The game ------------------------------------------------------------------
 */

struct game {
    int32_t heap, stones, player;
};

static int game_init(void *env, ls_config_section *config, uint64_t seed)
{
    struct game *game = env;
    (void)seed; /* there is no chance in it */
    game->heap = (int32_t)ls_config_int(config, "heap", 10, MOST + 1, HEAP_MAX);
    return LS_OK;
}

static void nothing_to_free(void *state)
{
    (void)state;
}

static void game_spec(const void *env, struct ls_env_spec *out)
{
    const struct game *game = env;
    *out = (struct ls_env_spec){
        .observation = {.type = LS_I32, .n_dims = 1, .shape = {2}},
        .action = {.type = LS_U8},
        .n_choices = MOST,
        .max_steps = (uint32_t)game->heap};
}

static void look(const struct game *game, int32_t *observation)
{
    observation[0] = game->player;
    observation[1] = game->stones;
}

static int game_reset(void *env, void *observation)
{
    struct game *game = env;
    game->stones = game->heap;
    game->player = 0;
    look(game, observation);
    return LS_OK;
}

/* The return of an episode is that of the first player. */
static int game_step(void *env, const void *action, void *observation,
                     float *reward, bool *terminated, bool *truncated)
{
    struct game *game = env;
    const int32_t taken = 1 + *(const uint8_t *)action;
    game->stones -= taken < game->stones ? taken : game->stones;
    *terminated = game->stones == 0;
    *truncated = false;
    *reward = !*terminated ? 0.0f : game->player == 0 ? 1.0f : -1.0f;
    game->player = 1 - game->player;
    look(game, observation);
    return LS_OK;
}

static int game_save(const void *env, ls_writer *out)
{
    const struct game *game = env;
    ls_write_array(out, 2);
    ls_write_int(out, game->player);
    ls_write_int(out, game->stones);
    return LS_OK;
}

static int game_load(void *env, const ls_value *in)
{
    struct game *game = env;
    int64_t player, stones;
    if (ls_value_int(ls_value_at(in, 0), &player) != LS_OK ||
        ls_value_int(ls_value_at(in, 1), &stones) != LS_OK || player < 0 ||
        player >= N_PLAYERS || stones < 0 || stones > game->heap)
        return ls_error(LS_EPROTO, "it is not a position of this game");
    game->player = (int32_t)player;
    game->stones = (int32_t)stones;
    return LS_OK;
}

/* The players ---------------------------------------------------------------
 */

/* What taking one, two or three is worth to who does it, of so many stones. */
typedef float worths[HEAP_MAX + 1][MOST];

struct players {
    double rate, epsilon;
    worths of[N_PLAYERS];
};

static int players_init(void *policy, ls_config_section *config,
                        const struct ls_env_spec *spec, uint64_t seed)
{
    struct players *players = policy;
    (void)seed; /* they begin with zeros */
    players->rate = ls_config_double(config, "rate", 0.2, 0.0, 1.0);
    players->epsilon = ls_config_double(config, "epsilon", 0.5, 0.0, 1.0);
    if (spec->observation.type != LS_I32 || spec->action.type != LS_U8 ||
        ls_space_count(&spec->observation) != 2 || spec->n_choices != MOST)
        return ls_error(LS_ECONFIG, "the players know nim alone");
    return LS_OK;
}

/* Of who is to move in row i. */
static int look_up(struct players *players, const void *observations, size_t i,
                   float **out)
{
    const int32_t *row = (const int32_t *)observations + 2 * i;
    if (row[0] < 0 || row[0] >= N_PLAYERS || row[1] < 0 || row[1] > HEAP_MAX)
        return ls_error(LS_EINVAL, "player %d, %d stones", row[0], row[1]);
    *out = players->of[row[0]][row[1]];
    return LS_OK;
}

static uint8_t best_of(const float *worth)
{
    uint8_t best = 0;
    for (int i = 1; i < MOST; i++)
        best = worth[i] > worth[best] ? (uint8_t)i : best;
    return best;
}

static int players_act(void *policy, const struct ls_act *rows)
{
    struct players *players = policy;
    uint8_t *moves = rows->actions;
    for (size_t i = 0; i < rows->n; i++) {
        struct ls_rng rng;
        float *worth = NULL;
        const int status = look_up(players, rows->observations, i, &worth);
        if (status != LS_OK)
            return status;
        ls_rng_seed(&rng, rows->noise[i], 0);
        moves[i] = rows->explore && ls_rng_double(&rng) < players->epsilon
                       ? (uint8_t)ls_rng_below(&rng, MOST)
                       : best_of(worth);
    }
    return LS_OK;
}

/* What came of step i for who took it: it has won, or the other has, or it is
 * to move once more. Not known: the trajectory ends before. */
static int came_of(struct players *players, const struct ls_trajectory *from,
                   size_t i, bool *known, double *worth)
{
    float *next = NULL;
    *known = from->terminated[i] || i + 1 < from->n;
    *worth = from->terminated[i] ? 1.0 : -1.0;
    if (!*known || from->terminated[i] || from->terminated[i + 1])
        return LS_OK;
    const int status = look_up(players, from->next_observations, i + 1, &next);
    *worth = status == LS_OK ? (double)next[best_of(next)] : 0.0;
    return status;
}

static int learn_step(struct players *players, const struct ls_trajectory *from,
                      size_t i, double *td_error)
{
    bool known;
    double worth;
    float *mine = NULL;
    int status = look_up(players, from->observations, i, &mine);
    if (status == LS_OK)
        status = came_of(players, from, i, &known, &worth);
    if (status != LS_OK)
        return status;
    float *move = &mine[((const uint8_t *)from->actions)[i] % MOST];
    *td_error = known ? worth - (double)*move : 0.0;
    *move += (float)(players->rate * *td_error);
    return LS_OK;
}

/* In which share of the positions in which one can win, up to eight stones, it
 * makes the move that does. */
static double plays_well(worths worth)
{
    int n = 0, right = 0;
    for (int stones = 1; stones <= 8; stones++) {
        if (stones % (MOST + 1) == 0)
            continue;
        n++;
        right += 1 + best_of(worth[stones]) == stones % (MOST + 1) ? 1 : 0;
    }
    return (double)right / n;
}

static int players_learn(void *policy, const struct ls_learn_batch *batch,
                         struct ls_learn_info *info)
{
    struct players *players = policy;
    size_t at = 0;
    for (size_t i = 0; i < batch->n; i++)
        for (size_t k = batch->trajectories[i].n; k-- > 0;) {
            double td_error = 0.0;
            const int status =
                learn_step(players, &batch->trajectories[i], k, &td_error);
            if (status != LS_OK)
                return status;
            if (info->td_errors != NULL)
                info->td_errors[at + k] = (float)td_error;
            if (k == 0)
                at += batch->trajectories[i].n;
        }
    info->n = N_PLAYERS;
    for (size_t p = 0; p < N_PLAYERS; p++) {
        info->items[p].name = names[p];
        info->items[p].value = plays_well(players->of[p]);
    }
    return LS_OK;
}

static int players_save(const void *policy, ls_writer *out)
{
    const struct players *players = policy;
    ls_write_map(out, N_PLAYERS);
    for (size_t p = 0; p < N_PLAYERS; p++) {
        ls_write_string(out, names[p]);
        ls_write_floats(out, players->of[p][0], sizeof(worths) / sizeof(float));
    }
    return LS_OK;
}

static int players_load(void *policy, const ls_value *in)
{
    struct players *players = policy, read;
    int status = LS_OK;
    for (size_t p = 0; p < N_PLAYERS && status == LS_OK; p++)
        status = ls_value_floats(ls_value_get(in, names[p]), read.of[p][0],
                                 sizeof(worths) / sizeof(float));
    if (status == LS_OK)
        memcpy(players->of, read.of, sizeof read.of);
    return status;
}

static bool players_tensor(const void *policy, size_t at, struct ls_tensor *out)
{
    const struct players *players = policy;
    if (at >= N_PLAYERS)
        return false;
    *out = (struct ls_tensor){
        .space = {.type = LS_F32, .n_dims = 2, .shape = {HEAP_MAX + 1, MOST}},
        .data = players->of[at]};
    memcpy(out->name, names[at], strlen(names[at]) + 1);
    return true;
}

LS_API const struct ls_plugin *ls_plugin(void)
{
    static const struct ls_state_part position[] = {
        {"position", game_save, game_load}};
    static const struct ls_env_ops game = {.state_bytes = sizeof(struct game),
                                           .init = game_init,
                                           .fini = nothing_to_free,
                                           .spec = game_spec,
                                           .reset = game_reset,
                                           .step = game_step,
                                           .parts = position,
                                           .n_parts = 1};
    static const struct ls_policy_ops players = {.state_bytes =
                                                     sizeof(struct players),
                                                 .init = players_init,
                                                 .fini = nothing_to_free,
                                                 .act = players_act,
                                                 .learn = players_learn,
                                                 .save = players_save,
                                                 .load = players_load,
                                                 .tensor = players_tensor};
    static const struct ls_plugin plugin = {.abi = LS_PLUGIN_ABI,
                                            .name = "nim",
                                            .version = "1",
                                            .env = &game,
                                            .policy = &players};
    return &plugin;
}
