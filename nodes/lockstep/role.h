/* role.h - what each role does in an iteration.
 *
 * All begin an iteration with the weights of the one before, and work at the
 * same time:
 *   collector   collects by them, sends trajectories
 *   learner     waits for all trajectories, learns, sends the next weights
 *   evaluator   evaluates them; when they are good enough, everyone ends with
 *               this iteration
 * Before all of it, and whenever it is due, all nodes are saved together at the
 * end of an iteration: role_state.h.
 * A round (ls_task_round()) begins with the learner's weights, sent to all, so
 * that whoever comes later, or comes back, works with them too.
 *
 * The verdict on weights comes while the next ones are learned. So the
 * iteration in which a run ends is discarded on all nodes, weights and
 * counters: what a run comes to is what was evaluated last. Where an end is
 * known before it, at the learner's limits of steps and time, nothing is
 * collected or learned in this last iteration, and there is nothing to discard.
 * A learner in the middle of learn() is told of a verdict by an event, and
 * gives up. So what a run comes to follows from its seed alone, though not how
 * far it was in what it has discarded. */
#ifndef LOCKSTEP_ROLE_H
#define LOCKSTEP_ROLE_H

#include "lockstep/barrier.h"
#include "lockstep/group.h"
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
    ls_group *group;              /* own, alike; NULL: it learns alone */
    int64_t started_at;           /* the first iteration; 0: not yet */
    ls_task *task;                /* borrow; after role_use() */
    struct ls_middleware welcome; /* the exchange that begins a round */
    uint64_t round;               /* the last one that was begun */
    unsigned generation;          /* how often the node was started before */
    struct role_state state;      /* what is saved of it; all but members */
    struct weights_note resumed;  /* where the learner goes on */
    bool has_begun;               /* to train */
    struct weights_note before;   /* the counters as this iteration began */
    bool is_last;      /* nothing is collected or learned any more: the run ends
                        * with this iteration */
    bool has_ended;    /* the run, well: its last iteration is discarded */
    int64_t discarded; /* env steps of the last iteration, when it had any */
    bool hears_verdicts;
    struct ls_bytes first; /* own; an evaluator's environment as it began */
    bool learned;          /* the weights are worth keeping */
    char weights[REPORT_PATH_MAX];    /* where they were written, or "" */
    char unsaved[REPORT_UNSAVED_MAX]; /* why they could not be, or "" */
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

/* Before the task is run, and after: what the role runs beside it. Between
 * role_use() and the start of the node.
 * Errors: those of training_start() and of ls_on(). */
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
/* The finish hook of all but the learner: the iteration in which the run has
 * ended is discarded. */
int role_end(void *role, ls_task *task, int status);
/* The learner's: that, and writes the weights. */
int role_save_weights(void *role, ls_task *task, int status);
/* Nothing is learned any more: the task has ended well and is not run again. It
 * is, when a node is lost while another step ends. Errors: the policy's hooks'.
 */
LS_MUST_USE int role_end_training(struct role *role);
/* How many iterations are behind the weights and counters as they are. */
int64_t role_iterations(const struct role *role);
/* Of these. */
struct weights_note role_note(const struct role *role);

/* From the evaluator, to a learner that learns from what nobody will need: the
 * weights after so many updates, one msgpack integer, end the run. The barrier
 * says it too, which is what counts. A run that is recorded, or replayed, does
 * without: when it comes depends on nothing that is recorded. */
#define ROLE_VERDICT "lockstep.verdict"
LS_MUST_USE int role_hear_verdicts(struct role *role);
void role_hear_no_verdicts(struct role *role);

/* Of learners that share each batch; without effect in others.
 * Errors: those of ls_group_create(). */
LS_MUST_USE int role_group_create(struct role *role);
void role_group_destroy(struct role *role);
/* All have the weights and counters of the first. Errors: those of
 * ls_group_form() and of an operation. */
LS_MUST_USE int role_group_begin_round(struct role *role);
/* n: in: how many trajectories this one has to learn from; out: the least that
 * any has. Errors: LS_EMISMATCH their weights differ; those of an operation. */
LS_MUST_USE int role_group_meet(struct role *role, size_t *n);
/* Its run is broken: nobody is to wait for it. LS_OK: it is not. */
void role_group_leave(struct role *role, int status);

#endif
