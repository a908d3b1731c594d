/* role_state.h - what is saved of a node that goes in step, and the step that
 * saves it: lockstep/checkpoint_step.h.
 *
 *   all         counters, last_eval
 *   collector   environments, with their episodes and shares of chance
 *   evaluator   environments
 *   learner     weights: the value of weights.h, with all that learning goes on
 *               from; batches, if some may be under way
 * The learner leads: its run's folder has the checkpoints of all. Thread: that
 * of the task, but where it says otherwise. */
#ifndef LOCKSTEP_ROLE_STATE_H
#define LOCKSTEP_ROLE_STATE_H

#include "lockstep/checkpoint_step.h"

struct role;

#define ROLE_COUNTERS 5

/* A blob of any size, as it was encoded last, or loaded. */
struct role_bytes {
    struct ls_bytes bytes; /* own */
};

struct role_state {
    ls_blobs *blobs;                 /* own */
    ls_checkpoint_step *step;        /* borrow: of the task */
    int64_t counters[ROLE_COUNTERS]; /* iteration, train_iter, env_step,
                                      * env_episode, last_eval_iter */
    double last_eval;
    int64_t steps, episodes; /* a collector's, beyond what its context counts:
                              * it tells the learner how that grows */
    struct role_bytes environments, weights, batches;
    ls_writer *writer;           /* own */
    void (*granted)(void *self); /* a save that was asked for is over */
    void *granted_self;
};

/* Use the step, before the barrier. role: with its agent, and what runs beside
 * it once the task runs. The first error is kept by the task. */
void role_use_state(struct role *role, ls_task *task, ls_rpc *calls);
void role_state_fini(struct role *role);
/* The learner, after so many updates: where the best are kept, weights that
 * will be evaluated are saved. */
void role_ask_save(struct role *role, int64_t updates);
/* An evaluator: what it has found of the weights that this iteration began
 * with, which are those of its epoch. */
LS_MUST_USE int role_judge(struct role *role);
/* The same of the state in which the run ends, if it was evaluated. */
LS_MUST_USE int role_judge_end(struct role *role);
/* The learner goes on with what was loaded, if anything was: what
 * training_begin() begins with. */
LS_MUST_USE int role_begin_training(struct role *role);

#endif
