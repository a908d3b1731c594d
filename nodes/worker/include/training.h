/* training.h - a policy that learns, on the engine of lockstep/learner.h.
 *
 * A batch is what one iteration has brought. Loading it reads its trajectories
 * into the memory of a stack; a pass is one call of the policy's learn(). With
 * several devices each has a policy of its own, which learns from an equal
 * share. Up to learner.queue batches are under way when a call returns: with
 * none the caller waits for all passes over its batch; else it gets what came
 * of an earlier one, the same one in each run, and loading and training go on
 * while the next is collected. So what a run computes follows from its seed and
 * that number alone, however many stacks and loaders there are.
 *
 * A verdict on the weights of one batch comes while the next one is learned
 * from. So the weights before the last batch are kept, where there may be a
 * verdict on them, and training_revert() goes back to them.
 * Thread: owner, unless a function says otherwise. */
#ifndef TRAINING_H
#define TRAINING_H

#include "lockstep/context.h"
#include "lockstep/event.h"
#include "lockstep/group.h"
#include "lockstep/learner.h"

#include "agent.h"
#include "plan.h"
#include "weights.h"

struct training;

/* Start the engine as the plan says.
 * out:    own; written on success only; give it to training_stop().
 * agent:  borrow, until then; its policy is the engine's while it learns.
 * n:      trajectories in a batch, at most.
 * group:  borrow; of learners that share each batch, formed whenever one is
 *         learned from: this one has a part. NULL: it has all.
 * Errors: LS_ECONFIG several devices, and the policy learns on one, or n cannot
 *         be shared by them; those of ls_device_open() and ls_learner_create().
 */
LS_MUST_USE int training_start(struct training **out, ls_runtime *runtime,
                               const struct plan *plan, struct agent *agent,
                               uint32_t node_id, size_t n, ls_group *group);

/* The agent has other weights now, and all that learning goes on from: with
 * no batch under way. note: of them. Errors: those of the plugin's save. */
LS_MUST_USE int training_adopt(struct training *training,
                               const struct weights_note *note);

/* Learn from a batch; wait until the oldest under way is over, if more than
 * learner.queue are.
 * items:   moved, on success: empty then.
 * note:    of the weights after this batch.
 * info:    what was said of the one that is over is added.
 * is_over: whether one is; false also when this one was given up.
 * Errors:  LS_EPROTO what came is no such batch; what learn() fails with: with
 * a group everything is as before the batch then, and another one may be
 *          learned from; once it was given up, those of teacher_restore(). */
LS_MUST_USE int training_learn(struct training *training,
                               struct ls_items *items,
                               const struct weights_note *note,
                               ls_learner_info *info, bool *is_over);

/* Nobody needs what is learned after `update` of them: a batch that is being
 * learned from then, or will be, is given up, and the weights are those after
 * that update. No effect with learner.queue, where what is under way at the end
 * is given up anyway. Thread: any. */
void training_give_up(struct training *training, int64_t update);

/* Back to the weights before the batch that was over last: in
 * training_policy(), training_save(), and in the policy itself without
 * learner.queue. Only where the plan has an evaluator that may end the run by
 * these weights; once after each batch that was over.
 * Errors: those of teacher_restore(). */
LS_MUST_USE int training_revert(struct training *training);

/* How many batches are. */
size_t training_under_way(const struct training *training);

/* Run the policy's hooks before the first batch, and after the last one: then
 * what is under way is given up, and nothing is learned any more. The second is
 * done by training_stop() when nobody has.
 * note:   of the weights as they are.
 * Errors: the hooks'; those of the plugin's save. */
LS_MUST_USE int training_begin(struct training *training,
                               const struct weights_note *note);
LS_MUST_USE int training_end(struct training *training);

/* What others act by, after the batch that was over last. Borrow: until
 * training_learn(). */
const struct ls_bytes *training_policy(const struct training *training);

/* Write the weights after that batch to a file, with all that learning goes on
 * from. note: of them; with learner.queue that of the batch counts. Errors:
 * those of weights_save(). */
LS_MUST_USE int training_save(struct training *training,
                              const struct weights_note *note,
                              const char *folder, const char *name, char *path,
                              size_t size);

/* The same as a value of weights.h, and the batches that are under way after
 * it: with both, another one goes on as this one would, to the bit. Taken back
 * after training_begin(), with what was read of the first into the agent.
 * Errors: the plugin's save; LS_EPROTO they are none; those of
 * training_learn(). */
LS_MUST_USE int training_write(struct training *training,
                               const struct weights_note *note,
                               struct ls_bytes *out);
LS_MUST_USE int training_write_batches(struct training *training,
                                       struct ls_bytes *out);
LS_MUST_USE int training_take_batches(struct training *training,
                                      const struct ls_bytes *in);

/* Whether those weights are whole: false when a learn() has failed. */
bool training_is_whole(const struct training *training);

/* Look at the figures, and tell them to whoever listens to "learner.metrics":
 * as ls_learner_metrics_write() has them, with policy latest. node: started.
 * Errors: LS_ENOMEM; those of ls_emit_with(). */
LS_MUST_USE int training_publish(struct training *training, ls_node *node);

/* The figures of when they were published last; zeros before. Borrow. */
const struct ls_learner_counts *
training_counts(const struct training *training);

/* The same as they were told. data: borrow, until they are published again;
 * size: 0 before the first time. */
void training_published(const struct training *training, const void **data,
                        size_t *size);

/* NULL and a pointer to NULL are fine. */
void training_stop(struct training **training);

#endif
