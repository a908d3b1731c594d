/* learner_service.h - a learner that takes its works from a coordinator.
 *
 * It serves "resource" and the four learner calls of messages.h, for one work
 * at a time, and gives a task its steps:
 *   await work    until one is held: then it takes the last committed policy
 *                 and what its training goes on from, or commits its first
 *                 one as version 0
 *   learn         until a batch that the coordinator has brought was trained
 *   after         hooks; the answer of the learn call. After the last iteration
 *                 the open get_data call is answered as done
 * Batches go through the engine of lockstep/learner.h, one for each work: its
 * loaders fetch and read their data, its learner thread trains them, one after
 * the other, and writes down the weights that are to be committed; meanwhile
 * the task commits and answers what came of those before. As many batches are
 * on their way as there are stacks, and `queue` more that wait for one. A work
 * that fails (the plugin's functions, a policy that cannot be written) is given
 * back: its open calls fail with the text, and the learner serves the next one.
 * Data that cannot be got fails the learn call alone: the iteration is not
 * done, and another batch is asked for. When a work is closed, its open calls
 * fail at once, and the close is answered when nothing of the work is under way
 * any more. When its coordinator is lost, the learner keeps the work, ends the
 * iteration that is under way, and goes on when the next one calls.
 * A work may be for several learners, its ranks. The first of them holds it and
 * does all of the above; it asks the others, by "rank_start_task", to learn
 * with it, each from its share of each batch, and checks that their weights are
 * equal whenever it commits some. What ends that for one of them gives the work
 * back. Thread: any, unless a function says otherwise. Source:
 * docs/services.md. */
#ifndef LOCKSTEP_LEARNER_SERVICE_H
#define LOCKSTEP_LEARNER_SERVICE_H

#include "lockstep/call.h"
#include "lockstep/context.h"
#include "lockstep/group.h"
#include "lockstep/learner.h"
#include "lockstep/plugin.h"
#include "lockstep/task.h"

#include "messages.h"
#include "priority_hooks.h"
#include "service_options.h"

typedef struct learner_service learner_service;

/* One sample of a batch with its data. Borrow: for the call. */
struct learner_sample {
    const struct sample *sample;
    const void *data;
    size_t size;
};

/* A pass over a batch, on one device. Borrow: for the call. */
struct learner_lesson {
    const struct ls_learner_place *place;
    unsigned pass; /* 0: the first one */
    int64_t iter;  /* of the work, from 0 */
    const struct learner_sample *samples;
    size_t n;
    ls_learner_info *info; /* for what there is to say */
    double *priorities;    /* n of them, finite and >= 0; set to what they
                            * were */
};

/* What it does its work with. reset, load and the first save are called by the
 * task's thread before the engine runs, and so is what they do of the training;
 * learn and save by its learner thread; read by its loaders. Errors: any status
 * with its text. */
struct learner_ops {
    /* A work begins: back to the first weights. */
    int (*reset)(void *self);
    int (*load)(void *self, const struct ls_bytes *weights);
    int (*save)(void *self, struct ls_bytes *out);
    /* All else that learning goes on from: before load, and after save. Both
     * NULL: there is nothing. LS_EPROTO and LS_EMISMATCH of the first: another
     * reset follows, and load alone. */
    int (*load_training)(void *self, const struct ls_bytes *training);
    int (*save_training)(void *self, struct ls_bytes *out);
    /* What the engine's stacks are to be: devices and what goes with them.
     * NULL: it needs none. */
    void (*set_options)(void *self, struct ls_learner_options *options);
    /* With whom it learns from here on: learn() changes the weights by nothing
     * but what is the same in all ranks. NULL: alone. By the task's thread,
     * while no engine runs. NULL: it never learns with others. */
    void (*set_group)(void *self, ls_group *group);
    /* Make ready in a stack what is to be learned from; several stacks may be
     * read into at the same time. After that of the last device the samples
     * have no data any more. An error fails this batch alone. NULL: there is
     * nothing to be made ready. */
    int (*read)(void *self, const struct ls_learner_place *place,
                const struct learner_sample *samples, size_t n);
    /* Improve the weights by a pass over it; for each device on a thread of its
     * own. An error gives the work back. */
    int (*learn)(void *self, const struct learner_lesson *lesson);
    /* What is to be done beside, while nothing learns: iter is that of the
     * iteration, or of the last one. NULL: nothing. An error is as that of
     * learn. */
    int (*beside)(void *self, enum ls_hook_position position, int64_t iter,
                  ls_learner_info *info);
};

struct learner_service_options {
    struct service_options common;
    const struct learner_ops *ops; /* borrow, longer than the service */
    void *self;                    /* for ops */
    /* As lockstep/learner.h has them. */
    size_t queue;    /* batches that wait for a stack */
    size_t stacks;   /* 0: 1 */
    size_t loaders;  /* 0: the learner thread loads, and nothing overlaps */
    unsigned passes; /* over each batch; 0: 1 */
};

/* Serve the calls. A work may come from then on; it begins when the task runs.
 * out:     own; written on success only; give it to learner_service_destroy().
 * options: copied.
 * Errors: LS_EEXIST the node has a service already; those of
 *         ls_node_on_member() and ls_thread_spawn(); LS_ENOMEM: some calls may
 *         be served by then, so close them at once. */
LS_MUST_USE int
learner_service_create(learner_service **out,
                       const struct learner_service_options *options);
/* After the task and ls_rpc_close(), before the node and the store. */
void learner_service_destroy(learner_service **service);

/* Add the steps to a task; its first error is kept by the task. One task at a
 * time. A run ends when it is finished or cancelled; with LS_ELOST when the
 * coordinator was lost for longer than patience_ms, or when this node itself
 * was taken for dead and has rejoined: it may be run again then. When a run
 * ends, the work is given up, and calls are refused until the next run.
 * service: borrow, longer than the task. */
void learner_service_use(learner_service *service, ls_task *task);

/* Hooks ------------------------------------------------------------------ */

/* Its own are "send policy" at 100, in before_run and after_iter: it commits
 * the weights, in after_iter when send_policy_freq divides last_iter; and "send
 * info" at 1 in after_run: the last one. The answer of an iteration has an info
 * when send_info_freq divides last_iter. An error of a hook gives the work
 * back. Those of before_iter run on the thread that learns, right before it
 * does; all others on the task's thread. hook: copied. Before the task runs.
 * Errors: those of priority_hooks_add(). */
LS_MUST_USE int learner_service_hook(learner_service *service,
                                     const struct hook *hook);

/* Figures ---------------------------------------------------------------- */

struct learner_figures {
    struct service_figures common;
    int64_t iterations; /* of all works */
    int64_t infos, commits;
    int64_t policy_only;      /* works taken over with the policy alone, since
                               * nothing of its training was there */
    int64_t wait_ns;          /* of the learner thread, for batches */
    int64_t load_ns;          /* of all loaders: data got, and read */
    int64_t train_ns;         /* learn(), its hooks, and the policy as bytes */
    int64_t overlap_ns;       /* of load_ns: while another one trained */
    struct learner_info info; /* values: of the last iteration; n_values 0:
                               * there was none */
};
void learner_service_figures(learner_service *service,
                             struct learner_figures *out);

#endif
