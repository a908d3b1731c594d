/* simulated_run.h - a simulated run: its lives, its faults, its strangers. */
#ifndef LOCKSTEP_SIMULATED_RUN_H
#define LOCKSTEP_SIMULATED_RUN_H

#include "lockstep/disk.h"

#include "node_run.h"
#include "simulated.h"

/* One life of a node: one node_run. Lives stay to the end, since others may
 * still be talking to them. */
struct life {
    simulated *all; /* borrow */
    size_t index;
    ls_host *host;            /* borrow; of the simulation */
    node_run *run;            /* own */
    struct check_life *check; /* borrow; NULL: under a supervisor */
    ls_thread *thread;        /* own; of this life and those after a failure */
    ls_thread *reaper;        /* own; ends the threads of a killed one */
    struct plan_endpoints endpoints;
    char bound[LS_ENDPOINT_MAX + 1]; /* "": not yet */
    unsigned generation;             /* lives of the node before */
    struct plan plan; /* as the job's; borrow: its texts and nodes */
    bool killed;
    struct life *previous; /* of any node */
};

/* The clock of a machine, which is that of all lives on it. */
struct skew {
    int64_t offset_ns;
    double drift;
};

struct simulated {
    struct simulated_options options;
    ls_simulation *simulation; /* own */
    ls_network *network;       /* own */
    checks *checks;            /* own; NULL: under a supervisor */
    supervisor *watcher;       /* borrow; NULL: alone */
    double timeout_s;
    int exit_code;

    struct fault *faults; /* own; n_faults, in order of time */
    size_t n_faults;
    struct skew *skews; /* own; by index in the plan */
    ls_disk **disks; /* own; by index in the plan, one for all when they share
                      * files; NULL: nodes write where the job does */
    ls_thread *injector; /* own */
    uint64_t injected[FAULT_N_KINDS];

    struct intruder *intruders; /* own */
    unsigned n_intruders;       /* ever */
    uint64_t acts;              /* of those that have gone */
    uint64_t refused;           /* by nodes that came to their end */
    uint64_t failed;            /* lives that failed by themselves */
    uint64_t weights;           /* a hash of what came of it; 0: nothing did */

    ls_mutex seen; /* of threads, for who looks from outside: what follows is
                    * changed under it, and the runs of lives end under it */
    struct life *lives;    /* own; the latest first */
    struct life **current; /* own; by index in the plan; NULL: none yet */
    bool closing;          /* no new lives, no more faults */

    char *story; /* own; the events before the violation; NULL: none */
    size_t story_size;

    ls_mutex mutex; /* n_running falls, and is waited for, under it */
    ls_cond ended;
    size_t n_running;
    size_t n_done;     /* ended well */
    int64_t done_at;   /* the first of them */
    int64_t iteration; /* the latest that somebody told of, and when */
    int64_t iterated_at;
};

/* Begin a life of a node, on a host of its own.
 * Errors: those of node_run_create(), ls_disk_join() and
 * ls_thread_spawn(). */
LS_MUST_USE int simulated_begin(simulated *all, size_t index,
                                const struct launch *launch);
/* Whether its nodes have promises that checks.h knows, and outlive their
 * failures. */
bool simulated_is_checked(const struct plan *plan);
/* kill -9. */
void simulated_kill(simulated *all, size_t index);

/* One comes to a node, by its index, and maybe to others. */
void simulated_stranger(simulated *all, const struct fault *fault,
                        size_t first);
/* All go. */
void simulated_strangers_end(simulated *all);

/* A thread that lets the faults happen, each at its time. */
void simulated_inject(void *all);

#endif
