/* saved_policy.h - the weights that a command is asked for: a file of weights,
 * or a run's folder, of which it is what was learned last.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_SAVED_POLICY_H
#define LOCKSTEP_SAVED_POLICY_H

#include "lockstep/file.h"

#include "weights.h"

struct saved_policy {
    struct weights_file file;
    char path[LS_PATH_MAX];
};

/* path:   of a file; of a run's folder, or of all runs of a job: then of the
 *         latest. Of policy and checkpoint there it is the one that is further.
 * out:    written on success only; give its file to weights_close().
 * Errors: LS_ENOENT there is no such file, or the run has kept none yet; those
 *         of weights_open() and run_folder_look(). */
LS_MUST_USE int saved_policy_open(struct saved_policy *out, const char *path);

#endif
