/* call.h - ask a member to do something, and learn how it ended.
 *
 * A call has a name and up to LS_CALL_DATA_MAX bytes; the member that serves
 * the name answers with as many. Whatever happens, a call ends, and exactly
 * once: it is answered, or its member is lost, or its deadline passes, or it is
 * cancelled. The member does each call at most once, however often the network
 * repeats it, and an answer counts for the very call that it was given to:
 * after a restart on either side no old answer matches anything.
 *
 *   idle → starting → started ─┬→ completed    with what the handler answered
 *              │               ├→ failed       with the handler's message
 *              └→ start_failed │               refused: `code` says why
 *           from any of the two: lost, timeout, cancelled
 *
 * What is larger is its body: bytes of any length that come beside the data, in
 * parts between which other messages pass, and without being copied where the
 * network allows.
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
 * Given: data is moved, and released by release(data, hint) once nobody needs
 * it, on any thread, whatever is returned; release NULL: it is copied. It must
 * not call anything of this header.
 * Taken: own, until ls_body_release(); NULL and 0: there is none. */
struct ls_body {
    void *data;  /* aligned to 8 bytes, if what was given was */
    size_t size; /* less than 4 GiB */
    void (*release)(void *data, void *hint);
    void *hint;
};
/* Any thread, also when its node is gone; sets *body to none, which is fine. */
LS_API void ls_body_release(struct ls_body *body);

/* Of a node: what it asks, and what it is asked. One per node. */
typedef struct ls_rpc ls_rpc;
/* One, at the node that asks. */
typedef struct ls_call ls_call;
/* One, at the node that is asked. */
typedef struct ls_request ls_request;

/* Those from completed on are ends. */
enum ls_call_state {
    LS_CALL_IDLE = 0x00,
    LS_CALL_STARTING = 0x11,     /* on its way */
    LS_CALL_STARTED = 0x12,      /* the member has begun it */
    LS_CALL_START_FAILED = 0x13, /* the member refused it; an end as well */
    LS_CALL_COMPLETED = 0x21,
    LS_CALL_FAILED = 0x22,    /* its handler says so */
    LS_CALL_LOST = 0x31,      /* the member was lost, or left, before */
    LS_CALL_TIMEOUT = 0x32,   /* the deadline passed */
    LS_CALL_CANCELLED = 0x33, /* by the one that asked */
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
LS_API const char *ls_call_code_sentence(int code); /* "?" for no code */
LS_API bool ls_call_state_is_end(enum ls_call_state state);

struct ls_rpc_options {
    uint32_t channel; /* what this node serves; calls to it must name the same.
                       * 0: it is not asked for */
    size_t max_requests;   /* begun and not answered, of all callers together;
                            * one more is refused as busy. default 64, at most
                            * 65536 */
    size_t max_calls;      /* of this node that are open; one more fails with
                            * LS_EAGAIN. default 1024, at most 65536 */
    size_t max_body_bytes; /* of the bodies of one member's requests that are
                            * open here, together, and of its answers that are
                            * on their way here: a body that is longer by itself
                            * is refused as too long, one more as busy; an
                            * answer fails. default 1 GiB, at most 4 GiB - 1 */
    unsigned n_workers; /* threads that run handlers, at most 64; 0: the node's
                         * dispatch thread does, in order with events */
};

/* Open them; one per node, before ls_node_start() if no call may be missed.
 * out:     own; NULL after an error; give it to ls_rpc_close().
 * options: copied; NULL: all default.
 * Errors: LS_EINVAL; LS_EEXIST the node has them already; LS_ENOMEM;
 * LS_ECLOSED; those of ls_thread_spawn(). */
LS_MUST_USE LS_API int ls_rpc_open(ls_rpc **out, ls_node *node,
                                   const struct ls_rpc_options *options);

/* End every open call as cancelled, refuse every request that has not begun as
 * shutting down and fail those that have, wait for handlers that run and for
 * every `ended`, and free. An answer whose body has not gone whole fails.
 * Before the node is destroyed; not from a handler. Calls that were not
 * destroyed stay readable, and requests are still to be answered. NULL and a
 * pointer to NULL are fine. */
LS_API void ls_rpc_close(ls_rpc **calls);

/* Serving ---------------------------------------------------------------- */

/* Runs when a request comes. It owns the request and answers it exactly once
 * (complete, fail or refuse), now or later, from any thread. Returns LS_OK; or
 * an error, and the request, unless it was answered before, fails with its
 * text. A name that nobody serves fails with "task name error". */
typedef int ls_request_fn(void *self, ls_request *request);

enum ls_call_who {
    LS_CALL_ANYONE,     /* whoever asks */
    LS_CALL_MASTER_ONLY /* the node that ls_rpc_connect()ed; others: 502 */
};

/* Until close. name: copied.
 * Errors: LS_EINVAL the name is none of an event's, or fn is NULL; LS_EEXIST it
 *         is served already; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_rpc_serve(ls_rpc *calls, const char *name,
                                    enum ls_call_who who, ls_request_fn *fn,
                                    void *self);

/* Borrow: until it is answered. */
LS_API const char *ls_request_name(const ls_request *request);
LS_API const void *ls_request_data(const ls_request *request, size_t *size);
/* Its body; NULL and 0: there is none, or it was taken. Borrow, as the data. */
LS_API const void *ls_request_body(const ls_request *request, size_t *size);
/* Keep it: it does not go with the request. */
LS_API void ls_request_take_body(ls_request *request, struct ls_body *out);
LS_API uint32_t ls_request_from(const ls_request *request);
LS_API int64_t ls_request_deadline(const ls_request *request); /* ls_now() */

/* Be told when the caller cancels it, was lost, or its deadline has passed; at
 * once when that is so already. The answer is then of no use to anyone, and
 * still has to be given. fn NULL takes it away, and returns only when it does
 * not run any more; so does an answer. fn: called from the bus thread, or from
 * any that is in a function of this header: it wakes a wait, no more. */
LS_API void ls_request_on_cancel(ls_request *request, void (*fn)(void *self),
                                 void *self);
LS_API bool ls_request_is_cancelled(const ls_request *request);

/* Answer. The request is freed and *request NULL, whatever is returned.
 * Errors: LS_ELIMIT too much data, and the caller sees a failure that says so;
 *         LS_ECANCELED nobody waits for it any more. Both may be ignored. */
LS_API int ls_request_complete(ls_request **request, const void *data,
                               size_t size);
/* The same with a body, which is given. It goes when this has returned: a
 * caller that cancels, or is lost, gets no more of it. Errors: also LS_ENOMEM,
 * and LS_ELIMIT 4 GiB or more: the caller sees a failure that says so. */
LS_API int ls_request_complete_with(ls_request **request, const void *data,
                                    size_t size, const struct ls_body *body);
/* message: copied, cut at LS_CALL_TEXT_MAX. */
LS_API int ls_request_fail(ls_request **request, const char *message);
/* Before the handler returns: the call was not begun; later it is a failure.
 * code: LS_CALL_REFUSED, LS_CALL_BUSY, or one above 1000 of the program's own;
 * any other is LS_CALL_REFUSED. */
LS_API int ls_request_refuse(ls_request **request, int code,
                             const char *message);

struct ls_rpc_stats {
    uint64_t started;  /* calls of this node */
    uint64_t ended[8]; /* of these: completed, failed, start_failed, lost,
                        * timeout, cancelled; in this order */
    uint64_t served;   /* requests answered */
    uint64_t refused;  /* requests refused */
    uint64_t stale;    /* messages, and parts of bodies, for calls that have
                        * ended, or were never */
    uint64_t malformed;
    uint64_t dropped; /* messages and bodies of this node that were not sent, or
                       * not to their ends: whom they were for was gone, or
                       * memory was lacking */
    size_t open_calls, open_requests;
};
LS_API void ls_rpc_stats(ls_rpc *calls, struct ls_rpc_stats *out);

/* The node that this one is connected to as its master, if there is one. */
LS_API bool ls_rpc_master(ls_rpc *calls, uint32_t *id);

/* Asking ----------------------------------------------------------------- */

struct ls_call_result {
    enum ls_call_state state;
    int code;         /* start_failed: why; else 0 */
    const void *data; /* completed: the answer */
    size_t size;
    const void *body; /* completed: of the answer; NULL: there is none, or it
                       * was taken */
    size_t body_size;
    char text[LS_CALL_TEXT_MAX + 1]; /* failed: the handler's message; other
                                      * ends: in words, naming call, member and
                                      * deadline */
};

struct ls_call_options {
    uint32_t to;      /* id of a ready member, or of this node itself */
    uint32_t channel; /* 0: the call does not say */
    const char *name; /* as an event's */
    const void *data; /* copied */
    size_t size;
    struct ls_body body; /* given; also when the call is not started */
    int timeout_ms; /* after which it ends as a timeout; 0: default 10000 */
    /* Runs once, when it has ended and before any ls_call_wait() returns; on
     * the dispatch thread, or, once the node has stopped, on the one that ends
     * it: it may start other calls, and must not wait. NULL: nobody is told. */
    void (*ended)(void *self, ls_call *call);
    void *self;
};

/* out:    own; NULL after an error; written before `ended` runs; give it to
 *         ls_call_destroy(), which may be done in `ended`.
 * Errors: LS_EINVAL the name, or timeout_ms is negative; LS_ELIMIT more than
 * LS_CALL_DATA_MAX, or a body of 4 GiB or more; LS_EAGAIN too many are open;
 * LS_ENOENT there is no such member; LS_ECLOSED; LS_ENOMEM. */
LS_MUST_USE LS_API int ls_call_start(ls_call **out, ls_rpc *calls,
                                     const struct ls_call_options *options);

LS_API enum ls_call_state ls_call_state(ls_call *call);
/* Unique in the life of this node, from 1. */
LS_API uint64_t ls_call_id(const ls_call *call);
/* Wait for its end. wait_ms: LS_WAIT_DEFAULT: as long as the call takes, which
 * has a timeout of its own. Not on the bus or dispatch thread, and so not in a
 * handler when there are no workers. Errors: LS_ETIMEDOUT it has not ended by
 * then, and goes on; what ls_node_interrupt() says, and it goes on; LS_ESTATE
 * on one of those threads. */
LS_MUST_USE LS_API int ls_call_wait(ls_call *call, int wait_ms);
/* Wait until each of several has ended, however it did: all of a fan-out, or
 * some of what is open; others are left alone. NULL among them is fine.
 * Errors: those of ls_call_wait(); LS_ETIMEDOUT one has not ended: named. */
LS_MUST_USE LS_API int ls_call_wait_all(ls_call *const *calls, size_t n,
                                        int wait_ms);
/* End it as cancelled, unless it has ended; its handler is told. */
LS_API void ls_call_cancel(ls_call *call);
/* Only once it has ended: a wait has returned, `ended` runs, or its state is an
 * end. Borrow: until destroy. */
LS_API const struct ls_call_result *ls_call_result(const ls_call *call);
/* Keep the body of its answer: it does not go with the call. When the result
 * may be looked at; by one thread. */
LS_API void ls_call_take_body(ls_call *call, struct ls_body *out);
/* Cancels it when it is open. `ended` does not run once this returns, unless it
 * is called from there. NULL and a pointer to NULL are fine. */
LS_API void ls_call_destroy(ls_call **call);

/* Start, wait, and turn the end into a status.
 * answer: NULL, or where the data goes: own, free() it; *size its length.
 * Errors: those of ls_call_start() and ls_call_wait(); LS_EABORTED refused;
 * LS_ELIMIT the body is longer than the member takes; LS_EHANDLER failed;
 * LS_ELOST; LS_ETIMEDOUT; LS_ECANCELED. The text is the result's. */
LS_MUST_USE LS_API int ls_call_ask(ls_rpc *calls,
                                   const struct ls_call_options *options,
                                   void **answer, size_t *size);

/* The same. body: where that of the answer goes: own; NULL: it is released. */
LS_MUST_USE LS_API int ls_call_ask_body(ls_rpc *calls,
                                        const struct ls_call_options *options,
                                        void **answer, size_t *size,
                                        struct ls_body *body);

/* Become the master of a member, and stop being it. A member has one; it is
 * free again when its master disconnects, leaves, or is lost.
 * They are calls themselves, of the names "ls.connect" and "ls.disconnect".
 * wait_ms: 0 and LS_WAIT_DEFAULT: 10 s.
 * Errors: those of ls_call_ask(); LS_EABORTED it has another (501), the
 *         channel is wrong (202) or not said (201), or this node is not its
 *         master (502). */
LS_MUST_USE LS_API int ls_rpc_connect(ls_rpc *calls, uint32_t to,
                                      uint32_t channel, int wait_ms);
LS_MUST_USE LS_API int ls_rpc_disconnect(ls_rpc *calls, uint32_t to,
                                         int wait_ms);

#ifdef __cplusplus
}
#endif

#endif
