/* options.h - the command line.
 *
 * Thread: serial. */
#ifndef LOCKSTEP_OPTIONS_H
#define LOCKSTEP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

/* The words after `lockstep`: command_NAME() does what NAME says. `takes_job`:
 * it takes a configuration, and so --seed, --set, --out, --json and --nodes. */
#define COMMAND_MAP(X)                                                         \
    X(HELP, help, false)                                                       \
    X(VERSION, version, false)                                                 \
    X(RUN, run, true)                                                          \
    X(NODE, node, true)                                                        \
    X(CHECK, check, true)                                                      \
    X(SIM, sim, true)                                                          \
    X(CALL, call, true)                                                        \
    X(HEALTH, health, true)                                                    \
    X(STATUS, status, true)                                                    \
    X(TOP, top, true)                                                          \
    X(BENCH, bench, false)                                                     \
    X(KEYGEN, keygen, false)                                                   \
    X(PROFILE, profile, true)                                                  \
    X(TRACE, trace, false)                                                     \
    X(REPLAY, replay, true)                                                    \
    X(EVAL, eval, false)                                                       \
    X(EXPORT, export, false)                                                   \
    X(CHECKPOINT, checkpoint, false)

enum command {
    COMMAND_NONE, /* nothing was said: a short help, and exit 2 */
#define COMMAND_ENUM(NAME, name, takes_job) COMMAND_##NAME,
    COMMAND_MAP(COMMAND_ENUM)
#undef COMMAND_ENUM
};

/* What runs the nodes of `run`. */
enum options_as { AS_PROCESSES, AS_THREADS, AS_SIM, AS_COMPOSE };

#define OPTIONS_REPEATS_MAX 64

/* All texts are borrowed from argv. */
struct options {
    enum command command;
    const char *topic;  /* of help; NULL: the overview */
    const char *config; /* the file */
    const char *text;   /* what stands in it; NULL: it is read */
    const char *seed;   /* as given; NULL: what the file says */
    const char *out;    /* the same */
    struct {            /* --set path=value, cut in two in place */
        const char *path;
        const char *value;
    } sets[OPTIONS_REPEATS_MAX];
    size_t n_sets;
    bool json;

    /* run and node */
    bool fresh; /* a new run, whatever there is to go on with */
    bool aside; /* no other run takes notice of it */

    /* run */
    const char *resume; /* "latest", or the number of a run that must go on;
                         * NULL: one that can, does */

    /* run, given by it to its nodes; eval and export */
    int64_t epoch; /* of a checkpoint, or PLAN_FROM_BEST; PLAN_FROM_NEWEST: none
                    * was given */

    /* run, and given by it to its nodes */
    const char *record; /* a file; NULL: the run is not recorded */

    /* run */
    const char *output; /* of its nodes: "all", "only_error", or a folder; NULL:
                         * all */

    /* replay, whose config is a recording, and becomes that of the run */
    struct tape *tape; /* borrow; of the command */

    /* run and profile */
    enum options_as as;
    double timeout_s; /* 0: none */

    /* run, and node */
    const char *patience; /* as given */
    double patience_s;    /* 0: as the file says */

    /* run --as sim, and sim */
    const char *faults;    /* a name or a file; NULL: none, in sim all */
    const char *event_log; /* a file; NULL: none */

    /* sim */
    uint64_t n_seeds;
    uint64_t first_seed;
    const char *sabotage; /* NULL: none */
    const char *minimize; /* a file for the faults that a violation needs */
    bool coverage;        /* show which transitions were taken */
    uint64_t jobs;        /* processes; 0: as many as there are cores */
    uint64_t every; /* of a process that sweeps for another one: only one in so
                     * many seeds; 0: it is none */

    /* call */
    const char *node;     /* an id, or a role that one node has */
    const char *name;     /* of the call */
    const char *argument; /* JSON, or YAML; NULL: none was given */
    int wait_ms;
    uint32_t channel; /* 0: the job's */

    /* health */
    double within_s; /* 0: step_timeout_s */

    /* status, and top: whose config may be a run's folder */
    bool watch;
    double every_s; /* 0.1 to 25 */

    /* eval and export, whose config may be NULL */
    const char *policy;  /* a file of weights, or a run's folder */
    bool force;          /* replace the file, which is `out` */
    uint64_t n_episodes; /* 0: as the configuration says */

    /* checkpoint; and out and force: export */
    struct {
        const char *verb; /* "ls", "show", "verify", "diff", "export", "rm" */
        const char *path; /* a folder of checkpoints, or of a run */
        int64_t epochs[OPTIONS_REPEATS_MAX]; /* each as `epoch` above */
        size_t n_epochs;
        uint64_t keep_last, keep_every, keep_best; /* rm; 0: not given */
        const char *metric; /* of keep_best, and of the epoch best; NULL:
                             * "return" */
        bool least;         /* the smaller the better */
        const char *node;   /* export: of this one; NULL: of all */
        const char *blob;   /* the same */
    } checkpoint;

    /* bench */
    struct {
        const char *what;    /* learner */
        const char *devices; /* "cpu:0,cpu:1" */
        uint64_t queue, stacks, loaders, passes;
        uint64_t load_us, train_us, batch_bytes;
        double seconds;
    } bench;

    /* profile */
    uint64_t n_steps; /* iterations; 0: until the job ends */

    /* profile, and trace, whose config is a run's folder */
    const char *html;    /* a file; NULL: none */
    const char *metrics; /* the same */
    const char *pftrace; /* the same: trace's --out, profile's --trace */

    /* keygen; config may be NULL */
    const char *folder; /* of certificates */
    uint32_t ids[OPTIONS_REPEATS_MAX];
    size_t n_ids;
    bool enrolment;

    /* node */
    bool stop_is_done; /* an orderly end by SIGTERM exits with 0 */

    /* node, without an id */
    const char *role;
    const char *identity; /* a folder; NULL: the usual one */

    /* node; and id, bind, advertise and attach: call; and id: health, and
     * replay, as --node */
    uint32_t id;
    bool has_id;
    const char *bind;
    const char *advertise;
    const char *attach[OPTIONS_REPEATS_MAX];
    size_t n_attach;
    int report_fd;    /* -1: none; given by `run` to the nodes that it starts */
    int secret_fd;    /* the same; to read the run's secret from */
    int parent;       /* the pid of that run; 0: none */
    unsigned life;    /* the same; how often the node was started before */
    const char *run;  /* the same; the run's name in its job's folder */
    const char *gone; /* ids that the run goes on without, "3,7"; or NULL */
};

/* Read the command line. argv's texts are changed: "--set a=b" is cut.
 * Errors: LS_EINVAL, with what to write instead. */
LS_MUST_USE int options_parse(struct options *out, int argc, char **argv);

#endif
