/* grid.c - a plugin from outside: a grid to be crossed, and a table of values
 * that learns how (Watkins, 1989).
 *
 * What stands in the grid is its cell, one i32; what to do is a move, one u8.
 * Each step costs a little, and the corner across pays 1. */
#include <lockstep/plugin.h>
#include <lockstep/random.h>

#include <stdlib.h>
#include <string.h>

enum { N_MOVES = 4 }; /* right, down, left, up */

/* The grid ------------------------------------------------------------------
 */

struct grid {
    int32_t size, cell;
    uint32_t n_steps, max_steps;
};

static int grid_init(void *env, ls_config_section *config, uint64_t seed)
{
    struct grid *grid = env;
    (void)seed; /* there is no chance in it */
    grid->size = (int32_t)ls_config_int(config, "size", 5, 2, 100);
    grid->max_steps =
        (uint32_t)ls_config_int(config, "max_steps", 60, 1, 10000);
    return LS_OK;
}

static void nothing_to_free(void *state)
{
    (void)state;
}

static void grid_spec(const void *env, struct ls_env_spec *out)
{
    const struct grid *grid = env;
    *out = (struct ls_env_spec){.observation = {.type = LS_I32},
                                .action = {.type = LS_U8},
                                .n_choices = N_MOVES,
                                .max_steps = grid->max_steps};
}

static int grid_reset(void *env, void *observation)
{
    struct grid *grid = env;
    grid->cell = 0;
    grid->n_steps = 0;
    *(int32_t *)observation = grid->cell;
    return LS_OK;
}

static int grid_step(void *env, const void *action, void *observation,
                     float *reward, bool *terminated, bool *truncated)
{
    struct grid *grid = env;
    const int32_t last = grid->size - 1;
    int32_t x = grid->cell % grid->size, y = grid->cell / grid->size;
    switch (*(const uint8_t *)action) {
    case 0:
        x += x < last;
        break;
    case 1:
        y += y < last;
        break;
    case 2:
        x -= x > 0;
        break;
    default:
        y -= y > 0;
        break;
    }
    grid->cell = y * grid->size + x;
    grid->n_steps++;
    *terminated = x == last && y == last;
    *truncated = !*terminated && grid->n_steps >= grid->max_steps;
    *reward = *terminated ? 1.0f : -0.01f;
    *(int32_t *)observation = grid->cell;
    return LS_OK;
}

static int place_save(const void *env, ls_writer *out)
{
    const struct grid *grid = env;
    ls_write_array(out, 2);
    ls_write_int(out, grid->cell);
    ls_write_uint(out, grid->n_steps);
    return LS_OK;
}

static int place_load(void *env, const ls_value *in)
{
    struct grid *grid = env;
    int64_t cell, n_steps;
    if (ls_value_int(ls_value_at(in, 0), &cell) != LS_OK ||
        ls_value_int(ls_value_at(in, 1), &n_steps) != LS_OK || cell < 0 ||
        cell >= (int64_t)grid->size * grid->size || n_steps < 0 ||
        n_steps > grid->max_steps)
        return ls_error(LS_EPROTO, "it is not a place in this grid");
    grid->cell = (int32_t)cell;
    grid->n_steps = (uint32_t)n_steps;
    return LS_OK;
}

/* The table -----------------------------------------------------------------
 */

struct table {
    size_t n_cells;
    float rate, discount, epsilon;
    float (*values)[N_MOVES]; /* own; of each cell */
};

static int table_init(void *policy, ls_config_section *config,
                      const struct ls_env_spec *spec, uint64_t seed)
{
    struct table *table = policy;
    (void)seed; /* it begins with zeros */
    table->n_cells = (size_t)ls_config_int(config, "cells", 25, 1, 10000);
    table->rate = (float)ls_config_double(config, "rate", 0.5, 0.0, 1.0);
    table->discount =
        (float)ls_config_double(config, "discount", 0.95, 0.0, 1.0);
    table->epsilon = (float)ls_config_double(config, "epsilon", 0.3, 0.0, 1.0);
    if (spec->observation.type != LS_I32 || spec->action.type != LS_U8 ||
        ls_space_count(&spec->observation) != 1 || spec->n_choices != N_MOVES)
        return ls_error(LS_ECONFIG, "the table is for cells and %d moves",
                        N_MOVES);
    table->values = calloc(table->n_cells, sizeof *table->values);
    return table->values != NULL ? LS_OK : ls_error(LS_ENOMEM, "a table");
}

static void table_fini(void *policy)
{
    struct table *table = policy;
    free(table->values);
}

static int look_up(const struct table *table, int32_t cell, float **out)
{
    if (cell < 0 || (size_t)cell >= table->n_cells)
        return ls_error(LS_EINVAL, "cell %d of %zu: raise policy.cells", cell,
                        table->n_cells);
    *out = table->values[cell];
    return LS_OK;
}

static uint8_t best_of(const float *values)
{
    uint8_t best = 0;
    for (int i = 1; i < N_MOVES; i++)
        best = values[i] > values[best] ? (uint8_t)i : best;
    return best;
}

static int table_act(void *policy, const struct ls_act *rows)
{
    const struct table *table = policy;
    const int32_t *cells = rows->observations;
    uint8_t *moves = rows->actions;
    for (size_t i = 0; i < rows->n; i++) {
        struct ls_rng rng;
        float *values = NULL;
        const int status = look_up(table, cells[i], &values);
        if (status != LS_OK)
            return status;
        ls_rng_seed(&rng, rows->noise[i], 0);
        moves[i] = rows->explore && ls_rng_double(&rng) < (double)table->epsilon
                       ? (uint8_t)ls_rng_below(&rng, N_MOVES)
                       : best_of(values);
    }
    return LS_OK;
}

/* One step of a trajectory; returns how wrong the table was about it. */
static int learn_step(struct table *table, const struct ls_trajectory *from,
                      size_t i, float *td_error)
{
    const uint8_t move = ((const uint8_t *)from->actions)[i];
    float *values = NULL, *next = NULL;
    int status =
        look_up(table, ((const int32_t *)from->observations)[i], &values);
    if (status == LS_OK)
        status = look_up(table, ((const int32_t *)from->next_observations)[i],
                         &next);
    if (status != LS_OK)
        return status;
    const float after =
        from->terminated[i] ? 0.0f : table->discount * next[best_of(next)];
    *td_error = from->rewards[i] + after - values[move];
    values[move] += table->rate * *td_error;
    return LS_OK;
}

static int table_learn(void *policy, const struct ls_learn_batch *batch,
                       struct ls_learn_info *info)
{
    struct table *table = policy;
    size_t at = 0;
    for (size_t i = 0; i < batch->n; i++)
        /* Backwards: what the end pays reaches the beginning at once. */
        for (size_t k = batch->trajectories[i].n; k-- > 0; at++) {
            float td_error;
            const int status =
                learn_step(table, &batch->trajectories[i], k, &td_error);
            if (status != LS_OK)
                return status;
            if (info->td_errors != NULL)
                info->td_errors[at] = td_error;
        }
    info->n = 1;
    info->items[0].name = "value";
    info->items[0].value = (double)table->values[0][best_of(table->values[0])];
    return LS_OK;
}

static int table_save(const void *policy, ls_writer *out)
{
    const struct table *table = policy;
    ls_write_floats(out, table->values[0], table->n_cells * N_MOVES);
    return LS_OK;
}

static int table_load(void *policy, const ls_value *in)
{
    struct table *table = policy;
    return ls_value_floats(in, table->values[0], table->n_cells * N_MOVES);
}

LS_API const struct ls_plugin *ls_plugin(void)
{
    static const struct ls_state_part place[] = {
        {"place", place_save, place_load}};
    static const struct ls_env_ops grid = {.state_bytes = sizeof(struct grid),
                                           .init = grid_init,
                                           .fini = nothing_to_free,
                                           .spec = grid_spec,
                                           .reset = grid_reset,
                                           .step = grid_step,
                                           .parts = place,
                                           .n_parts = 1};
    /* The table is all that it learns by: there are no other parts. */
    static const struct ls_policy_ops table = {.state_bytes =
                                                   sizeof(struct table),
                                               .init = table_init,
                                               .fini = table_fini,
                                               .act = table_act,
                                               .learn = table_learn,
                                               .save = table_save,
                                               .load = table_load};
    static const struct ls_plugin plugin = {.abi = LS_PLUGIN_ABI,
                                            .name = "grid",
                                            .version = "1",
                                            .env = &grid,
                                            .policy = &table};
    return &plugin;
}
