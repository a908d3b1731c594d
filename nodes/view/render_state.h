/* render_state.h - what is known of a run that is shown. */
#ifndef LOCKSTEP_RENDER_STATE_H
#define LOCKSTEP_RENDER_STATE_H

#include "lockstep/middleware.h"

#include "progress_line.h"
#include "render.h"

enum node_state {
    NODE_AWAITED,
    NODE_LAUNCHED,
    NODE_BOUND,
    NODE_IN,
    NODE_DONE,
    NODE_FAILED
};

struct rendered_node {
    enum node_state state;
    long pid;
    unsigned restarts;
    bool let_go; /* the run has gone on without it */
    struct report last;
};

struct render {
    const struct plan *plan;     /* borrow */
    struct rendered_node *nodes; /* own; n_nodes of the plan */
    size_t alone;                /* the one that is watched, or n_nodes */
    size_t lead;                 /* whose counters are the run's */
    progress_line *progress;     /* own; NULL: not wanted */
    ls_writer *json;             /* own; NULL: text */
    ls_runtime *runtime;         /* borrow; whose time is shown */
    bool colour_out, colour_err;
    bool failed;            /* some node; the line stands still */
    bool unread, unwritten; /* the last event on stdout */
    int exit_code;
    int64_t born_at, formed_at, ended_at; /* ls_now(); 0: not yet */
    struct report evaluation;             /* the last one; episodes 0: none */
    int64_t iteration, env_step, counted_at; /* the latest that were heard */
    int64_t discarded;                       /* env steps besides those */
    /* Of a run that goes on, the first that were heard in this life: what was
     * counted before took time that nobody knows. */
    bool resumes;
    int64_t base_env_step, base_at; /* 0: none yet, or it is a new run */
};

/* The figures of a run so far. */
struct totals {
    double wall_s;
    double env_steps_per_s;
    int64_t sent, sent_bytes, lost, refused, peak_kib;
    bool solved;
    const char *refusal; /* of the node that refused most; "": none. Borrow */
};
struct totals render_totals(const struct render *render);

/* What the learners of a service job have told: means over iterations; 0 when
 * there were none. */
struct learner_totals {
    int64_t iterations, policy_only, commits;
    double train_ms, load_ms, wait_ms;
    double overlap; /* of the loading: while a learner trained. 0 to 1 */
};
struct learner_totals render_learners(const struct render *render);
/* What the members of a service job have counted. */
struct member_totals {
    int64_t works, given_back, failed_calls, refused_calls, dropped_samples;
    int64_t store_refused;
};
struct member_totals render_members(const struct render *render);
/* What learn() reported last in a service job: to the learner that has learned
 * most, or, if none has lived to say it, what it told the coordinator. */
const struct report_metrics *render_learned(const struct render *render);

/* Events as JSON lines. */
void render_json_report(render *render, size_t index,
                        const struct report *report);
void render_json_run(render *render, const struct render_run *run);
void render_json_policy(render *render, const struct render_policy *policy);
void render_json_stuck(render *render, size_t index, const char *text);
void render_json_failed(render *render, const struct render_failure *failure);
void render_json_summary(render *render);

/* The summary for people. */
void render_text_summary(render *render);

#endif
