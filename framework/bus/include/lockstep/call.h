/* call.h - ask a member to do something, and learn how it ended.
 *
 * A call has a name and up to LS_CALL_DATA_MAX bytes of data; the member that
 * serves the name answers with up to as many. Every call ends exactly once: it
 * is answered, its member is lost, its deadline passes, or it is cancelled. The
 * member executes each call at most once, however often the network repeats it.
 * An answer matches only its own call: after a restart on either side, no old
 * answer matches anything.
 *
 *   idle → starting → started ─┬→ completed    with the handler's answer
 *              │               ├→ failed       with the handler's message
 *              └→ start_failed │               refused: `code` says why
 *           from either of these: lost, timeout, cancelled
 *
 * Larger data goes in a body: bytes of any length that travel beside the data,
 * in parts that let other messages pass in between, and without copies where
 * the network allows it; between nodes of one host through shared memory, with
 * one copy (docs/shared-memory.md#bodies), or none, if it was made there
 * (lockstep/payload.h).
 * Thread: any, unless a function says otherwise.
 * Source: docs/calls.md. */
#ifndef LOCKSTEP_CALL_H
#define LOCKSTEP_CALL_H

#include "lockstep/node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The longest data of a call, and of its answer, in bytes. */
#define LS_CALL_DATA_MAX 245760
/* The longest message of a call that failed, in bytes without the NUL. */
#define LS_CALL_TEXT_MAX 511

/* The default of max_body_bytes. */
#define LS_CALL_BODY_BYTES ((size_t)1 << 30)

/* Bytes that change hands.
 * Given: data is moved. It is released by release(data, hint) when no longer
 * needed, on any thread, whatever the function returns, also if data is NULL;
 * release must not call anything of this header. release NULL: data is copied.
 * Taken: own, to be read only, until ls_body_release(); NULL and 0: there is
 * none. One of 64 KiB and more from a node of this host may lie in the sender's
 * memory (docs/shared-memory.md#bodies), and takes room there until it is
 * released: keep it for long only after ls_body_keep(). The sender could change
 * it meanwhile: copy what you check, or let ls_body_keep() do so. */
struct ls_body {
    void *data;  /* aligned to 8 bytes, if what was given was */
    size_t size; /* less than 4 GiB */
    void (*release)(void *data, void *hint);
    void *hint;
};
/* Any thread, even when the node is gone, while its runtime is there. Sets
 * *body to none; releasing none is fine. In a process that fork(2) has made, a
 * body that lies in its sender's memory stays there: the parent may read it. */
LS_API void ls_body_release(struct ls_body *body);

/* If a taken body lies in its sender's memory, put a copy of its own in its
 * place, which frees the room there: before it is kept for long, or parsed. Any
 * thread. Errors: LS_ENOMEM; it is as it was. */
LS_MUST_USE LS_API int ls_body_keep(struct ls_body *body);

/* The calls that a node makes and serves. One per node. */
typedef struct ls_rpc ls_rpc;
/* One call, at the node that makes it. */
typedef struct ls_call ls_call;
/* One call, at the node that serves it. */
typedef struct ls_request ls_request;

/* The states from completed on are ends. */
enum ls_call_state {
    LS_CALL_IDLE = 0x00,
    LS_CALL_STARTING = 0x11,     /* on its way */
    LS_CALL_STARTED = 0x12,      /* the member has begun it */
    LS_CALL_START_FAILED = 0x13, /* the member refused it; also an end */
    LS_CALL_COMPLETED = 0x21,
    LS_CALL_FAILED = 0x22,    /* its handler reported a failure */
    LS_CALL_LOST = 0x31,      /* the member was lost, or left, first */
    LS_CALL_TIMEOUT = 0x32,   /* the deadline passed */
    LS_CALL_CANCELLED = 0x33, /* by the caller */
};

/* Why a call was refused. The numbers cross the wire. */
#define LS_CALL_CODE_MAP(X)                                                    \
    X(LS_CALL_OK, 0, "accepted")                                               \
    X(LS_CALL_SHUTTING_DOWN, 101, "the member is shutting down")               \
    X(LS_CALL_NOT_SERVING, 102, "the member serves no calls")                  \
    X(LS_CALL_NO_CHANNEL, 201, "the call names no channel")                    \
    X(LS_CALL_WRONG_CHANNEL, 202, "the member serves another channel")         \
    X(LS_CALL_HAS_MASTER, 501, "the member has another master")                \
    X(LS_CALL_NOT_CONNECTED, 502, "the caller is not the member's master")     \
    X(LS_CALL_MALFORMED, 503, "the request breaks the format")                 \
    X(LS_CALL_BUSY, 601, "the member has too much to do already")              \
    X(LS_CALL_REFUSED, 602, "the member refused it")                           \
    X(LS_CALL_TOO_LONG, 603, "its body is longer than the member takes")

enum ls_call_code {
#define LS_CALL_CODE_ENUM(name, code, sentence) name = (code),
    LS_CALL_CODE_MAP(LS_CALL_CODE_ENUM)
#undef LS_CALL_CODE_ENUM
};

LS_API const char *ls_call_state_name(enum ls_call_state state); /* "lost" */
LS_API const char *ls_call_code_sentence(int code); /* "?": no such code */
LS_API bool ls_call_state_is_end(enum ls_call_state state);

struct ls_rpc_options {
    uint32_t channel;    /* the channel that this node serves; calls to it must
                          * name the same one. 0: any channel */
    size_t max_requests; /* requests begun and not answered, of all callers
                          * together; one more is refused as busy. Default 64,
                          * at most 65536 */
    size_t max_calls;    /* open calls of this node; one more fails with
                          * LS_EAGAIN. Default 1024, at most 65536 */
    size_t max_body_bytes; /* per member: the total size of the bodies of its
                            * open requests and of its answers in transit to
                            * this node. A single body over it is refused as too
                            * long, one that does not fit now as busy; an answer
                            * fails. Default 1 GiB, at most 4 GiB - 1 */
    unsigned n_workers; /* threads that run handlers, at most 64; 0: the node's
                         * dispatch thread runs them, in order with events */
};

/* Let a node make and serve calls. Open it before ls_node_start() if no call
 * may be missed.
 * out:     own; NULL after an error; give it to ls_rpc_close().
 * options: copied; NULL: all defaults.
 * Errors:  LS_EINVAL; LS_EEXIST the node has one already; LS_ENOMEM;
 *          LS_ECLOSED; those of ls_thread_spawn(). */
LS_MUST_USE LS_API int ls_rpc_open(ls_rpc **out, ls_node *node,
                                   const struct ls_rpc_options *options);

/* End every open call as cancelled, refuse every request that has not begun as
 * shutting down, fail those that have, wait for running handlers and for every
 * `ended`, and free. An answer whose body is not completely sent fails. Call it
 * before the node is destroyed. Calls that were not destroyed stay readable,
 * and requests must still be answered. NULL and a pointer to NULL are fine.
 * Errors: LS_ESTATE called in a handler of the node, on one of its workers or
 *         in `ended`, for which it would wait; or it came here by fork(2):
 *         nothing was done. */
LS_API int ls_rpc_close(ls_rpc **calls);

/* Serving ---------------------------------------------------------------- */

/* Runs when a request arrives. It owns the request and must answer it exactly
 * once (complete, fail or refuse), now or later, from any thread. Returns LS_OK
 * or an error; after an error the request, if not answered yet, fails with the
 * error's text. A call to a name that is not served fails with "task name
 * error". */
typedef int ls_request_fn(void *self, ls_request *request);

enum ls_call_who {
    LS_CALL_ANYONE,     /* any caller */
    LS_CALL_MASTER_ONLY /* the node that ls_rpc_connect()ed; others: 502 */
};

/* Serve calls of this name until close. name: copied.
 * Errors: LS_EINVAL the name is not valid for an event, fn is NULL, or there is
 *         no such `who`; LS_EEXIST the name is served already; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_rpc_serve(ls_rpc *calls, const char *name,
                                    enum ls_call_who who, ls_request_fn *fn,
                                    void *self);

/* Borrow: until the request is answered. */
LS_API const char *ls_request_name(const ls_request *request);
LS_API const void *ls_request_data(const ls_request *request, size_t *size);
/* Its body; NULL and 0: there is none, or it was taken. Borrow, as the data. */
LS_API const void *ls_request_body(const ls_request *request, size_t *size);
/* Take over the body, so that it outlives the request. */
LS_API void ls_request_take_body(ls_request *request, struct ls_body *out);
LS_API uint32_t ls_request_from(const ls_request *request);
LS_API int64_t ls_request_deadline(const ls_request *request); /* ls_now() */

/* Have fn called when the caller cancels or is lost, or the deadline passes; at
 * once if that has already happened. Nobody needs the answer then, but it must
 * still be given. fn NULL removes it; when that, or an answer, returns, fn no
 * longer runs.
 * fn:     runs on the bus thread, or on any thread inside a function of this
 *         header or ls_barrier_wait(); it may wake a wait and nothing else. */
LS_API void ls_request_on_cancel(ls_request *request, void (*fn)(void *self),
                                 void *self);
LS_API bool ls_request_is_cancelled(const ls_request *request);

/* Answer. The request is freed and *request is NULL, whatever is returned.
 * Errors: LS_ELIMIT too much data, LS_EINVAL a size without data: the caller
 *         sees a failure that says so; LS_ECANCELED the caller no longer waits.
 *         All may be ignored. LS_ESTATE it came here by fork(2): its answer is
 * the parent's. */
LS_API int ls_request_complete(ls_request **request, const void *data,
                               size_t size);
/* The same with a body, which is given. It is sent after this returns; a caller
 * that cancels or is lost gets no more of it. Errors: also LS_ENOMEM, LS_ELIMIT
 * 4 GiB or more, and LS_EINVAL a body without data: the caller sees a failure
 * that says so. */
LS_API int ls_request_complete_with(ls_request **request, const void *data,
                                    size_t size, const struct ls_body *body);
/* message: copied, cut at LS_CALL_TEXT_MAX. */
LS_API int ls_request_fail(ls_request **request, const char *message);
/* Before the handler returns, the call counts as not begun; later it is a
 * failure.
 * code: LS_CALL_REFUSED, LS_CALL_BUSY, or one of the program's own above 1000;
 *       any other becomes LS_CALL_REFUSED. */
LS_API int ls_request_refuse(ls_request **request, int code,
                             const char *message);

struct ls_rpc_stats {
    uint64_t started;  /* calls of this node */
    uint64_t ended[8]; /* of these: completed, failed, start_failed, lost,
                        * timeout, cancelled; in this order */
    uint64_t served;   /* requests answered */
    uint64_t refused;  /* requests refused */
    uint64_t stale;    /* messages, and parts of bodies, for calls that have
                        * ended or never existed */
    uint64_t malformed;
    uint64_t dropped; /* messages and bodies of this node that were not sent, or
                       * not completely: their receiver was gone, or memory ran
                       * out */
    size_t open_calls, open_requests;
};
LS_API void ls_rpc_stats(ls_rpc *calls, struct ls_rpc_stats *out);

/* The node that is connected to this one as its master, if there is one. */
LS_API bool ls_rpc_master(ls_rpc *calls, uint32_t *id);

/* Asking ----------------------------------------------------------------- */

struct ls_call_result {
    enum ls_call_state state;
    int code;         /* start_failed: why; else 0 */
    const void *data; /* completed: the answer */
    size_t size;
    const void *body; /* completed: the answer's body; NULL: there is none, or
                       * it was taken */
    size_t body_size;
    char text[LS_CALL_TEXT_MAX + 1]; /* failed: the handler's message; other
                                      * ends: a sentence with call, member and
                                      * deadline */
};

struct ls_call_options {
    uint32_t to;      /* id of a ready member, or of this node itself */
    uint32_t channel; /* 0: the call names none */
    const char *name; /* a valid name of an event */
    const void *data; /* copied */
    size_t size;
    struct ls_body body; /* given, even if the call is not started */
    int timeout_ms;      /* the call ends as a timeout after this; 0: 10000 */
    /* Runs once, after the call has ended and before any ls_call_wait()
     * returns, on the dispatch thread; once the node has stopped, on the thread
     * that ends the call. It may start other calls, and must not wait. NULL:
     * not called. */
    void (*ended)(void *self, ls_call *call);
    void *self;
};

/* out:    own; NULL after an error; written before `ended` runs; give it to
 *         ls_call_destroy(), in `ended` or later.
 * Errors: LS_EINVAL the name, or timeout_ms is negative; LS_ELIMIT more than
 *         LS_CALL_DATA_MAX, or a body of 4 GiB or more; LS_EAGAIN too many
 *         calls are open; LS_ENOENT there is no such member; LS_ECLOSED, also
 *         before ls_node_open(); LS_ENOMEM. */
LS_MUST_USE LS_API int ls_call_start(ls_call **out, ls_rpc *calls,
                                     const struct ls_call_options *options);

LS_API enum ls_call_state ls_call_state(ls_call *call);
/* Counts the calls of this life of the node, from 1. */
LS_API uint64_t ls_call_id(const ls_call *call);
/* Wait until the call ends. wait_ms: LS_WAIT_DEFAULT: as long as the call
 * takes, which has its own timeout. Not on the bus or dispatch thread, so not
 * in a handler when there are no workers.
 * Errors: LS_ETIMEDOUT it has not ended by then, and continues; the status
 *         given to ls_node_interrupt(), and it continues; LS_ESTATE on one of
 *         those threads. */
LS_MUST_USE LS_API int ls_call_wait(ls_call *call, int wait_ms);
/* Wait until each of these calls has ended, however it did: a whole fan-out, or
 * some of the open calls. Entries may be NULL.
 * Errors: those of ls_call_wait(); LS_ETIMEDOUT one has not ended: the text
 *         names it. */
LS_MUST_USE LS_API int ls_call_wait_all(ls_call *const *calls, size_t n,
                                        int wait_ms);
/* End it as cancelled, unless it has ended. The member's handler is told. */
LS_API void ls_call_cancel(ls_call *call);
/* Only after the call has ended: a wait has returned, `ended` runs, or its
 * state is an end. Borrow: until destroy. */
LS_API const struct ls_call_result *ls_call_result(const ls_call *call);
/* Take over the answer's body, so that it outlives the call. Allowed when
 * ls_call_result() is; by one thread. */
LS_API void ls_call_take_body(ls_call *call, struct ls_body *out);
/* Cancels the call if it is open. `ended` does not run after this returns,
 * unless it is the caller. NULL and a pointer to NULL are fine. */
LS_API void ls_call_destroy(ls_call **call);

/* Start, wait, and turn the end into a status.
 * answer: NULL, or receives the data: own, free() it; *size is its length.
 * Errors: those of ls_call_start() and ls_call_wait(); LS_EABORTED refused;
 *         LS_ELIMIT the body is longer than the member takes; LS_EHANDLER
 *         failed; LS_ELOST; LS_ETIMEDOUT; LS_ECANCELED. The text is the
 *         result's. */
LS_MUST_USE LS_API int ls_call_ask(ls_rpc *calls,
                                   const struct ls_call_options *options,
                                   void **answer, size_t *size);

/* The same. body: receives the answer's body: own; NULL: it is released. */
LS_MUST_USE LS_API int ls_call_ask_body(ls_rpc *calls,
                                        const struct ls_call_options *options,
                                        void **answer, size_t *size,
                                        struct ls_body *body);

/* Become the master of a member, and stop being it. A member has one master; it
 * is free again when its master disconnects, leaves, or is lost. These are
 * themselves calls, named "ls.connect" and "ls.disconnect".
 * wait_ms: 0 and LS_WAIT_DEFAULT: 10 s.
 * Errors:  those of ls_call_ask(); LS_EABORTED the member has another master
 *          (501), the channel is wrong (202) or missing (201), or this node is
 *          not its master (502). */
LS_MUST_USE LS_API int ls_rpc_connect(ls_rpc *calls, uint32_t to,
                                      uint32_t channel, int wait_ms);
LS_MUST_USE LS_API int ls_rpc_disconnect(ls_rpc *calls, uint32_t to,
                                         int wait_ms);

#ifdef __cplusplus
}
#endif

#endif
