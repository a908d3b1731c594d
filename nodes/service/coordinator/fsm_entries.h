/* fsm_entries.h - the tables of the journal's records.
 *
 * Each has "record" as well, which says of what kind it is. A later version may
 * say more: what is not known is passed over.
 * Thread: any. */
#ifndef LOCKSTEP_SERVICE_FSM_ENTRIES_H
#define LOCKSTEP_SERVICE_FSM_ENTRIES_H

#include "fsm_state.h"

struct work_entry {
    int64_t number, kind, attempt; /* kind: its number */
    int64_t held;                  /* 0, 1 */
    int64_t member;
    uint64_t incarnation;
    int64_t progress, done;
    int64_t closing; /* 0: no; else 1 + enum work_end */
    service_name policy_id, buffer_id;
};

/* A sample that was put into the buffer of a work, or is there. */
struct sample_entry {
    int64_t work;            /* its number */
    bool is_new;             /* it was put in then */
    int64_t part;            /* of the data */
    struct replay_item item; /* its sample: that of the whole data */
};
/* Some of its items, by what was done with them. */
struct item_entry {
    int64_t slot;
    uint64_t number;
    double priority; /* if they got one */
};
struct items_entry {
    int64_t work;
    struct item_entry *items;
    size_t n;
};
struct buffer_entry {
    int64_t work;
    struct replay_account account;
};

extern const struct ls_record fsm_figures_entry; /* of a fsm */
extern const struct ls_record fsm_end_entry;     /* of a fsm: its text */
extern const struct ls_record fsm_work_entry;    /* of a work_entry */
extern const struct ls_record fsm_over_entry;    /* of its number alone */
extern const struct ls_record fsm_sample_entry;  /* of a sample_entry */
extern const struct ls_record fsm_drawn_entry;   /* of an items_entry */
extern const struct ls_record fsm_weighed_entry; /* the same, with priorities */
extern const struct ls_record fsm_buffer_entry;  /* of a buffer_entry */

#endif
