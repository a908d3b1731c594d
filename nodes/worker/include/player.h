/* player.h - environments that are played for others to learn from: what each
 * of them did, as bytes. Both kinds of job collect and evaluate by it.
 *
 * Thread: serial. */
#ifndef PLAYER_H
#define PLAYER_H

#include "agent.h"

struct player;

/* Play the agent's first n_envs environments, up to n of them at a time, for up
 * to `steps` steps.
 * out:    own; NULL after an error; give it to player_destroy().
 * agent:  borrow, until then.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int player_create(struct player **out, struct agent *agent,
                              size_t n_envs, size_t n, size_t steps);
void player_destroy(struct player **player);

/* Give up episodes that are under way; it is the first environment's turn. */
void player_reset(struct player *player);

/* The next `steps` steps of the n environments whose turn it is; episodes go on
 * from one call to the next.
 * task, played: as agent_collect() has them.
 * first:  whose the first one is; n of them follow. NULL: nobody asks.
 * Errors: its own; LS_EPROTO more steps than there is room for. */
LS_MUST_USE int player_collect(struct player *player, size_t n, size_t steps,
                               ls_task *task, struct agent_played *played,
                               size_t *first);

/* What the i-th of them did, as a value of trajectory_codec.h. Borrow: until
 * the next call. Errors: LS_EHANDLER, with the number that is none; LS_ENOMEM.
 */
LS_MUST_USE int player_bytes(struct player *player, size_t i, const void **data,
                             size_t *size);

/* Of that the steps from `begin` on, n of them. Errors: as those, and LS_EPROTO
 * there are not so many, or n is 0. */
LS_MUST_USE int player_part(struct player *player, size_t i, size_t begin,
                            size_t n, const void **data, size_t *size);

/* Play whole episodes in one environment, each step as well as it can be. task,
 * played: as agent_episode() has them. Errors: its own. */
LS_MUST_USE int player_evaluate(struct agent *agent, size_t index,
                                size_t episodes, ls_task *task,
                                struct agent_played *played);

#endif
