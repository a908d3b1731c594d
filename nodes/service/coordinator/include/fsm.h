/* fsm.h - what the coordinator decides, as a state machine.
 *
 * It is told who is there, how calls ended and what time it is, and says which
 * calls to make. No socket, thread, file or clock: so all of it is tested with
 * thousands of schedules of losses, refusals and delays.
 *
 * Its parts: the kinds of work, by what they do (fsm_kinds.h); the pool of
 * members, with what each offers; the scheduler, who asks for works of the
 * kinds; the assignment of works to members, with expiry, retry and requeue;
 * one replay buffer per learner work; and the records that let a later life
 * take over.
 *
 * Rules that always hold: a work is held by one living member at most; a work
 * that its member lost goes back to the queue with its next attempt; each
 * sample that was accepted is in a buffer until it is used or evicted, with a
 * count; each call that was begun is ended before the machine says it is done.
 * Thread: serial. Source: docs/services.md. */
#ifndef LOCKSTEP_SERVICE_FSM_H
#define LOCKSTEP_SERVICE_FSM_H

#include "lockstep/call.h"

#include "fsm_kinds.h"
#include "messages.h"
#include "replay.h"

typedef struct fsm fsm;

/* What is to be done next. Texts and data: borrow, until fsm_next(). */
enum fsm_action_kind {
    FSM_CONNECT,   /* become the master of member `to`; a call like others */
    FSM_CALL,      /* make call `number`: to, name, data, size, wait_ns */
    FSM_CANCEL,    /* cancel call `number` */
    FSM_RECORD,    /* append data, size to the journal; it is on disk before
                    * anything that follows */
    FSM_DROP,      /* the data `name` is of no use any more */
    FSM_SNAPSHOT,  /* keep the policy `from` under `name`; then tell how by
                    * fsm_snapshot_done() */
    FSM_EVALUATED, /* an evaluation is over: name of the policy, value,
                    * version; for reports */
    FSM_INFO,      /* a learner info came: info; for reports */
    FSM_SAY,       /* a line for people: level, text */
    FSM_DONE       /* the job is over: status, text; `name`: the policy that
                    * was evaluated last, `from`: that of the learner; "":
                    * there is none. value: of the last evaluation */
};

struct fsm_action {
    enum fsm_action_kind kind;
    uint64_t number;
    uint32_t to;
    const char *name, *from;
    const void *data;
    size_t size;
    int64_t wait_ns;
    int level;
    int status;
    const char *text;
    double value;
    int64_t version;
    const struct learner_info *info;
};

/* out: own; written on success only; give it to fsm_destroy().
 * options: copied. kinds: of the works that it gives out, ended by NULL, such
 * as fsm_kinds; borrow. Errors: LS_EINVAL; LS_ENOMEM. */
LS_MUST_USE int fsm_create(fsm **out, const struct fsm_options *options,
                           const struct fsm_kind *const *kinds);
void fsm_destroy(fsm **machine);

/* A record of an earlier life's journal, in order, before anything else.
 * Errors: LS_EPROTO it is none; LS_ENOMEM. */
LS_MUST_USE int fsm_recall(fsm *machine, const void *record, size_t size);
/* Once all was recalled, and before anything else, where the samples are kept:
 * those whose data fn does not find whole are lost, and counted so. fn is asked
 * once for what has its data in common. */
void fsm_check_samples(fsm *machine,
                       bool (*fn)(void *self, const struct sample *sample),
                       void *self);
/* Once all was recalled: the policy that the learner must go on from, since an
 * earlier life has committed updates of it, and how many. NULL: none, or the
 * job is over. Borrow: until anything happens. */
const char *fsm_learned(const fsm *machine, int64_t *iterations);
/* Whether data that lies in the store is of use to a work. */
bool fsm_needs(const fsm *machine, const char *data_id);
/* The records that stand for all that was recalled and done: for a journal
 * that begins anew. Take all actions first: what is yet to be recorded they
 * tell already, and it would count twice. Calls fn for each, until one fails.
 * Errors: LS_ENOMEM; those of fn. */
LS_MUST_USE int
fsm_records(fsm *machine,
            int (*fn)(void *self, const void *record, size_t size), void *self);

/* What happens. After each, take the actions until there are none.
 * Errors: LS_ENOMEM: the machine is only good to be destroyed then.
 * member: it is ready, or is not any more; one that no kind of work is for is
 * passed over. */
LS_MUST_USE int fsm_member(fsm *machine, int64_t now,
                           const struct ls_member *member);
/* A call has ended, or could not be begun (state start_failed, code 0).
 * Errors: also LS_EINVAL there is no such call. */
LS_MUST_USE int fsm_call_ended(fsm *machine, int64_t now, uint64_t number,
                               const struct ls_call_result *result);
LS_MUST_USE int fsm_snapshot_done(fsm *machine, int64_t now, const char *name,
                                  int status);
LS_MUST_USE int fsm_time(fsm *machine, int64_t now);
/* End the job: close all works, then FSM_DONE with this status. */
LS_MUST_USE int fsm_stop(fsm *machine, int64_t now, int status,
                         const char *text);

bool fsm_next(fsm *machine, struct fsm_action *out);
/* When fsm_time() has to be called next; LS_FOREVER: not. */
int64_t fsm_wake_at(const fsm *machine, int64_t now);

struct fsm_figures {
    int64_t env_steps, samples, batches, learner_step, infos, done_infos;
    int64_t evaluations;
    double eval_value; /* NaN: none yet */
    int64_t policy_version;
    int64_t requeued, refused_starts; /* works */
    int64_t expired; /* works that were given up: queued, or not closed, for too
                      * long */
    int64_t refused_data; /* answers that were none, or for other works and
                           * buffers */
    int64_t late_data;    /* samples that came, or had their turn, when their
                           * work was over */
    int64_t open_calls;
    struct replay_figures replay; /* of the last buffer */
};
/* The policy that the job is to end with: the one whose value was enough, or
 * else that of the learner; and the other of the two, for when that one cannot
 * be had. "": there is none. Borrow: until anything happens. */
void fsm_policies(const fsm *machine, const char **best, const char **other);
void fsm_figures(const fsm *machine, struct fsm_figures *out);

#endif
