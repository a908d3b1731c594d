/* ask.h - what the node that leads asks others, and how they answer. Each
 * question is one call; question and answer are maps, and may bring a body. An
 * answer has the status and the error's text, and what was asked for.
 *
 * A node without a world asks itself. Thread: as its owner says; the mutex is
 * for the owner's state, too. */
#ifndef LOCKSTEP_SAVES_ASK_H
#define LOCKSTEP_SAVES_ASK_H

#include "lockstep/call.h"
#include "lockstep/codec.h"
#include "lockstep/runtime.h"

/* ---- answering --------------------------------------------------------- */

/* A question as it is worked on. */
struct question {
    ls_request *request; /* NULL: of the node itself */
    const ls_value *said;
    struct ls_body body; /* own; that came with it */
    ls_writer *answer;   /* a map that was begun */
    struct ls_body out;  /* given; goes with the answer */
};

/* What is said under a key; `otherwise` and "" when it is none. */
int64_t question_int(const struct question *question, const char *key,
                     int64_t otherwise);
const char *question_text(const struct question *question, const char *key);
/* Whether nobody waits for the answer any more. */
bool question_is_cancelled(const struct question *question);

/* Works on one, adds to the answer, and returns the status of it. */
typedef int question_fn(void *self, struct question *question);
/* Reads the request, works on it, and answers. */
void question_serve(ls_request *request, question_fn *fn, void *self);
/* Answers it with a status, and this thread's error text. */
void question_refuse(ls_request *request, int status);

/* ---- asking ------------------------------------------------------------ */

struct asker {
    ls_runtime *runtime;         /* borrow */
    ls_rpc *calls;               /* borrow; NULL: no world */
    question_fn *alone;          /* who answers then */
    void *self;                  /* borrow: for it */
    char name[LS_EVENT_MAX + 1]; /* of the calls */
    /* With the mutex held: whether who asks has to give up. Looked at when the
     * condition is signalled. NULL: it never has to. */
    bool (*is_over)(void *self);
    ls_mutex mutex;
    ls_cond cond; /* broadcast when a question has ended */
};

/* name: of calls. alone, self: only without calls. */
LS_MUST_USE int asker_init(struct asker *out, ls_runtime *runtime,
                           ls_rpc *calls, const char *name, question_fn *alone,
                           void *self);
void asker_fini(struct asker *asker);
/* With the mutex held: until something has changed. */
void asker_wait(struct asker *asker);
/* With the mutex held: is_over(). */
bool asker_is_over(const struct asker *asker);
/* Of a thread that ends by itself. */
void asker_join(ls_thread **thread);

/* One question to one node, and its answer. */
struct ask {
    struct asker *asker;
    uint32_t to;
    ls_call *call; /* own */
    bool ended, seen;
    int status;            /* of its end, and of the answer: ask_end() */
    ls_document *document; /* own: of the answer */
    struct ls_body body;   /* own: of the answer */
};

/* Starts one; `ended` is set and the condition signalled when it has ended. A
 * call that cannot be started has ended, as lost. Clears the writer.
 * body: given; NULL: there is none. */
void ask_begin(struct ask *ask, struct asker *asker, uint32_t to,
               ls_writer *writer, const struct ls_body *body, int timeout_ms);
/* Reads the answer of one that has ended; the status is kept in it, and the
 * text begins with the node. */
int ask_end(struct ask *ask);
void ask_destroy(struct ask *ask);
/* Whether a number that was said is the status of a failure, which one that
 * only a later version knows is, too. */
bool ask_is_failure(int64_t said);

/* What is asked node i: a whole map, and perhaps a body. An error ends it all.
 */
typedef int ask_fn(void *self, ls_writer *writer, struct ls_body *body,
                   size_t i);
/* The same question to all of nodes[n]; the first failure cancels the others,
 * and so does is_over().
 * asks: n of them, all zero; destroy them afterwards. */
LS_MUST_USE int ask_all(struct asker *asker, const uint32_t *nodes, size_t n,
                        ask_fn *write, void *self, int timeout_ms,
                        struct ask *asks);
/* The same, where nobody needs the answers. */
LS_MUST_USE int ask_each(struct asker *asker, const uint32_t *nodes, size_t n,
                         ask_fn *write, void *self, int timeout_ms);

#endif
