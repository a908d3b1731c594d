/* barrier_why.h - why epochs of a barrier were given up. Thread: serial. */
#ifndef BARRIER_WHY_H
#define BARRIER_WHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "barrier_peers.h"
#include "barrier_wire.h"

/* Why an epoch was given up, as others are told. */
struct ls_epoch_reason {
    int status;
    bool final;      /* the wait has failed, whatever the policy is */
    uint32_t origin; /* who gave up first */
    char text[LS_BARRIER_REASON_MAX + 1];
    uint32_t n_lacking; /* who was waited for */
    size_t n_missing;
    struct ls_barrier_missing missing[LS_BARRIER_MISSING_MAX];
};

/* A node that lags behind keeps the reasons of so many epochs ahead of it, and
 * of as many of the latest; and those of the last that it failed itself. */
#define LS_EPOCH_HEARD 8

struct ls_epoch_heard {
    uint64_t rounds; /* the epoch, plus 1; 0: none */
    bool joined;     /* who said so was */
    uint32_t by;     /* and is this member, in this life */
    uint64_t incarnation;
    struct ls_epoch_reason reason;
};

/* How an epoch ended. */
struct ls_epoch_end {
    int status;
    uint64_t epoch;
    uint32_t flags;     /* LS_OK: everyone's */
    uint32_t last;      /* LS_OK: who entered last */
    uint64_t since;     /* LS_OK: these are the members since then */
    uint32_t n_members; /* LS_OK */
    uint32_t n_lost;    /* LS_OK: since the epoch that ended before */
    struct ls_epoch_reason reason; /* else */
};

/* Of barrier_why.c, but for given_up, early and refuse, which are of
 * barrier_epoch.c. */
struct ls_epoch_why {
    struct ls_epoch_reason failed; /* the last one that failed: */
    uint64_t failed_rounds;        /* that epoch, plus 1; 0: none */
    char past[40];                 /* what is said when a reason is not kept */
    bool given_up; /* the next wait has failed before it began, with: */
    struct ls_epoch_end early;
    bool refuse; /* give up the next epoch once asked */
    /* By epoch % LS_EPOCH_HEARD: why it was given up. Nearer epochs come first,
     * since this node enters them earlier; later ones in `beyond`, since the
     * others may send it there. Those behind it are for who asks about them. */
    struct ls_epoch_heard heard[LS_EPOCH_HEARD];
    struct ls_epoch_heard beyond[LS_EPOCH_HEARD];
    uint64_t report_epoch;         /* of `report`, plus 1; 0: none */
    struct ls_epoch_reason report; /* whom the leader lacks */
};

/* text: copied, cut. */
void ls_why_set_text(struct ls_epoch_reason *reason, const char *text,
                     size_t size);
/* Why that epoch was given up. NULL: that is not known. */
const struct ls_epoch_heard *ls_why_find(const struct ls_epoch_why *why,
                                         uint64_t number);
/* The epoch has failed for the reason in `failed`: for those who ask later. */
void ls_why_failed(struct ls_epoch_why *why, uint64_t epoch);
/* And so have those from `first` on, before it: nobody enters them any more. */
void ls_why_passed(struct ls_epoch_why *why, uint64_t first, uint64_t epoch);
/* Keep what an ABORT says, with this epoch under way. What a member has said is
 * not taken back by one who is none. */
void ls_why_heard(struct ls_epoch_why *why, uint64_t epoch,
                  const struct ls_epoch_peer *peer,
                  const struct ls_barrier_message *message);
/* Keep whom the leader lacks, for this node's own error should its time run
 * out. */
void ls_why_report(struct ls_epoch_why *why, uint64_t epoch,
                   const struct ls_barrier_message *message);
bool ls_why_has_report(const struct ls_epoch_why *why, uint64_t epoch);
/* Who had given up a later epoch was in this one too. Where all who were ahead
 * are gone, epochs count anew from here, and what was heard is of others. */
void ls_why_forget_others(struct ls_epoch_why *why, uint64_t epoch,
                          const struct ls_epoch_peers *peers);

#endif
