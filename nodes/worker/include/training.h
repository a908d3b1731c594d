/* training.h - a policy that learns, on the engine of lockstep/learner.h.
 *
 * A batch is what one iteration has brought. Loading it reads its trajectories
 * into the memory of a stack; a pass is one call of the policy's learn(). The
 * caller waits for all passes over its batch: so what a run computes follows
 * from its seed alone, however many stacks and loaders there are. With several
 * devices each has a policy of its own, which learns from an equal share.
 * Thread: owner. */
#ifndef TRAINING_H
#define TRAINING_H

#include "lockstep/context.h"
#include "lockstep/event.h"
#include "lockstep/learner.h"

#include "agent.h"
#include "plan.h"

struct training;

/* Start the engine as the plan says.
 * out:    own; written on success only; give it to training_stop().
 * agent:  borrow, until then; its policy is the engine's while it learns.
 * n:      trajectories in a batch, at most.
 * Errors: LS_ECONFIG several devices, and the policy learns on one, or n cannot
 *         be shared by them; those of ls_device_open() and ls_learner_create().
 */
LS_MUST_USE int training_start(struct training **out, ls_runtime *runtime,
                               const struct plan *plan, struct agent *agent,
                               uint32_t node_id, size_t n);

/* Learn from a batch, with all passes. What learn() said is added to info.
 * items:  borrow, until it returns.
 * Errors: LS_EPROTO what came is no such batch; what learn() fails with. */
LS_MUST_USE int training_learn(struct training *training,
                               const struct ls_items *items,
                               ls_learner_info *info);

/* Whether the weights are whole: false when a learn() has failed. */
bool training_is_whole(const struct training *training);

/* Look at the figures, and tell them to whoever listens to "learner.metrics":
 * as ls_learner_metrics_write() has them, with policy latest. node: started.
 * Errors: LS_ENOMEM; those of ls_emit_with(). */
LS_MUST_USE int training_publish(struct training *training, ls_node *node);

/* The figures of when they were published last; zeros before. Borrow. */
const struct ls_learner_metrics *
training_metrics(const struct training *training);

/* The same as they were told. data: borrow, until they are published again;
 * size: 0 before the first time. */
void training_published(const struct training *training, const void **data,
                        size_t *size);

/* NULL and a pointer to NULL are fine. */
void training_stop(struct training **training);

#endif
