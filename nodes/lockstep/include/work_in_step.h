/* work_in_step.h - the work of a node that goes in step with the others. */
#ifndef LOCKSTEP_WORK_IN_STEP_H
#define LOCKSTEP_WORK_IN_STEP_H

#include "work.h"

extern const struct work_kind work_in_step;

#endif
