/* fsm_state.h - the state of the machine of fsm.h, and what each of its files
 * does with it.
 *
 * An input changes what is known, then fsm_settle() does all that follows from
 * it. No memory is remembered in `status` and ends every further input.
 * Thread: serial. */
#ifndef LOCKSTEP_SERVICE_FSM_STATE_H
#define LOCKSTEP_SERVICE_FSM_STATE_H

#include "lockstep/log.h"

#include "fsm.h"
#include "scheduler.h"

enum call_about {
    ABOUT_CONNECT,
    ABOUT_RESOURCE,
    ABOUT_PURGE, /* close what a member holds and nobody knows of */
    ABOUT_WORK   /* a task of a work */
};

struct open_call {
    struct open_call *next;
    uint64_t number;
    enum call_about about;
    const struct fsm_task *task; /* of a work, and the exit of a purge */
    struct pool_member *member;  /* borrow */
    uint64_t incarnation;        /* that it was made to */
    struct work *work;           /* borrow; NULL: it counts for none any more */
    void *load; /* that it was made with: the task's own. Borrow */
};

/* What is to be done, in order: fsm_actions.c. */
struct action_queue {
    struct queued_action *first, **last; /* own */
    struct queued_action *taken;         /* own; what was handed out last */
};

/* The calls that are open: fsm_calls.c. */
struct call_list {
    struct open_call *first; /* own */
    uint64_t last_number;
};

/* How the job ends, and how far it is with that: fsm.c. */
struct job_end {
    int64_t at;    /* by max_time; LS_FOREVER: not */
    bool begun;    /* works are being closed */
    bool recorded; /* the journal knows that the job is over */
    bool told;     /* all is closed, and FSM_DONE said */
    int status;
    char text[512];
};

/* A policy that is being kept for a work; number 0: none is. */
struct pending_snapshot {
    uint64_t number;
    struct kind_use *use; /* of the work. Borrow */
    service_name name;
};

struct fsm {
    struct fsm_options options;
    int status;
    bool begun; /* the first input has come */

    struct pool pool;
    struct works works;
    struct scheduler scheduler; /* its uses: own */
    struct call_list calls;
    struct action_queue actions;
    struct job_end end;
    ls_writer *writer; /* own */

    service_name policy_id; /* of the learner's policy; "": none yet */
    service_name evaluated; /* the policy of the last evaluation; "": none */
    struct pending_snapshot snapshot;

    struct fsm_figures counted; /* what is not in the scheduler */
};

/* fsm.c: do what follows. */
void fsm_settle(fsm *self, int64_t now);
void fsm_end(fsm *self, int64_t now, int status, const char *text);
void fsm_no_memory(fsm *self);

/* fsm_actions.c: what is to be done, in order. */
void fsm_act(fsm *self, const struct fsm_action *action);
void fsm_say(fsm *self, int level, const char *format, ...) LS_PRINTF(3, 4);
void fsm_drop(fsm *self, const char *name);
void fsm_actions_fini(fsm *self);

/* How a call ended, by what it was about. */
typedef void fsm_ended_fn(fsm *self, int64_t now, const struct open_call *call,
                          const struct ls_call_result *result);
fsm_ended_fn fsm_connect_ended, fsm_resource_ended, fsm_purge_ended;
fsm_ended_fn fsm_start_ended, fsm_close_ended;

/* fsm_calls.c */
void fsm_calls_fini(fsm *self);
/* The data of the call is what the writer holds; its options are filled in.
 * exit: of a purge. */
void fsm_call(fsm *self, enum call_about about, struct pool_member *member,
              const struct fsm_task *exit);
/* The same of a task of a work, asked of its member. load: the task's own. */
void fsm_ask(fsm *self, const struct fsm_task *task, struct work *work,
             void *load);
/* Whether this task is asked. */
bool fsm_has_call(const fsm *self, const struct work *work,
                  const struct fsm_task *task);
/* A work counts no more on what it has asked. */
void fsm_detach(fsm *self, struct work *work);
/* Cancel what a work that is over has left open. */
void fsm_cancel_left(fsm *self, const struct pool_member *member);
/* Cancel what is asked of members that have no work. */
void fsm_cancel_questions(fsm *self);
/* LS_EPROTO: it is not about this attempt at this work. */
LS_MUST_USE int fsm_check_key(const struct work *work,
                              const struct work_key *key);
/* Count and tell of an answer that cannot be read; ls_error_text() says why. */
void fsm_malformed(fsm *self, const struct open_call *call);
/* The same of a running work: with the third in a row, it has failed. */
void fsm_work_malformed(fsm *self, int64_t now, const struct open_call *call);

/* fsm_members.c */
void fsm_member_rests(fsm *self, struct pool_member *member, int64_t now);
void fsm_member_gone(fsm *self, struct pool_member *member, int64_t now,
                     enum pool_state state);
void fsm_drive_members(fsm *self, int64_t now);

/* fsm_works.c */
struct work *fsm_work_new(fsm *self, struct kind_use *use, uint64_t number,
                          int64_t now);
/* A member has lost it, or does not hold it: to another. */
void fsm_work_again(fsm *self, struct work *work, int64_t now);
/* One more in a row of a kind, whoever has failed. Whether the job goes on: too
 * many end it. */
bool fsm_use_failed(fsm *self, struct kind_use *use, int64_t now,
                    const char *text);
/* The same of a work, said with its member. */
bool fsm_count_failure(fsm *self, const struct work *work, int64_t now,
                       const char *text);
/* Its member has failed at it: close it there, then to another. */
void fsm_work_failed(fsm *self, struct work *work, int64_t now,
                     const char *text);
void fsm_work_close(fsm *self, struct work *work, int64_t now,
                    enum work_end end);
/* No work has a buffer any more: the kinds are told. */
void fsm_unneeded(fsm *self, int64_t now);
/* It is over: forget it. */
void fsm_work_over(fsm *self, struct work *work, int64_t now, bool failed);
void fsm_drive_works(fsm *self, int64_t now);
/* Its member holds it, as is known now. */
void fsm_work_held(fsm *self, struct work *work, int64_t now);
/* Its member does not hold it any more. exit: what it told at the close; NULL:
 * nothing. */
void fsm_work_closed(fsm *self, struct work *work, int64_t now,
                     const struct work_exit *exit);

/* fsm_assign.c */
void fsm_drive_scheduler(fsm *self, int64_t now);
void fsm_drive_queue(fsm *self, int64_t now);
void fsm_close_call(fsm *self, struct work *work);

/* fsm_buffer.c: the replay buffer of a work. */
struct work *fsm_buffer_owner(const fsm *self); /* it is open; NULL: none is */
int fsm_buffer_open(fsm *self, struct work *work);
void fsm_buffer_close(fsm *self, struct work *work);
void fsm_buffer_drain(fsm *self, struct work *work);
/* A batch that was lent is not used any more. */
void fsm_batch_release(fsm *self, struct work *work, struct lent_batch *batch);
/* A node is lost, and the data that it kept. */
void fsm_data_lost(fsm *self, uint32_t home);

/* fsm_data.c: what a work brings by CALL_COLLECTOR_DATA. */
void fsm_data_ask(fsm *self, const struct fsm_task *task, struct work *work,
                  int64_t version, int64_t want);
/* Read the answer of such a call, for a work that brings no samples, or does.
 * false: it has failed, or was malformed, and that was seen to; else give it to
 * collector_data_fini(). */
bool fsm_data_read(fsm *self, int64_t now, const struct open_call *call,
                   const struct ls_call_result *result, bool brings_samples,
                   struct collector_data *out);
/* One user fewer, or who had announced it was refused: it is dropped, unless a
 * buffer or what waits for its turn has that name. */
void fsm_data_unused(fsm *self, const char *data_id);
/* Data that nobody waits for any more. */
void fsm_data_late(fsm *self, const struct ls_call_result *result);
/* What waits for its turn goes into the buffer as far as that has room. Returns
 * whether any has. */
bool fsm_waiting_insert(fsm *self, struct work *owner, struct work *work);
/* It is to wait for its turn. */
void fsm_waiting_add(fsm *self, struct work *work, const struct sample *of,
                     uint32_t home);
/* Nobody waits for what it has brought, either. */
void fsm_waiting_drop(fsm *self, struct work *work);

/* Kinds whose members serve the calls of collectors. */
int fsm_collector_read_exit(struct work_exit *out, const void *data,
                            size_t size);
void fsm_collector_write_start(fsm *self, const struct work *work,
                               const struct collector_work *what);

/* fsm_works.c: how a call for a running work can fail. True: it has, and was
 * seen to; false: it was completed. */
bool fsm_work_call_failed(fsm *self, int64_t now, const struct open_call *call,
                          const struct ls_call_result *result);

/* fsm_record.c: to the journal. */
void fsm_record_work(fsm *self, const struct work *work);
void fsm_count_attempt(fsm *self, const struct work *work);
void fsm_record_end(fsm *self);
void fsm_record_over(fsm *self, const struct work *work);
void fsm_record_figures(fsm *self);
/* Of a work's buffer, where that is kept. sample: it was inserted, as the item
 * of this number. */
void fsm_record_sample(fsm *self, const struct work *work,
                       const struct sample *sample, uint64_t number);
/* These were drawn; with priorities: got them. */
void fsm_record_items(fsm *self, const struct work *work,
                      const struct drawn_sample *drawn, size_t n,
                      const double *priorities);

/* fsm_recall.c: with the first input, what was recalled comes to life. */
void fsm_begin(fsm *self, int64_t now);

#endif
