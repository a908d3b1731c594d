/* agent_ops.h - a plugin's environments and policy, as a learner service and a
 * collector service use them.
 *
 * Thread: serial; ops are for those threads that learner_service.h and
 * collector_service.h say. */
#ifndef LOCKSTEP_AGENT_OPS_H
#define LOCKSTEP_AGENT_OPS_H

#include "agent.h"
#include "collector_service.h"
#include "learner_service.h"

struct agent_learner;
struct agent_collector;

/* For learner_service_options: self is a struct agent_learner. Priorities
 * become what the plugin's learn() says. */
extern const struct learner_ops agent_learner_ops;
/* For collector_service_options: self is a struct agent_collector. */
extern const struct collector_ops agent_collector_ops;

/* unroll_len: the longest trajectory that is learned from, in steps. n_stacks:
 * batches that may be ready at a time. plan, plugin: borrow, longer than this;
 * node_id, generation: see agent_init(). out:    own; written on success only;
 * give it to agent_learner_destroy(). Errors: those of agent_init(). */
LS_MUST_USE int agent_learner_create(struct agent_learner **out,
                                     const struct ls_plugin *plugin,
                                     const struct plan *plan, uint32_t node_id,
                                     unsigned generation, size_t unroll_len,
                                     size_t n_stacks);
void agent_learner_destroy(struct agent_learner **learner);

/* The plan's number of environments, taken in turn, and one for evaluations.
 * The rest as above. */
LS_MUST_USE int agent_collector_create(struct agent_collector **out,
                                       const struct ls_plugin *plugin,
                                       const struct plan *plan,
                                       uint32_t node_id, unsigned generation);
/* Let evaluations end between their steps when this task is cancelled. task:
 * borrow, as long as the service runs in it. */
void agent_collector_use(struct agent_collector *collector, ls_task *task);
void agent_collector_destroy(struct agent_collector **collector);

#endif
