/* group_world.h - ranks in processes of their own, and as many of Open MPI:
 * what bench_alloc, bench_group and bench_shared measure, in turn. Thread:
 * serial. */
#ifndef GROUP_WORLD_H
#define GROUP_WORLD_H

#include <stdbool.h>
#include <stdio.h>

#include "lockstep/node.h"
#include "process.h"

#define GROUP_RANKS_MAX 16 /* and one process for MPI */

struct group_world {
    unsigned n;
    struct process ranks[GROUP_RANKS_MAX];
    bool has_mpi;
    struct process mpi;
    FILE *orders[GROUP_RANKS_MAX]; /* to the ranks of MPI */
};

/* Whether there was an mpicc when this was built; if not, stderr says so. */
bool group_has_mpi(const char *program);

/* Start ranks, with the arguments "rank INDEX N", and all but the first with
 * what that has told: where it is. Returns when each has told that it is ready.
 */
void group_world_start(struct group_world *world, unsigned n);

/* Add as many ranks of MPI. They wait at a pipe while others are measured.
 * transport: one of MPI's, as "tcp" or "vader". */
void group_world_add_mpi(struct group_world *world, const char *transport);

/* In main, for the arguments "mpi N FOLDER TRANSPORT": become mpirun. */
int group_run_mpi(char **arguments);

/* In a rank: its node, which is to be opened. seed: NULL: it is the first. */
ls_node *group_rank_node(unsigned index, unsigned n, const char *seed);

/* In a rank: do what is asked for until its input ends, and answer with ns for
 * each. */
struct group_rank_work {
    void (*once)(void *self, int side, int kind);
    void (*begin)(void *self); /* after the first; NULL: nothing */
    void *self;
};
void group_rank_serve(const struct group_rank_work *work);

/* What is measured: ranks do one kind of operation, so often in a round; in the
 * way `side`, or MPI does. */
struct group_measured {
    struct group_world *world;
    int side, kind, times;
    bool is_mpi;
    char name[80];
};

/* us for one, of the rank that took longest. For struct bench_figure. */
double group_measure(void *measured);

/* All ranks end. */
void group_world_end(struct group_world *world);

#endif
