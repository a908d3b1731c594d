/* cartpole.h - what plugin.c puts in the table. */
#ifndef CARTPOLE_H
#define CARTPOLE_H

#include "lockstep/plugin.h"

/* A pole on a cart, to be kept upright by pushing left (0) or right (1).
 * `env:` may say max_steps. */
extern const struct ls_env_ops cartpole_env;

/* Proximal policy optimisation for any environment with n_choices. `policy:`
 * may say what README.md lists. */
extern const struct ls_policy_ops cartpole_policy;

#endif
