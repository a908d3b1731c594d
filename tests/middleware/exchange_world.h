/* exchange_world.h - a world of nodes in this process, each with a task on a
 * thread of its own, for the tests of the exchange. */
#ifndef EXCHANGE_WORLD_H
#define EXCHANGE_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "latch.h"
#include "lockstep/middleware.h"
#include "test.h"

enum { MOST_PLAYERS = 4, FOR_EVER = 0 };

struct player;

/* Use the middleware of a player's task. Assertions of cmocka do not work on
 * other threads: a step that finds something wrong returns LS_EHANDLER. */
typedef void player_build_fn(struct player *player);

struct player {
    uint32_t id;
    const char *role;
    player_build_fn *build;
    uint64_t iterations; /* FOR_EVER: until finished */
    bool idle;           /* builds, and leaves without a run */
    bool ends_at_once;   /* its run has no iteration */
    bool stays;          /* does not leave before the others' runs are over */

    /* Filled by play(). */
    ls_task *task; /* while it runs */
    int status;
    char text[LS_ERROR_TEXT_MAX];
    uint64_t ran;

    /* play()'s own. */
    ls_thread *thread;
    ls_node *node;
    struct latch *started; /* nobody runs before all are here: a node that is
                            * done at once would leave before the others have
                            * found their world */
    struct latch *done;
    const char *const *addresses;
    char address[64];
};

static int player_open(struct player *player, size_t n_players)
{
    struct ls_node_options options;
    ls_node_options_init(&options);
    options.job = "exchange";
    options.id = player->id;
    options.role = player->role;
    options.bind = player->address;
    options.attach = player->addresses;
    options.n_attach = n_players;
    options.world_size = (uint32_t)n_players;
    int status = ls_node_create(&player->node, &options);
    const struct ls_task_options task = {.node = player->node,
                                         .roles = player->role};
    if (status == LS_OK)
        status = ls_task_create(&player->task, &task);
    if (status == LS_OK)
        player->build(player);
    return status;
}

static void player_main(void *arg)
{
    struct player *player = arg;
    if (player->status == LS_OK)
        player->status = ls_node_start(player->node);
    latch_hit(player->started);
    latch_wait(player->started);
    uint64_t n =
        player->iterations == FOR_EVER ? UINT64_MAX : player->iterations;
    if (player->ends_at_once)
        n = 0;
    if (player->status == LS_OK && !player->idle)
        player->status = ls_task_run(player->task, n);
    (void)snprintf(player->text, sizeof player->text, "%s", ls_error_text());
    player->ran = ls_task_iterations(player->task);
    if (player->stays)
        latch_wait(player->done);
    else
        latch_hit(player->done);
    ls_node_stop(player->node, player->status);
}

/* Run all to their end. */
static void play(struct player *players, size_t n)
{
    static unsigned worlds;
    const char *addresses[MOST_PLAYERS];
    struct latch started, done;
    size_t n_stay = 0;
    for (size_t i = 0; i < n; i++)
        n_stay += players[i].stays;
    latch_init(&started, (int)n);
    latch_init(&done, (int)(n - n_stay));
    worlds++;
    assert_true(n <= MOST_PLAYERS);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(players[i].address, sizeof players[i].address,
                       "inproc://exchange-%u-%u", worlds,
                       (unsigned)players[i].id);
        addresses[i] = players[i].address;
        players[i].addresses = addresses;
        players[i].started = &started;
        players[i].done = &done;
    }
    for (size_t i = 0; i < n; i++)
        players[i].status = player_open(&players[i], n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(ls_thread_spawn(ls_runtime_threads(),
                                         &players[i].thread, "player",
                                         player_main, &players[i]),
                         LS_OK);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ls_thread_join(&players[i].thread, LS_FOREVER), LS_OK);
        ls_task_destroy(&players[i].task);
        ls_node_destroy(&players[i].node);
    }
    latch_fini(&started);
    latch_fini(&done);
}

static void assert_went_well(const struct player *players, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (players[i].status != LS_OK)
            fail_msg("node %u (%s): %s: %s", (unsigned)players[i].id,
                     players[i].role, ls_status_name(players[i].status),
                     players[i].text);
}

static void assert_failed(const struct player *player, int status,
                          const char *text)
{
    if (player->status != status || strstr(player->text, text) == NULL)
        fail_msg("node %u (%s): %s: %s", (unsigned)player->id, player->role,
                 ls_status_name(player->status), player->text);
}

#endif
