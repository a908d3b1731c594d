/* root_cause.h - which of several failures was the first cause.
 *
 * When a node fails, the others fail after it: they lost a member, or another
 * gave up. These tell of the cause, so they come second, whatever the order in
 * which they were heard of. What a node did after it had been told to stop
 * tells of nothing. Pure. */
#ifndef LOCKSTEP_ROOT_CAUSE_H
#define LOCKSTEP_ROOT_CAUSE_H

#include <stdbool.h>
#include <stddef.h>

/* How a node ended, or that it has said that it failed. */
struct node_end {
    bool over;     /* it ended, or reported its failure */
    bool told;     /* it had been told to stop before */
    int status;    /* as reported; LS_OK when it reported success or nothing */
    bool reported; /* it said how it ended */
    int signal;    /* that killed it; 0: none */
    int exit_code;
    unsigned order; /* when it was heard of: 1, 2, … */
};

enum cause_rank {
    CAUSE_NOTHING,  /* not over, done, or told to stop */
    CAUSE_FOLLOWER, /* failed, and another's failure would explain it */
    CAUSE_FIRST     /* failed by itself */
};

enum cause_rank cause_rank(const struct node_end *end);

/* The index of the first cause among n, or of the first follower when there is
 * no cause; n when nothing failed. rank: of it. */
size_t root_cause(const struct node_end *ends, size_t n, enum cause_rank *rank);

/* The exit code of a run that failed by this. */
int node_end_exit_code(const struct node_end *end);

#endif
