/* profile_table.h - where the time of a run went, and who made others wait.
 *
 * Who causes a wait. At any moment of a wait all nodes that it is still for
 * hold it up, each an equal part: those that have not entered the epoch yet, or
 * not sent. A part of one that works belongs to the step that it is in; one
 * that waits itself hands its part on to those that it waits for. So what is
 * between the arrivals of the last and of the one before it belongs to the last
 * alone, and two nodes that are late in turn get each what it has caused.
 *
 * Nobody is blamed for what is between two arrivals that follow each other by
 * less than the clocks may be wrong: `undecided_ns`. From the last arrival to
 * the end of a wait, messages were under way: `messages_ns`.
 * Thread: serial. */
#ifndef LOCKSTEP_PROFILE_TABLE_H
#define LOCKSTEP_PROFILE_TABLE_H

#include "profile_graph.h"

/* What one iteration had of a step. */
struct profile_sample {
    uint64_t iteration;
    double worked_ns; /* both halves, less the waits in them */
};

/* A step on a node. */
struct profile_row {
    size_t node;
    uint16_t name;
    struct profile_sample *samples; /* own; by iteration */
    size_t n;
    double p50_ns, p99_ns; /* of the samples */
    double worked_ns, waited_ns;
    double blamed_ns; /* of the waiting of others */
};

struct profile_table {
    const struct profile *profile; /* borrow */
    struct profile_row *rows;      /* own; by node, as the steps first ran */
    size_t n_rows;
    double *times_ns;                 /* own; of each node's pieces, in all */
    uint64_t iterations;              /* of the node that had most */
    double waited_ns;                 /* all waiting of all nodes */
    double messages_ns, undecided_ns; /* of it */
    double error_ns; /* the largest of the nodes' clocks, amid their records */
};

/* out: written on success only; give it to profile_table_clear().
 * Errors: LS_ENOMEM. */
LS_MUST_USE int profile_table_make(struct profile_table *out,
                                   const struct profile_graph *graph);
void profile_table_clear(struct profile_table *table);

/* What this node has caused, in all; *most: the row that caused most of it, or
 * NULL. */
double profile_blame(const struct profile_table *table, size_t node,
                     const struct profile_row **most);

/* What it would give if a step were as fast on a node as the median of the
 * nodes of its role that have it too, in each iteration; where it is alone, or
 * others are no faster, if it took half the time: the recorded graph is
 * replayed. Returns by which part of itself the run would be shorter.
 * others: whether it is about the median of others.
 * Errors: LS_ENOMEM. */
LS_MUST_USE int profile_what_if(const struct profile_table *table,
                                const struct profile_graph *graph,
                                const struct profile_row *row, double *out,
                                bool *others);

#endif
