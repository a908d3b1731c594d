/* barrier_wire.h - the barrier's messages as bytes. Layout: docs/barrier.md.
 * Thread: any; nothing is kept. */
#ifndef BARRIER_WIRE_H
#define BARRIER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

/* What the sender says of `epoch`. ENTERED < READY < LEFT is the order in
 * which one node goes through it; ABORT ends it instead. The numbers are those
 * on the wire. */
enum ls_barrier_kind {
    LS_BARRIER_ENTERED = 1, /* I have entered it */
    LS_BARRIER_READY = 2,   /* I know that everyone in `view` has */
    LS_BARRIER_LEFT = 3,    /* I left it: everyone was ready */
    LS_BARRIER_ABORT = 4,   /* I gave it up, and do not take part in it */
    LS_BARRIER_EXPECT = 5,  /* I do not count you before epoch `next` */
    LS_BARRIER_ABSENT = 6,  /* I have not entered it yet, but am here. With
                             * ask: has it been given up? */
    LS_BARRIER_GONE = 7,    /* I have no barrier of this name any more */
    LS_BARRIER_UNKNOWN = 8  /* I have none of this name; the reason says which
                             * I have */
};

#define LS_BARRIER_EPOCH_MAX   (UINT64_C(1) << 62)
#define LS_BARRIER_REASON_MAX  200 /* bytes */
#define LS_BARRIER_MISSING_MAX 64  /* members named; more are only counted */

struct ls_barrier_missing {
    uint32_t id;
    uint64_t rounds; /* the last epoch that it entered, plus 1; 0: none known */
};

struct ls_barrier_message {
    enum ls_barrier_kind kind;
    bool ask;       /* the receiver may answer */
    bool again;     /* asked before: it must, if it has anything to say */
    bool stuck;     /* ENTERED: goes on only by another's word, and believes
                     * nothing any more that one of the lost has said */
    bool branch;    /* ENTERED, READY: this holds for all below the sender in
                     * the tree as well, but for the missing and all below
                     * those */
    bool astray;    /* the sender does not go by the tree any more */
    bool final;     /* ABORT: the wait has failed, whatever the policy is */
    bool full;      /* READY, LEFT, as sent: the receiver may not know yet that
                     * all have entered. Not on the wire */
    uint8_t known;  /* ENTERED or READY: what the sender knows of the receiver
                     * in this epoch; 0: nothing */
    uint64_t to;    /* incarnation of the receiver */
    uint64_t epoch; /* < LS_BARRIER_EPOCH_MAX, as next */
    uint64_t view;  /* hash of the members that the sender counts in it */
    uint64_t next;  /* the epoch in which the sender counts the receiver next */
    uint64_t since; /* the epoch since which these are the members, as far as
                     * the sender knows */
    uint32_t rules; /* hash of the options that must be the same in all */
    uint32_t flags; /* ENTERED: the sender's, with branch those of all below it
                     * too; READY, LEFT: everyone's */
    uint32_t last;  /* READY, LEFT, and with branch: who entered last */

    /* Only written when one of them is set. Borrow: from whoever made them;
     * after decoding, reason from the bytes and missing from the scratch. */
    int status;                               /* ABORT: the first cause;
                                               * negative, and maybe none that
                                               * the receiver knows. With
                                               * lost_one: LS_ELOST, or
                                               * LS_EMISMATCH, it has taken its
                                               * barrier down. Else 0 */
    uint32_t origin;                          /* ABORT: who gave up first */
    const char *reason;                       /* not NUL-terminated */
    size_t reason_size;                       /* <= LS_BARRIER_REASON_MAX */
    uint32_t n_lacking;                       /* how many are waited for */
    const struct ls_barrier_missing *missing; /* the first of them */
    size_t n_missing;                         /* <= LS_BARRIER_MISSING_MAX */
    uint32_t n_lost;   /* ENTERED: members that the sender has lost; GONE: 1 if
                        * it goes after such a loss; else 0 */
    uint64_t lost;     /* the hash of those */
    uint32_t lost_one; /* the id of the first of those, or of whose loss made
                        * that one take its barrier down */
};

/* The most that one message takes. */
#define LS_BARRIER_WIRE_MAX (128 + 256 + 12 * LS_BARRIER_MISSING_MAX)

/* Write a message; returns its size in bytes. */
size_t ls_barrier_wire_encode(const struct ls_barrier_message *message,
                              unsigned char out[LS_BARRIER_WIRE_MAX]);

/* Read one.
 * out:     written on success only.
 * scratch: where out->missing points to; borrow until out is done with.
 * Errors:  LS_EPROTO for anything that encode could not have written. */
LS_MUST_USE int ls_barrier_wire_decode(
    const void *data, size_t size, struct ls_barrier_message *out,
    struct ls_barrier_missing scratch[static LS_BARRIER_MISSING_MAX]);

#endif
