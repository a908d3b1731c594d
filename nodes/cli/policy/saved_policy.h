/* saved_policy.h - the weights that a command is asked for: a file of weights,
 * or a run's folder, of which it is what was learned last.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_SAVED_POLICY_H
#define LOCKSTEP_SAVED_POLICY_H

#include "lockstep/file.h"

#include "options.h"
#include "setup.h"
#include "weights.h"

struct saved_policy {
    struct weights_file file;
    char path[LS_PATH_MAX];
};

/* Who acts by them, and has one environment: the first of an evaluator.
 * out:    written on success only; give it to agent_fini().
 * Errors: those of agent_init() and weights_use(). */
LS_MUST_USE int saved_policy_agent(struct agent *out, const struct setup *setup,
                                   const struct saved_policy *saved);

/* The whole of a command: open what options->policy names, set up its plugin as
 * the file says, or the configuration, if there is one, and do what the command
 * is for. The seed is that of the file, if none is given. Returns the exit
 * code; on failure everything has been said. */
int saved_policy_do(const struct options *options,
                    int (*fn)(const struct options *options,
                              const struct saved_policy *saved,
                              const struct setup *setup));

#endif
