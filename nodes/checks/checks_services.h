/* checks_services.h - what the checks of a service cluster share.
 *
 * They keep books of their own, from what the coordinator's state machine says
 * and is told and from what members do: which attempts of which works were
 * given out, which calls are open, which data is in use. A promise that is
 * broken shows as an entry that does not fit. */
#ifndef LOCKSTEP_CHECKS_SERVICES_H
#define LOCKSTEP_CHECKS_SERVICES_H

#include "fsm.h"
#include "service_watch.h"

#include "checks_kind.h"

#define CHECKS_LOST_MAX 64

struct service_life {
    struct check_life *life;
    struct service_watch watch;
    bool holds; /* a work: */
    struct work_key held;
    bool assists; /* another, which holds this one: */
    struct work_key assisted;
    int64_t base;       /* what it loaded for it first; -1: nothing */
    int64_t loading_at; /* it began to load */

    /* Of a coordinator. */
    bool open;
    bool done; /* its state machine said so: */
    int done_status;
    uint64_t announced; /* answers with a sample */
    /* Those that it was told to be lost since it acted last: it hears of
     * several before it does what follows from the first. */
    uint32_t lost[CHECKS_LOST_MAX];
    size_t n_lost;
    bool acts;
};

/* Where an attempt stands. */
enum given_state {
    GIVEN_ASKED,   /* its start is under way */
    GIVEN_REFUSED, /* it was not begun, and may be given to another */
    GIVEN_RUNNING,
    GIVEN_BROKEN, /* its member was lost or does not hold it, or one of its
                   * calls ended in another way than by an answer */
    GIVEN_CLOSED
};

/* An attempt of a work that was given out. */
struct given {
    struct work_key key;
    uint32_t to;
    bool learns;
    size_t n_ranks; /* of a learner's: who does it, `to` first; 0: it alone */
    int64_t ranks[SERVICE_RANKS_MAX];
    bool lacks_one;     /* a rank was lost while it ran, so it is closed */
    int64_t iterations; /* of a learner's; 0: until it is closed */
    int64_t informs;    /* each so many of them */
    bool repeats; /* not each iteration is committed, so some are done again */
    enum given_state state;
    const struct service_life *by;    /* the coordinator's life */
    const struct service_life *taker; /* who began it; NULL: nobody has */
    service_name policy_id;
    int64_t committed; /* the last version, of it or of those before it when
                        * it began; -1: none */
    struct given *previous;
};

/* A call that has not ended. */
struct checked_call {
    uint64_t number;
    const struct service_life *by;
    uint32_t to;
    service_name name;
    struct work_key key; /* "": it is about none */
    int64_t began_at, wait_ns;
    bool cancelled;
    struct learner_batch batch; /* own; of learn calls */
    service_name robbed;        /* data of it that was dropped; "": none */
    struct checked_call *previous;
};

/* Data that is in the store: announced, and not dropped. */
struct stored {
    service_name data_id;
    const struct service_life *by; /* the coordinator that it was told to */
    uint64_t draws, most;          /* of all its parts; most: 0: any */
    struct stored *previous;
};

/* The newest version of a policy that a put had brought by then. */
struct commit {
    service_name policy_id;
    int64_t attempt, version, at;
    uint64_t training; /* a hash of what lies beside it; 0: nothing does */
    struct commit *previous;
};

/* The weights of the ranks of a work after an iteration. */
struct step {
    struct work_key key;
    int64_t iter;
    uint64_t weights; /* a hash */
    uint32_t by;      /* who came first */
    struct step *previous;
};

struct service_checks {
    bool begun;                 /* a coordinator has opened */
    struct given *given;        /* own; the latest first */
    struct checked_call *calls; /* own; the latest first */
    struct stored *stored;      /* own; the latest first */
    struct commit *commits;     /* own; the latest first */
    struct step *steps;         /* own; the latest first */
    int64_t learner_step;       /* of the last info */
    int64_t n_infos;
    bool is_learned;        /* the last info was there */
    const void *learned_by; /* borrow; the life of the coordinator that got it:
                             * if it could not write that, the next gets it */
    bool is_whole; /* no coordinator but the first, and no attempt but the
                    * first of the learner work */
};

void checks_break(const checks *checks, const char *name, const char *format,
                  ...) LS_PRINTF(3, 4);

/* The books. checks_works.c: attempts */
struct given *checks_find_given(const checks *checks,
                                const struct work_key *key);
void checks_note_start(struct service_life *by, const struct checked_call *call,
                       const struct fsm_action *action);
/* What a later life of the coordinator goes on with is its own; how the start
 * ended that the earlier one made, that did not hear. */
void checks_take_over(struct service_life *by, const struct work_key *key);
/* How a call for it ended. */
void checks_note_fate(const struct checked_call *call,
                      enum ls_call_state state);
/* A node does not hold what it was given, but for `held`; NULL: nothing. */
void checks_note_lost(struct service_life *by, uint32_t id,
                      const struct work_key *held);
void checks_on_began(void *self, const struct work_key *key);
void checks_on_work_ended(void *self, const struct work_key *key);
void checks_on_joined(void *self, const struct work_key *key);
void checks_on_parted(void *self, const struct work_key *key);
/* Each attempt is done, closed, or given up. */
void checks_finish_works(struct service_life *by);

/* checks_calls.c */
void checks_on_member_told(void *self, uint32_t id, uint64_t incarnation,
                           bool ready);
bool checks_call_is(const struct checked_call *call, const char *name);
/* Whether it is a task of a work that begins it, or ends it. */
bool checks_call_is_in(const struct checked_call *call,
                       enum ls_job_phase phase);
void checks_on_action(void *self, const struct fsm_action *action);
void checks_on_call_ended(void *self, uint64_t number,
                          const struct ls_call_result *result);
void checks_look_at_calls(checks *checks);
void checks_finish_calls(struct service_life *by);
void checks_forget_call(struct service_checks *books,
                        struct checked_call *call);

/* checks_samples.c */
void checks_note_sample(struct service_life *by, const struct sample *sample);
void checks_note_batch(struct service_life *by,
                       const struct checked_call *call);
void checks_note_drop(struct service_life *by, const char *data_id);
void checks_judge_batch(const struct checked_call *call,
                        enum ls_call_state state);
void checks_finish_samples(struct service_life *by,
                           const struct fsm_figures *figures);

/* checks_policies.c */
void checks_on_committed(void *self, const struct work_key *key,
                         const char *policy_id,
                         const struct policy_value *value,
                         const struct ls_bytes *training);
void checks_on_stepped(void *self, const struct work_key *key, int64_t iter,
                       uint64_t weights);
void checks_on_loading(void *self);
void checks_on_loaded(void *self, const struct work_key *key,
                      const char *policy_id, const struct policy_value *value,
                      const struct ls_bytes *training);
/* That was committed; -1: none. */
int64_t checks_newest_version(const checks *checks, const char *policy_id);
void checks_note_info(struct service_life *by, const struct learner_info *info);
void checks_finish_infos(struct service_life *by);

#endif
