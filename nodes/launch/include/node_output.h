/* node_output.h - what becomes of the lines that the nodes of a run write.
 *
 * All are shown; or none but the last ones of a node that the run fails by; or
 * they go to a folder. There each run has a folder of its own,
 * "JOB.3-1f0a9c77", by its number and its token, and in that each node a file,
 * node-3.log. So a run that goes on adds to its own, and no run to what it did
 * not write. Thread: any, for lines; else owner. */
#ifndef LOCKSTEP_NODE_OUTPUT_H
#define LOCKSTEP_NODE_OUTPUT_H

#include "plan.h"

struct run_folder;
typedef struct node_output node_output;

/* what:   borrow: "all", or NULL; "only_error"; or a folder, which is made.
 * run:    borrow; without a name: it has none, and adds to nothing.
 * out:    own; written on success only; give it to node_output_close().
 * Errors: LS_EIO, LS_ELIMIT, each of which names the file; LS_ENOMEM. */
LS_MUST_USE int node_output_open(node_output **out, const char *what,
                                 const struct plan *plan,
                                 const struct run_folder *run);

/* Whether lines are shown as they come. NULL: they are. */
bool node_output_shows(const node_output *output);

/* A line without its end. One that cannot be written is counted; later ones are
 * tried again. NULL output: nothing. */
void node_output_line(node_output *output, size_t index, const char *line);

/* It is freed, whatever is returned. NULL and a pointer to NULL are fine.
 * Errors: LS_EIO lines are missing: how many, and why. */
LS_MUST_USE int node_output_close(node_output **output);

#endif
