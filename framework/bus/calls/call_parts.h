/* call_parts.h - what the files of calls share: their life and their channel
 * (calls.c), asking (call.c), serving (call_serve.c).
 *
 * One lock guards everything here. It is taken before any of the bus's, and is
 * never held while code of users runs. All inputs end with calls_settle(),
 * which does what they have led to and lets the lock go. */
#ifndef LOCKSTEP_BUS_CALL_PARTS_H
#define LOCKSTEP_BUS_CALL_PARTS_H

#include "bus.h"
#include "call_intake.h"
#include "call_post.h"
#include "call_table.h"
#include "lockstep/call.h"
#include "request_table.h"

/* What the dispatch thread is asked for. */
enum calls_errand {
    CALLS_HANDLE, /* run the handler of the next request */
    CALLS_TELL    /* tell of all calls that have ended */
};

struct ls_call {
    struct open_call entry;
    ls_rpc *calls;
    unsigned refs;              /* the user's, and one until it has been told */
    struct call_letter *letter; /* it waits to be sent; or NULL */
    int timeout_ms;
    void (*ended)(void *self, ls_call *call);
    void *self;
    struct ls_call *next_untold;
    bool telling, told;
    ls_cond changed; /* told, or not telling any more */
    struct ls_call_result result;
    void *answer;              /* own */
    struct call_intake intake; /* of its answer's body */
    char name[LS_EVENT_MAX + 1];
};

/* Somebody in ls_call_wait(). */
struct call_wait {
    struct call_wait *next;
    ls_cond *changed;
};

struct ls_request {
    struct open_call entry;
    ls_rpc *calls;
    unsigned refs; /* the user's, and one while its handler runs */
    ls_request_fn *fn;
    void *self;
    struct ls_request *next_ready, *next_alarm;
    struct call_intake intake; /* of its body */
    bool arriving;             /* that has not come whole */
    bool open;                 /* in the table */
    bool entered;              /* its handler has run, or runs */
    bool answered;             /* the user has done with it */
    bool alarmed, alarming;    /* on_cancel is to be called; runs */
    void (*on_cancel)(void *self);
    void *on_cancel_self;
    char name[LS_EVENT_MAX + 1];
    size_t size;
    unsigned char data[];
};

struct ls_rpc {
    ls_node *node;       /* borrow */
    ls_runtime *runtime; /* borrow */
    ls_channel *channel; /* own */
    uint32_t id;         /* of the node */
    unsigned forks;      /* ls_forks_now(), when they were opened */
    ls_mutex mutex;
    ls_cond changed; /* something that is waited for has ended */
    ls_cond work;    /* for the workers */
    size_t refs;     /* the user's, and one for each call and request */
    struct call_table table;
    struct request_table requests;
    struct call_post post;
    struct ls_call *untold, **untold_end;
    struct ls_call *silent; /* have ended, and nobody is to be told */
    struct call_wait *waits;
    size_t n_telling;
    bool tell_asked;
    struct ls_request *ready, **ready_end;
    size_t n_running;   /* handlers */
    size_t n_answering; /* that use the node without the lock */
    struct ls_request *alarms;
    size_t n_alarming;
    size_t errands_owed; /* CALLS_HANDLE, for want of memory */
    ls_thread *workers[64];
    unsigned n_workers;
    bool closing;      /* by the user; the node may be gone when it is done */
    bool stopped;      /* the node is */
    bool undispatched; /* its dispatch thread has ended */
    int64_t wake_at, again_at;
    uint64_t n_unanswered; /* answers that nothing could be kept of */
    int64_t stood_ns; /* the node, for which all deadlines have been put off */
    struct ls_rpc_stats stats;
    unsigned char bytes[CALL_WIRE_MAX];
};

/* ---- calls.c; the lock is held, but where said ------------------------- */

/* Put off all deadlines by what the node has stood still, before any is looked
 * at or added. */
void calls_excuse(ls_rpc *calls);
/* Do what an input has led to, and let the lock go; free the calls when nothing
 * refers to them any more. */
void calls_settle(ls_rpc *calls);
/* Send it, now or when there is room, and the body that it announces behind it;
 * to this node itself, by hand.
 * Errors: LS_ENOMEM, and LS_ELIMIT for answers: it is counted as dropped. */
int calls_send(ls_rpc *calls, uint32_t to, uint64_t life,
               const struct call_message *message, struct call_letter **owner);
/* A message came, from the network or from this node itself. */
void calls_receive(ls_rpc *calls, uint32_t from, uint64_t life, uint64_t own,
                   const struct call_message *message);

/* ---- call_bodies.c; the lock is held ----------------------------------- */

/* A part of a body came. */
void calls_receive_part(ls_rpc *calls, uint32_t from, uint64_t life,
                        struct ls_channel_part *part);
/* Whether a body can be one. No lock. Errors: LS_EINVAL; LS_ELIMIT. */
LS_MUST_USE int calls_check_given(const struct ls_body *body);
/* A body that a user gives for a member, as one that messages share; *out NULL:
 * there is none. No lock. Errors: LS_EINVAL; LS_ELIMIT; LS_ENOMEM; it is
 * released then. */
LS_MUST_USE int calls_take_given(const ls_rpc *calls, struct payload **out,
                                 uint32_t to, const struct ls_body *body);
/* Nothing comes of it. No lock. */
void calls_release_given(const struct ls_body *body);
/* All of a body that this node has itself. */
void calls_keep_own(struct call_intake *intake, struct payload *payload);
/* No answer's body goes on: who waits for one is told. */
void calls_drop_answers(ls_rpc *calls);

/* ---- call.c; the lock is held ------------------------------------------ */

/* It has ended, and is out of the table: why, in words; message: the one that
 * ended it, or NULL; both NULL: the body of its answer has come. */
void call_finish(struct ls_call *call, const struct call_message *message,
                 const char *why);
/* A message came that is for it, and has ended it or begins a body. */
void call_heed(struct ls_call *call, const struct call_message *message);
/* Whether this is a thread that ends calls, and so must not wait for one; any
 * lock. */
bool calls_is_own_thread(const ls_rpc *calls);
/* ls_node_interrupt(); no lock. */
void calls_on_interrupt(void *self);
/* End all that are open, as cancelled. */
void calls_cancel_all(ls_rpc *calls, const char *why);
/* Wake those that wait for calls which nobody is told of; the lock is let go
 * meanwhile. */
void calls_conclude(ls_rpc *calls);
/* Tell of all others that have ended; the lock is let go meanwhile. */
void calls_tell(ls_rpc *calls);

/* ---- call_serve.c; the lock is held ------------------------------------ */

void calls_on_request(ls_rpc *calls, uint32_t from, uint64_t life, uint64_t own,
                      const struct call_message *message);
/* The body of a request has come, or breaks the format. */
void calls_on_body(ls_rpc *calls, struct ls_request *request,
                   enum intake_verdict verdict);
/* An open_call_fn; self: the calls. */
void calls_on_cancelled(void *self, struct open_call *entry);
/* Run the handler of the next request; the lock is let go meanwhile. */
void calls_handle_next(ls_rpc *calls);
/* Call what on_cancel asked for; the lock is let go meanwhile. */
void calls_alarm(ls_rpc *calls);
/* Refuse what is open: nobody is served any more. */
void calls_refuse_all(ls_rpc *calls);
/* A worker thread. */
void calls_worker_main(void *self);

#endif
