/* request_table.h - what a node was asked to do, as a state machine: who is
 * served, what is open, and what has been asked before. No lock, socket or
 * clock.
 *
 * A member numbers its calls, and they come in that order; so one number per
 * member tells a call that is new from one that has come before, for ever.
 * That number is forgotten with that life of the member, of which nothing can
 * come any more.
 * Thread: serial. */
#ifndef LOCKSTEP_BUS_REQUEST_TABLE_H
#define LOCKSTEP_BUS_REQUEST_TABLE_H

#include "call_wire.h"
#include "open_calls.h"

#define CALL_CONNECT    "ls.connect"
#define CALL_DISCONNECT "ls.disconnect"

/* A name that is served. */
struct served {
    struct served *next;
    enum ls_call_who who;
    ls_request_fn *fn;
    void *self;
    char name[LS_EVENT_MAX + 1];
};

/* What is known of one that asks. */
struct caller {
    uint32_t id;
    uint64_t life;
    uint64_t last; /* number of a call */
};

struct request_table {
    struct served *served; /* the owner's */
    uint32_t channel;
    struct open_calls open; /* what is accepted, until it is answered */
    size_t most;
    uint64_t most_bytes;    /* of the bodies of one caller's */
    struct caller *callers; /* by id */
    size_t n_callers;
    bool has_master;
    uint32_t master;
    uint64_t master_life;
    bool closing;
    uint64_t stale;
};

/* What is to be done about a message that asks. */
enum request_verdict {
    REQUEST_STALE,     /* nothing: it came before, or means another life */
    REQUEST_REFUSE,    /* with the code */
    REQUEST_UNKNOWN,   /* it fails: nobody serves the name */
    REQUEST_DONE,      /* it is completed, without data */
    REQUEST_ACCEPT,    /* its handler is to run */
    REQUEST_NO_MEMORY, /* refused as busy; it may come again */
};

/* Errors: LS_ENOMEM. */
int request_table_init(struct request_table *table, uint32_t channel,
                       size_t most, uint64_t most_bytes);
void request_table_fini(struct request_table *table);

struct served *request_table_served(const struct request_table *table,
                                    const char *name, size_t size);

/* A request came. own: this life of this node; waiting: answers to `from` that
 * have not been sent yet, which count as open. fn: is told of requests of an
 * earlier life of `from`, which are cancelled. */
enum request_verdict
request_table_judge(struct request_table *table, uint32_t from, uint64_t life,
                    uint64_t own, const struct call_message *message,
                    size_t waiting, enum ls_call_code *code, open_call_fn *fn,
                    void *self);

/* A cancel came. Returns the request that it has cancelled, or NULL. */
struct open_call *request_table_cancel(struct request_table *table,
                                       uint32_t from, uint64_t life,
                                       uint64_t own, uint64_t number);
/* A member was lost, or has left: so are its requests, and it is not a master.
 */
void request_table_lose(struct request_table *table, uint32_t id, uint64_t life,
                        open_call_fn *fn, void *self);
/* All members; or this node's own requests too. */
void request_table_lose_all(struct request_table *table, bool own_too,
                            open_call_fn *fn, void *self);
/* Cancel one whose deadline has passed, and return it; NULL: there is none. */
struct open_call *request_table_expire(struct request_table *table,
                                       int64_t now);

#endif
