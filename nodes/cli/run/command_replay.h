/* command_replay.h - what `lockstep run` does for its recording. */
#ifndef LOCKSTEP_COMMAND_REPLAY_H
#define LOCKSTEP_COMMAND_REPLAY_H

#include "options.h"
#include "setup.h"
#include "tape.h"

/* Before a run that is recorded: whether it can be, and what is known of it.
 * out: give it to tape_about_clear(); nothing is owned after an error.
 * Errors: LS_ECONFIG the job cannot be replayed; LS_EIO; LS_ENOMEM. */
LS_MUST_USE int record_begin(struct tape_about *out,
                             const struct options *options,
                             const struct setup *setup);
/* After it: its nodes' parts become the recording. Returns the exit code. */
int record_end(struct tape_about *about, const struct options *options,
               bool done, int exit_code);

/* Say on stderr in what the program is not the one that was recorded. */
void replay_compare(const struct tape *tape, const struct setup *setup);

#endif
