/* report.h - what a node tells whoever watches it.
 *
 * One flat record; which of its fields mean something follows from the kind.
 * Nodes that are threads hand records over by a call; those that are processes
 * write them to a pipe, each as a length and a msgpack map. */
#ifndef LOCKSTEP_REPORT_H
#define LOCKSTEP_REPORT_H

#include <stdint.h>

#include "lockstep/node.h"
#include "lockstep/record.h"

enum report_kind {
    REPORT_BOUND,      /* it listens: endpoint */
    REPORT_STARTED,    /* its world is formed */
    REPORT_PROGRESS,   /* counters; env_steps_per_s */
    REPORT_EVALUATION, /* counters; eval_value, episodes */
    REPORT_DONE,       /* counters, traffic, memory, weights */
    REPORT_FAILED,     /* the same; status, text */
    REPORT_STUCK,      /* it does not end though it has to; text: what it is
                        * at, as node_run_where() has it */
    REPORT_N_KINDS
};

#define REPORT_PATH_MAX    1024
#define REPORT_LOSSES_MAX  1024
#define REPORT_UNSAVED_MAX 512
/* Who, and why: lockstep/node.h. */
#define REPORT_REFUSAL_MAX 256
/* More than all that a policy may say, with names of up to 100 bytes. */
#define REPORT_METRICS_MAX 2560

/* As ls_learner_metrics_write() has them; size 0: there are none, or more than
 * there is room for. */
struct report_metrics {
    size_t size;
    unsigned char bytes[REPORT_METRICS_MAX];
};

struct report {
    int64_t kind;
    int64_t node; /* id */

    int64_t iteration, env_step, env_episode, train_iter; /* counters */
    int64_t discarded; /* env steps of an iteration that does not count, since
                        * the run ended in it */
    int64_t failed_saves; /* after which the run went on */
    double env_steps_per_s;
    double eval_value; /* NaN: none yet */
    int64_t episodes;

    int64_t wait_ns, load_ns, train_ns; /* of a learner: in all; loads and
                                         * trains may overlap */
    int64_t overlap_ns;                 /* of load_ns: while it trained */
    int64_t trained;                    /* in that time: batches */
    int64_t policy_only; /* works it took over with the policy alone */
    int64_t commits;     /* versions of the policy that it has put */

    int64_t works, given_back; /* of a member of a service: works begun; and
                                * given back, since something failed */
    int64_t failed_calls;      /* whose data or policy could not be had */
    int64_t refused_calls;     /* of other works or attempts, or malformed */
    int64_t dropped_samples;   /* of a collector: that nobody took */
    int64_t store_refused;     /* what had no room in its store */

    int64_t epochs, failures;  /* of a member: went well, did not */
    int64_t median_ns, max_ns; /* of its waits for those that went well */
    int64_t barrier_sent, barrier_repeated; /* messages */

    int64_t samples, infos, done_infos; /* of a coordinator: got */
    int64_t batches;                    /* learned */
    int64_t requeued, expired; /* works given out again, and given up */
    int64_t refused_starts;    /* works that a member did not take */
    int64_t refused_data;      /* answers that were none */
    int64_t pushed_out; /* samples that the store had no room for any more */
    int64_t evicted_stale, evicted_full; /* that were too old; that newer ones
                                          * pushed out of the buffer */
    int64_t evicted_lost; /* that went with the node that kept their data */
    int64_t late_samples; /* that came when their work was over: refused */
    int64_t priorities, priorities_refused; /* that learners gave samples, and
                                             * that were of samples gone */
    double staleness; /* of the samples learned from, mean, in versions of the
                       * policy; NaN: none yet */
    int64_t staleness_max;

    int64_t sent, sent_bytes, lost, dropped, refused; /* traffic */
    int64_t slowest,
        slowest_ns;   /* who had no room for it longest; 0 ns: none */
    int64_t peak_kib; /* largest resident size of the process */

    int64_t status;
    char endpoint[LS_ENDPOINT_MAX + 1];
    char weights[REPORT_PATH_MAX];    /* the file; "": none was written */
    char unsaved[REPORT_UNSAVED_MAX]; /* why it was not; "": it need not */
    char losses[REPORT_LOSSES_MAX];   /* a line for each event that lost some */
    char refusal[REPORT_REFUSAL_MAX]; /* the most frequent; "": there is none */
    struct report_metrics metrics;    /* of a learner: of the last steps */
    char text[LS_ERROR_TEXT_MAX];
};

struct report_sink {
    void (*put)(void *self, const struct report *report);
    void *self;
};

/* data: a msgpack value; none when it is longer than REPORT_METRICS_MAX. */
void report_set_metrics(struct report *report, const void *data, size_t size);

/* A record with nothing filled in. */
struct report report_of(uint32_t node, enum report_kind kind);

/* Its table. What is missing is as report_of() has it, what is unknown is
 * passed over: a node may be of another version than who watches it. */
extern const struct ls_record report_record;

/* A sink that writes to a descriptor; a watcher that has gone is no error.
 * out:    own; give it to report_pipe_destroy(); the descriptor is borrowed.
 * Thread of put: any. */
typedef struct report_pipe report_pipe;
LS_MUST_USE int report_pipe_create(report_pipe **out, int fd);
void report_pipe_destroy(report_pipe **pipe);
struct report_sink report_pipe_sink(report_pipe *pipe);

/* Read records from a descriptor until its end and hand each to the sink.
 * Errors: LS_EPROTO what came is not a record; LS_EIO; LS_ENOMEM. */
LS_MUST_USE int report_drain(int fd, struct report_sink sink);

#endif
