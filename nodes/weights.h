/* weights.h - the learned weights as a file.
 *
 * One msgpack map: format, plugin, plugin_version, seed, train_iter, env_step,
 * and weights, which is the value that the plugin's save() writes. The file is
 * whole or it is the one that was there before. */
#ifndef LOCKSTEP_WEIGHTS_H
#define LOCKSTEP_WEIGHTS_H

#include "agent.h"

struct weights_note {
    uint64_t seed;
    int64_t train_iter, env_step;
};

/* Write the agent's weights to folder/policy.msgpack, making the folder.
 * path:   size bytes; the file's path is written on success.
 * Errors: what the plugin's save returns; LS_EIO with the path and the
 *         system's reason; LS_ELIMIT the path is too long. */
LS_MUST_USE int weights_save(struct agent *agent,
                             const struct weights_note *note,
                             const char *folder, char *path, size_t size);

#endif
