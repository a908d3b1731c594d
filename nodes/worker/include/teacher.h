/* teacher.h - a plugin's policy that learns: what an engine of
 * lockstep/learner.h does with a batch of trajectories, whoever brings them.
 *
 * Loading reads the trajectories into the memory of a stack, each device its
 * share; a pass is one call of the policy's learn(). With several devices each
 * has a state of the policy of its own. Both kinds of job learn by it.
 * Thread: as the functions say; what an engine calls, by its rules. */
#ifndef TEACHER_H
#define TEACHER_H

#include "lockstep/learner.h"

#include "agent.h"

struct teacher;

struct teacher_options {
    struct agent *agent; /* borrow; with a replica for each device more */
    const char *const *devices; /* borrow; n_devices names */
    size_t n_devices;           /* >= 1 */
    size_t stacks;
    size_t n;         /* trajectories in a batch, at most */
    size_t steps;     /* in a trajectory, at most */
    ls_group *group;  /* borrow; of learners that share each batch, with one
                       * device each; formed whenever learn() runs. NULL: this
                       * one has all of it */
    bool is_shared;   /* such a group comes later: teacher_set_group() */
    uint32_t node_id; /* for the log */
    /* Handed to learn(). Once true, it stays true until teacher_restore().
     * NULL: never. Thread: any. */
    bool (*is_given_up)(const void *self);
    const void *self; /* borrow */
};

/* Open the devices and make room.
 * out:    own; NULL after an error; give it to teacher_destroy(), after the
 *         engine.
 * Errors: LS_ECONFIG several devices, and the policy learns on one, or n cannot
 *         be shared by them; those of ls_device_open(); LS_ENOMEM. */
LS_MUST_USE int teacher_create(struct teacher **out, ls_runtime *runtime,
                               const struct teacher_options *options);
void teacher_destroy(struct teacher **teacher);

/* With whom it learns from here on; NULL: alone. While no engine runs. */
void teacher_set_group(struct teacher *teacher, ls_group *group);

/* What an engine needs for its stacks: devices, n_devices, part_bytes and
 * batch_size are set. Borrow: as long as the teacher. */
void teacher_set_options(struct teacher *teacher,
                         struct ls_learner_options *options);

/* One trajectory as bytes. */
struct teacher_piece {
    const char *name; /* for messages; NULL: its number */
    const void *data;
    size_t size;
    size_t n; /* steps that it has; 0: however many */
};

/* On a loader: bring this device's share of n pieces.
 * Errors: LS_EPROTO it is not a trajectory of this shape, or has not so many
 *         steps;
 *         more than there is room for, or than devices can share. */
LS_MUST_USE int teacher_load(struct teacher *teacher,
                             const struct ls_learner_place *place,
                             const struct teacher_piece *pieces, size_t n);

/* On the device's thread: a pass over what was loaded. In the first one the
 * policy's hooks before the iteration run before it.
 * iter:       the number of the iteration, from 0.
 * info:       what was said is added.
 * priorities: one for each piece of the batch; those of this share that
 *             learn() says something about are set. NULL: nobody asks.
 * Errors:     the plugin's; LS_EHANDLER a td_error is infinite. LS_OK when it
 *             is given up, whatever came of it. */
LS_MUST_USE int teacher_learn(struct teacher *teacher,
                              const struct ls_learner_place *place,
                              unsigned pass, int64_t iter,
                              ls_learner_info *info, double *priorities);

/* Run the policy's hooks at a position, for every state, while nothing learns.
 * info: what was said is added; NULL: nobody asks. */
LS_MUST_USE int teacher_hooks(struct teacher *teacher,
                              enum ls_hook_position position, int64_t iter,
                              ls_learner_info *info);

/* Whether the weights are whole: false when a learn() has failed, or was given
 * up. */
bool teacher_is_whole(const struct teacher *teacher);

/* Put all states of the policy back to what was kept, as agent_save() and
 * agent_save_training() have it, while nothing learns: they are whole again.
 * Errors: those of agent_load(), agent_load_training() and
 *         agent_align_replicas(). */
LS_MUST_USE int teacher_restore(struct teacher *teacher,
                                const struct ls_bytes *policy,
                                const struct ls_bytes *training);

#endif
