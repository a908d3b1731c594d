/* role.h - what each role does in an iteration.
 *
 * An iteration is one collect, one learn and one evaluation, in step:
 *   collector   receives the weights of the iteration before, collects, sends
 *               trajectories
 *   learner     waits for all trajectories, learns, sends the weights
 *   evaluator   receives these very weights, evaluates; when they are good
 *               enough, everyone ends with this iteration
 * Before all of it, and whenever it is due, all nodes are saved together at the
 * end of an iteration: role_state.h.
 * A round (ls_task_round()) begins with the learner's weights, sent to all, so
 * that whoever comes later, or comes back, works with them too.
 * So what a run computes follows from its seed alone, and the weights that the
 * learner holds at the end are those that were evaluated last. */
#ifndef LOCKSTEP_ROLE_H
#define LOCKSTEP_ROLE_H

#include "lockstep/barrier.h"
#include "lockstep/middleware.h"
#include "lockstep/task.h"

#include "agent.h"
#include "node_watch.h"
#include "plan.h"
#include "player.h"
#include "report.h"
#include "role_member.h"
#include "role_state.h"
#include "training.h"
#include "weights.h"

/* What a role's steps share. The node that runs it owns all of this. */
struct role {
    const struct plan *plan; /* borrow */
    size_t index;            /* of the node in the plan */
    struct agent agent;      /* all but members */
    struct member *member;   /* own; members only */
    struct report_sink sink;
    struct player *player;        /* own; collectors, from role_start() on */
    struct training *training;    /* own; learners, from role_start() on */
    int64_t started_at;           /* the first iteration */
    ls_task *task;                /* borrow; after role_use() */
    struct ls_middleware welcome; /* the exchange that begins a round */
    uint64_t round;               /* the last one that was begun */
    unsigned generation;          /* how often the node was started before */
    struct role_state state;      /* what is saved of it; all but members */
    struct weights_note resumed;  /* where the learner goes on */
    bool has_begun;               /* to train */
    struct ls_bytes first; /* own; an evaluator's environment as it began */
    bool learned;          /* the weights are worth keeping */
    char weights[REPORT_PATH_MAX]; /* where they were written, or "" */
};

/* generation: how often the node was started before.
 * plugin: borrow; not looked at for members. watch: copied.
 * out: written on success only; give it to role_fini().
 * Errors: LS_ENOMEM; what the plugin's init returns. */
LS_MUST_USE int role_init(struct role *out, const struct plan *plan,
                          size_t index, unsigned generation,
                          const struct ls_plugin *plugin,
                          struct report_sink sink, struct node_watch watch);
void role_fini(struct role *role);

/* Before the task is run, and after: what the role runs beside it.
 * Errors: those of training_start(). */
LS_MUST_USE int role_start(struct role *role, ls_runtime *runtime);
void role_stop(struct role *role);

/* Fill a task with the pipeline of the role; the first error is kept by the
 * task and returned by ls_task_run(). role: borrow, longer than the task.
 * calls: borrow; those of the node. */
void role_use(struct role *role, ls_task *task, ls_rpc *calls);

/* Fill a record in with the counters of the task, which may be NULL. */
void role_fill(const struct role *role, ls_task *task, struct report *out);

/* The steps. */
ls_step_fn role_welcome;
ls_step_fn role_collect;
ls_step_fn role_learn;
ls_step_fn role_evaluate;
/* The learner's finish hook: writes the weights. */
int role_save_weights(void *role, ls_task *task, int status);

#endif
