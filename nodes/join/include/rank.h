/* rank.h - which node of a plan this process is, as the environment says that
 * its launcher gave it. Thread: serial. */
#ifndef LOCKSTEP_RANK_H
#define LOCKSTEP_RANK_H

#include "plan.h"

struct rank {
    size_t index;     /* in the plan */
    const char *from; /* the variable that said so: "RANK" */
    bool apart;       /* the nodes are not all on this host, or may not be */
};

/* The first of these that is set, each with the size of the world, which must
 * be that of the plan: LOCKSTEP_NODE_ID, an id; RANK; OMPI_COMM_WORLD_RANK;
 * PMI_RANK; SLURM_PROCID; JOB_COMPLETION_INDEX, without a size. All but the
 * first count the plan's nodes from 0, in its order.
 * Errors: LS_ENOENT none is; LS_EINVAL it is not a number, out of range or of
 *         another size, or another one disagrees; the last two do not, since
 *         what is launched inside of a Slurm or Kubernetes job inherits them.
 */
LS_MUST_USE int rank_read(struct rank *out, const struct plan *plan);

#endif
