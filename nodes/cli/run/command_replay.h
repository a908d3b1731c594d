/* command_replay.h - what `lockstep run` does for its recording. */
#ifndef LOCKSTEP_COMMAND_REPLAY_H
#define LOCKSTEP_COMMAND_REPLAY_H

#include "options.h"
#include "setup.h"
#include "tape.h"

/* Before a run that is recorded: whether it can be, and what is known of it.
 * out: give it to record_end(); nothing is owned after an error.
 * Errors: LS_ECONFIG the job cannot be replayed; those of tape_claim();
 *         LS_ENOMEM. */
struct recording {
    struct tape_about about;
    ls_file *claim; /* of the file, until it is written */
};
LS_MUST_USE int record_begin(struct recording *out,
                             const struct options *options,
                             const struct setup *setup);
/* After it: its nodes' parts become the recording. Returns the exit code. */
int record_end(struct recording *recording, const struct options *options,
               bool done, int exit_code);

/* Say on stderr in what the program is not the one that was recorded. */
void replay_compare(const struct tape *tape, const struct setup *setup);

#endif
