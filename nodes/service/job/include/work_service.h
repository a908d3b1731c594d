/* work_service.h - the work of the nodes of a service job, and what a run of it
 * leaves in its folder. */
#ifndef LOCKSTEP_WORK_SERVICE_H
#define LOCKSTEP_WORK_SERVICE_H

#include "work.h"

extern const struct work_kind work_coordinator;
extern const struct work_kind work_learner;
extern const struct work_kind work_collector;

/* Remove the policies and the data that are left in the folders of the run.
 * Errors: those of store_files.h. */
LS_MUST_USE int service_node_clear(const struct plan *plan);
/* And the journal: the run has come to its end, and no life of the coordinator
 * follows that would have to know. Errors: the same; LS_ELIMIT. */
LS_MUST_USE int service_node_end(const struct plan *plan);

#endif
