/* weights.h - the learned weights as a file.
 *
 * An entry of a vault (lockstep/vault.h), so it is whole, or the one that was
 * there before. Its value, at the beginning of the file, is one msgpack map:
 * format, plugin, plugin_version, seed, iteration, train_iter, env_step,
 * env_episode; env and policy, the plugin's sections as they were; weights,
 * which is what the plugin's save() writes; and for who learned, training: a
 * map of the policy's other parts. Source: docs/state.md. */
#ifndef LOCKSTEP_WEIGHTS_H
#define LOCKSTEP_WEIGHTS_H

#include "agent.h"

/* In the run's folder: what it has come to, and how far it was. */
#define WEIGHTS_FINAL      "policy.msgpack"
#define WEIGHTS_CHECKPOINT "checkpoint.msgpack"

struct weights_note {
    uint64_t seed;
    int64_t iteration, train_iter, env_step, env_episode;
};

/* Write the agent's weights as that value.
 * learned: its policy is the one that learned, so all that learning goes on
 *         from is written as well.
 * Errors: what the plugin's save returns. */
LS_MUST_USE int weights_write(const struct agent *agent,
                              const struct weights_note *note, bool learned,
                              ls_writer *out);

/* Write such a value to folder/name, making the folder.
 * path:   size bytes; the file's path is written on success.
 * Errors: LS_EIO with the path and the system's reason; LS_ELIMIT the path is
 *         too long. */
LS_MUST_USE int weights_put(const void *data, size_t bytes, const char *folder,
                            const char *name, char *path, size_t size);
/* Both. */
LS_MUST_USE int weights_save(struct agent *agent,
                             const struct weights_note *note, bool learned,
                             const char *folder, const char *name, char *path,
                             size_t size);

/* Read them back into the agent's policy, with what learning goes on from where
 * that was written.
 * Errors: LS_ENOENT there is no such file; LS_EPROTO it is damaged, or none of
 * this format; LS_EMISMATCH it is of another plugin or seed; LS_EIO; LS_ELIMIT;
 * what the plugin's load returns; LS_ENOMEM. */
LS_MUST_USE int weights_load(struct agent *agent, uint64_t seed,
                             const char *folder, const char *name,
                             struct weights_note *out);

/* The same from a value that weights_write() has written. Errors: as those, but
 * for the file's. */
LS_MUST_USE int weights_take(struct agent *agent, ls_document *document,
                             uint64_t seed, struct weights_note *out);
/* For reading such a value. */
extern const struct ls_codec_limits weights_limits;

/* What such a file says. Borrow: until weights_close(). */
struct weights_file {
    ls_document *document;               /* own */
    const char *plugin, *plugin_version; /* of any origin */
    struct weights_note note;
    const ls_value *weights;
    /* NULL: it has none; sections of a file of an earlier version, too. */
    const ls_value *env, *policy, *training;
};

/* out:    written on success only; give it to weights_close().
 * Errors: LS_ENOENT there is no such file; LS_EPROTO it is damaged, or none of
 *         this format; LS_EINVAL the name is not an entry's; LS_EIO; LS_ELIMIT;
 *         LS_ENOMEM. */
LS_MUST_USE int weights_open(struct weights_file *out, const char *folder,
                             const char *name);
void weights_close(struct weights_file *file);
/* Whether it says its plugin by a name: a path could be of any file, and a file
 * of data must not choose what is run. */
bool weights_names_plugin(const struct weights_file *file);
/* Have the agent act by it. Errors: LS_EMISMATCH it is of another plugin; what
 * the plugin's load returns, and the policy acts as before. */
LS_MUST_USE int weights_use(struct agent *agent,
                            const struct weights_file *file);

/* Where such a file is, into size bytes; "" when there is none. */
void weights_find(const char *folder, const char *name, char *path,
                  size_t size);

/* Remove what a learner was writing when it was killed. */
void weights_tidy(const char *folder);

/* Remove such a file, if it is there. */
void weights_remove(const char *folder, const char *name);

#endif
