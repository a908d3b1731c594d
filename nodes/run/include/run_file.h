/* run_file.h - where the nodes of a run listen, told in a file, so that
 * `lockstep call` finds them.
 *
 * It is run.yaml in the folder of the run from the first node's endpoint on to
 * the run's end; a run that was killed leaves it behind, with the pid of one
 * that is gone. Thread: serial. */
#ifndef LOCKSTEP_RUN_FILE_H
#define LOCKSTEP_RUN_FILE_H

#include "plan.h"

#define RUN_FILE_NAME "run.yaml"

/* What it says. Texts: "" for a node that does not listen yet. */
struct run_file {
    int64_t pid; /* of the run */
    uint64_t hash;
    uint64_t place; /* plan_place(), for lockstep status; 0: it is not known */
    size_t n_nodes;
    struct run_file_node {
        uint32_t id;
        char endpoint[LS_ENDPOINT_MAX + 1];
    } nodes[PLAN_NODES_MAX];
};

/* Replace the file of this plan. Errors: LS_EIO, which names it;
 * LS_ELIMIT; LS_ENOMEM. */
LS_MUST_USE int run_file_write(const struct plan *plan,
                               const struct run_file *file);

/* out: written on success only.
 * Errors: LS_ENOENT there is none, or its run is gone; LS_ECONFIG, LS_EIO it
 *         cannot be read; LS_ENOMEM. */
LS_MUST_USE int run_file_read(struct run_file *out, const struct plan *plan);

/* Remove the file if it is this one, as it was written last. */
void run_file_remove(const struct plan *plan, const struct run_file *file);

#endif
