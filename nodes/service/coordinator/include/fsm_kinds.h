/* fsm_kinds.h - the kinds of work that a coordinator gives out. Each is a job
 * in the words of lockstep/job.h: a name, where it is placed, a task that
 * begins it (init), those of its turns (epoch), and one that ends it (exit).
 * What sets it apart is functions; a kind is a file, kind_*.c.
 *
 * Unlike the tasks of an ls_job these are calls: each names one that the member
 * serves, which holds the work, and a member that is lost ends no job: the work
 * goes to another, as its next attempt.
 * Thread: any; functions of a work: serial, as all of fsm.h.
 * Source: docs/jobs.md, "Works". */
#ifndef LOCKSTEP_SERVICE_FSM_KINDS_H
#define LOCKSTEP_SERVICE_FSM_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/job.h"

#include "coordinator_settings.h"

struct fsm;
struct kind_use;
struct ls_call_result;
struct open_call;
struct pool;
struct pool_member;
struct scheduler;
struct work;
struct work_exit;

/* A task of a work: a call that its member is asked. */
struct fsm_task {
    enum ls_job_phase phase;    /* of LS_JOB_INIT and LS_JOB_EXIT, one each */
    const char *name;           /* of the call */
    const char *const *outputs; /* what it brings, ended by NULL; NULL: nothing;
                                 * for people */
    /* Of a turn: its call has ended, and the work is still the one that it was
     * for. */
    void (*ended)(struct fsm *fsm, int64_t now, const struct open_call *call,
                  const struct ls_call_result *result);
    /* It has, and the work is not. NULL: it brings nothing that anyone would
     * have to see to, so it is cancelled with the work. */
    void (*late)(struct fsm *fsm, const struct ls_call_result *result);
    /* What the call was made with (its `load`) is not needed for it any more,
     * since the work lets go of it. NULL: nothing. */
    void (*unload)(struct fsm *fsm, struct work *work, void *load);
};

struct fsm_kind {
    const char *name;  /* "learner" */
    const char *verb;  /* in its task_id: "learn"; no other kind has it */
    int64_t number;    /* in the journal; no other kind has it */
    const char *where; /* for which members: lockstep/place.h */
    const struct fsm_task *tasks;
    size_t n_tasks;

    /* By the options of a job. ranks: how many members do one together; NULL:
     * one. expiry: how long one may wait for a member, in ns. describe: what
     * one is, for people. */
    size_t (*ranks)(const struct fsm_options *options);
    int64_t (*expiry)(const struct fsm_options *options);
    void (*describe)(const struct fsm_options *options, char *text,
                     size_t size);

    /* Whether one more is wanted now, and from when on that may be so
     * (LS_FOREVER: it is not time that it waits for; NULL: never). asked,
     * freed: one more was, one is over; failed: it was given up. NULL: it is
     * counted in `own`, and that is all. Pure. */
    bool (*wanted)(const struct scheduler *scheduler,
                   const struct kind_use *own, const struct pool *pool,
                   int64_t now);
    int64_t (*wake_at)(const struct scheduler *scheduler,
                       const struct kind_use *own, int64_t now);
    void (*asked)(struct scheduler *scheduler, int64_t now);
    void (*freed)(struct scheduler *scheduler, bool failed, int64_t now);

    /* Make the one that is wanted, by fsm_work_new(), now or soon. NULL: that
     * alone. */
    void (*ask)(struct fsm *fsm, struct kind_use *own, int64_t now);
    /* One was made, or recalled. Errors: LS_ENOMEM. NULL: nothing. */
    int (*open)(struct fsm *fsm, struct work *work);
    /* Whether it may be given to a member yet. NULL: it may. */
    bool (*may_go)(const struct work *work, const struct pool *pool,
                   int64_t now);
    /* Over 0: a member offers more than the other; 0: as much. */
    int (*compare)(const struct pool_member *member,
                   const struct pool_member *other);
    /* Write the data of its init call. */
    void (*write_start)(struct fsm *fsm, const struct work *work);
    /* It runs: ask what is to be asked. Returns whether that has changed
     * something for other works. */
    bool (*turn)(struct fsm *fsm, struct work *work, int64_t now);
    /* Nobody has a replay buffer any more. NULL: that is all the same. */
    void (*unneeded)(struct fsm *fsm, struct work *work, int64_t now);
    /* All that it was to bring, it has: when its member is lost now, it is
     * over. NULL: not before its exit. */
    bool (*is_done)(const struct work *work);
    /* Read the answer of its exit call. Errors: LS_EPROTO, LS_ENOMEM. */
    int (*read_exit)(struct work_exit *out, const void *data, size_t size);
    /* It was ended as finished. exit: NULL: nothing was told. Returns whether
     * all was done about that; else it is over, if is_done(), or goes to
     * another. NULL: false. */
    bool (*brings)(struct fsm *fsm, struct work *work, int64_t now,
                   const struct work_exit *exit);
    /* It is over, to be forgotten. failed: it was given up. NULL: nothing. */
    void (*over)(struct fsm *fsm, const struct work *work, bool failed);
};

extern const struct fsm_kind fsm_kind_learner, fsm_kind_collector,
    fsm_kind_evaluation;
/* In the order in which they are asked for, and given away, when several could
 * be; ended by NULL. */
extern const struct fsm_kind *const fsm_kinds[];

/* Whom it is for, for people: "learner" of "role:learner". */
const char *fsm_kind_doer(const struct fsm_kind *kind);
size_t fsm_kind_ranks(const struct fsm_kind *kind,
                      const struct fsm_options *options);
/* Of the first of fsm_kinds that has it, the task with this call; NULL: none
 * has it. */
const struct fsm_task *fsm_kinds_task(const char *call);
/* The first of its tasks in this phase. */
const struct fsm_task *fsm_kind_task(const struct fsm_kind *kind,
                                     enum ls_job_phase phase);

#endif
