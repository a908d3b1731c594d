/* profile_graph.h - what each node did when, and what it waited for.
 *
 * A node's time, on the thread that runs its steps, is cut into pieces, each in
 * one step or in none; those that only waited say for whom. It waits
 *   in a barrier        until all who were in that epoch have entered it
 *   in an exchange      in the forward half of the step, until the last message
 *                       has come that it takes
 * Thread: serial. */
#ifndef LOCKSTEP_PROFILE_GRAPH_H
#define LOCKSTEP_PROFILE_GRAPH_H

#include "profile.h"

#define PROFILE_NO_WAIT      SIZE_MAX
#define PROFILE_NO_STEP      UINT16_MAX /* as a name: outside of all steps */
#define PROFILE_NO_ITERATION UINT64_MAX

struct profile_piece {
    int64_t begin, end; /* each begins where the one before ends */
    uint64_t iteration;
    uint16_t name; /* of the step */
    size_t wait;   /* an index, or PROFILE_NO_WAIT: it worked */
};

/* A node that is awaited, until it enters, or sends. */
struct profile_awaited {
    size_t node;
    int64_t at;
    double error; /* of `at`; ns */
};

struct profile_wait {
    size_t node;
    uint64_t number; /* of the epoch, or the iteration */
    uint16_t name;   /* of the barrier, or the step that exchanges */
    uint16_t thread;
    bool barrier;
    int64_t begin, end;
    double error;    /* of both */
    size_t first, n; /* of those that are awaited, by the time that they are */
};

struct profile_line {
    struct profile_piece *pieces; /* own */
    size_t n;
};

struct profile_graph {
    const struct profile *profile; /* borrow */
    struct profile_line *lines;    /* own; one for each node */
    struct profile_wait *waits;    /* own */
    size_t n_waits, waits_capacity;
    struct profile_awaited *awaited; /* own */
    size_t n_awaited, awaited_capacity;
};

/* out: written on success only; give it to profile_graph_clear().
 * Errors: LS_ENOMEM. */
LS_MUST_USE int profile_graph_make(struct profile_graph *out,
                                   const struct profile *profile);
void profile_graph_clear(struct profile_graph *graph);

/* The first piece that ends behind `at`; n when there is none. */
size_t profile_line_at(const struct profile_line *line, int64_t at);

/* The text of a piece's name. */
const char *profile_step_text(const struct profile *profile, uint16_t name);

#endif
