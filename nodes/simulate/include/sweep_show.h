/* sweep_show.h - what a sweep came to, for people and for programs.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_SWEEP_SHOW_H
#define LOCKSTEP_SWEEP_SHOW_H

#include "plan.h"
#include "sweep.h"

struct sweep_shown {
    const struct plan *plan; /* borrow; as the others */
    const struct sweep_result *result;
    const char *faults; /* their name */
    uint64_t first;     /* seed */
    bool coverage;      /* also which transitions were taken, and which never */
    int signal;         /* that ended it before its last seed; 0: none */
};

/* On stdout. */
void sweep_print(const struct sweep_shown *shown);
/* One JSON object. Errors: LS_ENOMEM. */
LS_MUST_USE int sweep_print_json(const struct sweep_shown *shown);

#endif
