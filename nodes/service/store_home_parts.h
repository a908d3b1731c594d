/* store_home_parts.h - the home's inside: what its files share.
 *
 * Two locks. `lock` guards what is kept and what has half come; requests are
 * taken out of it before they are answered. `turn` guards the jobs alone; it is
 * the one that a request's alarm takes, so no request is answered under it. */
#ifndef LOCKSTEP_STORE_HOME_PARTS_H
#define LOCKSTEP_STORE_HOME_PARTS_H

#include "store_home.h"
#include "store_table.h"

/* A request that is answered later. */
struct store_job {
    struct store_job *next;
    ls_request *request; /* own */
    uint32_t from;
    struct store_claim claim; /* of a put */
    bool is_put;
    size_t n;                    /* 1 for a put that is to be written */
    struct store_bytes *bytes[]; /* own; room for those of the kind */
};

/* Bytes that came before their claim. */
struct store_arrival {
    struct store_arrival *next;
    uint32_t from;
    struct store_value value;
    struct store_bytes *bytes; /* own; NULL: there was no room */
};

#define STORE_SENDERS_MAX 64

struct store_home {
    ls_node *node;
    bool hears, watches; /* events; members */
    ls_runtime *runtime;
    size_t max_bytes;
    struct store *kept; /* own; NULL: none */

    ls_mutex lock;
    struct store_table table;
    struct store_job *claims;       /* puts whose bytes have not come */
    struct store_arrival *arrivals; /* the oldest first */
    uint64_t arrived;               /* their bytes */
    struct store_home_stats stats;  /* names and bytes are not kept up */

    ls_mutex keeping; /* one value is written at a time */

    ls_mutex turn;
    ls_cond changed;
    struct store_job *jobs; /* the oldest first */
    bool alarmed;           /* a request is of no use any more */
    bool closing;
    ls_thread *senders[STORE_SENDERS_MAX];
    unsigned n_senders;
};

/* The handlers. */
int store_home_on_bytes(void *self, const struct ls_event *event);
void store_home_on_member(void *self, const struct ls_member *member);
int store_home_on_put(void *self, ls_request *request);
int store_home_on_get(void *self, ls_request *request);
int store_home_on_drop(void *self, ls_request *request);

/* Answer and free it. status other than LS_OK: with ls_error_text(). */
void store_home_answer(struct store_job *job, int status);
void store_home_arrival_free(struct store_arrival *arrival);

/* Hand a job to the senders. */
void store_home_queue(struct store_home *home, struct store_job *job);
/* What a sender runs; self: the home. */
void store_home_sender(void *self);
/* An alarm of a request; self: the home. */
void store_home_alarm(void *self);

#endif
