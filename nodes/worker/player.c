#include "player.h"

#include <stdlib.h>

struct player {
    struct agent *agent; /* borrow */
    struct trajectory_shape shape;
    size_t n_envs;
    size_t next;                        /* whose turn it is */
    struct ls_trajectory *trajectories; /* own; one of each environment */
    void *memory;                       /* own; of the trajectories */
    ls_writer *writer;                  /* own */
};

static int make_room(struct player *player, size_t n)
{
    size_t bytes = 0;
    const int status = trajectory_bytes(&player->shape, &bytes);
    if (status != LS_OK)
        return status;
    player->trajectories = calloc(n, sizeof *player->trajectories);
    player->memory = calloc(n, bytes);
    if (player->trajectories == NULL || player->memory == NULL)
        return ls_error(LS_ENOMEM, "%zu trajectories of %zu steps", n,
                        player->shape.n_max);
    for (size_t i = 0; i < n; i++)
        player->trajectories[i] = trajectory_in(
            (unsigned char *)player->memory + i * bytes, &player->shape);
    return ls_writer_create(&player->writer);
}

int player_create(struct player **out, struct agent *agent, size_t n_envs,
                  size_t n, size_t steps)
{
    struct player *player = calloc(1, sizeof *player);
    *out = NULL;
    if (player == NULL)
        return ls_error(LS_ENOMEM, "a player");
    player->agent = agent;
    player->n_envs = n_envs;
    player->shape = agent_shape(agent, steps);
    const int status = make_room(player, n);
    if (status != LS_OK) {
        player_destroy(&player);
        return status;
    }
    *out = player;
    return LS_OK;
}

void player_destroy(struct player **player)
{
    if (player == NULL || *player == NULL)
        return;
    ls_writer_destroy(&(*player)->writer);
    free((*player)->trajectories);
    free((*player)->memory);
    free(*player);
    *player = NULL;
}

void player_reset(struct player *player)
{
    for (size_t i = 0; i < player->n_envs; i++)
        player->agent->envs[i].begun = false;
    player->next = 0;
}

int player_collect(struct player *player, size_t n, size_t steps, ls_task *task,
                   struct agent_played *played, size_t *first)
{
    const size_t begin = player->next;
    if (steps > player->shape.n_max)
        return ls_error(LS_EPROTO,
                        "%zu steps are asked for, and there is room "
                        "for %zu",
                        steps, player->shape.n_max);
    const int status = agent_collect(player->agent, begin, n,
                                     player->trajectories, steps, task, played);
    if (status != LS_OK)
        return status;
    player->next = (begin + n) % player->n_envs;
    if (first != NULL)
        *first = begin;
    return LS_OK;
}

int player_part(struct player *player, size_t i, size_t begin, size_t n,
                const void **data, size_t *size)
{
    struct ls_trajectory part;
    int status = trajectory_part(&player->trajectories[i], &player->shape,
                                 begin, n, &part);
    ls_writer_clear(player->writer);
    if (status == LS_OK)
        status = trajectory_write(&part, &player->shape, player->writer);
    return status == LS_OK ? ls_writer_bytes(player->writer, data, size)
                           : status;
}

int player_bytes(struct player *player, size_t i, const void **data,
                 size_t *size)
{
    return player_part(player, i, 0, player->trajectories[i].n, data, size);
}

int player_evaluate(struct agent *agent, size_t index, size_t episodes,
                    ls_task *task, struct agent_played *played)
{
    int status = LS_OK;
    for (size_t i = 0; i < episodes && status == LS_OK; i++)
        status = agent_episode(agent, index, task, played);
    return status;
}
