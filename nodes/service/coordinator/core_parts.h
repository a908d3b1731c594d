/* core_parts.h - what the files of core.h share.
 *
 * An input changes what is known, then core_settle() does all that follows from
 * it. No memory is remembered in `status` and ends every further input.
 * Thread: serial. */
#ifndef LOCKSTEP_SERVICE_CORE_PARTS_H
#define LOCKSTEP_SERVICE_CORE_PARTS_H

#include "lockstep/log.h"

#include "commander.h"
#include "core.h"
#include "replay_data.h"

enum call_about {
    ABOUT_CONNECT,
    ABOUT_RESOURCE,
    ABOUT_PURGE, /* close what a member holds and nobody knows of */
    ABOUT_START,
    ABOUT_DEMAND,
    ABOUT_LEARN,
    ABOUT_DATA,
    ABOUT_CLOSE
};

struct open_call {
    struct open_call *next;
    uint64_t number;
    enum call_about about;
    struct pool_member *member; /* borrow */
    uint64_t incarnation;       /* that it was made to */
    struct work *work;          /* borrow; NULL: it counts for none any more */
    struct lent_batch *batch;   /* that it brings; borrow */
};

struct queued_action {
    struct queued_action *next;
    struct core_action action; /* points into what follows */
    struct learner_info info;
    char bytes[];
};

/* A policy that is being kept for an evaluation; number 0: none is. */
struct pending_snapshot {
    uint64_t number;
    service_name name;
};

struct core {
    struct core_options options;
    int status;
    bool begun;      /* the first input has come */
    int64_t ends_at; /* by max_time; LS_FOREVER: not */

    struct pool pool;
    struct works works;
    struct commander commander;
    struct open_call *calls; /* own */
    uint64_t last_call;
    struct queued_action *first, **last, *taken; /* own */
    ls_writer *writer;                           /* own */
    struct replay_data data; /* that is in the store because of us */

    service_name policy_id; /* of the learner's policy; "": none yet */
    service_name evaluated; /* the policy of the last evaluation; "": none */
    struct pending_snapshot snapshot;

    int64_t failures[WORK_KINDS]; /* in a row, without anything done between */
    struct core_figures counted;  /* what is not in the commander */

    bool stopping, done;
    bool had_ended; /* the journal knows that the job is over */
    int stop_status;
    char stop_text[512];
};

/* core.c: do what follows. */
void core_settle(core *self, int64_t now);
void core_end(core *self, int64_t now, int status, const char *text);
void core_no_memory(core *self);

/* core_actions.c: what is to be done, in order. */
void core_act(core *self, const struct core_action *action);
void core_say(core *self, int level, const char *format, ...) LS_PRINTF(3, 4);
void core_drop(core *self, const char *name);
void core_actions_fini(core *self);

/* core_calls.c */
/* The data of the call is what the writer holds; its options are filled in. */
struct open_call *core_call(core *self, enum call_about about,
                            struct pool_member *member, struct work *work);
bool core_has_call(const core *self, const struct work *work,
                   enum call_about about);
/* A work counts no more on what it has asked. */
void core_detach(core *self, const struct work *work);
/* Cancel what a work that is over has left open. */
void core_cancel_left(core *self, const struct pool_member *member);
/* Cancel what is asked of members that have no work. */
void core_cancel_questions(core *self);
/* LS_EPROTO: it is not about this attempt at this work. */
LS_MUST_USE int core_check_key(const struct work *work,
                               const struct work_key *key);
/* Count and tell of an answer that cannot be read; ls_error_text() says why. */
void core_malformed(core *self, const struct open_call *call);
/* The same of a running work: with the third in a row, it has failed. */
void core_work_malformed(core *self, int64_t now, const struct open_call *call);
const char *core_call_name(enum call_about about, enum pool_role role);

/* core_members.c */
void core_member_rests(core *self, struct pool_member *member, int64_t now);
void core_member_gone(core *self, struct pool_member *member, int64_t now,
                      enum pool_state state);
void core_drive_members(core *self, int64_t now);
void core_connect_ended(core *self, int64_t now, struct pool_member *member,
                        const struct ls_call_result *result);
void core_resource_ended(core *self, int64_t now, const struct open_call *call,
                         const struct ls_call_result *result);
void core_purge_ended(core *self, int64_t now, struct pool_member *member,
                      const struct ls_call_result *result);

/* core_works.c */
struct work *core_work_new(core *self, enum work_kind kind, uint64_t number,
                           int64_t now);
/* A member has lost it, or does not hold it: to another. */
void core_work_again(core *self, struct work *work, int64_t now);
/* Whether the job goes on: too many end it. */
bool core_count_failure(core *self, const struct work *work, int64_t now,
                        const char *text);
/* Its member has failed at it: close it there, then to another. */
void core_work_failed(core *self, struct work *work, int64_t now,
                      const char *text);
void core_work_close(core *self, struct work *work, int64_t now,
                     enum work_end end);
/* Collectors have nobody to collect for. */
void core_close_collectors(core *self, int64_t now);
/* It is over: forget it. */
void core_work_over(core *self, struct work *work, int64_t now, bool failed);
void core_drive_works(core *self, int64_t now);
/* Its member holds it, as is known now. */
void core_work_held(core *self, struct work *work, int64_t now);
/* Its member does not hold it any more. finish: what it told at the close;
 * NULL: nothing. */
void core_work_closed(core *self, struct work *work, int64_t now,
                      const struct collector_closed *finish);

/* core_assign.c */
void core_drive_commander(core *self, int64_t now);
void core_drive_queue(core *self, int64_t now);
void core_start_ended(core *self, int64_t now, const struct open_call *call,
                      const struct ls_call_result *result);
void core_close_call(core *self, struct work *work);
void core_close_ended(core *self, int64_t now, const struct open_call *call,
                      const struct ls_call_result *result);

/* core_learner.c */
struct work *core_learner(const core *self); /* with its buffer open; or NULL */
int core_learner_init(core *self, struct work *work);
void core_buffer_close(core *self, struct work *work);
void core_buffer_drain(core *self, struct work *work);
bool core_learner_pump(core *self, struct work *work, int64_t now);
void core_batch_release(core *self, struct work *work,
                        struct lent_batch *batch);
void core_demand_ended(core *self, int64_t now, const struct open_call *call,
                       const struct ls_call_result *result);
void core_learn_ended(core *self, int64_t now, const struct open_call *call,
                      const struct ls_call_result *result);

/* core_collector.c */
bool core_collector_pump(core *self, struct work *work, int64_t now);
void core_data_ended(core *self, int64_t now, const struct open_call *call,
                     const struct ls_call_result *result);
/* Data that nobody waits for any more. */
void core_data_late(core *self, const struct ls_call_result *result);
void core_held_drop(core *self, struct work *work);
/* No other part of the last data will come. */
void core_last_data_done(core *self, struct work *work);

/* core_works.c: how a call for a running work can fail. True: it has, and was
 * seen to; false: it was completed. */
bool core_work_call_failed(core *self, int64_t now,
                           const struct open_call *call,
                           const struct ls_call_result *result);

/* core_record.c: to the journal. */
void core_record_work(core *self, const struct work *work);
void core_count_attempt(core *self, const struct work *work);
void core_record_end(core *self);
void core_record_over(core *self, const struct work *work);
void core_record_figures(core *self);
void core_record_data(core *self, const struct sample *sample);
void core_record_drop(core *self, const char *name);
/* Nobody needs it any more. */
void core_data_drop(core *self, const char *name);
/* Whether it is in the store because of a sample that was taken. */
bool core_data_is_used(core *self, const char *name);
void core_forget_data(core *self, const char *name);

/* core_recall.c: with the first input, what was recalled comes to life. */
void core_begin(core *self, int64_t now);

#endif
