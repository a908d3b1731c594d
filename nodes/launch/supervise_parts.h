/* supervise_parts.h - what the files of the supervisor share: it watches and
 * decides (supervise.c), applies the policies of nodes that failed
 * (supervise_policy.c), and says what came of it (supervise_say.c). */
#ifndef LOCKSTEP_SUPERVISE_PARTS_H
#define LOCKSTEP_SUPERVISE_PARTS_H

#include "lockstep/runtime.h"

#include "judge.h"
#include "restart.h"
#include "supervise.h"

#define SUPERVISE_LINES_KEPT 20
/* The first node that is done is followed by all within this. */
#define SUPERVISE_STRAGGLE_MS 10000

struct watched {
    struct judge_end end;
    bool launched, gone;
    long pid;
    char endpoint[LS_ENDPOINT_MAX + 1]; /* "" until it listens */
    char text[LS_ERROR_TEXT_MAX];       /* why it failed */
    char *lines[SUPERVISE_LINES_KEPT];  /* own; the last ones, a ring */
    size_t n_lines;                     /* ever */
    struct restarts restarts;
    int64_t restart_at; /* ls_now(); 0: it is not to be started again */
    bool listens;       /* this life of it */
    bool working;       /* and is in the world */
    bool keeps_address; /* it was told to listen where its last one did */
    bool let_go;        /* the run goes on without it */
    bool stuck;         /* it has said why it does not end */
    bool final;         /* its failure is the run's, whatever its policy */
};

struct supervisor {
    const struct plan *plan;         /* borrow */
    render *render;                  /* borrow; under mutex */
    const struct launcher *launcher; /* borrow; in supervise() */
    ls_runtime *runtime;
    ls_mutex mutex;
    ls_cond cond;
    struct watched *nodes; /* own; n */
    size_t n;
    size_t n_launched, n_gone;
    int64_t stop_at; /* the run is over by then, at the latest: stop.minutes */
    unsigned order;  /* of the last end */
    struct run_file *told; /* own; where the nodes listen, as was told last;
                            * NULL: it was not */
    bool moved;    /* a node listens that the run's file does not tell of */
    bool any_done; /* a node reported success */
    bool any_failed;
    bool done;       /* it has come to its end */
    int interrupted; /* by this signal */
};

enum outcome {
    GOING,
    REACHED,
    ALL_DONE,
    LEFT_BEHIND, /* all are done but some that the run can do without */
    FAILED,
    INTERRUPTED,
    TIME_UP
};

/* --- supervise_policy.c: with the mutex held ------------------------------ */

/* Whether what a node failed with is the run's failure: else its policy has
 * had, or will have, its say. */
bool supervise_counts(const supervisor *sup, size_t index);

/* Apply the policies of those that have ended; call it after every change. */
void supervise_apply(supervisor *sup);

/* A node whose time to be started again has come; n: none. */
size_t supervise_next_due(const supervisor *sup);
/* When that will be; LS_FOREVER: never. */
int64_t supervise_due_at(const supervisor *sup);

/* A node that is being started again while the others end; n: none. */
size_t supervise_next_useless(const supervisor *sup);

/* The others have been done for long: go on without those that are not, if
 * what they would fail with were not the run's failure. */
bool supervise_leave_behind(supervisor *sup);

/* Start a node; without the mutex. */
void supervise_start(supervisor *sup, size_t index);

/* --- supervise_say.c: with the mutex held --------------------------------- */

/* What became of a node, in a sentence without its dot. */
void supervise_describe(const supervisor *sup, size_t index, char *text,
                        size_t size);
/* Say that a node failed and the run with it, respectively what others say
 * of it; returns the exit code. */
int supervise_show_node(supervisor *sup, size_t index);
void supervise_show_others(supervisor *sup, size_t first);
/* Say that a node does not end. where: what it is at; NULL: it does not say. */
void supervise_show_stuck(supervisor *sup, size_t index, const char *where);
int supervise_show_run(supervisor *sup, int status, int exit_code,
                       const char *text);
/* deadline: that of timeout_s. */
int supervise_show_late(supervisor *sup, double timeout_s, int64_t deadline);

#endif
