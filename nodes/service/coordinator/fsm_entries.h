/* fsm_entries.h - the tables of the journal's records.
 *
 * Each has "record" as well, which says of what kind it is. A later version may
 * say more: what is not known is passed over.
 * Thread: any. */
#ifndef LOCKSTEP_SERVICE_FSM_ENTRIES_H
#define LOCKSTEP_SERVICE_FSM_ENTRIES_H

#include "fsm_state.h"

struct work_entry {
    int64_t number, kind, attempt;
    int64_t held; /* 0, 1 */
    int64_t member;
    uint64_t incarnation;
    int64_t progress, done;
    int64_t closing; /* 0: no; else 1 + enum work_end */
    service_name policy_id, buffer_id;
};

extern const struct ls_record fsm_figures_entry; /* of a fsm */
extern const struct ls_record fsm_end_entry;     /* of a fsm: its text */
extern const struct ls_record fsm_work_entry;    /* of a work_entry */
extern const struct ls_record fsm_over_entry;    /* of its number alone */

#endif
