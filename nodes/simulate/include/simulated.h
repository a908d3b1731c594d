/* simulated.h - every node on a host of its own, all in one simulation.
 *
 * The nodes are those of `lockstep run`, to the last line; what stands in for
 * the machine is ls_simulation and ls_network. Faults are injected by a thread
 * of the simulation that stands outside of all hosts. Two ways to run it:
 *   under a supervisor, as `run --as sim` does: the first failure ends the run
 *   alone, as `sim` does: whoever fails begins a new life, killed nodes come
 *     back, and checks.h watches
 * Thread: one, which is that of the simulation. */
#ifndef LOCKSTEP_SIMULATED_H
#define LOCKSTEP_SIMULATED_H

#include <stdio.h>

#include "lockstep/network.h"

#include "checks.h"
#include "faults.h"
#include "setup.h"
#include "supervise.h"

typedef struct simulated simulated;

struct simulated_options {
    const struct plan *plan;     /* borrow */
    const struct plugin *plugin; /* borrow; NULL: members need none */
    const struct faults *faults; /* borrow */
    uint64_t seed;
    FILE *log; /* borrow; NULL: none */
};

/* out: own. Errors: LS_ENOMEM. */
LS_MUST_USE int simulated_create(simulated **out,
                                 const struct simulated_options *options);
void simulated_destroy(simulated **simulated);

/* The faults of its seed. out: own: free(). Errors: LS_ENOMEM. */
LS_MUST_USE int simulated_faults(const struct simulated_options *options,
                                 struct fault **out, size_t *n);

/* Whose time a supervisor of it uses. */
ls_runtime *simulated_runtime(simulated *simulated);

/* Run under this supervisor; to be called once.
 * exit_code: what supervise() returned; written on success only.
 * Errors: those of ls_simulation_run(). */
LS_MUST_USE int simulated_supervise(simulated *simulated, supervisor *watcher,
                                    double timeout_s, int *exit_code);

/* Run alone; to be called once. Errors: those of ls_simulation_run(), of which
 * each is a violation; LS_ENOMEM. */
LS_MUST_USE int simulated_check(simulated *simulated);

/* What runs now, for a run that does not come to its end: "node 1 (collector)
 * is in step collect"; "" for nothing. text: cut to size.
 * Thread: any; it waits for nothing. */
void simulated_where(simulated *simulated, char *text, size_t size);

struct simulated_figures {
    struct checks_figures checks;
    struct ls_network_stats network;
    uint64_t injected[FAULT_N_KINDS];
    uint64_t acts;    /* of strangers */
    uint64_t refused; /* by all nodes, in lives that were not killed */
    uint64_t failed;  /* lives that ended so, without being killed */
    /* A hash of the weights that a job in lock step came to, if no node was
     * lost in it: of its seed and of nothing else. 0: there are none. */
    uint64_t weights;
    int64_t virtual_ns;
};
/* After the run. */
void simulated_figures(const simulated *simulated,
                       struct simulated_figures *out);

/* Print the last events, oldest first: those before the violation, or before
 * the end. */
void simulated_print(const simulated *simulated, FILE *out);

#endif
