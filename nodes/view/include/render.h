/* render.h - what a run shows: one live line on a terminal, plain lines
 * elsewhere, or JSON lines; and at the end the summary or the failure.
 *
 * The summary and JSON go to stdout, everything else to stderr.
 * Thread: serial. */
#ifndef LOCKSTEP_RENDER_H
#define LOCKSTEP_RENDER_H

#include "plan.h"
#include "report.h"

typedef struct render render;

/* plan: borrow. alone: index of the one node that is watched; n_nodes: all.
 * runtime: whose time it shows; NULL: threads. Errors: LS_ENOMEM. */
LS_MUST_USE int render_create(render **out, const struct plan *plan, bool json,
                              size_t alone, ls_runtime *runtime);
void render_destroy(render **render);

/* The run has its folder. */
struct render_run {
    const char *folder;
    unsigned lives;     /* that it had before; 0: it is new */
    const char *behind; /* the folder of one that would go on, and is left as it
                         * is; NULL: there is none */
};
void render_run(render *render, const struct render_run *run);

/* A node has been started; pid: 0 when it is a thread. */
void render_launched(render *render, size_t index, long pid);
/* A node reports. */
void render_report(render *render, size_t index, const struct report *report);
/* A node wrote a line to stderr. */
void render_line(render *render, size_t index, const char *line);

/* A node failed, and the run goes on. */
struct render_policy {
    size_t index;     /* of the node */
    unsigned restart; /* it is its so manieth restart; 0: it is let go */
    int wait_ms;      /* before that restart */
    const char *text; /* a whole sentence */
};
void render_policy(render *render, const struct render_policy *policy);

struct render_failure {
    size_t index;             /* of the node; n_nodes: the run itself */
    int status;               /* LS_E…; LS_OK when it died without one */
    int signal;               /* that killed it, or 0 */
    int exit_code;            /* of the run */
    const char *text;         /* a whole sentence */
    const char *const *lines; /* its last lines */
    size_t n_lines;
};

/* Why the run fails, as soon as that is known. */
void render_failed(render *render, const struct render_failure *failure);

/* A node that was told to end does not. text: a sentence without its dot. */
void render_stuck(render *render, size_t index, const char *text);

/* One more line on it, for people. */
void render_remark(render *render, const char *text);

/* Nobody reads the events any more. */
bool render_is_unread(const render *render);

/* The run is over with this exit code, and all reports have been seen: the
 * summary; after a failure only where the weights are, but as JSON the whole
 * summary too, so that the last line always is one. Returns the exit code,
 * which is not 0 when the run of all nodes was to be solved, and is not. */
int render_end(render *render, int exit_code);

#endif
