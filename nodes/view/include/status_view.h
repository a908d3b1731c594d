/* status_view.h - what the nodes of a job say of themselves and of each other,
 * as a table and as JSON.
 *
 * Thread: owner. */
#ifndef LOCKSTEP_STATUS_VIEW_H
#define LOCKSTEP_STATUS_VIEW_H

#include <stdio.h>

#include "health.h"

enum status_kind {
    STATUS_ANSWERS,
    STATUS_SILENT,  /* it is there, and does not answer */
    STATUS_REFUSED, /* what came is not an answer: its text says why */
    STATUS_GONE,
    STATUS_ELSEWHERE, /* others hear it; it is not on this host */
    STATUS_N_KINDS
};

struct status_node {
    uint32_t id;
    enum status_kind kind;
    const struct health_answer *answer; /* borrow; NULL: it was not asked */
    char role[32];                      /* "": nobody knows */
    char endpoint[257];                 /* alike */
    char seen_as[16]; /* by others, "lost"; "": none of them answers */
    int64_t heard_ms; /* ago, by who heard it last; -1: by nobody */
    /* Since the ask before; NaN: not known. */
    double iterations_per_s, env_steps_per_s, events_per_s;
    int64_t awaited_ns; /* by all others, at barriers */
};

struct status_view {
    const char *job, *folder;  /* borrow */
    struct status_node *nodes; /* own; n, by their ids */
    size_t n;
    size_t n_answer;
    int64_t waited_ns; /* of all that answer, in the time that they tell of */
    size_t slowest;    /* for whom they waited most; n: nobody is known */
};

/* What is told of one moment: n nodes were asked. Borrow. */
struct status_asked {
    const uint32_t *ids;
    const struct health_answer *answers;
    size_t n;
};

/* before: of a while ago, for rates; NULL: there was none.
 * out:    own; written on success only; give it to status_view_clear(). It
 *         borrows the answers.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int status_view_make(struct status_view *out,
                                 const struct status_asked *now,
                                 const struct status_asked *before);
void status_view_clear(struct status_view *view);

void status_view_print(const struct status_view *view, FILE *to);
/* One line on stdout. Errors: those of json_print_line(). */
LS_MUST_USE int status_view_json(const struct status_view *view);

#endif
