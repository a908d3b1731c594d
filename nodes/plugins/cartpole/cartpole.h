/* cartpole.h - what plugin.c puts in the table. */
#ifndef CARTPOLE_H
#define CARTPOLE_H

#include "lockstep/plugin.h"
#include "lockstep/random.h"

/* A pole on a cart, to be kept upright by pushing left (0) or right (1).
 * `env:` may say max_steps. */
extern const struct ls_env_ops cartpole_env;

/* Proximal policy optimisation for any environment with n_choices. `policy:`
 * may say what README.md lists. */
extern const struct ls_policy_ops cartpole_policy;

/* A generator as a value, and back. Errors of the second: LS_EPROTO. */
int generator_save(const struct ls_rng *rng, ls_writer *out);
int generator_load(struct ls_rng *rng, const ls_value *in);

#endif
